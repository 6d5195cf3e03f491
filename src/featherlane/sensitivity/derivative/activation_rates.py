"""Derivatives of forces and of the next activation by a control, or by the activation of an integrator or a filter.

w' = w + T dw/dt, clamped        integrator: T = h;   filter: T = h, dw/dt = (u - w) / tau;
                                 filterexact: the same with T = tau (1 - exp(-h / tau))
force = gain w + bias            with actearly gain w' + bias
"""

from featherlane.prelude import *
from featherlane.dynamics.actuator.control import is_disabled
from featherlane.dynamics.actuator.dcmotor import lag_response
from featherlane.dynamics.actuator.gain import present_gain
from featherlane.dynamics.actuator.rate import is_saturated


@kernel
def _reads_inputs(m, d, i):
    """Returns whether actuator i reads its only control in this step, without a user callback."""
    plain = d.user_control == 0 and not (m.opt_disableflags & DISABLE_ACTUATION)
    return plain and m.actuator_ctrlnum[i] == 1 and m.actuator_history[i, 0] == 0


@kernel
def _has_formulas(m, d, i):
    """Returns whether there are formulas for the activation of actuator i, or it has none, and for its control."""
    kind, gain = m.actuator_dyntype[i], m.actuator_gaintype[i]
    keeps = kind in (DYN_INTEGRATOR, DYN_FILTER, DYN_FILTEREXACT) and m.actuator_actnum[i] == 1
    return _reads_inputs(m, d, i) and (kind == DYN_NONE or keeps) and gain in (GAIN_FIXED, GAIN_AFFINE)


@kernel
def actuator_of_control(m, d, c):
    """Returns the actuator of control c if it has formulas, else -1."""
    found = -1
    for i in range(m.nactuator):
        if m.actuator_ctrladr[i] == c and _has_formulas(m, d, i):
            found = i
    return found


@kernel
def actuator_of_activation(m, d, a):
    """Returns the actuator of activation a if it has formulas, else -1."""
    found = -1
    for i in range(m.nactuator):
        if m.actuator_actnum[i] == 1 and m.actuator_actadr[i] == a and _has_formulas(m, d, i):
            found = i
    return found


@kernel
def _next_activation_slopes(m, d, i):
    """Returns the derivatives of the next activation of actuator i by its activation and by its control."""
    actuator = m.actuator[i]
    a, h, kind = actuator.actadr, timestep(m), actuator.dyntype
    tau, by_activation, by_control, span = fmax(actuator.dynprm[0], MINVAL), 1.0, h, h
    if kind != DYN_INTEGRATOR:
        by_control = h / tau
        if kind == DYN_FILTEREXACT:
            by_control = lag_response(h, tau)
            span = tau * by_control
        by_activation = 1.0 - by_control
    rate = d.act_dot[a]
    if is_disabled(m, i):
        by_activation, by_control, rate = 1.0, 0.0, 0.0
    if actuator.actlimited:
        y = fma(rate, span, d.act[a])
        inside = (y >= actuator.actrange.lower) & (y <= actuator.actrange.upper)
        by_activation, by_control = where(inside, by_activation, 0.0), where(inside, by_control, 0.0)
    return by_activation, by_control


@kernel
def _push(m, d, p, i, slope):
    """Computes dg for a rate `slope` of the gain's factor; 0 if the force is clamped."""
    if not is_disabled(m, i):
        o, rate = m.actuator_outadr[i], where(is_saturated(m, d, i), 0.0, slope * present_gain(m, d, i))
        for e in range(m.moment_rowadr[o], m.moment_rowadr[o] + m.moment_rownnz[o]):
            p.dg[m.moment_colind[e]] = -(d.actuator_moment[e] * rate)


@kernel
def control_rates(m, d, p, i, c):
    """Computes dg and dact by control c of actuator i; 0 beyond the control's range."""
    actuator = m.actuator[i]
    u, moves = d.ctrl[c], not_(d.badctrl[0] > 0.0)
    if m.actuator_ctrllimited[c]:
        moves = moves & (u >= m.actuator_ctrlrange[c].lower) & (u <= m.actuator_ctrlrange[c].upper)
    slope = where(moves, 1.0, 0.0)
    if actuator.dyntype != DYN_NONE:
        _, by_control = _next_activation_slopes(m, d, i)
        slope = where(moves, by_control, 0.0)
        p.dact[actuator.actadr] = slope
    if actuator.dyntype == DYN_NONE or actuator.actearly:
        _push(m, d, p, i, slope)


@kernel
def activation_rates(m, d, p, i):
    """Computes dg and dact by the activation of actuator i."""
    slope, _ = _next_activation_slopes(m, d, i)
    p.dact[m.actuator_actadr[i]] = slope
    _push(m, d, p, i, slope if m.actuator_actearly[i] else 1.0)
