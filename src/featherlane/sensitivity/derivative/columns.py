"""The columns of a step's derivative, tile by tile: rates of the residual, and what the acceleration makes of them.

A column belongs to a coordinate: a dof's position, a dof's velocity, an activation or a control.  The worlds of a tile
stand side by side in its lanes and take the columns one after the other; where there is one world only, all lanes hold
it and each takes columns of its own.  Lane by lane the call brings, for each column, the number of the coordinate
(`qacc_smooth[0]`, -1: none) and how far it moves up and down (`qfrc_smooth[0]`, `qfrc_passive[0]`).
Source: the implicit function theorem; see residual.py.
"""

from featherlane.prelude import *
from featherlane.constraint.metric_rows import release_metric
from featherlane.constraint.row import make_rows
from featherlane.dynamics.actuator.activation import advance_activations
from featherlane.dynamics.inertia.articulated import inertia_times, uses_articulated
from featherlane.dynamics.inertia.metric import metric
from featherlane.dynamics.integrator.free_body import solve_untouched_bodies
from featherlane.dynamics.integrator.smooth import smooth_acceleration
from featherlane.model.integrator import has_metric
from featherlane.sensitivity.derivative.equality_rates import refine_equalities, refines
from featherlane.sensitivity.derivative.points import move, move_pos
from featherlane.sensitivity.derivative.residual import (
    implicit_acceleration_of,
    implicit_rates,
    is_damped,
    is_implicit,
    place,
    push,
    store_residual,
)
from featherlane.sensitivity.derivative.switching import switching_distance
from featherlane.sensitivity.derivative.tangent import advance_tangent
from featherlane.simulation.step.forward import control_and_actuate, forward_velocity
from featherlane.simulation.tile.rows import load_worlds, read_controls, write_records
from featherlane.simulation.tile.tiles import in_each_tile
from featherlane.solver.hessian.equation import factor_hessian, leaves_out, substitute
from featherlane.solver.inverse import constraint_forces
from featherlane.solver.solve import solve
from featherlane.solver.untouched import mark_touched, turn_free_bodies

# what a pass reports of a world in `part`
FITS, NEAREST = 0, 1


@stage
def accelerate(m, d):
    """qacc and qacc_step at the present state, the rows at the solution, and what `part` says of them.

    A world whose tile has no room for all its contacts, or whose Hessian was taken apart, says so in part[FITS].
    Reads:  qpos, qvel, act, ctrl, con_fresh.
    Writes: part, con_fresh, active, qacc, qacc_step, dof_touched, qfrc_constraint, and all that a step writes; aba_*,
            block, cacc, cfrc, qH, qHDiagInv, qLU, qvec for itself.
    """
    overflow = place(m, d)
    d.part[FITS], d.part[NEAREST] = zero(d), zero(d)
    if overflow == 0:
        forward_velocity(m, d)
        control_and_actuate(m, d)
        smooth_acceleration(m, d)
        make_rows(m, d)
        mark_touched(m, d)
        solve(m, d)
        if d.con_overflow[0] == 0:
            turn_free_bodies(m, d)
            constraint_forces(m, d, store=0)
            d.part[FITS], d.part[NEAREST] = real(d, 1.0), switching_distance(m, d)
            release_metric(m, d)
            implicit_acceleration_of(m, d, d.qacc)


@stage
def base_tile(m, d, b, thread, tile):
    """Accelerations of the worlds at the states where derivatives are taken: qacc, and qacc_step of the integrator.

    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; part, con_fresh, active, qacc_step, dof_touched, qfrc_constraint, and all else of
            this thread's workspace; aba_*, block, cacc, cfrc, qH, qHDiagInv, qLU, qvec for itself.
    """
    W = width(d)
    accelerate(m, d)
    write_records(b, thread, tile, W, 0)


base_tiles = in_each_tile("base_tiles", base_tile)


# ---- rates of the residual -------------------------------------------------------------------------------------------
@kernel
def keep_upper(m, d):
    """g, p and the next activations at the upper point."""
    store_residual(m, d, d.rk.acceleration, d.rk.velocity)
    advance_activations(m, d, d.act_dot)
    for a in range(m.na):
        d.rk.act[a] = d.act[a]


@kernel
def difference_quotient(m, d, span):
    """What was kept, less the same at the lower point, over the span between them."""
    store_residual(m, d, d.rk.rate, d.rk.qvel)
    advance_activations(m, d, d.act_dot)
    s = where(span > 0.0, 1.0, 0.0) / where(span > 0.0, span, 1.0)
    for i in range(m.nv):
        d.rk.acceleration[i] = (d.rk.acceleration[i] - d.rk.rate[i]) * s
        d.rk.velocity[i] = (d.rk.velocity[i] - d.rk.qvel[i]) * s
    for a in range(m.na):
        d.rk.act[a] = (d.rk.act[a] - d.act[a]) * s


@stage
def position_columns_of_tile(m, d, b, thread, tile):
    """Rates of the residual by positions, dof by dof: central differences at fixed acceleration.

    Contacts are found anew at each point.
    Reads:  the rows that the transfers of b bring in, qacc and qacc_step among them.
    Writes: those that they take back; rk.acceleration (g), rk.velocity (p), rk.*; qpos, act, primal.*, con_fresh,
            con_overflow, active, and all else of this thread's workspace; Mhat, block, cacc, cfrc, qH, qHDiagInv,
            qproduct, qvec for itself.
    """
    W = width(d)
    for s in range(b.nstep):
        load_worlds(b, thread, tile, W)
        read_controls(b, thread, tile, W, s)
        at, up, down = d.qacc_smooth[0], d.qfrc_smooth[0], d.qfrc_passive[0]
        move_pos(m, d, at, up)
        push(m, d, place(m, d))
        keep_upper(m, d)
        load_worlds(b, thread, tile, W)
        move_pos(m, d, at, -down)
        push(m, d, place(m, d))
        difference_quotient(m, d, up + down)
        if refines(m):
            refine_equalities(m, d, b, thread, tile, W, at, up, down)
        write_records(b, thread, tile, W, s)


position_columns = in_each_tile("position_columns", position_columns_of_tile)


@kernel
def move_forces(m, d, at, step):
    """Velocity, activation or control number `at` moved."""
    move(d.qvel, m.nv, at, step, m.nv)
    move(d.act, m.na, at, step, 2 * m.nv)
    move(d.ctrl, m.nu, at, step, 2 * m.nv + m.na)


@stage
def force_columns_of_tile(m, d, b, thread, tile):
    """Rates of the residual by velocities, activations and controls: central differences at fixed acceleration.

    Bodies and contacts stay where they are.
    Reads:  the rows that the transfers of b bring in, qacc and qacc_step among them.
    Writes: those that they take back; rk.acceleration (g), rk.velocity (p), rk.*; qvel, act, ctrl, primal.*, con_fresh,
            con_overflow, active, and all else of this thread's workspace; Mhat, block, cacc, cfrc, qH, qHDiagInv,
            qproduct, qvec for itself.
    """
    W = width(d)
    overflow = place(m, d)
    for s in range(b.nstep):
        load_worlds(b, thread, tile, W)
        read_controls(b, thread, tile, W, s)
        at, up, down = d.qacc_smooth[0], d.qfrc_smooth[0], d.qfrc_passive[0]
        move_forces(m, d, at, up)
        push(m, d, overflow)
        keep_upper(m, d)
        load_worlds(b, thread, tile, W)
        move_forces(m, d, at, -down)
        push(m, d, overflow)
        difference_quotient(m, d, up + down)
        write_records(b, thread, tile, W, s)


force_columns = in_each_tile("force_columns", force_columns_of_tile)


@stage
def parameter_points_of_tile(m, d, b, thread, tile):
    """The residual of worlds that have each a number of its model moved, and their next activations.

    Reads:  the rows that the transfers of b bring in, qacc and qacc_step among them.
    Writes: those that they take back; rk.acceleration (g), rk.velocity (p), rk.*; act, primal.*, con_fresh,
            con_overflow, active, and all else of this thread's workspace; Mhat, block, cacc, cfrc, qH, qHDiagInv,
            qproduct, qvec for itself.
    """
    W = width(d)
    push(m, d, place(m, d))
    keep_upper(m, d)
    write_records(b, thread, tile, W, 0)


parameter_points = in_each_tile("parameter_points", parameter_points_of_tile)


# ---- what the acceleration makes of them -----------------------------------------------------------------------------
@kernel
def solve_column(m, d):
    """rk_acceleration <- da = -H^-1 dg of the column in `grad`; free bodies that turn by themselves by their own."""
    for i in range(m.nv):
        x = -d.primal.grad[i]
        d.qvec[i] = x
        d.rk.velocity[i] = x
    substitute(m, d, d.qvec)
    if has_metric(m):
        solve_untouched_bodies(m, d, metric(m, d), d.rk.velocity, d.qvec)
    for i in range(m.nv):
        d.rk.acceleration[i] = d.qvec[i]


@kernel
def step_column(m, d, at, damped):
    """qacc_step <- da*, rk.rate <- dq', rk.velocity <- dv' of the column of coordinate `at`; damped as `is_damped`."""
    h = timestep(m)
    if is_implicit(m):
        # K da* = M da + dp
        inertia_times(m, d, d.rk.acceleration, d.primal.Ma)
        for i in range(m.nv):
            d.qfrc_smooth[i] = d.primal.Ma[i] + d.qfrc_inverse[i]
            d.qfrc_constraint[i] = zero(d)
        implicit_rates(m, d, d.qfrc_smooth, d.rk.acceleration, damped)
    else:
        for i in range(m.nv):
            d.qacc_step[i] = d.rk.acceleration[i]
    for i in range(m.nv):
        d.qvec[i] = where(at == 1.0 * i, 1.0, 0.0)
        d.rk.velocity[i] = fma(h, d.qacc_step[i], where(at == 1.0 * (m.nv + i), 1.0, 0.0))
    advance_tangent(m, d, d.qvec, d.rk.velocity, d.rk.qvel, h, d.rk.rate)


@stage
def solve_columns_of_tile(m, d, b, thread, tile):
    """From rates of the residual to those of the acceleration and of the next state, column by column.

    da = -H^-1 dg;  K da* = M da + dp;  dv' = dv + h da*;  dq' as in tangent.py.
    Reads:  the rows that the transfers of b bring in: dg in primal.grad, dp in qfrc_inverse, room for da in
            rk.acceleration.
    Writes: those that they take back; part, rk.*, rk.acceleration (da), qacc_step, rk.rate (dq'), rk.velocity (dv');
            qvec, qfrc_smooth, qfrc_constraint, con_fresh, dof_touched, active, and all else of this thread's workspace;
            primal.*, aba_*, block, cacc, cfrc, qH, qHDiagInv, qLU for itself.
    """
    W = width(d)
    accelerate(m, d)
    h = timestep(m)
    for i in range(m.nv):
        d.rk.qvel[i] = fma(h, d.qacc_step[i], d.qvel[i])
    damped = is_damped(m, d)
    if d.con_overflow[0] == 0:
        factor_hessian(m, d)
    if d.con_overflow[0]:
        d.part[FITS] = zero(d)
        write_records(b, thread, tile, W, 0)
    else:
        d.part[FITS] = where(leaves_out(d), 0.0, d.part[FITS])
        if uses_articulated(m):
            # the recursion of the integrator lies where that of the Hessian does: one after the other
            for s in range(b.nstep):
                read_controls(b, thread, tile, W, s)
                solve_column(m, d)
                write_records(b, thread, tile, W, s)
            for s in range(b.nstep):
                read_controls(b, thread, tile, W, s)
                step_column(m, d, d.qacc_smooth[0], damped)
                write_records(b, thread, tile, W, s)
        else:
            for s in range(b.nstep):
                read_controls(b, thread, tile, W, s)
                at = d.qacc_smooth[0]
                solve_column(m, d)
                step_column(m, d, at, damped)
                write_records(b, thread, tile, W, s)


solve_columns = in_each_tile("solve_columns", solve_columns_of_tile)
