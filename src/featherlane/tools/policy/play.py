"""Steps environments with a policy in the loop: observation, action, time steps, reward, termination, reset, in lanes.

A step of an environment is that of Gymnasium's autoreset mode NEXT_STEP.  A world whose episode ended in the previous
step ignores the action and starts its next episode: it gets the state of a row of `start`.  Its lane then takes part in
the time steps of the tile, and the state is set again after them.

The task's functions are stages `(d, p, i)` that are called by address.  They read fields of d and write fields of p:
`observe` writes obs, `remember` writes next, and `score` reads before and writes reward and terminated.  i is 1 for the
first state of an episode and else 0.  The record p is PLAY below; the call sets its sizes.  In all kernels `starting`
is the mask of worlds that start an episode.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.awake import sleeping
from featherlane.engine.lanes import Field, Layout
from featherlane.engine.model.status import STATUS
from featherlane.engine.simulation.step.forward import forward_to, step
from featherlane.engine.simulation.step.non_finite import reset_worlds, restart_sleep
from featherlane.engine.simulation.tile.rows import copy_step_inputs, store_worlds, write_records
from featherlane.engine.simulation.tile.tiles import in_each_tile, sign_contacts
from featherlane.tools.policy.network import POLICY, mean_action

NSTATUS = len(STATUS)

PLAY = Layout(
    "Play",
    (
        *POLICY.fields,
        Field("frame_skip", "size", doc="time steps of an action"),
        Field("nskip", "size", doc="the first of them, whose outputs are not computed"),
        Field("limit", "size", doc="actions after which an episode is truncated"),
        Field("nbefore", "size", doc="numbers that the reward needs of the state before the action"),
        Field("nstart", "size", doc="initial states of each world"),
        Field("start_stage", "size", doc="stage up to which fields of initial states are computed; 0: none"),
        Field("observe", "size", doc="address of the function that writes obs"),
        Field("remember", "size", doc="address of the function that writes next"),
        Field("score", "size", doc="address of the function that writes reward and terminated"),
        Field("noise", "real", ("noutput",), "1", "noise of the action, of the standard normal distribution"),
        Field("action", "real", ("noutput",), "1", "action before it is clipped"),
        Field("before", "real", ("nbefore",), "1", "what the reward needs of the state before the action"),
        Field("next", "real", ("nbefore",), "1", "the same of the present state"),
        Field("start", "real", ("nstart", "nstate"), "1", "positions and velocities of the next episodes"),
        Field("start_obs", "real", ("ninput",), "1", "observation of a world that starts"),
        Field("start_before", "real", ("nbefore",), "1", "`before` of a world that starts"),
        Field("start_status", "real", (NSTATUS,), "1", "`warning` of a world that starts"),
        Field("reward", "real", (1,), "1", "reward", dtype="float64"),
        Field("terminated", "real", (1,), "1", "1: the episode has terminated"),
        Field("truncated", "real", (1,), "1", "1: the episode has reached the limit"),
        Field("done", "real", (1,), "1", "1: the next step starts an episode"),
        Field("bad", "real", (1,), "1", "non-finite states and bad controls since the reset"),
        Field("non_finite", "real", (1,), "1", "non-finite states since the reset"),
        Field("used", "real", (1,), "1", "episodes that were started"),
        Field("elapsed", "real", (1,), "1", "actions of the episode", dtype="float64"),
    ),
)


@kernel
def set_controls(d, p, starting):
    """Sets d.ctrl to the policy's action with noise, clipped, except in worlds that start.

    Behind the weights, `numbers` has from p.tail on: ninput means, ninput inverse deviations, the limit of
    observations; then noutput each of scales, offsets, standard deviations of the noise, lower and upper bounds of the
    action.
    Writes: action, what `mean_action` writes.
    """
    numbers, n = scalars(p, p.numbers), p.noutput
    deviations = p.tail + 2 * p.ninput + 1 + 2 * n
    lower, upper = deviations + n, deviations + 2 * n
    mean_action(p)  # p.mean
    for k in range(n):
        p.action[k] = p.mean[k] + numbers[deviations + k] * p.noise[k]
        clipped = fmin(fmax(p.action[k], numbers[lower + k]), numbers[upper + k])
        clipped = where(p.action[k] == p.action[k], clipped, p.action[k])  # NaN stays NaN
        d.ctrl[k] = where(starting, d.ctrl[k], clipped)


@kernel
def set_initial_states(m, d, p, starting):
    """Resets worlds that start to the model's defaults, with positions and velocities of their next initial state.

    Row p.used of `start` holds them; its last row is repeated.
    """
    reset_worlds(m, d, starting)
    if sleeping(m):
        restart_sleep(m, d, starting)
    d.nreset[0] = where(starting, 0.0, d.nreset[0])  # counts resets by autoreset in an episode
    # index of the first value of each world's row: positions, then velocities
    first = fmin(p.used[0], 1.0 * (p.nstart - 1)) * (m.nq + m.nv)
    for i in range(m.nq):
        d.qpos[i] = where(starting, gather_rows(p.start, first + i), d.qpos[i])
    for i in range(m.nv):
        d.qvel[i] = where(starting, gather_rows(p.start, first + m.nq + i), d.qvel[i])


@kernel
def begin_episodes(m, d, p, starting):
    """Sets initial states, and stores their observations, `before` and `warning` until the end of the step.

    `warning` counts from 0 in worlds that start.  In other worlds it does not change, although `forward_to` also counts
    there.
    Writes: the states, warning, start_obs, start_before, start_status; what `forward_to` writes.
    """
    set_initial_states(m, d, p, starting)
    # start_status keeps the counts of the other worlds during `forward_to`
    for k in range(NSTATUS):
        p.start_status[k] = where(starting, 0.0, d.warning[k])
        d.warning[k] = p.start_status[k]
    if p.start_stage > 0:
        forward_to(m, d, p.start_stage)
    for k in range(NSTATUS):
        counted = d.warning[k]
        d.warning[k] = where(starting, counted, p.start_status[k])
        p.start_status[k] = d.warning[k]
    # the functions at these addresses write obs and next; 1: first state of an episode
    call(p.observe, d, p, 1)
    call(p.remember, d, p, 1)
    copy(p.start_obs, p.obs, p.ninput)
    copy(p.start_before, p.next, p.nbefore)


@kernel
def restore_initial_states(m, d, p, starting):
    """Sets the initial states of worlds that start again, after the time steps of their tile; counts the episodes."""
    set_initial_states(m, d, p, starting)
    for k in range(NSTATUS):
        d.warning[k] = where(starting, p.start_status[k], d.warning[k])
    p.used[0] = where(starting, p.used[0] + 1.0, p.used[0])


@kernel
def write_outcomes(d, p, starting):
    """Writes reward, terminated, truncated, done and the observation of the present state.

    A world with a new non-finite state or bad control terminates with reward 0.
    Writes also: non_finite, bad, elapsed, and `before` for the next action.
    """
    p.non_finite[0] = d.warning[NON_FINITE]
    counted = d.warning[NON_FINITE] + d.warning[BAD_CONTROL]
    bad = counted > p.bad[0]
    p.bad[0] = counted
    p.reward[0] = 0.0
    p.terminated[0] = 0.0
    call(p.score, d, p, 0)  # reward, terminated
    p.reward[0] = where(starting | bad, 0.0, p.reward[0])
    p.terminated[0] = where(starting, 0.0, where(bad, 1.0, p.terminated[0]))
    p.elapsed[0] = where(starting, 0.0, p.elapsed[0] + 1.0)
    p.truncated[0] = where(p.elapsed[0] >= 1.0 * p.limit, 1.0, 0.0)
    p.done[0] = where((p.terminated[0] > 0.0) | (p.truncated[0] > 0.0), 1.0, 0.0)
    call(p.observe, d, p, 0)  # obs; 0: not the first state of an episode
    call(p.remember, d, p, 0)  # next
    for i in range(p.ninput):
        p.obs[i] = where(starting, p.start_obs[i], p.obs[i])
    for i in range(p.nbefore):
        p.before[i] = where(starting, p.start_before[i], p.next[i])


@stage(p=PLAY)
def play_tile(m, d, b, p, thread, tile):
    """Runs nstep steps of the environments of a tile with the policy in the loop.

    Source: Gymnasium's AutoresetMode.NEXT_STEP.
    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; unread, signature, all fields of p, and what `step` and `forward_to` write.
    """
    for s in range(b.nstep):
        copy_step_inputs(b, thread, tile, s)
        starting = p.done[0] > 0.0  # of the step before
        set_controls(d, p, starting)  # d.ctrl, from p.obs and p.noise
        if any_(starting):
            begin_episodes(m, d, p, starting)
        for k in range(p.frame_skip):
            # the first nskip time steps compute no outputs, such as sensors: later steps overwrite them unread
            d.unread[0] = 1 if k < p.nskip else 0
            step(m, d)
        d.unread[0] = 0
        if any_(starting):
            restore_initial_states(m, d, p, starting)  # undoes the steps of these worlds
        write_outcomes(d, p, starting)
        write_records(b, thread, tile, s)
    sign_contacts(m, d)  # writes the signature by which the next call groups worlds with similar contacts
    store_worlds(b, thread, tile)


play_tiles = in_each_tile("play_tiles", play_tile)
