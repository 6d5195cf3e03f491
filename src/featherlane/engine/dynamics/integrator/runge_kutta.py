"""Implements the classical fourth-order Runge-Kutta method, on coordinates that may be rotations.

The stages evaluate forward dynamics, which a step calls between these stages:

    rk4_start, (rk4_stage 1, forward), (rk4_stage 2, forward), (rk4_stage 3, forward), rk4_finish

The record rk keeps data between the stages: the start of the step (rk.qpos, rk.qvel, rk.act, rk.time, ...), the rates
of the coordinates at the last stage (rk.rate), and weighted sums of all stages' rates, accelerations and act_dot
(rk.velocity, rk.acceleration, rk.act_dot).  All are written by the kernels here.

A rotation is represented as q = q0 exp(u), and the rates of the stages are those of u, which preserves fourth order.
du/dt = dexp^-1_u(w) = w + u x w / 2 + k(|u|) u x (u x w), k(t) = (1 - t/2 cot t/2) / t^2.
Of the u of one q the shortest is used, as in MuJoCo: k is infinite if |u| is a full turn.

Imported kernels:

    integrate_pos(m, qpos, velocity, start, h, FINITE)  qpos <- start (+) h velocity, quaternions by the exponential
    insert_controls(m, d)                               stores ctrl at d.time in the histories of actuators
    advance_activations(m, d, rates)                    act <- values after a step from act with these rates
    yield_springs(m, d, length, J, velocity)            moves references of plastic springs, from tendons at the start

Source: Munthe-Kaas, High order Runge-Kutta methods on manifolds, 1999; coefficients of Kutta's method, 1901.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.activation import advance_activations
from featherlane.engine.dynamics.actuator.history import insert_controls
from featherlane.engine.dynamics.body.plastic import yield_springs
from featherlane.engine.dynamics.integrator.integrate import integrate_pos

SMALL_ANGLE = 0.3  # rad: below this, a series with a first neglected term below 1e-14
FULL_ROTATION = 6.283185307179586  # 2 pi


@kernel
def _third_coefficient(t):
    """Returns k(t) = (1 - t/2 cot t/2) / t^2; for t < SMALL_ANGLE by its series in t^2, 1/12 + t^2/720 + ..."""
    t2 = t * t
    series = fma(
        t2, fma(t2, fma(t2, fma(t2, 1.0 / 47900160.0, 1.0 / 1209600.0), 1.0 / 30240.0), 1.0 / 720.0), 1.0 / 12.0
    )
    s, c = sincos(0.5 * t)
    sine = where(s == 0.0, 1.0, s)  # s is 0 at t = 0, where the series applies
    is_small = t < SMALL_ANGLE
    formula = (1.0 - (0.5 * t) * (c / sine)) / fmax(t2, SMALL_ANGLE * SMALL_ANGLE)
    return where(is_small, series, formula)


@kernel
def rotation_rate(u, w):
    """Returns dexp^-1_u(w): the rate of the rotation vector u of a body with the angular velocity w in its axes.

    w + u x w / 2 + k(|u|) u x (u x w), where u is replaced by the shortest vector of the same rotation, of length
    |rest|.
    """
    angle = sqrt(dot(u, u))
    full_rotations = rint(angle / FULL_ROTATION)
    rest = fma(-full_rotations, FULL_ROTATION, angle)  # from -pi to pi
    # if there are full rotations, the angle exceeds SMALL_ANGLE
    u = where(full_rotations == 0.0, 1.0, rest / fmax(angle, SMALL_ANGLE)) * u
    uw = cross(u, w)
    return fma(_third_coefficient(fabs(rest)), cross(u, uw), fma(0.5, uw, w))


@kernel
def _add_stage(m, d, weight):
    """Adds weight times the last stage's rates, qacc and act_dot to rk.velocity, rk.acceleration and rk.act_dot."""
    for i in range(m.nv):
        d.rk.velocity[i] = fma(weight, d.rk.rate[i], d.rk.velocity[i])
        d.rk.acceleration[i] = fma(weight, d.qacc[i], d.rk.acceleration[i])
    for a in range(m.na):
        d.rk.act_dot[a] = fma(weight, d.act_dot[a], d.rk.act_dot[a])


@stage
def rk4_start(m, d):
    """Stores the state at which the first acceleration was evaluated.

    Reads:  qpos, qvel, act, time, actuator_length, actuator_velocity, ten_length, ten_J.
    Writes: rk.*; zeros in the sums rk.velocity, rk.acceleration, rk.act_dot.
    """
    copy(d.rk.qpos, d.qpos, m.nq)
    copy(d.rk.qvel, d.qvel, m.nv)
    copy(d.rk.rate, d.qvel, m.nv)
    clear(d.rk.velocity, m.nv)
    clear(d.rk.acceleration, m.nv)
    copy(d.rk.act, d.act, m.na)
    clear(d.rk.act_dot, m.na)
    copy(d.rk.length, d.actuator_length, m.nout)
    copy(d.rk.rate_of_length, d.actuator_velocity, m.nout)
    d.rk.time[0] = d.time[0]
    # read at the end of the step by `yield_springs`
    if m.nplastic > 0:
        copy(d.rk.ten_length, d.ten_length, m.ntendon)
        copy(d.rk.ten_J, d.ten_J, m.nJten)


@kernel
def _set_rates(m, d, h):
    """rk.rate <- rate of the coordinates at the new velocity qvel, at offset h rk.rate from the start.

    A rotation's coordinate is the rotation vector u from the start, here u = h rk.rate; its rate is dexp^-1_u(qvel).
    """
    for j in range(m.njnt):
        dof, kind = m.jnt_dofadr[j], m.jnt_type[j]
        if is_free_joint(kind):
            d.rk.rate[dof : dof + 3] = d.qvel[dof : dof + 3]
            dof += 3
        if has_quaternion(kind):
            d.rk.rate[dof : dof + 3] = rotation_rate(h * Vec3(d.rk.rate[dof : dof + 3]), Vec3(d.qvel[dof : dof + 3]))
        else:
            d.rk.rate[dof] = d.qvel[dof]


@stage
def rk4_stage(m, d, k):
    """Adds the acceleration of stage k - 1 and sets the state of stage k = 1, 2, 3.

    q = q0 (+) s h rate, v = v0 + s h qacc, with s = 1/2, 1/2, 1 and the rate and acceleration of the previous stage.
    Reads:  qacc, act_dot, rk.*.   Writes: qpos, qvel, act, time, rk.rate, rk.velocity, rk.acceleration, rk.act_dot.
    """
    s = 0.5 if k < 3 else 1.0
    offset = s * timestep(m)
    # weights of the stages: 1/6, 1/3, 1/3, and 1/6 in rk4_finish
    if k == 1:
        _add_stage(m, d, 1.0 / 6.0)
    else:
        _add_stage(m, d, 1.0 / 3.0)
    integrate_pos(m, d.qpos, d.rk.rate, d.rk.qpos, offset, FINITE)
    for i in range(m.nv):
        d.qvel[i] = fma(offset, d.qacc[i], d.rk.qvel[i])
    for a in range(m.na):
        d.act[a] = fma(offset, d.act_dot[a], d.rk.act[a])
    _set_rates(m, d, offset)
    d.time[0] = d.rk.time[0] + s * m.opt_timestep[0]


@kernel
def _exchange_lengths(m, d):
    """Exchanges actuator_length and actuator_velocity with those at the start of the step (rk.length, ...)."""
    for o in range(m.nout):
        length, rate = d.actuator_length[o], d.actuator_velocity[o]
        d.actuator_length[o] = d.rk.length[o]
        d.actuator_velocity[o] = d.rk.rate_of_length[o]
        d.rk.length[o] = length
        d.rk.rate_of_length[o] = rate


@kernel
def _finish_activations(m, d):
    """act <- values after the step, from the weighted rates rk.act_dot and actuator lengths at the step's start."""
    copy(d.act, d.rk.act, m.na)
    if m.na > 0:
        # `advance_activations` reads lengths and velocities; it starts from rk.act, so it gets those at the start
        _exchange_lengths(m, d)
        advance_activations(m, d, d.rk.act_dot)
        _exchange_lengths(m, d)  # those of the last stage again


@stage
def rk4_finish(m, d):
    """Completes the step: weighted sums 1/6, 1/3, 1/3, 1/6 of rates and accelerations, from the stored state.

    `qacc` <- the mean acceleration of the step, (v1 - v0) / h; `qacc_warmstart` <- that of the last stage.
    `rk.last_*` <- the state of the last stage, to which all other derived fields belong after the step.
    Source: MuJoCo mj_RungeKutta; that 4.0.1 stores these accelerations was found by experiment.
    Reads:  qpos, qvel, act, qacc, ctrl, rk.*.
    Writes: qpos, qvel, qacc, act, history, plastic, time, qacc_warmstart; actuator_length and
            actuator_velocity of the last stage; rk.*.
    """
    h = timestep(m)
    _add_stage(m, d, 1.0 / 6.0)
    copy(d.rk.last_qpos, d.qpos, m.nq)
    copy(d.rk.last_qvel, d.qvel, m.nv)
    copy(d.rk.last_act, d.act, m.na)
    # histories of controls are those of the step's start
    d.time[0] = d.rk.time[0]
    insert_controls(m, d)
    _finish_activations(m, d)
    integrate_pos(m, d.qpos, d.rk.velocity, d.rk.qpos, h, FINITE)
    yield_springs(m, d, d.rk.ten_length, d.rk.ten_J, d.rk.velocity)
    for i in range(m.nv):
        d.qvel[i] = fma(h, d.rk.acceleration[i], d.rk.qvel[i])
        d.qacc_warmstart[i] = d.qacc[i]
        d.qacc[i] = d.rk.acceleration[i]
    d.time[0] = d.rk.time[0] + m.opt_timestep[0]
