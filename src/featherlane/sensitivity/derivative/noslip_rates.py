"""Derivatives of the no-slip solver's friction: its sweeps are differentiated update by update.

The main solver computes the acceleration a1, and the forces f of dry friction and of pyramids' pairs of edges.  The
sweeps change them by e: M (a2 - a1) = J^T e.  They usually end early, so implicit differentiation of their limit does
not apply.  With b_i the bound of dry friction, or the sum of the two edges in the main solution, an update is

    y_i = (J a1 - aref)_i + A_i e,      f_i + e_i <- clip(f_i + e_i - y_i / A_ii, -b_i, b_i),      A = J M^-1 J^T.

With w_i = M^-1 J_i^T and for the position of a dof,  dA_ik = dJ_i w_k + dJ_k w_i - w_i^T dM w_k.  The dof moves all
outer bodies along S.  With v_i the motion before the joint in the field w_i, and h_k the momentum of the outer bodies,

    w_i^T dM w_k = (v_i x S) . h_k + (v_k x S) . h_i.

The integrator's K a* = M a1 + J^T e - p  gives  K da* = M da1 + d(J^T e) + dp, with dp at a1 - a*.  For a2, K is M.
Source: MuJoCo documentation, Computation, "Algorithms" (NoSlip), for the sweeps.
"""

from featherlane.prelude import *
from featherlane.constraint.friction_loss import loss_damping
from featherlane.constraint.impedance import shortest_timeconst
from featherlane.dynamics.inertia.joint_space import factor_m, multiply_columns, solve_columns, solve_factored
from featherlane.dynamics.integrator.free_body import is_single_free_body
from featherlane.dynamics.sparse.tree_panel import PANEL
from featherlane.model import enums
from featherlane.model.model import Model
from featherlane.sensitivity.derivative.contact_rates import (
    BOTH,
    along_basis,
    change_of_motion,
    displaced_contact,
    faster_rows,
    moved_rows,
    position_place,
    relative_motion,
    stiffness_rate,
    velocity_place,
)
from featherlane.sensitivity.derivative.displaced_worlds import recurses
from featherlane.sensitivity.derivative.moved_force import add_moved_force
from featherlane.sensitivity.derivative.points import copy
from featherlane.sensitivity.derivative.rates import SWEEPS
from featherlane.sensitivity.derivative.smooth_rates import inwards, outward_pass
from featherlane.sensitivity.derivative.solution import KNOWN, NEAREST
from featherlane.sensitivity.derivative.switching import FAR, size_of_contact, size_of_dof_row
from featherlane.solver.dual.noslip import MINVAL
from featherlane.solver.primal.problem import TINY, bounded_force
from featherlane.solver.rows.rows import (
    TURN,
    add_contact_force,
    add_contact_moment,
    basis_value,
    body_forces_to_dofs,
    clear_body_forces,
    compute_body_motions,
)

ROWS = 96  # capacity of a tile: rows of friction


def noslip_serves(model: Model) -> bool:
    """Returns whether formulas apply to the model's no-slip solver, or it is disabled."""
    fast = model.opt_integrator == enums.IMPLICITFAST
    single = fast and any(is_single_free_body(model, i) for i in range(1, model.nbody))
    euler = (fast or model.opt_integrator == enums.EULER) and not single
    return model.opt_noslip_iterations == 0 or (euler and model.opt_cone == enums.PYRAMIDAL and not recurses(model))


def noslip_capacity(model: Model) -> int:
    """Returns the size nslipmax of the record of formulas."""
    return ROWS if model.opt_noslip_iterations > 0 else 0


# ---- preparation -----------------------------------------------------------------------------------------------------
@kernel
def _edges(d, k, i):
    """Returns y + y_i and y - y_i of contact k, in the main solution."""
    y, u = d.primal.con_y[k][0], basis_value(d, d.primal.con_y, k, i)
    return y + u, y - u


@kernel
def _list_rows(m, d, p):
    """Lists rows with a force in a world of the tile, with their f, b and y in the main solution.

    slip_con is -1 for the dry friction of a joint, and slip_axis then its row.
    """
    n = 0
    for k in range(d.nfrictionrow[0]):
        if n < p.nslipmax:
            f, _ = bounded_force(d.dofrow_D[k], d.primal.dofrow_x[k], d.dofrow_lo[k], d.dofrow_hi[k])
            p.slip_con[n], p.slip_axis[n], p.slip_y[n] = -1, k, d.primal.dofrow_x[k]
            p.slip_size[n], _ = size_of_dof_row(m, d, k)
            p.slip_force[n], p.slip_bound[n] = f, where(d.dofrow_D[k] > 0.0, d.dofrow_hi[k], 0.0)
        n += 1
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        for i in range(1, c.dim):
            up, down = _edges(d, k, i)
            f, g = -(c.D * fmin(up, 0.0)), -(c.D * fmin(down, 0.0))
            if any_(f + g > 0.0):
                if n < p.nslipmax:
                    p.slip_con[n], p.slip_axis[n], p.slip_size[n] = k, i, size_of_contact(m, d, k)
                    p.slip_force[n], p.slip_bound[n], p.slip_y[n] = f - g, f + g, 0.5 * (up - down)
                n += 1
    if n > p.nslipmax:
        n = 0
        p.report[KNOWN] = fmin(p.report[KNOWN], -1.0)
    p.nslip[0] = n


@kernel
def _axis(d, p, r):
    """Returns (force, moment) of a unit force of row r on the pushed body; zeros for a joint."""
    k, i = p.slip_con[r], p.slip_axis[r]
    f, g = Vec3(zeros(3)), Vec3(zeros(3))
    if k < 0:
        g = f
    elif i < 3:
        f = d.con_basis[k].rows[i]
    else:
        g = d.con_basis[TURN, k].rows[i - 3]
    return f, g


@kernel
def _field(m, d, p, r):
    """Computes w_r, its row of A, and its motions and momenta of bodies."""
    for j in range(m.nv):
        p.solved[j] = 0.0
    if p.slip_con[r] < 0:
        p.solved[d.dofrow_dof[p.slip_axis[r]]] = d.dofrow_J[p.slip_axis[r]]
    else:
        clear_body_forces(m, d)
        f, g = _axis(d, p, r)
        add_contact_force(d, p.slip_con[r], f)
        add_contact_moment(d, p.slip_con[r], g)
        body_forces_to_dofs(m, d, p.solved)
    solve_factored(m, d.qLD, d.qLDiagInv, p.solved)
    outward_pass(m, d, p, p.solved)
    inwards(m, d, p)
    copy(p.dof_lag, m.nv, p.slip_lag, m.nv * r)
    copy(p.body_lag, m.nbody, p.slip_motion, m.nbody * r)
    copy(p.body_lag_force, m.nbody, p.slip_momentum, m.nbody * r)
    for e in range(p.nslip[0]):
        if p.slip_con[e] < 0:
            x = d.dofrow_J[p.slip_axis[e]] * p.solved[d.dofrow_dof[p.slip_axis[e]]]
        else:
            w = relative_motion(d, p.slip_con[e], p.body_lag, 0)
            f, g = _axis(d, p, e)
            x = dot(f, w.linear) + dot(g, w.angular)
        p.slip_A[p.nslip[0] * r + e] = x


@kernel
def _has_dry_tendons(d):
    """Returns the mask of worlds with dry friction of tendons: its updates have no formulas."""
    found = false_mask(d)
    for k in range(d.ngenrow[0]):
        if d.genrow_type[k] == FRICTION_TENDON:
            found = found | (d.genrow_D[k] > 0.0)
    return found


@kernel
def prepare_noslip(m, d, p):
    """Computes rows and fields before `outward_pass` of the state; lowers report[KNOWN] where formulas do not apply."""
    p.nslip[0] = 0
    if m.opt_noslip_iterations > 0:
        factor_m(m, d)
        _list_rows(m, d, p)
        p.report[KNOWN] = where(_has_dry_tendons(d), fmin(p.report[KNOWN], 0.0), p.report[KNOWN])
        for r in range(p.nslip[0]):
            _field(m, d, p, r)
        _sweep(m, d, p, first=1, by_position=0)


# ---- columns ---------------------------------------------------------------------------------------------------------
@kernel
def _is_first(p, r):
    """Returns whether row r is the first one of its contact."""
    return r == 0 or p.slip_con[r - 1] != p.slip_con[r]


@kernel
def _place(m, d, p, at, r):
    """Returns which body of row r's contact is moved by position or velocity `at`: 0, 1, BOTH; -1: no effect."""
    place = -1
    if p.slip_con[r] >= 0 and at >= 0 and at < m.nv:
        place = position_place(m, d, p, at, p.slip_con[r])
    elif p.slip_con[r] >= 0 and at >= 0 and at < 2 * m.nv:
        place = velocity_place(m, d, at - m.nv, p.slip_con[r])
    return place


@kernel
def _joint_rates(m, d, p, at, r):
    """slip_dy, slip_dforce, slip_dbound of row r, dry friction, <- rates in the main solution."""
    k = p.slip_axis[r]
    i, f = d.dofrow_dof[k], p.slip_force[r]
    B = loss_damping(m, m.dof_solref[i], m.dof_solimp[i], shortest_timeconst(m))
    dy = d.dofrow_J[k] * (p.da[i] + (B if at == m.nv + i else 0.0))
    p.slip_dy[r], p.slip_dbound[r] = dy, 0.0
    p.slip_dforce[r] = where(fabs(f) < p.slip_bound[r], -(d.dofrow_D[k] * dy), 0.0)


@kernel
def _keep_rates(m, d, p, at, r):
    """slip_rows, slip_stiffness <- rates of y and stiffness of row r's contact; body_lag has the motions of da1."""
    k, place, stiffer = p.slip_con[r], _place(m, d, p, at, r), 0.0
    w = relative_motion(d, k, p.body_lag, 0)
    y, z = along_basis(d, k, w.linear, w.linear, w.angular)
    if place >= 0:
        j = at % m.nv
        if at < m.nv:
            S = d.cdof[j]
            dy, dz, (dist, pos, _) = moved_rows(m, d, p, k, place, S, j)
            stiffer = stiffness_rate(m, d, p, k, place, S, dist, pos)
        else:
            dy, dz = faster_rows(d, k, place, d.cdof[j], 0)
        y, z = y + dy, z + dz
    p.slip_rows[0:6] = join(y, z)
    p.slip_stiffness[0] = stiffer


@kernel
def _contact_rates(m, d, p, at, r):
    """Runs `_joint_rates` for a row of a contact."""
    k, i = p.slip_con[r], p.slip_axis[r]
    if _is_first(p, r):
        _keep_rates(m, d, p, at, r)
    up, down = _edges(d, k, i)
    n, dy, stiffer = p.slip_rows[0], p.slip_rows[i], p.slip_stiffness[0]
    f = -(where(up < 0.0, d.con_D[k], 0.0) * fma(stiffer, up, n + dy))
    g = -(where(down < 0.0, d.con_D[k], 0.0) * fma(stiffer, down, n - dy))
    p.slip_dy[r], p.slip_dforce[r], p.slip_dbound[r] = dy, f - g, f + g


@kernel
def _mobility_rates(m, d, p, j):
    """slip_dA <- derivative of A by the position of dof j."""
    n, S = p.nslip[0], d.cdof[j]
    for e in range(n * n):
        p.slip_dA[e] = 0.0
    for r in range(n):
        k, place, pos, turned = p.slip_con[r], _place(m, d, p, j, r), Vec3(zeros(3)), Vec3(zeros(3))
        f, g = _axis(d, p, r)
        momentum = p.slip_momentum[m.nbody * r + m.dof_bodyid[j]]
        fresh = _is_first(p, r)
        if place >= 0 and fresh:
            _, pos, turned = displaced_contact(m, d, p, k, place, S)
        for e in range(n):
            # dJ_r w_e - (v_e x S) . h_r
            lag = p.slip_lag[m.nv * e + j]
            x = -dot(lag, momentum)
            if place >= 0 and fresh:
                u, du = relative_motion(d, k, p.slip_motion, m.nbody * e), Motion(zeros(6))
                if place != BOTH:
                    w = p.slip_motion[m.nbody * e + d.con_body[k, place]]
                    du = change_of_motion(d, k, place, cross_motion(S, w) + lag, u.angular, pos)
                p.slip_moved[e] = du + Motion(join(cross(u.angular, turned), cross(u.linear, turned)))
            if place >= 0:
                x = x + dot(f, p.slip_moved[e].linear) + dot(g, p.slip_moved[e].angular)
            p.slip_dA[n * r + e] = p.slip_dA[n * r + e] + x
            p.slip_dA[n * e + r] = p.slip_dA[n * e + r] + x


@kernel
def _row_product(p, A, r, x):
    """Returns row r of A times x."""
    first = p.nslip[0] * r
    s = A[first] * x[0]
    for e in range(1, p.nslip[0]):
        s = fma(A[first + e], x[e], s)
    return s


@kernel
def _update(p, r, y, live, by_position):
    """Updates e of row r, and its rate; returns the distance of y from a bound of the force (switching.py)."""
    A, dA = p.slip_A[(p.nslip[0] + 1) * r], 0.0
    f, b, acts = p.slip_force[r], p.slip_bound[r], live & (p.slip_bound[r] > 0.0)
    dy = p.slip_dy[r] + _row_product(p, p.slip_A, r, p.slip_dgain)
    if by_position:
        dA = p.slip_dA[(p.nslip[0] + 1) * r]
        dy = dy + _row_product(p, p.slip_dA, r, p.slip_gain)
    moves = A > MINVAL
    inverse = where(moves, 1.0, 0.0) / where(moves, A, 1.0)
    step = y * inverse
    t, dt = f + p.slip_gain[r] - step, p.slip_dforce[r] + p.slip_dgain[r] - fma(-step, dA, dy) * inverse
    t, dt = where(moves, t, 0.0), where(moves, dt, 0.0)
    dt = where(fabs(t) > b, where(t > 0.0, p.slip_dbound[r], -p.slip_dbound[r]), dt)
    p.slip_gain[r] = where(acts, clip(t, -b, b) - f, p.slip_gain[r])
    p.slip_dgain[r] = where(acts, dt - p.slip_dforce[r], p.slip_dgain[r])
    return where(acts, A * fabs(fabs(t) - b) / fmax(p.slip_size[r], TINY), FAR)


@kernel
def _sweep(m, d, p, first, by_position):
    """slip_gain, slip_dgain <- e and its rates: the sweeps of the no-slip solver.

    first: store y of the first updates, which is the same for all columns; by_position: with dA.
    """
    for r in range(p.nslip[0]):
        p.slip_gain[r], p.slip_dgain[r] = zeros(2)
    for s in range(m.opt_noslip_iterations):
        live = d.dual.nsweep[0] > 1.0 * s
        if not any_(live):
            break
        for r in range(p.nslip[0]):
            at = s * p.nslip[0] + r
            if first or s >= SWEEPS:
                y = p.slip_y[r] + _row_product(p, p.slip_A, r, p.slip_gain)
                if s < SWEEPS:
                    p.slip_path[at] = y
            else:
                y = p.slip_path[at]
            p.report[NEAREST] = fmin(p.report[NEAREST], _update(p, r, y, live, by_position))


@kernel
def _push_row(m, d, p, at, r):
    """Adds d(J_r^T e_r) by coordinate `at`: what moves to product, the rest to the bodies' forces."""
    k, place = p.slip_con[r], _place(m, d, p, at, r)
    if k < 0:
        i = d.dofrow_dof[p.slip_axis[r]]
        p.product[i] = fma(d.dofrow_J[p.slip_axis[r]], p.slip_dgain[r], p.product[i])
    else:
        f, g = _axis(d, p, r)
        add_contact_force(d, k, p.slip_dgain[r] * f)
        add_contact_moment(d, k, p.slip_dgain[r] * g)
        if place >= 0 and at < m.nv:
            _, pos, turned = displaced_contact(m, d, p, k, place, d.cdof[at])
            carrier = -1 if place == BOTH else at
            for body in range(2):
                b, x = d.con_body[k, body], (1.0 - 2.0 * body) * p.slip_gain[r]
                if b > 0:
                    force = x * f, x * g
                    change = cross(turned, force[0]), cross(turned, force[1])
                    add_moved_force(m, d, p.product, b, carrier, (d.con_pos[k], pos), force, change)


@kernel
def _add_column(m, d, p, c):
    """panel_lag += d(J^T e) of column c, with da1 in panel_acceleration."""
    at = p.panel_at[c]
    for i in range(m.nv):
        p.da[i], p.product[i] = p.panel_acceleration[i, c], 0.0
    compute_body_motions(m, d, p.da, p.body_lag)
    for r in range(p.nslip[0]):
        if p.slip_con[r] < 0:
            _joint_rates(m, d, p, at, r)
        else:
            _contact_rates(m, d, p, at, r)
    by_position = at >= 0 and at < m.nv
    if by_position:
        _mobility_rates(m, d, p, at)
    _sweep(m, d, p, 0, by_position)
    clear_body_forces(m, d)
    for r in range(p.nslip[0]):
        _push_row(m, d, p, at, r)
    body_forces_to_dofs(m, d, p.product)
    for i in range(m.nv):
        p.panel_lag[i, c] = p.panel_lag[i, c] + p.product[i]


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
