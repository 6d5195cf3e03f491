"""Whitened rows: Y Y^T = J M^-1 J^T; rows at once, and rows on a part of the dofs, equal a full column bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

from dynamics.test_tree_factor import LAW, WIDTH, pattern, views
from featherlane.engine.dynamics.inertia.joint_space import factor, inertia_rows
from featherlane.engine.dynamics.sparse.half_solve import (
    SparseRows,
    half_solve_column,
    half_solve_rows,
    store_dof_positions,
)
from oracles import smooth


def ancestors(model, *dofs):
    """Returns these dofs and their ancestors, descending."""
    found = set()
    for i in dofs:
        while i >= 0:
            found.add(i)
            i = int(model.dof_parentid[i])
    return np.array(sorted(found, reverse=True))


@pytest.fixture(scope="module", params=["all joints", "humanoid", "arm", "quadruped"])
def factored(request):
    """Returns (model, M, L, 1 / D)."""
    model, A, _ = pattern(request.param)
    L, inverse = A.copy(), np.zeros((model.nv, WIDTH))
    factor.function(model, *views(A, L, inverse))
    return model, A, L, inverse


def whitened(factored, J, dofs, scaled=1):
    """Returns the rows J (rows, dofs, WIDTH), whitened at once, at an offset within larger buffers."""
    model, _, L, inverse = factored
    n, first, start = len(dofs), 3, 2
    y, at = np.zeros((first + J.size // WIDTH, WIDTH)), np.concatenate([[0] * start, dofs])
    y[first:] = J.reshape(-1, WIDTH)
    L, scale, rows = views(L, np.sqrt(inverse), y)
    block = SparseRows(rows, first, at, start, n, np.full(model.nv, -1))
    store_dof_positions(block)
    half_solve_rows(inertia_rows(model), L, scale, block, scaled, count=len(J))
    return y[first:].reshape(J.shape)


def test_rows_at_once_and_on_a_part_of_the_dofs_equal_a_full_column(factored, rng):
    model, _, L, inverse = factored
    for tips in ([model.nv - 1], [model.nv // 2, model.nv - 1], range(model.nv)):
        dofs = ancestors(model, *tips)
        J = rng.standard_normal((3, len(dofs), WIDTH))
        together = whitened(factored, J, dofs)
        for c in range(3):
            column = np.zeros((model.nv, WIDTH))
            column[dofs] = J[c]
            half_solve_column(inertia_rows(model), *views(L, inverse, column))
            np.testing.assert_array_equal(together[c], column[dofs])
            np.testing.assert_array_equal(together[c], whitened(factored, J[c : c + 1], dofs)[0])


def test_products_of_whitened_rows_are_those_of_the_inverse(factored, rng):
    model, A, _, inverse = factored
    dofs = ancestors(model, *range(model.nv))
    J = rng.standard_normal((3, len(dofs), WIDTH))
    Y, X = whitened(factored, J, dofs), whitened(factored, J, dofs, scaled=0)
    np.testing.assert_array_equal(Y, X * np.sqrt(inverse[dofs]))
    for lane in range(WIDTH):
        M = smooth.dense(model, A[:, lane])[np.ix_(dofs, dofs)]
        expected = J[:, :, lane] @ np.linalg.solve(M, J[:, :, lane].T)
        assert smooth.relative(Y[:, :, lane] @ Y[:, :, lane].T, expected) <= LAW * np.linalg.cond(M)
