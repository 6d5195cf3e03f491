"""The residual of an iterate in places (scaled_problem.py), and the iterate with the smallest one."""

from featherlane.prelude import *
from featherlane.solver.lcp.pivot.factor import eights_of_row
from featherlane.solver.lcp.pivot.scaled_problem import complementarity_residual, final_residual, unload_places
from featherlane.solver.lcp.status import INACCURATE, ITERATIONS, SOLVED

TOLERANCE = 1e-10  # residual of a solution


@kernel
def residual_of_places(r1):
    """Returns the residual of status.py at x, w and the present limits; x need not be within its bounds."""
    for i in range(r1.one.n[0]):
        k, s = r1.one.order[i], r1.place.scale[i]
        r1.one.lower[k], r1.one.upper[k] = r1.place.lo[i] * s, r1.place.hi[i] * s
        r1.one.x[k], r1.one.w[k] = r1.place.x[i] * s, r1.place.w[i] / s
    return complementarity_residual(r1)


@kernel
def finish_places(r1, used, ended):
    """Stores the solution of the places, its residual, the steps that were used, and the status.

    ended: whether the steps ended at their largest number.
    """
    unload_places(r1)
    residual = final_residual(r1)
    r1.one.residual[0], r1.one.niter[0] = residual, used
    r1.one.status[0] = ITERATIONS if ended else INACCURATE
    if residual <= TOLERANCE:
        r1.one.status[0] = SOLVED


@kernel
def keep_best_place(r1):
    """Copies x to one.best."""
    x, best = eights(r1.place.x), eights(r1.one.best)
    for c in range(eights_of_row(r1)):
        best[c] = x[c] + 0.0


@kernel
def restore_best_place(r1):
    """Copies one.best to x."""
    x, best = eights(r1.place.x), eights(r1.one.best)
    for c in range(eights_of_row(r1)):
        x[c] = best[c] + 0.0
