"""Derivatives of the no-slip solver's friction: its sweeps are differentiated update by update.

The main solver computes the acceleration a1, and the forces f of dry friction and of pyramids' pairs of edges.  The
sweeps change them by e: M (a2 - a1) = J^T e.  They usually end early, so implicit differentiation of their limit does
not apply.  With b_i the bound of dry friction, or the sum of the two edges in the main solution, an update is

    y_i = (J a1 - aref)_i + A_i e,      f_i + e_i <- clip(f_i + e_i - y_i / A_ii, -b_i, b_i),      A = J M^-1 J^T.

With w_i = M^-1 J_i^T and for the position of a dof,  dA_ik = dJ_i w_k + dJ_k w_i - w_i^T dM w_k.  The dof moves all
outer bodies along S.  With v_i the motion before the joint in the field w_i, and h_k the momentum of the outer bodies,

    w_i^T dM w_k = (v_i x S) . h_k + (v_k x S) . h_i.

In the record p (records.py) each row r of friction, of dry friction or of one direction of a contact, has slip_con (its
contact, -1: dry friction), slip_axis (its direction in the contact's basis, or its dof row), slip_force = f_r,
slip_bound = b_r, slip_y = (J a1 - aref)_r, slip_change = e_r, slip_size (switching.py), and the derivatives
slip_dforce, slip_dbound, slip_dy and slip_dchange by one coordinate.  slip_motion: motions of all bodies in the fields
w_r, slip_zeta: v_r x S of all dofs, slip_momentum: h_r of all bodies, row after row.  PANEL (4) columns are solved
together (panel.py): panel_at[c], panel_dp[:, c] and panel_acceleration[:, c] are coordinate, dp and da1 of column c,
and panel_step[:, c] receives K da*.  slip_A = A and slip_dA are nslip x nslip by rows.  report[KNOWN] is 1 in worlds in
which all rates have formulas, report[NEAREST] the distance to the next change of the active set, at most FAR.
`at` is the index of a coordinate: positions by dof, velocities, activations, controls; -1: none.  S = cdof.
con_body[k, side] is the body of contact k on side 0 (the pushed one) or 1, BOTH the side of a dof that moves both.

Imported from contact_rates.py, for contact k and an axis S of a dof that moves the body on a side: displaced_contact,
(change of distance, displacement of the point, rotation of the frame); rows_by_position, rows_by_velocity, changes of
J a1 - aref (along normal and tangents, along the rotation axes) by a position and a velocity; stiffness_rate, relative
change of D; change_of_motion, that of the bodies' relative motion; along_basis, components in the contact's basis.

The integrator's K a* = M a1 + J^T e - p  gives  K da* = M da1 + d(J^T e) + dp, with dp at a1 - a*.  For a2, K is M.
Source: MuJoCo documentation, Computation, "Algorithms" (NoSlip), for the sweeps.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.friction_loss import loss_damping
from featherlane.engine.constraint.impedance import shortest_timeconst
from featherlane.engine.dynamics.inertia.joint_space import factor_m, multiply_joint_space, solve_columns
from featherlane.engine.dynamics.sparse.tree_factor import PANEL
from featherlane.engine.solver.dual.noslip import MINVAL
from featherlane.engine.solver.rows.laws import TINY
from featherlane.engine.solver.rows.rows import (
    add_contact_force,
    add_contact_moment,
    body_forces_to_dofs,
    clear_body_forces,
    compute_body_motions,
)
from featherlane.tools.sensitivity.rates.contact_rates import (
    BOTH,
    along_basis,
    change_of_motion,
    displaced_contact,
    position_side,
    rows_by_position,
    rows_by_velocity,
    stiffness_rate,
    velocity_side,
)
from featherlane.tools.sensitivity.rates.paths import add_moved_force, relative_motion, turned
from featherlane.tools.sensitivity.rates.records import KNOWN, NEAREST, SWEEPS
from featherlane.tools.sensitivity.systems.noslip_rows import (
    compute_field,
    edge_values,
    has_dry_tendons,
    list_rows,
    unit_force,
)
from featherlane.tools.sensitivity.systems.switching import FAR

# ---- preparation -----------------------------------------------------------------------------------------------------


@kernel
def prepare_noslip(m, d, p):
    """Lists the rows and computes their fields w_r, A and e.

    It must run before `outward_pass` of the state, whose results it overwrites.
    report[KNOWN] <- 0 in worlds with dry friction of tendons, whose updates have no formulas.
    """
    p.nslip[0] = 0
    if m.opt_noslip_iterations > 0:
        factor_m(m, d)  # qLD, qLDiagInv, with which `compute_field` solves
        list_rows(m, d, p)
        # fmin: -1, "the world must run alone", stays
        p.report[KNOWN] = where(has_dry_tendons(d), fmin(p.report[KNOWN], 0.0), p.report[KNOWN])
        for r in range(p.nslip[0]):
            compute_field(m, d, p, r)  # slip_A, slip_zeta, slip_motion, slip_momentum
        _sweep(m, d, p, stores_path=1, by_position=0)  # slip_change and slip_path


# ---- columns ---------------------------------------------------------------------------------------------------------
@kernel
def _is_first_of_contact(p, r):
    """Returns whether row r is the first one of its contact."""
    return r == 0 or p.slip_con[r - 1] != p.slip_con[r]


@kernel
def _moved_side(m, d, p, at, r):
    """Returns the side of the body of row r's contact that coordinate `at`, a position or a velocity, moves.

    0 is the pushed body, 1 the other body, BOTH both of them.  It is -1 if the coordinate does not change the contact's
    forces, and for dry friction.
    """
    side = -1
    if p.slip_con[r] >= 0 and at >= 0 and at < m.nv:
        side = position_side(m, d, p, at, p.slip_con[r])
    elif p.slip_con[r] >= 0 and at >= 0 and at < 2 * m.nv:
        side = velocity_side(m, d, at - m.nv, p.slip_con[r])
    return side


@kernel
def _joint_rates(m, d, p, at, r):
    """slip_dy, slip_dforce, slip_dbound of row r, dry friction, <- derivatives in the main solution by coordinate `at`.

    dy = J (da1 + B dv) with the row's damping B; dv is 1 if `at` is the velocity of its dof, else 0.
    df = -D dy between the bounds.
    Reads: p.da = da1.
    """
    row = p.slip_axis[r]
    i, f = d.row_dof[row], p.slip_force[r]
    B = loss_damping(m, m.dof_solref[i], m.dof_solimp[i], shortest_timeconst(m))
    dy = d.row_J[row] * (p.da[i] + (B if at == m.nv + i else 0.0))
    p.slip_dy[r], p.slip_dbound[r] = dy, 0.0
    p.slip_dforce[r] = where(fabs(f) < p.slip_bound[r], -(d.row_D[row] * dy), 0.0)


@kernel
def _store_contact_rates(m, d, p, at, r):
    """slip_rows, slip_stiffness <- derivatives of y = J a1 - aref of row r's contact, relative derivative of its D.

    Reads: body_field, the motions of bodies at the accelerations da1.
    """
    k, side, stiffer = p.slip_con[r], _moved_side(m, d, p, at, r), 0.0
    # J da1, along normal and tangents, and along the rotation axes
    motion = relative_motion(d, k, p.body_field, first=0)
    y, y_angular = along_basis(d, k, for_normal=motion.linear, for_tangents=motion.linear, for_axes=motion.angular)
    if side >= 0:
        # the derivative at fixed a1 by the position or the velocity of dof j: `at` is j or nv + j
        j = at % m.nv
        if at < m.nv:
            S = d.cdof[j]
            # dist, pos: changes of the contact's distance and point
            dy, dy_angular, (dist, pos, _) = rows_by_position(m, d, p, k, side, S, j)
            stiffer = stiffness_rate(m, d, p, k, side, S, dist, pos)
        else:
            dy, dy_angular = rows_by_velocity(d, k, side, d.cdof[j], accelerates=0)
        y, y_angular = y + dy, y_angular + dy_angular
    p.slip_rows[0:6] = join(y, y_angular)
    p.slip_stiffness[0] = stiffer


@kernel
def _contact_rates(m, d, p, at, r):
    """slip_dy, slip_dforce, slip_dbound of row r, of a contact, <- derivatives in the main solution by coordinate `at`.

    An edge with the force f = -D x, x = y + y_i or y - y_i, has df = -D (dx + stiffer x) while it pushes (x < 0);
    stiffer: relative change of D.
    """
    k, i = p.slip_con[r], p.slip_axis[r]
    if _is_first_of_contact(p, r):
        _store_contact_rates(m, d, p, at, r)  # slip_rows and slip_stiffness, for all rows of the contact
    up, down = edge_values(d, k, i)  # x of both edges
    dnormal, dy, stiffer = p.slip_rows[0], p.slip_rows[i], p.slip_stiffness[0]
    df_up = -(where(up < 0.0, d.con_D[k], 0.0) * fma(stiffer, up, dnormal + dy))
    df_down = -(where(down < 0.0, d.con_D[k], 0.0) * fma(stiffer, down, dnormal - dy))
    p.slip_dy[r], p.slip_dforce[r], p.slip_dbound[r] = dy, df_up - df_down, df_up + df_down


@kernel
def _store_moved_motions(m, d, p, j, k, side):
    """slip_moved[e] <- change of the relative motion at contact k in each field w_e, by the position of dof j.

    The motion is in the contact's axes, whose rotation w changes it by motion x w.
    side: that of `_moved_side`.
    """
    S = d.cdof[j]
    _, pos, w = displaced_contact(m, d, p, k, side, S)
    for e in range(p.nslip[0]):
        motion, change = relative_motion(d, k, p.slip_motion, m.nbody * e), Motion(zeros(6))
        # a dof that moves both bodies does not change their relative motion
        if side != BOTH:
            # S x (motion of the body - v_e), since slip_zeta is v_e x S
            body_motion = p.slip_motion[m.nbody * e + d.con_body[k, side]]
            body_change = cross_motion(S, body_motion) + p.slip_zeta[m.nv * e + j]
            change = change_of_motion(d, k, side, body_change, motion.angular, pos)
        p.slip_moved[e] = change + Motion(join(cross(motion.angular, w), cross(motion.linear, w)))


@kernel
def _compute_dA(m, d, p, j):
    """slip_dA <- derivative of A by the position of dof j: dA_re = dJ_r w_e + dJ_e w_r - w_r^T dM w_e.

    Each pair (r, e) adds dJ_r w_e - (v_e x S) . h_r to the entries (r, e) and (e, r).  The terms of both orders of
    a pair together are dA.
    """
    n = p.nslip[0]
    for entry in range(n * n):
        p.slip_dA[entry] = 0.0
    for r in range(n):
        side = _moved_side(m, d, p, j, r)
        # slip_moved is the same for all rows of a contact
        if side >= 0 and _is_first_of_contact(p, r):
            _store_moved_motions(m, d, p, j, p.slip_con[r], side)
        force, moment = unit_force(d, p, r)
        h = p.slip_momentum[m.nbody * r + m.dof_bodyid[j]]
        for e in range(n):
            term = -dot(p.slip_zeta[m.nv * e + j], h)  # -(v_e x S) . h_r
            if side >= 0:
                # + dJ_r w_e
                term = term + dot(force, p.slip_moved[e].linear) + dot(moment, p.slip_moved[e].angular)
            p.slip_dA[n * r + e] = p.slip_dA[n * r + e] + term
            p.slip_dA[n * e + r] = p.slip_dA[n * e + r] + term


@kernel
def _row_product(p, A, r, x):
    """Returns the product of row r of A, nslip x nslip by rows, and x."""
    start = p.nslip[0] * r
    product = A[start] * x[0]
    for e in range(1, p.nslip[0]):
        product = fma(A[start + e], x[e], product)
    return product


@kernel
def _update_row(p, r, y, running, by_position):
    """slip_change[r], slip_dchange[r] <- e_r after one update, and its derivative; returns the distance of a switch.

    The distance is that of y_r from the value at which the force reaches a bound, divided by slip_size.

    Args:
        y: y_r of the update, J a - aref at the present e.
        running: mask of worlds that still sweep.
        by_position: 1 if A depends on the coordinate, with slip_dA.
    """
    # A_rr, entry (r, r)
    A, dA = p.slip_A[(p.nslip[0] + 1) * r], 0.0
    dy = p.slip_dy[r] + _row_product(p, p.slip_A, r, p.slip_dchange)
    if by_position:
        dA = p.slip_dA[(p.nslip[0] + 1) * r]
        dy = dy + _row_product(p, p.slip_dA, r, p.slip_change)
    movable = A > MINVAL  # a row that moves no body has A = 0 up to rounding, and no force
    f, b = seed(p.slip_force[r], p.slip_dforce[r]), seed(p.slip_bound[r], p.slip_dbound[r])
    e, acts = seed(p.slip_change[r], p.slip_dchange[r]), running & (p.slip_bound[r] > 0.0)
    unclipped = where(movable, f + e - seed(y, dy) / where(movable, seed(A, dA), 1.0), 0.0)
    p.slip_change[r], p.slip_dchange[r] = split_tangents(where(acts, clip(unclipped, -b, b) - f, e), 1)
    (force, _), (bound, _) = split_tangents(unclipped, 1), split_tangents(b, 1)
    # a change of the force by x is one of y by A x; TINY avoids a division by 0 in worlds without the row
    return where(acts, A * fabs(fabs(force) - bound) / fmax(p.slip_size[r], TINY), FAR)


@kernel
def _sweep(m, d, p, stores_path, by_position):
    """slip_change, slip_dchange <- e and its derivatives: the sweeps of the no-slip solver.

    Args:
        stores_path: 1: store y of the first SWEEPS sweeps in slip_path (sweep, row), for all columns; 0: read it there.
        by_position: 1 if A depends on the coordinate, with slip_dA.
    """
    for r in range(p.nslip[0]):
        p.slip_change[r], p.slip_dchange[r] = zeros(2)
    for s in range(m.opt_noslip_iterations):
        # nsweep: number of sweeps that the no-slip solver made in each world
        running = d.dual.nsweep[0] > 1.0 * s
        if not any_(running):
            break
        for r in range(p.nslip[0]):
            entry = s * p.nslip[0] + r
            # slip_path has memory for SWEEPS sweeps; y of later sweeps is computed in each column
            if stores_path or s >= SWEEPS:
                y = p.slip_y[r] + _row_product(p, p.slip_A, r, p.slip_change)
                if s < SWEEPS:
                    p.slip_path[entry] = y
            else:
                y = p.slip_path[entry]
            p.report[NEAREST] = fmin(p.report[NEAREST], _update_row(p, r, y, running, by_position))


@kernel
def _add_row_change(m, d, p, at, r):
    """Adds d(J_r^T e_r) by coordinate `at`: J_r^T de_r to the bodies' forces con_wrench, dJ_r^T e_r to product.

    Dry friction has a constant J_r: it adds J_r^T de_r to product, and nothing to con_wrench.
    """
    k, side = p.slip_con[r], _moved_side(m, d, p, at, r)
    if k < 0:
        i = d.row_dof[p.slip_axis[r]]
        p.product[i] = fma(d.row_J[p.slip_axis[r]], p.slip_dchange[r], p.product[i])
    else:
        force, moment = unit_force(d, p, r)
        add_contact_force(d, k, p.slip_dchange[r] * force)
        add_contact_moment(d, k, p.slip_dchange[r] * moment)
        # only positions change J_r
        if side >= 0 and at < m.nv:
            _, pos, w = displaced_contact(m, d, p, k, side, d.cdof[at])
            # if both bodies move, pos and w are relative to them: the axes of `add_moved_force` stay fixed (-1)
            moving_dof = -1 if side == BOTH else at
            for end in range(2):
                # the body on side 1 has the opposite force
                b, e = d.con_body[k, end], (1.0 - 2.0 * end) * p.slip_change[r]
                if b > 0:
                    point = seed(d.con_pos[k], pos)
                    add_moved_force(m, d, p.product, b, moving_dof, point, turned(w, e * force), turned(w, e * moment))


@kernel
def _correct_column(m, d, p, c):
    """panel_dp[:, c] += d(J^T e) of column c of the panel, with da1 in panel_acceleration.

    Scratch: da, product, body_field, con_wrench, slip_*.
    """
    at = p.panel_at[c]
    for i in range(m.nv):
        p.da[i], p.product[i] = flat(p.panel_acceleration)[PANEL * i + c], 0.0
    compute_body_motions(m, d, p.da, p.body_field)  # motions of bodies at da1
    for r in range(p.nslip[0]):
        if p.slip_con[r] < 0:
            _joint_rates(m, d, p, at, r)
        else:
            _contact_rates(m, d, p, at, r)
    by_position = at >= 0 and at < m.nv
    if by_position:
        _compute_dA(m, d, p, at)
    _sweep(m, d, p, stores_path=0, by_position=by_position)  # slip_change, slip_dchange
    clear_body_forces(m, d)
    for r in range(p.nslip[0]):
        _add_row_change(m, d, p, at, r)
    body_forces_to_dofs(m, d, p.product)
    for i in range(m.nv):
        flat(p.panel_dp)[PANEL * i + c] = flat(p.panel_dp)[PANEL * i + c] + p.product[i]


@kernel
def correct_columns(m, d, p):
    """panel_step <- K da* = M da1 + dp + d(J^T e);  panel_acceleration <- M^-1 panel_step.

    Without a next state (rate_steps = 0) the latter is da2; else it is da* in worlds where K is M, and not used in
    others (`step_panel`).
    """
    if p.nslip[0] > 0:
        for c in range(PANEL):
            _correct_column(m, d, p, c)  # adds d(J^T e) to dp in panel_dp
    multiply_joint_space(m, d.M, p.panel_acceleration, p.panel_step)
    for i in range(m.nv):
        p.panel_step[i] = p.panel_step[i] + p.panel_dp[i]  # K da*
        p.panel_acceleration[i] = p.panel_step[i]
    solve_columns(m, d.qLD, d.qLDiagInv, p.panel_acceleration)  # with the factor of M
