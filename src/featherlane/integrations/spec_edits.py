"""Copies the attributes of bodies and geoms that variants of a scene may change from one `mujoco.MjSpec` to another."""

from __future__ import annotations

from typing import Any

import numpy as np

GEOM = ("pos", "quat", "alt", "mass", "density", "typeinertia", "material", "rgba", "fitscale")
BODY = ("explicitinertial", "mass", "ipos", "iquat", "ialt", "inertia", "fullinertia")
ORIENTATION = ("axisangle", "euler", "type", "xyaxes", "zaxis")


def copy_attributes(source: Any, target: Any, names: tuple[str, ...]) -> None:
    """Copies attributes of an element of a spec."""
    for name in names:
        value = getattr(source, name)
        if name in ("alt", "ialt"):
            copy_attributes(value, getattr(target, name), ORIENTATION)
        elif isinstance(value, np.ndarray):
            getattr(target, name)[:] = value
        else:
            setattr(target, name, value)
