"""Newton's method on the primal problem, W worlds at once.

The cost is convex, and piecewise quadratic except while an elliptic contact slips.  A step solves H p = -grad with the
rows that are not at a bound, and a line search computes the minimum along p.  With pyramidal cones, the full step is
taken without a search if the slope at its end is at most half of that at its start: its active rows are closer to those
of the solution than at the minimum along p.  This saves up to 3 % of the iterations (10 % of a tile's) and the search.

A world stops if one of these holds:
- Its gradient is below the tolerance.
- Its gradient is rounding: then the slope along the next step is also rounding.  In float32 each component is compared
  with the rounding of its terms, because opposing contacts cancel to a thousandth of their forces: the last digits of
  the forces are noise.
  By this test, a world may also stop after a step in which a row switched.
- It makes no progress for PATIENCE steps, or its step has length 0.
A gain of cost below the tolerance does not end a solve: if the cost is large or the step short, it does not bound the
gradient.

`warning` is set in a world that ends at the iteration limit, or without progress and with a gradient that is not small,
or with a gradient that is rounding but above `LARGE` of the forces.  It is not set if the acceleration is accurate
(accuracy.py).
Names: p: direction, primal.search; grad: gradient of the cost, primal.grad; `line_rounding`: rounding error of the
slope along a line.  `evaluate` returns (cost, norm of the gradient).
SMALL, LARGE: parts of the forces; `norm_of_forces`: max(|M a0|, |J^T f|), with a0 the unconstrained acceleration;
`is_rounding_of_terms`: mask of worlds whose gradient is rounding of its terms, see rounding.py.  FAR stands for a
number out of range.
The worlds of a tile iterate together.  A converged world takes steps of length 0, so its result is bitwise identical
to simulating it alone, and directions and line searches skip the contact slots that only converged worlds have.
Source: MuJoCo documentation, Computation, "Solver" (Newton, stopping).  Differences: the Hessian is assembled from
body stiffnesses and factored as L^T D L on the tree, or its equation is solved by recursion on the tree
(hessian/equation.py); MuJoCo also stops if the gain of a step is below the tolerance.
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.primal.accuracy import refine_solution
from featherlane.engine.solver.primal.direction import search_direction
from featherlane.engine.solver.primal.history import primal_gap, record_iteration, store_diagnostics
from featherlane.engine.solver.primal.line_search import FAR, line_rounding, line_terms, slope_tolerance, step_length
from featherlane.engine.solver.primal.problem import (
    advance_rows,
    evaluate,
    find_switching_worlds,
    store_primal_forces,
    trace_of_inertia,
)
from featherlane.engine.solver.primal.rounding import gradient_limits, is_rounding_of_terms, norm_of_forces
from featherlane.engine.solver.primal.start import start_newton
from featherlane.engine.solver.rows.laws import TINY
from featherlane.engine.solver.rows.rows import list_slots

PATIENCE = 20  # consecutive steps that lower neither cost nor gradient
EXACT = 4e-6  # of the forces, 32 roundings: gradient after an exact float32 step; if larger, another step helps
FULL = 0.5  # of the start's slope: if a full step's slope is at most this, its rows are closer to the solution's
EXACT_FALL = 0.05  # an exact step reduces the gradient to rounding level, by much more than this factor


@kernel
def newton(m, d):
    """Iterates until every world has converged: qacc, qfrc_constraint, row forces, iterations, residual and gap.

    Numbers of each world:
        scale: 1 / trace of M, of cost and gradient in the test of the tolerance.
        gradient: norm of the gradient.  least: the least norm so far.
        predicted, descent_rate: decrease of the cost's quadratic model by the full step, and -p . grad.
        a: step length.  gain: decrease of the cost.
        niter: iterations of the world (n: those of the tile).  idle: consecutive iterations in which it is stalled.
    Masks of worlds:
        live: takes the next step.
        unsolved: has not converged; it is not live if it has given up.
        exact_search: its steps end at the minimum along the line; else a full step may be taken, see FULL.
        slow: its gradient is more than half of the least one before.
        stalled: slow, and its cost changed by no more than rounding.
        switched: a row switched in this step.
    """
    start_newton(m, d)  # writes qacc, primal.Ma and the rows of the start
    scale = 1.0 / fmax(trace_of_inertia(m, d), TINY)
    tolerance = m.opt_tolerance[0]
    noise, _, _ = gradient_limits(d)  # relative rounding of a cost
    cost, gradient = evaluate(m, d)  # writes primal.grad, qfrc_constraint
    live = (scale * gradient > tolerance) & (d.active[0] > 0.0)
    unsolved = live
    slow = false_mask(d)
    exact_search = false_mask(d) if has_pyramids(m) else live
    n = 0
    niter, idle = 0.0, 0.0
    least = gradient
    # the start has no step: niter is 0 in every world
    record_iteration(d, k=0, cost=scale * cost, gradient=scale * gradient, improvement=niter, step=niter)
    for iteration in range(m.opt_iterations):
        if not any_(live):
            break
        d.primal.live[0] = where(live, 1.0, 0.0)
        predicted, descent_rate = search_direction(m, d)  # writes p, M p and J p
        if any_(slow):
            # if the gradient is rounding, so is the slope at the start of the line, |p . grad| = 2 predicted
            solved = live & slow & (2.0 * predicted <= line_rounding(m, d, reach=0.0))
            live, unsolved, slow = live & not_(solved), unsolved & not_(solved), slow & not_(solved)
            if not any_(live):
                break

        # the step a p
        q1, q2, p_squared = line_terms(m, d)
        full_enough = where(exact_search, 0.0, FULL * descent_rate)
        a = step_length(m, d, q1, q2, slope_tolerance(m, scale, p_squared), full_enough, live)
        switched = live  # a placeholder: the mask is used in float32 only
        if single_precision(d):
            switched = find_switching_worlds(m, d, a)
        advance_rows(m, d, a)  # writes qacc, primal.Ma and the rows
        cost_before, gradient_before = cost, gradient
        cost, gradient = evaluate(m, d)  # writes primal.grad, qfrc_constraint
        gain = cost_before - cost
        n = iteration + 1
        niter = where(live, niter + 1.0, niter)
        record_iteration(d, n, scale * cost, scale * gradient, scale * gain, a)

        # progress
        exact_search = exact_search | (gain < 0.0)  # the full step went uphill
        slow = gradient > 0.5 * least
        stalled = slow & (fabs(gain) <= noise * fabs(cost))
        least = fmin(gradient, least)

        # worlds that end
        solved = live & not_(scale * gradient > tolerance)
        if single_precision(d):
            fell = not_(gradient > EXACT_FALL * gradient_before)
            solved = solved | (live & is_gradient_rounding(m, d, live, switched, fell, stalled, gradient))
        unsolved, slow = unsolved & not_(solved), slow & live & not_(solved)
        live = live & not_(solved)
        idle = where(live & stalled, idle + 1.0, 0.0)
        live = live & (idle < PATIENCE) & (a > 0.0)  # a step of length 0 would repeat forever
    list_slots(d)  # all contacts again, not only those of live worlds
    finish_newton(m, d, live, unsolved, gradient, scale, niter, n)


@kernel
def is_gradient_rounding(m, d, live, switched, fell, stalled, gradient):
    """Returns, in float32, the mask of worlds whose gradient is rounding, although it is above the tolerance.

    Masks of worlds:
        balanced   the gradient is at most EXACT of the forces
        exact      balanced and stalled; or balanced, not switched, and fell.  Without `fell`, H is ill-conditioned, and
                   the step did not solve its system
        unclear    live and not exact, but balanced, stalled or not switched: `is_rounding_of_terms` decides, because
                   rows that switch in the last step, or alternate, may also leave no more than rounding
    The result is true in worlds that are exact, and in those in which `is_rounding_of_terms` is true.
    live, switched, stalled: masks of `newton`.  fell: mask of worlds whose gradient fell to EXACT_FALL of that
        before the step, or below.
    """
    balanced = gradient <= EXACT * norm_of_forces(m, d)
    exact = ((not_(switched) & fell) | stalled) & balanced
    unclear = live & not_(exact) & (balanced | stalled | not_(switched))
    if any_(unclear):
        exact = exact | (unclear & is_rounding_of_terms(m, d))
    return exact


@kernel
def finish_newton(m, d, live, unsolved, gradient, scale, niter, n):
    """Takes further steps in worlds with opposing rows (`refine_solution`), decides convergence, and stores results.

    `unsolved` are the worlds that did not converge: those that are still `live` ran out of iterations, the others gave
    up.  The other arguments are those of `newton`.  The warning counts worlds in which one of these holds:
    - The world is unsolved, and live or with a gradient that is not small; and its acceleration is not accurate.
    - The gradient is above the tolerance and large, even if it is rounding; and the acceleration is not accurate.
    - The gradient is NaN or not below FAR.
    Writes: solver_niter, solver_residual, solver_gap, warning, row forces; the point of refined worlds.
    """
    _, small, large = gradient_limits(d)
    forces = norm_of_forces(m, d)
    active = d.active[0] > 0.0
    tolerance = m.opt_tolerance[0]
    # worlds that do not continue, with a gradient that is neither small nor out of range: their acceleration may be
    # accurate although the forces do not balance
    is_above_tolerance = active & (scale * gradient > tolerance)
    stopped = not_(live) & is_above_tolerance & (gradient > small * forces) & (gradient < FAR)
    accurate = false_mask(d)
    if any_(stopped):
        accurate, gradient, niter = refine_solution(m, d, stopped, gradient, niter, n)
        forces = norm_of_forces(m, d)
    # a NaN gradient is large, and not small: comparisons with it are false
    is_small = gradient <= small * forces
    is_large = not_(gradient <= large * forces)
    failed = unsolved & (live | not_(is_small))
    failed = failed | (active & (scale * gradient > tolerance) & is_large)  # a gradient that is rounding, but large
    unconverged = (failed & not_(accurate)) | (active & not_(gradient < FAR))
    store_diagnostics(d, niter, scale * gradient, scale * primal_gap(m, d))
    warn(d, NOT_CONVERGED, unconverged)
    store_primal_forces(m, d)
