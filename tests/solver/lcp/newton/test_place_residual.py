"""The best iterate is kept: more iterations never return a larger residual."""

import itertools

import pytest

import featherlane as fl
from featherlane.solver.lcp.newton import place_residual
from scenes.lcp_problems import known_problem


@pytest.mark.parametrize("method", ["newton", "interior_point"])
def test_the_residual_does_not_grow_with_the_number_of_iterations(method, rng):
    assert place_residual.keep_best_place and place_residual.restore_best_place
    for _ in range(5):
        problem, _x = known_problem(rng, 12)
        found = [problem.residual(fl.lcp.solve(problem, method=method, iterations=n).x) for n in range(1, 12)]
        assert all(after <= before * (1.0 + 1e-6) + 1e-14 for before, after in itertools.pairwise(found))
