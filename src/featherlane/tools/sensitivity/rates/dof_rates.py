"""Derivatives of forces on single dofs by position and velocity: springs, dampers, motors, limits, dry friction.

A row on a dof has the force f = -D (J a + B v + K d r) while it is active, with the impedance d(r).  r also changes
D = 1 / (A (1 / d - 1)), with A a constant estimate of J M^-1 J^T.

The record p (records.py) has for each dof the diagonal entries of the derivatives of the residual
g = M a + c - tau - J^T f: dof_stiffness by position, dof_net_damping by velocity, dof_curvature by acceleration;
dof_implicit_damping is that of the integrator's damping (solution.py), divided by -h.
Row k of a single dof: row_dof is the dof, row_id the joint of a limit, row_D is D, 0 in worlds without the row, and
[row_lo, row_hi] the range of its force.
jvp(f, "x") returns (value of f, its derivative by x): [1] is the derivative.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.friction_loss import loss_damping
from featherlane.engine.constraint.general import row_parameters
from featherlane.engine.constraint.impedance import impedance, inverse_regularisation, reference, shortest_timeconst
from featherlane.engine.dynamics.actuator.control import is_disabled
from featherlane.engine.dynamics.actuator.rate import actuator_rates, force_by_length, force_by_velocity
from featherlane.engine.dynamics.actuator.transmission import drives_joint
from featherlane.engine.dynamics.integrator.derivative import damping_rate
from featherlane.engine.dynamics.passive.forces import dof_damper_force, joint_spring_force
from featherlane.engine.solver.rows.laws import bounded_force

_joint_spring, _joint_damper = jvp(joint_spring_force, "qpos"), jvp(dof_damper_force, "qvel")
_joint_damping_rate = jvp(damping_rate, "qvel")


@kernel
def _row_law(solref, solimp, r, shortest):
    """Returns (A D, K d r, B) of a row at distance or error r; A D = 1 / (1 / d - 1) does not need the constant A."""
    (K, B), d = reference(solref, solimp, shortest), impedance(solimp, r)
    return inverse_regularisation(d, 1.0), K * d * r, B


@kernel
def impedance_slopes(solref, solimp, r, shortest):
    """Returns (relative derivative of D by r, derivative of K d r by r, B) of a row at distance or error r.

    solref, solimp: of the row; shortest: the smallest allowed time constant of a solref [s].
    """
    # both are A D, so A cancels in the relative derivative
    (AD, _, B), (AD_slope, pull, _) = split_tangents(_row_law(solref, solimp, seed(r, 1.0), shortest), 1)
    return AD_slope / AD, pull, B


@kernel
def _add_motors(m, d, p):
    """dof_stiffness and dof_net_damping += those of actuators on slides and hinges: -gear^2 F_l and -gear^2 F_l'.

    F is the actuator's force, l its length, l' the length's rate.
    """
    actuator_rates(m, d)  # writes what `force_by_length` and `force_by_velocity` read
    for i in range(m.nactuator):
        # actuators on tendons, balls, free joints and sites: tendon_rates.py and transmission_rates.py
        if drives_joint(m, i) and is_scalar(m.jnt_type[m.actuator_trnid[i, 0]]) and not is_disabled(m, i):
            # one output moves one dof: its row of moments has one entry, the gear
            e = m.moment_rowadr[m.actuator_outadr[i]]
            v, gear = m.moment_colind[e], d.actuator_moment[e]
            p.dof_stiffness[v] = p.dof_stiffness[v] - gear * gear * force_by_length(m, d, i)
            p.dof_net_damping[v] = p.dof_net_damping[v] - gear * gear * force_by_velocity(m, d, i)


@kernel
def row_rates(m, d, k, shortest):
    """Returns (f, D, stiffness, B) of scalar row k at the solution; D is 0 where the row is absent or at a bound.

    stiffness = -df/dr = D d(K d r)/dr - f (dD/dr) / D, with the distance or error r; 0 for dry friction.
    """
    kind, i = d.row_type[k], d.row_id[k]
    solref, solimp = row_parameters(m, kind, i)
    f, _ = bounded_force(d.row[k], d.primal.row_x[k])  # row_x = J a - aref
    within_bounds = (f > d.row_lo[k]) & (f < d.row_hi[k])
    D, stiffness = where(within_bounds, d.row_D[k], 0.0), 0.0
    B = loss_damping(m, solref, solimp, shortest)
    if kind not in (FRICTION_DOF, FRICTION_TENDON):
        stiffer, pull, B = impedance_slopes(solref, solimp, d.row_pos[k] - d.row_margin[k], shortest)
        stiffness = where(D > 0.0, fma(D, pull, -(f * stiffer)), 0.0)
    return f, D, stiffness, B


@kernel
def _add_rows(m, d, p):
    """dof_stiffness, dof_net_damping, dof_curvature += those of the active rows of limits and dry friction."""
    shortest = shortest_timeconst(m)
    for k in range(d.ndofrow[0]):
        i = d.row_dof[k]
        _, D, stiffness, B = row_rates(m, d, k, shortest)
        p.dof_stiffness[i] = p.dof_stiffness[i] + stiffness
        # 0 without an active row, even if B is infinite
        p.dof_net_damping[i] = p.dof_net_damping[i] + where(D > 0.0, D * B, 0.0)
        p.dof_curvature[i] = p.dof_curvature[i] + D


@kernel
def dof_rates(m, d, p):
    """Computes derivatives of forces on single dofs: -df/dq, -df/dv, d(damping a*)/dv and -df/da of the residual.

    Writes: dof_stiffness, dof_net_damping, dof_implicit_damping, dof_curvature (in this order).
    """
    for i in range(m.nv):
        p.dof_stiffness[i] = 0.0
        p.dof_net_damping[i] = 0.0
        p.dof_implicit_damping[i] = 0.0
        p.dof_curvature[i] = 0.0
    if not (m.opt_disableflags & DISABLE_SPRING):
        for j in range(m.njnt):
            if is_scalar(m.jnt_type[j]):
                p.dof_stiffness[m.jnt_dofadr[j]] = -_joint_spring(m, d, j)[1]
    if not (m.opt_disableflags & DISABLE_DAMPER):
        for i in range(m.nv):
            p.dof_net_damping[i] = -_joint_damper(m, d, i)[1]
            # the derivative by v of the integrator's damping rate, times the integrator's acceleration a*
            p.dof_implicit_damping[i] = _joint_damping_rate(m, d, i)[1] * d.qacc_step[i]
    if not (m.opt_disableflags & DISABLE_ACTUATION):
        _add_motors(m, d, p)
    _add_rows(m, d, p)
