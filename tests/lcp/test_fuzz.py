"""Random problems of every kind: see tests/fuzz/lcp.py; and regressions that it found."""

from __future__ import annotations

import os

import numpy as np
import pytest

from featherlane import lcp
from fuzz import lcp as lcp_fuzz

SAMPLE = 300  # problems of the default run: some seconds
BUDGET = int(os.environ.get("FEATHERLANE_LCP_FUZZ", "20000"))  # of the slow one; 1,000,000 take three hours of a core


def test_no_method_reports_solved_for_a_wrong_solution():
    report = lcp_fuzz.fuzz(SAMPLE)
    assert not report.faults, str(report)
    assert report.problems >= SAMPLE - 2 * lcp_fuzz.BATCH and {name for name, _ in report.statuses} == {
        lcp_fuzz.label(*way) for way in lcp_fuzz.WAYS
    }


@pytest.mark.slow
def test_many_problems():
    report = lcp_fuzz.fuzz(BUDGET, seed=1_000_000, processes=os.cpu_count(), say=print)
    print(report)
    assert not report.faults, str(report)


def test_the_fuzz_test_detects_wrong_solutions():
    problem = lcp.Problem(np.diag([1.0, 2.0]), [1.0, -1.0], lo=[0.0, -1.0], hi=[np.inf, 0.25])
    lower, upper = problem.lo, problem.hi
    for x, right in (
        ([1, -0.5], 1),
        ([1 - 1e-6, -0.5], 0),
        ([0, -0.5], 0),
        ([1, -0.4], 0),
        ([1, 0.25], 0),
        ([-1, 0], 0),
    ):
        far = lcp_fuzz.far_from_a_solution(problem, np.array(x, float), lower, upper, 1e-10)
        assert (far <= 1.0) == bool(right), x
    assert lcp_fuzz.far_from_a_solution(problem, np.array([np.nan, 0.0]), lower, upper, 1e-10) == np.inf


# ---- regressions -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", ["pgs", "dantzig", "lemke", "apgd"])
def test_x_is_finite_if_sweeps_diverge(method):
    """An indefinite A: Gauss-Seidel doubles x 200 times a sweep."""
    rng = np.random.default_rng(0)
    A = 1e3 * rng.standard_normal((33, 33))
    problem = lcp.Problem(A + A.T, rng.standard_normal(33), lo=-np.inf, hi=np.inf)
    found = lcp.solve(problem, method=method)
    assert np.isfinite(found.x).all() and np.isfinite(found.w).all() and found.residual >= 0.0
    if method != "lemke":
        batch = lcp.solve_batch(problem.matrix[None], problem.b[None], lo=-np.inf, hi=np.inf, method=method)
        assert np.isfinite(batch.x).all() and (batch.residual >= 0.0).all()


@pytest.mark.parametrize("method", ["pgs", "dantzig", "apgd"])
def test_a_solution_beyond_all_numbers_is_not_solved(method):
    """|b| / a = 1e310 is infinite, and relative to that everything was small."""
    problem = lcp.Problem(np.diag([1e-160, 1e-160]), [1e150, 1e150], lo=[-1.0, -np.inf], hi=[1.0, np.inf])
    found = lcp.solve(problem, method=method, iterations=3)
    assert np.isfinite(found.x).all() and found.status != lcp.Status.SOLVED


def test_a_problem_of_a_batch_does_not_depend_on_those_that_do_not_end():
    """The last refinement once used the factor from before the last exchange of rows for the sets after it."""
    rng = np.random.default_rng([1440, 2])
    n = int(rng.choice(lcp_fuzz.SIZES[1:]))
    A = np.array([lcp_fuzz.matrix(rng, n)[1] for _ in range(11)])
    b = np.array([lcp_fuzz.right_side(rng, a) for a in A])
    bounds = dict(zip(("lo", "hi", "findex", "add"), lcp_fuzz.frictions(rng, *lcp_fuzz.box(rng, n)), strict=True))
    together = lcp.solve_batch(A, b, **bounds)
    for k in range(len(A)):
        alone = lcp.solve_batch(A[k : k + 1], b[k : k + 1], **bounds)
        np.testing.assert_array_equal(alone.x[0], together.x[k])


def test_numbers_too_large_for_a_standard_form_are_named():
    with pytest.raises(lcp.ProblemError, match="standard"):
        lcp.solve(np.eye(2) * 1e10, [1.0, 1.0], lo=-1e300, hi=1e300, method="lemke")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_start_that_is_no_number_is_refused(bad):
    with pytest.raises(lcp.ProblemError, match=r"x\[1\] is"):
        lcp.Solver(2, "pgs").solve(lcp.Problem(np.eye(2), [1.0, 1.0], lo=0.0, hi=np.inf), [0.0, bad])
