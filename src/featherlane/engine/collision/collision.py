"""Detects the contacts of a tile and stores them in slots that its worlds share.

A pair is (pair_id, geom1, geom2): the index of the explicit pair or -1, and the two geoms.  A candidate is a pair that
may collide; candidate k has the entries m.cand_pair[k], m.cand_geom1[k] and m.cand_geom2[k].  A pair is *near* if its
bounding spheres are within margin and gap in at least one world.  A model with a *crowd* has a bounding volume tree;
its pairs are listed by sort keys in near.key, those of other models by candidate indices in near.cand_near.
near.detects is 1 in worlds that detect contacts (`given_contacts`).  collide_geom lists the geoms of all pairs.
Group k has the candidates from group_first[k] on, of the two bodies group_body[k].
The model has ncand candidates, ngroup groups, ncollide colliding geoms, and ncrowd geoms in a crowd.
m.pair_function[type1, type2] is the id of the function that finds the contact points of two geom types.

Imported kernels:

    margin_and_gap, detection_distance  (margin, gap) of a pair; largest distance of a contact, about their sum
    both_present(m, geom1, geom2)       mask of worlds that have both geoms
    sweeping(m), is_swept_pair          whether contacts within the step are detected; whether this pair has them
    sleeping(m)                         whether the flag `sleep` is on
    pair_awake                          mask of the worlds where one of two bodies is awake
    lane_points                         appends the points of a pair function that computes all worlds at once
    branching_points                    appends those of a function that computes one world at a time
    parted                              mask of worlds where the test of bounding boxes separates the pair by a limit
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.broad.bounds import boxes_overlap, detection_box, store_body_boxes
from featherlane.engine.collision.broad.box_tree import (
    add_key,
    crowd_pairs,
    load_awake,
    pair_key,
    pair_of,
    unite_pairs,
)
from featherlane.engine.collision.broad.neighbours import (
    is_list_valid,
    never_meet,
    prepare_list,
    store_crowd_travel,
)
from featherlane.engine.collision.mixing import (
    NEAR,
    both_present,
    detection_distance,
    geom_margin_and_gap,
    is_present,
    margin_and_gap,
    touching_distance,
)
from featherlane.engine.collision.motion import is_swept_pair, spheres_meet, sweeping
from featherlane.engine.collision.narrow import branching_points
from featherlane.engine.collision.pairs.points import z_axis
from featherlane.engine.collision.slot import set_slot_parameters
from featherlane.engine.collision.sweep.contacts import sweep_pair
from featherlane.engine.collision.table import lane_points, parted
from featherlane.engine.collision.user_contacts import given_contacts
from featherlane.engine.dynamics.awake import pair_awake, sleeping
from featherlane.engine.dynamics.body.com import com_vel
from featherlane.engine.lanes.mathematics import NAN
from featherlane.engine.lanes.worlds import count_active_worlds
from featherlane.engine.model.pair import FIRST_SCALAR
from featherlane.engine.model.status import warn_full


# ---- broad phase: near pairs -----------------------------------------------------------------------------
@kernel
def is_near(m, d, pair_id, geom1, geom2):
    """Returns the mask of worlds where the bounding spheres of a pair are within margin and gap.

    A plane acts as a half-space.
    Reads: near.geom_reach, the bounding radius plus margin and gap of each geom, which `near_pairs` writes.
    """
    offset = d.geom_xpos[geom2] - d.geom_xpos[geom1]
    if pair_id < 0:
        reach = d.near.geom_reach[geom1] + d.near.geom_reach[geom2]
    else:
        # an explicit pair has its own margin and gap; NEAR covers rounding
        margin, gap = margin_and_gap(m, pair_id, geom1, geom2)
        reach = (m.geom_rbound[geom1] + m.geom_rbound[geom2]) * (1.0 + NEAR) + (margin + gap)
    if m.geom_type[geom1] == PLANE:
        near = dot(offset, z_axis(d, geom1)) <= reach
    else:
        near = dot(offset, offset) <= reach * reach
    # a geom that a world lacks has a reach of NaN, so that `near` is false; an explicit pair does not use that reach
    if pair_id >= 0 and m.nvariant > 0:
        near = near & both_present(m, geom1, geom2)
    return near & (d.near.detects[0] > 0.0)


@kernel
def near_and_awake(m, d, first, end, count):
    """Appends those of candidates first .. end - 1 that are near and awake to near.cand_near; returns its new length.

    count: the length before.  Every tested candidate is written, but the length advances only if the candidate is near
    and awake in some world.
    """
    for k in range(first, end):
        geom1, geom2 = m.cand_geom1[k], m.cand_geom2[k]
        body1, body2 = m.geom_bodyid[geom1], m.geom_bodyid[geom2]
        # a pair that is asleep in all worlds is skipped without a test of its spheres
        if d.body_any_awake[body1] != 0 or d.body_any_awake[body2] != 0:
            d.near.cand_near[count] = k
            count += any_(is_near(m, d, m.cand_pair[k], geom1, geom2) & pair_awake(d, body1, body2))
    return count


@kernel
def comes_near(m, d, pair_id, geom1, geom2):
    """Returns the mask of worlds where the bounding spheres are within margin and gap now or later in the step.

    Only swept pairs (`is_swept_pair`) are tested for the rest of the step.
    """
    near = is_near(m, d, pair_id, geom1, geom2)
    if is_swept_pair(m, geom1, geom2):
        margin, gap = margin_and_gap(m, pair_id, geom1, geom2)
        reach = m.geom_rbound[geom1] + m.geom_rbound[geom2] + (margin + gap)
        meet = spheres_meet(m, d, geom1, geom2, reach) & (d.near.detects[0] > 0.0)
        # this reach is not near.geom_reach, which is NaN for a geom that a world lacks
        if m.nvariant > 0:
            meet = meet & both_present(m, geom1, geom2)
        near = near | meet
    return near


@kernel
def near_in_step(m, d, first, end, count):
    """Appends those of candidates first .. end - 1 that come near in the step to near.cand_near; returns its length.

    count: the length before.  Every candidate is written, but the length advances only if it comes near in some world.
    """
    for k in range(first, end):
        geom1, geom2 = m.cand_geom1[k], m.cand_geom2[k]
        near = comes_near(m, d, m.cand_pair[k], geom1, geom2)
        if sleeping(m):
            near = near & pair_awake(d, m.geom_bodyid[geom1], m.geom_bodyid[geom2])
        d.near.cand_near[count] = k
        count += any_(near)
    return count


@kernel
def near_in_group(m, d, first, end, count, wide):
    """Appends those of candidates first .. end - 1 that are near to near.cand_near; returns the list's new length.

    Every candidate is written, but the length advances only for near ones.  This avoids mispredicted branches.

    Args:
        count: length of the list before the call.
        wide: 1 appends candidates for the neighbour list, with near.geom_reach of `prepare_list`; 0 those near now or
            in this step.
    """
    if wide:
        for k in range(first, end):
            d.near.cand_near[count] = k
            pair_id, geom1, geom2 = m.cand_pair[k], m.cand_geom1[k], m.cand_geom2[k]
            # planes, which may turn, and explicit pairs, whose reach is not enlarged, always belong on the list
            listed = pair_id >= 0 or m.geom_type[geom1] == PLANE
            count += 1 if listed else any_(is_near(m, d, pair_id, geom1, geom2))
    elif sweeping(m):
        count = near_in_step(m, d, first, end, count)
    elif sleeping(m):
        count = near_and_awake(m, d, first, end, count)
    else:
        for k in range(first, end):
            d.near.cand_near[count] = k
            count += any_(is_near(m, d, m.cand_pair[k], m.cand_geom1[k], m.cand_geom2[k]))
    return count


@kernel
def near_candidates(m, d, wide):
    """Stores the near candidates in near.cand_near; returns their number.

    wide: 1 also stores candidates that may soon be near, for the neighbour list.
    Candidates of the same two bodies form a group.  For bodies with many geoms, the boxes of the bodies are tested
    first.
    """
    count = 0
    if m.ngroup > 0:
        # writes near.body_box
        store_body_boxes(m, d, wide)
        for group in range(m.ngroup):
            end = m.group_first[group + 1] if group + 1 < m.ngroup else m.ncand
            box1, box2 = d.near.body_box[m.group_body[group, 0]], d.near.body_box[m.group_body[group, 1]]
            # group_boxed: all geoms of the group have a bounding box
            if not m.group_boxed[group] or any_(boxes_overlap(box1, box2)):
                count = near_in_group(m, d, m.group_first[group], end, count, wide)
    else:
        count = near_in_group(m, d, first=0, end=m.ncand, count=count, wide=wide)
    return count


@kernel
def list_neighbours(m, d):
    """Stores in neighbours.pair the pairs that may soon be near, and in neighbours.count their number plus 1.

    The tile has one world, so `any_` of a mask is the value of this world.
    `prepare_list` enlarges near.geom_reach by the distance that geoms may move while the list is valid.
    """
    prepare_list(m, d)
    n_wide = near_candidates(m, d, wide=1)
    count = 0
    for k in range(m.ncollide):  # the values before `prepare_list`
        d.near.geom_reach[m.collide_geom[k]] = d.neighbours.reach[k]
    for i in range(n_wide):
        k = d.near.cand_near[i]
        pair_id, geom1, geom2 = m.cand_pair[k], m.cand_geom1[k], m.cand_geom2[k]
        d.neighbours.pair[count] = k
        spheres_near = is_near(m, d, pair_id, geom1, geom2)
        # a pair is left out if its spheres are near now, but its boxes stay apart while the list is valid.  Explicit
        # pairs, and pairs whose spheres are apart now, stay on the list without a test of their boxes
        stay_apart = pair_id < 0 and any_(spheres_near) and any_(never_meet(m, d, geom1, geom2, spheres_near))
        count += 0 if stay_apart else 1
    d.neighbours.count[0] = count + 1


@kernel
def near_neighbours(m, d):
    """Lists the near candidates from the neighbour list of the tile's single world; returns their number.

    Writes: near.cand_near; neighbours.*, if the list is missing or no longer valid.
    """
    count = 0
    if any_(d.near.detects[0] > 0.0):
        if d.neighbours.count[0] == 0 or not any_(is_list_valid(m, d)):
            list_neighbours(m, d)
        # neighbours.count is the number of pairs plus 1, and 0 without a list
        for i in range(d.neighbours.count[0] - 1):
            k = d.neighbours.pair[i]
            d.near.cand_near[count] = k
            count += any_(is_near(m, d, m.cand_pair[k], m.cand_geom1[k], m.cand_geom2[k]))
    return count


@kernel
def near_pairs(m, d):
    """Lists the pairs that are near in some world, in MuJoCo's order; returns their number.

    Writes: near.geom_reach; near.cand_near, or near.key and near.count if the model has a crowd; neighbours.*, crowd.*.
    """
    # reach of each geom: bounding radius, margin and gap
    for k in range(m.ncollide):
        geom = m.collide_geom[k]
        reach = m.geom_rbound[geom] + geom_margin_and_gap(m, geom)
        # with the LCP model bodies that touch up to rounding have contacts; this is added once for each geom, because
        # evaluating it per candidate in is_near slowed a humanoid's step by 2 to 3 %
        if m.opt_contact_model == LCP:
            reach = reach + touching_distance(m, d, geom)
        # only models with variants have worlds without a geom; a comparison with NaN is false
        if m.nvariant > 0:
            reach = where(is_present(m, geom), reach, NAN)
        d.near.geom_reach[geom] = reach
    # a single world that continues its trajectory (keeps_list) tests only its neighbour list, which has the capacity
    # nlisted.  Listed pairs are tested by `is_near`, but sleep and `speculative` need further tests
    if width(d) == 1 and d.keeps_list and d.nlisted > 0 and not sleeping(m) and not sweeping(m):
        count = near_neighbours(m, d)
    else:
        count = near_candidates(m, d, wide=0)
    # adds the pairs of the bounding volume tree, one world at a time; all pairs are then sorted together
    if m.ncrowd > 0:
        d.near.count[0] = 0
        for i in range(count):
            candidate = d.near.cand_near[i]
            add_key(d, pair_key(m, m.cand_pair[candidate], m.cand_geom1[candidate], m.cand_geom2[candidate]))
        for i in range(m.ncrowd):
            d.crowd.box[i] = detection_box(m, d, m.crowd_geom[i], margin=0.0)
        keeps = 0
        if width(d) == 1 and d.keeps_list and not sleeping(m):
            keeps = 1
            store_crowd_travel(m, d)
            for i in range(m.ncrowd):
                d.crowd.pad[i] = read_lane(d.neighbours.travel, m.crowd_geom[i], 0)  # for a new list
        # a world without awake geoms has no pairs; load_awake returns the number of awake geoms
        for lane in range(width(d)):
            if has(d.near.detects[0] > 0.0, lane) and (not sleeping(m) or load_awake(m, d, lane) > 0):
                for i in range(m.ncrowd):
                    d.crowd.leaf_box[i] = read_lane(d.crowd.box, i, lane)
                crowd_pairs(m, d, keeps)
        unite_pairs(m, d)  # sorts near.key, removes duplicates
        count = d.near.count[0]
    return count


@kernel
def near_pair(m, d, i):
    """Returns (candidate, pair_id, geom1, geom2) of near pair i.

    candidate: the pair's candidate index.  With a crowd it is an arbitrary valid index: pairs of the tree have none.
    """
    if m.ncrowd > 0:
        pair_id, geom1, geom2 = pair_of(m, d.near.key[i])
        candidate = geom1 % m.ncand if m.ncand > 0 else 0
    else:
        candidate = d.near.cand_near[i]
        pair_id, geom1, geom2 = m.cand_pair[candidate], m.cand_geom1[candidate], m.cand_geom2[candidate]
    return candidate, pair_id, geom1, geom2


# ---- contact points of one pair ---------------------------------------------------------------------------
@kernel
def append_points(m, d, function, candidate, pair_id, geom1, geom2):
    """Appends the contact points of a pair as slots from ncon_slot on, in the worlds where it is near and awake.

    Args:
        function: id of the pair function; below FIRST_SCALAR it computes all worlds at once, else one world at a time.
        candidate: candidate index of the pair, which determines its entry in the cache; arbitrary with a crowd.
    """
    near = is_near(m, d, pair_id, geom1, geom2)
    if sleeping(m):
        near = near & pair_awake(d, m.geom_bodyid[geom1], m.geom_bodyid[geom2])
    limit = detection_distance(m, d, pair_id, geom1, geom2)
    if function < FIRST_SCALAR:
        lane_points(m, d, function, geom1, geom2, near, limit)
    else:
        # tests the oriented bounding boxes before the search, which runs one world at a time
        near = near & not_(parted(m, d, function, geom1, geom2, limit, near))
        if any_(near):
            # branching_points reads the mask narrow.near, and appends slots from ncon_slot on
            d.narrow.near[0] = where(near, 1.0, 0.0)
            branching_points(m, d, function, candidate, pair_id, geom1, geom2, d.ncon_slot[0])


# ---- the stage ------------------------------------------------------------------------------------------


@kernel
def count_full(d):
    """Counts the worlds whose contacts do not all fit, `con_full`, when the tile is not split any more."""
    if any_(d.con_full[0] > 0.0):
        warn_full(d, CONTACTS_FULL, d.con_full[0] > 0.0)
        if d.full_pair[0] >= 0:
            d.found_pair[0], d.found_pair[1] = 1 + d.full_pair[0], 1 + d.full_pair[1]


@stage
def collision(m, d):
    """Computes the contacts of all active worlds, with their parameters.

    User-defined contacts come first.  The broad phase lists the pairs whose bounding spheres are near in some world.
    A tile of one world that continues its trajectory tests only the pairs of its neighbour list (neighbours.py).
    The narrow phase appends contact points as slots, in order, until nconmax is reached.  If slots run out,
    con_overflow requests a split of the tile; a tile of one world keeps its first contacts.  con_full is 1 in worlds
    with dropped contacts, which `count_full` counts.
    Source: MuJoCo mj_collision.
    With the flag `speculative`, contacts within the step follow those of each pair (sweep/contacts.py).
    Reads:  geom_xpos, geom_xmat, given_*, active; cvel, subtree_com to predict how far geoms move; qvel, cdof with
            the flag speculative.
    Writes: ncon_slot, con_overflow, con_full, full_pair, ncon, con_* (nconmax,); cvel, cdof_dot with the flag
            speculative.
    Scratch: near.geom_reach (ngeom,), near.cand_near (ncand,), neighbours.*, near.*, crowd.*, narrow.*, sweep.*.
    Frame: world.                           Cost: O(ncand), or O(list) with a neighbour list; plus near pairs.
    """
    d.ncon_slot[0] = 0
    d.con_overflow[0] = 0
    d.con_full[0] = 0.0
    d.full_pair[0] = -1
    d.ncon[0] = 0.0
    if not m.opt_disableflags & (DISABLE_CONSTRAINT | DISABLE_CONTACT):
        # writes near.detects, and slots of user-defined contacts
        given_contacts(m, d)
        swept = sweeping(m)
        if swept:
            com_vel(m, d)  # writes cvel, from which the motion in the step is predicted
        for i in range(near_pairs(m, d)):
            first = d.ncon_slot[0]
            candidate, pair_id, geom1, geom2 = near_pair(m, d, i)
            function = m.pair_function[m.geom_type[geom1], m.geom_type[geom2]]
            append_points(m, d, function, candidate, pair_id, geom1, geom2)
            if swept:
                sweep_pair(m, d, pair_id, geom1, geom2, first)
            set_slot_parameters(m, d, candidate, pair_id, geom1, geom2, first)
            if d.con_overflow[0] == 1:
                break
        # one active world keeps the contacts that fit; several are split
        if d.con_overflow[0] == 1 and count_active_worlds(d) == 1:
            d.con_overflow[0] = 0
            d.con_full[0] = d.active[0]


@stage
def counted_collision(m, d):
    """Computes the contacts of the tile as `collision` does, and counts those that do not fit: for a call of it alone.

    Reads:  what `collision` reads.
    Writes: what `collision` writes; warning (contacts full), found_bad, found_pair.
    """
    collision(m, d)
    count_full(d)
