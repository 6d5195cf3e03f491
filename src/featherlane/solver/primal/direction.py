"""Newton's search direction: H p = -grad with the rows that are not at a bound."""

from featherlane.prelude import *
from featherlane.dynamics.inertia.metric import metric_diagonal, metric_times
from featherlane.solver.hessian.equation import assemble_hessian, leaves_out, solve_first
from featherlane.solver.primal.line_search import FAR
from featherlane.solver.primal.problem import place_rows
from featherlane.solver.rows.rows import list_live_slots


@kernel
def newton_direction(m, d):
    """Computes p = -H^-1 grad without its rows; returns (mask of worlds with another direction, p . grad)."""
    for i in range(m.nv):
        d.primal.search[i] = -d.primal.grad[i]
    assemble_hessian(m, d)
    solve_first(m, d)
    descent = 0.0
    for i in range(m.nv):
        descent = fma(d.primal.search[i], d.primal.grad[i], descent)
    # if rounding costs H its positive pivots (float32, ill-conditioned M): use the gradient scaled by M's diagonal
    lost = not_(descent < 0.0)
    if any_(lost):
        s = 0.0
        for i in range(m.nv):
            d.primal.search[i] = where(lost, -d.primal.grad[i] / metric_diagonal(m, d, i), d.primal.search[i])
            s = fma(d.primal.search[i], d.primal.grad[i], s)
        descent = where(lost, s, descent)
    return lost, descent


@kernel
def search_direction(m, d):
    """Computes p = -H^-1 grad, and its rows.

    Returns the predicted decrease of cost of the quadratic model, grad . H^-1 grad / 2, and the descent rate along p,
    -p . grad.  If trees were decoupled, H is not the second derivative, and the predicted decrease is FAR.
    Until `list_slots`, functions of directions and lines skip the contact slots that only finished worlds have.
    """
    list_live_slots(d)
    lost, descent = newton_direction(m, d)
    metric_times(m, d, d.primal.search, d.primal.Mv)
    place_rows(m, d, d.primal.search, d.con_motion, d.primal.dofrow_v, d.primal.genrow_v, d.primal.con_z)
    return where(lost | leaves_out(d), FAR, -0.5 * descent), -descent
