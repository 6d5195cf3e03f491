"""Adding rows to the factor together gives the same factor as adding them one by one."""

import numpy as np
import pytest

from featherlane.engine.solver.lcp.pivot import factor, many_rows, scaled_problem
from scenes.lcp_factor import SAME, N, add, free_rows, solution, solved


@pytest.mark.parametrize("before", [0, 1, 5, 8, 11])
def test_many_rows_are_added_at_once(before, rng):
    """Covers a start after a gap, and linearly dependent rows: these wait."""
    r1, A = free_rows(rng)
    order = [int(p) for p in rng.permutation(N)]
    for p in order[:before]:
        add(r1, p)
    if before > 3:
        factor.remove_row(r1, order.pop(1))
        before -= 1
    twin, other = order[-2], order[before]
    place_A = r1.scaled.A.array[: 24 * 24].reshape(-1, 24)
    place_A[twin, :N] = A[twin] = A[other]
    place_A[:N, twin] = A[:, twin] = A[:, other]
    comes = order[before:]
    r1.one.factor.array[r1.one.nfactor[0] : r1.one.nfactor[0] + len(comes)] = comes
    many_rows.append_listed_variables(r1, len(comes))
    inside = [p for p in order if p != twin]
    assert r1.one.state[twin] == scaled_problem.WAITING
    assert (r1.one.state.array[inside] == scaled_problem.BETWEEN).all()
    b = rng.standard_normal(N)
    np.testing.assert_allclose(solution(r1, b), solved(A, inside, b), atol=SAME)


@pytest.mark.parametrize("before", [0, 3, 6, 13])
def test_the_factor_is_that_of_rows_one_by_one(before, rng):
    order = rng.permutation(N)
    seed = int(rng.integers(1 << 30))
    together, alone = (free_rows(np.random.default_rng(seed))[0] for _ in range(2))
    for r1 in (together, alone):
        for p in order[:before]:
            add(r1, int(p))
    together.one.factor.array[before:N] = order[before:]
    many_rows.append_listed_variables(together, N - before)
    for p in order[before:]:
        add(alone, int(p))
    for name in ("L", "D", "factor", "factor_row", "state", "nfactor", "ngap"):
        a, b = (getattr(r1.one, name).array for r1 in (together, alone))
        np.testing.assert_allclose(a[: N * 24], b[: N * 24], atol=SAME, err_msg=name)
