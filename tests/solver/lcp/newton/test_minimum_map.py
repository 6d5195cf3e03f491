"""Newton's method on the minimum map reaches its tolerance, also from sides that are all wrong at first."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.solver.lcp.newton import minimum_map
from scenes.lcp_problems import known_problem, stack_problem


@pytest.mark.parametrize("n", [1, 3, 20])
def test_a_known_solution_is_reached_to_its_tolerance(n, rng):
    problem, x = known_problem(rng, n)
    solution = fl.lcp.solve(problem, method="newton")
    assert problem.residual(solution.x) <= minimum_map.TOLERANCE
    np.testing.assert_allclose(solution.x, x, atol=1e-9 * max(np.abs(x).max(), 1.0))


def test_a_problem_with_its_solution_at_all_bounds_ends_after_few_iterations():
    """b is so negative that every row is at its lower bound, 0."""
    problem = fl.lcp.Problem(2.0 * np.eye(5), np.full(5, -3.0), np.zeros(5), np.full(5, np.inf))
    solution = fl.lcp.solve(problem, method="newton")
    assert (solution.x == 0.0).all() and solution.iterations <= 2


def test_a_tower_converges_by_its_safeguard():
    problem = stack_problem(4, 1e-5)
    solution = fl.lcp.solve(problem, method="newton")
    assert problem.residual(solution.x) < 1e-6
