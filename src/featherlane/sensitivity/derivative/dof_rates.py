"""Derivatives of forces on single dofs by position and velocity: springs, dampers, motors, limits, dry friction.

A row on a dof has the force f = -D (J a + B v + K d r) while it is active, with the impedance d(r).  D / (1 / d - 1)
and the stiffness depend on r.
"""

from featherlane.prelude import *
from featherlane.constraint.friction_loss import loss_damping
from featherlane.constraint.impedance import MINVAL, impedance, impedance_rate, reference, shortest_timeconst
from featherlane.dynamics.actuator.control import is_disabled
from featherlane.dynamics.actuator.rate import actuator_rates, force_by_length, force_by_velocity
from featherlane.dynamics.actuator.reflected import damping_coefficients
from featherlane.dynamics.actuator.transmission import drives_joint
from featherlane.dynamics.body.plastic import spring_reference
from featherlane.dynamics.integrator.derivative import damping_rate
from featherlane.dynamics.passive.forces import is_sprung, spring_coefficients
from featherlane.solver.rows.pyramid import one_sided_row


@kernel
def impedance_slopes(solref, solimp, r, shortest):
    """Returns (relative rate of D by r, rate of K d r by r, B) of a row at distance or error r."""
    K, B = reference(solref, solimp, shortest)
    sign = where(r < 0.0, -1.0, where(r > 0.0, 1.0, 0.0))
    d, rate = impedance(solimp, r), sign * impedance_rate(solimp, r)
    return rate / fmax(d * (1.0 - d), MINVAL), K * fma(r, rate, d), B


@kernel
def _springs(m, d, p):
    for j in range(m.njnt):
        v, k = m.jnt_dofadr[j], spring_coefficients(m, j)
        if is_scalar(m.jnt_type[j]):
            x = d.qpos[m.jnt_qposadr[j]] - spring_reference(m, d, j)
            rate = fma(x, fma(3.0 * k[2], x, 2.0 * k[1]), k[0])
            p.dof_stiffness[v] = where(is_sprung(k), rate, 0.0)


@kernel
def _dampers(m, d, p):
    """Returns rates b + 2 c |v| + 3 e v^2, and their changes by velocity times the integrator's acceleration."""
    for i in range(m.nv):
        _, c, e = damping_coefficients(m, d, i)
        p.dof_friction[i] = damping_rate(m, d, i)
        s = where(d.qvel[i] < 0.0, -1.0, 1.0)
        p.dof_lag_friction[i] = 2.0 * fma(3.0 * e, d.qvel[i], s * c) * d.qacc_step[i]


@kernel
def _motors(m, d, p):
    actuator_rates(m, d)
    for i in range(m.nactuator):
        if drives_joint(m, i) and is_scalar(m.jnt_type[m.actuator_trnid[i, 0]]) and not is_disabled(m, i):
            e = m.moment_rowadr[m.actuator_outadr[i]]
            v, gear = m.moment_colind[e], d.actuator_moment[e]
            p.dof_stiffness[v] = p.dof_stiffness[v] - gear * gear * force_by_length(m, d, i)
            p.dof_friction[v] = p.dof_friction[v] - gear * gear * force_by_velocity(m, d, i)


@kernel
def _rows(m, d, p):
    shortest = shortest_timeconst(m)
    for k in range(d.ndofrow[0]):
        i, D, x = d.dofrow_dof[k], d.dofrow_D[k], d.primal.dofrow_x[k]
        if d.dofrow_type[k] == LIMIT_JOINT:
            j, r = d.dofrow_id[k], d.dofrow_pos[k] - d.dofrow_margin[k]
            stiffer, pull, B = impedance_slopes(m.jnt_solref[j], m.jnt_solimp[j], r, shortest)
            f, _ = one_sided_row(D, x)
            acts = (D > 0.0) & (f > 0.0)
            p.dof_stiffness[i] = p.dof_stiffness[i] + where(acts, fma(D, pull, -(f * stiffer)), 0.0)
        else:
            B = loss_damping(m, m.dof_solref[i], m.dof_solimp[i], shortest)
            f = -(D * x)
            acts = (D > 0.0) & (f > d.dofrow_lo[k]) & (f < d.dofrow_hi[k])
        p.dof_friction[i] = p.dof_friction[i] + where(acts, D * B, 0.0)
        p.dof_curvature[i] = p.dof_curvature[i] + where(acts, D, 0.0)


@kernel
def dof_rates(m, d, p):
    """Computes dof_stiffness, dof_friction, dof_lag_friction, dof_curvature: rates of the residual on the diagonal."""
    for i in range(m.nv):
        p.dof_stiffness[i] = 0.0
        p.dof_friction[i] = 0.0
        p.dof_lag_friction[i] = 0.0
        p.dof_curvature[i] = 0.0
    if not (m.opt_disableflags & DISABLE_SPRING):
        _springs(m, d, p)
    if not (m.opt_disableflags & DISABLE_DAMPER):
        _dampers(m, d, p)
    if not (m.opt_disableflags & DISABLE_ACTUATION):
        _motors(m, d, p)
    _rows(m, d, p)
