"""Computes muscles: force from length and velocity, passive force, and activation from excitation.

With L0 = (lengthrange) / (range), L = range[0] + (length - lengthrange[0]) / L0 and V = velocity / (L0 vmax),

    force = -F (FL(L) FV(V) activation + FP(L)),    F = scale / acc0 where the parameter is negative

FL consists of four parabolas over [lmin, lmax] with its maximum 1 at L = 1.  FV consists of two parabolas and rises
from 0 at V = -1 over 1 at V = 0 to fvmax.  FP is a parabola from L = 1 on that continues as a line.  The parameters are
a `Muscle` (parameters.py).
Source: MuJoCo, chapter Modeling, Muscles; mju_muscleGain, mju_muscleBias, mju_muscleDynamics.
"""

from featherlane.prelude import *


@kernel
def _strength(m, o, prm):
    """Returns F."""
    force = prm.force
    return where(force < 0.0, prm.scale / fmax(m.actuator_acc0[o], MINVAL), force)


@kernel
def _optimum(m, o, prm):
    """Returns L0."""
    stretch = m.actuator_lengthrange[o].upper - m.actuator_lengthrange[o].lower
    return fmax(stretch / fmax(prm.high - prm.low, MINVAL), MINVAL)


@kernel
def _normalized(m, d, o, prm, unit):
    """Returns L."""
    return prm.low + (d.actuator_length[o] - m.actuator_lengthrange[o].lower) / unit


@kernel
def _length_curve(x, low, high):
    """Returns (FL, its slope) at the normalised length x."""
    a, b = 0.5 * (low + 1.0), 0.5 * (1.0 + high)
    rising, short, long = x <= 1.0, x <= a, x > b
    width = fmax(where(rising, where(short, a - low, 1.0 - a), where(long, high - b, b - 1.0)), MINVAL)
    s = where(rising, where(short, x - low, 1.0 - x), where(long, high - x, x - 1.0)) / width
    half, slope = 0.5 * s * s, s / width
    inside = (low <= x) & (x <= high)
    curve = where(short | long, half, 1.0 - half)
    return where(inside, curve, 0.0), where(inside, where(rising, slope, -slope), 0.0)


@kernel
def _velocity_curve(v, most):
    """Returns (FV, its slope) at the normalised velocity v."""
    y = most - 1.0
    unit = fmax(y, MINVAL)
    up, over = v + 1.0, y - v
    slower = v <= 0.0
    curve = where(slower, up * up, most - over * over / unit)
    slope = where(slower, 2.0 * up, 2.0 * over / unit)
    still, full = v <= -1.0, (v > y) & (v > 0.0)
    return where(still, 0.0, where(full, most, curve)), where(still | full, 0.0, slope)


@kernel
def muscle_gain(m, d, o, prm):
    """Returns -F FL FV of output o, a Muscle prm."""
    unit = _optimum(m, o, prm)
    curve, _ = _length_curve(_normalized(m, d, o, prm, unit), prm.lmin, prm.lmax)
    speed, _ = _velocity_curve(d.actuator_velocity[o] / fmax(unit * prm.vmax, MINVAL), prm.fvmax)
    return -(_strength(m, o, prm) * curve * speed)


@kernel
def muscle_gain_slopes(m, d, o, prm):
    """Returns the slopes of `muscle_gain` in length and velocity."""
    unit = _optimum(m, o, prm)
    fast = fmax(unit * prm.vmax, MINVAL)
    curve, by_length = _length_curve(_normalized(m, d, o, prm, unit), prm.lmin, prm.lmax)
    speed, by_speed = _velocity_curve(d.actuator_velocity[o] / fast, prm.fvmax)
    force = -_strength(m, o, prm)
    return force * by_length * speed / unit, force * curve * by_speed / fast


@kernel
def _passive_curve(x, high):
    """Returns (FP / fpmax, its slope) at the normalised length x."""
    b = 0.5 * (1.0 + high)
    unit = fmax(b - 1.0, MINVAL)
    s, t = (x - 1.0) / unit, (x - b) / unit
    stretched, straight = x > 1.0, x > b
    curve = where(straight, 0.5 + t, 0.5 * s * s)
    return where(stretched, curve, 0.0), where(stretched, where(straight, 1.0, s) / unit, 0.0)


@kernel
def muscle_bias(m, d, o, prm):
    """Returns -F FP of output o."""
    curve, _ = _passive_curve(_normalized(m, d, o, prm, _optimum(m, o, prm)), prm.lmax)
    return -(_strength(m, o, prm) * prm.fpmax * curve)


@kernel
def muscle_bias_slope(m, d, o, prm):
    """Returns the slope of `muscle_bias` in length."""
    unit = _optimum(m, o, prm)
    _, slope = _passive_curve(_normalized(m, d, o, prm, unit), prm.lmax)
    return -(_strength(m, o, prm) * prm.fpmax * slope / unit)


@kernel
def _smooth_step(x):
    """Returns 0 below 0, 1 above 1, and 6 x^5 - 15 x^4 + 10 x^3 in between."""
    y = clip(x, 0.0, 1.0)
    return y * y * y * fma(3.0 * y, fma(2.0, y, -5.0), 10.0)


@kernel
def muscle_rate(control, act, prm):
    """Returns the rate of the activation: (excitation - act) / tau, where tau depends on the activation.

    prm: time constants of rise and fall, width of the transition between them (0: a jump).
    Source: Millard et al. 2013, Flexing computational muscle, eq. 1-2; MuJoCo mju_muscleDynamics.
    """
    slower = fma(1.5, clip(act, 0.0, 1.0), 0.5)
    rise, fall, width = prm.rise * slower, prm.fall / slower, prm.width
    excess = clip(control, 0.0, 1.0) - act
    smooth = fma(rise - fall, _smooth_step(excess / fmax(width, MINVAL) + 0.5), fall)
    tau = where(width < MINVAL, where(excess > 0.0, rise, fall), smooth)
    return excess / fmax(tau, MINVAL)
