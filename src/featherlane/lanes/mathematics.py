"""Elementary functions in lanes: polynomials over values, the same bits at every width.

Each states its error bound in units in the last place of float64, measured against mpmath in the tests; in float32 the same
polynomials are evaluated in float32.
"""

from __future__ import annotations

from .kernel import kernel
from .values import floor, fma, rint, where

TWO_OVER_PI = 0.63661977236758134308
HALF_PI_1 = 1.57079632673412561417e00  # pi/2 in three parts of 33 bits: k * part is exact for |k| < 2^20
HALF_PI_2 = 6.07710050630396597660e-11
HALF_PI_3 = 2.02226624879595063154e-21


@kernel
def sincos(x):
    """(sin x, cos x), within 1.5 ulp for |x| < 1e5."""
    n = rint(x * TWO_OVER_PI)
    r = fma(-n, HALF_PI_1, x)
    r = fma(-n, HALF_PI_2, r)
    r = fma(-n, HALF_PI_3, r)
    z = r * r
    p = fma(z, 1.58969099521155010221e-10, -2.50507602534068634195e-08)
    p = fma(z, p, 2.75573137070700676789e-06)
    p = fma(z, p, -1.98412698298579493134e-04)
    p = fma(z, p, 8.33333333332248946124e-03)
    p = fma(z, p, -1.66666666666666324348e-01)
    s = fma(r * z, p, r)
    q = fma(z, -1.13596475577881948265e-11, 2.08757232129817482790e-09)
    q = fma(z, q, -2.75573143513906633035e-07)
    q = fma(z, q, 2.48015872894767294178e-05)
    q = fma(z, q, -1.38888888888741095749e-03)
    q = fma(z, q, 4.16666666666666019037e-02)
    c = fma(z * z, q, fma(z, -0.5, 1.0))
    k = fma(floor(n * 0.25), -4.0, n)  # quadrant 0..3
    odd = (k == 1.0) | (k == 3.0)
    sine, cosine = where(odd, c, s), where(odd, s, c)
    return where(k > 1.5, -sine, sine), where((k == 1.0) | (k == 2.0), -cosine, cosine)
