"""The residual: 0 at a solution, larger elsewhere, relative to the solution's size."""

import numpy as np
import pytest

from featherlane.engine.model.enums import CONSISTENT
from featherlane.engine.solver.lcp.pivot import dantzig
from featherlane.engine.solver.lcp.status import ITERATIONS, LARGEST, SOLVED
from featherlane.engine.solver.lcp.sweep import residual
from featherlane.engine.solver.lcp.sweep.product import compute_w
from featherlane.lcp import Problem
from scenes.lcp_problems import friction_problem, known_problem
from scenes.lcp_records import lane_record, one_record

EXACT = 1e-12


def natural(problem, x, w):
    """Returns the residual from the definition in status.py, with current limits."""
    limit = problem.hi * np.abs(x[problem.findex]) + problem.add
    limit[problem.add + np.abs(x[problem.findex]) == 0.0] = 0.0
    lower, upper = (np.where(problem.findex >= 0, s * limit, own) for s, own in ((-1, problem.lo), (1, problem.hi)))
    a = problem.matrix.diagonal().max()
    return np.abs(x - np.clip(x - w / a, lower, upper)).max() / max(np.abs(x).max(), np.abs(problem.b).max() / a)


def test_it_is_0_at_a_solution_and_increases_away_from_it(rng):
    problem, x = known_problem(rng, 9)
    p = lane_record(*4 * [problem])
    p.lcp.x.array[...] = x[:, None] + 10.0 ** np.array([-20.0, -6.0, -3.0, -1.0]) * rng.random((9, 1))
    compute_w(p)
    found = residual.lcp_residual(p, p.lcp.x, p.lcp.w, 0)
    assert found[0] < EXACT and (np.diff(found) > 1e-8).all()
    residual.finish(p, 0)
    np.testing.assert_array_equal(p.lcp.residual.array[0], found)
    assert p.lcp.status.array[0].tolist() == [SOLVED, ITERATIONS, ITERATIONS, ITERATIONS]


def test_it_equals_that_of_the_definition(rng):
    problems = [friction_problem(rng, 3) for _ in range(4)]
    for large in (1.0, 1e4):
        p = lane_record(*problems)
        p.lcp.x.array[...] = large * rng.standard_normal((9, 4))
        compute_w(p)
        found = residual.lcp_residual(p, p.lcp.x, p.lcp.w, 0)
        for lane, problem in enumerate(problems):
            x = p.lcp.x.array[:, lane]
            np.testing.assert_allclose(found[lane], natural(problem, x, problem.matrix @ x - problem.b))


def cone_residual(problem, u, v, a):
    """Returns the residual: steps of lengths mu_i^2 / max mu^2 along -w, projected onto the normal's disc."""
    far = [abs(max(u[k] - v[k] / a, 0.0) - u[k]) for k in (0, 3)]
    s = (u[1:3] - np.array([0.25, 0.64]) / 0.64 * v[1:3] / a) / [0.5, 0.8]
    y = s * min(1.0, max(u[0], 0.0) / np.linalg.norm(s)) * [0.5, 0.8]
    far.append(np.abs(y - u[1:3]).max())
    y = np.clip(u[4] - v[4] / a, -0.3 * max(u[3], 0.0), 0.3 * max(u[3], 0.0))
    far += [abs(y - u[4]), abs(np.clip(u[5] - v[5] / a, -0.1, 0.1) - u[5])]
    return max(far) / max(np.abs(u).max(), np.abs(problem.b).max() / a)


def test_rows_of_a_cone_move_together(rng):
    problem = friction_problem(rng, 2)
    p = lane_record(problem, problem)
    p.lcp.hi.array[[1, 2, 4, 5], :] = np.array([[0.5], [0.8], [0.3], [0.0]])
    p.lcp.add.array[5] = 0.1
    for _ in range(20):
        for name in ("x", "w"):
            getattr(p.lcp, name).array[...] = 10.0 ** rng.integers(-2, 2, (6, 1)) * rng.standard_normal((6, 2))
        found = residual.lcp_residual(p, p.lcp.x, p.lcp.w, 1)
        for lane in range(2):
            x, w = p.lcp.x.array[:, lane], p.lcp.w.array[:, lane]
            np.testing.assert_allclose(found[lane], cone_residual(problem, x, w, problem.matrix.diagonal().max()))


def test_a_consistent_solution_has_zero_residual(rng):
    problem = friction_problem(rng, 4)
    r1, p = one_record(problem), lane_record(problem)
    dantzig.principal_pivoting(r1, CONSISTENT, 99, dantzig.BLOCK)
    p.lcp.x.array[:, 0] = r1.one.x.array[:12]
    residual.finish(p, 0)
    assert p.lcp.residual.array[0, 0] < EXACT * 100 and p.lcp.status.array[0, 0] == SOLVED


def test_residual_with_constant_bounds(rng):
    problem, x = known_problem(rng, 7)
    p = lane_record(problem, problem)
    p.lcp.x.array[...] = np.stack([x, x + 0.1], 1)
    residual.finish_at(p, p.lcp.lo, p.lcp.hi)
    y = x + 0.1
    expected = natural(problem, y, problem.matrix @ y - problem.b)
    np.testing.assert_allclose(p.lcp.residual.array[0], [0.0, expected], atol=EXACT)
    assert p.lcp.status.array[0].tolist() == [SOLVED, ITERATIONS]


@pytest.mark.parametrize(("x", "b", "expected"), [(3.0, 1.0, 3.0), (-3.0, 1.0, 3.0), (0.1, -8.0, 4.0), (0.0, 0.0, 1.0),
                                                  (1e305, 0.0, LARGEST)])  # fmt: skip
def test_the_scale_of_the_residual(x, b, expected):
    p = lane_record(Problem(np.diag([2.0, 1.0]), [b, 0.0], lo=-np.inf, hi=np.inf))
    p.lcp.x.array[0] = x
    np.testing.assert_array_equal(residual.solution_size(p, p.lcp.x), expected)


def test_float32_stops_at_its_reachable_accuracy():
    p = lane_record(Problem([[1.0]], [0.0], lo=0.0, hi=1.0))
    assert residual.stopping_residual(p)[0] == 1e-10
    p.dtype = np.dtype(np.float32)
    assert residual.stopping_residual(p)[0] == residual.ROUNDING32
    p.lcp.parameter.array[0] = -1.0
    assert residual.stopping_residual(p)[0] == -1.0
    p.lcp.parameter.array[0] = 1e-3
    assert residual.stopping_residual(p)[0] == 1e-3
