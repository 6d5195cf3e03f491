"""Pairs whose work branches: one world after the other, in float64 whatever the tile's precision.

The pair's shapes are copied to `shape_*` (0 the first geom, 1 the second), a stage that sees nothing else of the tile
leaves its points in `manifold_*`, and these go to the pair's slots.  A point's position is halfway between the
surfaces, its normal points from the first shape to the second, its distance is negative where they overlap.

Measured on five robots with meshes, eight unlike states of each in a tile: of the pairs whose bounding spheres come
near, the turned boxes, tested in lanes, leave 0 to 27 %; then 2.3 to 7.9 of the eight worlds are left, most where a
pair touches always.  A search takes 0.1 to 1 us in a world that is apart and 1 to 5 us where shapes overlap, so lanes
would wait for the slowest of few: worlds take turns instead, and each stops as soon as it knows.
"""

from featherlane.prelude import *
from featherlane.collision.convex.recall import find_entry
from featherlane.collision.mixing import farthest
from featherlane.collision.slot import complete_frames, load_shape, store_manifold
from featherlane.model.pair import manifold_points


@stage
def manifold(m1, d1, function):
    """Points of the pair of shapes in `shape_*`, at most nmanifold, none farther apart than shapes.limit.

    Reads:  shapes.*.   Writes: manifold.*.
    """
    d1.manifold.count[0] = 0
    manifold_points(m1, d1, function)


@stage
def branching_points(m, d, function, number, e, g, h, first):
    """Points of a pair of geoms, world by world.

    Args:
        number: of the pair, by which a world remembers it.

    Reads:  geom_xpos, geom_xmat, narrow.near, recall_address.
    Writes: from the slot `first` on con_dist, con_pos, con_frame, con_point, con_present; ncon_slot, con_overflow;
            shapes.*, manifold.*, narrow.*, recall.*, recall.* for itself.
    """
    d.narrow.limit[0] = farthest(m, d, e, g, h)
    d.recall.key[0] = 1 + g * m.ngeom + h
    for lane in range(width(d)):
        if has(d.narrow.near[0] > 0.0, lane):
            load_shape(m, d, 0, g, lane)
            load_shape(m, d, 1, h, lane)
            d.shapes.limit[0] = read_lane(d.narrow.limit, 0, lane)
            find_entry(d, lane, number if m.ncrowd == 0 else d.recall.key[0])
            manifold(m, d, function)
            store_manifold(d, first, lane)
    complete_frames(d, first)
