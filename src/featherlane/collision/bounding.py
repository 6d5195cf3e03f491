"""Runs the bounding tests without the narrow phase, in the order in which `collision` runs them, for measurements."""

from featherlane.prelude import *
from featherlane.collision.collision import is_near, near_pair, near_pairs
from featherlane.collision.mixing import farthest
from featherlane.collision.table import parted
from featherlane.dynamics.awake import pair_awake, sleeping
from featherlane.model.pair import FIRST_SCALAR

LISTED, SPHERES, BOXES = range(3)  # the last test to run


@kernel
def meets(m, d, last, e, g, h):
    """Returns the mask of worlds where the pair passes.  Pairs with a closed form have no test after the spheres."""
    near = is_near(m, d, e, g, h)
    if sleeping(m):
        near = near & pair_awake(d, m.geom_bodyid[g], m.geom_bodyid[h])
    function = m.pair_function[m.geom_type[g], m.geom_type[h]]
    if last == BOXES and function >= FIRST_SCALAR:
        near = near & not_(parted(m, d, function, g, h, farthest(m, d, e, g, h), near))
    return near


@stage
def bounding_tests(m, d, last):
    """Lists the pairs of geoms that remain in some world of the tile after a bounding test; runs after `collision`.

    The number of pairs is in near.count.  The pairs are in near.cand_near, or in near.key if the model has a crowd.

    Args:
        last: LISTED: pairs left by lists and boxes of bodies and by near spheres, and pairs found by a crowd's tree.
                SPHERES: those of LISTED with near bounding spheres.  BOXES: those of SPHERES with near oriented boxes.

    Reads:  geom_xpos, geom_xmat, near.detects, cvel, subtree_com.
    Writes: near.*, con_overflow.
    Scratch: near.geom_reach (ngeom,), neighbours.*, crowd.*.
    Frame: world.
    """
    n = near_pairs(m, d)
    if last > LISTED:
        left = 0
        for i in range(n):
            _, e, g, h = near_pair(m, d, i)
            if m.ncrowd > 0:
                d.near.key[left] = d.near.key[i]
            else:
                d.near.cand_near[left] = d.near.cand_near[i]
            left += any_(meets(m, d, last, e, g, h))
        n = left
    d.near.count[0] = n
