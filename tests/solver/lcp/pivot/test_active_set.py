"""The active set: from any x within the bounds to the minimum of x^T A x / 2 - b^T x."""

import numpy as np
import pytest

from featherlane.engine.solver.lcp.pivot import active_set, factor, scaled_problem
from featherlane.engine.solver.lcp.status import INFEASIBLE
from featherlane.lcp import Problem
from scenes.lcp_factor import SAME, N, add, correlations, fill, solution, start

LOW, HIGH = -0.5, 0.7


def boxed(A, b, lo=LOW, hi=HIGH):
    return start(Problem(A, b, lo=lo, hi=hi))


def natural(x, A, b, lo=LOW, hi=HIGH):
    """Returns the complementarity error: 0 where x is complementary."""
    return np.abs(x - np.clip(x - (A @ x - b), lo, hi)).max()


@pytest.mark.parametrize("seed", range(5))
def test_it_converges_from_any_feasible_start(seed):
    rng = np.random.default_rng(seed)
    A, b = correlations(rng), 3.0 * rng.standard_normal(N)
    r1 = boxed(A, b)
    for p in range(N):
        active_set.set_to_bound(r1, p, bool(rng.random() < 0.5))
        if p % 3 == 0:  # abandoned between its bounds
            r1.one.state[p], r1.scaled.x[p] = scaled_problem.WAITING, 0.1
    used = active_set.refine_active_set(r1, 10 * N, 1.0)
    x = r1.scaled.x.array[:N]
    assert used < 10 * N and natural(x, A, b) < SAME
    assert active_set.refine_active_set(r1, 10 * N, 1.0) == 1 and natural(x, A, b) < SAME
    for p in range(N):  # states locate x: at a bound or between
        side = {scaled_problem.LOWER: LOW, scaled_problem.UPPER: HIGH}.get(r1.one.state[p], x[p])
        assert x[p] == side and LOW <= x[p] <= HIGH


def test_dependent_rows_move_in_the_null_space(rng):
    J = rng.standard_normal((N, 5))
    A = J @ J.T
    A /= np.sqrt(np.outer(A.diagonal(), A.diagonal()))
    b = A @ rng.standard_normal(N)
    r1 = boxed(A, b)
    for p in range(N):
        active_set.set_to_bound(r1, p, p % 2 == 0)
    assert active_set.refine_active_set(r1, 50 * N, 1.0) < 50 * N
    assert natural(r1.scaled.x.array[:N], A, b) < SAME and r1.one.nfactor[0] - r1.one.ngap[0] <= 5


def test_a_direction_without_a_minimum_is_infeasible():
    r1 = boxed(np.zeros((1, 1)), np.ones(1), 0.0, np.inf)
    active_set.set_to_bound(r1, 0, False)
    assert active_set.refine_active_set(r1, 9, 1.0) < 9
    assert r1.one.status[0] == INFEASIBLE and np.isfinite(r1.scaled.x[0])


def test_a_step_stops_at_the_first_bound(rng):
    A = correlations(rng)
    r1 = boxed(A, np.zeros(N))
    for p in (4, 9, 2):
        add(r1, p)
    r1.scaled.x.array[[4, 9, 2]] = 0.1, -0.2, 0.0
    r1.one.y.array[:3] = 1.0, -1.0, 0.1  # bounds after 0.6, 0.3 and 7
    assert active_set.step_within_bounds(r1, 1.0) == (pytest.approx(0.3), 9)
    np.testing.assert_allclose(r1.scaled.x.array[[4, 9, 2]], [0.4, -0.5, 0.03])
    active_set.leave_factor_at_bound(r1, 9)
    assert r1.one.state[9] == scaled_problem.LOWER and r1.one.factor_row[9] == -1 and r1.scaled.x[9] == LOW
    r1.one.y.array[:3] = 0.1, 0.0, 0.1
    assert active_set.step_within_bounds(r1, 1.0) == (1.0, -1)
    r1.one.y.array[:3] = 0.0
    assert active_set.distance_along(r1, 4, 0.0) == np.inf and active_set.distance_along(r1, 9, -1.0) == 0.0
    r1.scaled.x[4] = HIGH
    assert active_set.distance_along(r1, 4, 0.0) == np.inf and active_set.distance_along(r1, 4, 1.0) == 0.0


def test_one_iteration_suffices_far_from_bounds(rng):
    A, b = correlations(rng), 0.01 * rng.standard_normal(N)
    r1, inside = boxed(A, b), [4, 9, 2, 16]
    r1.scaled.x.array[:N] = 0.1
    for p in inside:
        add(r1, p)
    scaled_problem.recompute_w(r1)
    assert active_set.largest_w_between(r1) == np.abs(r1.scaled.w.array[inside]).max()
    assert active_set.step_towards_zero_w(r1) == 1
    x = r1.scaled.x.array[:N]
    np.testing.assert_allclose((A @ x - b)[inside], 0.0, atol=SAME)
    assert (np.delete(x, inside) == 0.1).all()
    r1.scaled.hi[9] = x[9] - 0.2  # a bound before the target
    r1.scaled.x.array[inside] -= 0.5
    scaled_problem.recompute_w(r1)
    assert (
        active_set.step_towards_zero_w(r1) == 0 and r1.one.state[9] == scaled_problem.UPPER and x[9] == r1.scaled.hi[9]
    )


def test_the_most_violated_row_is_released(rng):
    r1 = boxed(correlations(rng), np.zeros(N))
    for p in range(N):
        active_set.set_to_bound(r1, p, p % 2 == 1)
    r1.scaled.w.array[:N] = np.where(np.arange(N) % 2 == 1, -1.0, 1.0)  # all states already correct
    assert active_set.find_most_wrong(r1, 0.1, False) == -1
    r1.scaled.w.array[[2, 5, 8]] = -0.3, 0.6, -0.2
    assert active_set.find_most_wrong(r1, 0.1, False) == 5 and active_set.find_most_wrong(r1, 0.1, True) == 2
    assert active_set.find_most_wrong(r1, 0.7, False) == -1
    r1.one.state[8], r1.scaled.w[8] = scaled_problem.WAITING, 0.9
    assert active_set.find_most_wrong(r1, 0.1, False) == 8
    r1.one.mark[8] = active_set.GIVEN_UP
    assert active_set.find_most_wrong(r1, 0.1, False) == 5
    active_set.release_from_bound(r1, 5)
    assert r1.one.state[5] == scaled_problem.BETWEEN and r1.one.factor_row[5] == 0


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("first", "expected"), [(0.1, (-0.5, 0.1)), (0.6, (-0.5, 0.6)), (0.71, (-0.49, 0.7))])
def test_a_row_that_depends_on_another_moves_against_it(first, expected, sign):
    """Both move until one meets its bound; if it is the other one, the released row waits."""
    lo, hi = np.sort(sign * np.array([[-0.5, -0.5], [0.8, 0.7]]), axis=0)
    r1 = start(Problem(np.ones((2, 2)), np.zeros(2), lo=lo, hi=hi))
    add(r1, 0)
    active_set.set_to_bound(r1, 1, sign < 0.0)
    r1.scaled.x[0], r1.scaled.w[1] = sign * first, -sign
    active_set.release_from_bound(r1, 1)
    np.testing.assert_allclose(sign * r1.scaled.x.array[:2], expected)
    between, low, high = expected[0] > -0.5, sign * scaled_problem.LOWER, sign * scaled_problem.UPPER
    assert r1.one.state[0] == (scaled_problem.BETWEEN if between else low)
    assert r1.one.state[1] == (high if between else scaled_problem.WAITING)
    assert r1.one.nfactor[0] == between


def test_a_full_factor_loses_its_gaps_before_a_row_is_released(rng):
    A = correlations(rng)
    r1 = boxed(A, np.zeros(N))
    fill(r1)
    active_set.set_to_bound(r1, 8, False)
    r1.scaled.w[8] = -1.0
    active_set.release_from_bound(r1, 8)
    assert r1.one.state[8] == scaled_problem.BETWEEN and (r1.one.nfactor[0], r1.one.ngap[0]) == (N, 0)
    b = rng.standard_normal(N)
    np.testing.assert_allclose(solution(r1, b), np.linalg.solve(A, b), atol=SAME)


def test_two_zero_bounds_fix_a_row_for_any_w(rng):
    r1 = boxed(np.eye(1), np.ones(1), 0.0, 0.0)
    active_set.set_to_bound(r1, 0, True)
    assert r1.one.state[0] == scaled_problem.FIXED and r1.scaled.x[0] == 0.0
    assert factor.eights_per_row(r1) == 1 and active_set.refine_active_set(r1, 5, 1.0) == 1
