"""Registers geom and site types with a closed form, each with the kernels that need only its sizes.

`collision/rays/shapes.py` registers the shapes; `model/pair.py` registers the pairs that collide.
Planes, meshes and height fields need more than sizes: ray and pair functions handle them.
"""

from __future__ import annotations

from typing import NamedTuple

from featherlane.engine.lanes import Kernel, dispatch
from featherlane.engine.lanes.rows import row_type
from featherlane.errors import ArgumentError

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
    """

    kind: int
    nsize: int
    radius: Kernel
    meet: Kernel
    inside: Kernel
    semi_axes: Kernel


SHAPES: dict[int, Shape] = {}  # by kind


# ---- dispatch by shape -----------------------------------------------------------------------------------------------
@dispatch("kind")
def radius_of(kind, size, bound):
    """Returns the radius of a bounding sphere [m]; of an unregistered shape the compiler's."""
    return bound


@dispatch("kind")
def meet_shape(kind, p, v, size):
    """Returns (mask, distance, normal) where the ray from p along v hits; no hit for an unregistered shape."""
    return size[0] != size[0], 0.0, v


@dispatch("kind")
def inside_shape(kind, size, p):
    """Returns the mask of worlds in which the point p is inside; empty for an unregistered shape."""
    return size[0] != size[0]


@dispatch("kind")
def semi_axes_of(kind, size):
    """Returns the semi-axes of the shape's ellipsoid in a fluid [m]; the sizes of an unregistered shape."""
    return size


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
