"""Boxed linear complementarity problems, A x = b + w, that stand alone.

    solution = featherlane.lcp.solve(A, b, lo, hi, findex)          by Dantzig's method
    solution = featherlane.lcp.solve(A, b, lo, hi, method="pgs")    by another one
    solutions = featherlane.lcp.solve_batch(A, b, lo, hi, findex)   A (N, n, n), b (N, n): many at once

`Problem` checks its parts and measures a point; `Solver` keeps room for many problems.  The same kernels solve the
contacts of a step under the contact model `lcp`.
"""

from featherlane.lcp.batch import BatchSolution, solve_batch
from featherlane.lcp.problem import Problem, ProblemError
from featherlane.lcp.solve import Solution, Solver, methods, solve
from featherlane.solver.lcp.method import OptionError
from featherlane.solver.lcp.status import Status

__all__ = [
    "BatchSolution",
    "OptionError",
    "Problem",
    "ProblemError",
    "Solution",
    "Solver",
    "Status",
    "methods",
    "solve",
    "solve_batch",
]
