"""Implements the integrator `discrete`: the constraint solve in its metric is the time step itself.

Smooth forces are evaluated at the end of the step, to first order, as far as the metric stays positive definite:

    Mhat a = f(q, v) - h K v + J^T f_c,    Mhat = M + h D + h^2 K,    v' = v + h a

D: velocity derivatives of dampers and actuators, K: length derivatives of joint springs and actuators, each term
clamped to the sign that dissipates.  A spring of a ball or a free joint has its rate along the deflection in every
direction.  Actuators with a clamped force have no rates.  With the solver PGS no actuator and no tendon has any.  For
a fluid, D has the symmetric rates of drag and viscous resistance.
The matrix Mhat has M's pattern: joints and most actuators on them.  The terms of tendons and other actuators are rows
of the solver (constraint/metric_rows.py): qacc_smooth does not include them.
Source: MuJoCo 4, chapter Computation, "Discrete-time"; which terms count, and how, was found by experiment with 4.0.1.
"""

from featherlane.prelude import *
from featherlane.dynamics.actuator.control import is_disabled
from featherlane.dynamics.actuator.rate import actuator_rates, force_rate, length_rate
from featherlane.dynamics.actuator.transmission import add_output_force
from featherlane.dynamics.body.plastic import spring_reference
from featherlane.dynamics.inertia.joint_space import factor, factor_and_solve
from featherlane.dynamics.integrator.derivative import add_moments, damping_rate
from featherlane.dynamics.passive.fluid_derivative import add_fluid_metric, medium_counts
from featherlane.dynamics.passive.forces import ball_deflection, is_sprung, spring_coefficients
from featherlane.dynamics.sparse.outer import LOWER
from featherlane.dynamics.tendon.force import tendon_damping_rate, tendon_metric_rate
from featherlane.dynamics.tendon.length import add_tendon_force
from featherlane.model.solver import takes_couplings


@kernel
def _spring_rate(k, x):
    """Returns d/dx of x (k + c x + e x^2), at least 0."""
    return where(is_sprung(k), fmax(fma(x, fma(3.0 * k[2], x, 2.0 * k[1]), k[0]), 0.0), 0.0)


@kernel
def _spring_rates(m, d, j):
    """Returns the rates of joint j's spring: of its first three DoFs, and of the others (a free joint's rotation)."""
    a, kind, k = m.jnt_qposadr[j], m.jnt_type[j], spring_coefficients(m, j)
    first, rest = 0.0, 0.0
    if is_scalar(kind):
        first = _spring_rate(k, d.qpos[a] - spring_reference(m, d, j))
    elif any_(is_sprung(k)):
        if is_free_joint(kind):
            first = _spring_rate(k, norm3(Vec3(d.qpos[a : a + 3]) - Vec3(m.qpos_spring[a : a + 3])))
            rest = _spring_rate(k, norm3(ball_deflection(m, d, j)))
        else:
            first = _spring_rate(k, norm3(ball_deflection(m, d, j)))
    return first, rest


@kernel
def tendons_count(m):
    """Returns whether tendons are part of the metric."""
    return m.ntendon > 0 and takes_couplings(m)


@kernel
def couples(m, i):
    """Returns whether actuator i's metric term may leave M's pattern; on a joint, if M is diagonal in its DoFs."""
    coupled = m.actuator_trntype[i] > TRN_JOINTINPARENT
    if m.actuator_trntype[i] <= TRN_JOINTINPARENT:
        j = m.actuator_trnid[i, 0]
        coupled = not is_scalar(m.jnt_type[j]) and m.dof_simplenum[m.jnt_dofadr[j]] > 0
    return coupled


@kernel
def actuators_count(m):
    """Returns whether actuators are part of the metric."""
    return takes_couplings(m) and not (m.opt_disableflags & DISABLE_ACTUATION)


@kernel
def actuator_metric(m, d, i):
    """Returns h gv + h^2 gp of actuator i: its term of the metric along its moment."""
    h = timestep(m)
    return h * fma(h, fmax(-length_rate(m, d, i), 0.0), fmax(-force_rate(m, d, i), 0.0))


@kernel
def tendon_metric(m, d, i):
    """Returns h (rate of damping) + h^2 (rate of the spring) of tendon i: its term of the metric along its Jacobian."""
    h, rate, stiffness = timestep(m), 0.0, 0.0
    if not (m.opt_disableflags & DISABLE_DAMPER):
        rate = fmax(tendon_damping_rate(m, d, i), 0.0)
    if not (m.opt_disableflags & DISABLE_SPRING):
        stiffness = fmax(tendon_metric_rate(m, d, i, at_rest=0), 0.0)
    return h * fma(h, stiffness, rate)


@kernel
def add_spring_change(m, d, s, x):
    """x += s h K qvel: for s = -1 the change of the spring forces during the step."""
    h = timestep(m)
    if not (m.opt_disableflags & DISABLE_SPRING):
        for j in range(m.njnt):
            first, rest = _spring_rates(m, d, j)
            v = m.jnt_dofadr[j]
            for k in range(joint_dofs(m.jnt_type[j])):
                x[v + k] = fma(s * (h * (first if k < 3 else rest)), d.qvel[v + k], x[v + k])
        if tendons_count(m):
            for i in range(m.ntendon):
                rate = h * fmax(tendon_metric_rate(m, d, i, at_rest=0), 0.0)
                add_tendon_force(m, d, i, s * rate * d.ten_velocity[i], x)
    if actuators_count(m):
        for i in range(m.nactuator):
            if not is_disabled(m, i):
                rate = h * fmax(-length_rate(m, d, i), 0.0)
                for o in range(m.actuator_outadr[i], m.actuator_outadr[i] + m.actuator_outnum[i]):
                    add_output_force(m, d, o, s * rate * d.actuator_velocity[o], x)


@kernel
def _add_square(J, dof, first, n, s, x, y):
    """y += s J^T J x for a sparse row."""
    u = 0.0
    for e in range(first, first + n):
        u = fma(J[e], x[dof[e]], u)
    for e in range(first, first + n):
        y[dof[e]] = where(s > 0.0, fma(s * J[e], u, y[dof[e]]), y[dof[e]])


@kernel
def add_couplings(m, d, x, y):
    """y += T x, where T are the terms of Mhat from tendons and from actuators that are not on joints."""
    if tendons_count(m):
        for i in range(m.ntendon):
            s = tendon_metric(m, d, i)
            _add_square(d.ten_J, m.ten_J_colind, m.ten_J_rowadr[i], m.ten_J_rownnz[i], s, x, y)
    if actuators_count(m):
        for i in range(m.nactuator):
            if couples(m, i) and not is_disabled(m, i):
                s = actuator_metric(m, d, i)
                for o in range(m.actuator_outadr[i], m.actuator_outadr[i] + m.actuator_outnum[i]):
                    first, n = m.moment_rowadr[o], m.moment_rownnz[o]
                    _add_square(d.actuator_moment, m.moment_colind, first, n, s, x, y)


@kernel
def _add_row_diagonal(J, dof, first, n, s, x):
    """x_i += s J_i^2 for a sparse row."""
    for e in range(first, first + n):
        x[dof[e]] = where(s > 0.0, fma(s * J[e], J[e], x[dof[e]]), x[dof[e]])


@kernel
def add_coupling_diagonal(m, d, x):
    """x += diagonal of the terms of Mhat from tendons and from actuators that are not on joints."""
    if tendons_count(m):
        for i in range(m.ntendon):
            s = tendon_metric(m, d, i)
            _add_row_diagonal(d.ten_J, m.ten_J_colind, m.ten_J_rowadr[i], m.ten_J_rownnz[i], s, x)
    if actuators_count(m):
        for i in range(m.nactuator):
            if couples(m, i) and not is_disabled(m, i):
                s = actuator_metric(m, d, i)
                for o in range(m.actuator_outadr[i], m.actuator_outadr[i] + m.actuator_outnum[i]):
                    first, n = m.moment_rowadr[o], m.moment_rownnz[o]
                    _add_row_diagonal(d.actuator_moment, m.moment_colind, first, n, s, x)


@kernel
def _add_actuators(m, d):
    """Mhat += moment^T (h gv + h^2 gp) moment of actuators on joints, on M's pattern."""
    for i in range(m.nactuator):
        if not couples(m, i) and not is_disabled(m, i):
            add_moments(m, d, i, actuator_metric(m, d, i), d.Mhat, LOWER)


@kernel
def _effective_metric(m, d):
    """Mhat <- M + h D + h^2 K."""
    h = timestep(m)
    for k in range(m.nC):
        d.Mhat[k] = d.M[k]
    for j in range(m.njnt):
        v, n = m.jnt_dofadr[j], joint_dofs(m.jnt_type[j])
        first, rest = 0.0, 0.0
        if not (m.opt_disableflags & DISABLE_SPRING):
            first, rest = _spring_rates(m, d, j)
        for k in range(v, v + n):
            s = h * (first if k < v + 3 else rest)
            if not (m.opt_disableflags & DISABLE_DAMPER):
                s = s + fmax(damping_rate(m, d, k), 0.0)
            last = m.M_rowadr[k] + m.M_rownnz[k] - 1
            d.Mhat[last] = fma(h, s, d.Mhat[last])
    if medium_counts(m):
        add_fluid_metric(m, d, -h, dissipative=1, A=d.Mhat)
    if actuators_count(m):
        actuator_rates(m, d)
        _add_actuators(m, d)


@kernel
def discrete_smooth(m, d):
    """qfrc_step <- qfrc_smooth - h K qvel, qacc_smooth <- Mhat^-1 qfrc_step: the unconstrained step."""
    _effective_metric(m, d)
    for i in range(m.nv):
        d.qfrc_step[i] = d.qfrc_smooth[i]
    add_spring_change(m, d, -1.0, d.qfrc_step)
    for i in range(m.nv):
        d.qacc_smooth[i] = d.qfrc_step[i]
    factor_and_solve(m, d.Mhat, d.qH, d.qHDiagInv, d.qacc_smooth, own=1)


@kernel
def discrete_metric(m, d):
    """Mhat <- M + h D + h^2 K and, in qH and qHDiagInv, its factor."""
    _effective_metric(m, d)
    factor(m, d.Mhat, d.qH, d.qHDiagInv)
