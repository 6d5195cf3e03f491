"""Derivatives of forces and of the next activation by a control or an activation.

w' = w + T dw/dt, clamped        integrator, filter, muscle: T = h;   filterexact: T = tau (1 - exp(-h / tau))
force = gain w + bias            with actearly gain w' + bias

w: activation, u: control, h: time step.  The record p (records.py) has the column of derivatives by one coordinate:
p.dg of the residual, which contains minus the actuators' forces, p.dact of the next activations.  `serves` admits
actuators with at most one control and one activation.  dyntype DYN_NONE: no activation; actearly: the force uses w';
history[0] > 0: the control acts after a delay.  present_gain: gain; is_saturated: mask of worlds in which the force is
clamped.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.activation import activation_rate, next_filtered
from featherlane.engine.dynamics.actuator.control import is_disabled
from featherlane.engine.dynamics.actuator.gain import present_gain
from featherlane.engine.dynamics.actuator.rate import is_saturated
from featherlane.tools.sensitivity.rates.coordinates import EPS, displacements, per_span


@kernel
def _actuator_of_control(m, c):
    """Returns the actuator of control c, or -1."""
    found = -1
    for i in range(m.nactuator):
        if m.actuator_ctrladr[i] == c and m.actuator_ctrlnum[i] > 0:
            found = i
    return found


@kernel
def _actuator_of_activation(m, a):
    """Returns the actuator of activation a."""
    found = -1
    for i in range(m.nactuator):
        if m.actuator_actadr[i] == a and m.actuator_actnum[i] > 0:
            found = i
    return found


@kernel
def _next_activation(m, d, i):
    """Returns the activation w' of actuator i after a step; a disabled actuator keeps its activation."""
    rate = 0.0 if is_disabled(m, i) else activation_rate(m, d, i)
    return next_filtered(m, d, i, m.actuator_actadr[i], rate)


_slopes = jvp(_next_activation, "act", "actuator_input")  # returns (w', dw'/dw, dw'/du)
BY_ACTIVATION, BY_CONTROL = 1, 2  # positions of the slopes in this result


@kernel
def _next_slope(m, d, i, x, e, c, slope_of):
    """Returns the derivative of the next activation w' of actuator i by x[e], which is coordinate c.

    The slope of a muscle jumps where its control equals its activation, as at rest.  It is the mean of the slopes on
    both sides, at x[e] displaced up and down.
    slope_of: BY_ACTIVATION, with x = d.act, or BY_CONTROL, with x = d.actuator_input.  x[e] is restored.
    """
    slope = _slopes(m, d, i)[slope_of]
    if m.actuator_dyntype[i] == DYN_MUSCLE:
        value = x[e]
        up, down = displacements(m, d, 1.0 * c, EPS)
        x[e] = value + up
        upper = _slopes(m, d, i)[slope_of]
        x[e] = value - down
        lower = _slopes(m, d, i)[slope_of]
        x[e] = value
        # weighted by the displacements: a control at the end of its range is displaced to one side only
        slope = fma(up, upper, down * lower) * per_span(up + down)
    return slope


@kernel
def _store_force_rates(m, d, p, i, slope):
    """dg <- minus the derivative of the forces of actuator i; 0 if its force is clamped.

    dg is 0 before, and a column has one actuator.
    slope: derivative by the coordinate of the variable that the gain multiplies: w, w' or u.
    """
    if not is_disabled(m, i):
        output = m.actuator_outadr[i]
        rate = where(is_saturated(m, d, i), 0.0, slope * present_gain(m, d, i))
        # the force on a dof is the actuator's moment there times its force
        for e in moment_entries(m, output):
            p.dg[m.moment_colind[e]] = -(d.actuator_moment[e] * rate)


@kernel
def _control_rates(m, d, p, i, c):
    """Computes dg and dact by control c of actuator i; 0 beyond the control's range, and for a delayed control.

    badctrl is 1 in worlds with an invalid control, which sets all controls to 0.
    """
    actuator = m.actuator[i]
    u = d.ctrl[c]
    acts = not_(d.badctrl[0] > 0.0)  # worlds in which the control has an effect
    if m.actuator_ctrllimited[c]:
        acts = acts & (u >= m.actuator_ctrlrange[c].lower) & (u <= m.actuator_ctrlrange[c].upper)
    if actuator.history[0] > 0:
        acts = acts & (actuator.delay == 0.0)
    # derivative by the control of what the force depends on: of the control itself, or of the next activation w'
    slope = where(acts, 1.0, 0.0)
    if actuator.dyntype != DYN_NONE:
        coordinate = 2 * m.nv + m.na + c  # of control c, after those of positions, velocities and activations
        slope = where(acts, _next_slope(m, d, i, d.actuator_input, c, coordinate, BY_CONTROL), 0.0)
        p.dact[actuator.actadr] = slope
    # without actearly the force reads the present activation, which does not depend on the control
    if actuator.dyntype == DYN_NONE or actuator.actearly:
        _store_force_rates(m, d, p, i, slope)


@kernel
def control_rates(m, d, p, c):
    """Computes dg and dact by control c."""
    i = _actuator_of_control(m, c)
    if i >= 0 and not (m.opt_disableflags & DISABLE_ACTUATION):
        _control_rates(m, d, p, i, c)


@kernel
def activation_rates(m, d, p, a):
    """Computes dg and dact by activation a."""
    p.dact[a] = 1.0  # without actuation, the activation is constant
    if not (m.opt_disableflags & DISABLE_ACTUATION):
        i = _actuator_of_activation(m, a)
        slope = _next_slope(m, d, i, d.act, a, 2 * m.nv + a, BY_ACTIVATION)
        p.dact[a] = slope
        _store_force_rates(m, d, p, i, slope if m.actuator_actearly[i] else 1.0)  # of w' or w
