"""Derivatives of the no-slip solver's friction: its sweeps are differentiated update by update.

The main solver gives the acceleration a1 and the forces f1.  The sweeps change the friction of pyramids by e, so that
M (a2 - a1) = J^T e.  Usually they end before they converge, so the derivative of the converged forces is another one.
An update of row i, with b_i the sum of its two edges in f1, is

    y_i = (J a1 - aref)_i + A_i e,      f_i <- clip(f_i - y_i / A_ii, -b_i, b_i),      A = J M^-1 J^T,

and its derivative needs the derivatives of J a1 - aref and f1, from the main solver's da1, and dA.  With w_i = M^-1 J_i^T

    dA_ik = dJ_i w_k + dJ_k w_i - w_i^T dM w_k.

A displacement of dof j moves all outer bodies along S_j.  With v_i the motion before the joint in field w_i, and h_k the
momentum of the outer bodies in field w_k,  w_i^T dM w_k = (v_i x S_j) . h_k + (v_k x S_j) . h_i.
The integrator's K a* = M a1 + J^T e - p  gives  K da* = M da1 + dp + d(J^T e), with dp at a1 - a*.
Source: MuJoCo documentation, Computation, "Algorithms" (NoSlip), for the sweeps.
"""

from featherlane.prelude import *
from featherlane.dynamics.inertia.joint_space import multiply_columns, solve_columns, solve_factored
from featherlane.dynamics.integrator.free_body import is_single_free_body
from featherlane.dynamics.sparse.tree_panel import PANEL
from featherlane.model import enums
from featherlane.model.model import Model
from featherlane.sensitivity.derivative.contact_rates import (
    along_basis,
    along_row,
    before_joint,
    change_of_motion,
    displaced_contact,
    faster_rows,
    moved_place,
    moved_rows,
    relative,
    spread,
    spread_moved,
    wrench,
)
from featherlane.sensitivity.derivative.displaced_worlds import recurses
from featherlane.sensitivity.derivative.smooth_rates import outward_pass
from featherlane.sensitivity.derivative.solution import KNOWN, NEAREST, is_corrected
from featherlane.solver.dual.noslip import MINVAL
from featherlane.solver.dual.rows import basis_value_index
from featherlane.solver.primal.problem import TINY
from featherlane.solver.rows.contacts import push_bodies, turn_bodies
from featherlane.solver.rows.rows import body_forces_to_dofs, body_motion, clear_body_forces, turn_index

ROWS = 96  # capacity of a tile


def noslip_serves(model: Model) -> bool:
    """Returns whether formulas apply to the model's no-slip solver, or it is disabled."""
    if model.opt_noslip_iterations == 0:
        return True
    fast = model.opt_integrator == enums.IMPLICITFAST and not any(
        is_single_free_body(model, i) for i in range(1, model.nbody)
    )
    served = model.opt_cone == enums.PYRAMIDAL and (fast or model.opt_integrator == enums.EULER)
    return bool(served) and not recurses(model)


def noslip_capacity(model: Model) -> int:
    """Returns the size nslipmax of the record of formulas."""
    return ROWS if model.opt_noslip_iterations > 0 else 0


# ---- preparation -----------------------------------------------------------------------------------------------------
@kernel
def _edges(d, k, i):
    """Returns y + y_i and y - y_i of contact k, at the main solver's solution."""
    y, u = d.primal.con_y[3 * k], d.primal.con_y[basis_value_index(d, k, i)]
    return y + u, y - u


@kernel
def _list_rows(m, d, p):
    """slip_con, slip_axis <- rows with a force in a world of the tile; slip_force, slip_bound, slip_y <- their f, b, y."""
    n = 0
    for k in range(d.ncon_slot[0]):
        for i in range(1, d.con_dim[k]):
            up, down = _edges(d, k, i)
            f, g = -(d.con_D[k] * fmin(up, 0.0)), -(d.con_D[k] * fmin(down, 0.0))
            if any_(f + g > 0.0):
                if n < p.nslipmax:
                    p.slip_con[n], p.slip_axis[n] = k, i
                    p.slip_force[n], p.slip_bound[n], p.slip_y[n] = f - g, f + g, 0.5 * (up - down)
                n += 1
    p.nslip[0] = n if n <= p.nslipmax else 0
    return n


@kernel
def _last_row(p, r):
    """Returns the number after the last row of the contact of row r, its first."""
    n = r
    while n < p.nslip[0] and p.slip_con[n] == p.slip_con[r]:
        n += 1
    return n


@kernel
def _solve_row(m, d, p, r):
    """solved <- w_r = M^-1 J_r^T."""
    k, i = p.slip_con[r], p.slip_axis[r]
    for j in range(m.nv):
        p.solved[j] = zero(d)
    clear_body_forces(m, d)
    one = tuple(real(d, 1.0) if c == i else zero(d) for c in range(6))
    push_bodies(d, k, (one[0], one[1], one[2]))
    if i > 2:
        turn_bodies(d, k, (one[3], one[4], one[5]))
    body_forces_to_dofs(m, d, p.solved)
    solve_factored(m, d.qLD, d.qLDiagInv, p.solved)


@kernel
def _keep_field(m, d, p, r):
    """slip_lag, slip_momentum, slip_motion, slip_A <- those of the field w_r, in `solved`."""
    outward_pass(m, d, p, p.solved)
    for b in range(m.nbody - 1, 0, -1):
        h, parent = load6(p.body_lag_force, 6 * b), m.body_parentid[b]
        store6(p.slip_momentum, 6 * (m.nbody * r + b), h)
        if parent > 0:
            store6(p.body_lag_force, 6 * parent, add6(load6(p.body_lag_force, 6 * parent), h))
    for j in range(m.nv):
        store6(p.slip_lag, 6 * (m.nv * r + j), load6(p.dof_lag, 6 * j))
    s = 0
    while s < p.nslip[0]:
        k, at, last = p.slip_con[s], 18 * (p.nslipmax * r + s), _last_row(p, s)
        a, u = relative(d, k, p.body_lag)
        store3(p.slip_motion, at, a)
        store3(p.slip_motion, at + 3, u)
        for place in range(2):
            store6(p.slip_motion, at + 6 + 6 * place, load6(p.body_lag, 6 * d.con_body[2 * k + place]))
        for e in range(s, last):
            p.slip_A[p.nslipmax * r + e] = along_row(d, k, p.slip_axis[e], u, a)
        s = last


@kernel
def _exceeds_formulas(d):
    """Returns the mask of worlds with dry friction of joints or tendons, whose updates have no formulas."""
    found = false_mask(d)
    for k in range(d.nfrictionrow[0]):
        found = found | (d.dofrow_D[k] > 0.0)
    for k in range(d.ngenrow[0]):
        if d.genrow_type[k] == FRICTION_TENDON:
            found = found | (d.genrow_D[k] > 0.0)
    return found


@kernel
def prepare_noslip(m, d, p):
    """Computes the fields w of all rows, and e; before `outward_pass` of the state.  May lower report[KNOWN]."""
    p.nslip[0] = 0
    if is_corrected(m, d):
        n = _list_rows(m, d, p)
        if n > p.nslip[0]:
            p.report[KNOWN] = where(p.report[KNOWN] > 0.0, -1.0, p.report[KNOWN])
        p.report[KNOWN] = where(_exceeds_formulas(d), fmin(p.report[KNOWN], 0.0), p.report[KNOWN])
        for r in range(p.nslip[0]):
            _solve_row(m, d, p, r)
            _keep_field(m, d, p, r)
        for r in range(p.nslip[0]):
            p.slip_dy[r], p.slip_dforce[r], p.slip_dbound[r] = zeros(d, 3)
        _sweep(m, d, p, 0)


@kernel
def _sum_rows(d, p, r, last, x):
    """Returns the (force, moment) of values x along the rows from r to last."""
    F, M = zeros(d, 3), zeros(d, 3)
    for e in range(r, last):
        k, i = p.slip_con[e], p.slip_axis[e]
        if i < 3:
            F = axpy3(x[e], load3(d.con_basis, 9 * k + 3 * i), F)
        else:
            M = axpy3(x[e], load3(d.con_basis, 9 * turn_index(d, k) + 3 * (i - 3)), M)
    return F, M


@kernel
def add_slip_forces(m, d, p):
    """Adds the wrenches of e to the forces of M (a1 - a*) on bodies: they move along with dofs, too."""
    r = 0
    while r < p.nslip[0]:
        k, last = p.slip_con[r], _last_row(p, r)
        F, M = _sum_rows(d, p, r, last, p.slip_gain)
        b, other = d.con_body[2 * k], d.con_body[2 * k + 1]
        store6(p.body_lag_force, 6 * b, add6(load6(p.body_lag_force, 6 * b), wrench(d, k, 0, F, M)))
        if other > 0:
            back = axpy6(real(d, -1.0), wrench(d, k, 1, F, M), load6(p.body_lag_force, 6 * other))
            store6(p.body_lag_force, 6 * other, back)
        r = last


# ---- columns ---------------------------------------------------------------------------------------------------------
@kernel
def _first_rates(m, d, p, at):
    """slip_dy, slip_dforce, slip_dbound <- rates of y, f and b in the main solver's solution, with da1 in `da`."""
    body_motion(m, d, p.da, p.body_lag)
    r = 0
    while r < p.nslip[0]:
        k, last, place = p.slip_con[r], _last_row(p, r), -1
        a, u = relative(d, k, p.body_lag)
        y, z = along_basis(d, k, u, u, a)
        if at >= 0 and at < 2 * m.nv:
            place = moved_place(m, d, at % m.nv, k)
        stiffer = zero(d)
        if place >= 0:
            S = load6(d.cdof, 6 * (at % m.nv))
            if at < m.nv:
                acc, vel = before_joint(m, d, at, d.con_motion, d.qacc), before_joint(m, d, at, d.cvel, d.qvel)
                dy, dz, (dist, _, _) = moved_rows(m, d, p, k, place, S, acc, vel)
                stiffer = p.slot_slope[2 * k] * dist
            else:
                dy, dz = faster_rows(d, k, place, S, 0)
            y, z = add3(y, dy), add3(z, dz)
        store3(p.slip_rows, 0, y)
        store3(p.slip_rows, 3, z)
        for e in range(r, last):
            up, down = _edges(d, k, p.slip_axis[e])
            dy = p.slip_rows[p.slip_axis[e]]
            f = -(where(up < 0.0, d.con_D[k], 0.0) * fma(stiffer, up, y[0] + dy))
            g = -(where(down < 0.0, d.con_D[k], 0.0) * fma(stiffer, down, y[0] - dy))
            p.slip_dy[e], p.slip_dforce[e], p.slip_dbound[e] = dy, f - g, f + g
        r = last


@kernel
def _mobility_rates(m, d, p, j):
    """slip_dA <- derivative of A by the position of dof j."""
    n, N, b, S = p.nslip[0], p.nslipmax, m.dof_bodyid[j], load6(d.cdof, 6 * j)
    for r in range(n):
        v, h = load6(p.slip_lag, 6 * (m.nv * r + j)), load6(p.slip_momentum, 6 * (m.nbody * r + b))
        for e in range(r + 1):
            w, g = load6(p.slip_lag, 6 * (m.nv * e + j)), load6(p.slip_momentum, 6 * (m.nbody * e + b))
            p.slip_dA[N * r + e] = -(dot6(v, g) + dot6(w, h))
            p.slip_dA[N * e + r] = p.slip_dA[N * r + e]
    s = 0
    while s < n:
        k, last = p.slip_con[s], _last_row(p, s)
        place = moved_place(m, d, j, k)
        if place >= 0:
            _, pos, turned = displaced_contact(m, d, p, k, place, S)
            for r in range(n):
                at = 18 * (N * r + s)
                a, u = load3(p.slip_motion, at), load3(p.slip_motion, at + 3)
                change = cross_motion(S, load6(p.slip_motion, at + 6 + 6 * place))
                change = add6(change, load6(p.slip_lag, 6 * (m.nv * r + j)))
                da, du = change_of_motion(d, k, place, change, a, pos)
                da, du = add3(da, cross(a, turned)), add3(du, cross(u, turned))
                for e in range(s, last):
                    x = along_row(d, k, p.slip_axis[e], du, da)
                    p.slip_dA[N * r + e] = p.slip_dA[N * r + e] + x
                    p.slip_dA[N * e + r] = p.slip_dA[N * e + r] + x
        s = last


@kernel
def _row_product(p, A, r, x):
    """Returns row r of A times x."""
    s, first = A[p.nslipmax * r] * x[0], p.nslipmax * r
    for e in range(1, p.nslip[0]):
        s = fma(A[first + e], x[e], s)
    return s


@kernel
def _sweep(m, d, p, by_position):
    """slip_gain <- e, and slip_dgain <- its rates: the sweeps of the no-slip solver; by_position: with dA."""
    for r in range(p.nslip[0]):
        p.slip_gain[r], p.slip_dgain[r] = zeros(d, 2)
    for s in range(m.opt_noslip_iterations):
        live = d.dual.nsweep[0] > 1.0 * s
        if not any_(live):
            break
        for r in range(p.nslip[0]):
            y = p.slip_y[r] + _row_product(p, p.slip_A, r, p.slip_gain)
            dy = p.slip_dy[r] + _row_product(p, p.slip_A, r, p.slip_dgain)
            A, dA = p.slip_A[(p.nslipmax + 1) * r], zero(d)
            if by_position:
                dy, dA = dy + _row_product(p, p.slip_dA, r, p.slip_gain), p.slip_dA[(p.nslipmax + 1) * r]
            moves, f, b = A > MINVAL, p.slip_force[r], p.slip_bound[r]
            step = where(moves, y / where(moves, A, 1.0), f + p.slip_gain[r])
            t, dt = f + p.slip_gain[r] - step, p.slip_dforce[r] + p.slip_dgain[r]
            dt = where(moves, dt - fma(-step, dA, dy) / where(moves, A, 1.0), 0.0)
            held, size = fabs(t) > b, fabs(t) + b
            acts = live & (b > 0.0)
            p.report[NEAREST] = where(acts, fmin(p.report[NEAREST], fabs(fabs(t) - b) / fmax(size, TINY)), p.report[NEAREST])
            dt = where(held, where(t > 0.0, p.slip_dbound[r], -p.slip_dbound[r]), dt)
            p.slip_gain[r] = where(acts, clip(t, -b, b) - f, p.slip_gain[r])
            p.slip_dgain[r] = where(acts, dt - p.slip_dforce[r], p.slip_dgain[r])


@kernel
def _push_column(m, d, p, at):
    """product <- d(J^T e) by coordinate `at`, without the part that moves along."""
    for i in range(m.nv):
        p.product[i] = zero(d)
    clear_body_forces(m, d)
    r = 0
    while r < p.nslip[0]:
        k, last, place = p.slip_con[r], _last_row(p, r), -1
        force, change = _sum_rows(d, p, r, last, p.slip_gain), _sum_rows(d, p, r, last, p.slip_dgain)
        if at >= 0 and at < m.nv:
            place = moved_place(m, d, at, k)
        if place >= 0:
            S = load6(d.cdof, 6 * at)
            _, pos, turned = displaced_contact(m, d, p, k, place, S)
            spread_moved(d, k, place, S, force, change, zero(d), pos, turned)
        else:
            spread(d, k, change[0], change[1])
        r = last
    body_forces_to_dofs(m, d, p.product)


@kernel
def _add_column(m, d, p, c):
    """panel_lag += d(J^T e) of column c, with da1 in panel_acceleration."""
    at = p.panel_at[c]
    by_position = at >= 0 and at < m.nv
    for i in range(m.nv):
        p.da[i] = p.panel_acceleration[PANEL * i + c]
    _first_rates(m, d, p, at)
    if by_position:
        _mobility_rates(m, d, p, at)
    _sweep(m, d, p, by_position)
    _push_column(m, d, p, at)
    for i in range(m.nv):
        p.panel_lag[PANEL * i + c] = p.panel_lag[PANEL * i + c] + p.product[i]


@kernel
def correct_columns(m, d, p):
    """panel_step <- M da1 + dp + d(J^T e);  panel_acceleration <- M^-1 panel_step."""
    if p.nslip[0] > 0:
        for c in range(PANEL):
            _add_column(m, d, p, c)
    multiply_columns(m, d.M, p.panel_acceleration, p.panel_step)
    for e in range(PANEL * m.nv):
        p.panel_step[e] = p.panel_step[e] + p.panel_lag[e]
        p.panel_acceleration[e] = p.panel_step[e]
    solve_columns(m, d.qLD, d.qLDiagInv, p.panel_acceleration)
