"""Reads the arguments that name a body, geom, site or camera: kind, as mjtObj, and index."""

from __future__ import annotations

from typing import Any

import numpy as np

from featherlane.engine.model.arguments import one_of
from featherlane.engine.model.assignment import regular
from featherlane.engine.model.enums import OBJ_BODY, OBJ_CAMERA, OBJ_GEOM, OBJ_SITE, OBJ_XBODY
from featherlane.engine.model.model import Model
from featherlane.engine.model.names import index_of
from featherlane.errors import ModelError

# kind -> (lookup, mjtObj); `body` is a body's centre of mass with its axes of inertia, `xbody` its frame
OBJECTS = {
    "body": ("body", OBJ_BODY),
    "xbody": ("body", OBJ_XBODY),
    "geom": ("geom", OBJ_GEOM),
    "site": ("site", OBJ_SITE),
    "camera": ("camera", OBJ_CAMERA),
}
Object = int | str | tuple[str, int | str]  # a body's frame by name or number, or a kind and a name or number


def object_of(
    model: Model, given: Object, name: str = "frame", kinds=OBJECTS, plain: int = OBJ_XBODY
) -> tuple[int, int]:
    """Returns kind and index of an object; a body without a kind is of the kind `plain`."""
    if not isinstance(given, tuple):
        return plain, index_of(model, "body", given)
    if len(given) != 2:
        raise ModelError(f"{name}: got {given!r}, allowed are a body, or a kind and a name or number")
    lookup, kind = kinds[one_of(name, given[0], kinds)]
    return kind, index_of(model, lookup, given[1])


def geom_numbers(model: Model, name: str, given: Any) -> np.ndarray:
    """Returns indices of geoms, given by name or number, one or many."""
    numbers = regular(name, given)
    if numbers.dtype.kind in "US":
        numbers = np.array([model.geom(str(x)).id for x in numbers.ravel()], int).reshape(numbers.shape)
    if numbers.dtype.kind not in "iu" or ((numbers < 0) | (numbers >= model.ngeom)).any():
        raise ModelError(f"{name}: got {given!r}, allowed are names and numbers from 0 to {model.ngeom - 1}")
    return numbers


def objects_of(model: Model, given: Any, name: str = "frame") -> tuple[list[tuple[int, int]], bool]:
    """Returns kinds and indices of one object or a list of them, and whether it is one."""
    if not isinstance(given, list):
        return [object_of(model, given, name)], True
    if not given:
        raise ModelError(f"{name}: got an empty list, allowed are one object or several")
    return [object_of(model, one, name) for one in given], False
