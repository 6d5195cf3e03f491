"""Derivatives of forces along tendons, of limits of balls, and of equalities of joints and tendons.

A row has the force f = -D x while it is active, x = J a + B J v + K d r.  It changes the residual by

    dg = J^T (D dx - f s dr) - dJ^T f        s the relative rate of D by r

A tendon adds its spring, damper and actuators to its limits and dry friction.  With their sums, the tension F, the
stiffness k, the damping b and the curvature D,

    dg = J^T (k J dq + b (J dv + dJ v) + D (J da + dJ a)) - dJ^T F

dJ is 0 for a fixed tendon (tendon_bend.py and ball_rates.py for others).  An equality with a polynomial has
J = J_1 - c(y) J_2 and dJ = dJ_1 - c(y) dJ_2 - c'(y) J_2^T (J_2 dq), y the second coordinate or length, c the slope of
the polynomial.

d is a derivative by one coordinate: position, velocity or acceleration of dof k.  The record p (records.py) has the
column p.dg; ten_force = F, ten_stiffness = k, ten_damping = b, ten_curvature = D for each tendon; row_force = f,
row_stiffness, row_damping, row_curvature the same for each general row; row_J2_stiffness = f c', row_cross_stiffness =
-df / dy through c(y) for equalities with a polynomial; p.dJ: dJ of one row, by dof.
ten_J: rows of the tendons' Jacobian, with the dofs ten_J_colind.  row_id: the equality, joint or tendon of a row; a row
has the entries row_J at the dofs row_dof.  eq_obj2id: second joint or tendon of an equality, -1: none.  is_fastening:
an equality is a connect or weld.  `row_rates`: (f, D, stiffness, B) of a row, D 0 where it is absent or at a bound.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.equality import is_fastening
from featherlane.engine.constraint.general import row_entries
from featherlane.engine.constraint.impedance import shortest_timeconst
from featherlane.engine.dynamics.actuator.control import is_disabled
from featherlane.engine.dynamics.actuator.rate import force_by_length, force_by_velocity
from featherlane.engine.dynamics.tendon.force import damper_force, spring_force
from featherlane.engine.dynamics.tendon.length import is_fixed
from featherlane.tools.sensitivity.rates.ball_rates import set_ball_dJ
from featherlane.tools.sensitivity.rates.dof_rates import row_rates
from featherlane.tools.sensitivity.rates.rows import add_dJ_terms, add_square, clear_dJ, has_dof
from featherlane.tools.sensitivity.rates.tendon_bend import add_tendon_dJ

_spring, _damper = jvp(spring_force, "ten_length"), jvp(damper_force, "ten_velocity")


# ---- forces along tendons --------------------------------------------------------------------------------------------
@kernel
def _set_tendons(m, d, p):
    """ten_force, ten_stiffness, ten_damping <- those of each tendon's spring, damper and actuators.

    ten_curvature <- 0, as only rows have a curvature (`_set_rows`).
    Reads what `actuator_rates` writes: derivatives of actuator forces by length and by rate.
    """
    flags = m.opt_disableflags
    for i in range(m.ntendon):
        p.ten_force[i], p.ten_stiffness[i], p.ten_damping[i] = 0.0, 0.0, 0.0
        p.ten_curvature[i] = 0.0
        if not (flags & DISABLE_SPRING):
            force, slope = _spring(m, d, i)
            p.ten_force[i], p.ten_stiffness[i] = force, -slope
        if not (flags & DISABLE_DAMPER):
            force, slope = _damper(m, d, i)
            p.ten_force[i], p.ten_damping[i] = p.ten_force[i] + force, -slope
    if not (flags & DISABLE_ACTUATION):
        for i in range(m.nactuator):
            if m.actuator_trntype[i] == TRN_TENDON and not is_disabled(m, i):
                t, output = m.actuator_trnid[i, 0], m.actuator_outadr[i]
                # the actuator's length is gear times the tendon's: F += gear f, k -= gear^2 f_l, b -= gear^2 f_l'
                gear = m.actuator_gear[output][0]
                p.ten_force[t] = fma(gear, d.actuator_force[output], p.ten_force[t])
                p.ten_stiffness[t] = p.ten_stiffness[t] - gear * gear * force_by_length(m, d, i)
                p.ten_damping[t] = p.ten_damping[t] - gear * gear * force_by_velocity(m, d, i)


# ---- rows ------------------------------------------------------------------------------------------------------------
@kernel
def _is_separate(m, d, k):
    """Returns whether row k belongs neither to a tendon nor to a connect or weld.

    It is then an equality, or the limit of a ball.
    """
    kind = d.row_type[k]
    return kind == LIMIT_JOINT or (kind == EQUALITY and not is_fastening(m, d.row_id[k]))


@kernel
def _has_polynomial(m, d, k):
    """Returns whether row k is an equality that follows a polynomial of a second joint or tendon."""
    return d.row_type[k] == EQUALITY and m.eq_obj2id[d.row_id[k]] >= 0


@kernel
def _second_entry(m, d, e, k):
    """Returns the derivative by dof k of the second coordinate or length of equality e."""
    j, entry = m.eq_obj2id[e], 0.0
    if m.eq_type[e] == EQ_JOINT:
        entry = 1.0 if m.jnt_dofadr[j] == k else 0.0
    else:
        for n in tendon_entries(m, j):
            if m.ten_J_colind[n] == k:
                entry = d.ten_J[n]
    return entry


@kernel
def _polynomial_slopes(m, d, e):
    """Returns (first, second) derivative of the polynomial of equality e at the second coordinate or length y.

    The first is a1 + 2 a2 y + 3 a3 y^2 + 4 a4 y^3; y is measured from its value in qpos0.
    """
    j = m.eq_obj2id[e]
    if m.eq_type[e] == EQ_JOINT:
        y = d.qpos[m.jnt_qposadr[j]] - m.qpos0[m.jnt_qposadr[j]]
    else:
        y = d.ten_length[j] - m.tendon_length0[j]
    a1, a2, a3, a4 = tuple(m.eq_data[e, c] for c in range(1, 5))
    y = seed(y, 1.0)  # the tangent is the second derivative
    slope = fma(y, fma(y, fma(y, 4.0 * a4, 3.0 * a3), 2.0 * a2), a1)
    return split_tangents(slope, 1)


@kernel
def _set_polynomial_rates(m, d, p, k, B, f, D):
    """row_J2_stiffness, row_cross_stiffness <- f c' and -D c' (J_2 (B v + a)) of row k, an equality with a polynomial.

    The second is -df / dy = D dx / dy: x contains J (a + B v), and dJ / dy = -c' J_2.
    B, D: damping and inverse regularization of the row, D = 0 in worlds without it; f: its force.
    """
    e, along = d.row_id[k], 0.0
    _, c_slope = _polynomial_slopes(m, d, e)  # c'(y)
    # along = J_2 (B v + a)
    for n in row_entries(d, k):
        i = d.row_dof[n]
        along = fma(_second_entry(m, d, e, i), fma(B, d.qvel[i], d.qacc[i]), along)
    p.row_J2_stiffness[k] = where(D > 0.0, c_slope * f, 0.0)
    p.row_cross_stiffness[k] = where(D > 0.0, -(D * c_slope * along), 0.0)


@kernel
def _side_of_limit(m, d, k, i):
    """Returns the sign of row k's Jacobian relative to that of tendon i: -1 for an upper limit, else 1."""
    # the row has the entries of the tendon's row in the same order, so the sign of their dot product decides
    product, row_adr, ten_adr = 0.0, d.row_dofadr[k], m.ten_J_rowadr[i]
    for n in range(d.row_dofnum[k]):
        product = fma(d.row_J[row_adr + n], d.ten_J[ten_adr + n], product)
    return where(product < 0.0, -1.0, 1.0)


@kernel
def _set_rows(m, d, p):
    """Sets the rates of each separate row (`_is_separate`); adds those of limits and dry friction to their tendons.

    Writes: row_force, row_stiffness, row_damping, row_curvature, row_J2_stiffness, row_cross_stiffness; ten_force,
            ten_stiffness, ten_damping, ten_curvature.
    Connects and welds are in fastening_rates.py, rows of single dofs in dof_rates.py.
    """
    shortest = shortest_timeconst(m)
    for k in range(d.ndofrow[0], d.nrow[0]):  # general rows: those after the rows of single dofs
        kind, i = d.row_type[k], d.row_id[k]
        f, D, stiffness, B = row_rates(m, d, k, shortest)
        p.row_J2_stiffness[k], p.row_cross_stiffness[k] = zeros(2)  # overwritten for a row with a polynomial
        damping = where(D > 0.0, D * B, 0.0)  # 0 without a row, even if B is infinite
        if _is_separate(m, d, k):
            p.row_force[k] = where(D > 0.0, f, 0.0)
            p.row_stiffness[k], p.row_damping[k], p.row_curvature[k] = stiffness, damping, D
            if _has_polynomial(m, d, k):
                _set_polynomial_rates(m, d, p, k, B, f, D)
        elif kind != EQUALITY:
            # limits and dry friction of tendon i; dry friction at its bound has a force, but D = 0
            p.ten_force[i] = fma(_side_of_limit(m, d, k, i), f, p.ten_force[i])
            p.ten_stiffness[i] = p.ten_stiffness[i] + stiffness
            p.ten_damping[i] = p.ten_damping[i] + damping
            p.ten_curvature[i] = p.ten_curvature[i] + D


@kernel
def tendon_rates(m, d, p):
    """Computes the rates of forces along tendons and of separate rows.

    Reads:  actuator_rate, and rows at the solution.
    Writes: ten_force, ten_stiffness, ten_damping, ten_curvature; row_force, row_stiffness, row_damping, row_curvature,
            row_J2_stiffness, row_cross_stiffness.
    """
    _set_tendons(m, d, p)
    _set_rows(m, d, p)


# ---- columns ---------------------------------------------------------------------------------------------------------
@kernel
def _add_rows(m, d, p, k, weights):
    """dg += weight J^T J_k of each separate general row (`_is_separate`).

    weights: row_stiffness, row_damping or row_curvature.
    """
    for r in range(d.ndofrow[0], d.nrow[0]):
        if _is_separate(m, d, r):
            add_square(p, d.row_J, d.row_dof, d.row_dofadr[r], d.row_dofnum[r], k, weights[r])


@kernel
def _add_tendons(m, d, p, k, weights):
    """dg += weight J^T J_k of each tendon.

    weights: ten_stiffness, ten_damping or ten_curvature.
    """
    for i in range(m.ntendon):
        add_square(p, d.ten_J, m.ten_J_colind, m.ten_J_rowadr[i], m.ten_J_rownnz[i], k, weights[i])


@kernel
def _add_dJ_of_tendon(m, d, p, i, k):
    """dg += terms with dJ by the position of dof k, of the spatial tendon i."""
    first, number = m.ten_J_rowadr[i], m.ten_J_rownnz[i]
    if has_dof(m.ten_J_colind, first, number, k):
        clear_dJ(p, m.ten_J_colind, first, number)
        add_tendon_dJ(m, d, p, i, k, scale=1.0)  # p.dJ += dJ
        row = d.ten_J, m.ten_J_colind, first, number
        add_dJ_terms(d, p, row, p.ten_force[i], along=0.0, damping=p.ten_damping[i], curvature=p.ten_curvature[i])


@kernel
def _has_variable_jacobian(m, d, r):
    """Returns whether general row r is the limit of a ball or an equality of spatial tendons.

    The Jacobian of these rows depends on the position.  Limits of slides and hinges are rows of one dof, not general
    rows.
    """
    e, kind = d.row_id[r], d.row_type[r]
    variable = kind == LIMIT_JOINT
    if kind == EQUALITY and m.eq_type[e] == EQ_TENDON:
        j = m.eq_obj2id[e]
        variable = not is_fixed(m, m.eq_obj1id[e]) or (j >= 0 and not is_fixed(m, j))
    return variable


@kernel
def _add_dJ_of_row(m, d, p, r, k):
    """dg += terms with dJ by the position of dof k, of general row r: the limit of a ball, or an equality of tendons.

    An equality has dJ = dJ_1 - c(y) dJ_2; `_add_polynomial_curvature` adds the term with c'(y).
    """
    obj, first, number = d.row_id[r], d.row_dofadr[r], d.row_dofnum[r]
    if has_dof(d.row_dof, first, number, k):
        clear_dJ(p, d.row_dof, first, number)
        if d.row_type[r] == LIMIT_JOINT:
            set_ball_dJ(m, d, p, obj, k)  # p.dJ <- dJ
        else:
            tendon1, tendon2 = m.eq_obj1id[obj], m.eq_obj2id[obj]
            if not is_fixed(m, tendon1):
                add_tendon_dJ(m, d, p, tendon1, k, scale=1.0)  # p.dJ += dJ_1
            if tendon2 >= 0 and not is_fixed(m, tendon2):
                slope, _ = _polynomial_slopes(m, d, obj)
                add_tendon_dJ(m, d, p, tendon2, k, scale=-slope)  # dJ -= c dJ_2
        row = d.row_J, d.row_dof, first, number
        add_dJ_terms(d, p, row, p.row_force[r], along=0.0, damping=p.row_damping[r], curvature=p.row_curvature[r])


@kernel
def add_tendon_position_column(m, d, p, k):
    """dg += derivatives of tendons' and separate rows' forces by the position of dof k.

    They are J^T (stiffness J_k + b dJ v + D dJ a) - dJ^T F, with the stiffness, damping b, curvature D and force F of
    the tendon or row (see the file's docstring).  dJ is 0 for fixed tendons and equalities of joints; an equality with
    a polynomial also has the terms of `_add_polynomial_curvature`.
    """
    _add_tendons(m, d, p, k, p.ten_stiffness)
    for i in range(m.ntendon):
        if not is_fixed(m, i):
            _add_dJ_of_tendon(m, d, p, i, k)
    _add_rows(m, d, p, k, p.row_stiffness)
    for r in range(d.ndofrow[0], d.nrow[0]):
        if _has_variable_jacobian(m, d, r):
            _add_dJ_of_row(m, d, p, r, k)
        # connects and welds have a second object, but no polynomial
        if _has_polynomial(m, d, r) and not is_fastening(m, d.row_id[r]):
            _add_polynomial_curvature(m, d, p, r, k)


@kernel
def _add_polynomial_curvature(m, d, p, r, k):
    """dg += terms with c'(y) of row r, an equality with a polynomial, by the position of dof k.

    They are -dJ^T f = J_2^T (row_J2_stiffness (J_2)_k) and, for the change of f, J^T (row_cross_stiffness (J_2)_k).  A
    linear polynomial has row_J2_stiffness = row_cross_stiffness = 0.
    """
    e = d.row_id[r]
    if any_((p.row_J2_stiffness[r] != 0.0) | (p.row_cross_stiffness[r] != 0.0)):
        J2_k = _second_entry(m, d, e, k)  # (J_2)_k
        along_J2, along_J = p.row_J2_stiffness[r] * J2_k, p.row_cross_stiffness[r] * J2_k
        for n in row_entries(d, r):
            i = d.row_dof[n]
            p.dg[i] = fma(_second_entry(m, d, e, i), along_J2, fma(d.row_J[n], along_J, p.dg[i]))


@kernel
def add_tendon_column(m, d, p, k, ten_slope, row_slope):
    """dg += J^T (slope J_k) of each tendon and separate row: derivatives by the velocity or acceleration of dof k.

    ten_slope, row_slope: ten_damping and row_damping, or ten_curvature and row_curvature.
    """
    _add_tendons(m, d, p, k, ten_slope)
    _add_rows(m, d, p, k, row_slope)
