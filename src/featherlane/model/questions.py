"""Questions that a step would ask of all elements of a model, answered once when it is loaded.

The answers are sizes and ints that kernels branch on, so that a model pays nothing for what it does not have.  They
depend on ints that nobody may edit afterwards.
"""

from __future__ import annotations

import numpy as np

from featherlane.model.candidates import CAPSULE, PLANE, SPHERE

# bits of sensor_reads: what is computed only where something reads it, and the sensors that do
MOMENTA, WRENCHES, ENERGIES = 1, 2, 4
READERS = {
    MOMENTA: "SUBTREELINVEL SUBTREEANGMOM",
    WRENCHES: "ACCELEROMETER FORCE TORQUE FRAMELINACC FRAMEANGACC",
    ENERGIES: "E_POTENTIAL E_KINETIC",
}


def answers(mj, colliding: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """Integer fields and sizes by name.

    Args:
        mj: a compiled model.
        colliding: geoms in candidate pairs.
    """
    reads = (bit for bit, kinds in READERS.items() if _is_one_of(mj.sensor_type, "mjtSensor", "SENS", kinds).any())
    sizes = {
        "nbounded": int(mj.tendon_actfrclimited.sum()),
        "ndcmotor": int(_is_one_of(mj.actuator_biastype, "mjtBias", "BIAS", "DCMOTOR").sum()),
        "all_round": int(np.isin(mj.geom_type[colliding], (PLANE, SPHERE, CAPSULE)).all()),
        "sensor_reads": sum(reads),
    }
    return {"actuator_simple": _is_simple(mj)}, sizes


def _is_one_of(values, enumeration: str, prefix: str, names: str) -> np.ndarray:
    """Mask: the value is one of these members of MuJoCo's enumeration."""
    import mujoco

    members = getattr(mujoco, enumeration)
    return np.isin(values, [int(getattr(members, f"mj{prefix}_{name}")) for name in names.split()])


def _is_simple(mj) -> np.ndarray:
    """Mask: a motor or servo on a slide or hinge, force = gain u + bias, both fixed or affine, u its one control."""
    on_joint = _is_one_of(mj.actuator_trntype, "mjtTrn", "TRN", "JOINT JOINTINPARENT")
    joint = mj.jnt_type[np.where(on_joint, mj.actuator_trnid[:, 0], 0)] if mj.njnt else mj.actuator_trntype
    return (
        on_joint
        & _is_one_of(joint, "mjtJoint", "JNT", "SLIDE HINGE")
        & _is_one_of(mj.actuator_dyntype, "mjtDyn", "DYN", "NONE")
        & _is_one_of(mj.actuator_gaintype, "mjtGain", "GAIN", "FIXED AFFINE")
        & _is_one_of(mj.actuator_biastype, "mjtBias", "BIAS", "NONE AFFINE")
        & (mj.actuator_actnum == 0)
        & (mj.actuator_ctrlnum == 1)
        & (mj.actuator_outnum == 1)
    )
