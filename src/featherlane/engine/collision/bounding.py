"""Runs the bounding tests without the narrow phase, in the order in which `collision` runs them, for measurements.

m.pair_function[type1, type2] is the id of the function that finds the contact points of two geom types, lower type
first; m.ncrowd is the number of geoms in the tree of bounding boxes, 0 without one.

Imported kernels:

    near_pairs(m, d)                number of near pairs, which it lists; near_pair(m, d, i) is pair i of them
    is_near                         mask of worlds where the bounding spheres are within margin and gap
    detection_distance              largest distance of a contact: margin plus gap
    parted                          mask of worlds where the test of bounding boxes separates the pair by this distance
    sleeping(m), pair_awake         whether the flag `sleep` is on; mask of worlds where one of two bodies is awake
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.collision import is_near, near_pair, near_pairs
from featherlane.engine.collision.mixing import detection_distance
from featherlane.engine.collision.table import parted
from featherlane.engine.dynamics.awake import pair_awake, sleeping
from featherlane.engine.model.pair import FIRST_SCALAR

LISTED, SPHERES, BOXES = range(3)  # the last test to run


@kernel
def passes_tests(m, d, last, pair_id, geom1, geom2):
    """Returns the mask of worlds where a near pair passes all tests up to `last`.

    pair_id, geom1, geom2: the explicit pair or -1, and the two geoms.  Pair functions below FIRST_SCALAR run in all
    worlds at once, without a box test.
    """
    near = is_near(m, d, pair_id, geom1, geom2)
    if sleeping(m):
        near = near & pair_awake(d, m.geom_bodyid[geom1], m.geom_bodyid[geom2])
    function = m.pair_function[m.geom_type[geom1], m.geom_type[geom2]]
    if last == BOXES and function >= FIRST_SCALAR:
        # oriented boxes
        near = near & not_(parted(m, d, function, geom1, geom2, detection_distance(m, d, pair_id, geom1, geom2), near))
    return near


@stage
def bounding_tests(m, d, last):
    """Lists the pairs of geoms that remain in some world of the tile after a bounding test; runs after `collision`.

    The number of pairs is in near.count.  The pairs are in near.cand_near, or in near.key if the model has a crowd.

    Args:
        last: LISTED: all pairs of `near_pairs`: candidates with near bounding spheres, and in a model with a crowd the
            pairs whose boxes overlap in its tree.  SPHERES: of these, the pairs with near bounding spheres.  BOXES: of
            these, the pairs with near oriented boxes.

    Reads:  geom_xpos, geom_xmat, near.detects, cvel, subtree_com.
    Writes: near.*, con_overflow.
    Scratch: near.geom_reach (ngeom,), neighbours.*, crowd.*.
    Frame: world.
    """
    # writes near.cand_near, or near.key if the model has a crowd
    n_near = near_pairs(m, d)
    if last > LISTED:
        n_left = 0
        for i in range(n_near):
            _, pair_id, geom1, geom2 = near_pair(m, d, i)
            # every pair is copied to the end of the kept pairs; the end advances only if the pair passes
            if m.ncrowd > 0:
                d.near.key[n_left] = d.near.key[i]
            else:
                d.near.cand_near[n_left] = d.near.cand_near[i]
            n_left += any_(passes_tests(m, d, last, pair_id, geom1, geom2))
        n_near = n_left
    d.near.count[0] = n_near
