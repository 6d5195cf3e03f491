"""Computes the rates of activations, and the activations after a step.

none         no activation
integrator   w' = u
filter       w' = (u - w) / tau
filterexact  as filter, with the exact solution over a step for a constant u
muscle       `muscle.py`
dcmotor      `dcmotor.py`: up to five states
pid          a slewed setpoint, the integral of the position error
user         a user callback
mujoco.pid   `pid_plugin.py`: adds an integral and a slewed setpoint to any of these
Source: MuJoCo, chapter Computation, actuation model; mj_fwdActuation, mj_nextActivation, mj_advance.
"""

from featherlane.prelude import *
from featherlane.dynamics.actuator.control import is_disabled
from featherlane.dynamics.actuator.dcmotor import held_integral, lag, motor_rates, next_motor_state, state_place
from featherlane.dynamics.actuator.muscle import muscle_rate
from featherlane.dynamics.actuator.parameters import MuscleRates, PidRates
from featherlane.dynamics.actuator.pid_plugin import pid_plugin_rates
from featherlane.dynamics.actuator.setpoint import nearest_setpoint, shorten_rotation, slew
from featherlane.dynamics.actuator.user import user_rates


@kernel
def _pid_rates(m, d, i):
    """Computes the rates of a pid's states; replaces a slewed setpoint."""
    actuator = m.actuator[i]
    prm, o, states = PidRates(actuator.dynprm), actuator.outadr, actuator.states
    if states & SLEW:
        slew(m, d, i, state_place(m, i, SLEW), prm.slew)
    if states & INTEGRAL:
        a, setpoint = state_place(m, i, INTEGRAL), 0.0
        if actuator.ctrlspec & INPUT_POS:
            setpoint = d.actuator_input[actuator.ctrladr]
        length = d.actuator_length[o]
        error = nearest_setpoint(m, d, i, setpoint - length, 0.0)
        d.act_dot[a] = held_integral(d.act[a], error, prm.bound)


@stage
def activation(m, d):
    """Computes act_dot of all actuators, including those of disabled groups.

    Source: MuJoCo mj_fwdActuation.  Deviation: while its tree sleeps, an activation follows its equation; MuJoCo keeps
        the rate from the moment of falling asleep, whatever the control.
    Reads:  actuator_input, act, actuator_length, actuator_velocity.
    Writes: act_dot (na,) [1/s]; actuator_input of slewed setpoints.
    """
    for k in range(m.na):
        d.act_dot[k] = 0.0
    for i in range(m.nactuator):
        actuator = m.actuator[i]
        kind, u = actuator.dyntype, actuator.ctrladr
        last = actuator.actadr + actuator.actnum - 1
        if actuator.actnum > 0:
            if kind == DYN_INTEGRATOR:
                number = actuator.ctrlnum
                for k in range(number):
                    d.act_dot[last - number + 1 + k] = d.actuator_input[u + k]
            elif kind in (DYN_FILTER, DYN_FILTEREXACT):
                d.act_dot[last] = (d.actuator_input[u] - d.act[last]) / fmax(actuator.dynprm[0], MINVAL)
            elif kind == DYN_MUSCLE:
                d.act_dot[last] = muscle_rate(d.actuator_input[u], d.act[last], MuscleRates(actuator.dynprm))
            elif kind == DYN_PID:
                _pid_rates(m, d, i)
            elif kind == DYN_DCMOTOR:
                motor_rates(m, d, i)
            elif kind == DYN_USER:
                user_rates(m, d, i)
            if actuator.states & PID_PLUGIN:
                pid_plugin_rates(m, d, i, d.actuator_input[u] if kind == DYN_NONE else d.act[last])


@kernel
def next_activation(m, d, i, a, rate):
    """Returns activation a of actuator i after a step with that rate, clamped to its range."""
    actuator = m.actuator[i]
    h, kind, x = timestep(m), actuator.dyntype, d.act[a]
    if kind == DYN_DCMOTOR:
        return next_motor_state(m, d, i, a, rate)
    y = fma(rate, h, x)
    if kind == DYN_FILTEREXACT:
        tau = fmax(actuator.dynprm[0], MINVAL)
        y = fma(rate * tau, lag(h, tau), x)
    if actuator.actlimited:
        y = clip(y, actuator.actrange.lower, actuator.actrange.upper)
    return y


@kernel
def early_activation(m, d, i, a):
    """Returns activation a as used by the force: the current one, or with `actearly` that after the step."""
    x = d.act[a]
    if m.actuator_actearly[i]:
        x = next_activation(m, d, i, a, d.act_dot[a])
    return x


@kernel
def advance_activations(m, d, rates):
    """act <- values after a step with these rates, 0 for disabled groups; angle setpoints <- the nearest equivalents.

    Source: MuJoCo mj_advance.
    """
    if m.na > 0 and not (m.opt_disableflags & DISABLE_ACTUATION):
        for i in range(m.nactuator):
            actuator = m.actuator[i]
            first, off = actuator.actadr, is_disabled(m, i)
            for a in range(first, first + actuator.actnum):
                d.act[a] = next_activation(m, d, i, a, 0.0 if off else rates[a])
            if actuator.dyntype == DYN_INTEGRATOR and actuator.actnum > 0:
                if actuator.gaintype == GAIN_SO3:
                    shorten_rotation(d, first)
                else:
                    last = first + actuator.actnum - 1
                    length = d.actuator_length[actuator.outadr]
                    d.act[last] = nearest_setpoint(m, d, i, d.act[last], length)
