"""Columns of the residual's derivatives by formulas: the sum of all forces' rates by one coordinate.

A column has the derivatives by one coordinate c: positions by dof, velocities, activations, controls, generalized
forces.  In the record p (records.py): dg of the residual g = M a + c - tau - J^T f, dp of the integrator's correction p
(solution.py), dact of the next activations.
rate_steps: 1 if derivatives of the next state are requested; differences_p: 1 if the call provides dp in rest_p.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.reflected import reflected_armature
from featherlane.engine.dynamics.integrator.integrate import is_implicit
from featherlane.tools.sensitivity.rates.activation_rates import activation_rates, control_rates
from featherlane.tools.sensitivity.rates.applied_rates import subtract_applied
from featherlane.tools.sensitivity.rates.ball_rates import add_vector_spring
from featherlane.tools.sensitivity.rates.contact_rates import add_position_column, add_velocity_column
from featherlane.tools.sensitivity.rates.fastening_rates import ACCELERATION, POSITION, VELOCITY, add_fastenings
from featherlane.tools.sensitivity.rates.fluid_rates import subtract_fluid_position, subtract_fluid_velocity
from featherlane.tools.sensitivity.rates.free_body_rates import add_free_body
from featherlane.tools.sensitivity.rates.lift_rates import subtract_lift
from featherlane.tools.sensitivity.rates.smooth_rates import acceleration_column, position_column, velocity_column
from featherlane.tools.sensitivity.rates.tendon_rates import add_tendon_column, add_tendon_position_column
from featherlane.tools.sensitivity.rates.transmission_rates import subtract_transmissions


@kernel
def clear_rates(m, p):
    """dg, dp and rates of activations <- 0."""
    for i in range(m.nv):
        p.dg[i] = 0.0
        p.dp[i] = 0.0
    for a in range(m.na):
        p.dact[a] = 0.0


@kernel
def finish_rates(m, d, p):
    """dp += rest_p, the differenced dp, if the call provides it; -0 in dg and dp becomes 0."""
    # the sign of a zero may depend on the tile's other worlds
    for i in range(m.nv):
        p.dg[i] = p.dg[i] + 0.0
        p.dp[i] = p.dp[i] + (p.rest_p[i] if p.differences_p else 0.0)


@kernel
def position_rates(m, d, p, k):
    """Computes dg and dp by the position of dof k, with g = M a + c - tau - J^T f and p = M a - K a*."""
    position_column(m, d, p, k)  # dg and dp of the bodies' inertial forces; the next calls add terms to dg
    subtract_lift(m, d, p, k)  # gravity compensation
    subtract_fluid_position(m, d, p, k)
    subtract_applied(m, d, p, k)  # xfrc_applied
    add_vector_spring(m, d, p, k)  # springs of balls and free joints
    subtract_transmissions(m, d, p, k, by_velocity=0)  # actuators on sites, slider-cranks, balls, free joints
    add_tendon_position_column(m, d, p, k)  # tendons, limits of balls, equalities of joints and tendons
    add_fastenings(m, d, p, k, POSITION)  # connects and welds
    p.dg[k] = p.dg[k] + p.dof_stiffness[k]  # forces on single dofs, of `dof_rates`
    add_position_column(m, d, p, k)  # contacts
    # with differences_p, `finish_rates` adds the differenced dp
    if m.opt_integrator == IMPLICITFAST and not p.differences_p:
        add_free_body(m, d, p, k, by_velocity=0)  # dp: gyroscopic part of K of single free bodies


@kernel
def velocity_rates(m, d, p, k):
    """Computes dg and dp by the velocity of dof k, with g = M a + c - tau - J^T f and p = M a - K a*."""
    # the terms of `position_rates`, without forces that do not depend on the velocity
    velocity_column(m, d, p, k)
    p.dg[k] = p.dg[k] + p.dof_net_damping[k]  # forces on single dofs, of `dof_rates`
    subtract_fluid_velocity(m, d, p, k)
    subtract_transmissions(m, d, p, k, by_velocity=1)
    add_tendon_column(m, d, p, k, p.ten_damping, p.row_damping)
    add_fastenings(m, d, p, k, VELOCITY)
    add_velocity_column(m, d, p, k, accelerates=0)  # contacts
    # only the next state needs dp; with differences_p, `finish_rates` adds the differenced dp
    if is_implicit(m) and p.rate_steps and not p.differences_p:
        # dp = -dK a* = -h dof_implicit_damping, with K = M + h (slope of the dampers' forces)
        p.dp[k] = -(timestep(m) * p.dof_implicit_damping[k])
        if m.opt_integrator == IMPLICITFAST:
            add_free_body(m, d, p, k, by_velocity=1)


@kernel
def acceleration_rates(m, d, p, k):
    """Computes column dg by the acceleration of dof k."""
    acceleration_column(m, d, p, k)  # column k of the bodies' inertia matrix
    # inertias of rotors, those of actuators included, and rows on single dofs (`dof_rates`)
    p.dg[k] = p.dg[k] + (m.dof_armature[k] + reflected_armature(m, k)) + p.dof_curvature[k]
    # contacts: J^T f depends on J a + B J v, so the column is that of the velocity without the factor B (accelerates)
    add_velocity_column(m, d, p, k, accelerates=1)
    add_tendon_column(m, d, p, k, p.ten_curvature, p.row_curvature)
    add_fastenings(m, d, p, k, ACCELERATION)


@kernel
def rates_column(m, d, p, c):
    """Computes columns dg, dp and dact by coordinate c; they are 0 for c = -1."""
    first_control, first_force = 2 * m.nv + m.na, 2 * m.nv + m.na + m.nu
    clear_rates(m, p)
    if c >= 0 and c < m.nv:
        position_rates(m, d, p, c)
    elif c >= m.nv and c < 2 * m.nv:
        velocity_rates(m, d, p, c - m.nv)
    elif c >= first_force:
        p.dg[c - first_force] = -1.0  # a generalized force
    elif c >= first_control:
        control_rates(m, d, p, c - first_control)
    elif c >= 0:
        activation_rates(m, d, p, c - 2 * m.nv)
    finish_rates(m, d, p)
