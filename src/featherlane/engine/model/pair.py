"""Registers the pair functions: the kernel that finds the contact points of two geoms, by their types.

`collision/table.py` registers the functions; models in which other pairs of types may collide are unsupported.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from featherlane.engine.lanes import Kernel, dispatch
from featherlane.engine.model.enums import NGEOMTYPES
from featherlane.errors import ArgumentError

NO_FUNCTION = -1
# ids of pair functions: first those of all worlds at once, then those of one world at a time
PLANE_SPHERE, PLANE_CAPSULE, PLANE_BOX, PLANE_ELLIPSOID, PLANE_CYLINDER = range(5)
SPHERE_SPHERE, SPHERE_CAPSULE, SPHERE_CYLINDER, SPHERE_BOX, CAPSULE_CAPSULE = range(5, 10)
FIRST_SCALAR = 20
PLANE_MESH, CAPSULE_BOX, BOX_BOX, CONVEX, HEIGHTS, FIELD_PAIR, MESH_FIELD = range(FIRST_SCALAR, FIRST_SCALAR + 7)


class PairFunction(NamedTuple):
    """A function that finds the contact points of pairs of shapes.

    Attributes:
        number: id of the function; from FIRST_SCALAR on it processes one world at a time.
        pairs: for each pair of types, lower first: the two types, and the maximum number of points.
        points: the kernel that finds them.  For all worlds at once: of (m, d, g, h, near, limit); it passes points
            closer than the limit to `collision.slot.append`, in the worlds of the mask `near`.  For one world: of
            (m1, d1), from `shape_*` to `manifold_*`.
        part: for one world at a time: the kernel of (m, d, g, h, limit, near) for all lanes that returns the mask of
            worlds in which the geoms are farther apart than the limit; None: only bounding spheres are tested.
    """

    number: int
    pairs: tuple[tuple[int, int, int], ...]
    points: Kernel
    part: Kernel | None = None


PAIR_FUNCTIONS: list[tuple[int, int, int, int]] = []  # id, type of geom 1, type of geom 2, maximum contact points


# ---- dispatch by pair function ---------------------------------------------------------------------------------------
@dispatch("function")
def lane_points(m, d, function, g, h, near, limit):
    """Appends the contact points of geoms g and h in worlds `near`, by a function of all worlds at once."""


@dispatch("function")
def manifold_points(m1, d1, function):
    """Finds the points of a pair in one world, by a function of one world at a time."""


@dispatch("function")
def parted(m, d, function, g, h, limit, near):
    """Returns the mask of worlds of `near` in which geoms g and h are farther apart than the limit.

    It is empty for a function without `part`: only bounding spheres separate such pairs.
    """
    return limit != limit


def register(function: PairFunction) -> None:
    """Registers a pair function, before models are loaded and the collision stages are compiled.

    Raises:
        ValueError: its id, or one of its pairs of types, is already registered.
    """
    taken = {number for number, *_ in PAIR_FUNCTIONS}
    types = {(type1, type2) for _, type1, type2, _ in PAIR_FUNCTIONS}
    if function.number in taken or types & {(type1, type2) for type1, type2, _ in function.pairs}:
        raise ArgumentError(f"the pair function {function.number}, or one of its type pairs, is registered already")
    PAIR_FUNCTIONS.extend((function.number, *pair) for pair in function.pairs)
    (lane_points if function.number < FIRST_SCALAR else manifold_points).add(function.number, function.points)
    if function.part is not None:
        parted.add(function.number, function.part)


def function_tables() -> tuple[np.ndarray, np.ndarray]:
    """Returns tables over two geom types, lower first: pair function, and maximum number of contact points."""
    function = np.full((NGEOMTYPES, NGEOMTYPES), NO_FUNCTION)
    most = np.zeros_like(function)
    for number, type1, type2, count in PAIR_FUNCTIONS:
        function[type1, type2] = number
        most[type1, type2] = count
    return function, most
