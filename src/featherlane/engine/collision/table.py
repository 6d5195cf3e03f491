"""Registers the pair functions, in MuJoCo's order of geom types, and the bounding-box test that precedes each."""

from featherlane.engine.prelude import *
from featherlane.engine.collision.broad.bounds import box_centre, boxes_separate
from featherlane.engine.collision.broad.heights import clear_of_field
from featherlane.engine.collision.convex.pair import convex
from featherlane.engine.collision.pairs.box_box import box_box
from featherlane.engine.collision.pairs.capsule_box import capsule_box
from featherlane.engine.collision.pairs.field_pair import field_pair, fields_apart
from featherlane.engine.collision.pairs.hfield import height_field
from featherlane.engine.collision.pairs.mesh_field import mesh_field
from featherlane.engine.collision.pairs.plane_mesh import plane_mesh
from featherlane.engine.collision.pairs.points import (
    capsule_capsule_points,
    plane_box_points,
    plane_capsule_points,
    plane_cylinder_points,
    plane_ellipsoid_points,
    plane_sphere_points,
    sphere_box_points,
    sphere_points,
    z_axis,
)
from featherlane.engine.collision.pairs.primitive import half_axis_heights
from featherlane.engine.model.pair import (
    BOX_BOX,
    CAPSULE_BOX,
    CAPSULE_CAPSULE,
    CONVEX,
    FIELD_PAIR,
    HEIGHTS,
    MESH_FIELD,
    PLANE_BOX,
    PLANE_CAPSULE,
    PLANE_CYLINDER,
    PLANE_ELLIPSOID,
    PLANE_MESH,
    PLANE_SPHERE,
    SPHERE_BOX,
    SPHERE_CAPSULE,
    SPHERE_CYLINDER,
    SPHERE_SPHERE,
    PairFunction,
    lane_points,
    parted,
    register,
)

__all__ = ["BUILT_IN", "lane_points", "parted"]


@kernel
def over_plane(m, d, plane, geom, limit, near):
    """Returns the mask of worlds where the oriented box of a geom is farther above a plane than the limit.

    The box's lowest point is the height of its centre less sum_k |half_k (axis_k . normal)|.   near: unused.
    """
    normal = z_axis(d, plane)
    offset = box_centre(m, d, geom) - d.geom_xpos[plane]
    part_x, part_y, part_z = fabs(half_axis_heights(d.geom_xmat[geom], m.geom_aabb[geom].half, normal))
    return dot(offset, normal) - (part_x + part_y + part_z) > limit


@kernel
def boxes_apart(m, d, geom1, geom2, limit, near):
    """Returns the mask of worlds of `near` where the oriented bounding boxes are farther apart than the limit.

    A negative limit counts as 0: cross products of edges are not normalized, so it would be wrong for short products.
    """
    return boxes_separate(m, d, geom1, geom2, fmax(limit, 0.0), near)


BUILT_IN = (
    # all worlds at once
    PairFunction(PLANE_SPHERE, ((PLANE, SPHERE, 1),), plane_sphere_points),
    PairFunction(PLANE_CAPSULE, ((PLANE, CAPSULE, 2),), plane_capsule_points),
    PairFunction(PLANE_BOX, ((PLANE, BOX, 4),), plane_box_points),
    PairFunction(PLANE_ELLIPSOID, ((PLANE, ELLIPSOID, 1),), plane_ellipsoid_points),
    PairFunction(PLANE_CYLINDER, ((PLANE, CYLINDER, 4),), plane_cylinder_points),
    # one world at a time
    PairFunction(PLANE_MESH, ((PLANE, MESH, 4), (PLANE, SDF, 4)), plane_mesh, part=over_plane),
    PairFunction(
        HEIGHTS,
        tuple((HFIELD, shape, MAXCONPAIR) for shape in (SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH)),
        height_field,
        part=clear_of_field,
    ),
    # all worlds at once
    PairFunction(SPHERE_SPHERE, ((SPHERE, SPHERE, 1),), sphere_points),
    PairFunction(SPHERE_CAPSULE, ((SPHERE, CAPSULE, 1),), sphere_points),
    PairFunction(SPHERE_CYLINDER, ((SPHERE, CYLINDER, 1),), sphere_points),
    PairFunction(SPHERE_BOX, ((SPHERE, BOX, 1),), sphere_box_points),
    PairFunction(CAPSULE_CAPSULE, ((CAPSULE, CAPSULE, 2),), capsule_capsule_points),
    # one world at a time
    PairFunction(CAPSULE_BOX, ((CAPSULE, BOX, 3),), capsule_box, part=boxes_apart),
    PairFunction(BOX_BOX, ((BOX, BOX, 8),), box_box, part=boxes_apart),
    PairFunction(
        CONVEX,
        (
            (SPHERE, ELLIPSOID, 1),
            (SPHERE, MESH, 1),
            (CAPSULE, ELLIPSOID, 1),
            (CAPSULE, CYLINDER, 3),
            (CAPSULE, MESH, 3),
            (ELLIPSOID, ELLIPSOID, 1),
            (ELLIPSOID, CYLINDER, 1),
            (ELLIPSOID, BOX, 1),
            (ELLIPSOID, MESH, 1),
            (CYLINDER, CYLINDER, 4),
            (CYLINDER, BOX, 4),
            (CYLINDER, MESH, 4),
            (BOX, MESH, 4),
            (MESH, MESH, 4),
        ),
        convex,
        part=boxes_apart,
    ),
    PairFunction(
        FIELD_PAIR,
        tuple((shape, SDF, MAXCONPAIR) for shape in (SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, SDF)),
        field_pair,
        part=fields_apart,
    ),
    PairFunction(MESH_FIELD, ((MESH, SDF, MAXCONPAIR),), mesh_field),
)

for function in BUILT_IN:
    register(function)
