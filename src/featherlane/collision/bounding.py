"""The bounding tests by themselves, in the order in which `collision` makes them: for whoever counts and times them."""

from featherlane.prelude import *
from featherlane.collision.collision import is_near, near_pair, near_pairs
from featherlane.collision.mixing import farthest
from featherlane.collision.table import parted
from featherlane.dynamics.awake import pair_awake, sleeping
from featherlane.model.pair import FIRST_SCALAR

LISTED, SPHERES, BOXES = range(3)  # the last test that is made


@kernel
def meets(m, d, last, e, g, h):
    """Mask: where does the pair pass?  In closed forms, which are for all worlds at once, spheres are the last test."""
    near = is_near(m, d, e, g, h)
    if sleeping(m):
        near = near & pair_awake(d, m.geom_bodyid[g], m.geom_bodyid[h])
    function = m.pair_function[NGEOMTYPES * m.geom_type[g] + m.geom_type[h]]
    if last == BOXES and function >= FIRST_SCALAR:
        near = near & not_(parted(m, d, function, g, h, farthest(m, d, e, g, h), near))
    return near


@stage
def bounding_tests(m, d, last):
    """The pairs of geoms that some world of the tile still has to look at after a bounding test; after `collision`.

    They are counted in near.count, and listed in near.cand_near, or, where there is a crowd, in near.key.

    Args:
        last: LISTED: what lists and boxes of bodies leave, spheres near, and what a crowd's tree finds; SPHERES: of
            these those whose bounding spheres are near; BOXES: and whose turned bounding boxes are.

    Reads:  geom_xpos, geom_xmat, near.detects, cvel, subtree_com.
    Writes: near.*, con_overflow; for itself near.geom_reach (ngeom,), neighbours.*, crowd.*.
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
