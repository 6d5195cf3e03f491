"""Computes the rates of activations, and the activations after a step.

w is the activation, u the control, tau a time constant:

none         no activation
integrator   w' = u
filter       w' = (u - w) / tau
filterexact  as filter, with the exact solution over a step for a constant u
muscle       `muscle.py`
dcmotor      `dcmotor.py`: up to five states
pid          a slewed setpoint, the integral of the position error
user         a user callback
mujoco.pid   `pid_plugin.py`: adds an integral and a slewed setpoint to any of these

SLEW, INTEGRAL and PID_PLUGIN are bits of actuator_states: a slew-limited setpoint, an integral, the plugin mujoco.pid.
`state_address` returns the address in act of such a state.  INPUT_POS is the bit of actuator_ctrlspec for a position.
i is the index of an actuator.  Its controls, activations and outputs are stored from the addresses ctrladr (in ctrl and
actuator_input), actadr (in act and act_dot) and outadr (in actuator_length) on; ctrlnum and actnum are their numbers.

Imported kernels:

    limit_slew(m, d, i, a, rate)            limits actuator_input to the slew rate; writes its rate to act_dot[a]
    bounded_integral_rate(z, error, bound)  the error, or 0 if it would move the integral z farther beyond its bound
    store_pid_plugin_rates(m, d, i, u)      act_dot <- rates of the plugin's states, with the setpoint u
    shorten_rotation(d, a)                  act[a : a + 3] <- the shortest equivalent rotation vector
    nearest_setpoint(m, d, i, x, length)    of the angles equivalent to x the one nearest to length; x if it is no angle
    lag_response(h, tau)                    1 - exp(-h / tau)

Source: MuJoCo, chapter Computation, actuation model; mj_fwdActuation, mj_nextActivation, mj_advance.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.control import is_disabled
from featherlane.engine.dynamics.actuator.dcmotor import (
    bounded_integral_rate,
    lag_response,
    next_motor_state,
    state_address,
    store_motor_rates,
)
from featherlane.engine.dynamics.actuator.muscle import muscle_rate
from featherlane.engine.dynamics.actuator.parameters import MuscleRates, PidRates
from featherlane.engine.dynamics.actuator.pid_plugin import store_pid_plugin_rates
from featherlane.engine.dynamics.actuator.setpoint import limit_slew, nearest_setpoint, shorten_rotation
from featherlane.engine.dynamics.actuator.user import ACTIVATION


@kernel
def _store_pid_rates(m, d, i):
    """act_dot <- rates of a pid's states; actuator_input <- a slew-limited setpoint.

    The integral's rate is the position error, or 0 at its bound.
    """
    actuator = m.actuator[i]
    prm = PidRates(actuator.dynprm)
    o, states = actuator.outadr, actuator.states
    if states & SLEW:
        limit_slew(m, d, i, state_address(m, i, SLEW), prm.slew)
    if states & INTEGRAL:
        a = state_address(m, i, INTEGRAL)
        setpoint = 0.0  # without a control for the position
        if actuator.ctrlspec & INPUT_POS:
            setpoint = d.actuator_input[actuator.ctrladr]
        length = d.actuator_length[o]
        # of equivalent errors of an angle, the one nearest to 0
        error = nearest_setpoint(m, d, i, setpoint - length, length=0.0)
        d.act_dot[a] = bounded_integral_rate(d.act[a], error, prm.bound)


@kernel
def activation_rate(m, d, i):
    """Returns the rate of the last activation w of actuator i by its control u: integrator, filter or muscle.

    It is u, (u - w) / tau, or that of `muscle_rate`.
    """
    actuator = m.actuator[i]
    kind, u = actuator.dyntype, d.actuator_input[actuator.ctrladr]
    w = d.act[actuator.actadr + actuator.actnum - 1]
    rate = u
    if kind in (DYN_FILTER, DYN_FILTEREXACT):
        rate = (u - w) / fmax(actuator.dynprm[0], MINVAL)
    elif kind == DYN_MUSCLE:
        rate = muscle_rate(u, w, MuscleRates(actuator.dynprm))
    return rate


@stage
def activation(m, d):
    """Computes act_dot of all actuators, also of disabled groups, by the table of dynamics/actuator/activation.py.

    Source: MuJoCo mj_fwdActuation.  Deviation: while its tree sleeps, an activation follows its equation; MuJoCo keeps
        the rate from the moment of falling asleep, whatever the control.
    Reads:  actuator_input, act, actuator_length, actuator_velocity.
    Writes: act_dot (na,) [1/s]; actuator_input of slewed setpoints.
    """
    for k in range(m.na):
        d.act_dot[k] = 0.0
    for i in range(m.nactuator):
        actuator = m.actuator[i]
        kind = actuator.dyntype
        first_control = actuator.ctrladr
        last = actuator.actadr + actuator.actnum - 1
        if actuator.actnum > 0:
            if kind == DYN_INTEGRATOR:
                # each control is integrated by one activation; they are the last ones of the actuator
                number = actuator.ctrlnum
                for k in range(number):
                    d.act_dot[last - number + 1 + k] = d.actuator_input[first_control + k]
            elif kind in (DYN_FILTER, DYN_FILTEREXACT, DYN_MUSCLE):
                d.act_dot[last] = activation_rate(m, d, i)
            elif kind == DYN_PID:
                _store_pid_rates(m, d, i)
            elif kind == DYN_DCMOTOR:
                store_motor_rates(m, d, i)
            elif kind == DYN_USER:
                callback = d.user_actuator[i, ACTIVATION]  # writes act_dot
                if callback != 0:
                    call(callback, m, d, i)
            if actuator.states & PID_PLUGIN:
                # the plugin's setpoint is the control, or the activation of a filter or integrator
                setpoint = d.actuator_input[first_control] if kind == DYN_NONE else d.act[last]
                store_pid_plugin_rates(m, d, i, setpoint)


@kernel
def next_activation(m, d, i, a, rate):
    """Returns act[a] of actuator i after a step with that rate, clamped to its range."""
    if m.actuator_dyntype[i] == DYN_DCMOTOR:
        return next_motor_state(m, d, i, a, rate)
    return next_filtered(m, d, i, a, rate)


@kernel
def next_filtered(m, d, i, a, rate):
    """Returns `next_activation` of an actuator that is no motor.

    w + h rate; with filterexact w + rate tau (1 - exp(-h / tau)).
    """
    actuator = m.actuator[i]
    h = timestep(m)
    w = d.act[a]
    new = fma(rate, h, w)
    if actuator.dyntype == DYN_FILTEREXACT:
        tau = fmax(actuator.dynprm[0], MINVAL)
        new = fma(rate * tau, lag_response(h, tau), w)
    if actuator.actlimited:
        new = clip(new, actuator.actrange.lower, actuator.actrange.upper)
    return new


@kernel
def early_activation(m, d, i, a):
    """Returns act[a] of actuator i as used by the force: the current one, or with `actearly` that after the step."""
    w = d.act[a]
    if m.actuator_actearly[i]:
        w = next_activation(m, d, i, a, d.act_dot[a])
    return w


@kernel
def advance_activations(m, d, rates):
    """act <- values after a step with these rates; activations of disabled groups have the rate 0.

    The setpoint of an angle servo becomes the equivalent one nearest to the length.
    rates: (na,) act_dot.
    Source: MuJoCo mj_advance.
    """
    if m.na > 0 and not (m.opt_disableflags & DISABLE_ACTUATION):
        for i in range(m.nactuator):
            actuator = m.actuator[i]
            first = actuator.actadr
            is_off = is_disabled(m, i)
            for a in range(first, first + actuator.actnum):
                d.act[a] = next_activation(m, d, i, a, 0.0 if is_off else rates[a])
            if actuator.dyntype == DYN_INTEGRATOR and actuator.actnum > 0:
                # the activation is a setpoint; of an orientation servo (GAIN_SO3) three of them, a rotation vector
                if actuator.gaintype == GAIN_SO3:
                    shorten_rotation(d, first)
                else:
                    last = first + actuator.actnum - 1
                    length = d.actuator_length[actuator.outadr]
                    d.act[last] = nearest_setpoint(m, d, i, d.act[last], length)
