"""Lemke's method: the dictionary satisfies w = A z - b + z0 for any basis, and its solution is complementary."""

import numpy as np
import pytest

from featherlane.engine.solver.lcp.pivot import lemke
from featherlane.engine.solver.lcp.status import INFEASIBLE, ITERATIONS, SOLVED
from featherlane.lcp import Problem
from scenes.lcp_records import one_record

EXACT = 1e-10  # A has a condition of about 10


def standard(A, b):
    return one_record(Problem(A, b, lo=0.0, hi=np.inf, symmetric=False))


def definite(rng, n):
    """Returns A with a definite symmetric part, itself not symmetric."""
    M, S = rng.standard_normal((2, n, n))
    return M @ M.T / n + np.eye(n) + (S - S.T), rng.standard_normal(n)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 20])
def test_w_and_z_are_complementary(n, rng):
    for _ in range(3):
        A, b = definite(rng, n)
        r1 = standard(A, b)
        lemke.lemke(r1, 1000)
        z, w = r1.one.x.array[:n], r1.one.w.array[:n]
        assert r1.one.status[0] == SOLVED and r1.one.residual[0] < EXACT
        np.testing.assert_allclose(w, A @ z - b, atol=EXACT)
        assert z.min() >= 0.0 and w.min() > -EXACT and np.abs(z * w).max() < EXACT
        assert (r1.one.lower.array[:n] == 0.0).all() and np.isposinf(r1.one.upper.array[:n]).all()


def test_ties_do_not_cycle(rng):
    """Uses small integers of low rank: many ratios are equal."""
    for _ in range(20):
        J = rng.integers(-1, 2, (8, 3)).astype(float)
        A, b = J @ J.T, J @ rng.integers(-2, 3, 3)
        r1 = standard(A, b)
        lemke.lemke(r1, 200)
        z = r1.one.x.array[:8]
        assert r1.one.status[0] == SOLVED and np.abs(z - np.maximum(z - (A @ z - b), 0.0)).max() < EXACT


def holds(r1, A, b, rng):
    """Checks the dictionary's equations for any values of the nonbasic variables."""
    n = r1.one.n[0]
    T = r1.scaled.A.array[: n * r1.nlcpone].reshape(n, r1.nlcpone)[:, : n + 1]
    v, others = np.zeros(2 * n + 1), r1.one.position.array[: n + 1]
    v[others] = rng.standard_normal(n + 1)
    basic = r1.one.order.array[:n]
    assert sorted([*basic, *others]) == list(range(2 * n + 1))
    v[basic] = r1.scaled.b.array[:n] + T @ v[others]
    np.testing.assert_allclose(v[:n], A @ v[n:-1] - b + v[-1], atol=EXACT * max(np.abs(v).max(), 1.0))


def test_exchanges_keep_the_equations(rng):
    A, b = definite(rng, 8)
    r1 = standard(A, b)
    lemke.start_dictionary(r1)
    holds(r1, A, b, rng)
    for r, c in ((3, 8), (0, 2), (3, 5), (7, 7), (0, 2)):
        entered, left = r1.one.position[c], r1.one.order[r]
        lemke.exchange_variables(r1, r, c)
        assert (r1.one.order[r], r1.one.position[c]) == (entered, left)
        holds(r1, A, b, rng)
        assert lemke.nonbasic_column(r1, left) == c and lemke.nonbasic_column(r1, entered) == -1


@pytest.mark.parametrize("c", range(9))
def test_the_row_that_leaves_is_the_first_to_reach_zero(c, rng):
    A, b = definite(rng, 8)
    r1 = standard(A, b)
    lemke.start_dictionary(r1)
    r1.scaled.b.array[:8] = 0.1 + rng.random(8)
    q, column = r1.scaled.b.array[:8], r1.scaled.A.array[: 8 * r1.nlcpone].reshape(8, -1)[:, c]
    ratio = np.where(column < 0.0, -q / np.where(column < 0.0, column, -1.0), np.inf)
    r = lemke.leaving_row(r1, c)
    assert r == (int(ratio.argmin()) if np.isfinite(ratio).any() else -1)
    falling = np.nonzero(column < 0.0)[0]
    if len(falling) > 1:  # in a tie, z0 leaves
        q[falling] = -column[falling]
        for i in falling:
            r1.one.order[i] = 16
            assert lemke.leaving_row(r1, c) == i
            r1.one.order[i] = i


def test_equal_ratios_are_decided_by_the_perturbation():
    """q + (eps, eps^2, ...) makes the ratios differ: the row with the smaller one reaches zero first."""
    r1 = standard(-np.ones((3, 3)), -np.ones(3))
    lemke.start_dictionary(r1)
    assert [lemke.lexicographic_coefficient(r1, 1, j) for j in range(3)] == [0.0, 1.0, 0.0]
    assert lemke.reaches_zero_first(r1, 1, 0, 0) and not lemke.reaches_zero_first(r1, 0, 1, 0)
    assert lemke.reaches_zero_first(r1, 2, 1, 0) and lemke.leaving_row(r1, 0) == 2
    lemke.exchange_variables(r1, 2, 0)
    column = [-r1.scaled.A[r1.nlcpone * i] for i in range(3)]
    assert [lemke.lexicographic_coefficient(r1, i, 2) for i in range(3)] == column


def test_the_covering_variable_enters_at_the_lowest_row():
    r1 = standard(np.eye(4), [0.5, 2.0, 2.0, -3.0])
    lemke.start_dictionary(r1)
    assert lemke.first_leaving_row(r1) == 2
    r1 = standard(np.eye(2), [-1.0, 0.0])
    lemke.lemke(r1, 9)
    assert lemke.first_leaving_row(r1) == -1 and r1.one.status[0] == SOLVED and r1.one.niter[0] == 0


def test_a_ray_is_infeasible_and_a_pivot_limit_is_reported():
    r1 = standard(-np.eye(2), [1.0, 1.0])
    lemke.lemke(r1, 99)
    assert r1.one.status[0] == INFEASIBLE and np.isfinite(r1.one.x.array[:2]).all()
    r1 = standard(np.eye(5), np.arange(1.0, 6.0))
    lemke.lemke(r1, 2)
    assert r1.one.status[0] == ITERATIONS and r1.one.niter[0] == 2 and r1.one.residual[0] > 0.1


def test_a_solution_is_refined(rng):
    A, b = definite(rng, 8)
    r1 = standard(A, b)
    lemke.lemke(r1, 99)
    z = r1.one.x.array[:8].copy()
    r1.one.x.array[:8] += 1e-3 * rng.random(8) * (z > 0.0)
    lemke.compute_lemke_w(r1)
    lemke.refine_basic_z(r1)
    np.testing.assert_allclose(r1.one.x.array[:8], z, atol=EXACT)
    assert r1.one.x.array[:8].min() >= 0.0


@pytest.mark.parametrize("large", [1.0, 1e6])
def test_the_residual_is_that_of_a_standard_problem(large, rng):
    A, b = definite(rng, 8)
    r1 = standard(A, b * large)
    z = r1.one.x.array[:8] = rng.random(8)
    lemke.compute_lemke_w(r1)
    a = A.diagonal().max()
    far = np.abs(np.maximum(z - (A @ z - b * large) / a, 0.0) - z).max()
    np.testing.assert_allclose(lemke.lemke_residual(r1), far / max(z.max(), np.abs(b * large).max() / a))
