"""Runs the branching narrow phase one world at a time, in float64 at any precision of the tile.

The pair's shapes are copied to shapes.* (0 is the first geom, 1 the second).  A stage that reads only these fields
writes contact points to manifold.*, which are copied to the pair's slots.  A point's position is halfway between
the surfaces, its normal points from the first shape to the second, its distance is negative where they overlap.

narrow.near is 1 in worlds where the pair is near; narrow.limit is the largest distance of a contact in each world,
shapes.limit that of one world, shapes.slack an overlap that counts as rounding.
Measured on five robots with meshes, with eight different states of each in a tile: of the pairs with near bounding
spheres, 0 to 27 % pass the test of oriented boxes, which runs in lanes.  These pairs remain in 2.3 to 7.9 of the eight
worlds, most if a pair is in permanent contact.  A search takes 0.1 to 1 us for separated and 1 to 5 us for overlapping
shapes.  Few lanes would wait for the slowest one, so the search runs one world at a time and stops early.
`lane` is the index of a world in the tile.

Imported kernels:

    detection_distance(m, d, ...)     largest distance of a contact of the pair
    load_shape, load_field            copy a geom, and its signed distance field, to one side of shapes.*
    manifold_points(m1, d1, function) runs the pair function with this id
    store_manifold, complete_frames   copy manifold.* to the pair's slots in one world; add the slots' tangents
    complete_frames_along             does so, with the first tangent along a vector
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.result_cache import find_entry
from featherlane.engine.collision.mixing import detection_distance
from featherlane.engine.collision.slot import (
    complete_frames,
    complete_frames_along,
    load_field,
    load_shape,
    store_manifold,
)
from featherlane.engine.model.pair import HEIGHTS, manifold_points

# relative to the radii: rounding of a pose, 2^-23 in float32; in float64 also that of a model's file and compiler
SINGLE, DOUBLE = 2.0**-23, 2.0**-30


@kernel
def pose_slack(m, d, geom1, geom2, lane):
    """Returns the overlap of two shapes that rounding of their poses may cause [m].

    It is 0 unless geom2 is a mesh, and geom1 a mesh or another shape whose core is a polytope: sphere, capsule or box.
    Flanges of adjacent links lie in one plane.  Rounding would decide whether they touch, and friction between them
    would brake the joint: the base and the shoulder of a UR5e overlap by 1e-11 m.
    """
    slack = 0.0
    if m.geom_type[geom2] == MESH and m.geom_type[geom1] in (SPHERE, CAPSULE, BOX, MESH):
        slack = (SINGLE if single_precision(d) else DOUBLE) * (
            read_lane(m.geom_rbound, geom1, lane) + read_lane(m.geom_rbound, geom2, lane)
        )
    return slack


@stage
def manifold(m1, d1, function):
    """Computes contact points of the pair of shapes in shapes.*: at most nmanifold, with distances up to shapes.limit.

    If there are more, manifold.full is 1.

    Reads:  shapes.*.   Writes: manifold.*.
    """
    d1.manifold.count[0], d1.manifold.full[0] = 0, 0
    manifold_points(m1, d1, function)


@stage
def branching_points(m, d, function, candidate, pair_id, geom1, geom2, first):
    """Computes contact points of a pair of geoms, one world at a time.

    Args:
        function: id of the pair function.
        candidate: candidate index of the pair, the key of its entry in the cache of a world.
        pair_id: explicit pair, or -1.
        first: first slot of the pair.

    Reads:  geom_xpos, geom_xmat, geom_rbound, narrow.near, recall_address.
    Writes: con_dist, con_pos, con_frame, con_point, con_present from slot `first` on; ncon_slot, con_overflow;
            full_pair and con_full, if a world's contacts of the pair do not fit; shapes.*, manifold.*, narrow.*,
            recall.*.
    """
    d.narrow.limit[0] = detection_distance(m, d, pair_id, geom1, geom2)
    # a positive number that is unique for each pair of geoms
    d.recall.key[0] = 1 + geom1 * m.ngeom + geom2
    for lane in range(width(d)):
        if has(d.narrow.near[0] > 0.0, lane):
            load_shape(m, d, 0, geom1, lane)
            load_shape(m, d, 1, geom2, lane)
            # geoms are ordered by type and SDF is the last one: geom2 is an SDF if any of the two geoms is
            if m.geom_type[geom2] == SDF:
                load_field(m, d, 0, geom1, lane)
                load_field(m, d, 1, geom2, lane)
                d.shapes.tolerance[0] = read_lane(m.opt_sdf_tolerance, 0, lane)
            d.shapes.limit[0] = read_lane(d.narrow.limit, 0, lane)
            d.shapes.slack[0] = pose_slack(m, d, geom1, geom2, lane)
            # writes recall.pair, the address of the pair's cache entry; pairs of a crowd have no candidate index
            find_entry(d, lane, candidate if m.ncrowd == 0 else d.recall.key[0])
            manifold(m, d, function)  # from shapes.* to manifold.*
            if d.manifold.full[0] == 1:
                write_lane(d.con_full, 0, lane, 1.0)
                d.full_pair[0], d.full_pair[1] = geom1, geom2
            store_manifold(d, first, lane)
    if function == HEIGHTS and m.geom_type[geom2] == CAPSULE:
        # the first tangent is along the capsule, as on a plane
        complete_frames_along(d, first, d.geom_xmat[geom2].columns[2])
    else:
        complete_frames(d, first)
