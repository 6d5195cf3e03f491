"""Newton's search direction: H p = -grad with the rows that are not at a bound.

Names: p: primal.search, M p: primal.Mv, and J p: primal.row_v (scalar rows), con_z (contacts); grad: primal.grad;
    `metric_*`: of M; FAR stands for infinity; primal.live: 1 in worlds that the solver continues, primal.slot: their
    contact slots.  `leaves_out`: mask of worlds whose H lacks couplings of trees, thus is not the cost's Hessian.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.inertia.metric import metric_diagonal, metric_times
from featherlane.engine.solver.hessian.equation import assemble_hessian, leaves_out, solve_first
from featherlane.engine.solver.primal.line_search import FAR
from featherlane.engine.solver.primal.problem import compute_row_products
from featherlane.engine.solver.rows.rows import list_live_slots


@kernel
def newton_direction(m, d):
    """Computes primal.search = p = -H^-1 grad, but not M p and J p.

    Returns (uphill, p . grad).  The slope p . grad of the cost is negative if H is positive definite.  In worlds of the
    mask `uphill` it is not: by rounding, H has pivots that are not positive (float32, ill-conditioned M).  There, p is
    -grad over the diagonal of M.
    """
    for i in range(m.nv):
        d.primal.search[i] = -d.primal.grad[i]
    assemble_hessian(m, d)  # writes hessian.*, at the rows of the present point
    solve_first(m, d)  # primal.search <- H^-1 primal.search
    slope = 0.0  # p . grad
    for i in range(m.nv):
        slope = fma(d.primal.search[i], d.primal.grad[i], slope)
    uphill = not_(slope < 0.0)  # also if it is NaN
    if any_(uphill):
        new_slope = 0.0
        for i in range(m.nv):
            d.primal.search[i] = where(uphill, -d.primal.grad[i] / metric_diagonal(m, d, i), d.primal.search[i])
            new_slope = fma(d.primal.search[i], d.primal.grad[i], new_slope)
        slope = where(uphill, new_slope, slope)
    return uphill, slope


@kernel
def search_direction(m, d):
    """Computes p = -H^-1 grad in primal.search, M p in primal.Mv, and its rows J p.

    Returns (predicted, descent rate).  `predicted` is the decrease of the cost by its quadratic model, which is
    grad . H^-1 grad / 2.  It is FAR if p is -grad over the diagonal of M, or if H is not the cost's Hessian
    (`leaves_out`).  The descent rate is -p . grad.
    Writes: also primal.slot.  Until `list_slots`, it lacks the contact slots that only finished worlds have.
    """
    list_live_slots(d)  # writes primal.slot
    uphill, slope = newton_direction(m, d)  # writes primal.search
    metric_times(m, d, d.primal.search, d.primal.Mv)
    compute_row_products(m, d, d.primal.search, d.primal.row_v, d.primal.con_z)
    return where(uphill | leaves_out(d), FAR, -0.5 * slope), -slope
