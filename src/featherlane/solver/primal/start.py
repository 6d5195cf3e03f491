"""Initial point of the iterations: the last step's acceleration, the unconstrained one, or a point between the two.

`warm_start` takes the cheaper one for each world.  `start_lowest` continues to the lowest point of the line through
both.  The rows at the two points determine all rows along the line, so it costs a few slopes.  With pyramidal cones it
saves up to 12 % of Newton's iterations (a dog; a humanoid 7 %, hands none).  With elliptic cones one quadruped gained 9
%, another lost 4 %, and slopes cost more: those stay at the cheaper point.  So does CG, which gains nothing.
Source: MuJoCo documentation, Computation, "Solver" (warm start), which takes the cheaper of the two.
"""

from featherlane.prelude import *
from featherlane.dynamics.inertia.metric import metric_force, metric_times
from featherlane.solver.primal.line_search import line_terms, slope
from featherlane.solver.primal.problem import (
    TINY,
    advance_rows,
    place_rows,
    subtract_reference,
    subtract_reference_at,
    sum_row_costs,
)
from featherlane.solver.rows.rows import turn_index

EVALUATIONS = 6  # of the slope: more save no iteration
SHORT = 1e-3  # of the distance of the two points: a shorter step is not worth its cost


@kernel
def start_free(m, d):
    """Sets the unconstrained acceleration and its rows."""
    place_rows(m, d, d.qacc_smooth, d.con_motion, d.primal.dofrow_x, d.primal.genrow_x, d.primal.con_y)
    subtract_reference(m, d, d.primal.dofrow_x, d.primal.genrow_x, d.primal.con_y)
    f0 = metric_force(m, d)
    for i in range(m.nv):
        d.qacc[i] = d.qacc_smooth[i]
        d.primal.Ma[i] = f0[i]


@kernel
def last_is_cheaper(m, d):
    """Returns a mask: is the last step's acceleration cheaper than the free one?  Its rows replace a direction's."""
    f0, free = metric_force(m, d), sum_row_costs(m, d, d.primal.dofrow_x, d.primal.genrow_x, d.primal.con_y)
    # primal.con_z holds J v: the last point's rows are stored in primal.con_warm
    place_rows(m, d, d.qacc_warmstart, d.con_motion, d.primal.dofrow_v, d.primal.genrow_v, d.primal.con_warm)
    subtract_reference_at(m, d, d.primal.dofrow_v, d.primal.genrow_v, d.primal.con_warm)
    metric_times(m, d, d.qacc_warmstart, d.primal.Mv)
    gauss = zero(d)
    for i in range(m.nv):
        gauss = fma(d.primal.Mv[i] - f0[i], d.qacc_warmstart[i] - d.qacc_smooth[i], gauss)
    return fma(0.5, gauss, sum_row_costs(m, d, d.primal.dofrow_v, d.primal.genrow_v, d.primal.con_warm)) < free


@kernel
def ordered_pair(first, a, b):
    """Returns (a, b - a) if first, else (b, a - b)."""
    return where(first, a, b), where(first, b - a, a - b)


@kernel
def take_point(m, d, last):
    """Sets the point and its rows from the mask `last`, and the direction to the other point."""
    for i in range(m.nv):
        d.qacc[i], d.primal.search[i] = ordered_pair(last, d.qacc_warmstart[i], d.qacc[i])
        d.primal.Ma[i], d.primal.Mv[i] = ordered_pair(last, d.primal.Mv[i], d.primal.Ma[i])
    for k in range(d.ndofrow[0]):
        d.primal.dofrow_x[k], d.primal.dofrow_v[k] = ordered_pair(last, d.primal.dofrow_v[k], d.primal.dofrow_x[k])
    for k in range(d.ngenrow[0]):
        d.primal.genrow_x[k], d.primal.genrow_v[k] = ordered_pair(last, d.primal.genrow_v[k], d.primal.genrow_x[k])
    for k in range(3 * d.ncon_slot[0]):
        d.primal.con_y[k], d.primal.con_z[k] = ordered_pair(last, d.primal.con_warm[k], d.primal.con_y[k])
    for k in range(d.ncon_slot[0]):
        if d.con_dim[k] > 3:
            r = 3 * turn_index(d, k)
            for i in range(r, r + 3):
                d.primal.con_y[i], d.primal.con_z[i] = ordered_pair(last, d.primal.con_warm[i], d.primal.con_y[i])


@kernel
def lowest(m, d):
    """Returns the position of the lowest cost along the direction, to `SHORT`, within one distance either way.

    If evaluations run out, returns the last point before the lowest one.
    """
    a, lo, hi = zero(d), real(d, -1.0), real(d, 1.0)
    q1, q2, _ = line_terms(m, d)
    todo = d.active[0] > 0.0
    for _ in range(EVALUATIONS):
        g, h = slope(m, d, a, q1, q2)
        lo, hi = where(g < 0.0, a, lo), where(g > 0.0, a, hi)
        b = a - g / fmax(h, TINY)
        b = where((b > lo) & (b < hi), b, 0.5 * (lo + hi))
        todo = todo & (fabs(b - a) > SHORT)
        if not any_(todo):
            break
        a = where(todo, b, a)
    return where(todo, where(lo < 0.0, fmin(hi, 0.0), lo), a)


@kernel
def warm_start(m, d):
    """Sets qacc, Ma and rows at the cheaper point; with two points, also search, Mv and the rows to the other."""
    start_free(m, d)
    if m.opt_disableflags & DISABLE_WARMSTART == 0:
        take_point(m, d, last_is_cheaper(m, d))


@kernel
def start_lowest(m, d):
    """Sets qacc, Ma and the rows at the lowest point of the line through both, if cones are pyramids.

    Without iterations the start is the result: the cheaper point, as in MuJoCo.
    """
    warm_start(m, d)
    if has_pyramids(m) and m.opt_disableflags & DISABLE_WARMSTART == 0 and m.opt_iterations > 0:
        a = lowest(m, d)
        if any_(a != 0.0):
            advance_rows(m, d, a)
