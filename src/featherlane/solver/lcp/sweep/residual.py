"""Residual of x, in lanes: the change of x by a projected step, relative to the size of x.

    r = max_i |x_i - clip(x_i - w_i / a, lo_i, hi_i)| / max_i max(|x_i|, |b_i| / a),   a = max_i A_ii

as in status.py, with the bounds at the current x.  Rows of a cone are projected together (projection.py).
"""

from featherlane.prelude import *
from featherlane.solver.lcp.status import ITERATIONS, LARGEST, SOLVED
from featherlane.solver.lcp.sweep.product import compute_w
from featherlane.solver.lcp.sweep.projection import (
    friction_count,
    in_cone,
    largest_diagonal,
    mu_of,
    project_box,
    project_disc,
)

ROUNDING32 = 2e-6  # the smallest residual that float32 reaches


@kernel
def box_distance(p, x, w, i, step):
    """Returns the change of row i by a projected step."""
    return fabs(project_box(p, x, i, fma(-step, w[i], x[i])) - x[i])


@kernel
def disc_distance(p, x, w, k, count, step):
    """Returns the change of the friction rows behind row k by steps equal in the metric of s; overwrites lcp.change."""
    rough, far = 0.0, 0.0
    for c in range(count):
        rough = fmax(mu_of(p, k + 1 + c), rough)
    for c in range(count):
        i = k + 1 + c
        share = where(mu_of(p, i) > 0.0, mu_of(p, i) / where(rough > 0.0, rough, 1.0), 1.0)
        p.lcp.change[i] = fma(-(step * share) * share, w[i], x[i])
    project_disc(p, p.lcp.change, k, count, x[k])
    for c in range(count):
        i = k + 1 + c
        far = fmax(fabs(p.lcp.change[i] - x[i]), far)
    return far


@kernel
def solution_size(p, x):
    """Returns the reference size of a residual: max |x_i| or max |b_i| / a, the larger one; 1 if both are 0."""
    size, load = 0.0, 0.0
    for i in range(p.lcp.n[0]):
        size = fmax(fabs(x[i]), size)
        load = fmax(fabs(p.lcp.b[i]), load)
    size = fmax(load / largest_diagonal(p), size)
    return where(size > 0.0, fmin(size, LARGEST), 1.0)


@kernel
def lcp_residual(p, x, w, cone):
    """Returns the residual of x with w = A x - b."""
    far, step = 0.0, 1.0 / largest_diagonal(p)
    for i in range(p.lcp.n[0]):
        if cone == 0 or not in_cone(p, i):
            far = fmax(box_distance(p, x, w, i, step), far)
        if cone != 0 and p.lcp.findex[i] < 0:
            far = fmax(disc_distance(p, x, w, i, friction_count(p, i), step), far)
    return far / solution_size(p, x)


@kernel
def record_residual(p, k, residual):
    """Stores point k of the iteration statistics of a solve."""
    if p.want_history and k < p.nrecord:
        p.stat_residual[k] = residual


@kernel
def stopping_residual(p):
    """Returns the residual at which a world stops: the tolerance; in float32 at least ROUNDING32; below 0: never."""
    tolerance = p.lcp.parameter[0] + 0.0
    if single_precision(p):
        tolerance = where(tolerance < 0.0, tolerance, fmax(tolerance, ROUNDING32))
    return tolerance


@kernel
def finish(p, cone):
    """Computes w, the residual and the status at the end of a solve."""
    compute_w(p)
    far = lcp_residual(p, p.lcp.x, p.lcp.w, cone)
    p.lcp.residual[0] = far
    p.lcp.status[0] = where(far <= stopping_residual(p), 1.0 * SOLVED, 1.0 * ITERATIONS)


@kernel
def finish_at(p, lower, upper):
    """Runs `finish` for a solver whose bounds are constants."""
    compute_w(p)
    far, step = 0.0, 1.0 / largest_diagonal(p)
    for i in range(p.lcp.n[0]):
        far = fmax(fabs(clip(fma(-step, p.lcp.w[i], p.lcp.x[i]), lower[i], upper[i]) - p.lcp.x[i]), far)
    p.lcp.residual[0] = far / solution_size(p, p.lcp.x)
    p.lcp.status[0] = where(p.lcp.residual[0] <= stopping_residual(p), 1.0 * SOLVED, 1.0 * ITERATIONS)
