"""Implements the integrator `discrete`: the constraint solve in its metric is the time step itself.

Smooth forces are evaluated at the end of the step, to first order, as far as the metric stays positive definite:

    Mhat a = f(q, v) - h K v + J^T f_c,    Mhat = M + h D + h^2 K,    v' = v + h a

D: velocity derivatives of dampers and actuators, K: length derivatives of joint springs and actuators, each term
clamped to the sign that dissipates.  A spring of a ball or a free joint has its rate along the deflection in every
direction.  Actuators with a clamped force have no rates.  With the solver PGS no actuator and no tendon has any.  For
a fluid, D has the symmetric rates of drag and viscous resistance.
The matrix Mhat has M's pattern: joints and most actuators on them.  The terms of tendons and other actuators
("couplings") are rows of the solver (constraint/metric_rows.py): qacc_smooth does not include them.
takes_couplings(m) returns whether the model's solver takes such rows; PGS does not.
LOWER is the pattern of M (sparse/outer.py).

Imported kernels:

    spring_coefficients(m, j)           (k, c, e) of the spring force -x (k + c x + e x^2) of joint j
    implicit_rate(coefficients, x)      k + 2 c x + 3 e x^2, the derivative of x (k + c x + e x^2)
    spring_reference(m, d, j)           rest position of the spring of slide or hinge j
    ball_deflection(m, d, j)            rotation vector of a ball or a free joint from its spring's rest
    damping_rate, tendon_damping_rate   -d force / d velocity of a DoF or a tendon
    tendon_metric_rate(m, d, i)         -d force / d length of the spring of tendon i, 0 at zero deflection
    force_by_length, force_by_velocity  derivatives of an actuator's force, from actuator_rate
    factor_and_solve                    (m, A, L, inverse, x, own_diagonal=1): L, inverse <- factor of A, x <- A^-1 x;
                                        own_diagonal=0: A's diagonal is in `inverse` instead

Source: MuJoCo 4, chapter Computation, "Discrete-time"; which terms count, and how, was found by experiment with 4.0.1.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.control import is_disabled
from featherlane.engine.dynamics.actuator.rate import actuator_rates, force_by_length, force_by_velocity
from featherlane.engine.dynamics.actuator.transmission import add_output_force
from featherlane.engine.dynamics.body.force_laws import has_coefficients, implicit_rate
from featherlane.engine.dynamics.body.plastic import spring_reference
from featherlane.engine.dynamics.inertia.joint_space import factor, factor_and_solve
from featherlane.engine.dynamics.integrator.derivative import add_moments, damping_rate
from featherlane.engine.dynamics.passive.fluid_derivative import add_fluid_metric, fluid_acts
from featherlane.engine.dynamics.passive.forces import ball_deflection, spring_coefficients
from featherlane.engine.dynamics.sparse.outer import LOWER
from featherlane.engine.dynamics.tendon.force import tendon_damping_rate, tendon_metric_rate
from featherlane.engine.dynamics.tendon.length import add_tendon_force
from featherlane.engine.model.solver import takes_couplings


@kernel
def _spring_rate(coefficients, x):
    """Returns d/dx of x (k + c x + e x^2), at least 0; coefficients: (k, c, e)."""
    return fmax(implicit_rate(coefficients, x), 0.0)


@kernel
def _spring_rates(m, d, j):
    """Returns entries of K: (rate of joint j's spring for its first three DoFs, rate for rotations of a free joint).

    A spring of a ball or of a free joint has the same rate in every direction, at the length of the deflection.
    """
    adr, kind = m.jnt_qposadr[j], m.jnt_type[j]
    coefficients = spring_coefficients(m, j)
    first, rotation = 0.0, 0.0
    if is_scalar(kind):
        first = _spring_rate(coefficients, d.qpos[adr] - spring_reference(m, d, j))
    elif any_(has_coefficients(coefficients)):
        if is_free_joint(kind):
            first = _spring_rate(coefficients, norm3(Vec3(d.qpos[adr : adr + 3]) - Vec3(m.qpos_spring[adr : adr + 3])))
            rotation = _spring_rate(coefficients, norm3(ball_deflection(m, d, j)))
        else:
            first = _spring_rate(coefficients, norm3(ball_deflection(m, d, j)))
    return first, rotation


@kernel
def has_tendon_metric(m):
    """Returns whether tendons are part of the metric: not with the solver PGS."""
    return m.ntendon > 0 and takes_couplings(m)


@kernel
def is_coupling(m, i):
    """Returns whether actuator i's term of the metric, s moment^T moment, may leave M's pattern.

    It does if the actuator is not on a joint, or on several DoFs of a joint where M has only the diagonal.
    """
    coupled = m.actuator_trntype[i] > TRN_JOINTINPARENT  # the transmissions up to this one are on joints
    if m.actuator_trntype[i] <= TRN_JOINTINPARENT:
        # dof_simplenum is positive at the DoFs of a simple body, whose rows of M have only the diagonal
        j = m.actuator_trnid[i, 0]
        coupled = not is_scalar(m.jnt_type[j]) and m.dof_simplenum[m.jnt_dofadr[j]] > 0
    return coupled


@kernel
def has_actuator_metric(m):
    """Returns whether actuators are part of the metric: not with the solver PGS."""
    return takes_couplings(m) and not (m.opt_disableflags & DISABLE_ACTUATION)


@kernel
def actuator_metric(m, d, i):
    """Returns h gv + h^2 gp of actuator i: its term of the metric along its moment.

    gv = max(-d force / d velocity, 0), gp = max(-d force / d length, 0).   Reads:  actuator_rate.
    """
    h = timestep(m)
    return h * fma(h, fmax(-force_by_length(m, d, i), 0.0), fmax(-force_by_velocity(m, d, i), 0.0))


@kernel
def tendon_metric(m, d, i):
    """Returns h (rate of damping) + h^2 (rate of the spring) of tendon i: its term of the metric along its Jacobian."""
    h = timestep(m)
    damping, stiffness = 0.0, 0.0
    if not (m.opt_disableflags & DISABLE_DAMPER):
        damping = fmax(tendon_damping_rate(m, d, i), 0.0)
    if not (m.opt_disableflags & DISABLE_SPRING):
        stiffness = fmax(tendon_metric_rate(m, d, i), 0.0)
    return h * fma(h, stiffness, damping)


@kernel
def add_spring_change(m, d, s, x):
    """x += s h K qvel: for s = -1 the change of the spring forces during the step.

    x: (nv,) forces.  K has the springs of joints and tendons, and the length derivatives of actuators.
    """
    h = timestep(m)
    if not (m.opt_disableflags & DISABLE_SPRING):
        for j in range(m.njnt):
            first, rotation = _spring_rates(m, d, j)
            dof = m.jnt_dofadr[j]
            for k in range(joint_dofs(m.jnt_type[j])):
                x[dof + k] = fma(s * (h * (first if k < 3 else rotation)), d.qvel[dof + k], x[dof + k])
        if has_tendon_metric(m):
            for i in range(m.ntendon):
                h_stiffness = h * fmax(tendon_metric_rate(m, d, i), 0.0)
                add_tendon_force(m, d, i, s * h_stiffness * d.ten_velocity[i], x)
    if has_actuator_metric(m):
        for i in range(m.nactuator):
            if not is_disabled(m, i):
                h_stiffness = h * fmax(-force_by_length(m, d, i), 0.0)
                for o in actuator_outputs(m, i):
                    add_output_force(m, d, o, s * h_stiffness * d.actuator_velocity[o], x)


@kernel
def _add_coupling(J, dof, entries, s, x, y, diagonal):
    """y += s J^T J x for a sparse row J; with `diagonal` y += the diagonal of s J^T J.

    entries: the range of its values J[e] and their DoFs dof[e].  y is bitwise unchanged in worlds where s is 0.
    """
    Jx = 0.0
    if not diagonal:
        for e in entries:
            Jx = fma(J[e], x[dof[e]], Jx)
    for e in entries:
        y[dof[e]] = where(s > 0.0, fma(s * J[e], J[e] if diagonal else Jx, y[dof[e]]), y[dof[e]])


@kernel
def add_couplings(m, d, x, y, diagonal):
    """y += T x, or y += the diagonal of T; T: terms of Mhat from tendons and from actuators that leave M's pattern."""
    if has_tendon_metric(m):
        for i in range(m.ntendon):
            _add_coupling(d.ten_J, m.ten_J_colind, tendon_entries(m, i), tendon_metric(m, d, i), x, y, diagonal)
    if has_actuator_metric(m):
        for i in range(m.nactuator):
            if is_coupling(m, i) and not is_disabled(m, i):
                s = actuator_metric(m, d, i)
                for o in actuator_outputs(m, i):
                    _add_coupling(d.actuator_moment, m.moment_colind, moment_entries(m, o), s, x, y, diagonal)


@kernel
def _assemble_metric(m, d):
    """Mhat <- M + h D + h^2 K on M's pattern: joints, a fluid, and actuators on joints; also writes actuator_rate."""
    h = timestep(m)
    copy(d.Mhat, d.M, m.nC)
    for j in range(m.njnt):
        dof = m.jnt_dofadr[j]
        ndof = joint_dofs(m.jnt_type[j])
        first, rotation = 0.0, 0.0
        if not (m.opt_disableflags & DISABLE_SPRING):
            first, rotation = _spring_rates(m, d, j)
        for i in range(dof, dof + ndof):
            # h (h stiffness + damping), on the diagonal of row i
            rate = h * (first if i < dof + 3 else rotation)
            if not (m.opt_disableflags & DISABLE_DAMPER):
                rate = rate + fmax(damping_rate(m, d, i), 0.0)
            diagonal = m.M_rowadr[i] + m.M_rownnz[i] - 1
            d.Mhat[diagonal] = fma(h, rate, d.Mhat[diagonal])
    if fluid_acts(m):
        add_fluid_metric(m, d, -h, dissipative=1, A=d.Mhat)
    if has_actuator_metric(m):
        actuator_rates(m, d)  # writes actuator_rate
        for i in range(m.nactuator):
            if not is_coupling(m, i) and not is_disabled(m, i):
                add_moments(m, d, i, actuator_metric(m, d, i), d.Mhat, LOWER)


@kernel
def discrete_smooth(m, d):
    """qfrc_step <- qfrc_smooth - h K qvel, qacc_smooth <- Mhat^-1 qfrc_step: the unconstrained step.

    Writes: qfrc_step, qacc_smooth; Mhat, its factor in qH and qHDiagInv, actuator_rate.
    """
    _assemble_metric(m, d)  # writes Mhat
    copy(d.qfrc_step, d.qfrc_smooth, m.nv)
    add_spring_change(m, d, s=-1.0, x=d.qfrc_step)
    copy(d.qacc_smooth, d.qfrc_step, m.nv)
    factor_and_solve(m, d.Mhat, d.qH, d.qHDiagInv, d.qacc_smooth, own_diagonal=1)


@kernel
def discrete_metric(m, d):
    """Mhat <- M + h D + h^2 K and, in qH and qHDiagInv, its factor; also writes actuator_rate."""
    _assemble_metric(m, d)  # writes Mhat
    factor(m, d.Mhat, d.qH, d.qHDiagInv)
