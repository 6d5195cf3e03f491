"""What a solve says about itself: the record of its iterations, and the duality gap of a primal solver."""

from featherlane.prelude import *
from featherlane.dynamics.inertia.metric import inverse_metric_times
from featherlane.solver.primal.line_search import FAR

ROUNDING = 1e-3  # of a sum whose terms cancel, in float32 too


@kernel
def record(d, k, cost, gradient, improvement, step):
    """Point k of the record: scaled cost and gradient there, what the iteration gained, how far it went."""
    if d.want_history and k < d.nrecord:
        d.stat_cost[k] = cost
        d.stat_gradient[k] = gradient
        d.stat_improvement[k] = improvement
        d.stat_step[k] = step


@kernel
def half_product(m, d):
    """1/2 grad . Mgrad with Mgrad = M^-1 grad: the duality gap.

    An inertia that no body has makes it negative, by more than rounding, and bounds nothing: FAR.
    """
    s, size = zero(d), zero(d)
    for i in range(m.nv):
        x = d.primal.grad[i] * d.primal.Mgrad[i]
        s, size = s + x, size + fabs(x)
    return where(s < -ROUNDING * size, FAR, fmax(0.5 * s, 0.0))


@kernel
def primal_gap(m, d):
    """1/2 g^T M^-1 g: the cost is convex by M at least, so it is above its minimum by no more.

    Source: MuJoCo documentation, Computation, "Algorithms" (warm start).
    """
    for i in range(m.nv):
        d.primal.Mgrad[i] = d.primal.grad[i]
    inverse_metric_times(m, d, d.primal.Mgrad)
    return half_product(m, d)
