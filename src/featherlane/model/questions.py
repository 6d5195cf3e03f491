"""Questions that a step would ask of all elements of a model, answered once when it is loaded.

The answers are sizes and ints that kernels branch on, so that a model pays nothing for what it does not have.  They
depend on ints that nobody may edit afterwards.
"""

from __future__ import annotations

import numpy as np

from featherlane.model.enums import (
    BIAS_AFFINE,
    BIAS_DCMOTOR,
    BIAS_NONE,
    CAPSULE,
    DYN_NONE,
    GAIN_AFFINE,
    GAIN_FIXED,
    HINGE,
    PLANE,
    SENS_ACCELEROMETER,
    SENS_E_KINETIC,
    SENS_E_POTENTIAL,
    SENS_FORCE,
    SENS_FRAMEANGACC,
    SENS_FRAMELINACC,
    SENS_SUBTREEANGMOM,
    SENS_SUBTREELINVEL,
    SENS_TORQUE,
    SLIDE,
    SPHERE,
    TRN_JOINT,
    TRN_JOINTINPARENT,
)

# bits of sensor_reads: what is computed only where something reads it, and the sensors that do
MOMENTA, WRENCHES, ENERGIES = 1, 2, 4
READERS = {
    MOMENTA: (SENS_SUBTREELINVEL, SENS_SUBTREEANGMOM),
    WRENCHES: (SENS_ACCELEROMETER, SENS_FORCE, SENS_TORQUE, SENS_FRAMELINACC, SENS_FRAMEANGACC),
    ENERGIES: (SENS_E_POTENTIAL, SENS_E_KINETIC),
}


def answers(mj, colliding: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """Integer fields and sizes by name.

    Args:
        mj: a compiled model.
        colliding: geoms in candidate pairs.
    """
    reads = (bit for bit, kinds in READERS.items() if np.isin(mj.sensor_type, kinds).any())
    sizes = {
        "nbounded": int(mj.tendon_actfrclimited.sum()),
        "ndcmotor": int((mj.actuator_biastype == BIAS_DCMOTOR).sum()),
        "all_round": int(np.isin(mj.geom_type[colliding], (PLANE, SPHERE, CAPSULE)).all()),
        "sensor_reads": sum(reads),
    }
    return {"actuator_simple": _is_simple(mj)}, sizes


def _is_simple(mj) -> np.ndarray:
    """Mask: a motor or servo on a slide or hinge, force = gain u + bias, both fixed or affine, u its one control."""
    on_joint = np.isin(mj.actuator_trntype, (TRN_JOINT, TRN_JOINTINPARENT))
    joint = mj.jnt_type[np.where(on_joint, mj.actuator_trnid[:, 0], 0)] if mj.njnt else mj.actuator_trntype
    return (
        on_joint
        & np.isin(joint, (SLIDE, HINGE))
        & (mj.actuator_dyntype == DYN_NONE)
        & np.isin(mj.actuator_gaintype, (GAIN_FIXED, GAIN_AFFINE))
        & np.isin(mj.actuator_biastype, (BIAS_NONE, BIAS_AFFINE))
        & (mj.actuator_actnum == 0)
        & (mj.actuator_ctrlnum == 1)
        & (mj.actuator_outnum == 1)
    )
