"""Derivatives of forces along tendons, of limits of balls, and of equalities of joints and tendons.

A row has the force f = -D x while it is active, x = J a + B J v + K d r.  It changes the residual by

    dg = J^T (D dx - f s dr) - dJ^T f        s the relative rate of D by r

A tendon adds its spring, damper and actuators to its limits and dry friction.  With their sums, the tension F, the
stiffness k, the damping b and the curvature D,

    dg = J^T (k J dq + b (J dv + dJ v) + D (J da + dJ a)) - dJ^T F

dJ is 0 for a fixed tendon (tendon_bend.py and ball_rates.py for others).  An equality with a polynomial has
J = J_1 - c(y) J_2 and dJ = dJ_1 - c(y) dJ_2 - c'(y) J_2^T (J_2 dq).
"""

from featherlane.prelude import *
from featherlane.constraint.friction_loss import loss_damping
from featherlane.constraint.impedance import shortest_timeconst
from featherlane.dynamics.actuator.control import is_disabled
from featherlane.dynamics.actuator.rate import force_by_length, force_by_velocity
from featherlane.dynamics.tendon.force import damper_force, spring_force, tendon_damping_rate, tendon_spring_rate
from featherlane.dynamics.tendon.length import is_fixed
from featherlane.sensitivity.derivative.ball_rates import set_ball_bend
from featherlane.sensitivity.derivative.dof_rates import impedance_slopes
from featherlane.sensitivity.derivative.fastening_rates import is_fastening
from featherlane.sensitivity.derivative.tendon_bend import add_tendon_bend
from featherlane.solver.primal.problem import bounded_force


# ---- forces along tendons --------------------------------------------------------------------------------------------
@kernel
def _tendons(m, d, p):
    """Computes tension, stiffness and damping of each tendon and of the actuators on it; after `actuator_rates`."""
    flags = m.opt_disableflags
    for i in range(m.ntendon):
        p.ten_force[i], p.ten_stiffness[i], p.ten_friction[i] = 0.0, 0.0, 0.0
        p.ten_curvature[i] = 0.0
        if not (flags & DISABLE_SPRING):
            p.ten_force[i], p.ten_stiffness[i] = spring_force(m, d, i), tendon_spring_rate(m, d, i)
        if not (flags & DISABLE_DAMPER):
            p.ten_force[i] = p.ten_force[i] + damper_force(m, d, i)
            p.ten_friction[i] = tendon_damping_rate(m, d, i)
    if not (flags & DISABLE_ACTUATION):
        for i in range(m.nactuator):
            if m.actuator_trntype[i] == TRN_TENDON and not is_disabled(m, i):
                t, o = m.actuator_trnid[i, 0], m.actuator_outadr[i]
                gear = m.actuator_gear[o][0]
                p.ten_force[t] = fma(gear, d.actuator_force[o], p.ten_force[t])
                p.ten_stiffness[t] = p.ten_stiffness[t] - gear * gear * force_by_length(m, d, i)
                p.ten_friction[t] = p.ten_friction[t] - gear * gear * force_by_velocity(m, d, i)


# ---- rows ------------------------------------------------------------------------------------------------------------
@kernel
def _is_alone(m, d, k):
    """Returns whether row k belongs neither to a tendon nor to a connect or weld."""
    kind = d.genrow_type[k]
    return kind == LIMIT_JOINT or (kind == EQUALITY and not is_fastening(m, d.genrow_id[k]))


@kernel
def _follows(m, d, k):
    """Returns whether row k is an equality that follows a polynomial of a second joint or tendon."""
    return d.genrow_type[k] == EQUALITY and m.eq_obj2id[d.genrow_id[k]] >= 0


@kernel
def _second_entry(m, d, e, k):
    """Returns the derivative by dof k of the second coordinate or length of equality e."""
    j, x = m.eq_obj2id[e], 0.0
    if m.eq_type[e] == EQ_JOINT:
        x = 1.0 if m.jnt_dofadr[j] == k else 0.0
    else:
        for c in range(m.ten_J_rowadr[j], m.ten_J_rowadr[j] + m.ten_J_rownnz[j]):
            if m.ten_J_colind[c] == k:
                x = d.ten_J[c]
    return x


@kernel
def _polynomial_slopes(m, d, e):
    """Returns the first and second derivatives of the polynomial of equality e."""
    j = m.eq_obj2id[e]
    if m.eq_type[e] == EQ_JOINT:
        y = d.qpos[m.jnt_qposadr[j]] - m.qpos0[m.jnt_qposadr[j]]
    else:
        y = d.ten_length[j] - m.tendon_length0[j]
    a1, a2, a3, a4 = tuple(m.eq_data[e, c] for c in range(1, 5))
    slope = fma(y, fma(y, fma(y, 4.0 * a4, 3.0 * a3), 2.0 * a2), a1)
    return slope, fma(y, fma(y, 12.0 * a4, 6.0 * a3), 2.0 * a2)


@kernel
def _bends(m, d, p, k, B, f, D):
    """Computes the rates of the Jacobian of row k, an equality with a second joint or tendon."""
    e, o, along = d.genrow_id[k], d.genrow_dofadr[k], 0.0
    _, bend = _polynomial_slopes(m, d, e)
    for c in range(o, o + d.genrow_dofnum[k]):
        i = d.genrow_dof[c]
        along = fma(_second_entry(m, d, e, i), fma(B, d.qvel[i], d.qacc[i]), along)
    p.row_bend[k] = where(D > 0.0, bend * f, 0.0)
    p.row_swing[k] = where(D > 0.0, -(D * bend * along), 0.0)


@kernel
def row_parameters(m, k, kind, i):
    """Returns solref and solimp of a row of that kind, of equality or tendon i."""
    tendon = m.tendon[i]
    if kind == EQUALITY:
        solref, solimp = m.eq_solref[i], m.eq_solimp[i]
    elif kind == LIMIT_JOINT:
        solref, solimp = m.jnt_solref[i], m.jnt_solimp[i]
    elif kind == LIMIT_TENDON:
        solref, solimp = tendon.solref_lim, tendon.solimp_lim
    else:
        solref, solimp = tendon.solref_fri, tendon.solimp_fri
    return solref, solimp


@kernel
def _side(m, d, k, i):
    """Returns -1 if row k of tendon i is -J, that of an upper limit, else 1."""
    same, o, first = 0.0, d.genrow_dofadr[k], m.ten_J_rowadr[i]
    for e in range(d.genrow_dofnum[k]):
        same = fma(d.genrow_J[o + e], d.ten_J[first + e], same)
    return where(same < 0.0, -1.0, 1.0)


@kernel
def _rows(m, d, p):
    """Computes rates of each general row, at the solution: those of a separate row, and those that a tendon adds."""
    shortest = shortest_timeconst(m)
    for k in range(d.ngenrow[0]):
        kind, i = d.genrow_type[k], d.genrow_id[k]
        solref, solimp = row_parameters(m, k, kind, i)
        B = loss_damping(m, solref, solimp, shortest)
        lo, hi = d.genrow_lo[k], d.genrow_hi[k]
        f, _ = bounded_force(d.genrow_D[k], d.primal.genrow_x[k], lo, hi)
        D = where((f > lo) & (f < hi), d.genrow_D[k], 0.0)
        p.row_bend[k], p.row_swing[k], stiffness = 0.0, 0.0, 0.0
        if kind != FRICTION_TENDON:
            stiffer, pull, B = impedance_slopes(solref, solimp, d.genrow_pos[k] - d.genrow_margin[k], shortest)
            stiffness = where(D > 0.0, fma(D, pull, -(f * stiffer)), 0.0)
        friction = where(D > 0.0, D * B, 0.0)
        if _is_alone(m, d, k):
            p.row_force[k] = where(D > 0.0, f, 0.0)
            p.row_stiffness[k], p.row_friction[k], p.row_curvature[k] = stiffness, friction, D
            if _follows(m, d, k):
                _bends(m, d, p, k, B, f, D)
        elif kind != EQUALITY:
            p.ten_force[i] = fma(_side(m, d, k, i), f, p.ten_force[i])
            p.ten_stiffness[i] = p.ten_stiffness[i] + stiffness
            p.ten_friction[i] = p.ten_friction[i] + friction
            p.ten_curvature[i] = p.ten_curvature[i] + D


@kernel
def tendon_rates(m, d, p):
    """Computes ten_*, row_*: rates of forces along tendons and of equalities.

    Reads actuator_rate, and rows at the solution.
    """
    _tendons(m, d, p)
    _rows(m, d, p)


# ---- columns ---------------------------------------------------------------------------------------------------------
@kernel
def _add_square(p, J, dof, first, number, k, weight):
    """dg += weight J^T J_k, of the row that starts at entry `first`."""
    for e in range(first, first + number):
        if dof[e] == k:
            s = weight * J[e]
            for c in range(first, first + number):
                p.dg[dof[c]] = fma(J[c], s, p.dg[dof[c]])


@kernel
def _add_rows(m, d, p, k, weights):
    """dg += weight J^T J_k of each row of an equality or a ball."""
    for r in range(d.ngenrow[0]):
        if _is_alone(m, d, r):
            _add_square(p, d.genrow_J, d.genrow_dof, d.genrow_dofadr[r], d.genrow_dofnum[r], k, weights[r])


@kernel
def _add_tendons(m, d, p, k, weights):
    """dg += weight J^T J_k of each tendon."""
    for i in range(m.ntendon):
        _add_square(p, d.ten_J, m.ten_J_colind, m.ten_J_rowadr[i], m.ten_J_rownnz[i], k, weights[i])


@kernel
def _has_dof(dof, first, number, k):
    """Returns whether the row that starts at entry `first` has dof k."""
    found = 0
    for e in range(first, first + number):
        found = 1 if dof[e] == k else found
    return found


@kernel
def _clear_bend(p, dof, first, number):
    """ten_bend <- 0 on the dofs of a row."""
    for e in range(first, first + number):
        p.ten_bend[dof[e]] = 0.0


@kernel
def _add_bend(d, p, row, force, friction, curvature):
    """dg += J^T (b dJ v + D dJ a) - dJ^T F of a row, with dJ in ten_bend."""
    (J, dof, first, number), along = row, 0.0
    for e in range(first, first + number):
        j = dof[e]
        along = fma(p.ten_bend[j], fma(friction, d.qvel[j], curvature * d.qacc[j]), along)
    for e in range(first, first + number):
        j = dof[e]
        p.dg[j] = fma(-force, p.ten_bend[j], fma(J[e], along, p.dg[j]))


@kernel
def _add_spatial(m, d, p, i, k):
    """Adds the bend of the spatial tendon i."""
    first, number = m.ten_J_rowadr[i], m.ten_J_rownnz[i]
    if _has_dof(m.ten_J_colind, first, number, k):
        _clear_bend(p, m.ten_J_colind, first, number)
        add_tendon_bend(m, d, p, i, k, 1.0)
        row = d.ten_J, m.ten_J_colind, first, number
        _add_bend(d, p, row, p.ten_force[i], p.ten_friction[i], p.ten_curvature[i])


@kernel
def _is_bent(m, d, r):
    """Returns whether row r is the limit of a ball or an equality of spatial tendons."""
    e, kind = d.genrow_id[r], d.genrow_type[r]
    bent = kind == LIMIT_JOINT
    if kind == EQUALITY and m.eq_type[e] == EQ_TENDON:
        j = m.eq_obj2id[e]
        bent = not is_fixed(m, m.eq_obj1id[e]) or (j >= 0 and not is_fixed(m, j))
    return bent


@kernel
def _add_bent_row(m, d, p, r, k):
    """Adds the bend of row r."""
    e, first, number = d.genrow_id[r], d.genrow_dofadr[r], d.genrow_dofnum[r]
    if _has_dof(d.genrow_dof, first, number, k):
        _clear_bend(p, d.genrow_dof, first, number)
        if d.genrow_type[r] == LIMIT_JOINT:
            set_ball_bend(m, d, p, e, k)
        else:
            i, j = m.eq_obj1id[e], m.eq_obj2id[e]
            if not is_fixed(m, i):
                add_tendon_bend(m, d, p, i, k, 1.0)
            if j >= 0 and not is_fixed(m, j):
                slope, _ = _polynomial_slopes(m, d, e)
                add_tendon_bend(m, d, p, j, k, -slope)
        row = d.genrow_J, d.genrow_dof, first, number
        _add_bend(d, p, row, p.row_force[r], p.row_friction[r], p.row_curvature[r])


@kernel
def add_tendon_position_column(m, d, p, k):
    """dg += rates by the position of dof k."""
    _add_tendons(m, d, p, k, p.ten_stiffness)
    for i in range(m.ntendon):
        if not is_fixed(m, i):
            _add_spatial(m, d, p, i, k)
    _add_rows(m, d, p, k, p.row_stiffness)
    for r in range(d.ngenrow[0]):
        if _is_bent(m, d, r):
            _add_bent_row(m, d, p, r, k)
        if _follows(m, d, r) and not is_fastening(m, d.genrow_id[r]):
            _add_swing(m, d, p, r, k)


@kernel
def _add_swing(m, d, p, r, k):
    """Adds the rates by c'(y) of row r, an equality with a polynomial."""
    e, o = d.genrow_id[r], d.genrow_dofadr[r]
    if any_((p.row_bend[r] != 0.0) | (p.row_swing[r] != 0.0)):
        x = _second_entry(m, d, e, k)
        bend, swing = p.row_bend[r] * x, p.row_swing[r] * x
        for c in range(o, o + d.genrow_dofnum[r]):
            i = d.genrow_dof[c]
            p.dg[i] = fma(_second_entry(m, d, e, i), bend, fma(d.genrow_J[c], swing, p.dg[i]))


@kernel
def add_tendon_velocity_column(m, d, p, k):
    """dg += rates by the velocity of dof k."""
    _add_tendons(m, d, p, k, p.ten_friction)
    _add_rows(m, d, p, k, p.row_friction)


@kernel
def add_tendon_acceleration_column(m, d, p, k):
    """dg += rates by the acceleration of dof k."""
    _add_tendons(m, d, p, k, p.ten_curvature)
    _add_rows(m, d, p, k, p.row_curvature)
