"""Computes the columns of a step's derivative under the contact model lcp, tile by tile.

A coordinate is displaced up and down, with the forces of the rows held fixed, and the step's acceleration and the rows'
slack are differenced.  This takes two evaluations of the rows, without solver or collision detection.  The change of
the forces follows from a linear system (lcp_solution.py), and

    da = da at fixed x + Mh^-1 J^T dx,      dv' = dv + h da,      dq' as in tangent.py.

All lanes of a tile have the same coordinate.

x: forces of the LCP's rows, lcp.w: their slack A x - b, n: their number; findex: normal row of a friction row, else
-1; hi, add: its bounds are +-(hi x_n + add), hi = mu; diag: A_ii.  lcp.g, lcp.dx: scratch memory of the solver.  Mh:
mass matrix of the step; qacc_step: acceleration without the rows' forces.

The record p (lcp_rates.py) has row_x, the forces of the own state, row_count of them; row_first, those that determine
the bounds of friction; for column s the values at fixed forces, col_acceleration, col_act, col_w, col_first (the slack
of the forces row_first), by rows: entry (s, i) is col_...[s n + i]; row_dx, the derivatives of the forces in one
column; row_free, 1 for rows between their bounds.  Positions by dof are coordinates 0 to nv - 1, then follow
velocities, activations, controls, forces.  report[KNOWN]: 1 in worlds with derivatives; report[NEAREST]: distance to
the next change of the active set.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.collision import collision
from featherlane.engine.constraint.row import make_rows
from featherlane.engine.constraint.surface import has_static_friction
from featherlane.engine.dynamics.actuator.activation import advance_activations
from featherlane.engine.dynamics.actuator.adhesion import has_adhesion
from featherlane.engine.dynamics.integrator.smooth import smooth_acceleration
from featherlane.engine.simulation.step.forward import control_and_actuate, forward_position, forward_velocity
from featherlane.engine.simulation.tile.rows import load_worlds, write_records
from featherlane.engine.simulation.tile.tiles import in_each_tile
from featherlane.engine.solver.lcp.rows.assembly import make_lcp
from featherlane.engine.solver.lcp.rows.contact_reduction import mark_contacts_with_rows
from featherlane.engine.solver.lcp.rows.metric import accelerate_by_rows, sum_solution_rows
from featherlane.engine.solver.lcp.step import find_forces, is_dense_solver
from featherlane.engine.solver.lcp.sweep.product import compute_w
from featherlane.engine.solver.lcp.sweep.residual import solution_size
from featherlane.tools.sensitivity.columns.system import Stages, System, columns_of, difference_columns
from featherlane.tools.sensitivity.rates.contact_moves import STEP, contact_moves
from featherlane.tools.sensitivity.rates.coordinates import copy, difference_quotient
from featherlane.tools.sensitivity.rates.records import KNOWN, NEAREST
from featherlane.tools.sensitivity.systems.lcp_cone import project_side_on_cones, sort_cones
from featherlane.tools.sensitivity.systems.lcp_rates import LCP_RATES
from featherlane.tools.sensitivity.systems.lcp_rows import (
    compare_rows,
    evaluate_rows,
    find_shifts,
    place_contacts,
    store_contacts,
    store_rows,
)
from featherlane.tools.sensitivity.systems.lcp_solution import (
    factor_system,
    follow_normals,
    form_system,
    nearest_switch,
    solve_system,
    sort_rows,
)
from featherlane.tools.sensitivity.systems.switching import limit_distance
from featherlane.tools.sensitivity.systems.tangent import advance_state, store_next_velocity


# ---- the world's present state ---------------------------------------------------------------------------------------
@kernel
def freezes(m):
    """Returns whether bounds of friction are fixed at the normal forces of the problem without friction ("frozen")."""
    return m.opt_lcp_solver == DANTZIG and m.opt_lcp_friction == FROZEN


@kernel
def has_cones(m):
    """Returns whether friction is bounded by round cones."""
    return m.opt_lcp_cone == CONE and not is_dense_solver(m)


@kernel
def _place_world(m, d, p):
    """Computes positions and contacts, and stores them with their derivatives (`contact_moves`, `store_contacts`).

    con_present <- 0 for contacts in their gap, which have no row (D = 0): displaced poses need not have these contacts.
    """
    forward_position(m, d)
    d.con_fresh[0] = 0
    collision(m, d)
    if d.con_overflow[0] == 0:
        mark_contacts_with_rows(m, d)  # con_D > 0 if a contact has rows, else 0
        for k in range(d.ncon_slot[0]):
            c = d.contact[k]
            c.present = where(c.D > 0.0, c.present, 0.0)
        contact_moves(m, d, p)
        store_contacts(m, d, p)


@kernel
def _smooth_forces(m, d):
    """Computes qfrc_smooth, all forces but those of the rows."""
    forward_velocity(m, d)
    control_and_actuate(m, d)
    smooth_acceleration(m, d)


@kernel
def _store_forces(m, d, p):
    """row_x <- the forces of the solution; row_first <- in `frozen` mode the forces without friction, else row_x."""
    n = d.lcp.n[0]
    copy(d.lcp.x, n, p.row_x, first=0)
    if freezes(m):
        # solve again with bounds 0 for friction (rows with a normal row, findex): hi = mu, add = its constant part
        for r in range(n):
            if d.lcp.findex[r] >= 0:
                d.lcp.hi[r] = 0.0
                d.lcp.add[r] = 0.0
        find_forces(m, d)
    copy(d.lcp.x, n, p.row_first, first=0)


@kernel
def _solve_world(m, d, p):
    """Computes the step's rows and forces (row_x, row_first); returns 1, or 0 if contacts or rows do not fit."""
    _place_world(m, d, p)  # con_overflow: 1 if contacts do not fit
    fits = 0
    if d.con_overflow[0] == 0:
        _smooth_forces(m, d)
        make_rows(m, d)
        make_lcp(m, d)
        # rate_nrow: rows for which p has memory; a dense solver leaves islands with more than nlcpone rows to the
        # iterative one, which does not freeze bounds of friction
        capacity = min(p.rate_nrow, d.nlcpone) if is_dense_solver(m) else p.rate_nrow
        if d.con_overflow[0] == 0 and d.lcp.n[0] <= capacity:
            find_forces(m, d)
            _store_forces(m, d, p)  # row_x, row_first
            fits = 1
    return fits


@kernel
def _evaluate(m, d, p, store):
    """Computes qacc, the next activations act and the slack lcp.w in the present state, at the forces row_x.

    In `frozen` mode, lcp.g <- the slack at the forces row_first.
    store: 1 in the own state, whose rows and branches are stored; 0: rows_same <- 0 in worlds whose rows differ.
    """
    _smooth_forces(m, d)
    evaluate_rows(m, d, p, store)
    if store:
        store_rows(d, p)
    else:
        compare_rows(d, p)
    # with another number of rows, forces and rows do not correspond: nothing is computed, and rows_same is 0
    if d.lcp.n[0] == p.row_count[0]:
        if freezes(m):
            copy(p.row_first, d.lcp.n[0], d.lcp.x, first=0)
            compute_w(d)  # lcp.w <- the slack at the forces lcp.x
            copy(d.lcp.w, d.lcp.n[0], d.lcp.g, first=0)
        copy(p.row_x, d.lcp.n[0], d.lcp.x, first=0)
        compute_w(d)  # lcp.w, and lcp.z for the accelerations
        accelerate_by_rows(m, d)  # qacc <- qacc_step + Mh^-1 J^T x, from lcp.z
        advance_activations(m, d, d.act_dot)  # act <- the next activations


# ---- columns at fixed forces -----------------------------------------------------------------------------------------
@kernel
def _place_column(m, d, p):
    """Places bodies at a displaced point; slot_shift <- derivatives of the contacts by the column's coordinate.

    Returns 0, which is unused.
    """
    c = whole(read_lane(p.at, 0, 0))  # the coordinate as an int, the same in all lanes
    find_shifts(m, d, p, c if c < m.nv else -1)  # only positions move contacts
    forward_position(m, d)
    return 0


@kernel
def _evaluate_at_point(m, d, p, step, given):
    """Calls `_evaluate` at a point that is displaced by `step`."""
    place_contacts(d, p, step)
    _evaluate(m, d, p, store=0)


@kernel
def _store_upper(m, d, p, s):
    """Column s of col_acceleration, col_act, col_w and col_first <- qacc, act, lcp.w and lcp.g at the upper point.

    The slacks are left out if the point has another number of rows, for which rows_same is 0.
    """
    n = d.lcp.n[0]
    copy(d.qacc, m.nv, p.col_acceleration, s * m.nv)
    copy(d.act, m.na, p.col_act, s * m.na)
    if n == p.row_count[0]:
        copy(d.lcp.w, n, p.col_w, s * n)
        copy(d.lcp.g, n, p.col_first, s * n)


@kernel
def _store_quotients(m, d, b, p, thread, tile, s, scale):
    """Column s of the fields of `_store_upper` <- (stored upper values - present lower ones) scale.

    scale: 1 / (up + down).
    """
    n = d.lcp.n[0]
    difference_quotient(d.qacc, m.nv, p.col_acceleration, s * m.nv, scale)
    difference_quotient(d.act, m.na, p.col_act, s * m.na, scale)
    if n == p.row_count[0]:
        difference_quotient(d.lcp.w, n, p.col_w, s * n, scale)
        # lcp.g: in `frozen` mode, the slack at the forces row_first (see `_evaluate`)
        difference_quotient(d.lcp.g, n, p.col_first, s * n, scale)


#: col_* <- derivatives at fixed forces by all coordinates of the call
_difference_columns = difference_columns(_place_column, _evaluate_at_point, _store_upper, _store_quotients)


# ---- change of the forces --------------------------------------------------------------------------------------------
@kernel
def _evaluate_own_state(m, d, b, p, thread, tile, store):
    """Restores the worlds' own state and rows, and evaluates it; store: as for `_evaluate`."""
    load_worlds(b, thread, tile)
    forward_position(m, d)
    find_shifts(m, d, p, j=-1)  # slot_shift <- 0
    place_contacts(d, p, step=0.0)
    _evaluate(m, d, p, store)


@kernel
def _bounding_forces(m, p):
    """Returns the forces that determine the bounds of friction."""
    return p.row_first if freezes(m) else p.row_x


@kernel
def _nearest_change(m, d, p):
    """Returns the distance to the nearest change of the active set, at most FAR: the least of these distances.

        joint or tendon near its limit           `limit_distance`
        a row's force reaches or leaves a bound  `nearest_switch`
        limit of a slide or hinge, contact       the law changes to another case: change / A_rr / size, with
                                                 change = margin of velocity (dof_edge, slot_edge) / h
        limit of a ball or tendon                the same, with change = gap / h^2
        contact of flat faces that a rotation    STEP
            separates (slot_flat, lcp_rows.py)
        contact in its gap, without a row        its gap [m]

    change: that of the row's right-hand side [m/s^2], see `_least_of_row`; size: of the forces [N].
    """
    h, size = timestep(m), solution_size(d, p.row_x)  # size of the forces [N]
    least = fmin(limit_distance(m, d), nearest_switch(d, p.row_x, _bounding_forces(m, p), d.lcp.w, size, has_cones(m)))
    for k in range(d.nrow[0]):
        if d.row_type[k] in (LIMIT_JOINT, LIMIT_TENDON):
            change = fabs(d.row_pos[k] - d.row_margin[k]) / (h * h)  # limit of a ball or tendon
            if k < d.ndofrow[0]:  # limit of a slide or hinge
                change = p.dof_edge[k] / h
            least = _least_of_row(d, d.row_lcprow[k], change, size, d.row_present[k] > 0.0, least)
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        if c.lcprow >= 0:
            least = _least_of_row(d, c.lcprow, p.slot_edge[k] / h, size, c.D > 0.0, least)
        gap = c.dist - c.includemargin
        # flat faces in contact tilt over one edge or another; STEP: the displacement at which this was found [m, rad]
        flat = (p.slot_flat[k] > 0.0) & (c.D > 0.0)
        least = where(flat, fmin(least, STEP), least)
        waits = (c.present > 0.0) & (c.D == 0.0) & (gap > 0.0)  # in its gap, without a row
        least = where(waits, fmin(least, gap), least)
    return least


@kernel
def _least_of_row(d, r, change, size, present, least):
    """Returns the smaller of `least` and F / size, with F = change / A_rr the force that has the same effect.

    change: that of the right-hand side of row r [m/s^2]; size: of the forces [N]; present: mask of worlds with the
    row; r is -1 if the LCP lacks it.
    """
    diag = d.lcp.diag[r] if r >= 0 else 1.0
    return where(present, fmin(least, fabs(change) / (where(diag > 0.0, diag, 1.0) * size)), least)


@kernel
def _solve_first_columns(m, d, b, p):
    """col_first <- dx = -(A_FF + cfm)^-1 dw_F, derivatives of the forces row_first; F: their free rows, no friction.

    Before, col_first holds dw, the derivatives of the slack w at fixed forces.
    """
    n = d.lcp.n[0]
    sort_rows(d, p, x=p.row_first, loads=p.row_first, w=d.lcp.g, friction=0)
    form_system(m, d, p, follows=0, cones=0)
    factor_system(d, p)
    for s in range(b.nstep):  # columns
        for r in range(n):
            p.row_dx[r] = -p.col_first[s * n + r]
        solve_system(d, p)
        copy(p.row_dx, n, p.col_first, s * n)


@kernel
def _subtract_product(m, d, p):
    """row_dx of the free rows -= A times row_dx of the rows that are not free.   Scratch: lcp.x, lcp.w."""
    n = d.lcp.n[0]
    for r in range(n):
        d.lcp.x[r] = where(p.row_free[r] > 0.0, 0.0, p.row_dx[r])
    compute_w(d)  # w = A x - b
    for r in range(n):
        free = p.row_free[r] > 0.0
        p.row_dx[r] = where(free, p.row_dx[r] - (d.lcp.w[r] + d.lcp.b[r]), p.row_dx[r])  # w + b = A x


@kernel
def _solve_column(m, d, p, s):
    """qacc <- da = (da at fixed x) + Mh^-1 J^T dx in column s, with dx from the system of the free rows.

    The right-hand side of a free row is -dw.  Sliding friction that is not free has dx = s dx_n (`follow_normals`):
        `frozen` mode  with dx_n in col_first, known before the solution: A times dx is subtracted from the right-hand
                       side
        else           with dx_n of the solution; the system contains it already (`form_system`)
    Writes: row_dx = dx.   Scratch: lcp.x, lcp.dx, lcp.z, qacc_step.
    """
    n = d.lcp.n[0]
    for r in range(n):
        p.row_dx[r] = where(p.row_free[r] > 0.0, -p.col_w[s * n + r], 0.0)
    if freezes(m):
        # dx of sliding friction is kept in lcp.dx, because `solve_system` clears it in row_dx
        follow_normals(d, p, normals=p.col_first, first=s * n)
        for r in range(n):
            d.lcp.dx[r] = where(p.row_free[r] > 0.0, 0.0, p.row_dx[r])
        _subtract_product(m, d, p)
        solve_system(d, p)
        for r in range(n):
            p.row_dx[r] = where(p.row_free[r] > 0.0, p.row_dx[r], d.lcp.dx[r])
    else:
        if has_cones(m):
            # sliding friction on a cone: projects the right-hand side on the cone's tangent
            project_side_on_cones(d, p)
        solve_system(d, p)
        follow_normals(d, p, normals=p.row_dx, first=0)
    # `accelerate_by_rows` computes qacc = qacc_step + Mh^-1 J^T x, here with derivatives in place of values
    copy(p.row_dx, n, d.lcp.x, first=0)
    sum_solution_rows(m, d)  # lcp.z, its input
    for i in range(m.nv):
        d.qacc_step[i] = p.col_acceleration[s * m.nv + i]
    accelerate_by_rows(m, d)


@kernel
def _step_column(m, d, p, s, shared):
    """da, dq, dv, dact <- derivatives by coordinate p.at: of the acceleration and of the next state.

    Reads: qacc, the derivative of the acceleration in this column; col_act of column s; next_qvel.
    """
    copy(d.qacc, m.nv, p.da, first=0)
    advance_state(m, p, p.at[0], d.qacc)
    for a in range(m.na):
        p.dact[a] = p.col_act[s * m.na + a]


#: the residual is given: `_difference_columns` stores it for all columns before the system is factorized
LCP_SYSTEM = System(solve=_solve_column, step=_step_column, switching=_nearest_change)
_columns = columns_of(LCP_SYSTEM)


@stage(p=LCP_RATES)
def lcp_columns_of_tile(m, d, b, p, thread, tile):
    """Computes rates of the acceleration and of the next state under the contact model lcp, column by column.

    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; report, da, dq, dv, dact, next_qvel; all else of p: col_*, row_*,
            rows_same, slot_*, dof_*, geom_*; qpos, qvel, act, ctrl, qfrc_applied, qacc, qacc_step, qfrc_constraint,
            con_*, row_*, row_lcprow, link_lcprow, lcp.*, stat_residual, warning, found_bad, all else of this
            thread's workspace.
    Scratch: exact.*, qH, qHDiagInv, primal.*, dual.*, one.*, geom_xpos, geom_xmat.
    """
    has_rates = _solve_world(m, d, p)  # row_x, row_first; 0 if they do not fit
    p.report[KNOWN], p.report[NEAREST] = 0.0, 0.0
    if has_rates:
        # slot_known -1: not all contacts fit at a displaced pose; adhesion and static friction have no formula here
        known = not_((p.slot_known[0] < 0.0) | has_adhesion(m, d) | has_static_friction(m))
        p.rows_same[0] = where(known, 1.0, 0.0)
        has_rates = 1 if any_(known) else 0
    if has_rates:
        # `_evaluate` must make as many rows as `make_lcp` did, else row_x does not belong to them
        rows = d.lcp.n[0]
        _evaluate_own_state(m, d, b, p, thread, tile, store=1)
        has_rates = 1 if d.lcp.n[0] == rows else 0
    if has_rates:
        store_next_velocity(m, d, p, d.qacc)
        _difference_columns(m, d, b, p, thread, tile)
        _evaluate_own_state(m, d, b, p, thread, tile, store=0)  # lcp.w and the rows of the own state again
        p.report[KNOWN] = p.rows_same[0]
        p.report[NEAREST] = _nearest_change(m, d, p)
        if freezes(m):
            _solve_first_columns(m, d, b, p)
        sort_rows(d, p, x=p.row_x, loads=_bounding_forces(m, p), w=d.lcp.w, friction=1)
        if has_cones(m):
            sort_cones(d, p, p.row_x, d.lcp.w)
        form_system(m, d, p, follows=0 if freezes(m) else 1, cones=has_cones(m))
        factor_system(d, p)
        _columns(m, d, b, p, thread, tile, shared=0)  # input of a column: p.at; shared is unused
    else:
        write_records(b, thread, tile, s=0)  # the report


lcp_columns = in_each_tile("lcp_columns", lcp_columns_of_tile)
LCP_STAGES = Stages(whole=lcp_columns)
