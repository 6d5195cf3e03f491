"""Computes the columns of a step's derivative under the contact model lcp, tile by tile.

A coordinate is displaced up and down, with the forces of the rows held fixed, and the step's acceleration and the rows'
slack are differenced.  This takes two evaluations of the rows, without solver or collision detection.  The change of
the forces follows from a linear system (lcp_solution.py), and

    da = da at fixed x + Mh^-1 J^T dx,      dv' = dv + h da,      dq' as in tangent.py.

All lanes of a tile have the same coordinate.
"""

from featherlane.prelude import *
from featherlane.collision.collision import collision
from featherlane.constraint.row import make_rows
from featherlane.constraint.surface import has_static_friction
from featherlane.dynamics.actuator.activation import advance_activations
from featherlane.dynamics.actuator.adhesion import has_adhesion
from featherlane.dynamics.integrator.smooth import smooth_acceleration
from featherlane.sensitivity.derivative.contact_moves import STEP, contact_moves
from featherlane.sensitivity.derivative.differences import move_forces
from featherlane.sensitivity.derivative.lcp_cone import sort_cones, turn_side
from featherlane.sensitivity.derivative.lcp_rates import LCP_RATES
from featherlane.sensitivity.derivative.lcp_rows import (
    compare_rows,
    find_shifts,
    keep_contacts,
    keep_rows,
    place_contacts,
    rows_again,
)
from featherlane.sensitivity.derivative.lcp_solution import (
    factor_system,
    follow_normals,
    form_system,
    nearest_switch,
    solve_system,
    sort_rows,
)
from featherlane.sensitivity.derivative.points import copy, difference_quotient, displace, move_pos, per_span
from featherlane.sensitivity.derivative.solution import FITS, NEAREST
from featherlane.sensitivity.derivative.switching import limit_distance
from featherlane.sensitivity.derivative.tangent import advance_tangent
from featherlane.simulation.step.forward import control_and_actuate, forward_position, forward_velocity
from featherlane.simulation.tile.rows import copy_step_inputs, load_worlds, write_records
from featherlane.simulation.tile.tiles import in_each_tile
from featherlane.solver.lcp.rows.assembly import make_lcp
from featherlane.solver.lcp.rows.contact_reduction import mark_contacts_with_rows
from featherlane.solver.lcp.rows.metric import accelerate_by_rows, sum_solution_rows
from featherlane.solver.lcp.step import find_forces, is_dense_solver
from featherlane.solver.lcp.sweep.product import compute_w
from featherlane.solver.lcp.sweep.residual import solution_size


# ---- the world's present state ---------------------------------------------------------------------------------------
@kernel
def freezes(m):
    """Returns whether friction limits are those of the normal forces without friction."""
    return m.opt_lcp_solver == DANTZIG and m.opt_lcp_friction == FROZEN


@kernel
def has_cones(m):
    """Returns whether friction is bounded by round cones."""
    return m.opt_lcp_cone == CONE and not is_dense_solver(m)


@kernel
def _place(m, d, p):
    """Computes positions, contacts, and their derivatives; contacts in the gap need not be found at displaced poses."""
    forward_position(m, d)
    d.con_fresh[0] = 0
    collision(m, d)
    if d.con_overflow[0] == 0:
        mark_contacts_with_rows(m, d)
        for k in range(d.ncon_slot[0]):
            c = d.contact[k]
            c.present = where(c.D > 0.0, c.present, 0.0)
        contact_moves(m, d, p)
        keep_contacts(m, d, p)


@kernel
def _forces(m, d):
    """Computes all forces but those of the rows."""
    forward_velocity(m, d)
    control_and_actuate(m, d)
    smooth_acceleration(m, d)


@kernel
def _find_first_forces(m, d, p):
    """row_first <- the forces without friction in `frozen` mode, otherwise those of the solution."""
    n = d.lcp.n[0]
    copy(d.lcp.x, n, p.row_x, 0)
    if freezes(m):
        for r in range(n):
            if d.lcp.findex[r] >= 0:
                d.lcp.hi[r] = 0.0
                d.lcp.add[r] = 0.0
        find_forces(m, d)
    copy(d.lcp.x, n, p.row_first, 0)


@kernel
def _solve_world(m, d, p):
    """Computes the step's rows and forces; returns 0 if they do not fit."""
    _place(m, d, p)
    fits = 0
    if d.con_overflow[0] == 0:
        _forces(m, d)
        make_rows(m, d)
        make_lcp(m, d)
        # islands too large for one dense problem do not freeze their limits
        capacity = min(p.rate_nrow, d.nlcpone) if is_dense_solver(m) else p.rate_nrow
        if d.con_overflow[0] == 0 and d.lcp.n[0] <= capacity:
            find_forces(m, d)
            _find_first_forces(m, d, p)
            fits = 1
    return fits


@kernel
def _evaluate(m, d, p, store):
    """Computes qacc, act and the slack in the present state at the world's forces; lcp.g: slack at the first ones."""
    _forces(m, d)
    rows_again(m, d, p, store)
    if store:
        keep_rows(d, p)
    else:
        compare_rows(d, p)
    if d.lcp.n[0] == p.row_count[0]:
        if freezes(m):
            copy(p.row_first, d.lcp.n[0], d.lcp.x, 0)
            compute_w(d)
            copy(d.lcp.w, d.lcp.n[0], d.lcp.g, 0)
        copy(p.row_x, d.lcp.n[0], d.lcp.x, 0)
        compute_w(d)
        accelerate_by_rows(m, d)
        advance_activations(m, d, d.act_dot)


# ---- columns at fixed forces -----------------------------------------------------------------------------------------
@kernel
def _at_point(m, d, b, p, thread, tile, c, step):
    """Calls `_evaluate` with coordinate c displaced by `step`; bodies are placed again if it moves them."""
    load_worlds(b, thread, tile)
    at = 1.0 * c
    move_pos(m, d, at, step)
    move_forces(m, d, at, step)
    displace(d.qfrc_applied, m.nv, at, step, 2 * m.nv + m.na + m.nu)
    if c < m.nv:
        forward_position(m, d)
    place_contacts(d, p, step)
    _evaluate(m, d, p, store=0)


@kernel
def _keep_upper(m, d, p, s):
    n = d.lcp.n[0]
    copy(d.qacc, m.nv, p.col_acceleration, s * m.nv)
    copy(d.act, m.na, p.col_act, s * m.na)
    if n == p.row_count[0]:
        copy(d.lcp.w, n, p.col_w, s * n)
        copy(d.lcp.g, n, p.col_first, s * n)


@kernel
def _quotients(m, d, p, s, span):
    """Column s <- (the stored upper values - the lower ones) / the span between the points."""
    n, scale = d.lcp.n[0], per_span(span)
    difference_quotient(d.qacc, m.nv, p.col_acceleration, s * m.nv, scale)
    difference_quotient(d.act, m.na, p.col_act, s * m.na, scale)
    if n == p.row_count[0]:
        difference_quotient(d.lcp.w, n, p.col_w, s * n, scale)
        difference_quotient(d.lcp.g, n, p.col_first, s * n, scale)


@kernel
def _difference_columns(m, d, b, p, thread, tile):
    """Computes all columns at fixed forces."""
    moved = 1
    for s in range(b.nstep):
        copy_step_inputs(b, thread, tile, s)
        c, up, down = whole(read_lane(p.at, 0, 0)), p.up[0] + 0.0, p.down[0] + 0.0
        if c < m.nv:
            find_shifts(m, d, p, c)
        elif moved:
            # from here on bodies do not move
            find_shifts(m, d, p, -1)
            load_worlds(b, thread, tile)
            forward_position(m, d)
            moved = 0
        _at_point(m, d, b, p, thread, tile, c, up)
        _keep_upper(m, d, p, s)
        _at_point(m, d, b, p, thread, tile, c, -down)
        _quotients(m, d, p, s, up + down)


# ---- change of the forces --------------------------------------------------------------------------------------------
@kernel
def _at_world(m, d, b, p, thread, tile, store):
    """Restores the worlds' own state and rows."""
    load_worlds(b, thread, tile)
    forward_position(m, d)
    find_shifts(m, d, p, -1)
    place_contacts(d, p, 0.0)
    _evaluate(m, d, p, store)


@kernel
def _first(m, p):
    """Returns the forces that determine the limits of friction."""
    return p.row_first if freezes(m) else p.row_x


@kernel
def _nearest(m, d, p):
    """Returns the distance to the nearest switch: of forces, and of the laws of contacts and limits that just touch."""
    h, size = timestep(m), solution_size(d, p.row_x)
    least = fmin(limit_distance(m, d), nearest_switch(d, p.row_x, _first(m, p), d.lcp.w, size, has_cones(m)))
    for k in range(d.ndofrow[0]):
        if d.dofrow_type[k] == LIMIT_JOINT:
            least = _closer(d, d.dofrow_lcprow[k], p.dof_edge[k] / h, size, d.dofrow_present[k] > 0.0, least)
    for k in range(d.ngenrow[0]):
        if d.genrow_type[k] == LIMIT_JOINT or d.genrow_type[k] == LIMIT_TENDON:
            gap = fabs(d.genrow_pos[k] - d.genrow_margin[k])
            least = _closer(d, d.genrow_lcprow[k], gap / (h * h), size, d.genrow_present[k] > 0.0, least)
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        if c.lcprow >= 0:
            least = _closer(d, c.lcprow, p.slot_edge[k] / h, size, c.D > 0.0, least)
        gap = c.dist - c.includemargin
        # flat faces in contact tilt over one edge or another
        flat = (p.slot_flat[k] > 0.0) & (c.D > 0.0)
        least = where(flat, fmin(least, STEP), least)
        waits = (c.present > 0.0) & (c.D == 0.0) & (gap > 0.0)
        least = where(waits, fmin(least, gap), least)
    return least


@kernel
def _closer(d, r, change, size, present, least):
    """Returns min(`least`, F / size), F the force for a change of the right-hand side of row r [m/s^2]."""
    diag = d.lcp.diag[r] if r >= 0 else 1.0
    return where(present, fmin(least, fabs(change) / (where(diag > 0.0, diag, 1.0) * size)), least)


@kernel
def _first_forces(m, d, b, p):
    """col_first <- rates of the forces without friction, row by row."""
    n = d.lcp.n[0]
    sort_rows(d, p, p.row_first, p.row_first, d.lcp.g, friction=0)
    form_system(m, d, p, follows=0, cones=0)
    factor_system(d, p)
    for s in range(b.nstep):
        for r in range(n):
            p.row_dx[r] = -p.col_first[s * n + r]
        solve_system(d, p)
        copy(p.row_dx, n, p.col_first, s * n)


@kernel
def _subtract_product(m, d, p):
    """row_dx of the free rows -= A times that of the other rows, in `frozen` mode."""
    n = d.lcp.n[0]
    for r in range(n):
        d.lcp.x[r] = where(p.row_free[r] > 0.0, 0.0, p.row_dx[r])
    compute_w(d)
    for r in range(n):
        free = p.row_free[r] > 0.0
        p.row_dx[r] = where(free, p.row_dx[r] - (d.lcp.w[r] + d.lcp.b[r]), p.row_dx[r])


@kernel
def _solve_column(m, d, p, s):
    """qacc <- rates of the acceleration of column s, including the change of the forces."""
    n = d.lcp.n[0]
    for r in range(n):
        p.row_dx[r] = where(p.row_free[r] > 0.0, -p.col_w[s * n + r], 0.0)
    if freezes(m):
        follow_normals(d, p, p.col_first, s * n)
        for r in range(n):
            d.lcp.y[r] = where(p.row_free[r] > 0.0, 0.0, p.row_dx[r])
        _subtract_product(m, d, p)
        solve_system(d, p)
        for r in range(n):
            p.row_dx[r] = where(p.row_free[r] > 0.0, p.row_dx[r], d.lcp.y[r])
    else:
        if has_cones(m):
            turn_side(d, p)
        solve_system(d, p)
        follow_normals(d, p, p.row_dx, 0)
    copy(p.row_dx, n, d.lcp.x, 0)
    sum_solution_rows(m, d)
    for i in range(m.nv):
        d.qacc_step[i] = p.col_acceleration[s * m.nv + i]
    accelerate_by_rows(m, d)


@kernel
def _step_column(m, d, p, s, c):
    """Computes da, dq', dv', dact' of column s, of coordinate c."""
    h = timestep(m)
    for i in range(m.nv):
        p.da[i] = d.qacc[i]
        p.unit[i] = 1.0 if c == i else 0.0
        p.dv[i] = fma(h, d.qacc[i], 1.0 if c == m.nv + i else 0.0)
    advance_tangent(m, p.unit, p.dv, p.next_qvel, h, p.dq)
    for a in range(m.na):
        p.dact[a] = p.col_act[s * m.na + a]


@stage(p=LCP_RATES)
def lcp_columns_of_tile(m, d, b, p, thread, tile):
    """Computes rates of the acceleration and of the next state under the contact model lcp, column by column.

    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; report, da, dq, dv, dact, next_qvel, unit; all else of p: col_*, row_*,
            rows_same, slot_*, dof_*, geom_*; qpos, qvel, act, ctrl, qfrc_applied, qacc, qacc_step, qfrc_constraint,
            con_*, dofrow_*, genrow_lcprow, link_lcprow, lcp.*, stat_residual, warning, found_bad, all else of this
            thread's workspace.
    Scratch: exact.*, qH, qHDiagInv, primal.*, dual.*, one.*, geom_xpos, geom_xmat.
    """
    fits = _solve_world(m, d, p)
    p.report[FITS], p.report[NEAREST] = 0.0, 0.0
    if fits:
        known = not_((p.slot_known[0] < 0.0) | has_adhesion(m, d) | has_static_friction(m))
        p.rows_same[0] = where(known, 1.0, 0.0)
        fits = 1 if any_(known) else 0
    if fits:
        rows = d.lcp.n[0]
        _at_world(m, d, b, p, thread, tile, store=1)
        fits = 1 if d.lcp.n[0] == rows else 0
    if fits:
        h = timestep(m)
        for i in range(m.nv):
            p.next_qvel[i] = fma(h, d.qacc[i], d.qvel[i])
        _difference_columns(m, d, b, p, thread, tile)
        _at_world(m, d, b, p, thread, tile, store=0)
        p.report[FITS] = p.rows_same[0] + 0.0
        p.report[NEAREST] = _nearest(m, d, p)
        if freezes(m):
            _first_forces(m, d, b, p)
        sort_rows(d, p, p.row_x, _first(m, p), d.lcp.w, friction=1)
        if has_cones(m):
            sort_cones(d, p, p.row_x, d.lcp.w)
        form_system(m, d, p, 0 if freezes(m) else 1, has_cones(m))
        factor_system(d, p)
        for s in range(b.nstep):
            copy_step_inputs(b, thread, tile, s)
            c = whole(read_lane(p.at, 0, 0))
            _solve_column(m, d, p, s)
            _step_column(m, d, p, s, c)
            write_records(b, thread, tile, s)
    else:
        write_records(b, thread, tile, 0)


lcp_columns = in_each_tile("lcp_columns", lcp_columns_of_tile)
