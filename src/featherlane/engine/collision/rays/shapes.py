"""Defines the shapes with a closed form: the functions of each shape for rays, sensors and fluid forces."""

from featherlane.engine.prelude import *
from featherlane.engine.collision.rays.ray_shape import (
    meet_box,
    meet_capsule,
    meet_cylinder,
    meet_ellipsoid,
    meet_sphere,
)
from featherlane.engine.model.geom import Shape, inside_shape, meet_shape, radius_of, register

__all__ = ["BUILT_IN", "inside_shape", "meet_shape", "radius_of"]


# ---- sphere: radius --------------------------------------------------------------------------------------------------
@kernel
def sphere_radius(size, bound):
    """Returns the radius of the bounding sphere."""
    return size[0]


@kernel
def ray_meets_sphere(p, v, size):
    """Returns (met, distance, normal) of a ray and a sphere about the origin."""
    return meet_sphere(p, v, size[0])


@kernel
def inside_sphere(size, p):
    """Returns whether p is nearer to the centre than the radius."""
    return dot(p, p) < size[0] * size[0]


@kernel
def sphere_axes(size):
    """Returns the three semi-axes, all the radius."""
    return size[0], size[0], size[0]


# ---- capsule: radius, half the length of its middle ------------------------------------------------------------------
@kernel
def capsule_radius(size, bound):
    """Returns the radius of the bounding sphere: the distance from the centre to the end of a cap."""
    return size[0] + size[1]


@kernel
def ray_meets_capsule(p, v, size):
    """Returns (met, distance, normal) of a ray and a capsule along z."""
    return meet_capsule(p, v, size[0], size[1])


@kernel
def inside_capsule(size, p):
    """Returns whether p is nearer to the segment than the radius."""
    x, y, z = p
    # the component along z of the vector from the nearest point of the segment
    beyond = z - clip(z, -size[1], size[1])
    return fma(x, x, fma(y, y, beyond * beyond)) < size[0] * size[0]


@kernel
def capsule_axes(size):
    """Returns the half extents along x, y, z: the radius twice, and half the length with its caps."""
    return size[0], size[0], size[0] + size[1]


# ---- ellipsoid: semi-axes --------------------------------------------------------------------------------------------
@kernel
def ellipsoid_radius(size, bound):
    """Returns the radius of the bounding sphere: the longest semi-axis."""
    return fmax(fmax(size[0], size[1]), size[2])


@kernel
def inside_ellipsoid(size, p):
    """Returns whether p, divided by the semi-axes, is inside the unit sphere."""
    x, y, z = p[0] / size[0], p[1] / size[1], p[2] / size[2]
    return fma(x, x, fma(y, y, z * z)) < 1.0


@kernel
def own_axes(size):
    """Returns the semi-axes, which are the sizes."""
    return size[0], size[1], size[2]


# ---- cylinder: radius, half length -----------------------------------------------------------------------------------
@kernel
def cylinder_radius(size, bound):
    """Returns the radius of the bounding sphere: the distance from the centre to a rim."""
    return sqrt(fma(size[0], size[0], size[1] * size[1]))


@kernel
def ray_meets_cylinder(p, v, size):
    """Returns (met, distance, normal) of a ray and a cylinder along z."""
    return meet_cylinder(p, v, size[0], size[1])


@kernel
def inside_cylinder(size, p):
    """Returns whether p is between the caps and nearer to the axis than the radius."""
    return (fabs(p[2]) < size[1]) & (fma(p[0], p[0], p[1] * p[1]) < size[0] * size[0])


@kernel
def cylinder_axes(size):
    """Returns the half extents along x, y, z: the radius twice, and half the length."""
    return size[0], size[0], size[1]


# ---- box: half edges -------------------------------------------------------------------------------------------------
@kernel
def box_radius(size, bound):
    """Returns the radius of the bounding sphere: the distance from the centre to a corner."""
    return norm3(size)


@kernel
def ray_meets_box(p, v, size):
    """Returns (met, distance, normal) of a ray and a box about the origin."""
    return meet_box(p, v, -size, size)


@kernel
def inside_box(size, p):
    """Returns whether p is between all pairs of faces."""
    return (fabs(p[0]) < size[0]) & (fabs(p[1]) < size[1]) & (fabs(p[2]) < size[2])


# ---- signed distance field: treated as a box of its sizes ---------------------------------------------------------
@kernel
def field_radius(size, bound):
    """Returns `bound`, the given radius of the bounding sphere, because the sizes do not determine it."""
    return bound


BUILT_IN = (
    Shape(SPHERE, 1, sphere_radius, ray_meets_sphere, inside_sphere, sphere_axes),
    Shape(CAPSULE, 2, capsule_radius, ray_meets_capsule, inside_capsule, capsule_axes),
    Shape(ELLIPSOID, 3, ellipsoid_radius, meet_ellipsoid, inside_ellipsoid, own_axes),
    Shape(CYLINDER, 2, cylinder_radius, ray_meets_cylinder, inside_cylinder, cylinder_axes),
    Shape(BOX, 3, box_radius, ray_meets_box, inside_box, own_axes),
    Shape(SDF, 0, field_radius, ray_meets_box, inside_box, own_axes),
)

for shape in BUILT_IN:
    register(shape)
