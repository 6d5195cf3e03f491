"""Computes muscles: force from length and velocity, passive force, and activation from excitation.

With L0 = (lengthrange) / (range), L = range[0] + (length - lengthrange[0]) / L0 and V = velocity / (L0 vmax),

    force = -F (FL(L) FV(V) activation + FP(L)),    F = scale / acc0 where the parameter is negative

In the code `optimum` is L0, `prm` the parameters, o the actuator's output.

FL consists of four parabolas over [lmin, lmax] with its maximum 1 at L = 1.  FV consists of two parabolas and rises
from 0 at V = -1 over 1 at V = 0 to fvmax.  FP is a parabola from L = 1 on that continues as a line.  The parameters are
a `Muscle` (parameters.py).
Source: MuJoCo, chapter Modeling, Muscles; mju_muscleGain, mju_muscleBias, mju_muscleDynamics.
"""

from featherlane.engine.prelude import *


@kernel
def _strength(m, o, prm):
    """Returns F [N]: the parameter `force`, or scale / acc0 if it is negative."""
    force = prm.force
    return where(force < 0.0, prm.scale / fmax(m.actuator_acc0[o], MINVAL), force)


@kernel
def _optimum(m, o, prm):
    """Returns L0 = (lengthrange[1] - lengthrange[0]) / (range[1] - range[0]), at least MINVAL."""
    length_span = m.actuator_lengthrange[o].upper - m.actuator_lengthrange[o].lower
    return fmax(length_span / fmax(prm.high - prm.low, MINVAL), MINVAL)


@kernel
def _normalized_length(m, o, prm, length, optimum):
    """Returns L = range[0] + (length - lengthrange[0]) / L0."""
    return prm.low + (length - m.actuator_lengthrange[o].lower) / optimum


@kernel
def _length_curve(length, lmin, lmax):
    """Returns FL at the normalized length; 0 outside [lmin, lmax].

    With a = (lmin + 1) / 2 and b = (1 + lmax) / 2, the four parabolas are

        lmin to a    s^2 / 2         s = (length - lmin) / (a - lmin)
        a to 1       1 - s^2 / 2     s = (1 - length) / (1 - a)
        1 to b       1 - s^2 / 2     s = (length - 1) / (b - 1)
        b to lmax    s^2 / 2         s = (lmax - length) / (lmax - b)
    """
    a = 0.5 * (lmin + 1.0)
    b = 0.5 * (1.0 + lmax)
    is_rising = length <= 1.0
    is_first = length <= a
    is_last = length > b
    width = fmax(where(is_rising, where(is_first, a - lmin, 1.0 - a), where(is_last, lmax - b, b - 1.0)), MINVAL)
    rising_distance = where(is_first, length - lmin, 1.0 - length)
    falling_distance = where(is_last, lmax - length, length - 1.0)
    s = where(is_rising, rising_distance, falling_distance) / width
    half_square = 0.5 * s * s
    is_inside = (lmin <= length) & (length <= lmax)
    return where(is_inside, where(is_first | is_last, half_square, 1.0 - half_square), 0.0)


@kernel
def _velocity_curve(velocity, fvmax):
    """Returns FV at the normalized velocity.

    (velocity + 1)^2 for -1 < velocity <= 0;  fvmax - (y - velocity)^2 / y with y = fvmax - 1 for 0 < velocity <= y;
    0 below, fvmax above.
    """
    y = fvmax - 1.0
    from_low = velocity + 1.0
    to_high = y - velocity
    curve = where(velocity <= 0.0, from_low * from_low, fvmax - to_high * to_high / fmax(y, MINVAL))
    is_full = (velocity > y) & (velocity > 0.0)
    return where(velocity <= -1.0, 0.0, where(is_full, fvmax, curve))


@kernel
def muscle_gain(m, o, prm, length, velocity):
    """Returns -F FL FV [N] of output o; length [m], velocity [m/s]: those of the output; prm: a `Muscle`."""
    optimum = _optimum(m, o, prm)
    FL = _length_curve(_normalized_length(m, o, prm, length, optimum), prm.lmin, prm.lmax)
    FV = _velocity_curve(velocity / fmax(optimum * prm.vmax, MINVAL), prm.fvmax)
    return -(_strength(m, o, prm) * FL * FV)


@kernel
def _passive_curve(length, lmax):
    """Returns FP / fpmax at the normalized length.

    0 up to length 1;  s^2 / 2 with s = (length - 1) / (b - 1) up to b = (1 + lmax) / 2;
    then the line 1/2 + (length - b) / (b - 1).
    """
    b = 0.5 * (1.0 + lmax)
    width = fmax(b - 1.0, MINVAL)
    s = (length - 1.0) / width
    t = (length - b) / width
    is_stretched = length > 1.0
    is_line = length > b
    return where(is_stretched, where(is_line, 0.5 + t, 0.5 * s * s), 0.0)


@kernel
def muscle_bias(m, o, prm, length):
    """Returns -F FP [N] of output o; length [m]: that of the output; prm: a `Muscle`."""
    curve = _passive_curve(_normalized_length(m, o, prm, length, _optimum(m, o, prm)), prm.lmax)
    return -(_strength(m, o, prm) * prm.fpmax * curve)


@kernel
def _smooth_step(x):
    """Returns 0 below 0, 1 above 1, and 6 x^5 - 15 x^4 + 10 x^3 in between."""
    y = clip(x, 0.0, 1.0)
    # y^3 (3 y (2 y - 5) + 10)
    return y * y * y * fma(3.0 * y, fma(2.0, y, -5.0), 10.0)


@kernel
def muscle_rate(control, act, prm):
    """Returns the rate of the activation: (excitation - act) / tau, excitation being the control clipped to [0, 1].

    tau is rise (0.5 + 1.5 act) while the excitation exceeds act, else fall / (0.5 + 1.5 act), with a smooth transition:
    fall + (rise - fall) step(excess / width + 1/2), excess = excitation - act, step = `_smooth_step`.
    prm: the parameters `rise` and `fall`, time constants, and `width`, that of the transition between them (0: a jump).
    Source: Millard et al. 2013, Flexing computational muscle, eq. 1-2; MuJoCo mju_muscleDynamics.
    """
    scale = fma(1.5, clip(act, 0.0, 1.0), 0.5)
    rise = prm.rise * scale
    fall = prm.fall / scale
    width = prm.width
    excess = clip(control, 0.0, 1.0) - act
    smooth = fma(rise - fall, _smooth_step(excess / fmax(width, MINVAL) + 0.5), fall)
    tau = where(width < MINVAL, where(excess > 0.0, rise, fall), smooth)
    return excess / fmax(tau, MINVAL)
