"""Status codes of the LCP solvers, and their common residual.

The residual is that of complementarity in the units of x, relative to their size:

    max_i |x_i - clip(x_i - w_i / a, lower_i, upper_i)| / max_i max(|x_i|, |b_i| / a),   w = A x - b,   a = max_i A_ii

with the bounds in effect.  It is 0 exactly at the solutions.  A size beyond 1e300 is limited to 1e300, since relative
to infinity every error is small.
Source: the natural map of a box; Facchinei and Pang, Finite-Dimensional Variational Inequalities (2003), sec. 1.5.
"""

from featherlane.engine.model.status import StatusCode

LARGEST = 1e300
# values for kernels
SOLVED, ITERATIONS, INFEASIBLE, UNSETTLED, INACCURATE = range(5)


class Status(StatusCode):
    """Status code of a solve.  In every case x is finite, and the residual measures its distance from a solution."""

    SOLVED = SOLVED
    ITERATIONS = ITERATIONS  # it stopped at its limit of iterations or pivots
    INFEASIBLE = INFEASIBLE  # no solution exists, or the method did not find one (a ray)
    UNSETTLED = UNSETTLED  # friction limits that follow the normals did not settle
    INACCURATE = INACCURATE  # it ended, but rounding or an indefinite A keeps the residual above the tolerance
