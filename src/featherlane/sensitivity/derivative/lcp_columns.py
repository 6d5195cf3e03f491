"""The columns of a step's derivative under the contact model lcp, tile by tile.

A coordinate is moved up and down, and with the forces of the rows held the step's acceleration and the rows' slack are
differenced: two evaluations of the rows, no solver and no collision.  What the forces make of it is a linear system
(lcp_solution.py), and

    da = da at fixed x + Mh^-1 J^T dx,      dv' = dv + h da,      dq' as in tangent.py.

Lane by lane the call brings, for each column, the number of the coordinate (`qacc_smooth[0]`, the same in all lanes)
and how far it moves up and down (`qfrc_smooth[0]`, `qfrc_passive[0]`).
"""

from featherlane.prelude import *
from featherlane.collision.collision import collision
from featherlane.constraint.row import make_rows
from featherlane.dynamics.actuator.activation import advance_activations
from featherlane.dynamics.integrator.smooth import smooth_acceleration
from featherlane.sensitivity.derivative.columns import FITS, NEAREST, move_forces
from featherlane.sensitivity.derivative.contact_moves import STEP, contact_moves
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
from featherlane.sensitivity.derivative.points import move, move_pos
from featherlane.sensitivity.derivative.tangent import advance_tangent
from featherlane.simulation.step.forward import control_and_actuate, forward_position, forward_velocity
from featherlane.simulation.tile.rows import load_worlds, read_controls, write_records
from featherlane.simulation.tile.tiles import load_tile
from featherlane.solver.lcp.rows.assembly import make_lcp
from featherlane.solver.lcp.rows.contact_reduction import choose_contacts
from featherlane.solver.lcp.rows.metric import accelerate, sum_rows
from featherlane.solver.lcp.step import find_forces
from featherlane.solver.lcp.sweep.product import set_w
from featherlane.solver.lcp.sweep.residual import solution_size


# ---- the world as it is ----------------------------------------------------------------------------------------------
@kernel
def freezes(m):
    """Are limits of friction those of the normal forces that hold without friction?"""
    return m.opt_lcp_solver == DANTZIG and m.opt_lcp_friction == FROZEN


@kernel
def has_cones(m):
    """Is friction bounded by round cones?"""
    return m.opt_lcp_solver != DANTZIG and m.opt_lcp_cone == CONE


@kernel
def _place(m, d, u):
    """Positions, contacts, and how these move; what waits in the gap has to be found at no displaced pose."""
    forward_position(m, d)
    d.con_fresh[0] = 0
    collision(m, d)
    if d.con_overflow[0] == 0:
        choose_contacts(m, d)
        for k in range(d.ncon_slot[0]):
            d.con_present[k] = where(d.con_D[k] > 0.0, d.con_present[k], 0.0)
        contact_moves(m, d, u)
        keep_contacts(m, d, u)


@kernel
def _forces(m, d):
    """All forces but those of the rows."""
    forward_velocity(m, d)
    control_and_actuate(m, d)
    smooth_acceleration(m, d)


@kernel
def _find_first_forces(m, d, u):
    """row_first: the forces that hold without friction, in `frozen` mode; else those of the solution."""
    n = d.lcp.n[0]
    for r in range(n):
        u.row_x[r] = d.lcp.x[r]
    if freezes(m):
        for r in range(n):
            if d.lcp.findex[r] >= 0:
                d.lcp.hi[r] = zero(d)
                d.lcp.add[r] = zero(d)
        find_forces(m, d)
    for r in range(n):
        u.row_first[r] = d.lcp.x[r]


@kernel
def _solve_world(m, d, u):
    """The step's rows and forces; 0 where they do not fit."""
    _place(m, d, u)
    fits = 0
    if d.con_overflow[0] == 0:
        _forces(m, d)
        make_rows(m, d)
        make_lcp(m, d)
        # islands too large for one dense problem have limits that are not frozen
        room = u.rate_nrow if m.opt_lcp_solver != DANTZIG else min(u.rate_nrow, d.nlcpone)
        if d.con_overflow[0] == 0 and d.lcp.n[0] <= room:
            find_forces(m, d)
            _find_first_forces(m, d, u)
            fits = 1
    return fits


@kernel
def _evaluate(m, d, u, store):
    """qacc, act and the slack at the present state with the forces of the world; lcp.g: the slack at the first ones."""
    _forces(m, d)
    rows_again(m, d, u, store)
    if store:
        keep_rows(d, u)
    else:
        compare_rows(d, u)
    if d.lcp.n[0] == u.row_count[0]:
        if freezes(m):
            for r in range(d.lcp.n[0]):
                d.lcp.x[r] = u.row_first[r]
            set_w(d)
            for r in range(d.lcp.n[0]):
                d.lcp.g[r] = d.lcp.w[r]
        for r in range(d.lcp.n[0]):
            d.lcp.x[r] = u.row_x[r]
        set_w(d)
        accelerate(m, d)
        advance_activations(m, d, d.act_dot)


# ---- columns at fixed forces -----------------------------------------------------------------------------------------
@kernel
def _move(m, d, at, step):
    """Position, velocity, activation, control or generalized force number `at` moved."""
    move_pos(m, d, at, step)
    move_forces(m, d, at, step)
    move(d.qfrc_applied, m.nv, at, step, 2 * m.nv + m.na + m.nu)


@kernel
def _at_point(m, d, b, u, thread, tile, W, c, step):
    """`_evaluate` with coordinate c moved by `step`; bodies are placed anew where it moves them."""
    load_worlds(b, thread, tile, W)
    _move(m, d, real(d, 1.0) * c, step)
    if c < m.nv:
        forward_position(m, d)
    place_contacts(d, u, step)
    _evaluate(m, d, u, store=0)


@kernel
def _keep_upper(m, d, u, s):
    n = d.lcp.n[0]
    for i in range(m.nv):
        u.col_acceleration[s * m.nv + i] = d.qacc[i]
    for a in range(m.na):
        u.col_act[s * m.na + a] = d.act[a]
    if n == u.row_count[0]:
        for r in range(n):
            u.col_w[s * n + r] = d.lcp.w[r]
            u.col_first[s * n + r] = d.lcp.g[r]


@kernel
def _quotients(m, d, u, s, span):
    """Column s: what was kept, less the same at the lower point, over the span between them."""
    n, scale = d.lcp.n[0], where(span > 0.0, 1.0, 0.0) / where(span > 0.0, span, 1.0)
    for i in range(m.nv):
        u.col_acceleration[s * m.nv + i] = (u.col_acceleration[s * m.nv + i] - d.qacc[i]) * scale
    for a in range(m.na):
        u.col_act[s * m.na + a] = (u.col_act[s * m.na + a] - d.act[a]) * scale
    if n == u.row_count[0]:
        for r in range(n):
            u.col_w[s * n + r] = (u.col_w[s * n + r] - d.lcp.w[r]) * scale
            u.col_first[s * n + r] = (u.col_first[s * n + r] - d.lcp.g[r]) * scale


@kernel
def _difference_columns(m, d, b, u, thread, tile, W):
    """All columns at fixed forces."""
    moved = 1
    for s in range(b.nstep):
        read_controls(b, thread, tile, W, s)
        c, up, down = whole(read_lane(d.qacc_smooth, 0, 0)), d.qfrc_smooth[0] + 0.0, d.qfrc_passive[0] + 0.0
        if c < m.nv:
            find_shifts(m, d, u, c)
        elif moved:
            # from here on bodies stay where they are
            find_shifts(m, d, u, -1)
            load_worlds(b, thread, tile, W)
            forward_position(m, d)
            moved = 0
        _at_point(m, d, b, u, thread, tile, W, c, up)
        _keep_upper(m, d, u, s)
        _at_point(m, d, b, u, thread, tile, W, c, -down)
        _quotients(m, d, u, s, up + down)


# ---- what the forces make of them ------------------------------------------------------------------------------------
@kernel
def _back_to_world(m, d, b, u, thread, tile, W):
    """The worlds' own state and rows, as before the columns."""
    load_worlds(b, thread, tile, W)
    forward_position(m, d)
    find_shifts(m, d, u, -1)
    place_contacts(d, u, zero(d))
    _evaluate(m, d, u, store=0)


@kernel
def _first(m, u):
    """The forces that set the limits of friction."""
    return u.row_first if freezes(m) else u.row_x


@kernel
def _nearest(m, d, u):
    """Distance to the nearest switch: of forces, and of contacts and limits whose law changes where they touch."""
    h, size = timestep(m), _size(d, u)
    least = nearest_switch(d, u.row_x, _first(m, u), d.lcp.w, size, has_cones(m))
    for k in range(d.ndofrow[0]):
        if d.dofrow_type[k] == LIMIT_JOINT:
            least = _closer(d, d.dofrow_lcprow[k], u.dof_edge[k] / h, size, d.dofrow_present[k] > 0.0, least)
    for k in range(d.ngenrow[0]):
        if d.genrow_type[k] == LIMIT_JOINT or d.genrow_type[k] == LIMIT_TENDON:
            gap = fabs(d.genrow_pos[k] - d.genrow_margin[k])
            least = _closer(d, d.genrow_lcprow[k], gap / (h * h), size, d.genrow_present[k] > 0.0, least)
    for k in range(d.ncon_slot[0]):
        if d.con_lcprow[k] >= 0:
            least = _closer(d, d.con_lcprow[k], u.slot_edge[k] / h, size, d.con_D[k] > 0.0, least)
        gap = d.con_dist[k] - d.con_includemargin[k]
        # flat faces that lie on each other tilt over one edge or another
        flat = (u.slot_flat[k] > 0.0) & (d.con_D[k] > 0.0)
        least = where(flat, fmin(least, STEP), least)
        waits = (d.con_present[k] > 0.0) & (d.con_D[k] == 0.0) & (gap > 0.0)
        least = where(waits, fmin(least, gap), least)
    return least


@kernel
def _size(d, u):
    """What forces are measured by: the largest one, or that which the largest right-hand side asks for."""
    return solution_size(d, u.row_x)


@kernel
def _closer(d, r, change, size, present, least):
    """The smaller of `least` and what a change of the right-hand side of row r [m/s^2] is as a force, over the size."""
    diag = d.lcp.diag[r] if r >= 0 else real(d, 1.0)
    return where(present, fmin(least, fabs(change) / (where(diag > 0.0, diag, 1.0) * size)), least)


@kernel
def _first_forces(m, d, b, u):
    """col_first <- rates of the forces that hold without friction, row by row."""
    n = d.lcp.n[0]
    sort_rows(d, u, u.row_first, u.row_first, d.lcp.g, friction=0)
    form_system(m, d, u, follows=0, cones=0)
    factor_system(d, u)
    for s in range(b.nstep):
        for r in range(n):
            u.row_dx[r] = -u.col_first[s * n + r]
        solve_system(d, u)
        for r in range(n):
            u.col_first[s * n + r] = u.row_dx[r]


@kernel
def _subtract_product(m, d, u):
    """row_dx of the free rows -= A times that of the others, in `frozen` mode."""
    n = d.lcp.n[0]
    for r in range(n):
        d.lcp.x[r] = where(u.row_free[r] > 0.0, 0.0, u.row_dx[r])
    set_w(d)
    for r in range(n):
        free = u.row_free[r] > 0.0
        u.row_dx[r] = where(free, u.row_dx[r] - (d.lcp.w[r] + d.lcp.b[r]), u.row_dx[r])


@kernel
def _solve_column(m, d, u, s):
    """qacc <- rates of the acceleration of column s, with all that forces do."""
    n = d.lcp.n[0]
    for r in range(n):
        u.row_dx[r] = where(u.row_free[r] > 0.0, -u.col_w[s * n + r], 0.0)
    if freezes(m):
        follow_normals(d, u, u.col_first, s * n)
        for r in range(n):
            d.lcp.y[r] = where(u.row_free[r] > 0.0, 0.0, u.row_dx[r])
        _subtract_product(m, d, u)
        solve_system(d, u)
        for r in range(n):
            u.row_dx[r] = where(u.row_free[r] > 0.0, u.row_dx[r], d.lcp.y[r])
    else:
        if has_cones(m):
            turn_side(d, u)
        solve_system(d, u)
        follow_normals(d, u, u.row_dx, 0)
    for r in range(n):
        d.lcp.x[r] = u.row_dx[r]
    sum_rows(m, d)
    for i in range(m.nv):
        d.qacc_step[i] = u.col_acceleration[s * m.nv + i]
    accelerate(m, d)


@kernel
def _step_column(m, d, u, s, c):
    """rk_acceleration <- da, rk.rate <- dq', rk.velocity <- dv', rk.act <- dact' of column s, of coordinate c."""
    h = timestep(m)
    for i in range(m.nv):
        d.rk.acceleration[i] = d.qacc[i]
        d.qvec[i] = real(d, 1.0 if c == i else 0.0)
        d.rk.velocity[i] = fma(h, d.qacc[i], 1.0 if c == m.nv + i else 0.0)
    advance_tangent(m, d, d.qvec, d.rk.velocity, d.rk.qvel, h, d.rk.rate)
    for a in range(m.na):
        d.rk.act[a] = u.col_act[s * m.na + a]


@stage(u=LCP_RATES)
def lcp_columns_of_tile(m, d, b, u, thread, tile):
    """Rates of the acceleration and of the next state under the contact model lcp, column by column.

    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; part, rk.acceleration (da), rk.rate (dq'), rk.velocity (dv'), rk.*; all of u:
            col_*, row_*, rows_same, slot_*, dof_*, geom_*; qpos, qvel, act, ctrl, qfrc_applied, qacc, qacc_step,
            qfrc_constraint, con_*, dofrow_*, genrow_lcprow, link_lcprow, lcp.*, stat_residual, warning, and all else of
            this thread's workspace; qH, qHDiagInv, qvec, primal.*, dual.*, one.*, geom_xpos and geom_xmat for itself.
    """
    W, fits = width(d), _solve_world(m, d, u)
    d.part[FITS], d.part[NEAREST] = zero(d), zero(d)
    if fits:
        known = not_(u.slot_known[0] < 0.0)
        u.rows_same[0] = where(known, 1.0, 0.0)
        fits = 1 if any_(known) else 0
    if fits:
        rows = d.lcp.n[0]
        load_worlds(b, thread, tile, W)
        find_shifts(m, d, u, -1)
        place_contacts(d, u, zero(d))
        _evaluate(m, d, u, store=1)
        fits = 1 if d.lcp.n[0] == rows else 0
    if fits:
        h = timestep(m)
        for i in range(m.nv):
            d.rk.qvel[i] = fma(h, d.qacc[i], d.qvel[i])
        _difference_columns(m, d, b, u, thread, tile, W)
        _back_to_world(m, d, b, u, thread, tile, W)
        d.part[FITS] = u.rows_same[0] + 0.0
        d.part[NEAREST] = _nearest(m, d, u)
        if freezes(m):
            _first_forces(m, d, b, u)
        sort_rows(d, u, u.row_x, _first(m, u), d.lcp.w, friction=1)
        if has_cones(m):
            sort_cones(d, u, u.row_x, d.lcp.w)
        form_system(m, d, u, 0 if freezes(m) else 1, has_cones(m))
        factor_system(d, u)
        for s in range(b.nstep):
            read_controls(b, thread, tile, W, s)
            c = whole(read_lane(d.qacc_smooth, 0, 0))
            _solve_column(m, d, u, s)
            _step_column(m, d, u, s, c)
            write_records(b, thread, tile, W, s)
    else:
        write_records(b, thread, tile, W, 0)


@stage(u=LCP_RATES)
def lcp_columns(m, d, b, u, thread, first, last):
    """`lcp_columns_of_tile` in each tile.

    Reads:  the rows that the transfers of b bring in.
    Writes: what `lcp_columns_of_tile` writes; active, recall_address, tree_settled.
    """
    W = width(d)
    for tile in range(first, last):
        load_tile(m, d, b, thread, tile, W)
        lcp_columns_of_tile(m, d, b, u, thread, tile)
