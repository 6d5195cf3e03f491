"""Maps MuJoCo's arrays to Featherlane's field names: the only module that reads or writes an MjModel's physics.

A model of an older MuJoCo lacks some fields; it is read like a model of the newest version without these features.
"""

from __future__ import annotations

import copy
import functools
from typing import Any

import numpy as np

from featherlane.engine.lanes.layout import Field
from featherlane.engine.model.enums import ABSENT_GEOM, DISABLE_MULTICCD, ENABLE_SLEEP, NEQDATA
from featherlane.engine.model.fields import MODEL, MUJOCO

_PARTS = (("opt_", "opt"), ("stat_", "stat"))
NAMED = {"geom_variant": "geom_dataid", "geom_material": "geom_matid"}  # MuJoCo's names of fields that differ by world
_NAMES = frozenset(field.name for field in MUJOCO)
# fields added after 3.6, with their value, or a function of the MjModel, in a model without the feature
ABSENT = {
    **dict.fromkeys(("jnt_actuatorid", "tendon_actuatorid"), -1),  # 3.7
    **dict.fromkeys(("jnt_stiffnesspoly", "tendon_stiffnesspoly", "dof_dampingpoly", "tendon_dampingpoly"), 0.0),
    **dict.fromkeys(("actuator_damping", "actuator_dampingpoly", "actuator_armature"), 0.0),
    **dict.fromkeys(("nactuator", "nout"), lambda mj: mj.nu),  # 3.11: before it an actuator has one control, one output
    **dict.fromkeys(("actuator_ctrladr", "actuator_outadr"), lambda mj: np.arange(mj.nu)),
    **dict.fromkeys(("actuator_ctrlnum", "actuator_outnum"), 1),
    **dict.fromkeys(("actuator_ctrlspec", "flg_adhesion", "flg_surfacevel"), 0),
    **dict.fromkeys(("geom_adhesion", "geom_surfacevel", "pair_adhesion"), 0.0),
    "site_dataid": -1,  # 3.13
    "nplastic": 0,  # 4.0
    **dict.fromkeys(("jnt_plasticadr", "tendon_plasticadr"), -1),
    **dict.fromkeys(("jnt_springyield", "tendon_springyield"), 0.0),
}
COINCIDENT = 1e-6  # the compiler takes frames that differ by less as equal, in each component
# fields whose offset MuJoCo ignores if its compiler found that two frames coincide
FRAMES = ("body_ipos", "body_iquat", "geom_pos", "geom_quat", "site_pos", "site_quat")


class Completed:
    """An MjModel of an older MuJoCo with the fields that it lacks."""

    def __init__(self, mj_model: Any):
        self.mj_model = mj_model

    def __getattr__(self, name: str) -> Any:
        return read_field(self.mj_model, name) if name in ABSENT else getattr(self.mj_model, name)

    def __copy__(self) -> Any:
        """Returns a copy of the MjModel."""
        return copy.copy(self.mj_model)


def binary(mj_model: Any) -> np.ndarray:
    """Returns the content of a file of mj_saveModel, (n,) uint8; mj_saveModel refuses paths that are not UTF-8."""
    import mujoco

    content = np.zeros((mujoco.mj_sizeModel(mj_model), 1), np.uint8)
    mujoco.mj_saveModel(mj_model, None, content)
    return content[:, 0]


def with_missing_fields(mj_model: Any) -> Any:
    """Returns an MjModel, or a `Completed` if it lacks fields."""
    return mj_model if all(hasattr(mj_model, name) for name in ABSENT) else Completed(mj_model)


def _place(mj, name: str) -> tuple[Any, str]:
    """Returns the MuJoCo struct and attribute that hold a field."""
    for prefix, part in _PARTS:
        if name.startswith(prefix):
            return getattr(mj, part), name.removeprefix(prefix)
    return mj, NAMED.get(name, name)


def is_mujocos(field: Field) -> bool:
    """Returns whether MuJoCo's model has the field."""
    return field.name in _NAMES


def read_field(mj, name: str) -> Any:
    """Returns a field's value in an MjModel: a number or an array (a view if MuJoCo returns one)."""
    holder, attribute = _place(mj, name)
    if name in ABSENT and not hasattr(holder, attribute):
        value = ABSENT[name](mj) if callable(ABSENT[name]) else ABSENT[name]
        shape = tuple(n if isinstance(n, int) else int(read_field(mj, n)) for n in MODEL[name].shape)
        return np.broadcast_to(value, shape).copy() if shape else value
    value = getattr(holder, attribute)
    if name == "opt_enableflags":
        return _with_sleep_bit(value, _sleep_bit(), ENABLE_SLEEP)
    if name == "opt_disableflags" and _multiccd_bit() and not mj.opt.enableflags & _multiccd_bit():
        return value | DISABLE_MULTICCD
    if name == "eq_data" and value.shape[1] < NEQDATA:
        return np.pad(value, ((0, 0), (0, NEQDATA - value.shape[1])))
    return value


def read_fields(mj_model: Any) -> dict[str, Any]:
    """Returns the values of an MjModel by Featherlane's names of the fields: numbers, and arrays of any shape.

    Arrays are views where MuJoCo has the field, so they follow edits.  A field that this MuJoCo lacks has the value of
    a model without the feature.

    Args:
        mj_model: a `mujoco.MjModel`.
    """
    return {field.name: read_field(mj_model, field.name) for field in MUJOCO}


def write_field(mj, name: str, value) -> None:
    """Sets a real field or an integer option of an MjModel."""
    holder, attribute = _place(mj, name)
    if name in ABSENT and not hasattr(holder, attribute):
        return
    target = getattr(holder, attribute)
    if isinstance(target, np.ndarray):
        given = np.asarray(value)
        if name == "eq_data":
            given = given.reshape(-1, NEQDATA)[:, : target.shape[1]]
        given = given.reshape(target.shape)
        if name == "geom_variant":
            given = np.where(given == ABSENT_GEOM, target, given)
        if name in FRAMES and not np.array_equal(target, given):
            for kind in ("body", "geom", "site"):  # MuJoCo ignores the offset of a frame that coincided with another
                getattr(mj, f"{kind}_sameframe")[:] = 0
        target[...] = given
    else:
        value = np.asarray(value).item()
        if name == "opt_enableflags":
            value = _with_sleep_bit(value, ENABLE_SLEEP, _sleep_bit()) | holder.enableflags & _multiccd_bit()
        elif name == "opt_disableflags" and _multiccd_bit():
            on = 0 if value & DISABLE_MULTICCD else _multiccd_bit()
            holder.enableflags = holder.enableflags & ~_multiccd_bit() | on
            value &= ~DISABLE_MULTICCD
        setattr(holder, attribute, type(target)(value))


@functools.cache
def _sleep_bit() -> int:
    """Returns the bit of the flag `sleep` in the installed MuJoCo."""
    import mujoco  # slow to import

    return int(mujoco.mjtEnableBit.mjENBL_SLEEP)


@functools.cache
def _multiccd_bit() -> int:
    """Returns the bit that enables `multiccd` in MuJoCo up to 3.7; 0 since 3.8, where a bit disables it."""
    import mujoco  # slow to import

    return int(getattr(mujoco.mjtEnableBit, "mjENBL_MULTICCD", 0))


def _with_sleep_bit(flags: int, source: int, target: int) -> int:
    """Returns bits of mjtEnableBit whose flag `sleep` is moved to another bit.

    Up to MuJoCo 3.7 it was bit 5, and bit 4 enabled `multiccd` (`_multiccd_bit`).  These versions have none of the
    flags that use these bits now.
    """
    if source == target:
        return flags
    others = flags & (min(source, target) - 1)
    return others | target if flags & source else others


def read_sizes(mj) -> dict[str, int]:
    """Returns all of MuJoCo's sizes and integer options that the layout has."""
    return {f.name: int(read_field(mj, f.name)) for f in MUJOCO if f.kind == "size"}


def centred_inertias(mj_model) -> dict[str, np.ndarray]:
    """Returns `body_ipos` and `body_iquat` without rounding errors where MuJoCo treats them as zero and identity.

    If the compiler centres a body's mesh, the body's centre of mass is a few nanometres off its frame.  MuJoCo's
    `body_sameframe` states that the two frames coincide, and its M of such a body is diagonal.  A larger offset is an
    edit of the MjModel after compilation, which MuJoCo ignores until mj_setConst.
    """
    import mujoco

    same, ipos, iquat = mujoco.mjtSameFrame, mj_model.body_ipos, mj_model.body_iquat
    at_centre = mj_model.body_sameframe == int(same.mjSAMEFRAME_BODY)
    aligned = at_centre | (mj_model.body_sameframe == int(same.mjSAMEFRAME_BODYROT))
    at_centre &= (np.abs(ipos) <= COINCIDENT).all(1)
    aligned &= (np.abs(iquat[:, 1:]) <= COINCIDENT).all(1)
    return {
        "body_ipos": np.where(at_centre[:, None], 0.0, ipos),
        "body_iquat": np.where(aligned[:, None], [1.0, 0.0, 0.0, 0.0], iquat),
    }
