"""Exact line search: computes the minimum of the cost along a direction.

Symbols: p: direction, primal.search, with J p in primal.row_v (scalar rows) and con_z (contacts), and M p in Mv;
a: step length; x, v: J a - aref and J p of a row, with x in primal.row_x, con_y; g, h: first and second derivative of
the cost along the line; f: force of a row; f0: `metric_force`, force without constraints; Ma = M a; D = 1 / R: row_D.
Along a line the cost is convex and smooth; its slope is piecewise linear, except while elliptic contacts slip.
Source: MuJoCo documentation, Computation, "Solver"; MuJoCo brackets the root and evaluates three points at a time.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.inertia.metric import metric_force
from featherlane.engine.solver.rows.contacts import add_contact_rounding, add_contact_slopes
from featherlane.engine.solver.rows.laws import bounded_force, bounded_slope, fold_laws, one_sided_slope

FAR = 1e30  # stands for infinity
EXTRA = 50  # evaluations beyond `ls_iterations`, in worlds without a point whose cost is below the start's
LATE = 2  # in float64 the first evaluation that tests for rounding; also the last one that does not test Newton's speed
# relative errors of one rounding, in float64 and float32
ROUNDING, ROUNDING32 = 1.1e-16, 6e-8
UPHILL = 8  # evaluations without descent after which the slope at the start of the line is checked


@kernel
def add_bounded_slope(d, k, a, slopes):
    """Returns (g, h) plus the derivatives of the cost of row k at step length a, by the bounded law."""
    g, h = slopes
    return bounded_slope(d.row[k], d.primal.row_x[k], d.primal.row_v[k], a, g, h)


@kernel
def add_one_sided_slope(d, k, a, slopes):
    """Returns (g, h) plus the derivatives of the cost of row k at step length a, by the one-sided law."""
    g, h = slopes
    return one_sided_slope(d.row_D[k], d.primal.row_x[k], d.primal.row_v[k], a, g, h)


add_slopes = fold_laws(add_bounded_slope, add_one_sided_slope)


@kernel
def cost_slope(m, d, a, q1, q2):
    """Returns (g, h): first and second derivative of the cost at step length a.

    q1, q2: coefficients of `line_terms`, with g = q1 + a q2 and h = q2 without rows.
    """
    g, h = add_slopes(d, a, (fma(a, q2, q1), q2))
    return add_contact_slopes(m, d, a, g, h)


@kernel
def line_terms(m, d):
    """Returns (q1, q2, |p|^2): along the line the cost without rows is a q1 + a^2 q2 / 2, up to a constant.

    q1 = p . (M a - f0) at the start,  q2 = p . M p.
    """
    f0 = metric_force(m, d)
    q1, q2, p_squared = zeros(3)
    for i in range(m.nv):
        p = d.primal.search[i]
        q1 = fma(p, d.primal.Ma[i] - f0[i], q1)
        q2 = fma(p, d.primal.Mv[i], q2)
        p_squared = fma(p, p, p_squared)
    return q1, q2, p_squared


@kernel
def bounded_row_rounding(row, x, v, reach):
    """Returns |v f| of a row, with f the larger of its forces at step lengths 0 and `reach`."""
    f, _ = bounded_force(row, x)
    f_then, _ = bounded_force(row, fma(reach, v, x))
    return fabs(v) * fmax(fabs(f), fabs(f_then))


@kernel
def line_rounding(m, d, reach):
    """Returns the rounding error of the slope g between step lengths 0 and `reach`, which is 0 or 1.

    It is one rounding of the sum of the slope's absolute terms: sum over dofs of |p_i| (|M a|_i + |f0|_i + |J^T f|_i),
    with J^T f = qfrc_constraint at step length 0, and |v f| of each row.
    """
    terms = 0.0
    f0 = metric_force(m, d)
    for i in range(m.nv):
        dof_terms = fabs(d.primal.Ma[i]) + fabs(f0[i]) + fabs(d.qfrc_constraint[i])
        terms = fma(fabs(d.primal.search[i]), dof_terms, terms)
    for k in range(d.nrow[0]):
        terms = terms + bounded_row_rounding(d.row[k], d.primal.row_x[k], d.primal.row_v[k], reach)
    terms = add_contact_rounding(m, d, reach, terms)
    return (ROUNDING32 if single_precision(d) else ROUNDING) * terms


@kernel
def slope_tolerance(m, scale, p_squared):
    """Returns the |slope| at which a line search ends: tolerance * ls_tolerance * |p| / scale, as in MuJoCo.

    scale: 1 / trace of M; the test of convergence compares scale |grad| with the tolerance.  p_squared: |p|^2.
    """
    return m.opt_tolerance[0] * m.opt_ls_tolerance[0] * sqrt(p_squared) / scale


@kernel
def line_search(m, d, q1, q2, enough, live):
    """Returns the step length of each world, a root of the slope: `step_length` without its shortcut for full steps."""
    return step_length(m, d, q1, q2, enough, full_enough=0.0, live=live)


@kernel
def step_length(m, d, q1, q2, enough, full_enough, live):
    """Returns the step length of each world, a root of the slope, by bracketed Newton iterations from step length 1.

    - If no row switches, the first Newton iteration is exact.
    - A world ends if its |slope| is at most `enough`, or is rounding.  At the first evaluation, of the full step, it
      also ends if its |slope| is at most `full_enough`.
    - While elliptic contacts slip, the slope is not piecewise linear, and where its curvature jumps Newton may approach
      the root slowly from one side.  So the bracket is halved if two evaluations do not reduce the slope to a quarter.
    - If evaluations run out, the result is the lower end of the bracket, whose cost is below the start's.  If this end
      is still 0, up to EXTRA further evaluations follow.
    - The result is 0 if the line rises from its start, because its direction is rounding, and for worlds not in `live`.

    q1, q2: coefficients of `line_terms`.  live: mask.
    """
    resolution = 1e-15  # relative, of a step length
    first_test = LATE  # first evaluation that compares the slope with its rounding
    if single_precision(d):
        resolution = 1e-7
        first_test = 0
    lo, hi = 0.0, FAR  # bracket of the root
    a = 1.0  # present step length
    slope_before = FAR  # |slope| two evaluations before
    rounding_unknown = 1  # 1 until `enough` is at least the slope's rounding
    searching = live
    for k in range(m.opt_ls_iterations + EXTRA):
        g, h = cost_slope(m, d, a, q1, q2)
        searching = searching & (fabs(g) > (fmax(enough, full_enough) if k == 0 else enough))
        # `line_rounding` costs more than `cost_slope`, so it is computed only if the search continues
        if k >= first_test and rounding_unknown and any_(searching):
            enough = fmax(enough, line_rounding(m, d, reach=1.0))
            rounding_unknown = 0
            searching = searching & (fabs(g) > enough)
        # the slope increases along the line: it is negative before the root
        lo = where(searching & (g < 0.0), a, lo)
        hi = where(searching & (g > 0.0), a, hi)
        # lo = 0: no descent so far; check whether the line rises from its start
        if k == UPHILL and any_(searching & (lo == 0.0)):
            start_slope, _ = cost_slope(m, d, a=0.0, q1=q1, q2=q2)
            uphill = searching & (lo == 0.0) & (start_slope > enough)
            a = where(uphill, 0.0, a)
            searching = searching & not_(uphill)
        # evaluations have run out: use the lower end of the bracket
        if k >= m.opt_ls_iterations:
            out_of_evaluations = searching & (lo > 0.0)
            a = where(out_of_evaluations, lo, a)
            searching = searching & not_(out_of_evaluations)
        if not any_(searching):
            break
        # Newton is fast if two evaluations reduce the slope to a quarter: tested in every second evaluation
        is_fast = true_mask(d)
        if k % 2 == 1:
            if k > LATE:
                is_fast = fabs(g) < 0.25 * slope_before
            slope_before = fabs(g)
        # Newton's step length if it is in the bracket, else the bracket's middle; an open bracket ends at 4 lo + 1
        newton, middle = a - g / h, 0.5 * (lo + fmin(hi, fma(4.0, lo, 1.0)))
        a_next = where((newton > lo) & (newton < hi) & is_fast, newton, middle)
        # a world also ends if its step length no longer changes by more than rounding
        searching = searching & (fabs(a_next - a) > resolution * fabs(a))
        a = where(searching, a_next, a)
    # worlds that are still searching have found no lower cost
    return where(live & not_(searching), a, 0.0)
