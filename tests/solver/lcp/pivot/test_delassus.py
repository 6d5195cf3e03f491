"""The Delassus matrix of an island: J M^-1 J^T and the softness, for its rows and one world only."""

import numpy as np
import pytest

from featherlane.engine.solver.lcp.pivot.delassus import form_delassus
from scenes.lcp_records import factored_record

ROUNDING = 1e-12  # of sums of ten products


@pytest.mark.parametrize("rows", [[3], [0, 1, 2, 5, 9], [*range(8)], [*range(12)]])
@pytest.mark.parametrize("lane", [0, 1])
def test_it_is_the_product_of_the_rows(rows, lane, rng):
    """Tested for any memory left by another island, and padded with zeros to multiples of eight."""
    p, Y, cfm = factored_record(rng, n=12, columns=10, width=2)
    p.one.n[0], p.one.row.array[: len(rows)] = len(rows), rows
    p.scaled.A.array[...] = p.one.A.array[...] = np.nan
    form_delassus(p, lane)
    n, width = len(rows), -(-len(rows) // 8) * 8
    A = p.one.A.array[: n * width].reshape(n, width)
    y = Y[lane][rows]
    np.testing.assert_allclose(A[:, :n], y @ y.T + np.diag(cfm[lane][rows]), atol=ROUNDING)
    np.testing.assert_array_equal(A[:, :n], A[:, :n].T)


def test_entries_after_the_last_row_are_0(rng):
    p, *_ = factored_record(rng, n=11, columns=10, width=1)
    p.one.n[0], p.one.row.array[:11] = 11, range(11)
    form_delassus(p, 0)
    assert not p.one.A.array[: 11 * 16].reshape(11, 16)[:, 11:].any()
