"""Questions that a step would ask of all elements of a model, answered once when it is loaded.

The answers are sizes and ints that kernels branch on, so that a model pays nothing for what it does not have.  They
depend on ints that nobody may edit afterwards.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

import numpy as np

from featherlane.model.enums import (
    BIAS_AFFINE,
    BIAS_DCMOTOR,
    BIAS_NONE,
    CAPSULE,
    DYN_NONE,
    GAIN_AFFINE,
    GAIN_FIXED,
    PLANE,
    SPHERE,
    TRN_JOINT,
    TRN_JOINTINPARENT,
)
from featherlane.model.joint import is_scalar
from featherlane.model.sensor import SENSORS


def answers(mj, colliding: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """Integer fields and sizes by name.

    Args:
        mj: a compiled model.
        colliding: geoms in candidate pairs.
    """
    kinds = {int(kind) for kind in mj.sensor_type}
    sizes = {
        "nbounded": int(mj.tendon_actfrclimited.sum()),
        "ndcmotor": int((mj.actuator_biastype == BIAS_DCMOTOR).sum()),
        "all_round": int(np.isin(mj.geom_type[colliding], (PLANE, SPHERE, CAPSULE)).all()),
        "sensor_reads": reduce(or_, (SENSORS[kind].reads for kind in kinds & SENSORS.keys()), 0),
    }
    return {"actuator_simple": _is_simple(mj)}, sizes


def _is_simple(mj) -> np.ndarray:
    """Mask: a motor or servo on a slide or hinge, force = gain u + bias, both fixed or affine, u its one control."""
    on_joint = np.isin(mj.actuator_trntype, (TRN_JOINT, TRN_JOINTINPARENT))
    joint = mj.jnt_type[np.where(on_joint, mj.actuator_trnid[:, 0], 0)] if mj.njnt else mj.actuator_trntype
    return (
        on_joint
        & is_scalar(joint)
        & (mj.actuator_dyntype == DYN_NONE)
        & np.isin(mj.actuator_gaintype, (GAIN_FIXED, GAIN_AFFINE))
        & np.isin(mj.actuator_biastype, (BIAS_NONE, BIAS_AFFINE))
        & (mj.actuator_actnum == 0)
        & (mj.actuator_ctrlnum == 1)
        & (mj.actuator_outnum == 1)
    )
