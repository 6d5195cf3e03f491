"""Dantzig's method: complementarity on every kind of problem, known solutions, both friction policies."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import featherlane as fl
from featherlane.lcp import Problem, Solver, Status
from scenes.lcp_problems import (
    degenerate_problem,
    enumerate_solutions,
    exponential_problem,
    known_problem,
    stack_problem,
)

RESIDUAL = 1e-10  # residual that the status SOLVED guarantees
KNOWN = 1e-9  # of x: a diagonal of n keeps A well conditioned
SETTLED = 1e-9  # residual with live limits at a fixed point whose limits changed by 1e-12 in the last pass
ROUNDING = 1e-12
STIFF = 1e-6  # of a weight: a softness of 1e-10 has a smaller effect
CFM = (1e-12, 1e-10, 1e-5, 1e-3)


@pytest.fixture(scope="module", params=["block", "rows"])
def solver(request):
    return Solver(300, start=request.param)


@pytest.fixture(scope="module", params=["block", "rows"])
def consistent(request):
    return Solver(120, friction="consistent", iterations=200, start=request.param)


def assert_solved(problem, solution):
    assert solution.status == Status.SOLVED
    assert problem.residual(solution.x, (solution.lower, solution.upper)) <= RESIDUAL
    np.testing.assert_allclose(
        solution.w, problem.multiply(solution.x) - problem.b, atol=1e-9 * np.abs(problem.b).max()
    )


# ---- known solutions -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 16, 31, 64, 100, 177, 300])
def test_known_answers_of_every_size(n, rng, solver):
    problem, x = known_problem(rng, n)
    solution = solver.solve(problem)
    assert_solved(problem, solution)
    np.testing.assert_allclose(solution.x, x, rtol=0, atol=KNOWN * max(np.abs(x).max(), 1e-3))


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_known_answers_without_a_failure(count, rng, solver):
    for _ in range(count):
        problem, x = known_problem(rng, int(rng.integers(1, 60)))
        solution = solver.solve(problem)
        assert_solved(problem, solution)
        np.testing.assert_allclose(solution.x, x, rtol=0, atol=KNOWN * max(np.abs(x).max(), 1e-3))


@pytest.mark.parametrize("n", range(1, 7))
def test_enumeration_finds_the_same(n, rng, solver):
    problem, _ = known_problem(rng, n)
    problem = Problem(problem.matrix, rng.standard_normal(n) * n, lo=problem.lo, hi=problem.hi)
    x = solver.solve(problem).x
    found = enumerate_solutions(problem)
    assert found
    for other in found:
        np.testing.assert_allclose(x, other, atol=ROUNDING)


def test_no_rows_have_a_solution():
    solution = fl.lcp.solve(np.zeros((0, 0)), [])
    assert solution.status == Status.SOLVED
    assert solution.x.shape == (0,)


# ---- laws ------------------------------------------------------------------------------------------------------------
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 14))
def test_degenerate_problems_are_solved(seed, n, solver):
    problem = degenerate_problem(np.random.default_rng(seed), n)
    assert_solved(problem, solver.solve(problem))


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 30))
def test_the_order_of_rows_does_not_matter(seed, n, solver):
    rng = np.random.default_rng(seed)
    problem, x = known_problem(rng, n)
    order = rng.permutation(n)
    A = problem.matrix[np.ix_(order, order)]
    other = solver.solve(Problem(A, problem.b[order], lo=problem.lo[order], hi=problem.hi[order]))
    np.testing.assert_allclose(other.x, x[order], rtol=0, atol=KNOWN * max(np.abs(x).max(), 1e-3))


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 20), power=st.integers(-30, 30))
def test_units_do_not_matter(seed, n, power, solver):
    rng, unit = np.random.default_rng(seed), 4.0**power
    problem = degenerate_problem(rng, n)
    scale = 2.0 ** rng.integers(-20, 20, n)  # in each row's unit
    A, b = problem.matrix * np.outer(scale, scale) * unit, problem.b * scale * unit
    solution, other = solver.solve(problem), solver.solve(Problem(A, b, lo=problem.lo / scale, hi=problem.hi / scale))
    np.testing.assert_array_equal(other.x * scale, solution.x)


def test_reused_buffers_give_bitwise_equal_results(rng, solver):
    problem = stack_problem(3, 1e-5, push=rng.standard_normal(18))
    first = solver.solve(problem)
    solver.solve(known_problem(rng, 77)[0])
    np.testing.assert_array_equal(solver.solve(problem).x, first.x)
    start = solver.method.numbers["start"].names[solver.numbers[2]]
    np.testing.assert_array_equal(fl.lcp.solve(problem, start=start).x, first.x)


def test_threads_do_not_share_buffers(rng):
    problems = [known_problem(rng, int(n)) for n in rng.integers(1, 60, 200)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda pair: fl.lcp.solve(pair[0]).x, problems))
    for x, (problem, _) in zip(found, problems, strict=True):
        np.testing.assert_array_equal(x, fl.lcp.solve(problem).x)


# ---- hard problems ---------------------------------------------------------------------------------------------------
def test_an_exponential_case_ends():
    problem = exponential_problem(20)
    solution = fl.lcp.solve(problem, start="rows")
    assert_solved(problem, solution)
    assert solution.iterations > 1000
    assert_solved(problem, fl.lcp.solve(problem))


@pytest.mark.parametrize("apart", [0.0, 1e-15, 1e-12, 1e-9, 1e-6])
def test_nearly_parallel_rows_are_solved(apart, rng, solver):
    J = rng.standard_normal(20) + apart * rng.standard_normal((30, 20))
    problem = Problem.from_jacobian(J, np.ones(20), cfm=0.0, b=J @ rng.standard_normal(20), lo=0.0, hi=np.inf)
    assert_solved(problem, solver.solve(problem))


@pytest.mark.parametrize("cfm", [0.0, 1e-12, 1e-5])
def test_mass_ratios_of_a_million_are_solved(cfm, rng, solver):
    J = rng.standard_normal((40, 24)) * (rng.random((40, 24)) < 0.4)
    mass = 10.0 ** rng.uniform(-3, 3, 24)
    problem = Problem.from_jacobian(J, 1 / mass, cfm=cfm, b=J @ rng.standard_normal(24), lo=0.0, hi=np.inf)
    assert_solved(problem, solver.solve(problem))


def test_redundant_equalities_are_solved_and_contradictions_reported(rng, solver):
    J = rng.standard_normal((4, 6))
    J = np.vstack([J, J[0] + J[1], 2 * J[2]])
    A, v = J @ J.T, rng.standard_normal(6)
    solution = solver.solve(Problem(A, J @ v, lo=-np.inf, hi=np.inf))
    assert_solved(Problem(A, J @ v, lo=-np.inf, hi=np.inf), solution)
    b = J @ v
    b[5] += 1.0  # row 5 is no longer twice row 2
    solution = solver.solve(Problem(A, b, lo=-np.inf, hi=np.inf))
    assert solution.status == Status.INFEASIBLE
    assert np.isfinite(solution.x).all()
    assert solution.residual > RESIDUAL


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 12))
def test_contradictions_are_reported_by_numbers_of_moderate_size(seed, n, solver):
    """Rounding makes the pivot of a dependent row tiny; it must not be used for a force."""
    rng = np.random.default_rng(seed)
    J = rng.standard_normal((n, n + 2))
    J = np.vstack([J, rng.standard_normal((2, n)) @ J])
    b = J @ rng.standard_normal(n + 2)
    b[-1] += 1.0
    solution = solver.solve(Problem(J @ J.T, b, lo=-np.inf, hi=np.inf))
    assert solution.status == Status.INFEASIBLE
    without = np.linalg.lstsq(J @ J.T, b, rcond=1e-10)[0]
    assert np.abs(solution.x).max() <= 1e6 * (np.abs(without).max() + 1.0)


def test_a_slack_of_rounding_error_is_reported():
    """Rows that contradict each other except for e: x is 1 / (2 e), and w has the rounding error of that."""
    for e, statuses in ((1e-9, [Status.SOLVED]), (1e-14, [Status.INACCURATE, Status.INFEASIBLE, Status.ITERATIONS])):
        found = fl.lcp.solve([[1.0 + e, -1.0], [-1.0, 1.0 + e]], [1.0, 1.0], lo=0.0, hi=np.inf)
        assert found.status in statuses and np.isfinite(found.x).all()
        assert (found.residual > 1e-3) == (e < 1e-12)


def test_a_force_without_effect_is_bounded_or_reported(solver):
    assert fl.lcp.solve([[0.0]], [1.0], lo=0.0, hi=2.0).x == [2.0]
    assert fl.lcp.solve([[0.0]], [-1.0], lo=0.0, hi=2.0).x == [0.0]
    assert fl.lcp.solve([[0.0]], [1.0], lo=0.0, hi=np.inf).status == Status.INFEASIBLE


def test_an_indefinite_matrix_ends_with_a_status(rng, solver):
    for _ in range(50):
        n = int(rng.integers(2, 20))
        A = rng.standard_normal((n, n))
        solution = solver.solve(Problem(A + A.T, rng.standard_normal(n), lo=-1.0, hi=1.0))
        assert np.isfinite(solution.x).all()
        assert (solution.status == Status.SOLVED) == (solution.residual <= RESIDUAL)


# ---- friction --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("cfm", CFM)
@pytest.mark.parametrize("boxes", [1, 2, 5, 10])
def test_boxes_that_touch_exactly_stand(boxes, cfm, solver):
    problem = stack_problem(boxes, cfm)
    solution = solver.solve(problem)
    assert_solved(problem, solution)
    carried, weight = solution.x[::3].reshape(boxes, 4).sum(1), 9.81 * (boxes - np.arange(boxes))
    assert (carried <= weight * (1 + STIFF)).all()  # softness reduces the carried load
    if cfm <= 1e-10:
        np.testing.assert_allclose(carried, weight, rtol=STIFF)


@pytest.mark.parametrize("cfm", CFM)
def test_a_tower_that_is_pushed_is_solved(cfm, rng, solver):
    """Many rows change sides more than once, so that the factor has gaps and is rebuilt."""
    for _ in range(4):
        problem = stack_problem(16, cfm, push=2.0 * rng.standard_normal(96))
        assert_solved(problem, solver.solve(problem))


def test_frozen_limits_follow_from_the_normals_without_friction(rng, solver):
    problem = stack_problem(3, 1e-5, push=3 * rng.standard_normal(18))
    normal = problem.findex < 0
    A = problem.matrix[np.ix_(normal, normal)]
    without = solver.solve(Problem(A, problem.b[normal], lo=0.0, hi=np.inf)).x
    solution = solver.solve(problem)
    limits = problem.hi[~normal] * np.repeat(without, 2)
    np.testing.assert_allclose(solution.upper[~normal], limits, rtol=0, atol=ROUNDING * limits.max())
    np.testing.assert_array_equal(solution.lower[~normal], -solution.upper[~normal])


@pytest.mark.parametrize("mu", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("boxes", [1, 3, 6])
def test_consistent_limits_are_a_fixed_point(boxes, mu, rng, consistent):
    problem = stack_problem(boxes, 1e-5, mu, push=3 * rng.standard_normal(6 * boxes))
    solution = consistent.solve(problem)
    assert_solved(problem, solution)
    assert problem.residual(solution.x) <= SETTLED


def test_rough_contacts_stick_and_lift_off(rng, consistent):
    """mu = inf: with a normal force friction is unlimited, without one it is zero."""
    for _ in range(20):
        problem = stack_problem(3, 1e-5, np.inf, push=8 * rng.standard_normal(18))
        solution = consistent.solve(problem)
        assert np.isfinite(solution.x).all()
        friction = np.flatnonzero(problem.findex >= 0)
        pressed = solution.x[problem.findex[friction]] > 0
        if solution.status == Status.SOLVED:
            np.testing.assert_array_equal(solution.x[friction[~pressed]], 0.0)
            np.testing.assert_allclose(solution.w[friction[pressed]], 0.0, atol=1e-9 * np.abs(problem.b).max())


def test_limits_that_cannot_settle_are_reported(rng):
    problem = stack_problem(3, 1e-5, push=3 * rng.standard_normal(18))
    solution = fl.lcp.solve(problem, friction="consistent", iterations=1)
    assert solution.status == Status.UNSETTLED
    assert solution.residual <= RESIDUAL


def test_without_normal_force_there_is_no_friction_for_any_mu(solver):
    problem = Problem(np.eye(3), [-1.0, 5.0, 5.0], lo=0.0, hi=np.inf, findex=[-1, 0, 0])
    np.testing.assert_array_equal(solver.solve(problem).x, 0.0)


def test_a_pull_scales_friction_by_its_size_and_add_is_added(solver):
    problem = Problem(np.eye(2), [-4.0, 9.0], lo=[-np.inf, 0.0], hi=[np.inf, 0.5], findex=[-1, 0], add=[0.0, 1.0])
    np.testing.assert_array_equal(solver.solve(problem).x, [-4.0, 3.0])
