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

    The step of row i is (mu_i / max mu)^2 `step`, so that steps are equal in the metric of s; without mu it is `step`.
    """
    largest_mu, largest = 0.0, 0.0
    for i in friction_rows(k, count):
        largest_mu = fmax(mu_of(p, i), largest_mu)
    for i in friction_rows(k, count):
        # mu_i / max mu
        ratio = where(mu_of(p, i) > 0.0, mu_of(p, i) / where(largest_mu > 0.0, largest_mu, 1.0), 1.0)
        p.lcp.target[i] = fma(-(step * ratio) * ratio, w[i], x[i])
    project_disc(p, p.lcp.target, k, count, x[k])
    for i in friction_rows(k, count):
        largest = fmax(fabs(p.lcp.target[i] - x[i]), largest)
    return largest


@kernel
def solution_size(p, x):
    """Returns the size of x to which a residual is relative: the largest of |x_i| and |b_i| / a; 1 if all are 0."""
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
            projected = project_box(p, x, i, fma(-step, w[i], x[i]))
            largest = fmax(fabs(projected - x[i]), largest)
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
    """Returns the residual at which a world stops: the tolerance, in float32 at least ROUNDING32.

    A negative tolerance is returned as it is: no residual reaches it.
    """
    tolerance = p.lcp.parameter[0]
    if single_precision(p):
        tolerance = where(tolerance < 0.0, tolerance, fmax(tolerance, ROUNDING32))
    return tolerance


@kernel
def finish(p, cone):
    """Computes lcp.w, lcp.residual and lcp.status of lcp.x at the end of a solve, and lcp.z of factored rows."""
    compute_w(p)
    set_status(p, lcp_residual(p, p.lcp.x, p.lcp.w, cone))


@kernel
def set_status(p, residual):
    """Stores the residual, and lcp.status: SOLVED if it is within the tolerance, else ITERATIONS."""
    p.lcp.residual[0] = residual
    p.lcp.status[0] = where(residual <= stopping_residual(p), 1.0 * SOLVED, 1.0 * ITERATIONS)


@kernel
def finish_at(p, lower, upper):
    """Computes lcp.w, lcp.residual and lcp.status of lcp.x like `finish`, for given bounds lower <= x <= upper."""
    compute_w(p)
    largest = 0.0
    step = 1.0 / largest_diagonal(p)
    for i in range(p.lcp.n[0]):
        projected = clip(fma(-step, p.lcp.w[i], p.lcp.x[i]), lower[i], upper[i])
        largest = fmax(fabs(projected - p.lcp.x[i]), largest)
    set_status(p, largest / solution_size(p, p.lcp.x))
