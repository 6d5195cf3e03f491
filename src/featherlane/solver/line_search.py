"""The line search: the minimum of the cost along a direction, exactly.

Along a line the cost is convex and smooth; its slope is piecewise linear but where elliptic contacts slip.
Source: MuJoCo documentation, Computation, "Solver"; MuJoCo brackets the root and evaluates three points at a time.
"""

from __future__ import annotations

from ..lanes import any_, clip, fabs, fma, fmin, kernel, real, single_precision, where
from .contacts import contact_slope

FAR = 1e30


@kernel
def bounded_slope(D, x, v, a, lo, hi, g, h):
    """Add a row's first and second derivative of the cost along the line."""
    t = -(D * fma(a, v, x))
    f = clip(t, lo, hi)
    return fma(-f, v, g), fma(where(f == t, D, 0.0) * v, v, h)


@kernel
def slope(m, d, a, q1, q2):
    """(d/da, d2/da2) of the cost at step length a."""
    g, h = fma(a, q2, q1), q2
    for k in range(d.nfrictionrow[0]):
        g, h = bounded_slope(d.dofrow_D[k], d.dofrow_x[k], d.dofrow_v[k], a, d.dofrow_lo[k], d.dofrow_hi[k], g, h)
    for k in range(d.nfrictionrow[0], d.ndofrow[0]):
        v = d.dofrow_v[k]
        x, Dv = fma(a, v, d.dofrow_x[k]), d.dofrow_D[k] * v
        g, h = fma(fmin(x, 0.0), Dv, g), fma(where(x < 0.0, v, 0.0), Dv, h)
    for k in range(d.ngenrow[0]):
        g, h = bounded_slope(d.genrow_D[k], d.genrow_x[k], d.genrow_v[k], a, d.genrow_lo[k], d.genrow_hi[k], g, h)
    return contact_slope(m, d, a, g, h)


@kernel
def line_terms(m, d):
    """(q1, q2, |p|^2): along the line the quadratic part of the cost is a q1 + a^2 q2 / 2."""
    zero = real(d, 0.0)
    q1, q2, length = zero, zero, zero
    for i in range(m.nv):
        p = d.search[i]
        q1 = fma(p, d.Ma[i] - d.qfrc_smooth[i], q1)
        q2 = fma(p, d.Mv[i], q2)
        length = fma(p, p, length)
    return q1, q2, length


@kernel
def line_search(m, d, q1, q2, enough, live):
    """Step length: root of the slope, by Newton from 1 (exact if no row switches) in a bracket; 0 where not live.

    Where elliptic contacts slip the slope is not piecewise linear and Newton takes a few steps more.
    """
    one = real(d, 1.0)
    lo, hi, a = real(d, 0.0), real(d, FAR), one
    resolution = real(d, 1e-15)
    if single_precision(d):
        resolution = real(d, 1e-7)
    todo = live
    for _ in range(m.opt_ls_iterations):
        g, h = slope(m, d, a, q1, q2)
        todo = todo & (fabs(g) > enough)
        if not any_(todo):
            break
        lo = where(todo & (g < 0.0), a, lo)
        hi = where(todo & (g > 0.0), a, hi)
        b = a - g / h
        b = where((b > lo) & (b < hi), b, 0.5 * (lo + fmin(hi, fma(4.0, lo, 1.0))))
        todo = todo & (fabs(b - a) > resolution * fabs(a))
        a = where(todo, b, a)
    return where(live, a, 0.0)
