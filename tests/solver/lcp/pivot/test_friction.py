"""Friction limits: values that follow from x, their derivative, and the fixed point of both."""

import numpy as np
import pytest

from featherlane.engine.solver.lcp.pivot import active_set, block_start, factor, friction
from featherlane.engine.solver.lcp.pivot.scaled_problem import BETWEEN, FIXED, LOWER, UPPER, WAITING
from featherlane.lcp import Problem
from scenes.lcp_factor import start
from scenes.lcp_problems import friction_problem

EXACT = 1e-10  # the condition of A is about 10
STEP = 1e-4  # of limits, which depend linearly on x
CONTACTS = 5


def scaled_contacts(rng):
    """Returns contacts whose rows have units of very different scale, some limits with an added constant."""
    problem = friction_problem(rng, CONTACTS)
    s = 4.0 ** rng.integers(-3, 4, problem.n)
    A, normal = problem.matrix * np.outer(s, s), problem.findex
    mu = np.where(normal >= 0, problem.hi * s[normal] / s, np.inf)
    return Problem(A, problem.b * s, lo=0.0, hi=mu, findex=normal, add=np.where(normal >= 0, 0.05 / s, 0.0))


def frozen(problem):
    """Returns the record after limits were set once; (A, b) by place."""
    r1, n, rows = start(problem), problem.n, int((problem.findex < 0).sum())
    assert block_start.start_with_all(r1, 0, rows)
    friction.limit_friction(r1)
    assert block_start.start_with_all(r1, rows, n)
    active_set.refine_active_set(r1, 99, 1.0)
    factor.refactor(r1)  # without gaps
    return r1, r1.scaled.A.array[: n * 16].reshape(n, 16)[:, :n].copy(), r1.scaled.b.array[:n].copy()


def limits(r1, problem, x):
    """Returns the limits of the friction places at x, by place, from the definition."""
    k, s = r1.one.order.array[: problem.n][CONTACTS:], r1.scaled.scale.array[: problem.n]
    normal = r1.one.position.array[problem.findex[k]]
    return (problem.hi[k] * np.abs(x[normal] * s[normal]) + problem.add[k]) / s[CONTACTS:]


@pytest.fixture
def contacts(rng):
    problem = scaled_contacts(rng)
    return problem, *frozen(problem)


def test_limits_follow_from_x(contacts):
    problem, r1, *_ = contacts
    n, x = problem.n, r1.scaled.x.array[: problem.n]
    expected, before = limits(r1, problem, x), r1.scaled.hi.array[CONTACTS:n].copy()
    change, largest = friction.limit_mismatch(r1)
    np.testing.assert_allclose([change, largest], [np.abs(before - expected).max(), expected.max()])
    friction.limit_friction(r1)
    np.testing.assert_allclose(r1.scaled.hi.array[CONTACTS:n], expected)
    np.testing.assert_allclose(r1.scaled.lo.array[CONTACTS:n], -expected)
    assert friction.limit_mismatch(r1)[0] == 0.0 and np.isinf(r1.scaled.hi.array[:CONTACTS]).all()


def test_without_normal_force_friction_is_zero_for_any_mu():
    r1 = start(Problem(np.eye(2), [-1.0, 1.0], lo=0.0, hi=np.inf, findex=[-1, 0], add=[0.0, 0.3]))
    r1.scaled.x[0] = 0.0
    assert friction.friction_limit(r1, 1) == 0.3
    r1.scaled.x[0] = -2.0
    assert friction.friction_limit(r1, 1) == np.inf
    r1.scaled.hi[1] = 0.0
    assert friction.limit_mismatch(r1) == (0.0, 0.0)  # infinite values are left out


def test_the_system_holds_the_derivative_of_the_limits(contacts):
    problem, r1, A, b = contacts
    n, m = problem.n, r1.one.nfactor[0]
    inside, x = r1.one.factor.array[:m].copy(), r1.scaled.x.array[:n].copy()
    count = friction.list_slipping(r1)
    slips = r1.one.factor.array[m : m + count].copy()
    assert set(slips) == {
        i for i in range(CONTACTS, n)
        if r1.one.state[i] in (LOWER, UPPER) and r1.one.position[problem.findex[r1.one.order[i]]] in inside
    }  # fmt: skip
    friction.write_limit_system(r1, count)
    system = r1.one.L.array[m * 16 :][: count * 16].reshape(count, 16)
    now = limits(r1, problem, x)
    for j, p in enumerate(slips):
        y = x.copy()
        y[p] += STEP * (1.0 if r1.one.state[p] == UPPER else -1.0)
        y[inside] += np.linalg.solve(A[np.ix_(inside, inside)], (b - A @ y)[inside])
        slope = (limits(r1, problem, y) - now)[slips - CONTACTS] / STEP
        np.testing.assert_allclose(system[:, j], (slips == p) - slope, atol=1e-7)
    np.testing.assert_allclose(system[:, count], (now - r1.scaled.hi.array[CONTACTS:n])[slips - CONTACTS], atol=EXACT)
    expected = np.linalg.solve(system[:, :count], system[:, count])
    assert count > 1 and friction.solve_limit_system(r1, m, count) == 1
    np.testing.assert_allclose(system[:, count], expected, atol=EXACT)


def test_a_singular_system_is_reported():
    r1 = start(Problem(np.eye(9), np.zeros(9), lo=0.0, hi=1.0))
    U = r1.one.L.array[: 9 * 16].reshape(9, 16)
    U[2:4, :3] = [[0.0, 2.0, 4.0], [3.0, 1.0, 5.0]]
    assert friction.solve_limit_system(r1, 2, 2) == 1  # rows change places for a pivot
    np.testing.assert_allclose(U[2:4, 2], [1.0, 2.0])
    U[2:4, :3] = [[1.0, 2.0, 4.0], [2.0, 4.0, 5.0]]
    assert friction.solve_limit_system(r1, 2, 2) == 0


def test_one_newton_step_solves_rows_whose_state_does_not_change(contacts):
    problem, r1, A, b = contacts
    n, m = problem.n, r1.one.nfactor[0]
    inside, state = r1.one.factor.array[:m].copy(), r1.one.state.array[:n].copy()
    before = r1.scaled.hi.array[CONTACTS:n].copy()
    friction.find_target_limits(r1)
    x, hi = r1.scaled.x.array[:n], r1.scaled.hi.array[:n]
    slips = [i for i in range(CONTACTS, n) if state[i] in (LOWER, UPPER)]
    np.testing.assert_allclose(hi[slips], limits(r1, problem, x)[np.array(slips) - CONTACTS], atol=EXACT)
    np.testing.assert_allclose(np.abs(x[slips]), hi[slips], atol=EXACT)
    np.testing.assert_allclose((A @ x - b)[inside], 0.0, atol=EXACT)
    np.testing.assert_array_equal(r1.one.best.array[CONTACTS:n], before)
    aims = r1.one.upper.array[CONTACTS:n].copy()
    np.testing.assert_allclose(aims, limits(r1, problem, x), atol=EXACT)
    friction.move_limits(r1, 0.25)
    np.testing.assert_allclose(hi[CONTACTS:], before + 0.25 * (aims - before))
    np.testing.assert_array_equal(r1.scaled.lo.array[CONTACTS:n], -hi[CONTACTS:])
    np.testing.assert_allclose(np.abs(x[slips]), hi[slips])
    friction.move_limits(r1, 1.0)
    np.testing.assert_array_equal(hi[CONTACTS:], aims)


@pytest.mark.parametrize("seed", range(4))
def test_settled_limits_equal_those_of_the_solution(seed):
    problem = scaled_contacts(np.random.default_rng(seed))
    r1, A, b = frozen(problem)
    assert friction.settle_friction(r1, 60, 99) == 1
    n = problem.n
    x, hi = r1.scaled.x.array[:n], r1.scaled.hi.array[:n]
    np.testing.assert_allclose(hi[CONTACTS:], limits(r1, problem, x), atol=EXACT)
    lower = np.where(np.arange(n) < CONTACTS, 0.0, -hi)
    np.testing.assert_allclose(x, np.clip(x - (A @ x - b), lower, hi), atol=EXACT)
    assert friction.settle_friction(r1, 0, 99) == 0  # without a pass, convergence is unknown


def test_a_sweep_visits_each_row_with_limits_as_they_are(contacts):
    problem, r1, A, b = contacts
    n = problem.n
    x = r1.scaled.x.array[:n].copy()
    for i in range(n):
        limit = limits(r1, problem, x)[i - CONTACTS] if i >= CONTACTS else np.inf
        x[i] = np.clip(x[i] - (A[i] @ x - b[i]) / A[i, i], -limit if i >= CONTACTS else 0.0, limit)
    friction.gauss_seidel_sweep(r1)
    np.testing.assert_allclose(r1.scaled.x.array[:n], x, atol=EXACT)
    x[...] = r1.scaled.x.array[:n]
    friction.set_states_from_x(r1)
    between = (x != r1.scaled.lo.array[:n]) & (x != r1.scaled.hi.array[:n])
    np.testing.assert_array_equal(r1.one.state.array[:n] == BETWEEN, between)
    assert sorted(r1.one.factor.array[: r1.one.nfactor[0]]) == np.nonzero(between)[0].tolist()
    np.testing.assert_array_equal(r1.one.state.array[:n][x == r1.scaled.hi.array[:n]], UPPER)
    assert factor.eights_per_row(r1) == 2


def test_rows_follow_their_bounds():
    mu = [np.inf] + 6 * [0.5]
    r1 = start(Problem(np.eye(7), np.zeros(7), lo=0.0, hi=mu, findex=[-1] + 6 * [0]))
    r1.scaled.lo.array[:7], r1.scaled.hi.array[:7] = [0.0, *6 * [-2.0]], [np.inf, 2.0, 2.0, 2.0, 2.0, 2.0, np.inf]
    r1.one.state.array[:7] = BETWEEN, LOWER, UPPER, FIXED, BETWEEN, BETWEEN, UPPER
    r1.scaled.x.array[:7], r1.scaled.w[3] = [9.0, -3.0, 1.0, 0.0, 2.5, 1.5, 4.0], -1.0
    friction.move_with_limits(r1)
    assert r1.scaled.x.array[:7].tolist() == [9.0, -2.0, 2.0, 2.0, 2.0, 1.5, 4.0]
    assert r1.one.state.array[:7].tolist() == [BETWEEN, LOWER, UPPER, UPPER, BETWEEN, BETWEEN, WAITING]
