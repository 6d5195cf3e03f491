"""The start with all rows at once: rows marked complementary are, and rows move as their x and w require."""

import numpy as np
import pytest

from featherlane.engine.solver.lcp.pivot import block_start, scaled_problem
from featherlane.engine.solver.lcp.pivot.scaled_problem import BETWEEN, FIXED, LOWER, UPPER, WAITING
from featherlane.lcp import Problem
from scenes.lcp_factor import SAME, N, add, correlations, solution, solved, start
from scenes.lcp_problems import exponential_problem, known_problem

KNOWN = 1e-9  # of x: a diagonal of n keeps A well conditioned


def place_problem(r1, n):
    """Returns A, b, lo, hi by place."""
    width = -(-n // 8) * 8
    A = r1.scaled.A.array[: n * width].reshape(n, width)[:, :n]
    return A, *(getattr(r1.scaled, name).array[:n] for name in ("b", "lo", "hi"))


def inside_of(r1):
    return [int(p) for p in r1.one.factor.array[: r1.one.nfactor[0]] if p >= 0]


@pytest.mark.parametrize("n", [1, 5, 8, 19, 30])
def test_it_finds_the_known_answer(n, rng):
    found = 0
    for _ in range(5):
        problem, known = known_problem(rng, n)
        r1 = start(problem)
        if block_start.start_with_all(r1, 0, n):
            found += 1
            A, b, lo, hi = place_problem(r1, n)
            x, w = r1.scaled.x.array[:n], r1.scaled.w.array[:n]
            np.testing.assert_allclose(x, np.clip(x - (A @ x - b), lo, hi), atol=KNOWN)
            np.testing.assert_allclose(w, A @ x - b, atol=KNOWN)
            np.testing.assert_allclose(x * r1.scaled.scale.array[:n], known[r1.one.order.array[:n]], atol=KNOWN)
            state = r1.one.state.array[:n]
            np.testing.assert_array_equal(x[state == LOWER], lo[state == LOWER])
            np.testing.assert_array_equal(x[state == UPPER], hi[state == UPPER])
            assert sorted(inside_of(r1)) == np.nonzero(state == BETWEEN)[0].tolist()
    assert found >= 4  # the start must converge often to be useful


def test_rows_before_the_first_are_complementary_already(rng):
    n = 16
    problem, _ = known_problem(rng, n)
    r1 = start(problem)
    assert block_start.start_with_all(r1, 0, 9)
    A, b, lo, hi = place_problem(r1, n)
    x = r1.scaled.x.array[:n]
    np.testing.assert_allclose(x[:9], np.clip(x - (A @ x - b), lo, hi)[:9], atol=KNOWN)
    assert not x[9:].any()
    assert block_start.start_with_all(r1, 9, n)
    np.testing.assert_allclose(x, np.clip(x - (A @ x - b), lo, hi), atol=KNOWN)


def test_it_gives_up_after_many_rounds():
    r1 = start(exponential_problem(40))
    done = block_start.start_with_all(r1, 0, 40)
    A, b, lo, hi = place_problem(r1, 40)
    x = r1.scaled.x.array[:40]
    far = np.abs(x - np.clip(x - (A @ x - b) / A.diagonal(), lo, hi)).max() / max(np.abs(x).max(), 1.0)
    assert (far < SAME) == bool(done)


def test_inactive_rows_start_at_their_bound():
    lo, hi = [0.0, 0.0, -1.0, -1.0, 0.0, -1.0], [0.0, 1.0, 0.0, 0.0, 1.0, 1.0]
    r1 = start(Problem(np.eye(6), [1.0, -1.0, 1.0, -1.0, 1.0, 0.0], lo=lo, hi=hi))
    block_start.set_start_states(r1, 0, 6)
    assert r1.one.state.array[:6].tolist() == [FIXED, LOWER, UPPER, BETWEEN, BETWEEN, BETWEEN]
    assert inside_of(r1) == [3, 4, 5] and r1.one.niter[0] == 3
    r1 = start(Problem(np.eye(2), [1.0, 1.0], lo=-1.0, hi=1.0))
    block_start.set_start_states(r1, 1, 2)
    assert inside_of(r1) == [1]


def test_free_rows_are_solved_together_with_bounded_rows(rng):
    A, b = correlations(rng), rng.standard_normal(N)
    r1 = start(Problem(A, b, lo=-0.5, hi=0.7))
    inside = [4, 9, 17, 0, 12]
    for p in inside:
        add(r1, p)
    x = np.where(np.arange(N) % 2 == 0, -0.5, 0.7)
    r1.scaled.x.array[:N] = x
    block_start.solve_between(r1, N)
    x[inside] = 0.0
    x += solved(A, inside, b - A @ x)
    np.testing.assert_allclose(r1.scaled.x.array[:N], x, atol=SAME)
    np.testing.assert_allclose(r1.scaled.w.array[:N], A @ x - b, atol=SAME)


@pytest.mark.parametrize(("state", "x", "w", "expected"), [
    (BETWEEN, 0.0, 9.0, BETWEEN), (BETWEEN, -1.1, 9.0, LOWER), (BETWEEN, 2.1, -9.0, UPPER), (LOWER, -1, 0.2, LOWER),
    (LOWER, -1, -0.2, block_start.ENTERING), (LOWER, -1, -0.05, LOWER), (UPPER, 2, -0.2, UPPER),
    (UPPER, 2, 0.2, block_start.ENTERING), (UPPER, 2, 0.05, UPPER), (WAITING, 0, 0.2, block_start.ENTERING),
    (WAITING, 0, -0.2, block_start.ENTERING), (WAITING, 0, 0.05, WAITING), (FIXED, 0, 9.0, FIXED),
    (FIXED, 0, -9.0, FIXED),
])  # fmt: skip
def test_a_rows_state_follows_from_x_and_w(state, x, w, expected):
    r1 = start(Problem(np.eye(3), np.zeros(3), lo=-1.0, hi=2.0))
    r1.one.state[1], r1.scaled.x[1], r1.scaled.w[1] = state, x, w
    assert block_start.required_state(r1, 1, 0.1) == expected
    assert block_start.count_wrong(r1, 3, 0.1) == ((0, -1) if state == expected else (1, 1))
    block_start.change_sides(r1, 2, 3, 0.1)
    assert r1.one.state[1] == state
    block_start.change_sides(r1, 0, 2, 0.1)
    assert r1.one.state[1] == expected
    assert r1.scaled.x[1] == (x if state == expected else {LOWER: -1.0, UPPER: 2.0}.get(expected, x))


@pytest.mark.parametrize(("leaving", "entering"), [([3], [1, 6]), ([0, 3, 7, 11, 19], [1]), ([], [2, 4]), ([8, 9], [])])
def test_the_factor_follows_the_states(leaving, entering, rng):
    """Few rows are exchanged one by one; for many, the factor is rebuilt."""
    A = correlations(rng)
    r1 = start(Problem(A, np.zeros(N), lo=-1.0, hi=1.0))
    outside = [1, 2, 4, 6, 15]
    for p in range(N):
        r1.one.state[p] = LOWER
        if p not in outside:
            add(r1, p)
    for p in leaving:
        r1.one.state[p] = UPPER
    for p in entering:
        r1.one.state[p] = block_start.ENTERING
    assert block_start.count_leaving(r1) == len(leaving)
    assert block_start.count_entering(r1, N) == len(entering) and block_start.count_entering(r1, 2) == (1 in entering)
    block_start.update_factor(r1, N)
    inside = [p for p in range(N) if (p not in outside and p not in leaving) or p in entering]
    assert sorted(inside_of(r1)) == inside and r1.one.niter[0] == len(entering)
    assert all(r1.one.state[p] == BETWEEN for p in inside) and all(r1.one.state[p] == UPPER for p in leaving)
    b = rng.standard_normal(N)
    np.testing.assert_allclose(solution(r1, b), solved(A, inside, b), atol=SAME)
    assert scaled_problem.WAITING not in r1.one.state.array[:N]


def test_the_factor_is_rebuilt_after_the_first_removed_row(rng):
    A = correlations(rng)
    r1 = start(Problem(A, np.zeros(N), lo=-1.0, hi=1.0))
    for p in range(14):
        add(r1, p)
    for p in (5, 7, 13):
        r1.one.state[p] = LOWER
    kept = r1.one.D.array[:5].copy()
    block_start.rebuild_factor(r1)
    inside = [p for p in range(14) if p not in (5, 7, 13)]
    assert inside_of(r1) == inside and r1.one.ngap[0] == 0
    np.testing.assert_array_equal(r1.one.D.array[:5], kept)
    assert [r1.one.factor_row[p] for p in (5, 7, 13)] == [-1, -1, -1]
    b = rng.standard_normal(N)
    np.testing.assert_allclose(solution(r1, b), solved(A, inside, b), atol=SAME)
