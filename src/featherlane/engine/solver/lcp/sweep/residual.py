"""Residual of x, in lanes: the change of x by a projected step, relative to the size of x.

    r = max_i |x_i - clip(x_i - w_i / a, lo_i, hi_i)| / max_i max(|x_i|, |b_i| / a),   a = max_i A_ii

as in status.py, with the bounds at the current x.  Rows of a cone are projected together (projection.py).
Symbols: p: the record of the problems, with lcp.n rows;  lcp.findex: the normal row of friction, -1: none;
    w = A x - b;  step = 1 / a;  k: a normal row, with `count` friction rows k + 1, k + 2, ...;
    cone: 1: friction on cones, 0: pyramids;  lcp.parameter[0]: the tolerance;  s_i = x_i / mu_i (projection.py).
`project_box(p, x, i, u)`: u clipped to the bounds of row i at x;  `project_disc(p, u, k, count, normal)`: friction rows
    of u, in place, on the disc at a normal force;  `in_cone`: row i is projected with its contact, not alone.
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.lcp.status import ITERATIONS, LARGEST, SOLVED
from featherlane.engine.solver.lcp.sweep.product import compute_w
from featherlane.engine.solver.lcp.sweep.projection import (
    friction_count,
    friction_rows,
    in_cone,
    largest_diagonal,
    mu_of,
    project_box,
    project_disc,
)

ROUNDING32 = 2e-6  # the smallest residual that float32 reaches


@kernel
def disc_distance(p, x, w, k, count, step):
    """Returns the largest change of the friction rows behind row k by a projected step.  Overwrites lcp.target.

    Steps are equal in the metric of s: row i takes step (mu_i / max mu)^2; a row without mu takes step.
    """
    largest_mu, largest = 0.0, 0.0
    for i in friction_rows(k, count):
        largest_mu = fmax(mu_of(p, i), largest_mu)
    for i in friction_rows(k, count):
        share = where(mu_of(p, i) > 0.0, mu_of(p, i) / where(largest_mu > 0.0, largest_mu, 1.0), 1.0)
        # x_i - step share^2 w_i
        p.lcp.target[i] = fma(-(step * share) * share, w[i], x[i])
    project_disc(p, p.lcp.target, k, count, x[k])
    for i in friction_rows(k, count):
        largest = fmax(fabs(p.lcp.target[i] - x[i]), largest)
    return largest


@kernel
def solution_size(p, x):
    """Returns the reference size of a residual: max |x_i| or max |b_i| / a, the larger one; 1 if both are 0."""
    size, largest_b = 0.0, 0.0
    for i in range(p.lcp.n[0]):
        size = fmax(fabs(x[i]), size)
        largest_b = fmax(fabs(p.lcp.b[i]), largest_b)
    size = fmax(largest_b / largest_diagonal(p), size)
    return where(size > 0.0, fmin(size, LARGEST), 1.0)


@kernel
def lcp_residual(p, x, w, cone):
    """Returns the residual r of x, with w = A x - b."""
    largest = 0.0
    step = 1.0 / largest_diagonal(p)
    for i in range(p.lcp.n[0]):
        # each row alone, but the friction rows of a cone together, at their normal row
        if cone == 0 or not in_cone(p, i):
            largest = fmax(fabs(project_box(p, x, i, fma(-step, w[i], x[i])) - x[i]), largest)
        if cone != 0 and p.lcp.findex[i] < 0:
            largest = fmax(disc_distance(p, x, w, i, friction_count(p, i), step), largest)
    return largest / solution_size(p, x)


@kernel
def record_residual(p, k, residual):
    """Stores the residual after k iterations, for the iteration statistics of a solve."""
    if p.want_history and k < p.nrecord:
        p.stat_residual[k] = residual


@kernel
def stopping_residual(p):
    """Returns the residual at which a world stops: the tolerance; in float32 at least ROUNDING32; below 0: never."""
    tolerance = p.lcp.parameter[0]
    if single_precision(p):
        tolerance = where(tolerance < 0.0, tolerance, fmax(tolerance, ROUNDING32))
    return tolerance


@kernel
def finish(p, cone):
    """Computes lcp.w, lcp.residual and lcp.status at the end of a solve; lcp.z = Y^T x of factored rows."""
    compute_w(p)
    set_status(p, lcp_residual(p, p.lcp.x, p.lcp.w, cone))


@kernel
def set_status(p, residual):
    """Stores the residual, and by it lcp.status."""
    p.lcp.residual[0] = residual
    p.lcp.status[0] = where(residual <= stopping_residual(p), 1.0 * SOLVED, 1.0 * ITERATIONS)


@kernel
def finish_at(p, lower, upper):
    """Runs `finish` for a solver with constant bounds lower <= x <= upper, arrays by row."""
    compute_w(p)
    largest = 0.0
    step = 1.0 / largest_diagonal(p)
    for i in range(p.lcp.n[0]):
        projected = clip(fma(-step, p.lcp.w[i], p.lcp.x[i]), lower[i], upper[i])
        largest = fmax(fabs(projected - p.lcp.x[i]), largest)
    set_status(p, largest / solution_size(p, p.lcp.x))
