"""Computes setpoints of position servos: equivalent angles, and slew-rate limits.

For a servo about one axis of a ball, or between two sites, setpoints that differ by a full turn are equivalent; the
servo uses the nearest.
Source: MuJoCo 4, mj_fwdActuation, mj_advance.
"""

from featherlane.prelude import *
from featherlane.dynamics.actuator.parameters import Affine
from featherlane.dynamics.actuator.transmission import drives_joint


@kernel
def is_angle_servo(m, i):
    """Returns whether the actuator may be a position servo of an angle."""
    actuator = m.actuator[i]
    kind = actuator.gaintype
    servo = (
        kind == GAIN_FIXED and actuator.biastype == BIAS_AFFINE and actuator.dyntype <= DYN_INTEGRATOR
    ) or kind == GAIN_PID
    if not servo:
        return False
    if drives_joint(m, i):
        return is_ball(m.jnt_type[actuator.trnid[0]])
    return actuator.trntype == TRN_SITE and actuator.trnid[1] >= 0


@kernel
def period(m, d, i):
    """Returns the length of a full turn, or 0 unless it is a position servo of an angle; valid if `is_angle_servo`."""
    actuator = m.actuator[i]
    gear = m.actuator_gear[actuator.outadr]
    axis, servo = gear.force, true_mask(d)
    if actuator.trntype == TRN_SITE:
        servo = (axis.x == 0.0) & (axis.y == 0.0) & (axis.z == 0.0)
        axis = gear.torque
    if actuator.gaintype == GAIN_FIXED:
        servo = servo & (actuator.gainprm[0] == -Affine(actuator.biasprm).by_length)
    return where(servo, 2.0 * PI * norm3(axis), 0.0)


@kernel
def nearest_equivalent(x, length, turn):
    """Returns the setpoint nearest to the length among those equivalent to x; x itself if `turn` is 0."""
    exists = turn > 0.0
    turn = where(exists, turn, 1.0)
    return where(exists, fma(-turn, rint((x - length) / turn), x), x)


@kernel
def nearest_setpoint(m, d, i, x, length):
    """Returns the setpoint of actuator i nearest to the length among those equivalent to x."""
    return nearest_equivalent(x, length, period(m, d, i)) if is_angle_servo(m, i) else x


@kernel
def slew(m, d, i, a, rate):
    """Limits the first control of actuator i to `rate` per second if rate > 0; activation a holds its previous value.

    Reads:  actuator_input, act.   Writes: act_dot[a], actuator_input.
    """
    h, u, before = timestep(m), m.actuator_ctrladr[i], d.act[a]
    x = d.actuator_input[u]
    if m.actuator_gaintype[i] == GAIN_PID:
        x = nearest_setpoint(m, d, i, x, before)
    step = rate * h
    y = where(rate > 0.0, clip(x, before - step, before + step), x)
    d.act_dot[a] = (y - before) / h
    d.actuator_input[u] = y


@kernel
def shorten_rotation(d, a):
    """Replaces activations a to a + 2, a rotation vector, by the equivalent shorter one if it is longer than pi."""
    x = Vec3(d.act[a : a + 3])
    angle = norm3(x)
    shorter = (angle - 2.0 * PI * rint(angle / (2.0 * PI))) / fmax(angle, 1.0)
    d.act[a : a + 3] = where(angle > PI, shorter, 1.0) * x
