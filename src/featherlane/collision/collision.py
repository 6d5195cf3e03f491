"""The collision pass: contacts of a tile, as slots that its worlds share."""

from featherlane.prelude import *
from featherlane.collision.broad.bounds import body_boxes, boxes_overlap, crowd_boxes
from featherlane.collision.broad.crowd import (
    add_key,
    crowd_pairs,
    load_awake,
    load_boxes,
    pair_key,
    pair_of,
    unite_pairs,
)
from featherlane.collision.broad.neighbours import holds, never_meet, shrink, widen
from featherlane.collision.given import given_contacts
from featherlane.collision.mixing import NEAR, farthest, geom_margin_and_gap, margin_and_gap, touching
from featherlane.collision.narrow import branching_points
from featherlane.collision.pairs.points import z_axis
from featherlane.collision.slot import set_parameters
from featherlane.collision.table import lane_points, parted
from featherlane.dynamics.awake import pair_awake, sleeping, stirs
from featherlane.lanes.worlds import active_worlds
from featherlane.model.pair import FIRST_SCALAR


# ---- which pairs are near -------------------------------------------------------------------------------
@kernel
def is_near(m, d, e, g, h):
    """Mask: do the bounding spheres of the pair come within margin and gap?  A plane's is its half space."""
    v = sub3(load3(d.geom_xpos, 3 * h), load3(d.geom_xpos, 3 * g))
    if e < 0:
        reach = d.near.geom_reach[g] + d.near.geom_reach[h]
    else:
        margin, gap = margin_and_gap(m, e, g, h)
        reach = (m.geom_rbound[g] + m.geom_rbound[h]) * (1.0 + NEAR) + (margin + gap)
    if m.geom_type[g] == PLANE:
        near = dot3(v, z_axis(d, g)) <= reach
    else:
        near = dot3(v, v) <= reach * reach
    return near & (d.near.detects[0] > 0.0)


@kernel
def near_and_awake(m, d, first, last, n):
    """The same where bodies may sleep: of each pair one must be awake."""
    for p in range(first, last):
        g, h = m.cand_geom1[p], m.cand_geom2[p]
        a, b = m.geom_bodyid[g], m.geom_bodyid[h]
        if stirs(d, a, b):
            d.near.cand_near[n] = p
            n += any_(is_near(m, d, m.cand_pair[p], g, h) & pair_awake(d, a, b))
    return n


@kernel
def may_be_near_soon(m, d, p):
    """The candidate pair of a list: reaches are wide; a plane may turn, an explicit pair's margin is its own."""
    e, g, h = m.cand_pair[p], m.cand_geom1[p], m.cand_geom2[p]
    return 1 if e >= 0 or m.geom_type[g] == PLANE else any_(is_near(m, d, e, g, h))


@kernel
def near_in_group(m, d, first, last, n, wide):
    """Note which of the candidates first .. last - 1 are near in some world, from place n on; returns the next place.

    Every pair is written, and kept by moving on: no branch to mispredict.
    """
    if wide:
        for p in range(first, last):
            d.near.cand_near[n] = p
            n += may_be_near_soon(m, d, p)
    elif sleeping(m):
        n = near_and_awake(m, d, first, last, n)
    else:
        for p in range(first, last):
            d.near.cand_near[n] = p
            n += any_(is_near(m, d, m.cand_pair[p], m.cand_geom1[p], m.cand_geom2[p]))
    return n


@kernel
def near_candidates(m, d, wide):
    """List the candidates that are near in some world, or `wide` may be so soon; returns how many.

    Where bodies carry many geoms, their boxes are tested first.
    """
    n = 0
    if m.ngroup > 0:
        body_boxes(m, d, wide)
        for i in range(m.ngroup):
            last = m.group_first[i + 1] if i + 1 < m.ngroup else m.ncand
            a, b = 6 * m.group_body[2 * i], 6 * m.group_body[2 * i + 1]
            if not m.group_boxed[i] or any_(boxes_overlap(d.near.body_box, a, d.near.body_box, b)):
                n = near_in_group(m, d, m.group_first[i], last, n, wide)
    else:
        n = near_in_group(m, d, 0, m.ncand, n, wide)
    return n


@kernel
def list_neighbours(m, d):
    """Make the list: what may be near soon, but for what bounding spheres leave near, and boxes do not for long."""
    widen(m, d)
    n, count = near_candidates(m, d, wide=1), 0
    shrink(m, d)
    for i in range(n):
        p = d.near.cand_near[i]
        e, g, h = m.cand_pair[p], m.cand_geom1[p], m.cand_geom2[p]
        d.neighbours.pair[count] = p
        near = is_near(m, d, e, g, h)
        # boxes are asked for those alone: of the others few come near before the list is made anew
        count += 0 if e < 0 and any_(near) and any_(never_meet(m, d, g, h, near)) else 1
    d.neighbours.count[0] = count + 1


@kernel
def near_neighbours(m, d):
    """The candidates that are near, where one world keeps a list; returns how many."""
    n = 0
    if any_(d.near.detects[0] > 0.0):
        if d.neighbours.count[0] == 0 or not any_(holds(m, d)):
            list_neighbours(m, d)
        for i in range(d.neighbours.count[0] - 1):
            p = d.neighbours.pair[i]
            d.near.cand_near[n] = p
            n += any_(is_near(m, d, m.cand_pair[p], m.cand_geom1[p], m.cand_geom2[p]))
    return n


@kernel
def near_pairs(m, d):
    """List the pairs that are near in some world, in MuJoCo's order; returns how many."""
    for k in range(m.ncollide):
        g = m.collide_geom[k]
        d.near.geom_reach[g] = m.geom_rbound[g] + geom_margin_and_gap(m, g)
    # only here and in `farthest`: asked for each candidate, in is_near, it cost a humanoid's step 2 to 3 %
    if m.opt_contact_model == LCP:
        for k in range(m.ncollide):
            g = m.collide_geom[k]
            d.near.geom_reach[g] = d.near.geom_reach[g] + touching(m, d, g)
    if width(d) == 1 and d.keeps_list and d.nlisted > 0 and not sleeping(m):
        n = near_neighbours(m, d)
    else:
        n = near_candidates(m, d, wide=0)
    if m.ncrowd > 0:
        d.near.count[0] = 0
        for i in range(n):
            p = d.near.cand_near[i]
            add_key(d, pair_key(m, m.cand_pair[p], m.cand_geom1[p], m.cand_geom2[p]))
        crowd_boxes(m, d)
        for lane in range(width(d)):
            if has(d.near.detects[0] > 0.0, lane) and (not sleeping(m) or load_awake(m, d, lane) > 0):
                load_boxes(m, d, lane)
                crowd_pairs(m, d)
        unite_pairs(m, d)
        n = d.near.count[0]
    return n


@kernel
def near_pair(m, d, i):
    """(number, e, g, h) of the near pair i."""
    if m.ncrowd > 0:
        e, g, h = pair_of(m, d.near.key[i])
        p = g % m.ncand if m.ncand > 0 else 0
    else:
        p = d.near.cand_near[i]
        e, g, h = m.cand_pair[p], m.cand_geom1[p], m.cand_geom2[p]
    return p, e, g, h


# ---- the points of one pair -------------------------------------------------------------------------------
@kernel
def points(m, d, function, p, e, g, h):
    """Append the contact points of one pair, whose number is p."""
    near = is_near(m, d, e, g, h)
    if sleeping(m):
        near = near & pair_awake(d, m.geom_bodyid[g], m.geom_bodyid[h])
    limit = farthest(m, d, e, g, h)
    if function < FIRST_SCALAR:
        lane_points(m, d, function, g, h, near, limit)
    else:
        near = near & not_(parted(m, d, function, g, h, limit, near))
        if any_(near):
            d.narrow.near[0] = where(near, real(d, 1.0), zero(d))
            branching_points(m, d, function, p, e, g, h, d.ncon_slot[0])


# ---- the pass -------------------------------------------------------------------------------------------


@kernel
def settle_overflow(d):
    """A world that is alone keeps the contacts that fit and is warned; else the overflow stands, to split the tile."""
    if d.con_overflow[0] == 1 and active_worlds(d) == 1:
        d.con_overflow[0] = 0
        warn(d, CONTACTS_FULL, d.active[0] > 0.0)


@stage
def collision(m, d):
    """Contacts of all active worlds, with their parameters.

    What the caller gave comes first.  Bounding spheres list the pairs that are near in some world (where it is one that
    goes on, only pairs that it lists for some steps are tested: neighbours.py); their points are
    appended as slots, in order, until nconmax is reached.  Then con_overflow says that the tile has to be split; a
    world that is alone keeps its first contacts and counts a warning.
    Source: MuJoCo mj_collision.
    Reads:  geom_xpos, geom_xmat, given_*, active; to foresee how far geoms go cvel, subtree_com.
    Writes: ncon_slot, con_overflow, ncon, con_* (nconmax,), warning (contacts full); for itself near.geom_reach
            (ngeom,), near.cand_near (ncand,), neighbours.*, near.*, crowd.*, narrow.*.
    Frame: world.                           Cost: O(ncand), of one world that goes on its list; and near pairs.
    """
    d.ncon_slot[0] = 0
    d.con_overflow[0] = 0
    d.ncon[0] = zero(d)
    if not m.opt_disableflags & (DISABLE_CONSTRAINT | DISABLE_CONTACT):
        given_contacts(m, d)
        for i in range(near_pairs(m, d)):
            first = d.ncon_slot[0]
            p, e, g, h = near_pair(m, d, i)
            points(m, d, m.pair_function[NGEOMTYPES * m.geom_type[g] + m.geom_type[h]], p, e, g, h)
            set_parameters(m, d, p, e, g, h, first)
            if d.con_overflow[0] == 1:
                break
        settle_overflow(d)
