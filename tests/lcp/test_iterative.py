"""Projected Gauss-Seidel, accelerated and conjugate gradients: known solutions, friction, ODE's QuickStep."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import featherlane as fl
from featherlane.engine.lanes import Record, allocate
from featherlane.engine.simulation.tile.library import library
from featherlane.engine.solver.lcp.fields import PROBLEM
from featherlane.engine.solver.lcp.sweep.apgd import solve_apgd
from featherlane.engine.solver.lcp.sweep.order import random_below
from featherlane.engine.solver.lcp.sweep.pgs import solve_pgs
from featherlane.engine.solver.lcp.sweep.projection import nearest_on_cone
from featherlane.lcp import Problem, Solver, Status
from scenes.lcp_problems import friction_problem, known_problem, stack_problem

TOLERANCE = 1e-10
KNOWN = 1e-8  # of x: a condition of about 10 times the tolerance
LAW = 1e-8  # of the largest force, likewise
ROUNDING = 1e-12
SINGLE = 1e-4  # float32 through a condition of about 10
METHODS = ("pgs", "apgd")
# dRandInt(n) of libode 0.16.6 after dRandSetSeed(0)
ODE_NUMBERS = {2: 1, 3: 2, 4: 2, 5: 2, 8: 5, 15: 13, 16: 6, 17: 9, 24: 3, 60: 48, 100: 74, 256: 40, 257: 120, 1000: 79,
               65536: 20687, 65537: 33735, 1000000: 707732}  # fmt: skip


# ---- known solutions -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_known_answers(n, method, rng):
    solver = Solver(n, method, tolerance=TOLERANCE)
    for _ in range(10):
        problem, x = known_problem(rng, n)
        solution = solver.solve(problem)
        assert solution.status == Status.SOLVED
        assert problem.residual(solution.x) <= TOLERANCE
        np.testing.assert_allclose(solution.x, x, rtol=0, atol=KNOWN * max(np.abs(x).max(), 1.0))
        np.testing.assert_allclose(solution.w, problem.multiply(solution.x) - problem.b, rtol=0, atol=ROUNDING * n)


@pytest.mark.parametrize("contacts", [1, 4, 9])
def test_all_methods_find_the_same_friction(contacts, rng):
    problem = friction_problem(rng, contacts)
    reference = fl.lcp.solve(problem, friction="consistent").x
    for method in ("lemke", *METHODS):
        options = {} if method == "lemke" else {"tolerance": TOLERANCE}
        solution = fl.lcp.solve(problem, method=method, **options)
        assert solution.status == Status.SOLVED
        np.testing.assert_allclose(solution.x, reference, rtol=0, atol=KNOWN * np.abs(reference).max(), err_msg=method)


@pytest.mark.parametrize("method", METHODS)
def test_an_added_limit_acts_without_a_normal_force(method):
    problem = Problem(
        np.eye(3), [-1.0, 5.0, -0.2], lo=0.0, hi=[np.inf, 0.5, 0.5], findex=[-1, 0, 0], add=[0.0, 0.7, 0.7]
    )
    np.testing.assert_allclose(fl.lcp.solve(problem, method=method).x, [0.0, 0.7, -0.2], atol=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_any_mu_without_a_normal_force_gives_no_friction(method):
    problem = Problem(np.eye(3), [-1.0, 5.0, 5.0], lo=0.0, hi=np.inf, findex=[-1, 0, 0])
    np.testing.assert_array_equal(fl.lcp.solve(problem, method=method).x, 0.0)


@pytest.mark.parametrize("method", METHODS)
def test_a_given_solution_is_kept(method, rng):
    problem = friction_problem(rng, 5)
    solver = Solver(problem.n, method, tolerance=TOLERANCE)
    first = solver.solve(problem)
    again = solver.solve(problem, first.x)
    assert again.iterations <= 2 < first.iterations


@pytest.mark.parametrize("method", METHODS)
def test_without_a_solution_x_is_finite_and_not_called_solved(method):
    for A, b in (([[0.0]], [1.0]), ([[1.0, -1.0], [-1.0, 1.0]], [1.0, 1.0])):
        solution = fl.lcp.solve(A, b, method=method)
        assert solution.status == Status.ITERATIONS
        assert np.isfinite(solution.x).all()
        assert solution.residual > TOLERANCE


@pytest.mark.parametrize("method", METHODS)
def test_a_force_without_effect_goes_to_its_bound(method):
    solution = fl.lcp.solve(np.diag([0.0, 1.0]), [1.0, 1.0], lo=0.0, hi=1e6, method=method)
    assert solution.status == Status.SOLVED
    np.testing.assert_allclose(solution.x, [1e6, 1.0], rtol=1e-6)


@pytest.mark.parametrize(("stage", "numbers"), [(solve_pgs, (500, 0, 1, 0)), (solve_apgd, (500, 0))])
@pytest.mark.parametrize("W", [1, 16])
def test_float32_stops_at_its_reachable_accuracy(stage, numbers, W, rng):
    problems = [friction_problem(rng, 4) for _ in range(W)]
    n = problems[0].n
    sizes = {f.name: 0 for f in PROBLEM.fields if f.kind == "size"} | {"nlcp": n, "nlcpA": n * n}
    arrays = allocate(PROBLEM, sizes, width=W, dtype=np.float32)
    arrays["lcp.n"][0], arrays["lcp.dense"][0], arrays["lcp.findex"][:n] = n, 1, problems[0].findex
    arrays["lcp.A"][...] = np.stack([p.matrix.ravel() for p in problems], 1)
    arrays["lcp.diag"][...] = np.stack([p.diagonal() for p in problems], 1)
    for name in ("b", "lo", "hi", "add"):
        arrays[f"lcp.{name}"][...] = np.stack([getattr(p, name) for p in problems], 1)
    arrays["lcp.parameter"][:, :] = [[1e-12], [1.0]]
    library().bind(stage, Record(PROBLEM, sizes, arrays, width=W, dtype=np.float32))(*numbers)
    assert (arrays["lcp.status"] == Status.SOLVED).all()
    assert (arrays["lcp.niter"] < numbers[0]).all()
    friction = "cone" if stage is solve_pgs else "pyramid"
    for lane, problem in enumerate(problems):
        x = fl.lcp.solve(problem, method="pgs", friction=friction, tolerance=TOLERANCE).x
        np.testing.assert_allclose(arrays["lcp.x"][:, lane], x, rtol=0, atol=SINGLE * np.abs(x).max())


# ---- QuickStep -------------------------------------------------------------------------------------------------------
def quickstep(problem, sweeps, relaxation, seed):
    """Runs ODE's QuickStep as documented: fc = M^-1 J^T lambda is kept, limits are live, each 8th sweep is shuffled."""
    J, cfm, n = problem.product.J, problem.product.cfm, problem.n
    effect = (J * problem.product.Minv).T
    scale = relaxation / (np.einsum("ij,ji->i", J, effect) + cfm)
    order = [i for i in range(n) if problem.findex[i] < 0] + [i for i in range(n) if problem.findex[i] >= 0]
    x, fc = np.zeros(n), np.zeros(J.shape[1])
    for sweep in range(sweeps):
        if sweep and sweep % 8 == 0:
            for k in range(1, n):
                seed = (1664525 * seed + 1013904223) % 2**32
                j = random_below(seed, k + 1)
                order[k], order[j] = order[j], order[k]
        for i in order:
            k, lo, hi = problem.findex[i], problem.lo[i], problem.hi[i]
            if k >= 0:
                hi = problem.hi[i] * abs(x[k])
                lo = -hi
            new = min(max(x[i] + scale[i] * (problem.b[i] - cfm[i] * x[i] - J[i] @ fc), lo), hi)
            fc, x[i] = fc + effect[:, i] * (new - x[i]), new
    return x


@pytest.mark.parametrize(("n", "number"), ODE_NUMBERS.items())
def test_random_numbers_equal_ode(n, number):
    seed = 0
    for m in ODE_NUMBERS:
        seed = (1664525 * seed + 1013904223) % 2**32
        if m == n:
            assert random_below(seed, n) == number


@pytest.mark.parametrize("sweeps", [1, 20, 40])
def test_sweeps_equal_those_of_quickstep(sweeps, rng):
    problem = stack_problem(3, 1e-5, push=3 * rng.standard_normal(18))
    solution = fl.lcp.solve(problem, method="pgs", order="quickstep", iterations=sweeps, relaxation=1.3, tolerance=0.0)
    expected = quickstep(problem, sweeps, 1.3, 0)
    assert solution.iterations == sweeps
    np.testing.assert_allclose(solution.x, expected, rtol=0, atol=ROUNDING * np.abs(expected).max())


def test_a_seed_decides_the_order_of_rows(rng):
    problem = stack_problem(2, 1e-5, push=3 * rng.standard_normal(12))
    options = {"method": "pgs", "order": "quickstep", "iterations": 20}
    one, same, other = (fl.lcp.solve(problem, seed=seed, **options).x for seed in (5, 5, 6))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


# ---- cones -----------------------------------------------------------------------------------------------------------
@given(n=st.floats(-5, 5), r=st.floats(0, 5), a=st.sampled_from([0.0, 0.3, 2.0]))
def test_a_cone_gives_the_nearest_of_its_points(n, r, a):
    m, s = np.ravel(nearest_on_cone(np.array([n]), np.array([r]), np.array([a])))
    assert m >= 0
    assert 0 <= s <= m + a + ROUNDING
    height, share = np.meshgrid(np.linspace(0, 6, 200), np.linspace(0, 1, 100))
    found = np.hypot(height - n, share * (height + a) - r)
    assert np.hypot(m - n, s - r) <= found.min() + ROUNDING
    again = nearest_on_cone(np.array([m]), np.array([s]), np.array([a]))
    np.testing.assert_allclose(np.ravel(again), [m, s], atol=4e-15)


def assert_coulomb(problem, x, mu):
    """Normals push or separate; friction is inside its cone, or opposes the sliding; sliding adds no normal motion."""
    scale, w = np.abs(x).max(), problem.multiply(x) - problem.b
    for k in range(0, problem.n, 3):
        normal, t, slip = x[k], x[k + 1 : k + 3], w[k + 1 : k + 3]
        assert normal >= 0
        assert abs(normal * w[k]) <= LAW * scale**2
        assert w[k] >= -LAW * scale
        assert np.hypot(*t) <= mu * normal + LAW * scale
        if np.hypot(*t) < mu * normal - 1e-4 * scale:
            np.testing.assert_allclose(slip, 0.0, atol=LAW * scale)
        elif normal > 1e-4 * scale:
            np.testing.assert_allclose(t * np.hypot(*slip), -mu * normal * slip, atol=LAW * scale**2)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("mu", [0.2, 0.8])
def test_friction_on_a_cone_is_coulombs(mu, method, rng):
    sliding = 0
    for _ in range(5):
        problem = friction_problem(rng, 4, mu)
        solution = fl.lcp.solve(problem, method=method, friction="cone", tolerance=TOLERANCE)
        assert solution.status == Status.SOLVED
        assert_coulomb(problem, solution.x, mu)
        sliding += (np.abs(solution.w[1::3]) > 1e-3).sum()
    assert sliding > 0


@pytest.mark.parametrize("method", METHODS)
def test_cone_friction_is_isotropic(method, rng):
    problem = friction_problem(rng, 4)
    turn = np.eye(problem.n)
    for k in range(0, problem.n, 3):
        c, s = np.cos(k + 1.0), np.sin(k + 1.0)
        turn[k + 1 : k + 3, k + 1 : k + 3] = [[c, s], [-s, c]]
    A = turn @ problem.matrix @ turn.T
    turned = Problem(0.5 * (A + A.T), turn @ problem.b, lo=problem.lo, hi=problem.hi, findex=problem.findex)
    options = {"method": method, "tolerance": TOLERANCE}
    x, y = (fl.lcp.solve(p, friction="cone", **options).x for p in (problem, turned))
    np.testing.assert_allclose(turn @ x, y, rtol=0, atol=KNOWN * np.abs(x).max())
    x, y = (fl.lcp.solve(p, friction="pyramid", **options).x for p in (problem, turned))
    assert np.abs(turn @ x - y).max() > 1e-3 * np.abs(x).max()


@pytest.mark.parametrize("method", METHODS)
def test_friction_rows_not_adjacent_to_their_normal_have_separate_limits(method, rng):
    """Friction rows that do not follow their normal's row form no cone, and are still solved."""
    problem = friction_problem(rng, 3)
    order, options = np.r_[0, 3, 6, 1, 2, 4, 5, 7, 8], {"method": method, "tolerance": TOLERANCE}
    place = np.argsort(order)
    findex = np.where(problem.findex[order] >= 0, place[problem.findex[order]], -1)
    A, b, lo, hi = problem.matrix[np.ix_(order, order)], problem.b[order], problem.lo[order], problem.hi[order]
    cone = fl.lcp.solve(Problem(A, b, lo=lo, hi=hi, findex=findex), friction="cone", **options)
    pyramid = fl.lcp.solve(problem, **options)
    assert cone.status == Status.SOLVED
    np.testing.assert_allclose(cone.x[place], pyramid.x, rtol=0, atol=KNOWN * np.abs(pyramid.x).max())
