"""Puts trees to sleep and keeps sleeping trees at rest.

A tree whose velocities stay below the tolerance for 10 steps is ready to sleep.  An island whose trees are all ready
falls asleep.  Its trees form a cycle: tree_asleep of each is the index of the next; that of an awake tree is a negative
counter of still steps, from AWAKE (fully awake) to -1 (ready to sleep).  Their velocities and accelerations
become 0, and their positions stay bitwise identical.
Tree t has the DoFs from m.tree_dofadr[t] on, tree_dofnum of them, and the bodies from tree_bodyadr on.  An actuator
output acts on the DoFs moment_colind, moment_rownnz of them from moment_rowadr on.
Source: MuJoCo 4, chapter Simulation, "Sleeping islands"; mj_sleep.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.awake import clear_asleep, tree_awake
from featherlane.engine.model.integrator import has_metric
from featherlane.engine.model.sleep import AWAKE
from featherlane.engine.simulation.step.wake import is_pushed, mark_awake, never_sleeps, tree_qpos_range


# ---- which trees are ready ------------------------------------------------------------------------------------------
@kernel
def may_sleep(m, d, t):
    """Returns the mask of worlds where no force is applied to tree t and its velocities are below the tolerance."""
    busy = never_sleeps(m, t)
    tolerance = m.opt_sleep_tolerance[0]
    for i in tree_dofs(m, t):
        # a velocity counts with the DoF's length, as m/s; with tolerance 0 only an exact 0 is still
        is_slow = fabs(d.qvel[i]) * m.dof_length[i] < tolerance
        is_still = is_slow | ((tolerance == 0.0) & (d.qvel[i] == 0.0))
        busy = where(is_still, busy, 1.0)
    return (busy == 0.0) & not_(is_pushed(m, d, t))


@kernel
def islands_known(m, d):
    """Returns the mask of active worlds whose islands are known: all; with islands disabled, those without rows."""
    mask = d.active[0] > 0.0
    if m.opt_disableflags & DISABLE_ISLAND:
        mask = mask & (d.nisland[0] == 0.0)
    return mask


@kernel
def count_still_steps(m, d):
    """Counts tree_asleep of awake trees up to -1 while they may sleep, else resets it to AWAKE.

    Nothing changes in worlds without known islands.  Returns 1 if any tree of the tile is ready (-1), else 0.
    """
    ready = 0
    known = islands_known(m, d)
    for t in range(m.ntree):
        is_awake = d.tree_asleep[t] < 0.0
        if any_(is_awake):
            counter = where(may_sleep(m, d, t), fmin(d.tree_asleep[t] + 1.0, -1.0), 1.0 * AWAKE)
            d.tree_asleep[t] = where(known & is_awake, counter, d.tree_asleep[t])
            if any_(d.tree_asleep[t] == -1.0):
                ready = 1
    return ready


# ---- one world ------------------------------------------------------------------------------------------------------
@kernel
def find_ready_islands(m, d, lane):
    """Writes island_ready: 1 if all trees of an island are ready, in the world of a lane.

    A tree is ready if its tree_asleep is -1.
    """
    for island in range(m.ntree):
        d.island_ready[island] = 1
    for t in range(m.ntree):
        island = whole(read_lane(d.tree_island, t, lane))
        # -1: a tree without rows is in no island
        if island >= 0 and read_lane(d.tree_asleep, t, lane) != -1.0:
            d.island_ready[island] = 0


@kernel
def link_islands(m, d, lane):
    """Links the trees of each ready island in a cycle, in ascending order, in the world of a lane.

    tree_asleep of each becomes the index of the next.  A ready tree without rows (island -1) forms a cycle alone.
    """
    find_ready_islands(m, d, lane)
    for island in range(m.ntree):
        d.island_first[island] = -1  # no tree yet
    for t in range(m.ntree):
        if read_lane(d.tree_asleep, t, lane) == -1.0:
            island = whole(read_lane(d.tree_island, t, lane))
            if island < 0:
                write_lane(d.tree_asleep, t, lane, 1.0 * t)
            elif d.island_ready[island]:
                if d.island_first[island] < 0:
                    d.island_first[island] = t
                else:
                    write_lane(d.tree_asleep, d.island_last[island], lane, 1.0 * t)
                d.island_last[island] = t
    # the last tree of an island leads to the first: this closes the cycle
    for island in range(m.ntree):
        if d.island_ready[island] and d.island_first[island] >= 0:
            write_lane(d.tree_asleep, d.island_last[island], lane, 1.0 * d.island_first[island])


# ---- positions ------------------------------------------------------------------------------------------------------
@kernel
def stop_sleeping_trees(m, d):
    """Sets velocity and acceleration of trees that have just fallen asleep to zero and stores their positions."""
    for t in range(m.ntree):
        # tree_awake is still that before this step's `count_still_steps`
        falls = tree_awake(d, t) & (d.tree_asleep[t] >= 0.0)
        if any_(falls):
            first, end = tree_qpos_range(m, t)
            for adr in range(first, end):
                d.sleep_qpos[adr] = where(falls, d.qpos[adr], d.sleep_qpos[adr])
            for i in tree_dofs(m, t):
                d.qvel[i] = where(falls, 0.0, d.qvel[i])
                d.qacc[i] = where(falls, 0.0, d.qacc[i])


@stage
def fall_asleep(m, d):
    """Puts islands to sleep whose trees have been still long enough, before the step advances.

    With islands disabled, only trees of a world without rows can fall asleep.
    Reads:  qvel, qfrc_applied, xfrc_applied, tree_island of this step.
    Writes: tree_asleep, sleep_qpos, qvel and qacc of trees that fall asleep; what `mark_awake` writes.
    Scratch: island_first, island_last, island_ready.
    Cost:   O(nv + nbody).
    """
    if count_still_steps(m, d):  # writes tree_asleep
        for lane in range(width(d)):
            if has(islands_known(m, d), lane):
                link_islands(m, d, lane)
        stop_sleeping_trees(m, d)
        mark_awake(m, d)


@stage
def hold_asleep(m, d):
    """Restores the positions of sleeping trees and sets their velocities to zero, after the step has advanced.

    Reads: tree_awake, sleep_qpos.   Writes: qpos, qvel and qacc_warmstart of sleeping trees.
    """
    for t in range(m.ntree):
        asleep = d.tree_awake[t] == 0.0
        if any_(asleep):
            first, end = tree_qpos_range(m, t)
            for adr in range(first, end):
                d.qpos[adr] = where(asleep, d.sleep_qpos[adr], d.qpos[adr])
    clear_asleep(m, d, d.qvel)
    clear_asleep(m, d, d.qacc_warmstart)


@kernel
def clear_sleeping_actuators(m, d):
    """Sets the force of an actuator output to zero in worlds in which all its DoFs sleep."""
    for o in range(m.nout):
        asleep = true_mask(d)
        for e in moment_entries(m, o):
            asleep = asleep & not_(tree_awake(d, m.dof_treeid[m.moment_colind[e]]))
        if m.moment_rownnz[o] > 0:  # an output without DoFs never sleeps
            d.actuator_force[o] = where(asleep, 0.0, d.actuator_force[o])


@stage
def clear_sleeping_forces(m, d):
    """Sets forces and smooth accelerations of sleeping trees to zero.

    Source: MuJoCo keeps the forces and accelerations of the last awake step, but does not read them.  In MuJoCo an
        activation continues at its last rate; here it follows its dynamics.
    Reads: tree_awake.   Writes: actuator_force, qfrc_actuator, qfrc_smooth, qfrc_step, qacc_smooth of sleeping trees.
    """
    clear_sleeping_actuators(m, d)
    clear_asleep(m, d, d.qfrc_actuator)
    clear_asleep(m, d, d.qfrc_smooth)
    if has_metric(m):
        clear_asleep(m, d, d.qfrc_step)
    clear_asleep(m, d, d.qacc_smooth)


@kernel
def mark_settled(m, d):
    """Marks trees that sleep in all worlds as settled (tree_settled = 1): their fields are not recomputed."""
    for t in range(m.ntree):
        if not any_(tree_awake(d, t)):
            d.tree_settled[t] = 1
