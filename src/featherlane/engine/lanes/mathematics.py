"""Elementary functions in lanes: polynomials over values, bitwise identical at every width and on every CPU level.

Each docstring states the largest error in units in the last place (ulp), measured against mpmath in the tests; the
bounds hold in float64 and in float32, where the same source runs in float32 arithmetic.  Outside a function's domain
the result is NaN, as in NumPy; no function branches on a value.

Constants are split so that the leading part has 24 bits: its product with k is exact under `fma` in both precisions.
Polynomials: sin and cos are fdlibm's; all others interpolate the function at Chebyshev nodes, solved in 60 digits, with
an error below 2^-57 of the result.  Source: Muller, Elementary Functions, ch. 11 (reductions); Dekker 1971 (sums of two
parts); fdlibm (log, asin, acos).
"""

from featherlane.engine.lanes.derivative import derivative_rule
from featherlane.engine.lanes.kernel import kernel
from featherlane.engine.lanes.values import (
    clip,
    copysign,
    fabs,
    floor,
    fma,
    rint,
    scale_exponent,
    single_precision,
    split_exponent,
    sqrt,
    where,
)

INF = float("inf")
NAN = float("nan")
SQRT2 = 1.4142135623730951
TAN_EIGHTH_PI = 0.41421356237309503
TWO_OVER_PI = 0.6366197723675814
HALF_PI_1 = 1.5707963705062866  # pi/2 in four parts
HALF_PI_2 = -4.371138828673793e-08
HALF_PI_3 = -1.7151244994428829e-15
HALF_PI_4 = 8.4784276603689e-32
HALF_PI_REST = -4.371139000186241e-08  # parts 2 to 4 in one
QUARTER_PI_1 = 0.7853981852531433
QUARTER_PI_REST = -2.1855695000931213e-08
LOG2_E = 1.4426950408889634
LN2_1 = 0.6931471824645996
LN2_REST = -1.904654299957768e-09
THIRD_1 = 0.3333333432674408
THIRD_REST = -9.934107462565104e-09


# ---- exponential and logarithm -----------------------------------------------------------------------
@kernel
def _exp_sum(x, rest):
    """Returns e^(x + rest) for |rest| << 1: 2^n (1 + r + r^2 q(r)) with x + rest = n ln 2 + r, |r| <= ln(2)/2."""
    # beyond the limits the result is 0 or infinite; the two halves of n within them are valid exponents of normal
    # numbers
    lowest, highest = (-104.0, 89.0) if single_precision(x) else (-746.0, 710.0)
    y = clip(x, lowest, highest)
    n = rint(y * LOG2_E)
    # if x was clipped it may be infinite and `rest` NaN, so `rest` is left out
    r = fma(-n, LN2_REST, fma(-n, LN2_1, y)) + where(y == x, rest, 0.0)
    # q(r) is a polynomial, evaluated by Horner's method from the highest coefficient down
    q = fma(r, 2.0914748389520338e-09, 2.5105260083369316e-08)
    q = fma(r, q, 2.755727348622598e-07)
    q = fma(r, q, 2.75572552966593e-06)
    q = fma(r, q, 2.4801587325683624e-05)
    q = fma(r, q, 0.00019841269874902294)
    q = fma(r, q, 0.0013888888888883703)
    q = fma(r, q, 0.008333333333326112)
    q = fma(r, q, 0.04166666666666667)
    q = fma(r, q, 0.1666666666666667)
    q = fma(r, q, 0.5)
    # times 2^n in two steps: 2^n itself may be out of range
    half = floor(n * 0.5)
    result = scale_exponent(scale_exponent(1.0 + fma(r * r, q, r), half), n - half)
    return where(x == x, result, x)  # NaN stays NaN


@kernel
def exp(x):
    """Returns e^x within 1 ulp (1 spacing of subnormals for a subnormal result); infinity or 0 if out of range."""
    return _exp_sum(x, 0.0 * x)  # a zero in the precision of x, uncompiled too


@kernel
def _reduce(x):
    """Returns (f, e) with x = f 2^e, f in [sqrt(1/2), sqrt(2)], for finite positive x, subnormal or not."""
    # numbers that may be subnormal, also in float32, are first multiplied by 2^54 = 18014398509481984
    tiny = x < 1.2e-38
    f, e = split_exponent(where(tiny, x * 18014398509481984.0, x))
    e = where(tiny, e - 54.0, e)
    big = f > SQRT2  # `split_exponent` returns f in [1, 2)
    return where(big, 0.5 * f, f), where(big, e + 1.0, e)


@kernel
def _atanh_tail(z):
    """Returns q(z) in atanh(s) = s (1 + z (1/3 + z q(z))), z = s^2, for |s| <= tan(pi/8)^2."""
    q = fma(z, 0.05861589311938259, 0.05853118169745603)
    q = fma(z, q, 0.06667402346923655)
    q = fma(z, q, 0.07692297481259215)
    q = fma(z, q, 0.09090909167696401)
    q = fma(z, q, 0.11111111110827943)
    q = fma(z, q, 0.14285714285714682)
    return fma(z, q, 0.2)


@kernel
def log(x):
    """Returns the natural logarithm, within 1 ulp; -infinity at 0, NaN below.

    With x = f 2^e:  log x = log f + e ln 2.  With m = f - 1, s = m / (2 + m), z = s^2 and q of `_atanh_tail`:
    log f = m - (m^2/2 - s (m^2/2 + 2 z (1/3 + z q(z)))).  Summed as e LN2_1 + (m + small),
    small = e LN2_REST + s (half_square + tail) - half_square, tail = 2 z (1/3 + z q(z)).  Source: fdlibm e_log.c.
    """
    inside = (x > 0.0) & (x < INF)
    f, e = _reduce(where(inside, x, 1.0))
    m = f - 1.0
    s = m / (f + 1.0)
    z = s * s
    half_square = 0.5 * m * m
    tail = 2.0 * z * fma(z, _atanh_tail(z), THIRD_REST + THIRD_1)
    small = fma(e, LN2_REST, s * (half_square + tail)) - half_square
    return where(inside, fma(e, LN2_1, m + small), _log_outside(x))


@kernel
def _log_outside(x):
    """Returns the logarithm of 0, infinity, negative numbers and NaN."""
    return where(x == 0.0, -INF, where(x > 0.0, INF, NAN))


@kernel
def pow_(x, y):
    """x^y for x >= 0 and finite y, within 1.5 ulp; x^0 is 1, 0^y is 0 for y > 0 and infinite for y < 0, NaN for x < 0.

    e^(y log x) with log x and y log x as sums of two parts: the error of an unsplit product would grow with |y log x|.
    A name that ends with 2 is the small part of such a sum, for example s + s2.  With x = f 2^e, m = f - 1:
    log f = 2 atanh(s),  s = m / (2 + m).
    """
    inside = (x > 0.0) & (x < INF)
    f, e = _reduce(where(inside, x, 1.0))
    # s + s2 = m / (2 + m) with the divisor c + c2 = f + 1, and its square z + z2
    m, c = f - 1.0, f + 1.0
    c2 = where(f > 1.0, 1.0 - (c - f), f - (c - 1.0))
    s = m / c
    s2 = fma(-s, c2, fma(-s, c, m)) / c
    z = s * s
    z2 = fma(s, s, -z) + 2.0 * s * s2
    # a + a2 = 1/3 + z q(z);  w + w2 = z (a + a2);  t + t2 = s (w + w2)
    u = z * _atanh_tail(z)
    a = u + THIRD_1
    a2 = (THIRD_1 - a) + u + THIRD_REST
    w = z * a
    w2 = fma(z, a, -w) + fma(z, a2, z2 * a)
    t = s * w
    t2 = fma(s, w, -t) + fma(s, w2, s2 * w)
    # g + g2 = log f = 2 (s + t);  h + h2 = e ln 2 + log f
    g = s + t
    g2 = 2.0 * (((s - g) + t) + (t2 + s2))
    g = 2.0 * g
    k = e * LN2_1
    k2 = fma(e, LN2_1, -k)
    h = k + g
    h2 = ((k - h) + g) + (fma(e, LN2_REST, g2) + k2)
    # p + p2 = y (h + h2)
    p = y * h
    p2 = fma(y, h, -p) + y * h2
    edge = y * _log_outside(x)
    edge = where(edge > 0.0, INF, where(edge < 0.0, 0.0, NAN))
    return where(y == 0.0, 1.0, where(inside, _exp_sum(p, p2), edge))


# ---- circular functions and their inverses -------------------------------------------------------------
@kernel
def sincos(x):
    """Returns (sin x, cos x), within 1.5 ulp for |x| <= 1e9 in float64, 1e5 in float32; undefined beyond.

    Note: sin(-0) is +0; an infinite x gives NaN.
    """
    # x = n pi/2 + r, |r| <= pi/4
    n = rint(x * TWO_OVER_PI)
    r = fma(-n, HALF_PI_1, x)
    r = fma(-n, HALF_PI_2, r)
    r = fma(-n, HALF_PI_4, fma(-n, HALF_PI_3, r))
    # sin r = r + r z p(z),  z = r^2
    z = r * r
    p = fma(z, 1.58969099521155010221e-10, -2.50507602534068634195e-08)
    p = fma(z, p, 2.75573137070700676789e-06)
    p = fma(z, p, -1.98412698298579493134e-04)
    p = fma(z, p, 8.33333333332248946124e-03)
    p = fma(z, p, -1.66666666666666324348e-01)
    s = fma(r * z, p, r)
    # cos r = 1 - z / 2 + z^2 q(z)
    q = fma(z, -1.13596475577881948265e-11, 2.08757232129817482790e-09)
    q = fma(z, q, -2.75573143513906633035e-07)
    q = fma(z, q, 2.48015872894767294178e-05)
    q = fma(z, q, -1.38888888888741095749e-03)
    q = fma(z, q, 4.16666666666666019037e-02)
    c = fma(z * z, q, fma(z, -0.5, 1.0))
    # n quarter turns: sin(r + pi/2) = cos r, cos(r + pi/2) = -sin r
    quadrant = fma(floor(n * 0.25), -4.0, n)  # n modulo 4
    odd = (quadrant == 1.0) | (quadrant == 3.0)
    sine, cosine = where(odd, c, s), where(odd, s, c)
    return where(quadrant > 1.5, -sine, sine), where((quadrant == 1.0) | (quadrant == 2.0), -cosine, cosine)


@kernel
def _asin_parts(x):
    """Returns (inner, a, t) with arcsin a = a + t, where a = |x| for |x| <= 1/2 (inner), else sqrt((1 - |x|) / 2).

    t = a z q(z) with z = a^2 and a polynomial q.
    """
    size = fabs(x)
    inner = size <= 0.5
    z = where(inner, size * size, fma(size, -0.5, 0.5))
    q = fma(z, 0.028757851367421566, -0.014851887071247204)
    q = fma(z, q, 0.01740087944269402)
    q = fma(z, q, 0.005457506718640358)
    q = fma(z, q, 0.01032281435018578)
    q = fma(z, q, 0.011479177415184906)
    q = fma(z, q, 0.013971212973552933)
    q = fma(z, q, 0.017352392720869973)
    q = fma(z, q, 0.02237217294214989)
    q = fma(z, q, 0.030381944138531247)
    q = fma(z, q, 0.04464285714635543)
    q = fma(z, q, 0.07499999999998433)
    q = fma(z, q, 0.16666666666666669)
    a = where(inner, size, sqrt(z))
    return inner, a, a * z * q


@kernel
def asin(x):
    """Returns the arc sine, within 1.5 ulp; NaN outside [-1, 1]: clip an argument that rounding may take past 1.

    For |x| > 1/2, arcsin |x| = pi/2 - 2 arcsin sqrt((1 - |x|) / 2).  With a + t of `_asin_parts` and pi/2 = HALF_PI_1 +
    HALF_PI_REST, this is summed as HALF_PI_1 - (2 a + (2 t - HALF_PI_REST)).
    """
    inner, a, t = _asin_parts(x)
    outer = HALF_PI_1 - fma(2.0, a, fma(2.0, t, -HALF_PI_REST))
    return copysign(where(inner, a + t, outer), x)


@kernel
def acos(x):
    """Returns the arc cosine, within 1.5 ulp; NaN outside [-1, 1]: clip an argument that rounding may take past 1.

    arccos x = pi/2 - arcsin x for |x| <= 1/2, 2 arcsin sqrt((1 - x) / 2) above, pi - 2 arcsin sqrt((1 + x) / 2) below;
    with the arc sine a + t of `_asin_parts`, signed in the middle, and pi/2 = HALF_PI_1 + HALF_PI_REST.
    """
    inner, a, t = _asin_parts(x)
    middle = HALF_PI_1 - (copysign(a, x) + (copysign(t, x) - HALF_PI_REST))
    below = 2.0 * (HALF_PI_1 - (a + (t - HALF_PI_REST)))
    return where(inner, middle, where(x > 0.0, 2.0 * (a + t), below))


@kernel
def atan2(y, x):
    """Returns the angle of the point (x, y) in [-pi, pi], within 2.5 ulp; signed zeros and infinities as in C.

    Let a <= b be |x| and |y| in order.  t = a / b up to tan(pi/8) and (a - b) / (a + b) above, which rotates the
    angle by pi/4; the octants add k pi/4, k = 0 .. 4, in one rounding.
    """
    ax, ay = fabs(x), fabs(y)
    steep = ay > ax
    a, b = where(steep, ax, ay), where(steep, ay, ax)
    fold = (a > TAN_EIGHTH_PI * b) | (a == INF)
    # a == b may be infinite
    numerator = where(fold, where(a == b, 0.0, a - b), a)
    denominator = where(fold, a + b, where(b == 0.0, 1.0, b))
    t = numerator / denominator
    # arctan t = r = t + t z q(z),  z = t^2
    z = t * t
    q = fma(z, -0.019175404711104935, 0.03923044778479309)
    q = fma(z, q, -0.050854078345894844)
    q = fma(z, q, 0.05858140904866328)
    q = fma(z, q, -0.06664510525508936)
    q = fma(z, q, 0.07692183125376892)
    q = fma(z, q, -0.0909090457530649)
    q = fma(z, q, 0.11111111015187018)
    q = fma(z, q, -0.14285714284665682)
    q = fma(z, q, 0.19999999999995516)
    q = fma(z, q, -0.3333333333333333)
    r = fma(t * z, q, t)
    # the angle is k pi/4 + r: first in the octant, then reflected at the diagonal, then at the y axis
    k = where(fold, 1.0 + 0.0 * t, 0.0)  # in the precision of t, uncompiled too
    k, r = where(steep, 2.0 - k, k), where(steep, -r, r)
    left = copysign(1.0, x) < 0.0
    k, r = where(left, 4.0 - k, k), where(left, -r, r)
    return copysign(fma(k, QUARTER_PI_1, fma(k, QUARTER_PI_REST, r)), y)


# ---- derivatives ---------------------------------------------------------------------------------------
@derivative_rule(exp)
@kernel
def _exp_partials(result, x):
    """Returns (e^x,)."""
    return (result,)


@derivative_rule(log)
@kernel
def _log_partials(result, x):
    """Returns (1 / x,)."""
    return (1.0 / x,)


@derivative_rule(pow_)
@kernel
def _pow_partials(result, x, y):
    """Returns (y x^(y - 1), x^y log x)."""
    return y * pow_(x, y - 1.0), result * log(x)


@derivative_rule(sincos)
@kernel
def _sincos_partials(result, x):
    """Returns ((cos x, -sin x),)."""
    return ((result[1], -result[0]),)


@kernel
def _asin_slope(x):
    """Returns 1 / sqrt(1 - x^2); at -1 and 1, where it is infinite, 0."""
    square = (1.0 - x) * (1.0 + x)
    return 1.0 / sqrt(where(square == 0.0, INF, square))


@derivative_rule(asin)
@kernel
def _asin_partials(result, x):
    """Returns (1 / sqrt(1 - x^2),)."""
    return (_asin_slope(x),)


@derivative_rule(acos)
@kernel
def _acos_partials(result, x):
    """Returns (-1 / sqrt(1 - x^2),)."""
    return (-_asin_slope(x),)


@derivative_rule(atan2)
@kernel
def _atan2_partials(result, y, x):
    """Returns (x, -y) / (x^2 + y^2); 0 at the origin."""
    square = fma(x, x, y * y)
    square = where(square == 0.0, INF, square)
    return x / square, -y / square
