"""Recorded problems: ODE's solutions are reproduced; problems that ODE did not solve, or solved wrongly, are solved."""

import numpy as np
import pytest

from featherlane.lcp import Solver, Status
from scenes.ode_problems import recorded_problems

SAME_X = 1e-9  # of the largest x: A is far from singular (softness 1e-5)
SAME_X_SEMIDEFINITE = 1e-7  # singular A with a unique x
SAME_X_STIFF = 2e-4  # softness 1e-10: three correct solvers differ by 1.6e-4
SAME_AX = 1e-11  # of the largest b
RESIDUAL = 1e-10
RECORDED = recorded_problems()
SOLVED = [r for r in RECORDED if r.solved]


@pytest.fixture(scope="module")
def solver():
    return Solver(max(r.problem.n for r in RECORDED))


def identify(r):
    return f"{r.tag}-{r.problem.n}"


def tolerance(tag):
    if "1e-10" in tag:
        return SAME_X_STIFF
    return SAME_X_SEMIDEFINITE if tag.startswith("psd") else SAME_X


@pytest.mark.parametrize("recorded", SOLVED, ids=identify)
def test_x_equals_ode(recorded, solver):
    solution, problem = solver.solve(recorded.problem), recorded.problem
    assert solution.status == Status.SOLVED
    np.testing.assert_allclose(solution.x, recorded.x, rtol=0, atol=tolerance(recorded.tag) * np.abs(recorded.x).max())
    np.testing.assert_allclose(problem.multiply(solution.x), problem.multiply(recorded.x), rtol=0,
                               atol=SAME_AX * np.abs(problem.b).max())  # fmt: skip


@pytest.mark.parametrize("recorded", RECORDED, ids=identify)
def test_every_problem_that_has_a_solution_gets_one(recorded, solver):
    solution = solver.solve(recorded.problem)
    assert np.isfinite(solution.x).all()
    if recorded.tag == "fail_infeasible":
        assert solution.status == Status.INFEASIBLE
    else:
        assert solution.status == Status.SOLVED
        assert recorded.problem.residual(solution.x, (solution.lower, solution.upper)) <= RESIDUAL


def test_the_recording_contains_problems_that_ode_fails():
    assert {r.tag for r in RECORDED if not r.solved} == {
        "degenerate_touching",
        "fail_infeasible",
        "fail_zero_diag_neg_w",
    }
