"""A list of the pairs that are near or may be soon, kept for some steps by a world that is alone in its tile.

Of each colliding geom the list knows where it was, and how far any point of it may travel: as long as it holds, no pair
that is not listed can be near.  Only what is listed is tested then, so the pairs that are found and their order are
those of a world without a list.  It is kept beside the state: where the world is set somewhere else, or the model is
edited, the next pass makes another.

Source: L. Verlet, Phys. Rev. 159 (1967).
"""

from __future__ import annotations

from featherlane.prelude import *
from featherlane.collision.broad.bounds import boxes_part
from featherlane.collision.mixing import farthest, geom_margin_and_gap
from featherlane.model.pair import CAPSULE_BOX, CAPSULE_CAPSULE, CONVEX, SPHERE_SPHERE

# for each colliding geom: with fewer, to hold all geoms against a list saves so little that making it costs 10 steps
LEAST_PAIRS = 7
AHEAD = 12  # steps for which a geom may go on as it moves, and beyond that
MOVE, TURN = 0.03, 0.02  # so much of its bounding radius along each axis, and so much in each cosine
ALL_AXES, ALL_COSINES = 1.75, 4.25  # sqrt(3) for points; of cosines two rows are held, the third follows: sqrt(18)


def listed_pairs(ncand: int, ncollide: int, width: int) -> int:
    """Pairs that a tile has room to list."""
    return ncand if width == 1 and ncand > LEAST_PAIRS * ncollide else 0


@kernel
def holds(m, d):
    """Mask: has every geom stayed where the list allows it, and as large as it was?"""
    same = d.neighbours.reach[0] >= 0.0
    for k in range(m.ncollide):
        g = m.collide_geom[k]
        move, turn = d.neighbours.move[k], d.neighbours.turn[k]
        for i in range(3):
            same = same & (fabs(d.geom_xpos[3 * g + i] - d.neighbours.pos[3 * k + i]) <= move)
        for i in range(6):
            same = same & (fabs(d.geom_xmat[9 * g + i] - d.neighbours.axis[6 * k + i]) <= turn)
        for i in range(6):
            same = same & (m.geom_aabb[6 * g + i] == d.neighbours.box[6 * k + i])
        same = (
            same
            & (d.near.geom_reach[g] <= d.neighbours.reach[k])
            & (geom_margin_and_gap(m, g) <= d.neighbours.margin[k])
        )
    return same


@kernel
def freedom(m, d, g):
    """(move, turn): how far a geom may go; what is welded to the world moves where the model is edited."""
    b, move, turn = m.geom_bodyid[g], zero(d), zero(d)
    if m.body_weldid[b] > 0:
        vel, arm = load6(d.cvel, 6 * b), sub3(load3(d.geom_xpos, 3 * g), load3(d.subtree_com, 3 * m.body_rootid[b]))
        spin, time = (vel[0], vel[1], vel[2]), AHEAD * timestep(m)
        move = fma(time, norm3(add3((vel[3], vel[4], vel[5]), cross(spin, arm))), MOVE * m.geom_rbound[g])
        turn = fma(time, norm3(spin), TURN)
    return move, turn


@kernel
def widen(m, d):
    """Before a list is made: note how the geoms are, and let them reach as far as they may travel."""
    for k in range(m.ncollide):
        g = m.collide_geom[k]
        store3(d.neighbours.pos, 3 * k, load3(d.geom_xpos, 3 * g))
        store6(d.neighbours.axis, 6 * k, load6(d.geom_xmat, 9 * g))
        store6(d.neighbours.box, 6 * k, load6(m.geom_aabb, 6 * g))
        d.neighbours.margin[k] = geom_margin_and_gap(m, g)
        d.neighbours.reach[k] = d.near.geom_reach[g]
        d.neighbours.move[k], d.neighbours.turn[k] = freedom(m, d, g)
        d.neighbours.travel[g] = fma(
            ALL_AXES, d.neighbours.move[k], ALL_COSINES * d.neighbours.turn[k] * m.geom_rbound[g]
        )
        d.near.geom_reach[g] = d.near.geom_reach[g] + d.neighbours.travel[g]


@kernel
def never_meet(m, d, g, h, near):
    """Mask: are the bounding boxes of two geoms too far apart to meet as long as the list holds, where `near` holds?

    Asked for shapes within their boxes, whose orientations are known.
    """
    function = m.pair_function[NGEOMTYPES * m.geom_type[g] + m.geom_type[h]]
    apart = not_(near)
    if not m.all_round and (SPHERE_SPHERE <= function <= CAPSULE_CAPSULE or CAPSULE_BOX <= function <= CONVEX):
        room = fmax(farthest(m, d, -1, g, h), 0.0) + (d.neighbours.travel[g] + d.neighbours.travel[h])
        apart = boxes_part(m, d, g, h, room, near)
    return apart


@kernel
def shrink(m, d):
    """Reaches are again what they were."""
    for k in range(m.ncollide):
        d.near.geom_reach[m.collide_geom[k]] = d.neighbours.reach[k]
