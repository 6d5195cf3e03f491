"""Computes which optional features are in use: ints and sizes that depend on whether real fields are zero.

A kernel skips a feature that no world uses.  Users edit these reals at any time, so the ints follow at the next call:
`Model.check_edits` for the model's values, `Expanded.in_use` for those of a batch's worlds.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from featherlane.engine.model.enums import TRN_JOINT, TRN_JOINTINPARENT, TRN_TENDON
from featherlane.engine.model.protocol import ModelFields

# fields whose zeros determine the result of `in_use`
DECIDING = (
    *("body_gravcomp", "geom_adhesion", "pair_adhesion", "geom_surfacevel"),
    *("actuator_damping", "actuator_dampingpoly", "actuator_armature"),
)
SEVERAL = -2  # replaces an actuator id
SHARED: Mapping[str, np.ndarray] = MappingProxyType({})


def in_use(model: ModelFields, rows: Mapping[str, np.ndarray] = SHARED) -> dict[str, int | np.ndarray]:
    """Returns DEPENDENT_INTS of worlds that share a record: a feature is in use if any of them uses it.

    Args:
        rows: fields that differ by world, (nworld, ...) by name.

    Source: MuJoCo mj_setConst.
    """

    def used(name: str, zero=np.not_equal) -> np.ndarray:
        values = rows[name] if name in rows else model.__dict__[name][None]
        return np.asarray(zero(values, 0.0).any(axis=(0, *range(2, values.ndim))))

    def actuators(n: int, *transmissions: int) -> np.ndarray:
        chosen = np.flatnonzero(reflected & np.isin(model.actuator_trntype, transmissions))
        at, ids = model.actuator_trnid[chosen, 0], np.full(n, -1)
        ids[at] = chosen
        ids[np.bincount(at, minlength=n) > 1] = SEVERAL
        return ids

    reflected = used("actuator_damping") | used("actuator_dampingpoly") | used("actuator_armature")
    return {
        "jnt_actuatorid": actuators(model.njnt, TRN_JOINT, TRN_JOINTINPARENT),
        "tendon_actuatorid": actuators(model.ntendon, TRN_TENDON),
        "ngravcomp": int(used("body_gravcomp", np.greater).sum()),
        "flg_adhesion": int(used("geom_adhesion").any() or used("pair_adhesion").any()),
        "flg_surfacevel": int(used("geom_surfacevel").any()),
    }
