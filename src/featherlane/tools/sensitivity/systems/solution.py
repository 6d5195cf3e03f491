"""Accelerations of worlds by forward dynamics, and their derivatives from those of the residual.

    g(a; x, u) = M a + c - tau - J^T f(J a - aref)

is zero at the acceleration of forward dynamics, so da = -H^-1 dg, with dg at fixed a and H = dg/da the Hessian of the
solver.  An integrator that treats forces implicitly uses another acceleration, K a* = tau - c + J^T f with
K = M - h D.  Its derivative also needs  p = M a - K a*  at fixed a and a*:  K da* = M da + dp.

The worlds of a tile occupy its lanes and process the columns one after the other.  If there is only one world, all
lanes hold it and each lane processes other columns.  The record p (records.py), not the correction p above, has the
inputs and outputs of one column, the derivatives by one coordinate: dg, dp of the formulas; da, dq, dv of the
acceleration, the next position and the next velocity; at: the coordinate's index, positions by dof first, then
velocities, activations, controls, forces; next_qvel, v'; force, the right-hand side -dg; product, M da.
qacc is a, qacc_step is a*.  With the no-slip solver there are two accelerations a, see `_exchange_accelerations`.
report[FITS]: 1 if the world was solved, report[NEAREST]: distance to the next change of the active set (switching.py),
report[KNOWN]: 1 if all have formulas; report[HELD], the same entry in `base_tile` alone: 1 if the world has rows.

Imported: `implicit_acceleration`, `implicitfast_acceleration` and `euler_acceleration` write qacc_step = a* and leave
the factor of K; `..._again` solves K qacc_step = x with this factor.  `substitute` overwrites its argument x with
H^-1 x, with the factor of `factor_hessian`.  con_overflow: 1 if contacts, rows or factors do not fit into the tile.

Under the integrator `discrete` (has_metric) M is the metric Mhat = M + h D + h^2 K, and single free bodies without
rows, those of trees with dof_touched = 0, have the derivative of their gyroscopic forces in addition.
A stage `..._of_tile` works on one tile of worlds.  The transfers of its record b copy worlds and columns into the tile
and results out of it; b.nstep is the number of columns.
Source: the implicit function theorem.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.collision import collision
from featherlane.engine.constraint.metric_rows import release_metric
from featherlane.engine.constraint.row import make_rows
from featherlane.engine.dynamics.inertia.articulated import inertia_times, uses_articulated
from featherlane.engine.dynamics.inertia.metric import metric
from featherlane.engine.dynamics.integrator.free_body import solve_untouched_bodies
from featherlane.engine.dynamics.integrator.implicit import implicit_acceleration, implicit_again
from featherlane.engine.dynamics.integrator.integrate import (
    damps_implicitly,
    euler_acceleration,
    euler_again,
    implicitfast_acceleration,
    implicitfast_again,
    is_implicit,
)
from featherlane.engine.dynamics.integrator.smooth import smooth_acceleration
from featherlane.engine.model.integrator import has_metric
from featherlane.engine.simulation.step.early_contacts import early_contacts, forces_need_contacts
from featherlane.engine.simulation.step.forward import control_and_actuate, forward_position, forward_velocity
from featherlane.engine.simulation.tile.rows import write_records
from featherlane.engine.simulation.tile.tiles import in_each_tile
from featherlane.engine.solver.dual.problem import store_constraint_force
from featherlane.engine.solver.dual.rows import all_fit
from featherlane.engine.solver.free_bodies import accelerate_untouched_bodies, mark_touched
from featherlane.engine.solver.hessian.equation import factor_hessian, leaves_out, substitute
from featherlane.engine.solver.inverse import constraint_forces
from featherlane.engine.solver.primal.krylov import correct_direction, mark_slipping
from featherlane.engine.solver.solve import has_constraint_rows, solve
from featherlane.tools.sensitivity.columns.system import System, columns_of
from featherlane.tools.sensitivity.rates.coordinates import copy
from featherlane.tools.sensitivity.rates.records import COLUMNS, FITS, HELD, NEAREST
from featherlane.tools.sensitivity.systems.switching import switching_distance
from featherlane.tools.sensitivity.systems.tangent import advance_state, store_next_velocity

EXACT, CYCLES = 1e-13, 10  # residual of a column's solution under Coulomb's law, relative; cycles to reach it


# ---- the metric of the integrator ------------------------------------------------------------------------------------
@kernel
def implicit_acceleration_of(m, d, free):
    """qacc_step <- K^-1 (qfrc_smooth + qfrc_constraint), the integrator's acceleration a*.

    free: acceleration of forward dynamics, which is a* where the integrator treats no force implicitly.
    """
    if m.opt_integrator == IMPLICIT:
        implicit_acceleration(m, d)
    elif m.opt_integrator == IMPLICITFAST:
        implicitfast_acceleration(m, d)
    elif m.opt_integrator == EULER:
        euler_acceleration(m, d, free)
    else:
        for i in range(m.nv):
            d.qacc_step[i] = free[i]


@kernel
def is_damped(m, d):
    """Returns the mask of worlds where the K of an integrator with `is_implicit` is not M.

    Under euler they are the worlds with damping, else all.
    """
    damped = true_mask(d)
    if m.opt_integrator == EULER:
        damped = damps_implicitly(m, d)
    return damped


@kernel
def implicit_rates(m, d, x, free, damped):
    """qacc_step <- K^-1 x, with the factor of K that `implicit_acceleration_of` left.

    Args:
        x: a right-hand side by dof.  The caller also stores it in qfrc_smooth, and 0 in qfrc_constraint, because
            `implicitfast_again` reads their sum for free bodies.
        free: the result in worlds where K is M; used with the integrator euler only.
        damped: the mask of `is_damped`, worlds where K is not M; used with the integrator euler only.
    """
    if m.opt_integrator == IMPLICIT:
        implicit_again(m, d, x)
    elif m.opt_integrator == IMPLICITFAST:
        implicitfast_again(m, d, x)
    else:
        euler_again(m, d, x)
        for i in range(m.nv):
            d.qacc_step[i] = where(damped, d.qacc_step[i], free[i])


# ---- the present state -----------------------------------------------------------------------------------------------
@kernel
def compute_position(m, d, p):
    """Computes all that depends on the position; returns 1 if the contacts do not fit into the tile, else 0.

    p: unused.
    """
    forward_position(m, d)
    d.con_fresh[0] = 0  # no stage may reuse contacts of an earlier position
    if forces_need_contacts(m):
        early_contacts(m, d)  # detects contacts, and computes the inputs of adhesion forces
    else:
        collision(m, d)
    return d.con_overflow[0]


@kernel
def _exchange_accelerations(m, d):
    """qacc <- the main solver's acceleration, dual.start <- the no-slip solver's; equal in worlds without rows.

    Before the call qacc is the no-slip solver's, and dual.start the main solver's.
    """
    has_rows = has_constraint_rows(m, d)
    for i in range(m.nv):
        after_noslip = d.qacc[i]
        d.qacc[i] = where(has_rows, d.dual.start[i], after_noslip)
        d.dual.start[i] = after_noslip


@kernel
def _find_row_forces(m, d, p):
    """qfrc_constraint <- the forces of the rows; report[FITS], report[NEAREST] <- those of the main solver's solution.

    With the no-slip solver, the forces are that solver's, and qacc and dual.start are exchanged.
    """
    has_noslip = m.opt_noslip_iterations > 0
    if has_noslip:
        _exchange_accelerations(m, d)
    constraint_forces(m, d, store=0)  # the forces at qacc; the solver's forces of the rows stay
    p.report[FITS], p.report[NEAREST] = 1.0, switching_distance(m, d)
    if has_noslip:
        store_constraint_force(m, d)
        # the no-slip solver leaves out rows that do not fit
        if d.nrow[0] + d.ncon_slot[0] > 0 and not all_fit(d):
            p.report[FITS] = 0.0


@stage(p=COLUMNS)
def accelerate_state(m, d, p):
    """Computes qacc and qacc_step in the present state, and `report`, with the rows at the solution.

    With the no-slip solver, qacc is the main solver's acceleration, and qacc_step the one that follows from all forces.
    report[FITS] is 0 in a world whose tile cannot hold all contacts, or whose no-slip solver lacked some rows.
    Reads:  qpos, qvel, act, ctrl, con_fresh.
    Writes: report, con_fresh, active, qacc, qacc_step, dof_touched, qfrc_constraint, and all that a step writes;
            dual.start, with the no-slip solver its acceleration.
    Scratch: aba_*, block, block_*, cacc, cfrc, con_wrench, qDeriv, qH, qHDiagInv, qLU, qvec.
    """
    p.report[FITS], p.report[NEAREST] = 0.0, 0.0
    if compute_position(m, d, p) == 0:
        forward_velocity(m, d)
        control_and_actuate(m, d)
        smooth_acceleration(m, d)
        make_rows(m, d)
        mark_touched(m, d)  # dof_touched
        solve(m, d)
        if d.con_overflow[0] == 0:
            accelerate_untouched_bodies(m, d)  # qacc of untouched free bodies, under `discrete`
            _find_row_forces(m, d, p)
            release_metric(m, d)  # takes inertial forces of `discrete` out of qfrc_constraint
            # the final acceleration of forward dynamics: the no-slip solver's, or qacc
            implicit_acceleration_of(m, d, d.dual.start if m.opt_noslip_iterations > 0 else d.qacc)


@stage(p=COLUMNS)
def base_tile(m, d, b, p, thread, tile):
    """Computes accelerations in the states at which derivatives are taken: qacc, and qacc_step of the integrator.

    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; report, con_fresh, active, qacc_step, dof_touched, qfrc_constraint, and all else
            of this thread's workspace.
    Scratch: aba_*, block, block_*, cacc, cfrc, qH, qHDiagInv, qLU, qvec.
    """
    accelerate_state(m, d, p)
    p.report[HELD] = where(has_constraint_rows(m, d), 1.0, 0.0)
    write_records(b, thread, tile, s=0)  # each world has one result


base_tiles = in_each_tile("base_tiles", base_tile)


# ---- rates of the acceleration ---------------------------------------------------------------------------------------
@kernel
def follow_bounds(m, d):
    """krylov.x <- (1 - H^-1 N)^-1 krylov.newton, after `mark_slipping`.

    N: the derivative of the friction forces by their bounds, which follow the normal forces under Coulomb's law.
    Returns the mask of worlds without a solution to EXACT.
    """
    return correct_direction(m, d, true_mask(d), EXACT, CYCLES)


@kernel
def solve_column(m, d, p):
    """Computes da = P - H^-1 dg, with the factor of H in this thread's workspace; solved <- -H^-1 dg.

    If dg is a difference quotient, the acceleration moved by P (p.follow) per unit of the coordinate, so p.dg is H P
    more than dg at fixed acceleration.  If dg has a formula, P is 0.
    Under `discrete`, single free bodies without rows are solved separately.
    Under Coulomb's law the derivative of the residual is H - N, see `follow_bounds`.
    """
    for i in range(m.nv):
        x = -p.dg[i]
        p.solved[i] = x
        p.force[i] = x  # the right-hand side, which `substitute` overwrites in `solved`
    substitute(m, d, p.solved)  # solved <- H^-1 solved
    if m.opt_contact_model == COULOMB:
        copy(p.solved, m.nv, d.krylov.newton, first=0)  # input of `follow_bounds`
        p.report[FITS] = where(follow_bounds(m, d), 0.0, p.report[FITS])
        copy(d.krylov.x, m.nv, p.solved, first=0)
    if has_metric(m):  # `discrete`: untouched free bodies have M + h d(gyroscopic force) / dv in place of H
        solve_untouched_bodies(m, d, metric(m, d), p.force, p.solved)
    for i in range(m.nv):
        p.da[i] = p.follow[i] + p.solved[i]


@kernel
def step_column(m, d, p, at, damped):
    """Computes p.dq and p.dv, the derivatives of the next state by coordinate `at`, from p.da; qacc_step <- da*.

    damped: the mask of `is_damped`.
    """
    if is_implicit(m):
        # K da* = M da + dp; `implicit_rates` reads the right-hand side in qfrc_smooth
        inertia_times(m, d, p.da, p.product)
        for i in range(m.nv):
            d.qfrc_smooth[i] = p.product[i] + p.dp[i]
            d.qfrc_constraint[i] = 0.0
        implicit_rates(m, d, d.qfrc_smooth, p.da, damped)
    else:
        copy(p.da, m.nv, d.qacc_step, first=0)
    advance_state(m, p, at, d.qacc_step)


@kernel
def _solve(m, d, p, s):
    """da <- the derivative of the acceleration, for column s."""
    solve_column(m, d, p)


@kernel
def _step(m, d, p, s, damped):
    """dq, dv <- the derivatives of the next state, for column s."""
    step_column(m, d, p, p.at[0], damped)


#: the convex system; its residual is given, by formulas.py or differences.py
CONVEX = System(solve=_solve, step=_step, switching=switching_distance)
_solved_columns, _stepped_columns = columns_of(System(solve=_solve)), columns_of(System(step=_step))
_solved_and_stepped_columns = columns_of(CONVEX)


@stage(p=COLUMNS)
def solve_columns_of_tile(m, d, b, p, thread, tile):
    """Converts rates of the residual to those of the acceleration and of the next state, column by column.

    da = follow - H^-1 dg, with dg at accelerations that change by `follow`;  K da* = M da + dp;  dv' = dv + h da*;
    dq' as in tangent.py.
    Reads:  the rows that the transfers of b bring in: dg, dp, follow, memory for da.
    Writes: those that they take back; report, next_qvel, dof_tangent, dof_back, da, dq, dv, solved,
            force, product; qacc_step, qfrc_smooth, qfrc_constraint, con_fresh, dof_touched, active, and all else of
            this thread's workspace.
    Scratch: qvec, primal.*, krylov.*, con_motion, con_wrench, aba_*, block, block_*, cacc, cfrc, qH, qHDiagInv, qLU.
    """
    accelerate_state(m, d, p)
    store_next_velocity(m, d, p, d.qacc_step)
    damped = is_damped(m, d)
    if d.con_overflow[0] == 0:  # the contacts fit into the tile
        factor_hessian(m, d)  # con_overflow <- 1 if no factorization fits
    if d.con_overflow[0]:
        p.report[FITS] = 0.0
        write_records(b, thread, tile, s=0)  # the report
    else:
        # a Hessian that was decomposed into parts leaves entries out
        p.report[FITS] = where(leaves_out(d), 0.0, p.report[FITS])
        if m.opt_contact_model == COULOMB:
            mark_slipping(d, true_mask(d))
        # inputs of a column: p.at, p.dg, p.dp, p.follow
        if uses_articulated(m):
            # the factors of the integrator and of the Hessian share memory, so these solves run one after the other
            _solved_columns(m, d, b, p, thread, tile, damped)
            _stepped_columns(m, d, b, p, thread, tile, damped)  # reads p.da, which the first loop wrote out
        else:
            _solved_and_stepped_columns(m, d, b, p, thread, tile, damped)


solve_columns = in_each_tile("solve_columns", solve_columns_of_tile)
