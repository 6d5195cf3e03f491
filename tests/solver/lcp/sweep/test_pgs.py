"""Projected Gauss-Seidel: a visit makes its row complementary, and sweeps stop when all rows are."""

import numpy as np
import pytest

from featherlane.engine.solver.lcp.sweep import pgs
from featherlane.engine.solver.lcp.sweep.order import start_order
from featherlane.engine.solver.lcp.sweep.product import sum_factored_rows
from featherlane.engine.solver.lcp.sweep.projection import set_steps
from featherlane.lcp import Status
from scenes.lcp_problems import friction_problem, known_problem
from scenes.lcp_records import factored_record, lane_record

EXACT = 1e-12
KNOWN = 1e-8  # of x at a residual of 1e-10


def limits(problem, x, i):
    if problem.findex[i] < 0:
        return problem.lo[i], problem.hi[i]
    most = problem.hi[i] * abs(x[problem.findex[i]]) + problem.add[i]
    return -most, most


def start(p, cone=0, omega=1.0):
    p.lcp.parameter.array[1] = omega
    set_steps(p, cone)
    sum_factored_rows(p, p.lcp.x)
    start_order(p, 0)
    return p.lcp.parameter[0] > 0.0  # active in all worlds


@pytest.mark.parametrize("omega", [1.0, 1.3])
def test_a_sweep_sets_one_row_after_the_other(omega, rng):
    problems = [friction_problem(rng, 3) for _ in range(2)]
    p = lane_record(*problems)
    p.lcp.x.array[...] = rng.standard_normal((9, 2))
    before, live = p.lcp.x.array.copy(), start(p, omega=omega)
    far = pgs.sweep_rows(p, 0, live)
    for lane, problem in enumerate(problems):
        x, moves = before[:, lane].copy(), []
        for i in range(9):
            u = x[i] - omega * (problem.matrix[i] @ x - problem.b[i]) / problem.matrix[i, i]
            u = np.clip(u, *limits(problem, x, i))
            moves.append(abs(u - x[i]))
            x[i] = u
        np.testing.assert_allclose(p.lcp.x.array[:, lane], x, atol=EXACT)
        np.testing.assert_allclose(far[lane], max(moves), atol=EXACT)


def test_a_converged_world_does_not_change(rng):
    p = lane_record(*(friction_problem(rng, 2) for _ in range(2)))
    p.lcp.x.array[...] = rng.standard_normal((6, 2))
    start(p)
    before = p.lcp.x.array.copy()
    live = np.array([True, False])
    for cone in (0, 1):
        far = pgs.sweep_rows(p, cone, live)
        assert far[1] == 0.0 and far[0] > 0.0
        np.testing.assert_array_equal(p.lcp.x.array[:, 1], before[:, 1])


def test_rows_of_a_cone_are_set_together(rng):
    problem = friction_problem(rng, 2)
    p = lane_record(problem)
    x = p.lcp.x.array[:, 0] = rng.random(6)
    A, b, mu = problem.matrix, problem.b, problem.hi[1]
    x = x.copy()
    live = start(p, cone=1, omega=1.2)
    far = pgs.sweep_rows(p, 1, live)
    y = x.copy()
    for k in (0, 3):
        y[k] = max(y[k] - 1.2 * (A[k] @ y - b[k]) / A[k, k], 0.0)
        t = [k + 1, k + 2]
        u = y[t] - 1.2 * (A[t] @ y - b[t]) / A.diagonal()[t].sum()
        y[t] = u * min(1.0, mu * y[k] / np.linalg.norm(u))
    np.testing.assert_allclose(p.lcp.x.array[:, 0], y, atol=EXACT)
    np.testing.assert_allclose(far[0], np.abs(y - x).max())


@pytest.mark.parametrize("quickstep", [0, 1])
def test_sweeps_end_at_the_known_answer(quickstep, rng):
    problems, known = zip(*(known_problem(rng, 8) for _ in range(2)), strict=True)
    p = lane_record(*problems)
    pgs.solve_pgs.function(p, 300, quickstep, 0, 5)
    np.testing.assert_allclose(p.lcp.x.array, np.stack(known, 1), atol=KNOWN)
    assert (p.lcp.status.array == Status.SOLVED).all() and (p.lcp.niter.array < 300).all()
    assert (p.lcp.seed[0] != 5) == (quickstep == 1 and p.lcp.niter.array.max() > 8)


def test_factored_and_dense_rows_give_equal_results(rng):
    p, Y, cfm = factored_record(rng, 6, 8, 1)
    p.lcp.b.array[...], p.lcp.lo.array[...], p.lcp.hi.array[...] = rng.standard_normal((6, 1)), -0.4, 0.5
    pgs.lcp_pgs(p, 2000, 0, 0)
    x, A = p.lcp.x.array[:, 0], Y[0] @ Y[0].T + np.diag(cfm[0])
    np.testing.assert_allclose(x, np.clip(x - (A @ x - p.lcp.b.array[:, 0]), -0.4, 0.5), atol=KNOWN)
    assert p.lcp.status.array[0, 0] == Status.SOLVED


def test_the_number_of_sweeps_is_the_requested_one(rng):
    p = lane_record(*(known_problem(rng, 6)[0] for _ in range(2)))
    p.lcp.parameter.array[0] = -1.0  # no convergence test
    pgs.lcp_pgs(p, 7, 0, 0)
    assert (p.lcp.niter.array == 7).all()
    p.lcp.x.array[...], p.lcp.parameter.array[0] = 0.0, 1e-12
    pgs.lcp_pgs(p, 2, 0, 0)
    assert (p.lcp.status.array == Status.ITERATIONS).all() and (p.lcp.niter.array == 2).all()
