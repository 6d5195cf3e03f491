"""Models DC motors: voltage controller, electric circuit, temperature, LuGre friction and cogging.

    i' = ((V - K w) / R - i) / te,    force = K i    (without inductance i = (V - K w) / R)

The resistance grows with the temperature; friction is the LuGre model with bristle deflection z; cogging is a sine of
the angle.  The model's parameters select these parts at load time (actuator_states).  `parameters.py` names them.
Source: MuJoCo 4, "DC motor actuators", technical note; Canudas de Wit et al. 1995 for the friction.
    Deviation: a te below MINVAL is replaced by MINVAL in i', too, so the current follows at once; MuJoCo uses te there.
"""

from featherlane.prelude import *
from featherlane.dynamics.actuator.control import inputs
from featherlane.dynamics.actuator.parameters import MotorFriction, MotorGain, MotorRates
from featherlane.dynamics.actuator.setpoint import slew


@kernel
def state_place(m, i, bit):
    """Returns the address in act of the optional state for a bit of actuator_states."""
    below = m.actuator_states[i] & (bit - 1)
    number = (below & 1) + ((below >> 1) & 1) + ((below >> 2) & 1) + ((below >> 3) & 1)
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
def is_controlled(m, i):
    """Returns whether a controller computes the voltage."""
    return (m.actuator_ctrlspec[i] & (INPUT_POS | INPUT_VEL | INPUT_FF)) != 0


@kernel
def motor_resistance(m, d, i):
    """Returns R at the motor's temperature [ohm]."""
    gain = _gain(m, i)
    R = gain.R
    if m.actuator_states[i] & TEMPERATURE:
        T = d.act[state_place(m, i, TEMPERATURE)]
        R = R * fma(gain.alpha, T + _rates(m, i).Ta - gain.T0, 1.0)
    return R


@kernel
def _controller(m, d, i):
    """Returns the voltage for the commanded torque: R / K torque, plus K w, which compensates the back-EMF."""
    gain, o = _gain(m, i), m.actuator_outadr[i]
    position, velocity, torque, _ = inputs(m, d, i)
    w, K = d.actuator_velocity[o], gain.K
    torque = fma(gain.kp, position - d.actuator_length[o], torque)
    torque = fma(gain.kd, velocity - w, torque)
    if m.actuator_states[i] & INTEGRAL:
        torque = fma(gain.ki, d.act[state_place(m, i, INTEGRAL)], torque)
    return fma(gain.R / where(K == 0.0, 1.0, K), torque, K * w)


@kernel
def voltage(m, d, i):
    """Returns the motor's voltage: that of its controller, within its bounds, or the commanded one [V]."""
    _, _, _, given = inputs(m, d, i)
    if is_controlled(m, i):
        V, most = _controller(m, d, i), _gain(m, i).Vmax
        given = given + where(most > 0.0, clip(V, -most, most), V)
    return given


@kernel
def held_integral(z, error, most):
    """Returns the error, or 0 if it would move the integral z farther beyond +-most (0: no bound)."""
    bounded = most > 0.0
    error = where(bounded & (z >= most), fmin(error, 0.0), error)
    return where(bounded & (z <= -most), fmax(error, 0.0), error)


@kernel
def _bristle_decay(m, d, i):
    """Returns a in z' = a z + w."""
    friction, w = _friction(m, i), d.actuator_velocity[m.actuator_outadr[i]]
    s = w / fmax(friction.speed, MINVAL)
    dry, still = friction.dry, friction.still
    return -(_rates(m, i).sigma0 * fabs(w)) / fmax(fma(still - dry, exp(-(s * s)), dry), MINVAL)


@kernel
def _current(m, d, i, R, V):
    """Returns the current in the coils [A]."""
    if m.actuator_states[i] & CURRENT:
        return d.act[state_place(m, i, CURRENT)]
    return (V - _gain(m, i).K * d.actuator_velocity[m.actuator_outadr[i]]) / fmax(R, MINVAL)


@kernel
def _current_rate(m, d, i, R, V):
    """Returns i', before its bound."""
    w = d.actuator_velocity[m.actuator_outadr[i]]
    K, current = _gain(m, i).K, d.act[state_place(m, i, CURRENT)]
    return (V / R - K / R * w - current) / fmax(_rates(m, i).te, MINVAL)


@kernel
def motor_rates(m, d, i):
    """Computes act_dot of all states of the motor; replaces a slewed control."""
    prm, states, o = _rates(m, i), m.actuator_states[i], m.actuator_outadr[i]
    w = d.actuator_velocity[o]
    if states & SLEW:
        slew(m, d, i, state_place(m, i, SLEW), prm.slew)
    if states & INTEGRAL:
        a = state_place(m, i, INTEGRAL)
        position, _, _, _ = inputs(m, d, i)
        d.act_dot[a] = held_integral(d.act[a], position - d.actuator_length[o], prm.Imax)
    V, R = voltage(m, d, i), motor_resistance(m, d, i)
    if states & TEMPERATURE:
        a, current = state_place(m, i, TEMPERATURE), _current(m, d, i, R, V)
        loss = d.act[a] / fmax(prm.RT, MINVAL)
        d.act_dot[a] = (R * current * current - loss) / prm.C
    if states & BRISTLE:
        a = state_place(m, i, BRISTLE)
        d.act_dot[a] = fma(_bristle_decay(m, d, i), d.act[a], w)
    if states & CURRENT:
        rate, most = _current_rate(m, d, i, R, V), prm.rate
        d.act_dot[state_place(m, i, CURRENT)] = where(most > 0.0, clip(rate, -most, most), rate)


@kernel
def lag(h, tau):
    """Returns 1 - exp(-h / tau): the response of a filter of that time constant after one step."""
    return 1.0 - exp(-h / fmax(tau, MINVAL))


@kernel
def next_motor_state(m, d, i, a, rate):
    """Returns activation a of motor i after a step: exact for current and bristle, the integral within its bounds."""
    h, x = timestep(m), d.act[a]
    y = fma(rate, h, x)
    states = m.actuator_states[i]
    if (states & CURRENT) and a == state_place(m, i, CURRENT):
        tau = fmax(_rates(m, i).te, MINVAL)
        y = fma(rate * tau, lag(h, tau), x)
    if (states & BRISTLE) and a == state_place(m, i, BRISTLE):
        decay = _bristle_decay(m, d, i)
        left = exp(decay * h)
        moving = fabs(decay) > MINVAL
        time = where(moving, (left - 1.0) / where(moving, decay, 1.0), h)
        y = fma(left, x, time * d.actuator_velocity[m.actuator_outadr[i]])
    if (states & INTEGRAL) and a == state_place(m, i, INTEGRAL):
        most = _rates(m, i).Imax
        y = where(most > 0.0, clip(y, -most, most), y)
    return y


@kernel
def motor_gain(m, d, i):
    """Returns the force per current K, or per voltage K / R."""
    K = _gain(m, i).K
    if not (m.actuator_states[i] & CURRENT):
        K = K / fmax(motor_resistance(m, d, i), MINVAL)
    return K


@kernel
def motor_bias(m, d, i, gain):
    """Returns the force of the back-EMF, for motors without inductance."""
    force = 0.0
    if not (m.actuator_states[i] & CURRENT):
        force = -(gain * _gain(m, i).K * d.actuator_velocity[m.actuator_outadr[i]])
    return force


@kernel
def _cogging(m, d, i):
    """Returns (cogging force, its derivative with respect to length)."""
    prm = _friction(m, i)
    sine, cosine = sincos(fma(prm.poles, d.actuator_length[m.actuator_outadr[i]], prm.phase))
    return prm.amplitude * sine, prm.amplitude * prm.poles * cosine


@kernel
def mechanical_force(m, d, i):
    """Returns cogging and friction forces, which the force limits do not bound."""
    force, _ = _cogging(m, d, i)
    if m.actuator_states[i] & BRISTLE:
        prm, a = _rates(m, i), state_place(m, i, BRISTLE)
        force = force - fma(prm.sigma0, d.act[a], prm.sigma1 * d.act_dot[a])
    return force


@kernel
def _answer(m, d, i, R):
    """Returns d force / d voltage: K / R, times the current's response in a step, 0 if its rate is at its bound."""
    answer = _gain(m, i).K / R
    if m.actuator_states[i] & CURRENT:
        answer = answer * lag(timestep(m), _rates(m, i).te)
        most = _rates(m, i).rate
        bound = (most > 0.0) & (fabs(_current_rate(m, d, i, R, voltage(m, d, i))) >= most)
        answer = where(bound, 0.0, answer)
    return answer


@kernel
def motor_slopes(m, d, i):
    """Returns the slopes of the force in length and velocity: controller, back-EMF, cogging, damping of the bristles.

    Source: MuJoCo mjd_actuator_vel.  Found by experiment with 4.0.1: the slopes in length, the use of the resistance at
        the motor's temperature, and that a controller or a current's rate at its bound has no slope.
    """
    gain = _gain(m, i)
    K, R = gain.K, fmax(motor_resistance(m, d, i), MINVAL)
    by_length, by_velocity = 0.0, -K
    if is_controlled(m, i):
        most, ratio = gain.Vmax, gain.R / where(K == 0.0, 1.0, K)
        bound = (most > 0.0) & (fabs(_controller(m, d, i)) >= most)
        by_length = where(bound, 0.0, -(ratio * gain.kp))
        by_velocity = where(bound, -K, -(ratio * gain.kd))
    s = _answer(m, d, i, R)
    _, cogging = _cogging(m, d, i)
    by_length, by_velocity = fma(s, by_length, cogging), s * by_velocity
    if m.actuator_states[i] & BRISTLE:
        by_velocity = by_velocity - _rates(m, i).sigma1
    return by_length, by_velocity
