"""Factors, products and substitutions: laws on random trees, dense NumPy as reference, and bad input."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from featherlane import tree
from scenes.parents import parent_arrays, random_inertia, related

# diagonally dominant matrices of at most 12 rows: some tens of rounding errors, relative to the largest entry
ROUNDING = {np.float64: 1e-13, np.float32: 1e-5}
SEEDS = st.integers(0, 2**32 - 1)
DTYPES = st.sampled_from([np.float64, np.float32])


def transpose(matrix):
    return np.swapaxes(matrix, -1, -2)


def assert_close(result, expected, dtype=np.float64):
    assert result.shape == expected.shape
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(result, expected, rtol=0, atol=ROUNDING[dtype] * scale)


def factors(H, parents):
    """Returns each kind of factor with its `unit` flag."""
    return ((tree.ltl(H, parents), False), (tree.ltdl(H, parents)[0], True), (tree.ltdl(H, parents)[0], False))


@given(parent_arrays(), SEEDS, DTYPES)
def test_factors_multiply_to_h(parents, seed, dtype):
    H = random_inertia(parents, seed, leading=(2,), dtype=dtype)
    L = tree.ltl(H, parents)
    assert_close(transpose(L) @ L, H, dtype)
    U, D = tree.ltdl(H, parents)
    assert_close(transpose(U) @ (D[..., None] * U), H, dtype)
    assert L.dtype == U.dtype == D.dtype == dtype


@given(parent_arrays(), SEEDS)
def test_factors_have_h_s_pattern_and_sign(parents, seed):
    H = random_inertia(parents, seed)
    L, (U, D) = tree.ltl(H, parents), tree.ltdl(H, parents)
    off = ~np.tril(related(parents))
    assert not L[off].any() and not U[off].any()
    assert (np.diag(L) > 0).all() and (D > 0).all() and (np.diag(U) == 1).all()


@given(parent_arrays(), SEEDS)
def test_only_the_pattern_s_lower_triangle_is_read_or_written(parents, seed):
    H = random_inertia(parents, seed)
    L, (U, D) = tree.ltl(H, parents), tree.ltdl(H, parents)
    on = np.tril(related(parents))
    poisoned = np.where(on, H, np.nan)
    for overwrite in (False, True):
        factor = tree.ltl(poisoned.copy(), parents, overwrite=overwrite)
        np.testing.assert_array_equal(factor, np.where(on, L, np.nan if overwrite else 0.0))
        packed, pivots = tree.ltdl(poisoned.copy(), parents, overwrite=overwrite)
        np.testing.assert_array_equal(packed[np.tril(on, -1)], U[np.tril(on, -1)])
        np.testing.assert_array_equal(pivots, D)
        # off the pattern: unchanged in place, zero in a new array
        assert np.isnan(packed[~on]).all() if overwrite else not packed[~on].any()
    y = np.arange(1.0, parents.size + 1)
    np.testing.assert_array_equal(tree.mul_h(poisoned, parents, y), tree.mul_h(H, parents, y))
    for operation in (tree.mul_l, tree.mul_lt, tree.solve_l, tree.solve_lt):
        np.testing.assert_array_equal(
            operation(np.where(on, L, np.nan), parents, y), operation(L, parents, y), strict=True
        )


def test_overwrite_factors_in_place():
    parents = np.array([-1, 0, 1, 1])
    H = random_inertia(parents, 3)
    expected, y = np.linalg.solve(H, np.ones(4)), np.ones(4)
    work = H.copy()
    L, D = tree.ltdl(work, parents, overwrite=True)
    assert L is work and np.shares_memory(D, work)
    assert_close(tree.solve_l(L, parents, tree.solve_lt(L, parents, y, unit=True) / D, unit=True), expected)
    work = H.copy()
    assert tree.ltl(work, parents, overwrite=True) is work
    kept = H.copy()
    tree.ltl(H, parents), tree.ltdl(H, parents)
    np.testing.assert_array_equal(H, kept)


@given(parent_arrays(min_size=1), SEEDS, DTYPES, st.sampled_from([(5,), (5, 3)]))
def test_products_and_substitutions_equal_dense(parents, seed, dtype, columns):
    n = parents.size
    H = random_inertia(parents, seed, dtype=dtype)
    y = np.random.default_rng(seed).normal(size=(n, *columns[1:])).astype(dtype)
    kept = y.copy()
    assert_close(tree.mul_h(H, parents, y), H @ y, dtype)
    for L, unit in factors(H, parents):
        assert_close(tree.mul_l(L, parents, y, unit=unit), L @ y, dtype)
        assert_close(tree.mul_lt(L, parents, y, unit=unit), L.T @ y, dtype)
        assert_close(tree.solve_l(L, parents, y, unit=unit), np.linalg.solve(L, y), dtype)
        assert_close(tree.solve_lt(L, parents, y, unit=unit), np.linalg.solve(L.T, y), dtype)
    for factorization in ("ltl", "ltdl"):
        x = tree.solve(H, parents, y, factorization=factorization)
        assert_close(x, np.linalg.solve(H, y), dtype)
        assert x.dtype == dtype
    np.testing.assert_array_equal(y, kept)


@pytest.mark.parametrize("shape", [(4, 3, 6), (4, 3, 6, 2), (6,), (3, 6), (1, 1, 6, 2), (5, 4, 3, 6, 2)])
def test_a_batch_equals_its_members_bit_for_bit(shape):
    parents = tree.from_book((0, 1, 2, 2, 1, 5))
    H = random_inertia(parents, 7, leading=(4, 3))
    y = np.random.default_rng(8).normal(size=shape)
    vector = y.ndim < H.ndim
    columns = y[..., None] if vector else y
    leading = np.broadcast_shapes((4, 3), columns.shape[:-2])
    each_H, each_y = np.broadcast_to(H, (*leading, 6, 6)), np.broadcast_to(columns, leading + columns.shape[-2:])
    for function in (tree.solve, tree.mul_h, tree.mul_l, tree.mul_lt, tree.solve_l, tree.solve_lt):
        result = function(H, parents, y)
        assert result.shape == leading + ((6,) if vector else columns.shape[-2:])
        for world in np.ndindex(leading):
            alone = function(each_H[world], parents, each_y[world])
            np.testing.assert_array_equal(result[world], alone[..., 0] if vector else alone)


def test_fractions_factor_exactly():
    parents = tree.from_book((0, 1, 1, 3))
    L = np.array([[1, 0, 0, 0], [2, 1, 0, 0], [3, 0, 1, 0], [5, 0, 7, 1]], dtype=object) + Fraction(0)
    D = np.array([Fraction(1, 3), Fraction(2), Fraction(3, 7), Fraction(5)])
    H = L.T @ (D[:, None] * L)
    factor, pivots = tree.ltdl(H, parents)
    assert (factor == L).all() and (pivots == D).all()
    b = np.array([Fraction(k, 11) for k in range(4)])
    assert (tree.mul_h(H, parents, tree.solve(H, parents, b)) == b).all()


def test_ltdl_takes_an_indefinite_matrix_and_ltl_refuses_it():
    parents, H = [-1, 0], np.array([[1.0, 2.0], [2.0, -1.0]])
    L, D = tree.ltdl(H, parents)
    np.testing.assert_array_equal(L, [[1, 0], [-2, 1]])
    np.testing.assert_array_equal(D, [5, -1])
    with pytest.raises(np.linalg.LinAlgError):
        tree.ltl(H, parents)


@pytest.mark.parametrize("pivot", [0.0, np.nan])
def test_a_lost_pivot_is_named(pivot):
    H = np.stack([np.eye(3), np.diag([1.0, pivot, 1.0])])
    for factor in (tree.ltl, tree.ltdl):
        with pytest.raises(np.linalg.LinAlgError, match=r"\b1\b"):
            factor(H, [-1, -1, -1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tree.ltl(np.eye(3), [-1, 0]), "H has shape"),
        (lambda: tree.ltl(np.ones(2), [-1, 0]), "H has shape"),
        (lambda: tree.ltl(np.eye(2) * 1j, [-1, 0]), "H has dtype"),
        (lambda: tree.ltl([[1.0]], [-1], overwrite=True), "overwrite"),
        (lambda: tree.ltdl(np.eye(1, dtype=int), [-1], overwrite=True), "overwrite"),
        (lambda: tree.mul_l(np.eye(2), [-1, 0], np.ones(3)), "y has shape"),
        (lambda: tree.mul_h(np.eye(2), [-1, 0], np.ones((3, 2))), "x has shape"),
        (lambda: tree.solve_l(np.eye(2), [-1, 0], 1.0), "y has shape"),
        (lambda: tree.mul_lt(np.ones((4, 2, 2)), [-1, 0], np.ones((3, 2))), "y has shape"),
        (lambda: tree.solve(np.eye(2), [-1, 1], np.ones(2)), r"parents\[1\] is 1"),
        (lambda: tree.solve(np.eye(1), [-1], [1.0], factorization="lu"), "factorization is 'lu'"),
    ],
)
def test_invalid_operands_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
