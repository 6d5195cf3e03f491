"""Newton's method on the minimum map, and interior points: known solutions, Dantzig's method, ODE's records."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.lcp import OptionError, Problem, Status
from scenes.lcp_problems import (
    degenerate_problem,
    enumerate_solutions,
    friction_problem,
    known_problem,
    random_bounds,
    stack_problem,
)
from scenes.ode_problems import recorded_problems

METHODS = ("newton", "interior_point")
RESIDUAL = 1e-10
KNOWN = 1e-9  # of x: a condition of about 10 times the residual
STATUS = {"newton": "consistent", "interior_point": "frozen"}  # friction limits that Dantzig's method has to use


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_known_answers(n, method, rng):
    for _ in range(10):
        problem, x = known_problem(rng, n)
        solution = fl.lcp.solve(problem, method=method)
        assert solution.status == Status.SOLVED and problem.residual(solution.x) <= RESIDUAL
        np.testing.assert_allclose(solution.x, x, rtol=0, atol=KNOWN * max(np.abs(x).max(), 1.0))
        np.testing.assert_allclose(solution.w, problem.multiply(solution.x) - problem.b, rtol=0, atol=1e-12 * n)


@pytest.mark.parametrize("method", METHODS)
def test_the_only_solution_of_all_combinations_is_found(method, rng):
    for _ in range(20):
        M = rng.standard_normal((4, 4))
        problem = Problem(M.T @ M + 0.1 * np.eye(4), rng.standard_normal(4), *random_bounds(rng, 4))
        (expected,) = enumerate_solutions(problem)
        found = fl.lcp.solve(problem, method=method).x
        np.testing.assert_allclose(found, expected, rtol=0, atol=100 * KNOWN * max(np.abs(expected).max(), 1.0))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("contacts", [1, 4, 9])
def test_friction_equals_that_of_dantzig(contacts, method, rng):
    for _ in range(5):
        problem = friction_problem(rng, contacts)
        expected = fl.lcp.solve(problem, friction=STATUS[method])
        found = fl.lcp.solve(problem, method=method)
        assert found.status == Status.SOLVED
        size = max(np.abs(expected.x).max(), np.abs(problem.b).max() / problem.diagonal().max())  # as in the residual
        np.testing.assert_allclose(found.x, expected.x, rtol=0, atol=KNOWN * size)
        np.testing.assert_allclose(found.upper, expected.upper, rtol=0, atol=KNOWN * size)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("cfm", [1e-3, 1e-5])
def test_contacts_that_share_their_load(cfm, method, rng):
    """Towers: redundant contacts; the solution is unique by their softness."""
    for _ in range(5):
        problem = stack_problem(3, cfm, push=2 * rng.standard_normal(18))
        expected = fl.lcp.solve(problem, friction=STATUS[method])
        found = fl.lcp.solve(problem, method=method)
        assert found.status == Status.SOLVED
        np.testing.assert_allclose(found.w, expected.w, rtol=0, atol=1e-8 * np.abs(problem.b).max())


def test_interior_points_solve_degenerate_problems(rng):
    for _ in range(40):
        assert fl.lcp.solve(degenerate_problem(rng, 12), method="interior_point").status == Status.SOLVED


def test_interior_points_solve_the_records_of_ode():
    """Frozen limits, as in ODE, and its answers; those on which ODE fails are solved, too."""
    for recorded in recorded_problems():
        found = fl.lcp.solve(recorded.problem, method="interior_point")
        if recorded.tag == "fail_infeasible":
            assert found.status != Status.SOLVED and np.isfinite(found.x).all()
        else:
            assert found.status == Status.SOLVED and found.residual <= RESIDUAL, recorded.tag


@pytest.mark.parametrize("method", METHODS)
def test_without_a_solution_x_is_finite_and_not_called_solved(method):
    for A, b in (([[0.0]], [1.0]), ([[1.0, -1.0], [-1.0, 1.0]], [1.0, 1.0])):
        solution = fl.lcp.solve(A, b, method=method)
        assert solution.status in (Status.ITERATIONS, Status.INACCURATE)
        assert np.isfinite(solution.x).all() and solution.residual > RESIDUAL


@pytest.mark.parametrize("method", METHODS)
def test_the_limit_of_steps_is_reported(method, rng):
    problem = stack_problem(4, 1e-5, push=2 * rng.standard_normal(24))
    found = fl.lcp.solve(problem, method=method, iterations=1)
    assert found.status == Status.ITERATIONS and found.iterations in (1, 2)
    assert found.residual > RESIDUAL


@pytest.mark.parametrize("method", METHODS)
def test_batches_and_cones_are_refused(method):
    with pytest.raises(OptionError, match="nncg"):
        fl.lcp.solve_batch(np.eye(2)[None], np.ones((1, 2)), method=method)
    with pytest.raises(OptionError, match="friction"):
        fl.lcp.solve(np.eye(2), [1.0, 1.0], method=method, friction="cone")


@pytest.mark.parametrize("solver", ["dantzig", *METHODS])
def test_a_dense_solver_refuses_cones_in_a_step(solver):
    model = fl.bundled("box_stack")
    model.opt.contact_model, model.opt.lcp_solver = "lcp", solver
    with pytest.raises(fl.UnsupportedFeatureError, match="nncg"):
        model.opt.lcp_cone = "cone"


def test_interior_points_refuse_consistent_friction():
    model = fl.bundled("box_stack")
    model.opt.contact_model, model.opt.lcp_solver = "lcp", "interior_point"
    with pytest.raises(fl.UnsupportedFeatureError, match="frozen"):
        model.opt.lcp_friction = "consistent"
