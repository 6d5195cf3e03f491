"""Maps MuJoCo's arrays to Featherlane's field names: the only module that reads or writes an MjModel's physics.

A model of an older MuJoCo lacks some fields; it is read like a model of the newest version without these features.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from featherlane.lanes.layout import Field
from featherlane.model.enums import NEQDATA
from featherlane.model.fields import MODEL, MUJOCO

_PARTS = (("opt_", "opt"), ("stat_", "stat"))
_NAMES = frozenset(field.name for field in MUJOCO)
# fields added after 3.12, with their value in a model without the feature
ABSENT = {
    "site_dataid": -1,  # 3.13
    "nplastic": 0,  # 4.0
    "jnt_plasticadr": -1,
    "jnt_springyield": 0.0,
    "tendon_plasticadr": -1,
    "tendon_springyield": 0.0,
}
# tolerances with which MuJoCo's compiler detects coinciding frames
FRAMES = ("body_ipos", "body_iquat", "geom_pos", "geom_quat", "site_pos", "site_quat")


def _place(mj, name: str) -> tuple[Any, str]:
    """Returns the MuJoCo struct and attribute that hold a field."""
    for prefix, part in _PARTS:
        if name.startswith(prefix):
            return getattr(mj, part), name.removeprefix(prefix)
    return mj, name


def is_mujocos(field: Field) -> bool:
    """Returns whether MuJoCo's model has the field."""
    return field.name in _NAMES


def read(mj, name: str):
    """Returns a field's value in an MjModel: a number or an array (a view if MuJoCo returns one)."""
    holder, attribute = _place(mj, name)
    if name in ABSENT and not hasattr(holder, attribute):
        return np.full(getattr(mj, str(MODEL[name].shape[0])), ABSENT[name]) if MODEL[name].shape else ABSENT[name]
    value = getattr(holder, attribute)
    if name == "eq_data" and value.shape[1] < NEQDATA:
        return np.pad(value, ((0, 0), (0, NEQDATA - value.shape[1])))
    return value


def write(mj, name: str, value) -> None:
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
        if name in FRAMES and not np.array_equal(target, given):
            for kind in ("body", "geom", "site"):  # MuJoCo ignores the offset of a frame that coincided with another
                getattr(mj, f"{kind}_sameframe")[:] = 0
        target[...] = given
    else:
        setattr(holder, attribute, type(target)(np.asarray(value).item()))


def read_sizes(mj) -> dict[str, int]:
    """Returns all of MuJoCo's sizes and integer options that the layout has."""
    return {f.name: int(read(mj, f.name)) for f in MUJOCO if f.kind == "size"}
