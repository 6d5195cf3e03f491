"""Friction on a round cone in the linear system of the free rows: sliding friction stays on the cone.

With s_i = x_i / mu_i, the friction of a sliding contact lies on the circle |s| = x_n + a, opposite to its slip:

    mu w + l s = 0,   l > 0;      so  P (d(mu w) + l ds) = 0,   t . ds = dx_n,      t = s / |s|,   P = 1 - t t^T

Its rows of the system are the first equation in the plane across t plus the second along t.
Source: the iterative solvers' projection on the cone (solver/lcp/sweep/projection.py).
"""

from featherlane.prelude import *
from featherlane.solver.lcp.sweep.projection import cone_offset, friction_count, length_across, mu_of


@kernel
def _friction_of(d, k):
    """Returns the number of friction rows that follow row k."""
    return friction_count(d, k) if d.lcp.findex[k] < 0 else 0


@kernel
def _step(d, k, count):
    """Returns 1 / sum of mu_i^2 A_ii: a step of s that is short enough not to overshoot."""
    s = 0.0
    for c in range(count):
        i = k + 1 + c
        s = fma(mu_of(d, i) * mu_of(d, i), d.lcp.diag[i], s)
    return 1.0 / where(s > 0.0, s, 1.0)


@kernel
def _reach(d, x, w, k, count):
    """Returns (|s|, |s after a step against the slack|, radius) of the friction that follows row k."""
    step = _step(d, k, count)
    for c in range(count):
        i = k + 1 + c
        d.lcp.old[i] = fma(-(step * mu_of(d, i) * mu_of(d, i)), w[i], x[i])
    radius = where(x[k] > 0.0, x[k], 0.0) + cone_offset(d, k, count)
    return length_across(d, x, k, count), length_across(d, d.lcp.old, k, count), radius


@kernel
def sort_cones(d, p, x, w):
    """Computes row_free of friction on cones; for sliding friction row_cone and row_pull at its normal, row_unit."""
    for k in range(d.lcp.n[0]):
        p.row_cone[k] = 0.0
        count = _friction_of(d, k)
        if count > 0:
            length, aim, radius = _reach(d, x, w, k, count)
            slips = (aim >= radius) & (radius > 0.0)
            inverse, pull = 1.0 / where(length > 0.0, length, 1.0), 0.0
            for c in range(count):
                i = k + 1 + c
                rough = mu_of(d, i) > 0.0
                mu = where(rough, mu_of(d, i), 1.0)
                t = where(rough, x[i] / mu * inverse, 0.0)
                p.row_unit[i] = t
                pull = fma(-(mu * w[i]), t, pull)
                p.row_free[i] = where(rough, where(radius > 0.0, 1.0, 0.0), p.row_free[i])
                p.row_slope[i] = where(rough, 0.0, p.row_slope[i])
            p.row_pull[k] = pull * inverse
            p.row_cone[k] = where(slips & (length > 0.0), 1.0, 0.0)


@kernel
def nearest_on_cones(d, x, w, size, least):
    """Returns the distance of friction on cones to the next start or end of sliding; see `nearest_switch`."""
    for k in range(d.lcp.n[0]):
        count = _friction_of(d, k)
        if count > 0:
            _, aim, radius = _reach(d, x, w, k, count)
            far, most = where(aim > radius, aim - radius, radius - aim), 0.0
            for c in range(count):
                most = where(mu_of(d, k + 1 + c) > most, mu_of(d, k + 1 + c), most)
            least = where((radius > 0.0) & (most > 0.0), fmin(least, most * far / size), least)
    return least


@kernel
def _project(d, p, k, count, x, n, col):
    """Projects entries x[i n + col] of the rows i of sliding friction on a cone: mu x, minus the part along t."""
    slips, along = p.row_cone[k] > 0.0, 0.0
    for c in range(count):
        i = k + 1 + c
        along = fma(p.row_unit[i] * mu_of(d, i), x[i * n + col], along)
    for c in range(count):
        i = k + 1 + c
        rough, y = slips & (mu_of(d, i) > 0.0), x[i * n + col]
        x[i * n + col] = where(rough, fma(mu_of(d, i), y, -(p.row_unit[i] * along)), y)


@kernel
def _project_columns(d, p, k, count, slips):
    """Writes ds = P ds + t dx_n in the block, and the condition that s stays on the cone."""
    n, scale, pull = d.lcp.n[0], 1.0 / _step(d, k, count), p.row_pull[k]
    for c in range(count):
        i = k + 1 + c
        rough, along, a = slips & (mu_of(d, i) > 0.0), 0.0, i * n
        for e in range(count):
            j = k + 1 + e
            along = fma(p.row_matrix[a + j] * mu_of(d, j), p.row_unit[j], along)
        for e in range(count):
            j = k + 1 + e
            both = rough & (mu_of(d, j) > 0.0)
            tt, inverse = p.row_unit[i] * p.row_unit[j], 1.0 / where(mu_of(d, j) > 0.0, mu_of(d, j), 1.0)
            own = pull if i == j else 0.0 * pull
            more = fma(scale - pull, tt, own) - along * p.row_unit[j]
            p.row_matrix[a + j] = where(both, fma(more, inverse, p.row_matrix[a + j]), p.row_matrix[a + j])
        x = p.row_matrix[a + k]
        p.row_matrix[a + k] = where(rough, x + (along - scale * p.row_unit[i]), x)


@kernel
def turn_system(d, p):
    """row_matrix, A over all rows, <- with the rows of sliding friction on a cone."""
    n = d.lcp.n[0]
    for k in range(n):
        count = _friction_of(d, k)
        if count > 0:
            for col in range(n):
                _project(d, p, k, count, p.row_matrix, n, col)
            _project_columns(d, p, k, count, p.row_cone[k] > 0.0)


@kernel
def turn_side(d, p):
    """row_dx, a right-hand side, <- with the rows of sliding friction on a cone."""
    for k in range(d.lcp.n[0]):
        count = _friction_of(d, k)
        if count > 0:
            _project(d, p, k, count, p.row_dx, 1, 0)
