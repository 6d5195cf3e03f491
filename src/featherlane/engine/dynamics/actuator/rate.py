"""Computes derivatives of actuator forces with respect to length and velocity, for implicit integrators.

They are 0 if the force is clamped, or the sum on its joint or tendon.
i is the index of an actuator.

Affine names the values of a row gainprm or biasprm (parameters.py).  `gain_law` and `bias_law` return gain and bias as
functions of length and velocity; `motor_slopes` returns (slope in length, slope in velocity).

Source: MuJoCo mjd_actuator_vel; slopes in length, which `discrete` uses, were found by experiment with 4.0.1.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.actuation import is_on_limited_tendon
from featherlane.engine.dynamics.actuator.control import is_disabled
from featherlane.engine.dynamics.actuator.dcmotor import motor_slopes
from featherlane.engine.dynamics.actuator.gain import bias_law, driving_value, gain_law
from featherlane.engine.dynamics.actuator.orientation import AT_BOUND
from featherlane.engine.dynamics.actuator.parameters import Affine
from featherlane.engine.dynamics.actuator.transmission import drives_joint


@kernel
def is_saturated(m, d, i):
    """Returns the mask of worlds where the actuator's force, or the sum on its joint or tendon, is clamped."""
    actuator = m.actuator[i]
    target, o = actuator.trnid[0], actuator.outadr  # target: a joint or a tendon
    joint = m.joint[target]  # read only if the actuator acts on a joint
    f = d.actuator_force[o]
    # without limits: only NaN;  with limits: a force at a limit or beyond
    mask = not_(f == f)
    if actuator.forcelimited:
        low, high = actuator.forcerange.lower, actuator.forcerange.upper
        if actuator.gaintype == GAIN_SO3:
            mask = norm3(Vec3(d.actuator_force[o : o + 3])) >= (1.0 - AT_BOUND) * high
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

    u is a control or an activation (`driving_value`), which is held fixed.  User callbacks have no slopes.
    """
    actuator = m.actuator[i]
    o, gain, bias = actuator.outadr, actuator.gaintype, actuator.biastype
    length, velocity = seed(d.actuator_length[o], 1.0, 0.0), seed(d.actuator_velocity[o], 0.0, 1.0)
    by_length, by_velocity = 0.0, 0.0
    if bias in (BIAS_AFFINE, BIAS_MUSCLE):
        _, by_length, by_velocity = split_tangents(bias_law(m, i, length, velocity), 2)
    elif bias == BIAS_SO3:
        prm = Affine(actuator.biasprm)
        by_length, by_velocity = prm.by_length, prm.by_velocity
    if gain in (GAIN_AFFINE, GAIN_MUSCLE):
        u = driving_value(m, d, i)
        _, gain_by_length, gain_by_velocity = split_tangents(gain_law(m, i, length, velocity), 2)
        by_length, by_velocity = fma(gain_by_length, u, by_length), fma(gain_by_velocity, u, by_velocity)
    elif gain == GAIN_DCMOTOR:
        slopes = motor_slopes(m, d, i)  # of gain and bias together
        by_length, by_velocity = by_length + slopes[0], by_velocity + slopes[1]
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
