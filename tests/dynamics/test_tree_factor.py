"""L^T D L: bitwise identical to an elimination by rows, the inverse of the matrix; four columns equal single ones."""

from __future__ import annotations

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.dynamics.inertia.joint_space import inertia_rows
from featherlane.engine.dynamics.sparse.tree_factor import (
    PANEL,
    System,
    TreeRows,
    expand_columns,
    factor_columns,
    multiply_symmetric,
    reduce_columns,
)
from featherlane.engine.lanes import fma
from featherlane.engine.lanes.record import Rows
from featherlane.engine.model.bundle import resolve_name
from featherlane.engine.spatial.types import Vec4
from oracles import smooth

WIDTH = 8
LAW = 1e-14  # times the condition number


def views(*arrays):
    """Returns records of the arrays that uncompiled kernels read and write."""
    return [Rows(a, "") for a in arrays]


def pattern(name):
    """Returns rows of M's pattern, and a positive definite matrix with it."""
    model = fl.load(resolve_name(smooth.XML if name == "all joints" else name))
    rng = np.random.default_rng(0)
    A = rng.uniform(-1, 1, (model.nC, WIDTH))
    for i in range(model.nv):
        A[model.M_rowadr[i] + model.M_rownnz[i] - 1] += 2 * model.nv
    return model, A, rng.standard_normal((model.nv, WIDTH))


def factor_by_rows(n, adr, nnz, col, A, inverse, x):
    """Computes A = L^T D L in place, inverse = 1 / D and x <- A^-1 x, as in the book: rows from the last one on."""
    for k in range(n - 1, -1, -1):
        a, above = adr[k], nnz[k] - 1
        inverse[k] = 1.0 / A[a + above]
        for c in range(above - 1, -1, -1):
            i = col[a + c]
            s = A[a + c] * inverse[k]
            for e in range(c + 1):
                A[adr[i] + e] = fma(-s, A[a + e], A[adr[i] + e])
            A[a + c] = s
            x[i] = fma(-s, x[k], x[i])
    for k in range(n):
        x[k] = x[k] * inverse[k]
        for c in range(adr[k], adr[k] + nnz[k] - 1):
            x[k] = fma(-A[c], x[col[c]], x[k])


@pytest.mark.parametrize("name", ["all joints", "humanoid", "arm", "quadruped"])
@pytest.mark.parametrize("own_diagonal", [0, 1])
def test_column_and_row_factorizations_are_bitwise_equal(name, own_diagonal):
    model, A, f = pattern(name)
    n, adr, nnz, col = model.nv, model.M_rowadr, model.M_rownnz, model.M_colind
    by_rows, x, inverse = A.copy(), f.copy(), np.zeros((n, WIDTH))
    rows = views(by_rows, inverse, x)
    factor_by_rows(n, adr, nnz, col, *rows)
    # with a separate diagonal, the matrix's diagonal is not read
    source, y, D = A.copy(), f.copy(), A[adr + nnz - 1]
    if not own_diagonal:
        source[adr + nnz - 1] = np.nan
    by_columns = np.zeros_like(A)
    system = System(*views(source, by_columns, D, y), inertia=1, own_diagonal=own_diagonal, reduce=1)
    factor_columns(inertia_rows(model), system)
    expand_columns(inertia_rows(model), *system[1:4], most=4)
    for one, other in ((by_rows, by_columns), (inverse, D), (x, y)):
        np.testing.assert_array_equal(one, other)
    for k in range(WIDTH):
        M = smooth.dense(model, A[:, k])
        assert smooth.relative(x[:, k], np.linalg.solve(M, f[:, k])) <= LAW * np.linalg.cond(M)


def scattered_tree(rng, links, n=24):
    """Returns ancestor rows of a tree of chains in any order: rowadr, rownnz, colind, rows below."""
    rows = []
    for i in range(n):
        parent = i - 1 if i % links else int(rng.integers(max(i - 7, -1), max(i, 1)))
        rows.append([*(rows[parent] if 0 <= parent < i else []), i])
    nnz = np.array([len(r) for r in rows])
    below = [[k for k in range(n - 1, i, -1) if i in rows[k]] for i in range(n)]
    return np.cumsum(nnz) - nnz, nnz, np.concatenate(rows), below


def listed_pattern(rng, links):
    """Returns TreeRows of a scattered tree with lists of the rows below, and a positive definite matrix with it."""
    adr, nnz, col, below = scattered_tree(rng, links)
    n, count = len(nnz), np.array([len(b) for b in below])
    A = rng.uniform(-1, 1, (len(col), WIDTH))
    A[adr + nnz - 1] += 2 * n
    return TreeRows(n, adr, nnz, col, count, np.cumsum(count) - count, np.concatenate(below).astype(int), 1), A


@pytest.mark.parametrize("links", [1, 2, 3, 4, 5, 8])
def test_listed_column_and_row_factorizations_are_bitwise_equal(links, rng):
    """Rows of chains are finished four or two at a time."""
    pattern, A = listed_pattern(rng, links)
    n, adr, nnz, col = pattern[:4]
    f = rng.standard_normal((n, WIDTH))
    results = []
    for listed in (0, 1):
        L, x, inverse = A.copy(), f.copy(), np.zeros((n, WIDTH))
        rows = views(L, inverse, x)
        if listed:
            # rows: the factor, 1 / D, the column
            factor_columns(pattern, System(rows[0], *rows, inertia=0, own_diagonal=1, reduce=1))
            expand_columns(pattern, *rows, most=4)
        else:
            factor_by_rows(n, adr, nnz, col, *rows)
        results.append((L, x, inverse))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
    again = f.copy()
    L, x, inverse = views(results[0][0], again, results[0][2])
    reduce_columns(pattern, L, x)
    expand_columns(pattern, L, inverse, x, most=4)
    np.testing.assert_array_equal(again, results[0][1])
    product = np.zeros((n, WIDTH))
    matrix, x, y = views(A, results[0][1], product)
    multiply_symmetric(pattern, matrix, x, y)
    assert smooth.relative(product, f) <= LAW * n


# ---- panels of columns ---------------------------------------------------------------------------------------------
def panel(rng, n):
    """Returns an array (n, PANEL, WIDTH), and a field of Vec4 rows with the same numbers."""
    X = rng.standard_normal((n, PANEL, WIDTH))
    return X, Rows(X.reshape(n * PANEL, WIDTH).copy(), "", Vec4)


@pytest.mark.parametrize("name", ["all joints", "humanoid", "arm", "quadruped"])
def test_panels_on_the_pattern_of_the_inertia_matrix_equal_single_columns(name, rng):
    model, A, _ = pattern(name)
    n, rows = model.nv, inertia_rows(model)
    (X, together), (_, product) = panel(rng, n), panel(rng, n)
    source, factor, D, spare = views(A, np.zeros_like(A), *np.zeros((2, n, WIDTH)))
    factor_columns(rows, System(source, factor, D, spare, inertia=1, own_diagonal=1, reduce=0))
    multiply_symmetric(rows, source, together, product)
    reduce_columns(rows, factor, together)
    expand_columns(rows, factor, D, together, most=2)
    for c in range(PANEL):
        x, y = X[:, c].copy(), np.zeros((n, WIDTH))
        alone, image = views(x, y)
        multiply_symmetric(rows, source, alone, image)
        np.testing.assert_array_equal(product.array.reshape(n, PANEL, WIDTH)[:, c], y)
        reduce_columns(rows, factor, alone)
        expand_columns(rows, factor, D, alone, most=4)
        np.testing.assert_array_equal(together.array.reshape(n, PANEL, WIDTH)[:, c], x)


@pytest.mark.parametrize("links", [1, 2, 3, 4, 5, 8])
def test_panels_on_listed_rows_equal_single_columns(links, rng):
    rows, A = listed_pattern(rng, links)
    n = rows.n
    factor, D, spare = views(A, *np.zeros((2, n, WIDTH)))
    factor_columns(rows, System(factor, factor, D, spare, inertia=0, own_diagonal=1, reduce=1))
    X, together = panel(rng, n)
    reduce_columns(rows, factor, together)
    expand_columns(rows, factor, D, together, most=2)
    for c in range(PANEL):
        x = X[:, c].copy()
        (alone,) = views(x)
        reduce_columns(rows, factor, alone)
        expand_columns(rows, factor, D, alone, most=4)
        np.testing.assert_array_equal(together.array.reshape(n, PANEL, WIDTH)[:, c], x)
