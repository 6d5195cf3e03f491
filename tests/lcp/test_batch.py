"""Batches in lanes: results of single problems, bitwise independence of the batch, errors for non-finite values."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.solver.lcp.pivot.lane_blocks import solve_lane_blocks
from featherlane.lcp import OptionError, Problem, ProblemError, Status, solve_batch
from featherlane.lcp.problems import Matrices, Problems
from featherlane.lcp.tile import Tile
from scenes.lcp_problems import degenerate_problem, friction_problem, known_problem, stack_problem
from scenes.ode_problems import recorded_problems

RESIDUAL = 1e-10
KNOWN = 1e-9
SAME = 1e-9  # of the largest x: two methods for the same solution, with a softness of 1e-5
METHODS = [("dantzig", {}), ("dantzig", {"friction": "consistent"}), ("pgs", {}), ("pgs", {"friction": "cone"}),
           ("pgs", {"order": "quickstep", "iterations": 20}), ("apgd", {}), ("apgd", {"friction": "cone"})]  # fmt: skip


def stacked(problems):
    """Returns A, b, lo, hi, findex, add of problems of one structure."""
    fields = (np.stack([getattr(p, name) for p in problems]) for name in ("matrix", "b", "lo", "hi"))
    return *fields, problems[0].findex, np.stack([p.add for p in problems])


def towers(rng, count, boxes=2):
    return [stack_problem(boxes, 1e-5, push=3 * rng.standard_normal(6 * boxes)) for _ in range(count)]


def named(parts):
    """Returns the parts of stacked problems as keyword arguments."""
    return dict(zip(("A", "b", "lo", "hi", "findex", "add"), parts, strict=False))


def in_lanes(problems, W):
    """What block pivoting alone finds for problems of one structure, W at once."""
    A, *vectors = stacked(problems)
    batch = Problems(Matrices(A), *vectors)
    count, n = len(problems), problems[0].n
    found = {name: np.empty((count, n)) for name in ("lcp.x", "lcp.w", "lcp.lower", "lcp.upper")}
    found |= {name: np.empty((count, 1)) for name in ("lcp.status", "lcp.niter", "lcp.residual")}
    tile = Tile(batch.structure, W)
    tile.serve(batch.fields, found, [RESIDUAL])
    for k in range(0, count, W):
        tile.load(k, W)
        tile.bind(solve_lane_blocks)(20)
        tile.store(k, W)
    return found


# ---- results ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [1, 2, 3, 7, 24, 60, 61])
def test_known_answers(n, rng):
    problems, answers = zip(*(known_problem(rng, n) for _ in range(21)), strict=True)
    found = solve_batch(**named(stacked(problems)))
    assert found.solved.all()
    assert (found.residual <= RESIDUAL).all()
    for x, expected in zip(found.x, answers, strict=True):
        np.testing.assert_allclose(x, expected, rtol=0, atol=KNOWN * max(np.abs(expected).max(), 1e-3))


@pytest.mark.parametrize("count", [1, 8, 50])
def test_towers_in_a_batch_equal_single_solves(count, rng):
    problems = towers(rng, count)
    found = solve_batch(**named(stacked(problems)))
    assert found.solved.all()
    for k, problem in enumerate(problems):
        alone = fl.lcp.solve(problem)
        np.testing.assert_allclose(found.x[k], alone.x, rtol=0, atol=SAME * np.abs(alone.x).max())
        np.testing.assert_allclose(found.upper[k], alone.upper, rtol=SAME)
        assert problem.residual(found.x[k], (found.lower[k], found.upper[k])) <= RESIDUAL
        np.testing.assert_allclose(found.w[k], problem.multiply(found.x[k]) - problem.b, atol=1e-10)


@pytest.mark.parametrize("n", [3, 9])
def test_degenerate_problems_are_solved(n, rng):
    problems = [degenerate_problem(rng, n) for _ in range(60)]
    assert solve_batch(**named(stacked(problems))).solved.all()


def test_lane_pivoting_solves_recorded_ode_problems():
    """Runs the stage alone, on problems of the regular kinds."""
    for recorded in recorded_problems():
        if recorded.solved and (recorded.tag.startswith("spd") or "cfm1e-05" in recorded.tag):
            found = in_lanes([recorded.problem], 1)
            assert found["lcp.status"] == Status.SOLVED
            scale = np.abs(recorded.x).max()
            np.testing.assert_allclose(found["lcp.x"][0], recorded.x, rtol=0, atol=SAME * scale)


def test_a_contradiction_is_reported_and_the_others_are_solved(rng):
    A, b, lo, hi, findex, add = stacked([known_problem(rng, 4)[0] for _ in range(10)])
    A[3], b[3], lo[3], hi[3] = 0.0, 1.0, 0.0, np.inf
    found = solve_batch(A, b, lo=lo, hi=hi, findex=findex, add=add)
    assert found.status[3] == Status.INFEASIBLE
    assert np.isfinite(found.x).all()
    assert np.delete(found.solved, 3).all()


@pytest.mark.parametrize("method", ["pgs", "apgd"])
def test_factored_and_dense_problems_agree(method, rng):
    problems = [friction_problem(rng, 3) for _ in range(11)]
    A, b, lo, hi, findex, _ = stacked(problems)
    J, inverse = np.stack([p.product.J for p in problems]), problems[0].product.Minv
    dense = solve_batch(A, b, lo=lo, hi=hi, findex=findex, method=method, tolerance=RESIDUAL)
    assert dense.solved.all()
    for Minv in (inverse, np.diag(inverse), np.tile(np.diag(inverse), (11, 1, 1))):
        factored = solve_batch(
            None, b, lo=lo, hi=hi, findex=findex, J=J, Minv=Minv, cfm=0.1, method=method, tolerance=RESIDUAL
        )
        assert factored.solved.all()
        np.testing.assert_allclose(factored.x, dense.x, rtol=0, atol=1e-8 * np.abs(dense.x).max())


@pytest.mark.parametrize("method", ["pgs", "apgd"])
def test_a_batch_starts_from_given_x(method, rng):
    parts = stacked([friction_problem(rng, 3) for _ in range(9)])
    first = solve_batch(**named(parts), method=method)
    again = solve_batch(**named(parts), x=first.x, method=method)
    assert (again.iterations <= 2).all()


# ---- bits ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("method", "options"), METHODS)
def test_other_worlds_change_no_bit(method, options, rng):
    options = {"iterations": 60} | options if method != "dantzig" else options
    parts = stacked(towers(rng, 19))
    whole = solve_batch(**named(parts), method=method, **options)
    order = rng.permutation(19)
    A, b, lo, hi, findex, add = parts
    shuffled = solve_batch(
        A[order], b[order], lo=lo[order], hi=hi[order], findex=findex, add=add, method=method, threads=3, **options
    )
    for name in ("x", "w", "status", "iterations", "residual", "lower", "upper"):
        np.testing.assert_array_equal(getattr(whole, name)[order], getattr(shuffled, name), err_msg=name)
    alone = solve_batch(A[4:5], b[4:5], lo=lo[4:5], hi=hi[4:5], findex=findex, add=add[4:5], method=method, **options)
    np.testing.assert_array_equal(alone.x[0], whole.x[4])


def test_infinite_values_affect_only_their_problem():
    """x of row 1 would be 1e379, so it is set to its bound, while another problem's row is free."""
    A = np.array([[[5.0e-300, -2.4e-300], [-2.4e-300, 1.1e-299]], [[2.0, 0.5], [0.5, 1.0]]])
    b = np.array([[-1.9e79, 7.9e80], [0.3, -0.4]])
    lo, hi = np.array([-4.7e-13, -np.inf]), np.array([np.inf, 0.0])
    together, alone = (
        solve_batch(A, b, lo=lo, hi=hi, method="dantzig"),
        solve_batch(A[:1], b[:1], lo=lo, hi=hi, method="dantzig"),
    )
    for name in ("x", "w", "status", "iterations", "residual"):
        np.testing.assert_array_equal(getattr(together, name)[:1], getattr(alone, name), err_msg=name)
    assert together.status[0] == Status.SOLVED and (together.x[0] == [-4.7e-13, 0.0]).all()


@pytest.mark.parametrize(("method", "options"), METHODS[1:])
def test_one_world_and_eight_are_bitwise_equal(method, options, rng):
    options = {"iterations": 60} | options if method != "dantzig" else options
    problems = towers(rng, 9)
    whole = solve_batch(**named(stacked(problems)), method=method, **options)
    for k, problem in enumerate(problems):
        np.testing.assert_array_equal(fl.lcp.solve(problem, method=method, **options).x, whole.x[k])


def test_pivots_are_bitwise_equal_at_every_width(rng):
    problems = towers(rng, 16)
    one, eight = (in_lanes(problems, W) for W in (1, 8))
    for name, values in one.items():
        np.testing.assert_array_equal(values, eight[name], err_msg=name)


def test_uncompiled_and_compiled_agree(rng, monkeypatch):
    parts = stacked(towers(rng, 3, 1))
    compiled = [solve_batch(**named(parts), method=method, iterations=20) for method in ("dantzig", "pgs", "apgd")]
    monkeypatch.setenv("FEATHERLANE_MODE", "python")
    for expected, method in zip(compiled, ("dantzig", "pgs", "apgd"), strict=True):
        found = solve_batch(**named(parts), method=method, iterations=20)
        np.testing.assert_allclose(found.x, expected.x, rtol=0, atol=1e-7 * np.abs(expected.x).max())


# ---- bad input -------------------------------------------------------------------------------------------------------
def test_an_empty_batch_returns_empty_results():
    assert solve_batch(np.zeros((0, 3, 3)), np.zeros((0, 3))).x.shape == (0, 3)


def test_invalid_problems_are_refused_with_their_number():
    A, b = np.tile(np.eye(3), (5, 1, 1)), np.ones((5, 3))
    spoiled = b.copy()
    spoiled[3, 1] = np.nan
    skew = A.copy()
    skew[2, 0, 1] = 1.0
    cases = [
        ((A, spoiled), {}, r"b\[3, 1\] is nan"),
        ((skew, b), {}, r"A\[2\] is not symmetric: A\[2, 0, 1\] is 1.0, A\[2, 1, 0\] is 0.0"),
        ((np.where(skew == 1.0, A, np.inf), b), {}, r"A\[0, 0, 1\] is inf"),
        ((A[:4], b), {}, r"A has the shape \(4, 3, 3\)"),
        ((A, b[0]), {}, r"b has the shape \(3,\)"),
        ((A, ""), {}, "b is ''"),
        ((None, b), {"J": "J", "Minv": np.ones(3)}, "J is 'J'"),
        ((None, b), {"J": np.ones((*b.shape, 3)), "Minv": "?"}, "Minv is '\\?'"),
        ((A, b, np.full((5, 3), 0.5)), {}, r"lo\[0, 0\] is 0.5"),
        ((A, b, 0.0, [1.0, -1.0, 1.0]), {}, r"hi\[0, 1\] is -1.0"),
        ((A, b, 0.0, 1.0, [-1, 1, -1]), {}, r"findex\[1\] is the row itself"),
        ((A, b), {"x": np.zeros(2)}, r"x has the shape \(2,\)"),
        ((None, b), {}, "neither or both of A and"),
        ((None, b), {"J": np.ones((5, 3, 2)), "Minv": -np.eye(2), "method": "pgs"}, "Minv is not positive definite"),
        ((None, b), {"J": np.ones((5, 3, 2)), "Minv": np.eye(2), "cfm": -1.0, "method": "pgs"}, r"cfm\[0, 0\] is -1.0"),
    ]
    for parts, options, message in cases:
        with pytest.raises(ProblemError, match=message):
            solve_batch(**named(parts), **options)


def test_methods_without_batches_are_refused():
    A, b = np.tile(np.eye(3), (2, 1, 1)), np.ones((2, 3))
    with pytest.raises(OptionError):
        solve_batch(A, b, method="lemke")
    with pytest.raises(OptionError):
        solve_batch(None, b, J=np.ones((2, 3, 4)), Minv=np.ones(4))
    with pytest.raises(OptionError):
        solve_batch(A, b, threads=0)


def test_batch_problems_equal_single_problems(rng):
    """Values common to all problems need not be repeated."""
    A, b = np.tile(2 * np.eye(3), (4, 1, 1)), rng.standard_normal((4, 3))
    found = solve_batch(A, b, lo=[-0.1, 0.0, -np.inf], hi=0.3)
    for k in range(4):
        expected = fl.lcp.solve(Problem(A[k], b[k], lo=[-0.1, 0.0, -np.inf], hi=0.3)).x
        np.testing.assert_allclose(found.x[k], expected, atol=1e-15)
