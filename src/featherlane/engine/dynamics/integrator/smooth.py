"""Computes the acceleration without constraints, and energy.

Imported kernels:

    uses_articulated(m)                whether the model solves by articulated bodies instead of factors of M
    articulated_solve(m, d, extra, x)  x <- (M + diag(extra))^-1 x; returns 1 in worlds with a singular pivot
    factor_and_solve                   (m, A, L, inverse, x, own_diagonal=1): L, inverse <- factor of A, x <- A^-1 x;
                                       own_diagonal=0: A's diagonal is in `inverse` instead
    solve_factored                     (m, L, inverse, x): x <- A^-1 x, with this factor
    has_metric(m), metric(m, d)        whether the integrator is `discrete`; the matrix Mhat, else M
    is_singular(d, inverse, diagonal)  whether the pivot 1 / inverse is 0 up to rounding, relative to the diagonal
    spring_energy(coefficients, x)     x^2 (k / 2 + c x / 3 + e x^2 / 4)
    ball_deflection(m, d, j)           rotation vector of a ball or a free joint from its spring's rest
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.force_laws import has_coefficients, spring_energy
from featherlane.engine.dynamics.body.motor import add_motors_at_stops
from featherlane.engine.dynamics.body.xfrc import add_xfrc
from featherlane.engine.dynamics.inertia.articulated import articulated_solve, uses_articulated
from featherlane.engine.dynamics.inertia.joint_space import factor_and_solve, solve_factored
from featherlane.engine.dynamics.inertia.metric import metric
from featherlane.engine.dynamics.integrator.discrete import discrete_smooth
from featherlane.engine.dynamics.passive.forces import ball_deflection, joint_spring_energy, spring_coefficients
from featherlane.engine.dynamics.sparse.tree_factor import is_singular
from featherlane.engine.dynamics.tendon.force import tendon_energy
from featherlane.engine.model.integrator import has_metric


@kernel
def solve_inertia(m, d, x):
    """x <- M^-1 x, by the method of the model; returns 1 if a pivot of articulated bodies is singular, else 0.

    - Articulated bodies need no factor of M.   Writes: qHDiagInv = 0; aba_*, cacc, cfrc.
    - If all outputs are requested, `factor_m` has written M's factor.   Reads: qLD, qLDiagInv.
    - Otherwise M is factored here.   Reads: M.   Writes: qH, qHDiagInv, the factor.
    """
    singular = 0.0
    if uses_articulated(m):
        # no values are added to M's diagonal
        clear(d.qHDiagInv, m.nv)
        singular = articulated_solve(m, d, d.qHDiagInv, x)
    elif d.want_all:
        solve_factored(m, d.qLD, d.qLDiagInv, x)
    else:
        # the factor goes to the integrator's buffer qH, not to qLD: 15 KB less memory traffic in a tile of humanoids
        factor_and_solve(m, d.M, d.qH, d.qHDiagInv, x, own_diagonal=1)
    return singular


@kernel
def warn_singular_inertia(m, d, singular):
    """Adds 1 to the warning SINGULAR_INERTIA in worlds whose inertia matrix has a pivot that is 0 up to rounding.

    The pivots of articulated bodies, which have no M_ii, are compared with M_ii at qpos0.
    singular: 1 in worlds where `articulated_solve` met a singular pivot.
    Source: MuJoCo mj_factorI, which counts MINVAL only.
    Reads:  1 / D of the factor that `solve_inertia` used or wrote.   Writes: warning.
    """
    if not uses_articulated(m):
        # the matrix that was factored: M, or Mhat under the integrator `discrete`
        A = metric(m, d)
        # 1 / D of its factor: that of `factor_m` if all outputs are requested, else that of the unconstrained step
        inverse = d.qLDiagInv if d.want_all and not has_metric(m) else d.qHDiagInv
        for i in range(m.nv):
            diagonal = A[m.M_rowadr[i] + m.M_rownnz[i] - 1]  # A_ii is the last entry of row i
            singular = where(is_singular(d, inverse[i], diagonal), 1.0, singular)
    warn(d, SINGULAR_INERTIA, singular > 0.0)


@stage
def smooth_acceleration(m, d):
    """Computes all forces except constraint forces, and the resulting acceleration.

    qfrc_smooth = passive - bias + applied + actuator + J^T xfrc_applied;  qacc_smooth = M^-1 qfrc_smooth, by the factor
    of M or by articulated bodies.  With the integrator `discrete`, qacc_smooth is the unconstrained step.  With the
    contact model lcp, qfrc_smooth includes the forces of motors at a stop (dynamics/body/motor.py).
    Source: MuJoCo mj_fwdAcceleration.
    Reads:  qfrc_passive, qfrc_bias, qfrc_applied, qfrc_actuator, xfrc_applied, qLD, qLDiagInv.
    Writes: qfrc_smooth (nv,) [N, N m], qacc_smooth (nv,) [m/s^2, rad/s^2], warning (singular inertia); with discrete
            Mhat, qH, qHDiagInv, qfrc_step and actuator_rate.
    Scratch: cacc, cfrc, crb_drag, aba_inertia, aba_axis.
    Cost:   O(nv * depth).
    """
    for i in range(m.nv):
        d.qfrc_smooth[i] = ((d.qfrc_passive[i] - d.qfrc_bias[i]) + d.qfrc_applied[i]) + d.qfrc_actuator[i]
    add_xfrc(m, d, d.qfrc_smooth)
    if m.opt_contact_model == LCP:
        add_motors_at_stops(m, d, d.qfrc_smooth)
    singular = 0.0
    # the integrator `discrete` solves with Mhat instead of M
    if has_metric(m):
        discrete_smooth(m, d)  # writes qacc_smooth
    else:
        copy(d.qacc_smooth, d.qfrc_smooth, m.nv)
        singular = solve_inertia(m, d, d.qacc_smooth)
    warn_singular_inertia(m, d, singular)


@stage
def energy(m, d):
    """Computes the potential energy, -sum m_b g . x_b + that of springs, and the kinetic energy, 1/2 v^T M v.

    A step also computes them if the flag `energy` is on or a sensor reads them, for the state before the step.
    Source: MuJoCo mj_energyPos, mj_energyVel.
    Reads:  xipos, qpos, qvel, plastic, ten_length, M.   Writes: energy (2,) [J].
    Note:   frames and M are those of the last forward pass, qvel and joint springs are the current ones.  After `step`
        the frames are those of the old position: the sum would combine it with the new velocity and drift by a term of
        the order of the timestep.  Call `forward_position` (or `forward`) first for the energy of the new state.
    """
    potential, kinetic = 0.0, 0.0
    if not (m.opt_disableflags & DISABLE_GRAVITY):
        g = m.opt_gravity[0]
        for i in range(1, m.nbody):
            potential = fma(-m.body_mass[i], dot(g, d.xipos[i]), potential)
    if not (m.opt_disableflags & DISABLE_SPRING):
        for j in range(m.njnt):
            adr, kind = m.jnt_qposadr[j], m.jnt_type[j]
            coefficients = spring_coefficients(m, j)
            if is_scalar(kind):
                potential = potential + joint_spring_energy(m, d, j)
            elif any_(has_coefficients(coefficients)):
                # of a free joint: a spring of the translation and one of the rotation
                if is_free_joint(kind):
                    offset = Vec3(d.qpos[adr : adr + 3]) - Vec3(m.qpos_spring[adr : adr + 3])
                    potential = potential + spring_energy(coefficients, norm3(offset))
                potential = potential + spring_energy(coefficients, norm3(ball_deflection(m, d, j)))
        if m.ntendon > 0:
            potential = potential + tendon_energy(m, d)
    # 1/2 v^T M v = sum over i of v_i (M_ii v_i / 2 + sum over ancestors j of M_ij v_j)
    for i in range(m.nv):
        first, v_i = m.M_rowadr[i], d.qvel[i]
        diagonal = first + m.M_rownnz[i] - 1
        momentum = 0.5 * (d.M[diagonal] * v_i)
        for e in range(first, diagonal):
            momentum = fma(d.M[e], d.qvel[m.M_colind[e]], momentum)
        kinetic = fma(momentum, v_i, kinetic)
    d.energy[0] = potential
    d.energy[1] = kinetic
