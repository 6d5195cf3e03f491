"""Computes derivatives of actuator forces with respect to length and velocity, for implicit integrators.

They are 0 if the force is clamped, or the sum on its joint or tendon.
i is the index of an actuator.

Affine names the values of a row gainprm or biasprm, Muscle those of a muscle (parameters.py).  motor_slopes and
muscle_gain_slopes return (slope in length, slope in velocity); muscle_bias_slope returns the slope in length.

Source: MuJoCo mjd_actuator_vel; slopes in length, which `discrete` uses, were found by experiment with 4.0.1.
"""

from featherlane.prelude import *
from featherlane.dynamics.actuator.actuation import is_on_limited_tendon
from featherlane.dynamics.actuator.control import is_disabled
from featherlane.dynamics.actuator.dcmotor import motor_slopes
from featherlane.dynamics.actuator.gain import driving_value
from featherlane.dynamics.actuator.muscle import muscle_bias_slope, muscle_gain_slopes
from featherlane.dynamics.actuator.orientation import is_torque_bound
from featherlane.dynamics.actuator.parameters import Affine, Muscle
from featherlane.dynamics.actuator.transmission import drives_joint


@kernel
def is_saturated(m, d, i):
    """Returns the mask of worlds where the actuator's force, or the sum on its joint or tendon, is clamped."""
    actuator = m.actuator[i]
    target, o = actuator.trnid[0], actuator.outadr  # target: a joint or a tendon
    joint = m.joint[target]  # read only if the actuator acts on a joint
    f = d.actuator_force[o]
    # a force without limits has slopes unless it is NaN; with limits it has them strictly between these
    mask = not_(f == f)
    if actuator.forcelimited:
        low, high = actuator.forcerange.lower, actuator.forcerange.upper
        if actuator.gaintype == GAIN_SO3:
            mask = is_torque_bound(m, d, i)
        else:
            mask = (f <= low) | (f >= high)
    if drives_joint(m, i) and joint.actfrclimited and is_scalar(joint.type):
        total = d.qfrc_actuator[joint.dofadr]
        mask = mask | (total <= joint.actfrcrange.lower) | (total >= joint.actfrcrange.upper)
    if is_on_limited_tendon(m, i):
        total = d.tendon_actuatorfrc[target]
        mask = mask | (total <= m.tendon_actfrcrange[target].lower) | (total >= m.tendon_actfrcrange[target].upper)
    return mask


@kernel
def _slopes(m, d, i):
    """Returns the slopes of force = gain u + bias of actuator i in length and velocity, without the clamp.

    u is a control or an activation (`driving_value`).
    """
    actuator = m.actuator[i]
    o, gain, bias = actuator.outadr, actuator.gaintype, actuator.biastype
    by_length, by_velocity = 0.0, 0.0
    if bias in (BIAS_AFFINE, BIAS_SO3):
        prm = Affine(actuator.biasprm)
        by_length, by_velocity = by_length + prm.by_length, by_velocity + prm.by_velocity
    elif bias == BIAS_MUSCLE:
        by_length = muscle_bias_slope(m, d, o, Muscle(actuator.biasprm))
    if gain == GAIN_AFFINE:
        u, prm = driving_value(m, d, i), Affine(actuator.gainprm)
        by_length, by_velocity = fma(prm.by_length, u, by_length), fma(prm.by_velocity, u, by_velocity)
    elif gain == GAIN_MUSCLE:
        u = driving_value(m, d, i)
        gain_by_length, gain_by_velocity = muscle_gain_slopes(m, d, o, Muscle(actuator.gainprm))
        by_length, by_velocity = fma(gain_by_length, u, by_length), fma(gain_by_velocity, u, by_velocity)
    elif gain == GAIN_DCMOTOR:
        motor_by_length, motor_by_velocity = motor_slopes(m, d, i)
        by_length, by_velocity = by_length + motor_by_length, by_velocity + motor_by_velocity
    return by_length, by_velocity


@kernel
def _has_slopes(m, i):
    """Returns whether the force of actuator i has slopes; MuJoCo's implicit integrators use none of its plugins."""
    actuator = m.actuator[i]
    if actuator.states & PID_PLUGIN:
        return False
    return not (actuator.simple and actuator.gaintype == GAIN_FIXED and actuator.biastype == BIAS_NONE)


@stage
def actuator_rates(m, d):
    """actuator_rate <- slopes of each actuator's force in length and velocity, 0 where the force is clamped.

    Reads:  what `actuation` wrote.   Writes: actuator_rate (nactuator, 2) [N/m, N s/m].
    """
    for i in range(m.nactuator):
        by_length, by_velocity = 0.0, 0.0
        if _has_slopes(m, i) and not is_disabled(m, i):
            clamped = is_saturated(m, d, i)
            slopes = _slopes(m, d, i)
            by_length, by_velocity = where(clamped, 0.0, slopes[0]), where(clamped, 0.0, slopes[1])
        d.actuator_rate[i] = by_length, by_velocity


@kernel
def force_by_length(m, d, i):
    """Returns d force / d length of actuator i, 0 if it is clamped."""
    return d.actuator_rate[i][0]


@kernel
def force_by_velocity(m, d, i):
    """Returns d force / d velocity of actuator i, 0 if it is clamped."""
    return d.actuator_rate[i][1]
