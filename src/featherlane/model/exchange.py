"""MuJoCo's arrays under Featherlane's field names: the only place that reads or writes an MjModel's physics."""

from __future__ import annotations

from typing import Any

import numpy as np

from featherlane.lanes.layout import Field
from featherlane.model.fields import DERIVED, MODEL

_PARTS = (("opt_", "opt"), ("stat_", "stat"))


def _place(mj, name: str) -> tuple[Any, str]:
    """The MuJoCo struct and attribute that hold a field."""
    for prefix, part in _PARTS:
        if name.startswith(prefix):
            return getattr(mj, part), name.removeprefix(prefix)
    return mj, name


def is_mujocos(field: Field) -> bool:
    """Whether MuJoCo's model has the field."""
    return field.name not in DERIVED


def read(mj, name: str):
    """A field's value in an MjModel: a number or an array (a view where MuJoCo gives one)."""
    holder, attribute = _place(mj, name)
    return getattr(holder, attribute)


def write(mj, name: str, value) -> None:
    """Set a real field or an integer option of an MjModel."""
    holder, attribute = _place(mj, name)
    target = getattr(holder, attribute)
    if isinstance(target, np.ndarray):
        target[...] = np.asarray(value).reshape(target.shape)
    else:
        setattr(holder, attribute, type(target)(np.asarray(value).item()))


def read_sizes(mj) -> dict[str, int]:
    """All of MuJoCo's sizes and integer options that the layout has."""
    return {f.name: int(read(mj, f.name)) for f in MODEL.fields if f.kind == "size" and is_mujocos(f)}
