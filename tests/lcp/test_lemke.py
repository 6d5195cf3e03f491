"""Lemke's method: standard LCPs of any matrix, boxed ones through a standard form, rays, cycles, many pivots."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import featherlane as fl
from featherlane.lcp import Problem, ProblemError, Solver, Status
from scenes.lcp_problems import degenerate_problem, exponential_problem, friction_problem, known_problem, stack_problem

KNOWN = 1e-9
RESIDUAL = 1e-10


def solve(M, q, **options):
    return fl.lcp.solve(
        Problem(M, -np.asarray(q, float), lo=0.0, hi=np.inf, symmetric=False), method="lemke", **options
    )


def test_the_textbooks_example():
    solution = solve([[2, 1], [1, 2]], [-5, -6])
    np.testing.assert_allclose(solution.x, [4 / 3, 7 / 3], rtol=1e-15)
    np.testing.assert_array_equal(solution.w, 0.0)
    assert solution.status == Status.SOLVED


def test_a_trivial_problem_takes_no_pivot():
    assert solve(np.eye(3), [1.0, 0.0, 2.0]).iterations == 0
    assert solve(np.zeros((0, 0)), []).status == Status.SOLVED


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 20))
def test_matrices_that_are_not_symmetric_are_solved(seed, n):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((n, n))
    M = B @ B.T + 0.1 * np.eye(n) + 3 * (B - B.T)  # positive definite
    solution = solve(M, rng.standard_normal(n))
    assert solution.status == Status.SOLVED
    assert (solution.x >= 0).all()
    scale = max(np.abs(solution.x).max(), 1.0) * n
    assert (solution.w >= -KNOWN * scale).all()
    assert abs(solution.x @ solution.w) <= KNOWN * scale**2


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 14))
@example(seed=1615235757, n=8)  # rows that depend on free ones: their rest is rounding
@example(seed=288, n=9)
def test_degenerate_problems_end(seed, n):
    problem = degenerate_problem(np.random.default_rng(seed), n)
    solution = fl.lcp.solve(problem, method="lemke")
    assert np.isfinite(solution.x).all()
    assert solution.status == Status.SOLVED


@pytest.mark.parametrize("n", [1, 5, 8, 24, 60])
def test_boxes_and_free_rows_go_by_a_standard_form(n, rng):
    solver = Solver(n, "lemke")
    for _ in range(5):
        problem, x = known_problem(rng, n)
        solution = solver.solve(problem)
        assert solution.status == Status.SOLVED
        np.testing.assert_allclose(solution.x, x, rtol=0, atol=KNOWN * max(np.abs(x).max(), 1e-3))


@pytest.mark.parametrize("boxes", [1, 3])
def test_friction_has_consistent_limits(boxes, rng):
    problem = stack_problem(boxes, 1e-5, push=3 * rng.standard_normal(6 * boxes))
    solution = fl.lcp.solve(problem, method="lemke")
    assert solution.status == Status.SOLVED
    assert problem.residual(solution.x) <= RESIDUAL


def test_added_limits_count(rng):
    problem = friction_problem(rng, 4)
    wider = Problem(problem.matrix, problem.b, lo=problem.lo, hi=problem.hi, findex=problem.findex, add=0.4)
    x = fl.lcp.solve(wider, method="pgs", tolerance=1e-11).x
    np.testing.assert_allclose(fl.lcp.solve(wider, method="lemke").x, x, rtol=0, atol=1e-8)


def test_a_ray_is_reported():
    for M, q in (([[-1.0]], [-1.0]), ([[0.0]], [-1.0]), ([[1.0, -1.0], [-1.0, 1.0]], [-1.0, -1.0])):
        solution = solve(M, q)
        assert solution.status == Status.INFEASIBLE
        assert np.isfinite(solution.x).all()
        assert solution.residual > RESIDUAL


def test_murtys_problem_takes_a_power_of_two_pivots():
    """K. G. Murty (1978): M lower triangular of ones and twos, q = -1: each further row doubles the path."""
    count = {}
    for n in (6, 7, 8, 12):
        solution = solve(np.eye(n) + 2 * np.tril(np.ones((n, n)), -1), -np.ones(n))
        assert solution.status == Status.SOLVED
        np.testing.assert_array_equal(solution.x, np.eye(n)[0])
        count[n] = solution.iterations
    assert count == {n: 2**n for n in count}


def test_a_limit_of_pivots_ends_with_a_status():
    n = 20
    solution = solve(np.eye(n) + 2 * np.tril(np.ones((n, n)), -1), -np.ones(n), iterations=500)
    assert solution.status == Status.ITERATIONS
    assert solution.iterations == 500
    assert np.isfinite(solution.x).all()


def test_an_exponential_case_of_other_methods_ends():
    problem = exponential_problem(12)
    solution = fl.lcp.solve(problem, method="lemke")
    assert solution.status == Status.SOLVED
    np.testing.assert_allclose(solution.x, fl.lcp.solve(problem).x, rtol=1e-9)


def test_problems_without_a_standard_form_are_refused():
    with pytest.raises(ProblemError, match="row 1 has an infinite"):
        fl.lcp.solve(np.eye(2), [1, 1], lo=0.0, hi=np.inf, findex=[-1, 0], method="lemke")
    with pytest.raises(ProblemError, match="row 0"):
        fl.lcp.solve(np.eye(2), [1, 1], lo=[-1, 0], hi=[1, 0.5], findex=[-1, 0], method="lemke")
