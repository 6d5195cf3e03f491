"""Solvers for stand-alone boxed linear complementarity problems (LCPs), A x = b + w.

    solution = featherlane.lcp.solve(A, b, lo=lo, hi=hi, findex=findex)   Dantzig's method
    solution = featherlane.lcp.solve(A, b, lo=lo, hi=hi, method="pgs")    another method
    solutions = featherlane.lcp.solve_batch(A, b, lo=lo, hi=hi)           A (N, n, n), b (N, n): many problems at once

`solve_cone` solves contacts with exact Coulomb friction on cones.  `Problem` checks its inputs and computes the
residual of a point; `Solver` reuses memory for many problems.  The same kernels solve the contacts of a step with the
LCP contact model.
"""

from featherlane.engine.solver.lcp.method import Method, OptionError
from featherlane.engine.solver.lcp.status import Status
from featherlane.lcp.batch import BatchSolution, solve_batch
from featherlane.lcp.cone import cone_residual, solve_cone
from featherlane.lcp.elements import RowElement
from featherlane.lcp.problem import Problem, ProblemError
from featherlane.lcp.register import register
from featherlane.lcp.solve import Solution, Solver, methods, solve

__all__ = [  # noqa: RUF022  in groups
    # problems
    "Problem",
    "ProblemError",
    "RowElement",
    # solvers
    "Method",
    "OptionError",
    "Solver",
    "methods",
    "register",
    "solve",
    "solve_batch",
    # solutions
    "BatchSolution",
    "Solution",
    "Status",
    # contact cones
    "cone_residual",
    "solve_cone",
]
