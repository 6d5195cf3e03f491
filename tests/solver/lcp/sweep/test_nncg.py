"""Nonsmooth nonlinear conjugate gradients: a known solution, and fewer sweeps than projected Gauss-Seidel needs."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.solver.lcp.sweep import nncg
from scenes.lcp_problems import known_problem, stack_problem


@pytest.mark.parametrize("n", [1, 5, 30])
def test_a_known_solution(n, rng):
    problem, x = known_problem(rng, n)
    solution = fl.lcp.solve(problem, method="nncg", iterations=2000, tolerance=1e-12)
    np.testing.assert_allclose(solution.x, x, atol=1e-7 * max(np.abs(x).max(), 1.0))


def test_a_tower_needs_fewer_sweeps_than_pgs():
    assert nncg.OMEGA == 1.0  # over-relaxation does not help conjugate gradients
    problem = stack_problem(6, 1e-5)
    sweeps = {
        method: fl.lcp.solve(problem, method=method, iterations=20000, tolerance=1e-8).iterations
        for method in ("nncg", "pgs")
    }
    assert sweeps["nncg"] < 0.7 * sweeps["pgs"]
