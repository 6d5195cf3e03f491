"""Four columns at once are bitwise identical to four columns one by one."""

from __future__ import annotations

import numpy as np
import pytest

from dynamics.test_tree_factor import pattern, scattered_tree, views
from featherlane.dynamics.sparse.tree_factor import (
    expand_columns,
    factor_columns,
    factor_listed,
    multiply_rows,
    solve_lt_columns,
    solve_lt_rows,
)
from featherlane.dynamics.sparse.tree_panel import PANEL, expand_panel, multiply_panel, reduce_panel

WIDTH = 8


def panel(rng, n):
    """Returns an array (n, PANEL, WIDTH), and the same as rows of a panel."""
    X = rng.standard_normal((n, PANEL, WIDTH))
    return X, X.reshape(n * PANEL, WIDTH).copy()


@pytest.mark.parametrize("name", ["all joints", "humanoid", "arm", "quadruped"])
def test_columns_on_the_pattern_of_the_inertia_matrix(name, rng):
    model, A, _ = pattern(name)
    n, adr, nnz, col, below = model.nv, model.M_rowadr, model.M_rownnz, model.M_colind, model.M_below
    X, together = panel(rng, n)
    L, inverse = np.zeros_like(A), np.zeros((n, WIDTH))
    source, factor, D, spare = views(A, L, inverse, np.zeros((n, WIDTH)))
    factor_columns(n, adr, nnz, col, below, source, factor, D, 1, 0, spare)
    product = np.zeros_like(together)
    at, to = views(together, product)
    multiply_panel(n, adr, nnz, col, below, source, at, to)
    reduce_panel(n, adr, nnz, col, below, below, below, 0, factor, at)
    expand_panel(n, adr, nnz, col, factor, D, at)
    for c in range(PANEL):
        x, y = X[:, c].copy(), np.zeros((n, WIDTH))
        alone, image = views(x, y)
        multiply_rows(n, adr, nnz, col, source, alone, image)
        np.testing.assert_array_equal(product.reshape(n, PANEL, WIDTH)[:, c], y)
        solve_lt_columns(n, adr, nnz, below, factor, alone)
        expand_columns(n, adr, nnz, col, factor, D, alone)
        np.testing.assert_array_equal(together.reshape(n, PANEL, WIDTH)[:, c], x)


@pytest.mark.parametrize("links", [1, 2, 3, 4, 5, 8])
def test_columns_where_rows_below_are_listed(links, rng):
    adr, nnz, col, below = scattered_tree(rng, links)
    n, count, listed = len(nnz), np.array([len(b) for b in below]), np.concatenate(below).astype(int)
    first = np.cumsum(count) - count
    A, inverse = rng.uniform(-1, 1, (len(col), WIDTH)), np.zeros((n, WIDTH))
    A[adr + nnz - 1] += 2 * n
    factor, D, spare = views(A, inverse, np.zeros((n, WIDTH)))
    factor_listed(n, adr, nnz, col, count, first, listed, factor, D, spare)
    X, together = panel(rng, n)
    (at,) = views(together)
    reduce_panel(n, adr, nnz, col, count, first, listed, 1, factor, at)
    expand_panel(n, adr, nnz, col, factor, D, at)
    for c in range(PANEL):
        x = X[:, c].copy()
        (alone,) = views(x)
        solve_lt_rows(n, adr, nnz, col, factor, alone)
        expand_columns(n, adr, nnz, col, factor, D, alone)
        np.testing.assert_array_equal(together.reshape(n, PANEL, WIDTH)[:, c], x)
