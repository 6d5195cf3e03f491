"""Computes rates and forces of MuJoCo's actuator plugin mujoco.pid.

    force = kp e + kd (u' - l') + ki z,    e = u - l,    z <- clip(z + h e, +-imax / ki)

The setpoint u is the control, or the activation of a filter or integrator.  It changes by at most slewmax per second,
except in the step at time 0.  Activations in order: the integral z if ki is not 0, the slewed setpoint if slewmax is
given, the filter's.  Rates are such that Euler's step gives the next values.
i is the index of an actuator.
Source: MuJoCo 4.0.1, plugin/actuator/pid.cc.  Deviations: a delay of the control acts; an invalid control counts as 0;
    an actuator of a disabled group has no force.
"""

from featherlane.engine.prelude import *


@kernel
def _slewed_setpoint(m, d, i, u):
    """Returns the setpoint u, limited to a change of slewmax h since the last step, except in the step at time 0."""
    actuator = m.actuator[i]
    if actuator.states & SLEW:
        # the last setpoint is stored after the integral, if there is one: INTEGRAL >> 1 is 1
        a = actuator.actadr + ((actuator.states & INTEGRAL) >> 1)
        before = d.act[a]
        max_change = actuator.pidprm.slewmax * timestep(m)
        u = where(d.time[0] > 0.0, clip(u, before - max_change, before + max_change), u)
    return u


@kernel
def _next_integral(m, d, i, error):
    """Returns clip(z + h e, +-imax / ki): the integral of the error after the step; the actuator has one."""
    prm = m.actuator_pidprm[i]
    bound = fabs(prm.imax / prm.ki)
    return clip(fma(error, timestep(m), d.act[m.actuator_actadr[i]]), -bound, bound)


@kernel
def store_pid_plugin_rates(m, d, i, u):
    """act_dot <- rates of the integral and the slewed setpoint of actuator i, whose setpoint is u: change / h."""
    actuator = m.actuator[i]
    a = actuator.actadr
    h = timestep(m)
    u = _slewed_setpoint(m, d, i, u)
    if actuator.states & INTEGRAL:
        z = _next_integral(m, d, i, u - d.actuator_length[actuator.outadr])
        d.act_dot[a] = (z - d.act[a]) / h
        a += 1  # the slewed setpoint is stored after the integral
    if actuator.states & SLEW:
        d.act_dot[a] = (u - d.act[a]) / h


@kernel
def pid_plugin_force(m, d, i, u, rate):
    """Returns kp e + kd (u' - l') + ki z: the force of actuator i, whose setpoint u has the rate u'."""
    o, prm = m.actuator_outadr[i], m.actuator_pidprm[i]
    error = _slewed_setpoint(m, d, i, u) - d.actuator_length[o]
    force = fma(prm.kd, rate - d.actuator_velocity[o], prm.kp * error)
    if m.actuator_states[i] & INTEGRAL:
        force = fma(prm.ki, _next_integral(m, d, i, error), force)
    return force
