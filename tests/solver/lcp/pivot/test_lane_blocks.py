"""Block pivoting in lanes: each world's factor and result, independent of the other worlds of the tile."""

import numpy as np
import pytest

from featherlane.engine.dynamics.sparse.packed_factor import triangle_index
from featherlane.engine.model.enums import FROZEN
from featherlane.engine.solver.lcp.pivot import dantzig, lane_blocks
from featherlane.lcp import Problem, Status
from scenes.lcp_problems import friction_problem, known_problem
from scenes.lcp_records import empty, lane_record, one_record

KNOWN = 1e-9  # of x: a diagonal of n keeps A well conditioned
PASSES = 30


def tile(*problems):
    p = lane_record(*problems)
    p.lcp_L = empty(p.width, nlcpA=p.lcp.n[0] ** 2).lcp_L
    return p


def known_problems(rng, n, width):
    problems, answers = zip(*(known_problem(rng, n) for _ in range(width)), strict=True)
    return problems, np.stack(answers, 1)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 11, 14])
def test_known_answers(n, rng):
    problems, known = known_problems(rng, n, 4)
    p = tile(*problems)
    lane_blocks.lane_blocks(p, PASSES)
    solved = p.lcp.status.array[0] == Status.SOLVED
    assert solved.sum() >= 3 and (p.lcp.niter.array[0] >= 1).all()
    assert (p.lcp.niter.array[0, solved] < PASSES).all()  # it stops by itself
    np.testing.assert_allclose(p.lcp.x.array[:, solved], known[:, solved], atol=KNOWN)
    for lane, problem in enumerate(problems):
        w = problem.matrix @ p.lcp.x.array[:, lane] - problem.b
        np.testing.assert_allclose(p.lcp.w.array[:, lane], w, atol=KNOWN)


def test_a_world_is_bitwise_equal_alone(rng):
    problems, _ = known_problems(rng, 9, 4)
    together = tile(*problems)
    lane_blocks.lane_blocks(together, PASSES)
    for lane, problem in enumerate(problems):
        alone = tile(problem)
        lane_blocks.lane_blocks(alone, PASSES)
        for name in ("x", "w", "niter", "status", "residual"):
            a, b = (getattr(p.lcp, name).array for p in (together, alone))
            np.testing.assert_array_equal(a[:, lane], b[:, 0], err_msg=name)


def test_friction_is_bounded_by_the_normals_without_it(rng):
    problems = [friction_problem(rng, 3) for _ in range(4)]
    p = tile(*problems)
    p.lcp.add.array[1] = 0.1
    lane_blocks.lane_blocks(p, PASSES)
    for lane, problem in enumerate(problems):
        add = np.where(np.arange(9) == 1, 0.1, 0.0)
        r1 = one_record(
            Problem(problem.matrix, problem.b, lo=problem.lo, hi=problem.hi, findex=problem.findex, add=add)
        )
        dantzig.principal_pivoting(r1, FROZEN, 0, dantzig.BLOCK)
        np.testing.assert_allclose(p.lcp.x.array[:, lane], r1.one.x.array[:9], atol=KNOWN)
        np.testing.assert_allclose(p.lcp.lower.array[:, lane], r1.one.lower.array[:9], atol=KNOWN)
        np.testing.assert_allclose(p.lcp.upper.array[:, lane], r1.one.upper.array[:9], atol=KNOWN)
    assert (p.lcp.status.array == Status.SOLVED).all()


def free(problem, s):
    """Returns A of the free rows, and 1 at the others."""
    on = s == lane_blocks.OPEN
    return np.where(np.outer(on, on), problem.matrix, np.eye(problem.n)), on


@pytest.mark.parametrize("n", [1, 2, 5, 6, 11, 12])
def test_the_factor_is_that_of_each_worlds_free_rows(n, rng):
    problems, _ = known_problems(rng, n, 4)
    p = tile(*problems)
    sides = p.lcp_state.array[...] = rng.integers(-1, 2, (n, 4)) * (rng.random((n, 4)) < 0.5)
    w = p.lcp.w.array[...] = rng.standard_normal((n, 4))
    active = np.nonzero((sides == 0).any(1))[0]
    m = lane_blocks.list_active_rows(p)
    assert p.lcp.order.array[:m].tolist() == active.tolist()
    lane_blocks.factor_active_rows(p, m, 1e-13)
    L = np.zeros((4, m, m))
    for a in range(m):
        at = triangle_index(a, 0)
        L[:, a, :a] = p.lcp_L.array[at : at + a].T
    lane_blocks.find_free_step(p, m)
    for lane, problem in enumerate(problems):
        A, on = free(problem, sides[:, lane])
        here = on[active]
        D = p.lcp_L.array[[triangle_index(a, a) for a in range(m)], lane]  # 1 / D
        assert (D[~here] == 0.0).all() and (D[here] > 0.0).all()
        l = L[lane][np.ix_(here, here)] + np.eye(here.sum())
        np.testing.assert_allclose(l / D[here] @ l.T, A[np.ix_(on, on)], atol=KNOWN)
        np.testing.assert_allclose(
            p.lcp.dx.array[:, lane], np.where(on, -np.linalg.solve(A, np.where(on, w[:, lane], 0.0)), 0.0), atol=KNOWN
        )


def test_a_pivot_at_rounding_level_fixes_its_row():
    p = tile(Problem(np.ones((2, 2)), [1.0, 1.0], lo=-9.0, hi=9.0))
    p.lcp.w.array[:, 0] = -1.0
    m = lane_blocks.list_active_rows(p)
    lane_blocks.factor_active_rows(p, m, 1e-13)
    lane_blocks.find_free_step(p, m)
    assert p.lcp.dx.array[:, 0].tolist() == [1.0, 0.0]


def test_rows_change_state_if_their_condition_is_violated():
    p = tile(Problem(np.eye(7), np.zeros(7), lo=-1.0, hi=2.0))
    p.lcp.lower.array[:], p.lcp.upper.array[:] = -1.0, 2.0
    p.lcp.lower.array[6] = p.lcp.upper.array[6] = 0.0  # held for any w
    p.lcp_state.array[:, 0] = [0, 0, 0, -1, 1, -1, -1]
    p.lcp.x.array[:, 0] = [-1.5, 2.5, 0.5, -1, 2, -1, 0]
    p.lcp.w.array[:, 0] = [0, 0, 0, -1, 1, 1, -1]
    everywhere = p.lcp.x[0] < 9.0
    assert lane_blocks.exchange_rows(p, everywhere).all()
    assert p.lcp_state.array[:, 0].tolist() == [-1, 1, 0, 0, 0, -1, -1]
    assert p.lcp.dx.array[:, 0].tolist() == [0.5, -0.5, 0, 0, 0, 0, 0]
    w = p.lcp.w.array[:, 0].copy()
    lane_blocks.add_correction(p)
    assert p.lcp.x.array[:2, 0].tolist() == [-1.0, 2.0]
    np.testing.assert_allclose(p.lcp.w.array[:, 0] - w, p.lcp.dx.array[:, 0])
    p.lcp_state.array[:, 0], p.lcp.x.array[:, 0] = 0, -1.5
    assert not lane_blocks.exchange_rows(p, p.lcp.x[0] > 9.0).any() and not p.lcp_state.array.any()


def test_rows_start_in_the_state_given_by_w():
    lo, hi = [0, 0, -1, -1, -1, 0, 0], [1, 1, 0, 0, 1, 1, np.inf]
    p = tile(
        Problem(
            np.eye(7),
            [1, -1, 1, -1, 0, 0, 0.5],
            lo=lo,
            hi=hi,
            findex=[-1, -1, -1, -1, -1, -1, 0],
            add=[0, 0, 0, 0, 0, 0, 0.2],
        )
    )
    p.lcp.x.array[...] = 5.0
    lane_blocks.start_sets(p)
    assert p.lcp_state.array[:, 0].tolist() == [0, -1, 1, 0, 0, -1, 1]
    assert not p.lcp.x.array.any() and (p.lcp.w.array == -p.lcp.b.array).all()
    p.lcp.x.array[0], p.lcp.hi.array[6] = -2.0, 0.5
    lane_blocks.free_friction(p, p.lcp.x[0] < 0.0)
    assert (p.lcp.lower[6], p.lcp.upper[6], p.lcp_state[6]) == (-1.2, 1.2, 0.0)
