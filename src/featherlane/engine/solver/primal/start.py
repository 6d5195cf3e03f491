"""Initial point of the iterations: from the last step's acceleration and the unconstrained one.

`warm_start` takes the cheaper one for each world.  Newton's method starts elsewhere: on the line from the last
acceleration to the unconstrained one, after one Newton step along this line.  The step needs the slope and the
curvature of the cost at the last acceleration, and neither of the two costs.
Names: a0: unconstrained acceleration, qacc_smooth, with M a0 = f0 (`metric_force`); p: direction, primal.search;
Ma = M a, Mv = M p.
Rows of a point are x = J a - aref in primal.row_x, con_y; those of a direction are J p in row_v, con_z.
`last_is_cheaper` stores the rows of a second point, in row_v, con_warm, and its M a in Mv.
Source: MuJoCo documentation, Computation, "Solver" (warm start), which takes the cheaper of the two.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.inertia.metric import metric_force, metric_times
from featherlane.engine.solver.primal.line_search import cost_slope
from featherlane.engine.solver.primal.problem import (
    advance_rows,
    compute_row_products,
    compute_rows_at,
    replace_rows,
    subtract_reference_at,
    sum_row_costs,
)
from featherlane.engine.solver.rows.laws import TINY
from featherlane.engine.solver.vectors import copy_vector, replace_vector

LARGEST = 1e10  # accelerations that are larger, or NaN, are not used
# lengths of a step from the last acceleration, 1 at the unconstrained one
SHORT = 1e-3  # a shorter step is not taken: the start is exactly the last acceleration
BEYOND = 1.0  # the start may be so far outside of the two points


@kernel
def last_is_cheaper(m, d):
    """Returns the mask of worlds in which the last step's acceleration has a lower cost than the unconstrained one.

    Reads:  the rows of the unconstrained acceleration in primal.row_x, con_y, and J qvel of the contacts in con_z.
    Writes: M a and rows of the last acceleration, to primal.Mv, row_v and con_warm.
    """
    f0 = metric_force(m, d)
    cost_unconstrained = sum_row_costs(m, d, d.primal.row_x, d.primal.con_y)  # a = a0: only rows have a cost
    # rows of the last acceleration: J a, then J a - aref
    compute_row_products(m, d, d.qacc_warmstart, d.primal.row_v, d.primal.con_warm)
    subtract_reference_at(m, d, d.primal.row_v, d.primal.con_warm)  # reads con_z, from `compute_rows_at`
    metric_times(m, d, d.qacc_warmstart, d.primal.Mv)  # Mv = M qacc_warmstart
    # cost of the last acceleration a: 1/2 (a - a0) . (M a - f0) + that of the rows
    gauss = 0.0
    for i in range(m.nv):
        gauss = fma(d.primal.Mv[i] - f0[i], d.qacc_warmstart[i] - d.qacc_smooth[i], gauss)
    cost = fma(0.5, gauss, sum_row_costs(m, d, d.primal.row_v, d.primal.con_warm))
    return cost < cost_unconstrained


@kernel
def warm_start(m, d):
    """Sets qacc, primal.Ma and the rows at the last or the unconstrained acceleration, whichever has the lower cost."""
    # the unconstrained acceleration a0, with M a0 = f0
    compute_rows_at(m, d, d.qacc_smooth, d.primal.row_x, d.primal.con_y)
    copy_vector(m, d.qacc_smooth, d.qacc)
    copy_vector(m, metric_force(m, d), d.primal.Ma)
    # the last step's acceleration: `last_is_cheaper` stores its rows in row_v and con_warm, its M a in Mv
    if m.opt_disableflags & DISABLE_WARMSTART == 0:
        is_cheaper = last_is_cheaper(m, d)
        replace_vector(m, is_cheaper, d.qacc_warmstart, d.qacc)
        replace_vector(m, is_cheaper, d.primal.Mv, d.primal.Ma)
        replace_rows(d, is_cheaper, d.primal.con_warm)


@kernel
def set_line_to_unconstrained(m, d):
    """Sets the point to the last acceleration a, and the direction to p = a0 - a; returns p . M p.

    Worlds whose last acceleration is too large or NaN start from the unconstrained one, with p = 0.
    Writes: qacc, primal.Ma and its rows; primal.search, Mv and the rows of the direction.
    """
    f0 = metric_force(m, d)
    usable, curvature = true_mask(d), 0.0  # mask of worlds with a usable last acceleration; p . M p
    for i in range(m.nv):  # the comparison is false for NaN
        usable = usable & (fabs(d.qacc_warmstart[i]) <= LARGEST)
    for i in range(m.nv):
        d.qacc[i] = where(usable, d.qacc_warmstart[i], d.qacc_smooth[i])
        d.primal.search[i] = d.qacc_smooth[i] - d.qacc[i]
    compute_rows_at(m, d, d.qacc, d.primal.row_x, d.primal.con_y)
    metric_times(m, d, d.qacc, d.primal.Ma)
    for i in range(m.nv):
        d.primal.Mv[i] = f0[i] - d.primal.Ma[i]  # M p = M (a0 - a)
        curvature = fma(d.primal.Mv[i], d.primal.search[i], curvature)
    compute_row_products(m, d, d.primal.search, d.primal.row_v, d.primal.con_z)
    return curvature


@kernel
def start_between(m, d):
    """Sets qacc = a1 + t (a0 - a1), with a1 the last and a0 the unconstrained acceleration; also Ma and rows.

    t = -g / h, the step length `a` in the code, is one Newton step to the minimum of the cost along this line, from
    t = 0.  It is limited to -BEYOND <= t <= 1 + BEYOND, and is 0 if |t| is at most SHORT.

    If no row pushes, t = 1, and the start is exactly the unconstrained acceleration: in float32, the rounding of a sum
    would be a gradient above the tolerance, and cost an iteration.
    """
    curvature = set_line_to_unconstrained(m, d)  # p . M p
    # g, h: slope and curvature of the cost at the start of the line.  Its part without rows has the slope
    # p . (M a - f0) = -p . M p and the curvature p . M p
    g, h = cost_slope(m, d, a=0.0, q1=-curvature, q2=curvature)
    # Newton's step -g / h, at most BEYOND outside of the two points; 1 if p = 0
    a = clip(where(h > 0.0, -g / fmax(h, TINY), 1.0), -BEYOND, 1.0 + BEYOND)
    advance_rows(m, d, where(fabs(a) > SHORT, a, 0.0))
    # a = 1: exactly the unconstrained acceleration
    replace_vector(m, a == 1.0, d.qacc_smooth, d.qacc)
    replace_vector(m, a == 1.0, metric_force(m, d), d.primal.Ma)


@kernel
def start_newton(m, d):
    """Sets qacc, Ma and the rows of Newton's start.

    Without iterations the start is the result: then it is the cheaper point, as in MuJoCo.
    """
    if m.opt_disableflags & DISABLE_WARMSTART == 0 and m.opt_iterations > 0:
        start_between(m, d)
    else:
        warm_start(m, d)
