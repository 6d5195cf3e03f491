"""Conjugate gradients on the primal problem, preconditioned by M^-1, W worlds at once.

    p <- -M^-1 g + beta p,      y = g - g_old,
    beta = (y^T M^-1 g - 2 p^T g (y^T M^-1 y) / (p^T y)) / (p^T y),

Each step goes to the minimum along p (line_search.py).  beta has a lower bound that limits the turn of p against g.  It
is 0 if p^T y is not positive.  An iteration costs products with J and one solve with the factor of M.

A world stops if the gradient is below the tolerance, or if the gain of cost is below it and the residual is small
(rounding.py).  In float64 the duality gap ends a world only at its start: a gap of 1e-8 leaves a gradient of 1e-4.  A
world also stops after several iterations without progress, since a single one may gain nothing.
Symbols: g: gradient, primal.grad; M^-1 g: primal.Mgrad; p: primal.search, with M p in primal.Mv, J p in row_v,
con_z.  `metric_factor`, `metric_times`: factor of M, product with M; NEAR: so many tolerances of the gap.
grad_old, Mgrad_old: g and M^-1 g before the step.  `solve_factored` computes x <- M^-1 x with this factor.
Source: Hager and Zhang, "A new conjugate gradient method with guaranteed descent and an efficient line search", 2005,
eq. 1.3-1.6; MuJoCo documentation, Computation, "Algorithms" (CG), and the change log of 3.10.0.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.inertia.joint_space import solve_factored
from featherlane.engine.dynamics.inertia.metric import metric_factor, metric_times
from featherlane.engine.solver.primal.history import half_gradient_product, record_iteration, store_diagnostics
from featherlane.engine.solver.primal.line_search import line_search, line_terms, slope_tolerance
from featherlane.engine.solver.primal.problem import (
    advance_rows,
    compute_row_products,
    evaluate,
    store_primal_forces,
    trace_of_inertia,
)
from featherlane.engine.solver.primal.rounding import NEAR, gradient_limits, is_small, is_unexplained
from featherlane.engine.solver.primal.start import warm_start
from featherlane.engine.solver.rows.laws import TINY
from featherlane.engine.solver.vectors import clear_vector, copy_vector

ETA = 0.01  # Hager and Zhang's bound on the turn of p against the gradient
MINVAL = 1e-15  # p^T y must be larger; also the smallest divisor of the bound of beta
PATIENCE, SHORT_PATIENCE = 50.0, 10.0  # iterations without progress, in float64 and float32


@kernel
def precondition(m, d):
    """Computes primal.Mgrad = M^-1 grad."""
    copy_vector(m, d.primal.grad, d.primal.Mgrad)
    LD, inverse_D = metric_factor(m, d)
    solve_factored(m, LD, inverse_D, d.primal.Mgrad)


@kernel
def hager_zhang_beta(m, d):
    """Returns beta of Hager and Zhang, with the formula and symbols of the top of this file.

    Its lower bound is -1 / (|p| min(|g|, ETA)).
    """
    # sums p.y, y.M^-1 y, y.M^-1 g, p.g, p.p, g.g
    py, yMy, yMg, pg, pp, gg = zeros(6)
    for i in range(m.nv):
        p, g, Mg = d.primal.search[i], d.primal.grad[i], d.primal.Mgrad[i]
        y, My = g - d.primal.grad_old[i], Mg - d.primal.Mgrad_old[i]
        py, yMy, yMg = fma(p, y, py), fma(y, My, yMy), fma(y, Mg, yMg)
        pg, pp, gg = fma(p, g, pg), fma(p, p, pp), fma(g, g, gg)
    curved = py > MINVAL  # mask; else beta is 0
    inverse_py = 1.0 / where(curved, py, 1.0)
    beta = (yMg - 2.0 * (yMy * inverse_py) * pg) * inverse_py
    lower_bound = -1.0 / fmax(sqrt(pp) * fmin(sqrt(gg), ETA), MINVAL)
    return where(curved, fmax(beta, lower_bound), 0.0)


@kernel
def update_direction(m, d, beta):
    """Computes the next direction p = -M^-1 g + beta p, with M p and J p, and keeps g and M^-1 g for the next beta."""
    for i in range(m.nv):
        d.primal.search[i] = fma(beta, d.primal.search[i], -d.primal.Mgrad[i])
        d.primal.grad_old[i] = d.primal.grad[i]
        d.primal.Mgrad_old[i] = d.primal.Mgrad[i]
    metric_times(m, d, d.primal.search, d.primal.Mv)
    compute_row_products(m, d, d.primal.search, d.primal.row_v, d.primal.con_z)


@stage
def cg(m, d):
    """Iterates until every world has converged: qacc, qfrc_constraint, row forces, iterations, residual and gap.

    Reads:  qLD, qLDiagInv, M, qacc_smooth, qfrc_smooth, qacc_warmstart, all rows.
    Writes: qacc (nv,) [m/s^2, rad/s^2], qfrc_constraint (nv,) [N, N m], row_force, con_force,
            solver_niter, solver_residual, solver_gap, warning (not converged), stat_*.
    Scratch: primal.*, cacc, cfrc, con_motion, con_wrench.
    Cost:   per iteration O(contacts + nv * depth).
    """
    warm_start(m, d)  # writes qacc, primal.Ma and the rows of the start
    scale = 1.0 / fmax(trace_of_inertia(m, d), TINY)  # of cost, gradient and gap in comparisons with the tolerance
    tolerance = m.opt_tolerance[0]
    noise, _, _ = gradient_limits(d)  # relative rounding of a cost
    patience = SHORT_PATIENCE if single_precision(d) else PATIENCE
    cost, gradient = evaluate(m, d)  # gradient: its norm
    record_iteration(d, k=0, cost=scale * cost, gradient=scale * gradient, improvement=0.0, step=0.0)
    precondition(m, d)  # writes primal.Mgrad
    clear_vector(m, d.primal.search)
    gap = half_gradient_product(m, d)  # duality gap, 1/2 g . M^-1 g
    least = gap  # the least gap so far
    beta = 0.0
    niter, idle = 0.0, 0.0  # iterations of each world, and consecutive ones without progress
    live = (scale * gradient > tolerance) & not_(scale * gap < tolerance) & (d.active[0] > 0.0)
    for iteration in range(m.opt_iterations):
        if not any_(live):
            break
        update_direction(m, d, beta)  # writes the direction
        # step of length a to the minimum along p
        q1, q2, p_squared = line_terms(m, d)
        a = line_search(m, d, q1, q2, slope_tolerance(m, scale, p_squared), live)
        advance_rows(m, d, a)  # writes qacc, primal.Ma and the rows
        cost_before = cost
        cost, gradient = evaluate(m, d)  # writes primal.grad, qfrc_constraint
        precondition(m, d)  # writes primal.Mgrad
        gain = cost_before - cost
        gap = half_gradient_product(m, d)
        beta = hager_zhang_beta(m, d)
        niter = where(live, niter + 1.0, niter)
        record_iteration(d, iteration + 1, scale * cost, scale * gradient, scale * gain, a)
        # progress: the gain is more than rounding, or the gap has halved
        significant = fabs(gain) > noise * fabs(cost)
        idle = where(significant | (gap < 0.5 * least), 0.0, idle + 1.0)
        least = fmin(gap, least)
        # the gain is below the tolerance, but not rounding; never with tolerance 0
        gains_little = significant & (scale * gain <= tolerance) & (tolerance > 0.0)
        if any_(live & gains_little & (scale * gap > NEAR * tolerance)):
            # a step that is too short or too long also gains little: the gradient or the gap must be small
            gains_little = gains_little & is_small(m, d, gradient, scale * gap)
        converged = not_(scale * gradient > tolerance) | gains_little  # also if it is NaN
        if single_precision(d):  # rounding may keep the gradient above the tolerance
            converged = converged | (scale * gap < tolerance)
        live = live & not_(converged) & (idle < patience)
    store_diagnostics(d, niter, scale * gradient, scale * gap)
    warn(d, NOT_CONVERGED, live | is_unexplained(m, d, gradient, scale * gap))
    store_primal_forces(m, d)
