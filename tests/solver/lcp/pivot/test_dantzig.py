"""Dantzig's method internally: a driven row becomes complementary, and the rows before it stay complementary."""

import numpy as np
import pytest

from featherlane.engine.model.enums import CONSISTENT, FROZEN
from featherlane.engine.solver.lcp.pivot import dantzig
from featherlane.engine.solver.lcp.pivot.scaled_problem import BETWEEN, FIXED, LOWER, UPPER, WAITING
from featherlane.engine.solver.lcp.status import INFEASIBLE, SOLVED
from featherlane.lcp import Problem
from scenes.lcp_factor import SAME, N, add, correlations, fill, solution, start
from scenes.lcp_problems import degenerate_problem, enumerate_solutions, friction_problem, known_problem
from scenes.lcp_records import one_record

KNOWN = 1e-9  # of x: a diagonal of n keeps A well conditioned


def solve(problem, policy=FROZEN, start_=dantzig.BY_ROWS):
    r1 = one_record(problem)
    dantzig.principal_pivoting(r1, policy, 100, start_)
    return r1


@pytest.mark.parametrize("n", [1, 4, 8, 9, 16])
def test_every_row_driven_leaves_all_before_it_complementary(n, rng):
    for make in 2 * (lambda: known_problem(rng, n)[0], lambda: degenerate_problem(rng, n)):
        problem = make()
        r1 = start(problem)
        A = problem.matrix[np.ix_(r1.one.order.array[:n], r1.one.order.array[:n])] * np.outer(
            r1.scaled.scale.array[:n], r1.scaled.scale.array[:n]
        )
        b, lo, hi, x = (getattr(r1.scaled, name).array[:n] for name in ("b", "lo", "hi", "x"))
        for i in range(n):
            dantzig.make_complementary(r1, i)
            k, w = i + 1, (A @ x - b)[: i + 1]
            if r1.one.state[i] != WAITING:
                np.testing.assert_allclose(x[:k], np.clip(x[:k] - w, lo[:k], hi[:k]), atol=KNOWN)
                np.testing.assert_allclose(r1.scaled.w.array[:k], w, atol=KNOWN)
            assert not x[k:].any()


@pytest.mark.parametrize("start_", [dantzig.BLOCK, dantzig.BY_ROWS])
@pytest.mark.parametrize("n", [1, 3, 9, 24])
def test_known_answers(n, start_, rng):
    problem, x = known_problem(rng, n)
    r1 = solve(problem, start_=start_)
    assert r1.one.status[0] == SOLVED and r1.one.residual[0] <= dantzig.TOLERANCE
    assert n < 9 or r1.one.niter[0] > 0
    np.testing.assert_allclose(r1.one.x.array[:n], x, atol=KNOWN)


@pytest.mark.parametrize("start_", [dantzig.BLOCK, dantzig.BY_ROWS])
def test_friction_is_bounded_by_the_normals_without_it(start_, rng):
    """Limits are set once, from the solution without friction, as in ODE."""
    for _ in range(4):
        problem = friction_problem(rng, 4)
        A, b, n = problem.matrix, problem.b, problem.n
        normal, friction = np.arange(0, n, 3), np.nonzero(problem.findex >= 0)[0]
        alone = enumerate_solutions(Problem(A[np.ix_(normal, normal)], b[normal], lo=0.0, hi=10.0 * np.abs(b).max()))[0]
        r1 = solve(problem, start_=start_)
        limit = problem.hi[friction] * np.abs(alone[problem.findex[friction] // 3])
        np.testing.assert_allclose(r1.one.upper.array[friction], limit, atol=KNOWN * np.abs(alone).max())
        np.testing.assert_array_equal(r1.one.lower.array[friction], -r1.one.upper.array[friction])
        x = r1.one.x.array[:n]
        inside = np.clip(x - (A @ x - b) / A.diagonal().max(), r1.one.lower.array[:n], r1.one.upper.array[:n])
        np.testing.assert_allclose(x, inside, atol=KNOWN * np.abs(x).max())


def test_consistent_limits_follow_the_normals(rng):
    problem = friction_problem(rng, 4)
    r1 = solve(problem, CONSISTENT)
    x, friction = r1.one.x.array[: problem.n], problem.findex >= 0
    limit = problem.hi[friction] * np.abs(x[problem.findex[friction]])
    np.testing.assert_allclose(r1.one.upper.array[: problem.n][friction], limit, atol=KNOWN * np.abs(x).max())
    assert r1.one.status[0] == SOLVED


@pytest.mark.parametrize("start_", [dantzig.BLOCK, dantzig.BY_ROWS])
def test_leftovers_of_another_problem_do_not_change_results(start_, rng):
    for n in (3, 9, 13, 21):
        problem, _ = known_problem(rng, n)
        fresh, used = (one_record(problem, left) for left in (0.0, np.nan))
        for r1 in (fresh, used):
            dantzig.principal_pivoting(r1, FROZEN, 100, start_)
        for name in ("x", "w", "lower", "upper", "residual"):
            a, b = (getattr(r1.one, name).array[:n] for r1 in (fresh, used))
            np.testing.assert_array_equal(a, b, err_msg=name)


def test_an_infeasible_row_is_reported():
    r1 = solve(Problem(np.zeros((1, 1)), [1.0], lo=0.0, hi=np.inf))
    assert r1.one.status[0] == INFEASIBLE and np.isfinite(r1.one.x[0]) and r1.one.residual[0] > dantzig.TOLERANCE


def pushed(rng):
    """Returns a record before row 12 is driven: some rows between their bounds, others at one; the sets by name."""
    A, n = correlations(rng), 12
    b = rng.standard_normal(N)
    r1 = start(Problem(A, b, lo=-0.5, hi=0.7))
    inside = [1, 4, 6, 10]
    for p in range(n):
        r1.one.state[p], r1.scaled.x[p] = (LOWER, -0.5) if p % 2 == 0 else (UPPER, 0.7)
    for p in inside:
        add(r1, p)
    x = r1.scaled.x.array[: n + 1]
    x[inside] = 0.0
    x[inside] = np.linalg.solve(A[np.ix_(inside, inside)], (b - A[:, : n + 1] @ x)[inside])
    r1.scaled.lo.array[inside], r1.scaled.hi.array[inside] = x[inside] - 0.3, x[inside] + 0.4
    r1.scaled.w.array[: n + 1] = A[: n + 1, : n + 1] @ x - b[: n + 1]
    for p in range(n):  # w with the right signs
        if p not in inside:
            r1.one.state[p] = LOWER if r1.scaled.w[p] > 0 else UPPER
    return r1, A, n, inside


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_direction_keeps_w_0_between_the_bounds(sign, rng):
    r1, A, i, inside = pushed(rng)
    dantzig.reduce_matrix_row(r1, i, r1.one.rhs_entering)
    size, square = dantzig.find_direction(r1, i, sign)
    dx, dw = r1.scaled.dx.array[: i + 1], r1.scaled.dw.array[: i + 1]
    expected = np.zeros(i + 1)
    expected[i], expected[inside] = sign, -sign * np.linalg.solve(A[np.ix_(inside, inside)], A[inside, i])
    np.testing.assert_allclose(dx, expected, atol=SAME)
    np.testing.assert_allclose(dw, A[: i + 1, : i + 1] @ expected, atol=SAME)
    np.testing.assert_allclose([size, square], [np.abs(expected).sum(), expected @ expected])
    r1.scaled.w[i] = -sign * 5.0
    with np.errstate(divide="ignore", invalid="ignore"):
        w, state = r1.scaled.w.array[:i], r1.one.state.array[:i]
        ends = np.where((state == LOWER) & (dw[:i] < 0) | (state == UPPER) & (dw[:i] > 0), -w / dw[:i], np.inf)
        room = np.where(dx > 0, r1.scaled.hi.array[: i + 1], r1.scaled.lo.array[: i + 1]) - r1.scaled.x.array[: i + 1]
        ends[inside] = (room / dx)[inside]
    best, end = dantzig.find_step(r1, i, sign, size, square)
    own, done = room[i] / dx[i], 5.0 / (sign * dw[i])
    np.testing.assert_allclose(best, min(ends.min(), own, done))
    assert end == (int(ends.argmin()) if ends.min() < own else dantzig.AT_BOUND)
    x, w = r1.scaled.x.array[: i + 1].copy(), r1.scaled.w.array[: i + 1].copy()
    dantzig.add_drive_step(r1, i, 0.25)
    np.testing.assert_allclose(r1.scaled.x.array[: i + 1], x + 0.25 * dx)
    np.testing.assert_allclose(r1.scaled.w.array[: i + 1], w + 0.25 * dw)


@pytest.mark.parametrize(("state", "w", "dw", "expected"), [
    (LOWER, 1.0, -2.0, 0.5), (LOWER, 1.0, 2.0, 9.0), (LOWER, -1e-12, -1.0, 0.0), (UPPER, -1.0, 2.0, 0.5),
    (UPPER, -1.0, -2.0, 9.0), (LOWER, 1.0, -0.05, 9.0), (FIXED, 1.0, -2.0, 9.0), (WAITING, 0.0, 0.2, 0.0),
    (WAITING, 0.0, 0.05, 9.0),
])  # fmt: skip
def test_a_row_at_a_bound_ends_a_step_at_w_0(state, w, dw, expected):
    r1 = start(Problem(np.eye(3), np.zeros(3), lo=-1.0, hi=2.0))
    r1.one.state[1], r1.scaled.w[1], r1.scaled.dw[1] = state, w, dw
    assert dantzig.step_to_zero_w(r1, 1, 9.0, 0.1) == expected
    assert expected == 9.0 or dantzig.may_end_step(r1, 0, 9.0, 0.1)


@pytest.mark.parametrize(("dx", "expected"), [(0.5, 3.0), (-0.5, 3.0), (0.1, 9.0), (-0.1, 9.0), (0.0, 9.0)])
def test_a_free_row_ends_a_step_at_its_bound(dx, expected):
    r1 = start(Problem(np.eye(3), np.zeros(3), lo=-1.0, hi=2.0))
    r1.scaled.x[1], r1.scaled.dx[1], r1.one.state[1] = 0.5, dx, BETWEEN
    assert dantzig.step_to_bound(r1, 1, 9.0) == expected
    assert expected == 9.0 or dantzig.may_end_step(r1, 0, 9.0, 0.1)


def test_a_row_that_depends_on_others_is_passed_over():
    A = np.ones((3, 3))
    A[2, 2] = 2.0
    r1 = start(Problem(A, np.zeros(3), lo=-1.0, hi=1.0))
    add(r1, 0)
    for p, enters in ((1, 0), (2, 1)):
        r1.scaled.w[p] = 1e-12
        dantzig.reduce_matrix_row(r1, p, r1.one.rhs)
        assert dantzig.enter_factor(r1, p, r1.one.rhs) == enters
        assert (r1.one.state[p] == BETWEEN, r1.scaled.w[p] == 0.0, r1.one.factor_row[p] >= 0) == (bool(enters),) * 3


def test_a_full_factor_loses_its_gaps_before_a_row_enters(rng):
    A = correlations(rng)
    r1 = start(Problem(A, np.zeros(N), lo=-1.0, hi=1.0))
    fill(r1)
    dantzig.reduce_matrix_row(r1, 8, r1.one.rhs)
    assert dantzig.enter_factor(r1, 8, r1.one.rhs)
    assert r1.one.state[8] == BETWEEN and (r1.one.nfactor[0], r1.one.ngap[0]) == (N, 0)
    b = rng.standard_normal(N)
    np.testing.assert_allclose(solution(r1, b), np.linalg.solve(A, b), atol=SAME)
