"""Four columns at once are bitwise identical to four columns one by one."""

from __future__ import annotations

import numpy as np
import pytest

from dynamics.test_tree_factor import pattern, scattered_tree, views
from featherlane.dynamics.inertia.joint_space import inertia_rows
from featherlane.dynamics.sparse.tree_factor import (
    System,
    TreeRows,
    expand_columns,
    factor_columns,
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
    n, rows = model.nv, inertia_rows(model)
    X, together = panel(rng, n)
    L, inverse = np.zeros_like(A), np.zeros((n, WIDTH))
    source, factor, D, spare = views(A, L, inverse, np.zeros((n, WIDTH)))
    factor_columns(rows, 0, System(source, factor, D, spare, inertia=1), own=1, reduce=0)
    product = np.zeros_like(together)
    at, to = views(together, product)
    multiply_panel(rows, source, at, to)
    reduce_panel(rows, 0, factor, at)
    expand_panel(rows, factor, D, at)
    for c in range(PANEL):
        x, y = X[:, c].copy(), np.zeros((n, WIDTH))
        alone, image = views(x, y)
        multiply_rows(rows, source, alone, image)
        np.testing.assert_array_equal(product.reshape(n, PANEL, WIDTH)[:, c], y)
        solve_lt_columns(rows, factor, alone)
        expand_columns(rows, factor, D, alone)
        np.testing.assert_array_equal(together.reshape(n, PANEL, WIDTH)[:, c], x)


@pytest.mark.parametrize("links", [1, 2, 3, 4, 5, 8])
def test_column_products_with_listed_rows(links, rng):
    adr, nnz, col, below = scattered_tree(rng, links)
    n, count, listed = len(nnz), np.array([len(b) for b in below]), np.concatenate(below).astype(int)
    rows = TreeRows(n, adr, nnz, col, count, np.cumsum(count) - count, listed)
    A, inverse = rng.uniform(-1, 1, (len(col), WIDTH)), np.zeros((n, WIDTH))
    A[adr + nnz - 1] += 2 * n
    factor, D, spare = views(A, inverse, np.zeros((n, WIDTH)))
    factor_columns(rows, 1, System(factor, factor, D, spare, inertia=0), own=1, reduce=1)
    X, together = panel(rng, n)
    (at,) = views(together)
    reduce_panel(rows, 1, factor, at)
    expand_panel(rows, factor, D, at)
    for c in range(PANEL):
        x = X[:, c].copy()
        (alone,) = views(x)
        solve_lt_rows(rows, factor, alone)
        expand_columns(rows, factor, D, alone)
        np.testing.assert_array_equal(together.reshape(n, PANEL, WIDTH)[:, c], x)
