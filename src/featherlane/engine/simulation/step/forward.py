"""Lists the passes of forward dynamics and of a step in their order.  The passes are defined in other modules.

forward    position -> velocity -> force -> constraint: the acceleration of every world
step       forward, then one time step

`forward_pass` runs `forward` without a step and also counts worlds with non-finite or out-of-range values.
`forward_to` computes the fields of the state after a step up to a stage: positions, velocities, or all.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.metric_rows import release_metric
from featherlane.engine.constraint.row import make_rows
from featherlane.engine.dynamics.actuator.actuation import actuation, output_velocities
from featherlane.engine.dynamics.actuator.transmission import transmission
from featherlane.engine.dynamics.awake import sleeping
from featherlane.engine.dynamics.body.com import com_pos, com_vel
from featherlane.engine.dynamics.body.kinematics import collision_frames, frames, kinematics, path_frames
from featherlane.engine.dynamics.body.link import link_positions
from featherlane.engine.dynamics.body.newton_euler import bias, rne
from featherlane.engine.dynamics.inertia.articulated import needs_factor, needs_inertia
from featherlane.engine.dynamics.inertia.joint_space import crb, factor_m
from featherlane.engine.dynamics.integrator.gyroscopic import replace_gyroscopic_torque
from featherlane.engine.dynamics.integrator.runge_kutta import rk4_finish, rk4_stage, rk4_start
from featherlane.engine.dynamics.integrator.smooth import energy, smooth_acceleration
from featherlane.engine.dynamics.integrator.table import accelerations, advance, move, start
from featherlane.engine.dynamics.passive.forces import passive
from featherlane.engine.dynamics.tendon.force import add_tendon_bias
from featherlane.engine.dynamics.tendon.length import tendon, tendon_velocity
from featherlane.engine.sensor.camera import cameras
from featherlane.engine.sensor.measure import (
    FIRST_PASS,
    LAST_STAGE,
    WITHIN,
    measures,
    needs_energy,
    sensor_acc,
    sensor_clocks,
    sensor_history,
    sensor_pos,
    sensor_vel,
)
from featherlane.engine.sensor.publish import publish
from featherlane.engine.simulation.step.consistency import compare_forward_inverse
from featherlane.engine.simulation.step.early_contacts import early_contacts, forces_need_contacts
from featherlane.engine.simulation.step.non_finite import (
    has_bad_acceleration,
    has_bad_state,
    has_infinite_output,
    reset_bad,
    warn_non_finite,
)
from featherlane.engine.simulation.step.part import SOLVE, contacts_and_forces
from featherlane.engine.simulation.step.sleep import clear_sleeping_forces, fall_asleep, hold_asleep, mark_settled
from featherlane.engine.simulation.step.tile_parts import load_counts, restore_counts
from featherlane.engine.simulation.step.wake import wake_or_rest, wake_touched
from featherlane.engine.solver.free_bodies import accelerate_untouched_bodies, mark_touched
from featherlane.engine.solver.solve import solve

# stages up to which a call computes the fields of the state after its last step; MuJoCo's mjtStage
POSITION, VELOCITY, ACCELERATION = 1, 2, 3


@kernel
def shows_frames(m, d):
    """Returns whether the frames of all geoms and sites are computed, not only of those that the step reads.

    They are if the batch wants them and this step's outputs are read (`unread` is 0), or for histories of sensors.
    """
    return d.want_frames != 0 and (d.unread[0] == 0 or m.nhistory > 0)


@kernel
def configuration(m, d):
    """Computes what kinematics determines: frames, centres of mass, link positions and tendons."""
    kinematics(m, d)
    if shows_frames(m, d):
        frames(m, d)
    else:
        collision_frames(m, d)  # of colliding geoms
        path_frames(m, d)  # of sites and geoms on tendons
    com_pos(m, d)
    link_positions(m, d)
    tendon(m, d)


@stage
def forward_position(m, d):
    """Computes everything that depends on the position alone, except contacts.

    Runs `kinematics`, `frames`, `com_pos`, `tendon`, `crb`, `factor_m`, `transmission`, `cameras` and the position
    sensors.  A batch computes only what the step needs and what is bound.
    Source: MuJoCo mj_fwdPosition (without collisions and constraints).
    Reads:  qpos, mocap_pos, mocap_quat.
    Writes: what `kinematics`, `frames`, `com_pos`, `link_positions`, `tendon`, `crb`, `factor_m`, `transmission`,
            `cameras` and `sensor_pos` write.
    """
    configuration(m, d)
    if needs_inertia(m, d):
        crb(m, d)
    if needs_factor(m, d):
        factor_m(m, d)
    transmission(m, d)
    if shows_frames(m, d):
        cameras(m, d)
    sensor_pos(m, d)


@stage
def forward_velocity(m, d):
    """Computes what depends on position and velocity: velocities of bodies, bias and passive forces.

    Source: MuJoCo mj_fwdVelocity (actuator velocities are written by `actuation`).
    Reads:  qpos, qvel, qfrc_adhesion, and what `forward_position` wrote.
    Writes: cvel (nbody, 6), qfrc_bias (nv,), ten_velocity; what `passive` writes; cdof_dot if every field is computed,
            as for one world.
    Scratch: cacc, cfrc.
    """
    if d.want_all:
        com_vel(m, d)
        rne(m, d)
    else:
        bias(m, d)  # both, without fields that no step reads
    replace_gyroscopic_torque(m, d)  # in qfrc_bias, of free bodies where it is implicit or off
    tendon_velocity(m, d)
    add_tendon_bias(m, d)  # += armature of tendons, in qfrc_bias
    passive(m, d)


@stage
def forward_constraint(m, d):
    """Computes contacts, rows and the constrained acceleration.

    Runs `collision`, `make_constraint`, `solve_constraint` and the sensors that read contacts and limits.  If the
    contact slots of a tile overflow, it is solved in parts.
    Source: MuJoCo mj_fwdConstraint, with collisions.
    Reads:  what `forward_position`, `forward_velocity`, `actuation` and `smooth_acceleration` wrote; qacc_warmstart.
    Writes: qacc (nv,) [m/s^2, rad/s^2], qfrc_constraint (nv,) [N, N m]; what `collision`, `make_constraint`,
            `solve_constraint` and `sensor_rows` write; on request, or if trees may sleep, what `islands` writes;
            con_fresh <- 0: the next step finds its contacts again; warning, found_bad, found_pair (contacts full).
    """
    contacts_and_forces(m, d, SOLVE)


@stage
def make_constraint(m, d):
    """Computes the constraint rows: equalities, friction loss, limits, contacts.

    `data.nefc` is their number, and `data.efc_J`, `data.efc_D`, ... return them in MuJoCo's order.  With the
    integrator `discrete` they are computed in its metric.
    Source: MuJoCo mj_makeConstraint, mj_referenceConstraint; chapter Computation, sec. "Constraint model".
    Reads:  qpos, qvel, eq_active, what `forward_position` and `com_vel` wrote, the contacts of `collision`.
    Writes: nrow, ndofrow, row_* (nrowmax,): all rows except those of
            contacts; con_D, con_Dt, con_slip, con_damping, con_frictiondamping, con_stiffpos (nconmax,); dof_touched.
    """
    make_rows(m, d)
    mark_touched(m, d)


@stage
def solve_constraint(m, d):
    """Computes the constrained acceleration with the solver that the options select.

    The contact model convex uses Newton's method, CG or PGS (`opt.solver`), and the no-slip solver if it is enabled.
    The contact model lcp uses the solver `opt.lcp_solver`.  With the integrator `discrete` the
    problem is solved in its metric.
    Source: MuJoCo mj_fwdConstraint; chapter Computation, sec. "Solver".  Open Dynamics Engine, for the model lcp.
    Reads:  qacc_smooth, qfrc_smooth, qacc_warmstart, M and its factor, cvel, the rows of `make_constraint`.
    Writes: qacc (nv,) [m/s^2, rad/s^2], qfrc_constraint (nv,) [N, N m], row_force, con_force;
            solver_niter; solver_residual, the norm of the scaled gradient, or of the LCP's complementarity, at the end;
            solver_gap; warning (not converged); stat_* if each iteration is recorded.
    """
    solve(m, d)
    accelerate_untouched_bodies(m, d)  # under `discrete`: gyroscopic terms of free bodies that nothing touches
    release_metric(m, d)  # the metric's inertial forces are no constraint forces


@kernel
def control_and_actuate(m, d):
    """Calls the user's control function, if user_control has its address, and computes all actuator forces."""
    if d.user_control != 0 and not (m.opt_disableflags & DISABLE_ACTUATION):
        call(d.user_control, m, d, record_at(d, d.control_record))
    actuation(m, d)


@kernel
def forward_at_rest(m, d):
    """Computes what still changes if every tree sleeps: controls, which are checked for bad values, sensors and clocks.

    All other fields keep the values that a full pass would give them, so the result does not depend on other worlds.
    """
    if m.nactuator > 0 or d.user_control != 0:
        control_and_actuate(m, d)
        clear_sleeping_forces(m, d)
    sensor_clocks(m, d)
    sensor_acc(m, d)


@kernel
def forward_unconstrained(m, d):
    """Computes what does not depend on the constraint forces: positions, velocities, actuator forces, qacc_smooth."""
    forward_position(m, d)
    if sleeping(m):
        wake_touched(m, d)
    if forces_need_contacts(m):
        early_contacts(m, d)
        d.con_fresh[0] = 1  # forward_constraint does not find them again
    forward_velocity(m, d)
    control_and_actuate(m, d)
    sensor_vel(m, d)
    smooth_acceleration(m, d)


@kernel
def forward_outputs(m, d):
    """Computes what is derived from the acceleration and the constraint forces: energies and acceleration sensors."""
    if needs_energy(m, d):
        energy(m, d)
    else:
        d.energy[0], d.energy[1] = zeros(2)
    sensor_acc(m, d)


@stage
def forward(m, d):
    """Computes the acceleration of every world of the tile, and all fields that it depends on.

    With the flag `sleep` trees wake first; if no tree of the tile is awake, fields of bodies are not recomputed.
    Source: MuJoCo mj_forward (collisions are found after the velocities here, which changes no value; with the flag
        `sleep`, and if forces depend on contacts, before them).
    Reads:  the state: time, qpos, qvel, act, history, plastic, qacc_warmstart, and the user's inputs.
    Writes: every field down to qacc; energy, con_fresh, tree_settled.
    """
    sleeps = sleeping(m)
    # with sleep, trees that the user has changed wake first
    if not sleeps or not wake_or_rest(m, d):
        forward_unconstrained(m, d)
        if sleeps:
            clear_sleeping_forces(m, d)
        forward_constraint(m, d)
        if sleeps:
            mark_settled(m, d)
        forward_outputs(m, d)
    else:
        forward_at_rest(m, d)


@stage
def forward_pass(m, d):
    """Runs `forward` without a step: a world with non-finite or out-of-range values is counted, not reset.

    Source: MuJoCo mj_forward, which counts nothing.
    Reads:  what `forward` reads.   Writes: every field down to qacc, warning (non-finite), bad_part, found_bad.
    """
    forward(m, d)
    warn_non_finite(m, d, has_bad_state(m, d) | has_bad_acceleration(m, d) | has_infinite_output(m, d))


@stage
def forward_to(m, d, last):
    """Computes fields of the present state up to a stage, after a step; all other fields stay those of the step.

    last: the stage.  Sensors of a later stage keep the values of the step.
    - POSITION: frames, centres of mass, tendons, transmissions, cameras, position sensors.
    - VELOCITY: also what `forward_velocity` computes, rates of actuators, subtree velocities, velocity sensors.
    - ACCELERATION: everything, as `forward_pass`.
    Source: MuJoCo mj_step1 (which also computes the mass matrix, contacts, their rows and energies).  Forces of
        adhesive contacts in qfrc_passive are those of the step, because contacts are.
    Reads:  qpos, qvel, mocap_pos, mocap_quat, sensor_now, qfrc_adhesion.
    Writes: what `kinematics`, `frames`, `com_pos`, `link_positions`, `tendon`, `transmission`, `cameras`, `sensor_pos`,
            `forward_velocity`, `sensor_vel` and `publish` write; actuator_velocity (nout,) [m/s, rad/s].
    """
    if last == ACCELERATION:
        forward_pass(m, d)
    else:
        configuration(m, d)
        transmission(m, d)
        if d.want_frames:
            cameras(m, d)
        sensor_pos(m, d)
        if last == VELOCITY:
            forward_velocity(m, d)
            output_velocities(m, d)
            sensor_vel(m, d)
        if measures(m, d):
            publish(m, d)


@stage
def runge_kutta(m, d):
    """Advances by one Runge-Kutta step, after `forward`; each stage evaluates `forward` at a new state.

    The integrator rk4 uses the classical fourth-order method.
    Source: MuJoCo mj_RungeKutta(4).
    Reads:  the state, and what `forward` wrote.
    Writes: qvel, qpos, act, time, history, plastic, qacc_warmstart; qacc: of rk4 the mean of the step; rk.*, in_stage;
            all else as `forward` leaves it at the state of the last stage.
    """
    # accelerations: how many the integrator evaluates in a step;  start, move and advance of the integrator rk4 are
    # rk4_start, rk4_stage and rk4_finish
    start(m, d)
    for k in range(1, accelerations(m)):
        d.in_stage[0] = LAST_STAGE if k == accelerations(m) - 1 else WITHIN
        move(m, d, k)
        forward(m, d)
    d.in_stage[0] = FIRST_PASS
    advance(m, d)


@stage
def classical_runge_kutta(m, d):
    """Advances by one classical fourth-order Runge-Kutta step, after `forward`, for any integrator of the model.

    Source: MuJoCo mj_RungeKutta(4).
    Reads:  the state, and what `forward` wrote.
    Writes: qvel, qpos, act, time, history, plastic, qacc_warmstart; qacc: the mean of the step; rk.*, in_stage;
            all else as `forward` leaves it at the state of the last stage.
    """
    rk4_start(m, d)
    for k in range(1, 4):
        d.in_stage[0] = WITHIN  # results of these passes are discarded: no sensors
        rk4_stage(m, d, k)
        forward(m, d)
    d.in_stage[0] = FIRST_PASS
    rk4_finish(m, d)


@kernel
def integrate(m, d):
    """Computes the next state from qacc, with the integrator of the model."""
    if accelerations(m) > 1:
        runge_kutta(m, d)
    else:
        advance(m, d)


@kernel
def integrate_awake(m, d):
    """Computes the next state of a model with sleep; if every tree sleeps, only the time advances."""
    if d.nunsettled[0]:  # not 0: something in the tile is awake
        integrate(m, d)
        hold_asleep(m, d)
    else:
        d.time[0] = d.time[0] + m.opt_timestep[0]


@stage
def step(m, d):
    """Advances by one time step.  A world with non-finite or out-of-range values is counted, and reset by autoreset.

    A world with an infinite or NaN energy or sensor value, among those that are computed, is counted and not reset;
    it is not counted if its new state is bad, because the next step counts that.
    Source: MuJoCo mj_step.
    Reads:  what `forward` reads.
    Writes: the next state: time, qpos, qvel, act, history, plastic, qacc_warmstart; warning, bad_part, found_bad; all
            else as `forward` left it at the old state.
    """
    reset_bad(m, d, acceleration=0)
    counts = load_counts(d)
    forward(m, d)
    bad = has_bad_acceleration(m, d)
    if any_(bad):
        # `forward` runs again, from new states in the bad worlds: other worlds must not count twice
        restore_counts(d, counts, not_(bad))
        reset_bad(m, d, acceleration=1)
        forward(m, d)
    if m.opt_enableflags & ENABLE_FWDINV:
        compare_forward_inverse(m, d)
    sensor_history(m, d)
    if sleeping(m):
        fall_asleep(m, d)
        integrate_awake(m, d)
    else:
        integrate(m, d)
    if needs_energy(m, d) or measures(m, d):
        found = has_infinite_output(m, d)
        if any_(found):
            warn_non_finite(m, d, found & not_(has_bad_state(m, d)))  # the next step counts a bad state


@stage
def steps(m, d, n):
    """Advances by n time steps, one after the other.

    Source: MuJoCo mj_step.
    Reads:  what `step` reads.   Writes: what `step` writes.
    """
    for _ in range(n):
        step(m, d)
