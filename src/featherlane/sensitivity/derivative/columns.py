"""Computes the columns of a step's derivative, tile by tile: rates of the residual, then rates of the acceleration.

A column belongs to a coordinate: a dof's position, a dof's velocity, an activation or a control.  The worlds of a tile
occupy its lanes and process the columns one after the other.  If there is only one world, all lanes hold it and each
lane processes other columns.  The record p has the inputs and outputs of a column (rates.py).
Source: the implicit function theorem; see residual.py.
"""

from featherlane.prelude import *
from featherlane.constraint.metric_rows import release_metric
from featherlane.constraint.row import make_rows
from featherlane.dynamics.inertia.articulated import inertia_times, uses_articulated
from featherlane.dynamics.inertia.metric import metric
from featherlane.dynamics.integrator.free_body import solve_untouched_bodies
from featherlane.dynamics.integrator.smooth import smooth_acceleration
from featherlane.lanes import Kernel
from featherlane.model.integrator import has_metric
from featherlane.sensitivity.derivative.points import copy, difference_quotient, displace, move_pos, per_span
from featherlane.sensitivity.derivative.rates import COLUMNS
from featherlane.sensitivity.derivative.residual import (
    compute_position,
    implicit_acceleration_of,
    implicit_rates,
    is_damped,
    is_implicit,
    refine_equalities,
    step_residual,
    unrefined,
)
from featherlane.sensitivity.derivative.switching import switching_distance
from featherlane.sensitivity.derivative.tangent import advance_tangent
from featherlane.simulation.step.forward import control_and_actuate, forward_velocity
from featherlane.simulation.tile.rows import copy_step_inputs, load_worlds, write_records
from featherlane.simulation.tile.tiles import in_each_tile
from featherlane.solver.free_bodies import mark_touched, turn_free_bodies
from featherlane.solver.hessian.equation import factor_hessian, leaves_out, substitute
from featherlane.solver.inverse import constraint_forces
from featherlane.solver.solve import solve

# indices in the report of a pass on a world; KNOWN: 1 all rates have formulas, 0 not, -1 the world must run alone
FITS, NEAREST, KNOWN = 0, 1, 2


@stage(p=COLUMNS)
def accelerate_state(m, d, p):
    """Computes qacc and qacc_step in the present state, and `report`, with the rows at the solution.

    report[FITS] is 0 in a world whose tile cannot hold all contacts, or whose Hessian was decomposed into parts.
    Reads:  qpos, qvel, act, ctrl, con_fresh.
    Writes: report, con_fresh, active, qacc, qacc_step, dof_touched, qfrc_constraint, and all that a step writes; aba_*,
            block, cacc, cfrc, qDeriv, qH, qHDiagInv, qLU, qvec for itself.
    """
    overflow = compute_position(m, d)
    p.report[FITS], p.report[NEAREST] = zero(d), zero(d)
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
            p.report[FITS], p.report[NEAREST] = real(d, 1.0), switching_distance(m, d)
            release_metric(m, d)
            implicit_acceleration_of(m, d, d.qacc)


@stage(p=COLUMNS)
def base_tile(m, d, b, p, thread, tile):
    """Computes accelerations in the states at which derivatives are taken: qacc, and qacc_step of the integrator.

    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; report, con_fresh, active, qacc_step, dof_touched, qfrc_constraint, and all else
            of this thread's workspace; aba_*, block, cacc, cfrc, qH, qHDiagInv, qLU, qvec for itself.
    """
    accelerate_state(m, d, p)
    write_records(b, thread, tile, 0)


base_tiles = in_each_tile("base_tiles", base_tile)


# ---- rates of the residual -------------------------------------------------------------------------------------------
def central_differences(point: Kernel, refine: Kernel) -> Kernel:
    """Returns the columns of a call, `(m, d, b, p, thread, tile, given)`: central differences at fixed acceleration.

    Args:
        point: `(m, d, p, at, step, given, g, lag)` evaluates g, lag and the next activations of the loaded worlds with
            coordinate `at` moved by `step`.
        refine: `(m, d, b, p, thread, tile, at, up, down)` corrects the column.
    """

    def columns(m, d, b, p, thread, tile, given):
        for s in range(b.nstep):
            load_worlds(b, thread, tile)
            copy_step_inputs(b, thread, tile, s)
            at, up, down = p.at[0], p.up[0], p.down[0]
            point(m, d, p, at, up, given, p.dg, p.dp)
            copy(d.act, m.na, p.dact, 0)
            load_worlds(b, thread, tile)
            point(m, d, p, at, -down, given, p.lower_g, p.lower_p)
            scale = per_span(up + down)
            difference_quotient(p.lower_g, m.nv, p.dg, 0, scale)
            difference_quotient(p.lower_p, m.nv, p.dp, 0, scale)
            difference_quotient(d.act, m.na, p.dact, 0, scale)
            refine(m, d, b, p, thread, tile, at, up, down)
            write_records(b, thread, tile, s)

    return kernel(columns)


@kernel
def move_forces(m, d, at, step):
    """Displaces velocity, activation or control number `at`."""
    displace(d.qvel, m.nv, at, step, m.nv)
    displace(d.act, m.na, at, step, 2 * m.nv)
    displace(d.ctrl, m.nu, at, step, 2 * m.nv + m.na)


@kernel
def _moved_bodies(m, d, p, at, step, given, g, lag):
    """Computes the residual at a displaced position, with new collision detection."""
    move_pos(m, d, at, step)
    step_residual(m, d, p, compute_position(m, d), g, lag)


@kernel
def _moved_forces(m, d, p, at, step, overflow, g, lag):
    """Computes the residual at a displaced velocity, activation or control, at the position of `compute_position`."""
    move_forces(m, d, at, step)
    step_residual(m, d, p, overflow, g, lag)


_by_positions = central_differences(_moved_bodies, refine_equalities)
_by_forces = central_differences(_moved_forces, unrefined)


@stage(p=COLUMNS)
def position_columns_of_tile(m, d, b, p, thread, tile):
    """Computes rates of the residual by position, dof by dof: central differences at fixed acceleration.

    Contacts are detected again at each point.
    Reads:  the rows that the transfers of b bring in, qacc and qacc_step among them.
    Writes: those that they take back; dg, dp, dact, lower_g, lower_p; qpos, act, primal.*, con_fresh,
            con_overflow, active, and all else of this thread's workspace; Mhat, block, cacc, cfrc, qH, qHDiagInv,
            qproduct, qvec for itself.
    """
    _by_positions(m, d, b, p, thread, tile, 0)


position_columns = in_each_tile("position_columns", position_columns_of_tile)


@stage(p=COLUMNS)
def force_columns_of_tile(m, d, b, p, thread, tile):
    """Computes rates of the residual by velocity, activation and control: central differences at fixed acceleration.

    Bodies and contacts do not move.
    Reads:  the rows that the transfers of b bring in, qacc and qacc_step among them.
    Writes: those that they take back; dg, dp, dact, lower_g, lower_p; qvel, act, ctrl, primal.*, con_fresh,
            con_overflow, active, and all else of this thread's workspace; Mhat, block, cacc, cfrc, qH, qHDiagInv,
            qproduct, qvec for itself.
    """
    _by_forces(m, d, b, p, thread, tile, compute_position(m, d))


force_columns = in_each_tile("force_columns", force_columns_of_tile)


@stage(p=COLUMNS)
def parameter_points_of_tile(m, d, b, p, thread, tile):
    """Computes the residual and the next activations of worlds with one displaced model parameter each.

    Reads:  the rows that the transfers of b bring in, qacc and qacc_step among them.
    Writes: those that they take back; dg, dp, dact; act, primal.*, con_fresh,
            con_overflow, active, and all else of this thread's workspace; Mhat, block, cacc, cfrc, qH, qHDiagInv,
            qproduct, qvec for itself.
    """
    step_residual(m, d, p, compute_position(m, d), p.dg, p.dp)
    copy(d.act, m.na, p.dact, 0)
    write_records(b, thread, tile, 0)


parameter_points = in_each_tile("parameter_points", parameter_points_of_tile)


# ---- rates of the acceleration ---------------------------------------------------------------------------------------
@kernel
def solve_column(m, d, p):
    """Computes da = -H^-1 dg; free bodies that turn independently have their own solution."""
    for i in range(m.nv):
        x = -p.dg[i]
        p.solved[i] = x
        p.force[i] = x
    substitute(m, d, p.solved)
    if has_metric(m):
        solve_untouched_bodies(m, d, metric(m, d), p.force, p.solved)
    copy(p.solved, m.nv, p.da, 0)


@kernel
def step_column(m, d, p, at, damped):
    """Computes dq' and dv' from da of the column of coordinate `at`, qacc_step <- da*; damped: see `is_damped`."""
    h = timestep(m)
    if is_implicit(m):
        # K da* = M da + dp
        inertia_times(m, d, p.da, p.product)
        for i in range(m.nv):
            d.qfrc_smooth[i] = p.product[i] + p.dp[i]
            d.qfrc_constraint[i] = zero(d)
        implicit_rates(m, d, d.qfrc_smooth, p.da, damped)
    else:
        copy(p.da, m.nv, d.qacc_step, 0)
    for i in range(m.nv):
        p.unit[i] = where(at == 1.0 * i, 1.0, 0.0)
        p.dv[i] = fma(h, d.qacc_step[i], where(at == 1.0 * (m.nv + i), 1.0, 0.0))
    advance_tangent(m, d, p.unit, p.dv, p.next_qvel, h, p.dq)


@stage(p=COLUMNS)
def solve_columns_of_tile(m, d, b, p, thread, tile):
    """Converts rates of the residual to those of the acceleration and of the next state, column by column.

    da = -H^-1 dg;  K da* = M da + dp;  dv' = dv + h da*;  dq' as in tangent.py.
    Reads:  the rows that the transfers of b bring in: dg, dp, room for da.
    Writes: those that they take back; report, next_qvel, da, dq, dv, unit, solved, force, product; qacc_step,
            qfrc_smooth, qfrc_constraint, con_fresh, dof_touched, active, and all else of this thread's workspace; qvec,
            primal.*, aba_*, block, cacc, cfrc, qH, qHDiagInv, qLU for itself.
    """
    accelerate_state(m, d, p)
    h = timestep(m)
    for i in range(m.nv):
        p.next_qvel[i] = fma(h, d.qacc_step[i], d.qvel[i])
    damped = is_damped(m, d)
    if d.con_overflow[0] == 0:
        factor_hessian(m, d)
    if d.con_overflow[0]:
        p.report[FITS] = zero(d)
        write_records(b, thread, tile, 0)
    else:
        p.report[FITS] = where(leaves_out(d), 0.0, p.report[FITS])
        if uses_articulated(m):
            # the factors of the integrator and of the Hessian share memory, so these solves run one after the other
            for s in range(b.nstep):
                copy_step_inputs(b, thread, tile, s)
                solve_column(m, d, p)
                write_records(b, thread, tile, s)
            for s in range(b.nstep):
                copy_step_inputs(b, thread, tile, s)
                step_column(m, d, p, p.at[0], damped)
                write_records(b, thread, tile, s)
        else:
            for s in range(b.nstep):
                copy_step_inputs(b, thread, tile, s)
                at = p.at[0]
                solve_column(m, d, p)
                step_column(m, d, p, at, damped)
                write_records(b, thread, tile, s)


solve_columns = in_each_tile("solve_columns", solve_columns_of_tile)
