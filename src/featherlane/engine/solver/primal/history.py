"""Convergence diagnostics: statistics per iteration, and the duality gap of a primal solver."""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.inertia.metric import inverse_metric_times
from featherlane.engine.solver.primal.line_search import FAR
from featherlane.engine.solver.vectors import copy_vector

ROUNDING = 1e-3  # of the sum of absolute terms: rounding of a sum whose terms cancel, also in float32


@kernel
def record_iteration(d, k, cost, gradient, improvement, step):
    """Records point k: scaled cost and gradient there, and the iteration's decrease of cost and step length."""
    if d.want_history and k < d.nrecord:
        d.stat_cost[k] = cost
        d.stat_gradient[k] = gradient
        d.stat_improvement[k] = improvement
        d.stat_step[k] = step


@kernel
def store_diagnostics(d, niter, residual, gap):
    """Stores the diagnostics of a solve: iterations, scaled residual, scaled duality gap."""
    d.solver_niter[0] = niter
    d.solver_residual[0] = residual
    d.solver_gap[0] = gap


@kernel
def half_gradient_product(m, d):
    """Returns the duality gap, 1/2 grad . M^-1 grad, from primal.grad and primal.Mgrad = M^-1 grad.

    If M is not positive definite, the product may be negative by more than rounding and is no bound: returns FAR.
    """
    product, absolute = 0.0, 0.0  # sums of the terms, and of their absolute values
    for i in range(m.nv):
        term = d.primal.grad[i] * d.primal.Mgrad[i]
        product = product + term
        absolute = absolute + fabs(term)
    return where(product < -ROUNDING * absolute, FAR, fmax(0.5 * product, 0.0))


@kernel
def primal_gap(m, d):
    """Returns 1/2 g^T M^-1 g, an upper bound of cost minus minimum, because the cost's Hessian is at least M.

    Source: MuJoCo documentation, Computation, "Algorithms" (warm start).
    """
    copy_vector(m, d.primal.grad, d.primal.Mgrad)
    inverse_metric_times(m, d, d.primal.Mgrad)  # Mgrad <- M^-1 Mgrad
    return half_gradient_product(m, d)
