"""How a solver of an LCP ended, and the residual that all of them state.

The residual is that of complementarity in the units of x, relative to their size:

    max_i |x_i - clip(x_i - w_i / a, lower_i, upper_i)| / max_i max(|x_i|, |b_i| / a),   w = A x - b,   a = max_i A_ii

with the bounds in effect.  It is 0 at a solution and nowhere else.  A size beyond 1e300 counts as that: relative to
infinity everything is small.
Source: the natural map of a box; Facchinei and Pang, Finite-Dimensional Variational Inequalities (2003), sec. 1.5.
"""

from enum import IntEnum

LARGEST = 1e300
# as kernels read them
SOLVED, ITERATIONS, INFEASIBLE, UNSETTLED, INACCURATE = range(5)


class Status(IntEnum):
    """How a solver ended.  In every case x is finite, and the residual says how far it is from a solution."""

    SOLVED = SOLVED
    ITERATIONS = ITERATIONS  # it stopped at its limit of iterations or pivots
    INFEASIBLE = INFEASIBLE  # there is no solution, or none was found on the method's way (a ray)
    UNSETTLED = UNSETTLED  # friction limits that follow the normals did not settle
    INACCURATE = INACCURATE  # it ended, but rounding or an indefinite A keeps the residual above the tolerance
