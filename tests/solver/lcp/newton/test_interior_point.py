"""The interior point method follows its path to the solution, at bounds and between them."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.solver.lcp.newton import interior_point
from scenes.lcp_problems import known_problem


@pytest.mark.parametrize("n", [1, 3, 20])
def test_a_known_solution_is_reached_to_its_tolerance(n, rng):
    problem, x = known_problem(rng, n)
    solution = fl.lcp.solve(problem, method="interior_point")
    assert problem.residual(solution.x) <= interior_point.TOLERANCE
    np.testing.assert_allclose(solution.x, x, atol=1e-9 * max(np.abs(x).max(), 1.0))


def test_a_bound_beyond_the_widest_counts_as_none():
    A, b = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, -2.0])
    far = 10.0 * interior_point.WIDEST
    bounded = fl.lcp.solve(fl.lcp.Problem(A, b, np.full(2, -far), np.full(2, far)), method="interior_point")
    np.testing.assert_allclose(bounded.x, np.linalg.solve(A, b), atol=1e-10)
