"""Problems in lanes, solved one after the other by the pivots of a single problem."""

import numpy as np

from featherlane.engine.model.enums import FROZEN
from featherlane.engine.solver.lcp.pivot import dantzig
from featherlane.engine.solver.lcp.pivot.lane_by_lane import load_lane, solve_lane_by_lane, store_lane
from featherlane.lcp import Problem
from scenes.lcp_problems import friction_problem
from scenes.lcp_records import lane_record, one_record


def with_room(problem):
    add = np.where(problem.findex >= 0, 0.05, 0.0)
    lo = np.where(problem.findex >= 0, 0.0, -0.1)
    return Problem(problem.matrix, problem.b, lo=lo, hi=problem.hi, findex=problem.findex, add=add)


def test_each_lane_equals_a_single_solve(rng):
    problems = [with_room(friction_problem(rng, 3)) for _ in range(2)]
    p = lane_record(*problems)
    solve_lane_by_lane.function(p, FROZEN, 50, dantzig.BY_ROWS)
    for lane, problem in enumerate(problems):
        r1 = one_record(problem)
        dantzig.principal_pivoting(r1, FROZEN, 50, dantzig.BY_ROWS)
        for ours, theirs in (("x", "x"), ("w", "w"), ("lower", "lower"), ("upper", "upper")):
            found, expected = getattr(p.lcp, ours).array, getattr(r1.one, theirs).array
            np.testing.assert_array_equal(found[:9, lane], expected[:9], err_msg=ours)
        for name in ("status", "niter", "residual"):
            assert getattr(p.lcp, name).array[0, lane] == getattr(r1.one, name)[0]


def test_a_lane_is_loaded_and_stored(rng):
    problems = [with_room(friction_problem(rng, 3)) for _ in range(2)]
    p = lane_record(*problems)
    load_lane(p, 1)
    r1 = one_record(problems[1])
    for name in ("A", "b", "lo", "hi", "add", "findex", "n"):
        found, expected = (getattr(r.one, name).array for r in (p, r1))
        np.testing.assert_array_equal(found[:9], expected[:9], err_msg=name)
    p.one.status[0], p.one.x[3] = 2, 5.0
    store_lane(p, 0)
    assert p.lcp.status.array[0].tolist() == [2.0, 0.0] and p.lcp.x.array[3].tolist() == [5.0, 0.0]
