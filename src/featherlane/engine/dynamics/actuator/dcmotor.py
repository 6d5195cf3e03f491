"""Models DC motors: voltage controller, electric circuit, temperature, LuGre friction and cogging.

    i' = ((V - K w) / R - i) / te,    force = K i    (without inductance i = (V - K w) / R)

V is the voltage, i the current, w the velocity, K the torque constant, R the resistance, te the electric time constant.
The resistance grows with the temperature, by the fraction alpha per kelvin beyond T0; friction is the LuGre model with
bristle deflection z, stiffness sigma0 and damping sigma1; cogging is a sine of the angle.  The parameters of a model
select these parts at load time (actuator_states).  Other parameters: kp, ki, kd of the voltage controller, Vmax its
largest voltage, `slew` the largest rate of its setpoint, Imax the bound of its integral, `rate` the bound of |i'|.
`inputs` returns the controls (position, velocity, feedforward, voltage), 0 if absent.

The optional states of a motor, one activation each, are the bits SLEW, INTEGRAL, TEMPERATURE, BRISTLE, CURRENT of
actuator_states.  A bound of 0 means no bound.
Source: MuJoCo 4, "DC motor actuators", technical note; Canudas de Wit et al. 1995 for the friction.
    Deviation: also in i' a te below MINVAL is replaced by MINVAL, so the current follows at once; MuJoCo uses te there.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.control import inputs
from featherlane.engine.dynamics.actuator.parameters import MotorFriction, MotorGain, MotorRates
from featherlane.engine.dynamics.actuator.setpoint import limit_slew


@kernel
def state_address(m, i, bit):
    """Returns the address in act of the optional state for a bit of actuator_states: after the states of lower bits."""
    lower = m.actuator_states[i] & (bit - 1)
    # the number of bits in `lower`, which has at most four: SLEW, INTEGRAL, TEMPERATURE, BRISTLE
    number = (lower & 1) + ((lower >> 1) & 1) + ((lower >> 2) & 1) + ((lower >> 3) & 1)
    return m.actuator_actadr[i] + number


@kernel
def _gain(m, i):
    """Returns gainprm of motor i."""
    return MotorGain(m.actuator_gainprm[i])


@kernel
def _rates(m, i):
    """Returns dynprm of motor i."""
    return MotorRates(m.actuator_dynprm[i])


@kernel
def _friction(m, i):
    """Returns biasprm of motor i: cogging and friction."""
    return MotorFriction(m.actuator_biasprm[i])


@kernel
def motor_resistance(m, d, i):
    """Returns R at the motor's temperature [ohm]: R (1 + alpha (T + Ta - T0)), T relative to the ambient Ta."""
    gain = _gain(m, i)
    R = gain.R
    if m.actuator_states[i] & TEMPERATURE:
        T = d.act[state_address(m, i, TEMPERATURE)]
        R = R * fma(gain.alpha, T + _rates(m, i).Ta - gain.T0, 1.0)
    return R


@kernel
def _controller_voltage(m, d, i):
    """Returns the voltage for the commanded torque: R / K torque, plus K w, which compensates the back-EMF.

    R is the parameter, not the resistance at the motor's temperature.
    torque = feedforward + kp (position - length) + kd (velocity - w) + ki integral.
    """
    gain = _gain(m, i)
    o = m.actuator_outadr[i]
    position, velocity, feedforward, _ = inputs(m, d, i)
    w, K = d.actuator_velocity[o], gain.K
    torque = fma(gain.kp, position - d.actuator_length[o], feedforward)
    torque = fma(gain.kd, velocity - w, torque)
    if m.actuator_states[i] & INTEGRAL:
        torque = fma(gain.ki, d.act[state_address(m, i, INTEGRAL)], torque)
    return fma(gain.R / where(K == 0.0, 1.0, K), torque, K * w)


@kernel
def voltage(m, d, i):
    """Returns the motor's voltage [V]: the commanded one, plus that of its controller, if any, within its bounds."""
    _, _, _, total = inputs(m, d, i)
    if m.actuator_ctrlspec[i] & (INPUT_POS | INPUT_VEL | INPUT_FF):  # a controller computes the voltage
        V = _controller_voltage(m, d, i)
        Vmax = _gain(m, i).Vmax
        total = total + where(Vmax > 0.0, clip(V, -Vmax, Vmax), V)
    return total


@kernel
def bounded_integral_rate(z, error, bound):
    """Returns the error, or 0 if it would move the integral z farther beyond +-bound (0: no bound)."""
    bounded = bound > 0.0
    error = where(bounded & (z >= bound), fmin(error, 0.0), error)
    return where(bounded & (z <= -bound), fmax(error, 0.0), error)


@kernel
def _bristle_decay(m, d, i):
    """Returns decay in z' = decay z + w:  decay = -sigma0 |w| / (coulomb + (static - coulomb) exp(-(w / speed)^2)).

    coulomb, static: Coulomb and static friction;  speed: Stribeck's velocity.
    """
    friction = _friction(m, i)
    w = d.actuator_velocity[m.actuator_outadr[i]]
    s = w / fmax(friction.speed, MINVAL)
    coulomb, static = friction.coulomb, friction.static
    return -(_rates(m, i).sigma0 * fabs(w)) / fmax(fma(static - coulomb, exp(-(s * s)), coulomb), MINVAL)


@kernel
def _current_rate(m, d, i, R, V):
    """Returns i' = ((V - K w) / R - i) / te, before its bound; the motor has inductance."""
    w = d.actuator_velocity[m.actuator_outadr[i]]
    K = _gain(m, i).K
    current = d.act[state_address(m, i, CURRENT)]
    return (V / R - K / R * w - current) / fmax(_rates(m, i).te, MINVAL)


@kernel
def store_motor_rates(m, d, i):
    """act_dot <- rates of all states of the motor; actuator_input <- a slew-limited control.

    Integral: the position error.  Temperature T: (R i^2 - T / RT) / C, RT and C thermal resistance and capacity.
    Bristle: z' = decay z + w.  Current: i', within its bound.
    """
    prm = _rates(m, i)
    states, o = m.actuator_states[i], m.actuator_outadr[i]
    w = d.actuator_velocity[o]
    if states & SLEW:
        limit_slew(m, d, i, state_address(m, i, SLEW), prm.slew)
    if states & INTEGRAL:
        a = state_address(m, i, INTEGRAL)
        position, _, _, _ = inputs(m, d, i)
        d.act_dot[a] = bounded_integral_rate(d.act[a], position - d.actuator_length[o], prm.Imax)
    V = voltage(m, d, i)
    R = motor_resistance(m, d, i)
    if states & TEMPERATURE:
        a = state_address(m, i, TEMPERATURE)
        # in the coils [A]: the state of a motor with inductance, else (V - K w) / R
        has_current = states & CURRENT
        current = d.act[state_address(m, i, CURRENT)] if has_current else (V - _gain(m, i).K * w) / fmax(R, MINVAL)
        heat_loss = d.act[a] / fmax(prm.RT, MINVAL)
        d.act_dot[a] = (R * current * current - heat_loss) / prm.C
    if states & BRISTLE:
        a = state_address(m, i, BRISTLE)
        d.act_dot[a] = fma(_bristle_decay(m, d, i), d.act[a], w)
    if states & CURRENT:
        rate = _current_rate(m, d, i, R, V)
        bound = prm.rate
        d.act_dot[state_address(m, i, CURRENT)] = where(bound > 0.0, clip(rate, -bound, bound), rate)


@kernel
def lag_response(h, tau):
    """Returns 1 - exp(-h / tau): the response of a first-order filter with time constant tau after a step h."""
    return 1.0 - exp(-h / fmax(tau, MINVAL))


@kernel
def next_motor_state(m, d, i, a, rate):
    """Returns act[a] of motor i after a step: x + h rate; exact for current and bristle, the integral in its bounds.

    Current: x + rate te (1 - exp(-h / te)).
    Bristle, with z' = decay z + w: exp(decay h) z + w (exp(decay h) - 1) / decay.
    """
    h = timestep(m)
    x = d.act[a]
    new = fma(rate, h, x)
    states = m.actuator_states[i]
    if (states & CURRENT) and a == state_address(m, i, CURRENT):
        tau = fmax(_rates(m, i).te, MINVAL)
        new = fma(rate * tau, lag_response(h, tau), x)
    if (states & BRISTLE) and a == state_address(m, i, BRISTLE):
        decay = _bristle_decay(m, d, i)
        factor = exp(decay * h)
        moving = fabs(decay) > MINVAL
        # (exp(decay h) - 1) / decay, whose limit for a motor at rest is h
        response = where(moving, (factor - 1.0) / where(moving, decay, 1.0), h)
        new = fma(factor, x, response * d.actuator_velocity[m.actuator_outadr[i]])
    if (states & INTEGRAL) and a == state_address(m, i, INTEGRAL):
        bound = _rates(m, i).Imax
        new = where(bound > 0.0, clip(new, -bound, bound), new)
    return new


@kernel
def motor_gain(m, d, i):
    """Returns the force per current K of a motor with inductance, else the force per voltage K / R."""
    K = _gain(m, i).K
    if not (m.actuator_states[i] & CURRENT):
        K = K / fmax(motor_resistance(m, d, i), MINVAL)
    return K


@kernel
def motor_bias(m, d, i, gain):
    """Returns the force of the back-EMF, -gain K w, for motors without inductance; gain: `motor_gain`."""
    force = 0.0
    if not (m.actuator_states[i] & CURRENT):
        force = -(gain * _gain(m, i).K * d.actuator_velocity[m.actuator_outadr[i]])
    return force


@kernel
def _cogging(m, d, i):
    """Returns the cogging force amplitude sin(poles length + phase)."""
    prm = _friction(m, i)
    sine, _ = sincos(fma(prm.poles, d.actuator_length[m.actuator_outadr[i]], prm.phase))
    return prm.amplitude * sine


@kernel
def mechanical_force(m, d, i):
    """Returns cogging force minus friction sigma0 z + sigma1 z', which the force limits do not bound."""
    force = _cogging(m, d, i)
    if m.actuator_states[i] & BRISTLE:
        prm = _rates(m, i)
        a = state_address(m, i, BRISTLE)
        force = force - fma(prm.sigma0, d.act[a], prm.sigma1 * d.act_dot[a])
    return force


@kernel
def _voltage_slope(m, d, i, R):
    """Returns d force / d voltage: K / R, with inductance times the response of the current within a step.

    It is 0 if the rate of the current is at its bound.
    """
    slope = _gain(m, i).K / R
    if m.actuator_states[i] & CURRENT:
        slope = slope * lag_response(timestep(m), _rates(m, i).te)
        bound = _rates(m, i).rate  # of |i'|
        at_bound = (bound > 0.0) & (fabs(_current_rate(m, d, i, R, voltage(m, d, i))) >= bound)
        slope = where(at_bound, 0.0, slope)
    return slope


@kernel
def _net_voltage(m, d, i):
    """Returns V - K w, the voltage less the back-EMF."""
    return voltage(m, d, i) - _gain(m, i).K * d.actuator_velocity[m.actuator_outadr[i]]


_net_voltage_slopes = jvp(_net_voltage, "actuator_length", "actuator_velocity")
_cogging_slope = jvp(_cogging, "actuator_length")


@kernel
def motor_slopes(m, d, i):
    """Returns (d force / d length, d force / d velocity): controller, back-EMF, cogging, damping of the bristles.

    Controller and back-EMF: d force / d voltage times the slopes of V - K w.
    Source: MuJoCo mjd_actuator_vel.  Found by experiment with 4.0.1: the slopes in length, the use of the resistance at
        the motor's temperature, and that a controller or a current's rate at its bound has no slope.
    """
    _, volts_by_length, volts_by_velocity = _net_voltage_slopes(m, d, i)
    # not by jvp: the current is a state, and MuJoCo's slope includes its response in a step
    force_by_voltage = _voltage_slope(m, d, i, fmax(motor_resistance(m, d, i), MINVAL))
    _, cogging_slope = _cogging_slope(m, d, i)
    by_length = fma(force_by_voltage, volts_by_length, cogging_slope)
    by_velocity = force_by_voltage * volts_by_velocity
    if m.actuator_states[i] & BRISTLE:
        by_velocity = by_velocity - _rates(m, i).sigma1
    return by_length, by_velocity
