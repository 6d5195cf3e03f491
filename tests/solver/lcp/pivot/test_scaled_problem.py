"""Places: rows in the order in which they are driven, scaled by powers of two, which is exactly reversible."""

import numpy as np
import pytest

from featherlane.engine.solver.lcp.pivot import scaled_problem
from featherlane.lcp import Problem
from scenes.lcp_factor import start
from scenes.lcp_records import one_record

ROUNDING = 1e-13  # of sums of 20 products
N = 11


@pytest.fixture
def problem(rng):
    """Returns rows of all three kinds in any order, in units of very different scale."""
    units = 10.0 ** rng.integers(-6, 7, N)
    J = rng.standard_normal((N, N + 3)) * units[:, None]
    findex, lo, hi = np.full(N, -1), np.full(N, -np.inf), np.full(N, np.inf)
    findex[[2, 7, 8]] = 5, 1, 5
    lo[[1, 4, 5]], hi[[4, 9]] = [-0.3, -1.0, 0.0], [2.0, 0.0]
    return Problem(
        J @ J.T, rng.standard_normal(N) * units, lo=lo, hi=hi, findex=findex, add=np.where(findex >= 0, 0.5, 0.0)
    )


def test_rows_are_ordered_free_bounded_friction(problem):
    r1 = one_record(problem)
    scaled_problem.order_rows(r1)
    assert r1.one.order.array[:N].tolist() == [0, 3, 6, 10, 1, 4, 5, 9, 2, 7, 8]
    assert r1.one.order.array[r1.one.position.array[:N]].tolist() == list(range(N))
    assert r1.one.nconstant[0] == 8


def test_places_scale_by_powers_of_two():
    for a in (1.0, 3.9e-7, 5e12, 2.0**-401, 0.0):
        s = scaled_problem.power_of_two_scale(np.float64(a))
        assert np.frexp(s)[0] == 0.5
        assert a == 0.0 or 0.5 <= s * s * a < 2.0


def test_scaling_is_undone_exactly(problem, rng):
    r1 = start(problem)
    order, s = r1.one.order.array[:N], r1.scaled.scale.array[:N]
    A = r1.scaled.A.array[: 16 * N].reshape(N, 16)
    np.testing.assert_array_equal(A[:, :N] / np.outer(s, s), problem.matrix[np.ix_(order, order)])
    assert (A[:, N:] == 0.0).all() and (r1.scaled.b.array[N:16] == 0.0).all()
    np.testing.assert_array_equal(r1.scaled.b.array[:N] / s, problem.b[order])
    fixed = order[problem.findex[order] < 0]
    np.testing.assert_array_equal(r1.scaled.lo.array[: len(fixed)] * s[: len(fixed)], problem.lo[fixed])
    np.testing.assert_array_equal(r1.scaled.hi.array[: len(fixed)] * s[: len(fixed)], problem.hi[fixed])
    np.testing.assert_array_equal(r1.scaled.hi.array[len(fixed) : N], 0.0)
    x = rng.standard_normal(N)
    r1.scaled.x.array[:N], r1.scaled.w.array[:N] = x, 3.0 * x
    scaled_problem.unload_scaled_problem(r1)
    lower, upper = r1.one.lower.array[order], r1.one.upper.array[order]
    np.testing.assert_array_equal(lower, r1.scaled.lo.array[:N] * s)
    np.testing.assert_array_equal(upper, r1.scaled.hi.array[:N] * s)
    np.testing.assert_array_equal(r1.one.x.array[order], np.clip(x * s, lower, upper))
    np.testing.assert_array_equal(r1.one.w.array[order], 3.0 * x / s)


def test_nothing_is_solved_at_the_start(problem):
    r1 = start(problem)
    r1.scaled.x.array[...] = r1.scaled.w.array[...] = 7.0
    r1.one.nfactor[0], r1.one.ngap[0], r1.one.factor_row[3], r1.one.mark[2] = 4, 1, 2, 2
    scaled_problem.set_zero_solution(r1)
    assert not r1.scaled.x.array.any() and not r1.scaled.w.array.any() and r1.one.nfactor[0] == r1.one.ngap[0] == 0
    assert (r1.one.factor_row.array[:N] == -1).all() and (r1.one.mark.array[:N] == -1).all()
    assert (r1.one.state.array[:N] == scaled_problem.FIXED).all()


@pytest.mark.parametrize("n", [3, 8, 11, 24, 50])
def test_products_equal_those_of_dense_matrices(n, rng):
    J = rng.standard_normal((n, n))
    r1 = start(Problem(J @ J.T + n * np.eye(n), rng.standard_normal(n), lo=-np.inf, hi=np.inf))
    width = -(-n // 8) * 8
    A, b = r1.scaled.A.array[: width * n].reshape(n, width), r1.scaled.b.array[:n]
    x = r1.scaled.x.array[:n] = rng.standard_normal(n) * (rng.random(n) < 0.7)
    for rows in (n, n // 2):
        r1.scaled.dw.array[:] = 1.0
        scaled_problem.add_matrix_product(r1, r1.scaled.x, r1.scaled.dw, rows, width // 8)
        np.testing.assert_allclose(r1.scaled.dw.array[:n], 1.0 + (A[:rows].T @ x[:rows])[:n], atol=ROUNDING * n)
    for i in range(n):
        terms = A[i, :n] * x
        np.testing.assert_allclose(scaled_problem.multiply_row(r1, i), [terms.sum(), np.abs(terms).sum()], rtol=1e-9)
    noise = scaled_problem.recompute_w(r1)
    np.testing.assert_allclose(r1.scaled.w.array[:n], A[:, :n] @ x - b, atol=ROUNDING * n)
    np.testing.assert_allclose(noise, scaled_problem.ROUNDING * (np.abs(x).sum() + np.abs(b).max()))
    assert (np.abs(r1.scaled.w.array[:n] - (A[:, :n] @ x - b)) <= noise).all()


@pytest.mark.parametrize("large", [1.0, 1e9])
def test_the_residual_equals_that_of_the_problem(large, problem, rng):
    """The residual is relative to x, or to a load that is larger."""
    r1, A = start(problem), problem.matrix
    a = A.diagonal().max()
    b = r1.one.b.array[:N] = large * problem.b
    for _ in range(20):
        x = np.linalg.solve(A, b) * (1.0 + 0.1 * rng.standard_normal(N)) + rng.standard_normal(N)
        lower, upper = x - rng.random(N), x + rng.random(N) * 10.0 ** rng.integers(-9, 9, N)
        w = A @ x - b
        for name, value in (("x", x), ("w", w), ("lower", lower), ("upper", upper)):
            getattr(r1.one, name).array[:N] = value
        size = max(np.abs(x).max(), np.abs(b).max() / a)
        expected = np.abs(x - np.clip(x - w / a, lower, upper)).max() / size
        np.testing.assert_allclose(scaled_problem.complementarity_residual(r1), expected)
