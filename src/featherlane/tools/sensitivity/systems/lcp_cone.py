"""Friction on a round cone in the linear system of the free rows: sliding friction stays on the cone.

With s_i = x_i / mu_i, the friction of a sliding contact lies on the circle |s| = x_n + a, opposite to its slip:

    mu w + l s = 0,   l > 0;      so  P (d(mu w) + l ds) = 0,   t . ds = dx_n,      t = s / |s|,   P = 1 - t t^T

with w the slack and l > 0 a multiplier (row_pull below).  Its rows of the system are the first equation in the plane
across t plus the second along t.

The friction rows of a contact follow its normal row k: they are k + 1 to k + count.  The record p (lcp_rates.py) has
for each row: row_free, row_slope (lcp_solution.py); row_unit: t of a friction row; at a normal row, row_cone: 1 if its
friction slides on a cone, row_pull: l.  row_matrix is n x n by rows: entry (i, j) is row_matrix[i n + j].
mu_of: mu of a friction row, finite; lcp.hi, unlike it, may be infinite.  cone_offset: a, the distance of the cone's tip
below the origin [N].  length_across(d, x, k, count): |s| of the forces x.
Source: the iterative solvers' projection on the cone (solver/lcp/sweep/projection.py).
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.lcp.sweep.projection import cone_offset, friction_count, length_across, mu_of


@kernel
def _count_friction(d, k):
    """Returns the number of friction rows that follow row k; 0 if row k is friction itself."""
    return friction_count(d, k) if d.lcp.findex[k] < 0 else 0


@kernel
def _step_length(d, k, count):
    """Returns 1 / sum of mu_i^2 A_ii over the friction of normal row k: a step of s along -mu w does not overshoot."""
    total = 0.0
    for c in range(count):
        i = k + 1 + c
        total = fma(mu_of(d, i) * mu_of(d, i), d.lcp.diag[i], total)
    return 1.0 / where(total > 0.0, total, 1.0)


@kernel
def _slide_lengths(d, x, w, k, count):
    """Returns (|s|, |s - step mu w|, radius of the circle) of the friction that follows row k.

    A contact slides if the second length, after a step against the slack w, is at least the radius.
    x: forces of all rows; w: their slack.   Writes: lcp.target at the friction rows.
    """
    # target = mu (s - step mu w), so target_i = x_i - step mu_i^2 w_i
    step = _step_length(d, k, count)
    for c in range(count):
        i = k + 1 + c
        d.lcp.target[i] = fma(-(step * mu_of(d, i) * mu_of(d, i)), w[i], x[i])
    radius = where(x[k] > 0.0, x[k], 0.0) + cone_offset(d, k, count)  # x_n + a
    return length_across(d, x, k, count), length_across(d, d.lcp.target, k, count), radius


@kernel
def sort_cones(d, p, x, w):
    """Computes for friction on cones: row_free, row_slope, row_unit = t; at the normal row row_cone, row_pull = l.

    With the radius x_n + a of the circle, a friction row is
        mu = 0                 as `sort_rows` left it
        mu > 0, radius = 0     not free: the circle holds friction at 0
        mu > 0, radius > 0     free, whether it sticks or slides; row_cone = 1 if the contact slides, which changes its
                               rows in `project_system_on_cones`
    row_slope is 0 for mu > 0.   x: forces of all rows; w: their slack.
    """
    for k in range(d.lcp.n[0]):
        p.row_cone[k] = 0.0
        count = _count_friction(d, k)
        if count > 0:
            length, stepped_length, radius = _slide_lengths(d, x, w, k, count)
            slides = (stepped_length >= radius) & (radius > 0.0)
            # inverse = 1 / |s|; pull = -(mu w . t), a sum
            inverse, pull = 1.0 / where(length > 0.0, length, 1.0), 0.0
            for c in range(count):
                i = k + 1 + c
                rough = mu_of(d, i) > 0.0  # worlds with friction in this direction
                mu = where(rough, mu_of(d, i), 1.0)
                t = where(rough, x[i] / mu * inverse, 0.0)  # t_i = s_i / |s|
                p.row_unit[i] = t
                pull = fma(-(mu * w[i]), t, pull)
                p.row_free[i] = where(rough, where(radius > 0.0, 1.0, 0.0), p.row_free[i])
                p.row_slope[i] = where(rough, 0.0, p.row_slope[i])
            # l = -(mu w . t) / |s|
            p.row_pull[k] = pull * inverse
            p.row_cone[k] = where(slides & (length > 0.0), 1.0, 0.0)


@kernel
def nearest_on_cones(d, x, w, size, least):
    """Returns the smaller of `least` and the distances of friction on cones from the start or end of sliding.

    x, w, size: forces and slack of all rows, size of the forces, as for `nearest_switch`.
    """
    for k in range(d.lcp.n[0]):
        count = _count_friction(d, k)
        if count > 0:
            _, stepped_length, radius = _slide_lengths(d, x, w, k, count)
            gap, mu_max = where(stepped_length > radius, stepped_length - radius, radius - stepped_length), 0.0
            for c in range(count):
                mu_max = where(mu_of(d, k + 1 + c) > mu_max, mu_of(d, k + 1 + c), mu_max)
            # as a force: the gap, a difference of lengths |s|, times the largest mu of the directions
            least = where((radius > 0.0) & (mu_max > 0.0), fmin(least, mu_max * gap / size), least)
    return least


@kernel
def _project(d, p, k, count, x, n, col):
    """Replaces column `col` of x by P mu times it, in the friction rows of normal row k if they slide on a cone.

    x_i <- mu_i x_i - t_i (sum of t_j mu_j x_j), since P mu x = mu x - t (t . mu x).
    x: a matrix by rows, entry (i, col) at i n + col; n: its number of columns.
    """
    slides, along = p.row_cone[k] > 0.0, 0.0
    for c in range(count):
        i = k + 1 + c
        along = fma(p.row_unit[i] * mu_of(d, i), x[i * n + col], along)
    for c in range(count):
        i = k + 1 + c
        acts, value = slides & (mu_of(d, i) > 0.0), x[i * n + col]
        x[i * n + col] = where(acts, fma(mu_of(d, i), value, -(p.row_unit[i] * along)), value)


@kernel
def _finish_block(d, p, k, count, slides):
    """Completes the friction rows of normal row k in row_matrix, whose entries are B = P mu A so far.

    The rows of the system are  B dx + P l ds + scale t (t . ds - dx_n), with ds_j = dx_j / mu_j.  In B dx the friction
    of this contact has ds = P ds + t dx_n.  With along = B mu t this adds to B

        in column j of friction   (l (1 - t t^T) + scale t t^T - along t^T)_ij / mu_j
        in column k               along_i - scale t_i

    scale, the sum of mu_i^2 A_ii, gives the equation along t the size of the others.
    slides: mask of worlds whose friction slides on the cone.
    """
    n, scale, pull = d.lcp.n[0], 1.0 / _step_length(d, k, count), p.row_pull[k]  # pull: l
    for c in range(count):
        i = k + 1 + c
        # acts: worlds in which row i is replaced
        acts, along, start = slides & (mu_of(d, i) > 0.0), 0.0, i * n
        # along = sum of (P mu A)_ij mu_j t_j
        for e in range(count):
            j = k + 1 + e
            along = fma(p.row_matrix[start + j] * mu_of(d, j), p.row_unit[j], along)
        for e in range(count):
            j = k + 1 + e
            both = acts & (mu_of(d, j) > 0.0)  # mu_j is a divisor
            tt, inverse_mu = p.row_unit[i] * p.row_unit[j], 1.0 / where(mu_of(d, j) > 0.0, mu_of(d, j), 1.0)
            diagonal_pull = pull if i == j else 0.0  # l on the diagonal
            # regrouped: (scale - l) t_i t_j + l on the diagonal - along_i t_j
            added = fma(scale - pull, tt, diagonal_pull) - along * p.row_unit[j]
            p.row_matrix[start + j] = where(
                both, fma(added, inverse_mu, p.row_matrix[start + j]), p.row_matrix[start + j]
            )
        by_normal = p.row_matrix[start + k]
        p.row_matrix[start + k] = where(acts, by_normal + (along - scale * p.row_unit[i]), by_normal)


@kernel
def project_system_on_cones(d, p):
    """row_matrix, A over all rows, <- A with the rows of sliding friction on cones replaced (`_finish_block`)."""
    n = d.lcp.n[0]
    for k in range(n):
        count = _count_friction(d, k)
        if count > 0:
            for col in range(n):
                _project(d, p, k, count, p.row_matrix, n, col)
            _finish_block(d, p, k, count, p.row_cone[k] > 0.0)


@kernel
def project_side_on_cones(d, p):
    """row_dx, a right-hand side, <- P mu times it in the rows of sliding friction on a cone."""
    for k in range(d.lcp.n[0]):
        count = _count_friction(d, k)
        if count > 0:
            _project(d, p, k, count, p.row_dx, n=1, col=0)
