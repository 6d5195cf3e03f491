"""Products with A, dense or factored, against dense matrices."""

import numpy as np
import pytest

from featherlane.engine.solver.lcp.sweep import product
from featherlane.lcp import Problem
from scenes.lcp_records import factored_record, lane_record

ROUNDING = 1e-12  # of sums of ten products
COLUMNS = 7


@pytest.fixture(params=[(False, 1), (False, 6), (False, 9), (True, 4), (True, 5), (True, 10), (True, 11)])
def tile(request, rng):
    """Returns (record, A of each world, b)."""
    dense, n = request.param
    if dense:
        M = rng.standard_normal((2, n, n))
        A = M @ M.transpose(0, 2, 1)
        p = lane_record(*(Problem(a, np.zeros(n), lo=-1.0, hi=1.0) for a in A))
    else:
        p, Y, cfm = factored_record(rng, n, COLUMNS, 2)
        A = Y @ Y.transpose(0, 2, 1) + np.array([np.diag(c) for c in cfm])
        p.Y = Y
    p.lcp.b.array[...], p.lcp.x.array[...] = rng.standard_normal((2, n, 2))
    p.lcp.z.array[...] = np.nan
    return p, A, p.lcp.b.array


def times(A, x):
    return np.stack([a @ column for a, column in zip(A, x.T, strict=True)], 1)


def test_multiply_is_the_product(tile):
    p, A, _ = tile
    product.multiply_delassus(p, p.lcp.x, p.lcp.dw)
    np.testing.assert_allclose(p.lcp.dw.array, times(A, p.lcp.x.array), atol=ROUNDING)


def test_w_is_the_product_less_b(tile):
    p, A, b = tile
    product.compute_w(p)
    np.testing.assert_allclose(p.lcp.w.array, times(A, p.lcp.x.array) - b, atol=ROUNDING)


def test_z_follows_a_change_of_a_row(tile):
    p, A, b = tile
    product.sum_factored_rows(p, p.lcp.x)
    for i, change in ((0, 0.5), (len(b) - 1, -2.0)):
        p.lcp.x.array[i] += change
        product.add_row_change(p, i, p.lcp.x[i] * 0.0 + change)
    product.compute_w_from_z(p)  # with the stored z
    np.testing.assert_allclose(p.lcp.w.array, times(A, p.lcp.x.array) - b, atol=ROUNDING)
    if p.lcp.dense[0] == 0:
        z = np.stack([y.T @ column for y, column in zip(p.Y, p.lcp.x.array.T, strict=True)], 1)
        np.testing.assert_allclose(p.lcp.z.array, z, atol=ROUNDING)
