"""Copies between problems stored one after the other and problems in lanes."""

import numpy as np
import pytest

from featherlane.engine.lanes.record import address
from featherlane.engine.solver.lcp.lane_memory import ASYMMETRY, DOUBT, RESULTS, load_lanes, store_lanes
from featherlane.lcp import Problem
from scenes.lcp_records import lane_record

N, ROWS, W = 7, 3, 4


@pytest.fixture
def tile(rng):
    M = rng.standard_normal((ROWS, ROWS))
    return lane_record(*W * [Problem(M @ M.T, np.zeros(ROWS), lo=-1.0, hi=1.0)])


def listed(p, at, lane_rows, batch, stride):
    p.lcp_memory.array[at : at + 4] = address(lane_rows.array), address(batch), batch.shape[1], stride


@pytest.mark.parametrize(("first", "count"), [(0, 4), (2, 4), (4, 3), (6, 1)])
def test_problems_go_into_lanes(first, count, tile, rng):
    """Copies each problem's own rows, or shared ones; zeros in lanes without a problem."""
    p, b, lo = tile, rng.standard_normal((N, ROWS)), rng.standard_normal((1, ROWS))
    listed(p, 0, p.lcp.b, b, ROWS)
    listed(p, 4, p.lcp.lo, lo, 0)
    p.lcp.hi.array[...], p.lcp.b.array[...] = 5.0, 7.0
    load_lanes.function(p, first, count)
    expected = np.zeros((ROWS, W))
    expected[:, :count] = b[first : first + count].T
    np.testing.assert_array_equal(p.lcp.b.array, expected)
    expected[:, :count] = lo.T
    np.testing.assert_array_equal(p.lcp.lo.array, expected)
    assert (p.lcp.hi.array == 5.0).all() and p.lcp_memory[DOUBT] == 0


@pytest.mark.parametrize(("first", "count"), [(0, 4), (5, 2)])
def test_results_are_stored_in_their_problems(first, count, tile, rng):
    p, x, wide = tile, np.full((N, ROWS), 9.0), np.full((N, 5), 9.0)
    p.lcp.x.array[...], p.lcp.w.array[...] = rng.standard_normal((2, ROWS, W))
    listed(p, RESULTS, p.lcp.x, x, ROWS)
    listed(p, RESULTS + 4, p.lcp.w, wide[:, :ROWS], 5)
    store_lanes.function(p, first, count)
    expected = np.full((N, ROWS), 9.0)
    expected[first : first + count] = p.lcp.x.array[:, :count].T
    np.testing.assert_array_equal(x, expected)
    expected[first : first + count] = p.lcp.w.array[:, :count].T
    np.testing.assert_array_equal(wide[:, :ROWS], expected)
    assert (wide[:, ROWS:] == 9.0).all()


@pytest.mark.parametrize(("entry", "change", "doubtful"), [
    (3, 0.0, 0), (3, 1e-14, 0), (3, 1e-6, 1), (5, -1e-6, 1), (4, 1e-6, 0), (4, np.nan, 1), (4, np.inf, 1),
])  # fmt: skip
def test_a_matrix_is_checked_on_loading(entry, change, doubtful, tile):
    """Each world's matrix is checked: finite, and symmetric up to rounding."""
    p = tile
    p.lcp_memory[DOUBT] = 1 - doubtful
    p.lcp.A.array[entry, 2] += change
    with np.errstate(invalid="ignore"):
        load_lanes.function(p, 0, W)
    assert p.lcp_memory[DOUBT] == doubtful and 1e-14 < ASYMMETRY < 1e-7


def test_factored_rows_are_not_checked(tile):
    p = tile
    p.lcp.dense[0], p.lcp.A.array[0], p.lcp_memory[DOUBT] = 0, np.nan, 0
    load_lanes.function(p, 0, W)
    assert p.lcp_memory[DOUBT] == 0
