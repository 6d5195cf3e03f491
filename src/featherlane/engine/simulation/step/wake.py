"""Wakes sleeping trees at the start of a step and at contacts, tendons and equality constraints.

A sleeping tree stays asleep until

    the user changes its position, sets its velocity, a force or a moment, or moves the mocap body that carries it,
    an awake tree or a mocap body touches it,
    a tendon at its limit connects it to an awake tree,
    an active equality constraint connects it to an awake tree, a mocap body or a tree of another sleeping island.

All trees of a sleeping island wake together.  They form a cycle: tree_asleep of each is the index of the next.  That
of an awake tree is a negative counter of still steps, from AWAKE (fully awake) to -1 (ready to sleep).
Waking is rare and is done world by world; the test in each step is done for all worlds at once.
Tree t has the DoFs from m.tree_dofadr[t] on, tree_dofnum of them, and the bodies from tree_bodyadr on.
Source: MuJoCo 4, chapter Simulation, "Sleeping islands"; mj_wake, mj_wakeTendon, mj_wakeCollision, mj_wakeEquality.
    Deviations: a changed position is detected in qpos, not in the frames; a woken tree that touches a tree of
    another sleeping island wakes that island in the same step.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.collision import collision
from featherlane.engine.constraint.equality import fastened_body
from featherlane.engine.dynamics.awake import either_asleep, is_mocap, tree_awake
from featherlane.engine.dynamics.body.force_laws import has_coefficients
from featherlane.engine.dynamics.tendon.force import tendon_damping, tendon_stiffness
from featherlane.engine.model.sleep import AWAKE
from featherlane.engine.simulation.step.tile_parts import by_halves


# ---- one world ------------------------------------------------------------------------------------------------------
@kernel
def read_asleep(m, d, t, lane):
    """Returns tree_asleep of tree t in the world of a lane, as an int clipped to the valid range."""
    stored = read_lane(d.tree_asleep, t, lane)
    # a value beyond the last tree, of an invalid state, counts as t: an island of one tree
    return AWAKE if stored < AWAKE else whole(stored) if stored < m.ntree else t


@kernel
def wake_island(m, d, t, lane, counter):
    """Wakes the island of tree t in the world of a lane: tree_asleep of its trees <- counter, from AWAKE to -1.

    If tree t is already awake, it gets the lower one of this counter and its present counter.
    """
    member = t
    following = read_asleep(m, d, t, lane)
    if following < 0:
        write_lane(d.tree_asleep, t, lane, 1.0 * min(following, counter))
    # along the cycle of its island, until a tree that is awake
    while following >= 0:
        write_lane(d.tree_asleep, member, lane, 1.0 * counter)
        member = following
        following = read_asleep(m, d, following, lane)


@kernel
def first_of_island(m, d, t, lane):
    """Returns the smallest index of a tree in the sleeping island of tree t, in the world of a lane."""
    smallest = t
    member = read_asleep(m, d, t, lane)
    visited = 0  # bounds the walk if the cycle is invalid
    while member != t and member >= 0 and visited < m.ntree:
        smallest = min(smallest, member)
        member = read_asleep(m, d, member, lane)
        visited = visited + 1
    return smallest


@kernel
def is_awake_in(d, t, lane):
    """Returns whether tree t is awake in the world of a lane; -1, a body without a tree, counts as awake."""
    return t < 0 or has(tree_awake(d, t), lane)


# ---- masks ----------------------------------------------------------------------------------------------------------
@kernel
def mark_trees(m, d):
    """Writes tree_awake from tree_asleep; and nunsettled, the number of trees whose fields have to be computed.

    A tree that is awake in any world is unsettled.  Other trees stay settled or unsettled.
    """
    d.nunsettled[0] = 0
    for t in range(m.ntree):
        awake = d.tree_asleep[t] < 0.0
        d.tree_awake[t] = where(awake, 1.0, 0.0)
        if any_(awake):
            d.tree_settled[t] = 0
        d.nunsettled[0] = d.nunsettled[0] + 1 - d.tree_settled[t]


@kernel
def mark_bodies(m, d):
    """Writes body_awake, by which collision selects pairs, and body_any_awake: awake in any world.

    Mocap bodies count as awake, other bodies without a tree do not.
    """
    for b in range(m.nbody):
        t = m.body_treeid[b]
        if t >= 0:
            d.body_awake[b] = d.tree_awake[t]
        else:
            d.body_awake[b] = 1.0 if is_mocap(m, b) else 0.0
        d.body_any_awake[b] = 1 if any_(d.body_awake[b] > 0.0) else 0


@stage
def mark_awake(m, d):
    """Computes the masks of awake trees and bodies.

    Reads: tree_asleep.   Writes: tree_awake (ntree,), body_awake (nbody,), tree_settled, body_any_awake, nunsettled.
    """
    mark_trees(m, d)
    mark_bodies(m, d)


@kernel
def unsettle_trees(m, d):
    """Marks all trees as not settled (tree_settled = 0): the tile's derived fields belong to other worlds."""
    for t in range(m.ntree):
        d.tree_settled[t] = 0


# ---- the user -------------------------------------------------------------------------------------------------------
@kernel
def tree_qpos_range(m, t):
    """Returns (first, end) of the entries of tree t in qpos."""
    first = m.dof_jntid[m.tree_dofadr[t]]
    last = m.dof_jntid[m.tree_dofadr[t] + m.tree_dofnum[t] - 1]
    return m.jnt_qposadr[first], m.jnt_qposadr[last] + joint_coordinates(m.jnt_type[last])


@kernel
def mocap_moved(d, k, moved):
    """Returns `moved`, set to 1 in worlds in which mocap body k has moved since the last call."""
    now = join(d.mocap_pos[k], d.mocap_quat[k])
    before = d.sleep_mocap[k]
    for c in unrolled(range(7)):
        moved = where(now[c] != before[c], 1.0, moved)
    return moved


@kernel
def couples_tree(m, i, t):
    """Returns 1 if tendon i connects tree t to other trees, else 0."""
    if m.tendon_treenum[i] > 1:
        for e in tendon_entries(m, i):
            if m.dof_treeid[m.ten_J_colind[e]] == t:
                return 1
    return 0


@kernel
def never_sleeps(m, t):
    """Returns 1 in worlds in which tree t never sleeps: by policy, or by a spring or damper to another tree; else 0."""
    never = 1.0 if m.tree_sleep_policy[t] in (SLEEP_NEVER, SLEEP_AUTO_NEVER) else 0.0
    if m.tree_sleep_policy[t] == SLEEP_AUTO_ALLOWED:
        for i in range(m.ntendon):
            if couples_tree(m, i, t):
                elastic = has_coefficients(tendon_stiffness(m, i)) | has_coefficients(tendon_damping(m, i))
                never = where(elastic, 1.0, never)
    return never


@kernel
def is_pushed(m, d, t):
    """Returns the mask of worlds where the user applies a force or torque to tree t."""
    pushed = 0.0
    first_body = m.tree_bodyadr[t]
    for i in tree_dofs(m, t):
        pushed = where(d.qfrc_applied[i] != 0.0, 1.0, pushed)
    # the bodies of a tree are consecutive
    for i in range(6 * first_body, 6 * (first_body + m.tree_bodynum[t])):
        pushed = where(flat(d.xfrc_applied)[i] != 0.0, 1.0, pushed)
    return pushed > 0.0


@kernel
def tree_perturbed(m, d, t):
    """Returns 1 in the worlds in which tree t sleeps and the user has changed it, or it never sleeps; else 0."""
    changed = where(is_pushed(m, d, t), 1.0, never_sleeps(m, t))
    for i in tree_dofs(m, t):
        changed = where(d.qvel[i] != 0.0, 1.0, changed)
    first, end = tree_qpos_range(m, t)
    for adr in range(first, end):
        changed = where(d.qpos[adr] != d.sleep_qpos[adr], 1.0, changed)
    # the mocap body that carries the tree, or -1
    mocap = m.body_mocapid[m.body_rootid[m.tree_bodyadr[t]]]
    if mocap >= 0:
        changed = mocap_moved(d, mocap, changed)
    return where(d.tree_asleep[t] >= 0.0, changed, 0.0)


@kernel
def store_mocap_poses(m, d):
    """Stores the poses of mocap bodies in sleep_mocap; returns whether one of them has moved in any world."""
    moved = 0.0
    for k in range(m.nmocap):
        moved = mocap_moved(d, k, moved)
        d.sleep_mocap[k] = join(d.mocap_pos[k], d.mocap_quat[k])
    return any_(moved > 0.0)


@stage
def wake_perturbed(m, d):
    """Wakes trees that the user has changed, and computes the masks that the passes read.

    nunsettled is 0 if nothing in the tile is awake and only an equality constraint could wake a tree.  (Activations,
    histories and plastic springs continue to change while their trees sleep.)
    Reads:  tree_asleep, qpos, qvel, sleep_qpos, qfrc_applied, xfrc_applied, mocap_pos, mocap_quat, sleep_mocap.
    Writes: tree_asleep, sleep_mocap, tree_awake, body_awake, tree_settled, body_any_awake, nunsettled, sleep_perturbed.
    Cost: O(nq + nbody).
    """
    for t in range(m.ntree):
        if any_(d.tree_asleep[t] >= 0.0):
            d.sleep_perturbed[t] = tree_perturbed(m, d, t)
            for lane in range(width(d)):
                if has(d.sleep_perturbed[t] > 0.0, lane):
                    wake_island(m, d, t, lane, AWAKE)
    mark_awake(m, d)
    # other reasons to compute the tile: moved mocap bodies, user contacts, activations, histories, plastic springs
    if store_mocap_poses(m, d) or m.ntree == 0 or d.ngiven + m.na + m.nhistory + m.nplastic > 0:
        d.nunsettled[0] = d.nunsettled[0] + 1


# ---- equality constraints -------------------------------------------------------------------------------------------
@kernel
def equality_body(m, e, side):
    """Returns the body on side 0 or 1 of equality e, or -1 for none."""
    equality = m.equality[e]
    if equality.type == EQ_JOINT:
        j = equality.obj1id if side == 0 else equality.obj2id
        b = m.jnt_bodyid[j] if j >= 0 else -1
    elif equality.type == EQ_TENDON:
        b = -1  # models with sleep do not support this constraint
    else:
        b = fastened_body(m, e, side)
    return b


@kernel
def may_be_awake(m, b):
    """Returns whether body b exists (-1: none) and belongs to a tree or is a mocap body."""
    return b >= 0 and (m.body_treeid[b] >= 0 or is_mocap(m, b))


@kernel
def wake_by_equality(m, d, t1, t2, lane):
    """Wakes trees t1 or t2 that an active equality joins, in the world of a lane; returns 1 if any woke, else 0.

    An index -1 is a mocap body, which is awake.
    """
    awake1, awake2 = is_awake_in(d, t1, lane), is_awake_in(d, t2, lane)
    both_asleep = not awake1 and not awake2
    joins_islands = both_asleep and first_of_island(m, d, t1, lane) != first_of_island(m, d, t2, lane)
    if not awake1 and (awake2 or joins_islands):
        wake_island(m, d, t1, lane, AWAKE)
    if not awake2 and (awake1 or joins_islands):
        wake_island(m, d, t2, lane, AWAKE)
    return 1 if awake1 != awake2 or joins_islands else 0


@stage
def wake_fastened(m, d):
    """Wakes trees that an active equality constraint joins to an awake tree, or to one of another sleeping island.

    The contacts of trees that wake here are found in the next step.
    Source: MuJoCo mj_wakeEquality.
    Reads:  eq_active, tree_awake, tree_asleep.   Writes: tree_asleep, tree_awake, tree_settled, nunsettled.
    """
    woke = 0
    for e in range(m.neq):
        b1, b2 = equality_body(m, e, side=0), equality_body(m, e, side=1)
        # bodies of one tree wake together
        if may_be_awake(m, b1) and may_be_awake(m, b2) and m.body_treeid[b1] != m.body_treeid[b2]:
            t1, t2 = m.body_treeid[b1], m.body_treeid[b2]
            asleep = either_asleep(d, t1, t2) & (d.eq_active[e] != 0.0)
            if any_(asleep):
                for lane in range(width(d)):
                    if has(asleep, lane):
                        woke += wake_by_equality(m, d, t1, t2, lane)
    if woke:
        mark_trees(m, d)


# ---- tendons --------------------------------------------------------------------------------------------------------
@kernel
def wake_by_tendons(m, d):
    """Wakes trees that a tendon at its limit connects to an awake tree, with that tree's counter.

    Returns whether any woke.   Source: MuJoCo mj_wakeTendon.
    """
    woke = 0
    for i in range(m.ntendon):
        tendon = m.tendon[i]
        if tendon.limited != 0 and tendon.treenum == 2:  # treeid lists two trees
            t1, t2, length = tendon.treeid[0], tendon.treeid[1], d.ten_length[i]
            to_limit = fmin(length - tendon.range.lower, tendon.range.upper - length)
            wakes = (to_limit < tendon.margin) & (d.tree_awake[t1] != d.tree_awake[t2])
            if any_(wakes):
                woke = 1
                for lane in range(width(d)):
                    if has(wakes, lane):
                        sleeper, other = t1, t2
                        if is_awake_in(d, t1, lane):
                            sleeper, other = t2, t1
                        wake_island(m, d, sleeper, lane, read_asleep(m, d, other, lane))
    return woke


# ---- contacts -------------------------------------------------------------------------------------------------------
@kernel
def wake_by_contact(m, d, k, lane):
    """Wakes the sleeping tree that contact slot k touches, in the world of a lane, with the counter of the other tree.

    If the other body has no tree, the sleeping tree becomes fully awake.
    """
    sleeper, other = m.body_treeid[d.con_carrier[k, 0]], m.body_treeid[d.con_carrier[k, 1]]
    if is_awake_in(d, sleeper, lane):
        sleeper, other = other, sleeper
    counter = AWAKE
    if other >= 0:
        counter = read_asleep(m, d, other, lane)
    wake_island(m, d, sleeper, lane, counter)


@kernel
def wake_at_contacts(m, d):
    """Wakes sleeping trees with a contact; returns whether any woke."""
    woke = 0
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        asleep = either_asleep(d, m.body_treeid[c.carrier[0]], m.body_treeid[c.carrier[1]]) & (c.present > 0.0)
        if any_(asleep):
            woke = 1
            for lane in range(width(d)):
                if has(asleep, lane):
                    wake_by_contact(m, d, k, lane)
    return woke


@kernel
def collide_and_wake(m, d):
    """Finds contacts of the active worlds repeatedly, until they wake no more trees."""
    collision(m, d)
    while d.con_overflow[0] == 0 and wake_at_contacts(m, d):
        mark_awake(m, d)
        collision(m, d)


@by_halves
def collide_and_wake_parts(m, d, _purpose):
    """Finds contacts of the worlds of one part repeatedly, until they wake no more trees."""
    collide_and_wake(m, d)


@kernel
def find_contacts(m, d):
    """Finds the contacts of the present positions, unless an earlier stage of the pass has found them (con_fresh)."""
    if d.con_fresh[0]:
        d.con_fresh[0] = 0
    else:
        collision(m, d)


@stage
def wake_touched(m, d):
    """Wakes trees that tendons connect to awake trees, that awake trees or mocap bodies touch, or that equalities join.

    If the contacts of all worlds fit into the slots together, they are kept (con_fresh); else they are found again.
    Reads:  the frames, tree_asleep, body_awake, eq_active.
    Writes: tree_asleep, tree_awake, body_awake, tree_settled, nunsettled, body_any_awake, con_fresh;
            what `collision` writes; warning; active, lane_active, which are restored.
    """
    if wake_by_tendons(m, d):
        mark_awake(m, d)
    collide_and_wake(m, d)
    d.con_fresh[0] = 1 - d.con_overflow[0]
    if d.con_overflow[0]:
        collide_and_wake_parts(m, d, 0)  # the last argument is unused
    wake_fastened(m, d)


@kernel
def wake_or_rest(m, d):
    """Wakes trees that the user or an equality wakes.

    Returns whether nothing in the tile is awake, so that all derived fields remain valid.
    """
    wake_perturbed(m, d)
    if d.nunsettled[0] == 0:
        wake_fastened(m, d)
    return d.nunsettled[0] == 0
