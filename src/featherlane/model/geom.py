"""The types of geoms and sites that have a closed form: each is registered with what is asked of its shape by itself.

`collision/rays/shapes.py` registers those that there are; which of them collide, and how, pairs tell (`model/pair.py`).
Planes, meshes and height fields are more than their sizes: rays know of them, and pair functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from featherlane.errors import ArgumentError
from featherlane.lanes import Choice, Kernel, kernel


class Shape(NamedTuple):
    """A shape in its own frame.

    Attributes:
        kind: a `geom_type`.
        nsize: how many of the three sizes it has; they must be positive.
        radius: the kernel of (size, bound) that gives the radius of a ball about its centre that holds it [m]; bound:
            the one that the compiler of the model found.
        meet: the kernel of (p, v, size), a point and a unit vector, that gives where the ray meets its surface: (mask,
            distance [m], outward unit normal).
        inside: the kernel of (size, p) that gives the mask: is the point within it?
        semi_axes: the kernel of (size) that gives those of the ellipsoid that stands for it in a medium [m].
        volume: of the three sizes [m^3].
    """

    kind: int
    nsize: int
    radius: Kernel
    meet: Kernel
    inside: Kernel
    semi_axes: Kernel
    volume: Callable[[float, float, float], float]


SHAPES: dict[int, Shape] = {}  # by kind


# ---- the links of the chains -----------------------------------------------------------------------------------------
def _of_size(number: int, ask: Kernel, others: Kernel) -> Kernel:
    @kernel
    def of_size(kind, size):
        """What a shape says of its sizes."""
        if kind == number:
            return ask(size)
        return others(kind, size)

    return of_size


def _of_bound(number: int, ask: Kernel, others: Kernel) -> Kernel:
    @kernel
    def of_bound(kind, size, bound):
        """The radius of a shape."""
        if kind == number:
            return ask(size, bound)
        return others(kind, size, bound)

    return of_bound


def _of_point(number: int, ask: Kernel, others: Kernel) -> Kernel:
    @kernel
    def of_point(kind, size, p):
        """What a shape says of a point."""
        if kind == number:
            return ask(size, p)
        return others(kind, size, p)

    return of_point


def _of_ray(number: int, ask: Kernel, others: Kernel) -> Kernel:
    @kernel
    def of_ray(kind, p, v, size):
        """What a shape says of a ray."""
        if kind == number:
            return ask(p, v, size)
        return others(kind, p, v, size)

    return of_ray


@kernel
def _bound(kind, size, bound):
    """No shape that is known: the ball that the model's compiler found."""
    return bound


@kernel
def _nowhere(kind, size, p):
    """No shape that is known: nothing is within it."""
    return size[0] != size[0]


@kernel
def _never(kind, p, v, size):
    """No shape that is known: no ray meets it."""
    return size[0] != size[0], 0.0 * size[0], v


@kernel
def _as_they_are(kind, size):
    """Half the edges of what is no shape that is known."""
    return size


radius_of = Choice(_of_bound, _bound)  # (kind, size, bound)
meet_shape = Choice(_of_ray, _never)  # (kind, p, v, size)
inside_shape = Choice(_of_point, _nowhere)  # (kind, size, p)
semi_axes_of = Choice(_of_size, _as_they_are)  # (kind, size)


def register(shape: Shape) -> None:
    """Take up a shape, before models are loaded and the stages that ask are compiled.

    Raises:
        ValueError: the kind is registered already.
    """
    if shape.kind in SHAPES:
        raise ArgumentError(f"the shape {shape.kind} is registered already")
    SHAPES[shape.kind] = shape
    radius_of.add(shape.kind, shape.radius)
    meet_shape.add(shape.kind, shape.meet)
    inside_shape.add(shape.kind, shape.inside)
    semi_axes_of.add(shape.kind, shape.semi_axes)
