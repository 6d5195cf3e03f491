"""Derivatives of forces along fixed tendons, and of general rows on joints and fixed tendons.

A fixed tendon has a constant Jacobian J, so its spring, damper and actuators change the residual by

    dg = J^T (s J dq + b J dv)        s, b: stiffness and damping along the tendon

A row has the force f = -D x while it is active, x = J a + B J v + K d r.  It changes the residual by

    dg = J^T (D dx - f s dr) - dJ^T f        s the relative rate of D by r

dJ is 0, except for an equality with a polynomial: there J = J_1 - c(y) J_2 and dJ = -c'(y) J_2^T (J_2 dq).
"""

from featherlane.prelude import *
from featherlane.constraint.impedance import reference, shortest_timeconst
from featherlane.dynamics.actuator.control import is_disabled
from featherlane.dynamics.actuator.rate import force_rate, length_rate
from featherlane.dynamics.tendon.force import tendon_damping_rate, tendon_spring_rate
from featherlane.sensitivity.derivative.dof_rates import impedance_slopes
from featherlane.solver.primal.problem import bounded_force


# ---- forces along tendons --------------------------------------------------------------------------------------------
@kernel
def _tendons(m, d, p):
    """Computes stiffness and damping of each tendon, with those of the actuators on it; after `actuator_rates`."""
    flags = m.opt_disableflags
    for i in range(m.ntendon):
        p.ten_stiffness[i] = zero(d) if flags & DISABLE_SPRING else tendon_spring_rate(m, d, i)
        p.ten_friction[i] = zero(d) if flags & DISABLE_DAMPER else tendon_damping_rate(m, d, i)
    if not (flags & DISABLE_ACTUATION):
        for i in range(m.nactuator):
            if m.actuator_trntype[i] == TRN_TENDON and not is_disabled(m, i):
                t, gear = m.actuator_trnid[2 * i], m.actuator_gear[6 * m.actuator_outadr[i]]
                p.ten_stiffness[t] = p.ten_stiffness[t] - gear * gear * length_rate(m, d, i)
                p.ten_friction[t] = p.ten_friction[t] - gear * gear * force_rate(m, d, i)


# ---- rows ------------------------------------------------------------------------------------------------------------
@kernel
def _follows(m, e):
    """Returns whether equality e follows a polynomial of a second joint or tendon."""
    return m.eq_obj2id[e] >= 0


@kernel
def _second_entry(m, d, e, k):
    """Returns the derivative by dof k of the second coordinate or length of equality e."""
    j, x = m.eq_obj2id[e], zero(d)
    if m.eq_type[e] == EQ_JOINT:
        x = real(d, 1.0) if m.jnt_dofadr[j] == k else zero(d)
    else:
        for c in range(m.ten_J_rowadr[j], m.ten_J_rowadr[j] + m.ten_J_rownnz[j]):
            if m.ten_J_colind[c] == k:
                x = d.ten_J[c]
    return x


@kernel
def _polynomial_bend(m, d, e):
    """Returns the second derivative of the polynomial of equality e."""
    a, j = NEQDATA * e, m.eq_obj2id[e]
    if m.eq_type[e] == EQ_JOINT:
        y = d.qpos[m.jnt_qposadr[j]] - m.qpos0[m.jnt_qposadr[j]]
    else:
        y = d.ten_length[j] - m.tendon_length0[j]
    a2, a3, a4 = m.eq_data[a + 2], m.eq_data[a + 3], m.eq_data[a + 4]
    return fma(y, fma(y, 12.0 * a4, 6.0 * a3), 2.0 * a2)


@kernel
def _bends(m, d, p, k, B, f, D):
    """Computes the rates of the Jacobian of row k, an equality with a second joint or tendon."""
    e, o, along = d.genrow_id[k], d.genrow_dofadr[k], zero(d)
    bend = _polynomial_bend(m, d, e)
    for c in range(o, o + d.genrow_dofnum[k]):
        i = d.genrow_dof[c]
        along = fma(_second_entry(m, d, e, i), fma(B, d.qvel[i], d.qacc[i]), along)
    p.row_bend[k] = where(D > 0.0, bend * f, 0.0)
    p.row_swing[k] = where(D > 0.0, -(D * bend * along), 0.0)


@kernel
def _row_parameters(m, k, kind, i):
    """Returns solref and solimp of a row of that kind, of equality or tendon i."""
    if kind == EQUALITY:
        solref, solimp = load2(m.eq_solref, 2 * i), load5(m.eq_solimp, 5 * i)
    elif kind == LIMIT_TENDON:
        solref, solimp = load2(m.tendon_solref_lim, 2 * i), load5(m.tendon_solimp_lim, 5 * i)
    else:
        solref, solimp = load2(m.tendon_solref_fri, 2 * i), load5(m.tendon_solimp_fri, 5 * i)
    return solref, solimp


@kernel
def _rows(m, d, p):
    """Computes stiffness, damping, curvature and rates of the Jacobian of each general row, at the solution."""
    shortest = shortest_timeconst(m)
    for k in range(d.ngenrow[0]):
        kind, i = d.genrow_type[k], d.genrow_id[k]
        solref, solimp = _row_parameters(m, k, kind, i)
        _, B = reference(solref, solimp, shortest)
        lo, hi = d.genrow_lo[k], d.genrow_hi[k]
        f, _ = bounded_force(d.genrow_D[k], d.primal.genrow_x[k], lo, hi)
        D = where((f > lo) & (f < hi), d.genrow_D[k], 0.0)
        p.row_stiffness[k], p.row_bend[k], p.row_swing[k] = zero(d), zero(d), zero(d)
        if kind != FRICTION_TENDON:
            stiffer, pull, B = impedance_slopes(solref, solimp, d.genrow_pos[k] - d.genrow_margin[k], shortest)
            p.row_stiffness[k] = where(D > 0.0, fma(D, pull, -(f * stiffer)), 0.0)
        p.row_friction[k], p.row_curvature[k] = where(D > 0.0, D * B, 0.0), D
        if kind == EQUALITY and _follows(m, i):
            _bends(m, d, p, k, B, f, D)


@kernel
def tendon_rates(m, d, p):
    """Computes ten_stiffness, ten_friction, row_*: rates of forces along fixed tendons and of general rows.

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
    """dg += weight J^T J_k of each general row."""
    for r in range(d.ngenrow[0]):
        _add_square(p, d.genrow_J, d.genrow_dof, d.genrow_dofadr[r], d.genrow_dofnum[r], k, weights[r])


@kernel
def _add_tendons(m, d, p, k, weights):
    """dg += weight J^T J_k of each tendon."""
    for i in range(m.ntendon):
        _add_square(p, d.ten_J, m.ten_J_colind, m.ten_J_rowadr[i], m.ten_J_rownnz[i], k, weights[i])


@kernel
def add_tendon_position_column(m, d, p, k):
    """dg += rates by the position of dof k."""
    _add_tendons(m, d, p, k, p.ten_stiffness)
    _add_rows(m, d, p, k, p.row_stiffness)
    for r in range(d.ngenrow[0]):
        e, o = d.genrow_id[r], d.genrow_dofadr[r]
        if d.genrow_type[r] == EQUALITY and any_((p.row_bend[r] != 0.0) | (p.row_swing[r] != 0.0)):
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
    _add_rows(m, d, p, k, p.row_curvature)
