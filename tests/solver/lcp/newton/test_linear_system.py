"""The linear system of a Newton step: regular, and singular where rows repeat others."""

import numpy as np

import featherlane as fl
from featherlane.solver.lcp.newton import linear_system


def test_a_problem_without_bounds_is_one_linear_system(rng):
    M = rng.standard_normal((6, 6))
    A, b = M @ M.T + np.eye(6), rng.standard_normal(6)
    solution = fl.lcp.solve(fl.lcp.Problem(A, b, np.full(6, -np.inf), np.full(6, np.inf)), method="newton")
    np.testing.assert_allclose(solution.x, np.linalg.solve(A, b), rtol=0, atol=1e-10)


def test_rows_that_repeat_others_leave_a_solution():
    """The pivot of the second of two equal rows is rounding, below the threshold."""
    J = np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 1.0]])
    A, x = J @ J.T, np.array([1.0, 1.0, 2.0])
    assert np.linalg.matrix_rank(A, tol=linear_system.SINGULAR) == 2
    problem = fl.lcp.Problem(A, A @ x, np.zeros(3), np.full(3, np.inf))
    solution = fl.lcp.solve(problem, method="newton")
    assert problem.residual(solution.x) < 1e-10
