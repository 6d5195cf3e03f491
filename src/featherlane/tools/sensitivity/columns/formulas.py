"""Columns of the residual's derivatives by formulas: the sum of all forces' rates by one coordinate.

A column has the derivatives by one coordinate c: positions by dof, velocities, activations, controls, generalized
forces.  In the record p (records.py): dg of the residual g = M a + c - tau - J^T f, dp of the integrator's correction p
(solution.py), dact of the next activations.
rate_steps: 1 if derivatives of the next state are requested; rate_lag: 1 if the call provides dp in rest_p.
Activations of muscles, and controls that act through them or with a delay, are differenced here, because they affect
only actuator forces.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.activation import advance_activations
from featherlane.engine.dynamics.actuator.reflected import reflected_armature
from featherlane.engine.dynamics.integrator.integrate import is_implicit
from featherlane.engine.simulation.step.forward import control_and_actuate
from featherlane.tools.sensitivity.columns.coordinates import copy, per_span
from featherlane.tools.sensitivity.rates.activation_rates import (
    activation_rates,
    actuator_of_activation,
    actuator_of_control,
    control_rates,
)
from featherlane.tools.sensitivity.rates.applied_rates import subtract_applied
from featherlane.tools.sensitivity.rates.ball_rates import add_vector_spring
from featherlane.tools.sensitivity.rates.contact_rates import add_position_column, add_velocity_column
from featherlane.tools.sensitivity.rates.fastening_rates import ACCELERATION, POSITION, VELOCITY, add_fastenings
from featherlane.tools.sensitivity.rates.fluid_rates import subtract_fluid_position, subtract_fluid_velocity
from featherlane.tools.sensitivity.rates.free_body_rates import add_free_body
from featherlane.tools.sensitivity.rates.lift_rates import subtract_lift
from featherlane.tools.sensitivity.rates.smooth_rates import acceleration_column, position_column, velocity_column
from featherlane.tools.sensitivity.rates.tendon_rates import (
    add_tendon_acceleration_column,
    add_tendon_position_column,
    add_tendon_velocity_column,
)
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
    """dp += differences, if the call provides them; -0 becomes 0, because its sign may depend on other worlds."""
    for i in range(m.nv):
        p.dg[i] = p.dg[i] + 0.0
        p.dp[i] = p.dp[i] + (p.rest_p[i] if p.rate_lag else 0.0)


@kernel
def position_rates(m, d, p, k):
    """Computes columns dg and dp by the position of dof k."""
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
    # with rate_lag, p is differenced
    if m.opt_integrator == IMPLICITFAST and not p.rate_lag:
        add_free_body(m, d, p, k, by_velocity=0)  # dp: gyroscopic part of K of single free bodies


@kernel
def velocity_rates(m, d, p, k):
    """Computes columns dg and dp by the velocity of dof k."""
    # as in `position_rates`; forces that do not depend on the velocity have no term
    velocity_column(m, d, p, k)
    p.dg[k] = p.dg[k] + p.dof_friction[k]  # forces on single dofs, of `dof_rates`
    subtract_fluid_velocity(m, d, p, k)
    subtract_transmissions(m, d, p, k, by_velocity=1)
    add_tendon_velocity_column(m, d, p, k)
    add_fastenings(m, d, p, k, VELOCITY)
    add_velocity_column(m, d, p, k, accelerates=0)  # contacts
    # only the next state needs dp; with rate_lag, it is differenced
    if is_implicit(m) and p.rate_steps and not p.rate_lag:
        # dp = -dK a* = -h dof_lag_friction, with K = M + h (slope of the dampers' forces)
        p.dp[k] = -(timestep(m) * p.dof_lag_friction[k])
        if m.opt_integrator == IMPLICITFAST:
            add_free_body(m, d, p, k, by_velocity=1)


@kernel
def acceleration_rates(m, d, p, k):
    """Computes column dg by the acceleration of dof k."""
    acceleration_column(m, d, p, k)  # column k of the bodies' inertia matrix
    # inertias of rotors, those of actuators included, and rows on single dofs (`dof_rates`)
    p.dg[k] = p.dg[k] + (m.dof_armature[k] + reflected_armature(m, k)) + p.dof_curvature[k]
    # contacts: J^T f depends on J a as on B J v, so one function has both columns; accelerates: without the factor B
    add_velocity_column(m, d, p, k, accelerates=1)
    add_tendon_acceleration_column(m, d, p, k)
    add_fastenings(m, d, p, k, ACCELERATION)


@kernel
def _actuate_with(m, d, p, x, i, value):
    """Computes actuator forces and the next activations with x[i] = value.

    x: d.act or d.ctrl.   Writes: x[i], qfrc_actuator, act (the next activations), dact (the present ones).
    """
    x[i] = value
    control_and_actuate(m, d)
    copy(d.act, m.na, p.dact, first=0)
    advance_activations(m, d, d.act_dot)


@kernel
def _difference_actuators(m, d, p, x, i, up, down):
    """Computes columns dg and dact by x[i]: central differences of actuator forces and next activations.

    x: d.act or d.ctrl; up, down: displacements.  x and act keep their values.
    Scratch: act_upper, the next activations at the upper point; until the end dg and dact hold the forces there and the
    present activations.
    """
    value = x[i]
    _actuate_with(m, d, p, x, i, value + up)
    copy(d.qfrc_actuator, m.nv, p.dg, first=0)
    copy(d.act, m.na, p.act_upper, first=0)
    copy(p.dact, m.na, d.act, first=0)  # restores act
    _actuate_with(m, d, p, x, i, value - down)
    scale = per_span(up + down)
    # the residual contains minus the actuator forces
    for k in range(m.nv):
        p.dg[k] = -(scale * (p.dg[k] - d.qfrc_actuator[k]))
    for a in range(m.na):
        lower = d.act[a]
        d.act[a] = p.dact[a]
        p.dact[a] = scale * (p.act_upper[a] - lower)
    x[i] = value


@kernel
def _actuator_rates(m, d, p, c, up, down):
    """Computes the column of activation c, or of control c - na; up, down: displacements for differences."""
    control = c - m.na
    if control < 0:
        i = actuator_of_activation(m, d, c)
        if i >= 0:
            activation_rates(m, d, p, i)
        else:
            _difference_actuators(m, d, p, d.act, c, up, down)
    # with disabled actuation, controls change nothing but activations
    elif m.na > 0 or not (m.opt_disableflags & DISABLE_ACTUATION):
        i = actuator_of_control(m, d, control)
        if i >= 0:
            control_rates(m, d, p, i, control)
        else:
            _difference_actuators(m, d, p, d.ctrl, control, up, down)


@kernel
def rates_column(m, d, p, c, up, down):
    """Computes columns dg, dp and dact by coordinate c, -1: none.

    up, down: displacements of an activation or a control without formulas.
    """
    first_force = 2 * m.nv + m.na + m.nu
    clear_rates(m, p)
    if c >= 0 and c < m.nv:
        position_rates(m, d, p, c)
    elif c >= m.nv and c < 2 * m.nv:
        velocity_rates(m, d, p, c - m.nv)
    elif c >= first_force:
        # a generalized force; activations and controls, numbered before these, are the last case
        p.dg[c - first_force] = -1.0
    elif c >= 2 * m.nv:
        _actuator_rates(m, d, p, c - 2 * m.nv, up, down)
    finish_rates(m, d, p)
