"""Computes setpoints of position servos: equivalent angles, and slew-rate limits.

For a servo about one axis of a ball, or between two sites, setpoints that differ by a full turn are equivalent; the
servo uses the nearest.
i is the index of an actuator.
Source: MuJoCo 4, mj_fwdActuation, mj_advance.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.parameters import Affine
from featherlane.engine.dynamics.actuator.transmission import drives_joint


@kernel
def is_angle_servo(m, i):
    """Returns whether actuator i may be a position servo of an angle: about an axis of a ball, or between two sites.

    A position servo has a fixed gain and an affine bias, or is a pid.
    """
    actuator = m.actuator[i]
    gain = actuator.gaintype
    # dyntype up to DYN_INTEGRATOR: no activation, or one that is the setpoint; other activations follow it with a lag
    is_servo = (
        gain == GAIN_FIXED and actuator.biastype == BIAS_AFFINE and actuator.dyntype <= DYN_INTEGRATOR
    ) or gain == GAIN_PID
    if not is_servo:
        return False
    if drives_joint(m, i):
        return is_ball(m.jnt_type[actuator.trnid[0]])
    # trnid[1]: the reference site
    return actuator.trntype == TRN_SITE and actuator.trnid[1] >= 0


@kernel
def length_of_full_rotation(m, d, i):
    """Returns the length of a full turn, 2 pi |gear axis|; 0 unless it is a position servo of an angle.

    Valid if `is_angle_servo`.  In each world it is a position servo if both hold:
    - its gear has no translation, for a servo between sites;
    - its gain kp is minus the slope of its bias in length, for one with a fixed gain; a pid has no such gain.
    """
    actuator = m.actuator[i]
    gear = m.actuator_gear[actuator.outadr]
    # the axis is the first half of the gear on a ball, the second half between sites, where the first is a translation
    axis = gear.force
    is_servo = true_mask(d)
    if actuator.trntype == TRN_SITE:
        is_servo = (axis.x == 0.0) & (axis.y == 0.0) & (axis.z == 0.0)
        axis = gear.torque
    if actuator.gaintype == GAIN_FIXED:
        is_servo = is_servo & (actuator.gainprm[0] == -Affine(actuator.biasprm).by_length)
    return where(is_servo, 2.0 * PI * norm3(axis), 0.0)


@kernel
def nearest_setpoint(m, d, i, x, length):
    """Returns the setpoint of actuator i nearest to the length among those equivalent to x; x if it has no angle.

    Equivalent are x + k period, k an integer.
    """
    if is_angle_servo(m, i):
        period = length_of_full_rotation(m, d, i)
        exists = period > 0.0
        period = where(exists, period, 1.0)
        x = where(exists, fma(-period, rint((x - length) / period), x), x)
    return x


@kernel
def limit_slew(m, d, i, a, rate):
    """Limits the first control of actuator i to `rate` per second if rate > 0; act[a] holds its previous value.

    Reads:  actuator_input, act.   Writes: act_dot[a], actuator_input.
    """
    h = timestep(m)
    control, before = m.actuator_ctrladr[i], d.act[a]
    setpoint = d.actuator_input[control]
    # only a pid can have an angle as its setpoint here
    if m.actuator_gaintype[i] == GAIN_PID:
        setpoint = nearest_setpoint(m, d, i, setpoint, before)
    max_change = rate * h
    limited = where(rate > 0.0, clip(setpoint, before - max_change, before + max_change), setpoint)
    d.act_dot[a] = (limited - before) / h
    d.actuator_input[control] = limited


@kernel
def shorten_rotation(d, a):
    """act[a : a + 3], a rotation vector, <- the equivalent shorter one if it is longer than pi."""
    r = Vec3(d.act[a : a + 3])
    angle = norm3(r)
    # the angle less full turns, over the angle; used only beyond pi, so the bound 1 of the divisor has no effect
    scale = (angle - 2.0 * PI * rint(angle / (2.0 * PI))) / fmax(angle, 1.0)
    d.act[a : a + 3] = where(angle > PI, scale, 1.0) * r
