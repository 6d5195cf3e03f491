"""Detects the contacts of a tile and stores them in slots that its worlds share."""

from featherlane.prelude import *
from featherlane.collision.broad.bounds import body_boxes, boxes_overlap, crowd_boxes
from featherlane.collision.broad.box_tree import (
    add_key,
    crowd_pairs,
    load_awake,
    load_boxes,
    pair_key,
    pair_of,
    unite_pairs,
)
from featherlane.collision.broad.neighbours import is_list_valid, never_meet, shrink, widen
from featherlane.collision.mixing import (
    NEAR,
    both_present,
    farthest,
    geom_margin_and_gap,
    is_present,
    margin_and_gap,
    touching,
)
from featherlane.collision.motion import is_swept_pair, spheres_meet, sweeping
from featherlane.collision.narrow import branching_points
from featherlane.collision.pairs.points import z_axis
from featherlane.collision.slot import set_slot_parameters
from featherlane.collision.sweep.contacts import sweep_pair
from featherlane.collision.table import lane_points, parted
from featherlane.collision.user_contacts import given_contacts
from featherlane.dynamics.awake import any_awake, pair_awake, sleeping
from featherlane.dynamics.body.com import com_vel
from featherlane.lanes.mathematics import NAN
from featherlane.lanes.worlds import count_active_worlds
from featherlane.model.pair import FIRST_SCALAR
from featherlane.model.status import warn_full


# ---- broad phase: near pairs -----------------------------------------------------------------------------
@kernel
def is_near(m, d, e, g, h):
    """Returns the mask of worlds where the bounding spheres are within margin and gap; a plane acts as a half-space."""
    v = d.geom_xpos[h] - d.geom_xpos[g]
    if e < 0:
        reach = d.near.geom_reach[g] + d.near.geom_reach[h]
    else:
        margin, gap = margin_and_gap(m, e, g, h)
        reach = (m.geom_rbound[g] + m.geom_rbound[h]) * (1.0 + NEAR) + (margin + gap)
    if m.geom_type[g] == PLANE:
        near = dot(v, z_axis(d, g)) <= reach
    else:
        near = dot(v, v) <= reach * reach
    if e >= 0 and m.nvariant > 0:
        near = near & both_present(m, g, h)
    return near & (d.near.detects[0] > 0.0)


@kernel
def near_and_awake(m, d, first, last, n):
    """As `near_in_group` for models with sleep: at least one body of each pair must be awake."""
    for p in range(first, last):
        g, h = m.cand_geom1[p], m.cand_geom2[p]
        a, b = m.geom_bodyid[g], m.geom_bodyid[h]
        if any_awake(d, a, b):
            d.near.cand_near[n] = p
            n += any_(is_near(m, d, m.cand_pair[p], g, h) & pair_awake(d, a, b))
    return n


@kernel
def comes_near(m, d, e, g, h):
    """Returns the mask of worlds where the bounding spheres are within margin and gap at some time of the step."""
    near = is_near(m, d, e, g, h)
    if is_swept_pair(m, g, h):
        margin, gap = margin_and_gap(m, e, g, h)
        reach = m.geom_rbound[g] + m.geom_rbound[h] + (margin + gap)
        meet = spheres_meet(m, d, g, h, reach) & (d.near.detects[0] > 0.0)
        if m.nvariant > 0:
            meet = meet & both_present(m, g, h)
        near = near | meet
    return near


@kernel
def near_in_step(m, d, first, last, n):
    """As `near_in_group` for models with the flag `speculative`: pairs that come near during the step."""
    for p in range(first, last):
        g, h = m.cand_geom1[p], m.cand_geom2[p]
        near = comes_near(m, d, m.cand_pair[p], g, h)
        if sleeping(m):
            near = near & pair_awake(d, m.geom_bodyid[g], m.geom_bodyid[h])
        d.near.cand_near[n] = p
        n += any_(near)
    return n


@kernel
def may_be_near_soon(m, d, p):
    """Returns 1 if candidate p belongs on the list; always 1 for planes, which may turn, and for explicit pairs."""
    e, g, h = m.cand_pair[p], m.cand_geom1[p], m.cand_geom2[p]
    return 1 if e >= 0 or m.geom_type[g] == PLANE else any_(is_near(m, d, e, g, h))


@kernel
def near_in_group(m, d, first, last, n, wide):
    """Lists the near candidates of first .. last - 1, from index n of near.cand_near on; returns the next index.

    Every pair is written, and the index advances only for near pairs.  This avoids mispredicted branches.
    """
    if wide:
        for p in range(first, last):
            d.near.cand_near[n] = p
            n += may_be_near_soon(m, d, p)
    elif sweeping(m):
        n = near_in_step(m, d, first, last, n)
    elif sleeping(m):
        n = near_and_awake(m, d, first, last, n)
    else:
        for p in range(first, last):
            d.near.cand_near[n] = p
            n += any_(is_near(m, d, m.cand_pair[p], m.cand_geom1[p], m.cand_geom2[p]))
    return n


@kernel
def near_candidates(m, d, wide):
    """Lists the candidates that are near in some world, or may soon be near if `wide`; returns their number.

    For bodies with many geoms, the boxes of the bodies are tested first.
    """
    n = 0
    if m.ngroup > 0:
        body_boxes(m, d, wide)
        for i in range(m.ngroup):
            last = m.group_first[i + 1] if i + 1 < m.ngroup else m.ncand
            a, b = d.near.body_box[m.group_body[i, 0]], d.near.body_box[m.group_body[i, 1]]
            if not m.group_boxed[i] or any_(boxes_overlap(a, b)):
                n = near_in_group(m, d, m.group_first[i], last, n, wide)
    else:
        n = near_in_group(m, d, 0, m.ncand, n, wide)
    return n


@kernel
def list_neighbours(m, d):
    """Builds the list of pairs that may soon be near, except pairs with near spheres whose boxes stay apart."""
    widen(m, d)
    n, count = near_candidates(m, d, wide=1), 0
    shrink(m, d)
    for i in range(n):
        p = d.near.cand_near[i]
        e, g, h = m.cand_pair[p], m.cand_geom1[p], m.cand_geom2[p]
        d.neighbours.pair[count] = p
        near = is_near(m, d, e, g, h)
        # boxes are tested only for pairs with near spheres: few other pairs come near before the list is rebuilt
        count += 0 if e < 0 and any_(near) and any_(never_meet(m, d, g, h, near)) else 1
    d.neighbours.count[0] = count + 1


@kernel
def near_neighbours(m, d):
    """Lists the near candidates from the neighbour list of the single world of the tile; returns their number."""
    n = 0
    if any_(d.near.detects[0] > 0.0):
        if d.neighbours.count[0] == 0 or not any_(is_list_valid(m, d)):
            list_neighbours(m, d)
        for i in range(d.neighbours.count[0] - 1):
            p = d.neighbours.pair[i]
            d.near.cand_near[n] = p
            n += any_(is_near(m, d, m.cand_pair[p], m.cand_geom1[p], m.cand_geom2[p]))
    return n


@kernel
def near_pairs(m, d):
    """Lists the pairs that are near in some world, in MuJoCo's order; returns their number."""
    for k in range(m.ncollide):
        g = m.collide_geom[k]
        d.near.geom_reach[g] = m.geom_rbound[g] + geom_margin_and_gap(m, g)
    # only here and in `farthest`: evaluating it per candidate in is_near slowed a humanoid's step by 2 to 3 %
    if m.opt_contact_model == LCP:
        for k in range(m.ncollide):
            g = m.collide_geom[k]
            d.near.geom_reach[g] = d.near.geom_reach[g] + touching(m, d, g)
    if m.nvariant > 0:
        for k in range(m.ncollide):
            g = m.collide_geom[k]
            # with this reach, no comparison of distances is true
            d.near.geom_reach[g] = where(is_present(m, g), d.near.geom_reach[g], NAN)
    if width(d) == 1 and d.keeps_list and d.nlisted > 0 and not sleeping(m) and not sweeping(m):
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
    """Returns (number, e, g, h) of near pair i."""
    if m.ncrowd > 0:
        e, g, h = pair_of(m, d.near.key[i])
        p = g % m.ncand if m.ncand > 0 else 0
    else:
        p = d.near.cand_near[i]
        e, g, h = m.cand_pair[p], m.cand_geom1[p], m.cand_geom2[p]
    return p, e, g, h


# ---- contact points of one pair ---------------------------------------------------------------------------
@kernel
def points(m, d, function, p, e, g, h):
    """Appends the contact points of the pair with number p."""
    near = is_near(m, d, e, g, h)
    if sleeping(m):
        near = near & pair_awake(d, m.geom_bodyid[g], m.geom_bodyid[h])
    limit = farthest(m, d, e, g, h)
    if function < FIRST_SCALAR:
        lane_points(m, d, function, g, h, near, limit)
    else:
        near = near & not_(parted(m, d, function, g, h, limit, near))
        if any_(near):
            d.narrow.near[0] = where(near, 1.0, 0.0)
            branching_points(m, d, function, p, e, g, h, d.ncon_slot[0])


# ---- the stage ------------------------------------------------------------------------------------------


@kernel
def settle_overflow(d):
    """With one active world, keeps the contacts that fit and warns; else keeps the overflow flag to split the tile."""
    if d.con_overflow[0] == 1 and count_active_worlds(d) == 1:
        d.con_overflow[0] = 0
        warn_full(d, CONTACTS_FULL)


@stage
def collision(m, d):
    """Computes the contacts of all active worlds, with their parameters.

    User-defined contacts come first.  The broad phase lists the pairs whose bounding spheres are near in some world.
    A tile of one world that continues its trajectory tests only the pairs of its neighbour list (neighbours.py).
    The narrow phase appends contact points as slots, in order, until nconmax is reached.  If slots run out,
    con_overflow requests a split of the tile; a tile of one world keeps its first contacts and counts a warning.
    Source: MuJoCo mj_collision.
    With the flag `speculative`, contacts within the step follow those of each pair (sweep/contacts.py).
    Reads:  geom_xpos, geom_xmat, given_*, active; cvel, subtree_com to predict how far geoms move; qvel, cdof with
            the flag speculative.
    Writes: ncon_slot, con_overflow, ncon, con_* (nconmax,), warning (contacts full), found_bad; with the flag
            speculative cvel, cdof_dot.
    Scratch: near.geom_reach (ngeom,), near.cand_near (ncand,), neighbours.*, near.*, crowd.*, narrow.*, sweep.*.
    Frame: world.                           Cost: O(ncand), or O(list) with a neighbour list; plus near pairs.
    """
    d.ncon_slot[0] = 0
    d.con_overflow[0] = 0
    d.ncon[0] = 0.0
    if not m.opt_disableflags & (DISABLE_CONSTRAINT | DISABLE_CONTACT):
        given_contacts(m, d)
        swept = sweeping(m)
        if swept:
            com_vel(m, d)
        for i in range(near_pairs(m, d)):
            first = d.ncon_slot[0]
            p, e, g, h = near_pair(m, d, i)
            points(m, d, m.pair_function[m.geom_type[g], m.geom_type[h]], p, e, g, h)
            if swept:
                sweep_pair(m, d, e, g, h, first)
            set_slot_parameters(m, d, p, e, g, h, first)
            if d.con_overflow[0] == 1:
                break
        settle_overflow(d)
