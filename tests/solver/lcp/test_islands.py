"""Islands: rows of two islands share no tree, together they are all rows, and each world has separate islands."""

from types import SimpleNamespace

import numpy as np
import pytest

from featherlane.engine.lanes.record import Rows
from featherlane.engine.model.enums import FROZEN
from featherlane.engine.solver.lcp import islands
from featherlane.engine.solver.lcp.status import ITERATIONS, SOLVED
from scenes.lcp_records import factored_record

N, TREES, DOFS = 14, 14, 2  # rows, trees, dofs of a tree
EXACT = 1e-9  # of forces: the softness is 0.1


def scattered(rng, width=2, room=None):
    """Returns (model, tile): rows of one or two trees, some absent in some worlds; a friction row, one with a force."""
    p, Y, cfm = factored_record(rng, N, TREES * DOFS, width, each=2)
    m = SimpleNamespace(opt_lcp_solver=0, ntree=TREES, dof_treeid=[c // DOFS for c in range(TREES * DOFS)])
    m.opt_lcp_friction, m.opt_lcp_iterations = FROZEN, 50
    there = rng.random((width, N)) < 0.8
    p.lcp.b.array[...] = rng.standard_normal((N, width))
    p.lcp.lo.array[...], p.lcp.hi.array[...] = np.where(there, -0.5, 0.0).T, np.where(there, [[np.inf]], 0.0).T
    # rows 2 k and 2 k + 1 share their columns: 5 is friction of 4, 7 friction of 6 with a constant force
    for i, mu, add in ((5, 0.3, 0.1), (7, 0.0, 0.2)):
        there[:, i] = there[:, i - 1]
        p.lcp.findex[i], p.lcp.lo.array[i], p.lcp.lo.array[i - 1] = i - 1, 0.0, 0.0
        p.lcp.hi.array[i], p.lcp.add.array[i] = mu * there[:, i], add * there[:, i]
    for name, length in (("root", TREES), ("head", TREES), ("next", N)):
        setattr(p.lcp, name, Rows(np.full(length, -7, np.int32), name))
    p.active = Rows(np.ones((1, width)), "active")
    p.nlcpone = room or p.nlcpone
    return m, p, Y, cfm, there


def connected(Y, there):
    """Returns the rows that belong together: the transitive closure of 'share a tree'."""
    trees = (Y.reshape(N, TREES, DOFS) != 0.0).any(2) & there[:, None]
    together = trees @ trees.T
    for _ in range(N):
        together = together @ together
    return together


@pytest.mark.parametrize("seed", range(5))
def test_islands_are_rows_connected_by_trees(seed):
    m, p, Y, _, there = scattered(np.random.default_rng(seed))
    islands.mark_worlds_of_rows(p)
    for lane in range(2):
        islands.list_island_rows(m, p, lane)
        found = []
        for t in range(TREES):
            if p.lcp.head[t] >= 0:
                assert islands.gather_island_rows(p, p.lcp.head[t]) == 1 and islands.first_tree_of_island(p, t) == t
                found.append(p.one.row.array[: p.one.n[0]].tolist())
        together = connected(Y[lane], there[lane])
        expected = {tuple(np.nonzero(row)[0]) for row in together if row.any()}
        assert sorted(map(tuple, found)) == sorted(expected)
        assert sum(map(len, found)) == there[lane].sum()


def test_an_island_problem_has_the_values_of_its_rows(rng):
    _, p, Y, cfm, _ = scattered(rng)
    rows = [1, 4, 5, 6, 7, 9]
    p.one.n[0], p.one.row.array[:6] = 6, rows
    p.lcp.hi.array[rows, 1] = [2.0, np.inf, 0.3, np.inf, 0.0, 5.0]
    p.lcp.add.array[[5, 7], 1] = 0.1, 0.2
    p.lcp.lo.array[rows, 1] = [-0.4, 0.0, 0.0, 0.0, 0.0, -np.inf]
    islands.gather_problem(p, 1)
    np.testing.assert_array_equal(p.one.b.array[:6], p.lcp.b.array[rows, 1])
    assert p.one.findex.array[:6].tolist() == [-1, -1, 1, -1, -1, -1]  # friction with a constant force has fixed bounds
    assert p.one.lo.array[:6].tolist() == [-0.4, 0.0, 0.0, 0.0, -0.2, -np.inf]
    assert p.one.hi.array[:6].tolist() == [2.0, np.inf, 0.3, np.inf, 0.2, 5.0]
    assert p.one.add.array[:6].tolist() == [0.0, 0.0, 0.1, 0.0, 0.0, 0.0]
    A = p.one.A.array[:48].reshape(6, 8)[:, :6]
    np.testing.assert_allclose(A, (Y[1] @ Y[1].T + np.diag(cfm[1]))[np.ix_(rows, rows)])
    before = A.copy()
    islands.soften_rounding(p)
    np.testing.assert_allclose(A - before, np.diag(islands.SOFTNESS32 * before.diagonal()), atol=1e-16)


@pytest.mark.parametrize("seed", range(3))
def test_all_islands_of_all_worlds_are_solved(seed):
    """Solved islands together solve the whole, and resting worlds stay unchanged."""
    m, p, Y, cfm, there = scattered(np.random.default_rng(seed), width=4)
    p.active.array[0, 2] = 0.0
    p.lcp.x.array[...] = p.lcp.niter.array[...] = 7.0
    islands.solve_islands.function(m, p)
    assert (p.lcp.x.array[:, 2] == 7.0).all() and p.lcp.niter.array[0, 2] == 7.0
    for lane in (0, 1, 3):
        on = there[lane]
        x, A = np.where(on, p.lcp.x.array[:, lane], 0.0), Y[lane] @ Y[lane].T + np.diag(cfm[lane])
        assert (p.lcp.x.array[~on, lane] == 7.0).all()
        lo, hi = p.lcp.lo.array[:, lane].copy(), p.lcp.hi.array[:, lane].copy()
        hi[5] = np.inf  # its limit is that of the normal without friction
        step = np.where(on, A @ x - p.lcp.b.array[:, lane], 0.0)
        hi[7], lo[7] = p.lcp.add.array[7, lane], -p.lcp.add.array[7, lane]
        lo[5], hi[5] = min(x[5], 0.0), max(x[5], 0.0)
        inside = np.clip(x - step, lo, hi)
        np.testing.assert_allclose(np.delete(x, 5), np.delete(inside, 5), atol=EXACT)
        assert p.lcp.status.array[0, lane] == SOLVED and p.lcp.residual.array[0, lane] < EXACT
        assert p.lcp.niter.array[0, lane] > 0


def test_an_island_beyond_the_capacity_keeps_its_x(rng):
    m, p, Y, _, there = scattered(rng, width=1, room=4)
    largest = connected(Y[0], there[0]).sum(0).max()
    assert largest > 4
    p.lcp.x.array[...], p.lcp.residual.array[...], p.lcp.status.array[...] = 7.0, 0.25, ITERATIONS
    islands.solve_islands.function(m, p)
    large = connected(Y[0], there[0]).sum(0) > 4
    assert (p.lcp.x.array[large, 0] == 7.0).all() and (p.lcp.x.array[~large & there[0], 0] != 7.0).all()
    assert p.lcp.residual.array[0, 0] == 0.25 and p.lcp.status.array[0, 0] == ITERATIONS
