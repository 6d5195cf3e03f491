"""Registers geom and site types with a closed form, each with the kernels that need only its sizes.

`collision/rays/shapes.py` registers the shapes; `model/pair.py` registers the pairs that collide.
Planes, meshes and height fields need more than sizes: ray and pair functions handle them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from featherlane.errors import ArgumentError
from featherlane.lanes import Choice, Kernel, kernel
from featherlane.lanes.rows import row_type

# coefficients of the ellipsoid model of fluid forces, mass and inertia of the added mass
Fluid = row_type("Fluid", "scale blunt slender angular kutta magnus mass_x mass_y mass_z inertia_x inertia_y inertia_z")


class Shape(NamedTuple):
    """A shape in its own frame.

    Attributes:
        kind: a `geom_type`.
        nsize: number of sizes that the shape uses of three; they must be positive.
        radius: the kernel of (size, bound) that returns the radius of a bounding sphere about its centre [m]; bound is
            the radius found by MuJoCo's compiler.
        meet: the kernel of (p, v, size), a point and a unit vector, that returns where the ray hits its surface: (mask,
            distance [m], outward unit normal).
        inside: the kernel of (size, p) that returns the mask of worlds in which the point is inside.
        semi_axes: the kernel of (size) that returns those of the ellipsoid that represents it in a fluid [m].
        volume: the function of the three sizes that returns the volume [m^3].
    """

    kind: int
    nsize: int
    radius: Kernel
    meet: Kernel
    inside: Kernel
    semi_axes: Kernel
    volume: Callable[[float, float, float], float]


SHAPES: dict[int, Shape] = {}  # by kind


# ---- dispatch by shape -----------------------------------------------------------------------------------------------
def _of_size(number: int, ask: Kernel, others: Kernel) -> Kernel:
    @kernel
    def of_size(kind, size):
        """Returns the result of this shape's kernel `ask`, or of the later shapes for another kind."""
        if kind == number:
            return ask(size)
        return others(kind, size)

    return of_size


def _of_bound(number: int, ask: Kernel, others: Kernel) -> Kernel:
    @kernel
    def of_bound(kind, size, bound):
        """Returns the bounding radius [m], by this shape's kernel or a later one."""
        if kind == number:
            return ask(size, bound)
        return others(kind, size, bound)

    return of_bound


def _of_point(number: int, ask: Kernel, others: Kernel) -> Kernel:
    @kernel
    def of_point(kind, size, p):
        """Returns the result of the shape's kernel for a point p, or of the later shapes if it has another kind."""
        if kind == number:
            return ask(size, p)
        return others(kind, size, p)

    return of_point


def _of_ray(number: int, ask: Kernel, others: Kernel) -> Kernel:
    @kernel
    def of_ray(kind, p, v, size):
        """Returns (mask, distance, normal) where the ray from p along v hits, by this shape's kernel or a later one."""
        if kind == number:
            return ask(p, v, size)
        return others(kind, p, v, size)

    return of_ray


@kernel
def _bound(kind, size, bound):
    """Returns the compiler's bounding radius, for unregistered shapes."""
    return bound


@kernel
def _nowhere(kind, size, p):
    """Returns an empty mask, for unregistered shapes: no point is inside."""
    return size[0] != size[0]


@kernel
def _never(kind, p, v, size):
    """Returns no hit, for unregistered shapes."""
    return size[0] != size[0], 0.0 * size[0], v


@kernel
def _as_they_are(kind, size):
    """Returns the sizes as semi-axes, for unregistered shapes."""
    return size


radius_of = Choice(_of_bound, _bound)  # (kind, size, bound)
meet_shape = Choice(_of_ray, _never)  # (kind, p, v, size)
inside_shape = Choice(_of_point, _nowhere)  # (kind, size, p)
semi_axes_of = Choice(_of_size, _as_they_are)  # (kind, size)


def register(shape: Shape) -> None:
    """Registers a shape, before models are loaded and before the stages that use it are compiled.

    Raises:
        ValueError: the kind is already registered.
    """
    if shape.kind in SHAPES:
        raise ArgumentError(f"the shape {shape.kind} is registered already")
    SHAPES[shape.kind] = shape
    radius_of.add(shape.kind, shape.radius)
    meet_shape.add(shape.kind, shape.meet)
    inside_shape.add(shape.kind, shape.inside)
    semi_axes_of.add(shape.kind, shape.semi_axes)
