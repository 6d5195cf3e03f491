"""Models DC motors: voltage controller, electric circuit, temperature, LuGre friction and cogging.

    i' = ((V - K w) / R - i) / te,    force = K i    (without inductance i = (V - K w) / R)

The resistance grows with the temperature; friction is the LuGre model with bristle deflection z; cogging is a sine of
the angle.  The model's parameters select these parts at load time (actuator_states).  Parameters: gainprm R, K,
alpha, T0, kp, ki, kd, Vmax;  dynprm te, di/dt max, RT, C, Ta, sigma0, sigma1, slew, Imax;  biasprm cogging amplitude,
poles, phase, F_C, F_S, v_S.
Source: MuJoCo 4, "DC motor actuators", technical note; Canudas de Wit et al. 1995 for the friction.
    Deviation: a te below MINVAL is replaced by MINVAL in i', too, so the current follows at once; MuJoCo uses te there.
"""

from featherlane.prelude import *
from featherlane.dynamics.actuator.control import inputs
from featherlane.dynamics.actuator.setpoint import slew


@kernel
def state_place(m, i, bit):
    """Returns the address in act of the optional state for a bit of actuator_states."""
    below = m.actuator_states[i] & (bit - 1)
    number = (below & 1) + ((below >> 1) & 1) + ((below >> 2) & 1) + ((below >> 3) & 1)
    return m.actuator_actadr[i] + number


@kernel
def is_controlled(m, i):
    """Returns whether a controller computes the voltage."""
    return (m.actuator_ctrlspec[i] & (INPUT_POS | INPUT_VEL | INPUT_FF)) != 0


@kernel
def motor_resistance(m, d, i):
    """Returns R at the motor's temperature [ohm]."""
    g = 10 * i
    R = m.actuator_gainprm[g]
    if m.actuator_states[i] & TEMPERATURE:
        T = d.act[state_place(m, i, TEMPERATURE)]
        R = R * fma(m.actuator_gainprm[g + 2], T + m.actuator_dynprm[g + 4] - m.actuator_gainprm[g + 3], 1.0)
    return R


@kernel
def _controller(m, d, i):
    """Returns the voltage for the commanded torque: R / K torque, plus K w, which compensates the back-EMF."""
    g, o = 10 * i, m.actuator_outadr[i]
    position, velocity, torque, _ = inputs(m, d, i)
    w, K = d.actuator_velocity[o], m.actuator_gainprm[g + 1]
    torque = fma(m.actuator_gainprm[g + 4], position - d.actuator_length[o], torque)
    torque = fma(m.actuator_gainprm[g + 6], velocity - w, torque)
    if m.actuator_states[i] & INTEGRAL:
        torque = fma(m.actuator_gainprm[g + 5], d.act[state_place(m, i, INTEGRAL)], torque)
    return fma(m.actuator_gainprm[g] / where(K == 0.0, 1.0, K), torque, K * w)


@kernel
def voltage(m, d, i):
    """Returns the motor's voltage: that of its controller, within its bounds, or the commanded one [V]."""
    _, _, _, given = inputs(m, d, i)
    if is_controlled(m, i):
        V, most = _controller(m, d, i), m.actuator_gainprm[10 * i + 7]
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
    g = 10 * i
    w = d.actuator_velocity[m.actuator_outadr[i]]
    s = w / fmax(m.actuator_biasprm[g + 5], MINVAL)
    dry, still = m.actuator_biasprm[g + 3], m.actuator_biasprm[g + 4]
    return -(m.actuator_dynprm[g + 5] * fabs(w)) / fmax(fma(still - dry, exp(-(s * s)), dry), MINVAL)


@kernel
def _current(m, d, i, R, V):
    """Returns the current in the coils [A]."""
    if m.actuator_states[i] & CURRENT:
        return d.act[state_place(m, i, CURRENT)]
    return (V - m.actuator_gainprm[10 * i + 1] * d.actuator_velocity[m.actuator_outadr[i]]) / fmax(R, MINVAL)


@kernel
def _current_rate(m, d, i, R, V):
    """Returns i', before its bound."""
    g, w = 10 * i, d.actuator_velocity[m.actuator_outadr[i]]
    K, current = m.actuator_gainprm[g + 1], d.act[state_place(m, i, CURRENT)]
    return (V / R - K / R * w - current) / fmax(m.actuator_dynprm[g], MINVAL)


@kernel
def motor_rates(m, d, i):
    """Computes act_dot of all states of the motor; replaces a slewed control."""
    g, states = 10 * i, m.actuator_states[i]
    o = m.actuator_outadr[i]
    w = d.actuator_velocity[o]
    if states & SLEW:
        slew(m, d, i, state_place(m, i, SLEW), m.actuator_dynprm[g + 7])
    if states & INTEGRAL:
        a = state_place(m, i, INTEGRAL)
        position, _, _, _ = inputs(m, d, i)
        d.act_dot[a] = held_integral(d.act[a], position - d.actuator_length[o], m.actuator_dynprm[g + 8])
    V, R = voltage(m, d, i), motor_resistance(m, d, i)
    if states & TEMPERATURE:
        a, current = state_place(m, i, TEMPERATURE), _current(m, d, i, R, V)
        loss = d.act[a] / fmax(m.actuator_dynprm[g + 2], MINVAL)
        d.act_dot[a] = (R * current * current - loss) / m.actuator_dynprm[g + 3]
    if states & BRISTLE:
        a = state_place(m, i, BRISTLE)
        d.act_dot[a] = fma(_bristle_decay(m, d, i), d.act[a], w)
    if states & CURRENT:
        rate, most = _current_rate(m, d, i, R, V), m.actuator_dynprm[g + 1]
        d.act_dot[state_place(m, i, CURRENT)] = where(most > 0.0, clip(rate, -most, most), rate)


@kernel
def lag(h, tau):
    """Returns 1 - exp(-h / tau): the response of a filter of that time constant after one step."""
    return 1.0 - exp(-h / fmax(tau, MINVAL))


@kernel
def next_motor_state(m, d, i, a, rate):
    """Returns activation a of motor i after a step: exact for current and bristle, the integral within its bounds."""
    g, h, x = 10 * i, timestep(m), d.act[a]
    y = fma(rate, h, x)
    states = m.actuator_states[i]
    if (states & CURRENT) and a == state_place(m, i, CURRENT):
        tau = fmax(m.actuator_dynprm[g], MINVAL)
        y = fma(rate * tau, lag(h, tau), x)
    if (states & BRISTLE) and a == state_place(m, i, BRISTLE):
        decay = _bristle_decay(m, d, i)
        left = exp(decay * h)
        moving = fabs(decay) > MINVAL
        time = where(moving, (left - 1.0) / where(moving, decay, 1.0), h)
        y = fma(left, x, time * d.actuator_velocity[m.actuator_outadr[i]])
    if (states & INTEGRAL) and a == state_place(m, i, INTEGRAL):
        most = m.actuator_dynprm[g + 8]
        y = where(most > 0.0, clip(y, -most, most), y)
    return y


@kernel
def motor_gain(m, d, i):
    """Returns the force per current K, or per voltage K / R."""
    K = m.actuator_gainprm[10 * i + 1]
    if not (m.actuator_states[i] & CURRENT):
        K = K / fmax(motor_resistance(m, d, i), MINVAL)
    return K


@kernel
def motor_bias(m, d, i, gain):
    """Returns the force of the back-EMF, for motors without inductance."""
    force = 0.0
    if not (m.actuator_states[i] & CURRENT):
        force = -(gain * m.actuator_gainprm[10 * i + 1] * d.actuator_velocity[m.actuator_outadr[i]])
    return force


@kernel
def _cogging(m, d, i):
    """Returns (cogging force, its derivative with respect to length)."""
    g = 10 * i
    poles = m.actuator_biasprm[g + 1]
    sine, cosine = sincos(fma(poles, d.actuator_length[m.actuator_outadr[i]], m.actuator_biasprm[g + 2]))
    return m.actuator_biasprm[g] * sine, m.actuator_biasprm[g] * poles * cosine


@kernel
def mechanical_force(m, d, i):
    """Returns cogging and friction forces, which the force limits do not bound."""
    g = 10 * i
    force, _ = _cogging(m, d, i)
    if m.actuator_states[i] & BRISTLE:
        a = state_place(m, i, BRISTLE)
        force = force - fma(m.actuator_dynprm[g + 5], d.act[a], m.actuator_dynprm[g + 6] * d.act_dot[a])
    return force


@kernel
def _answer(m, d, i, R):
    """Returns d force / d voltage: K / R, times the current's response in a step, 0 if its rate is at its bound."""
    g = 10 * i
    answer = m.actuator_gainprm[g + 1] / R
    if m.actuator_states[i] & CURRENT:
        answer = answer * lag(timestep(m), m.actuator_dynprm[g])
        most = m.actuator_dynprm[g + 1]
        bound = (most > 0.0) & (fabs(_current_rate(m, d, i, R, voltage(m, d, i))) >= most)
        answer = where(bound, 0.0, answer)
    return answer


@kernel
def motor_slopes(m, d, i):
    """Returns the slopes of the force in length and velocity: controller, back-EMF, cogging, damping of the bristles.

    Source: MuJoCo mjd_actuator_vel.  Found by experiment with 4.0.1: the slopes in length, the use of the resistance at
        the motor's temperature, and that a controller or a current's rate at its bound has no slope.
    """
    g = 10 * i
    K, R = m.actuator_gainprm[g + 1], fmax(motor_resistance(m, d, i), MINVAL)
    by_length, by_velocity = 0.0, -K
    if is_controlled(m, i):
        most, ratio = m.actuator_gainprm[g + 7], m.actuator_gainprm[g] / where(K == 0.0, 1.0, K)
        bound = (most > 0.0) & (fabs(_controller(m, d, i)) >= most)
        by_length = where(bound, 0.0, -(ratio * m.actuator_gainprm[g + 4]))
        by_velocity = where(bound, -K, -(ratio * m.actuator_gainprm[g + 6]))
    s = _answer(m, d, i, R)
    _, cogging = _cogging(m, d, i)
    by_length, by_velocity = fma(s, by_length, cogging), s * by_velocity
    if m.actuator_states[i] & BRISTLE:
        by_velocity = by_velocity - m.actuator_dynprm[g + 6]
    return by_length, by_velocity
