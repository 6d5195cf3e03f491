"""Accelerated projected gradients: a step by its definition, and convergence to a solution."""

import numpy as np
import pytest

from featherlane.engine.solver.lcp.sweep import apgd
from featherlane.engine.solver.lcp.sweep.projection import set_cone_steps, set_steps
from featherlane.engine.solver.lcp.sweep.residual import lcp_residual
from featherlane.lcp import Status
from scenes.lcp_problems import friction_problem, known_problem
from scenes.lcp_records import lane_record

EXACT = 1e-12
KNOWN = 1e-8  # of x at a residual of 1e-10
T = 0.7  # length of a step


@pytest.fixture
def tile(rng):
    """Returns (record, problems) at an intermediate iterate."""
    problems = [friction_problem(rng, 2) for _ in range(2)]
    p = lane_record(*problems)
    for name in ("x", "y", "w", "g"):
        getattr(p.lcp, name).array[...] = rng.standard_normal((6, 2))
    return p, problems


def test_a_step_descends_the_gradient_and_is_projected_on_the_bounds(tile):
    """First the rows that limit others, then friction at their limits."""
    p, problems = tile
    set_steps(p, 0)
    apgd.projected_step(p, p.lcp.parameter[1] * T, 0)
    for lane, problem in enumerate(problems):
        u = p.lcp.y.array[:, lane] - T * p.lcp.g.array[:, lane] / problem.matrix.diagonal()
        u[[0, 3]] = np.maximum(u[[0, 3]], 0.0)
        limit = problem.hi[1] * u[[0, 0, 0, 3, 3, 3]]
        for i in (1, 2, 4, 5):
            u[i] = np.clip(u[i], -limit[i], limit[i])
        np.testing.assert_allclose(p.lcp.dx.array[:, lane], u - p.lcp.y.array[:, lane], atol=EXACT)


def test_on_a_cone_slip_adds_to_the_normals_w(tile):
    """De Saxce and Feng: w_n + mu |w_t|; then the nearest point of the cone in s = x / mu."""
    p, _ = tile
    mu = 0.5
    p.lcp.y.array[...] += 1.0
    set_cone_steps(p)
    apgd.projected_step(p, p.lcp.parameter[1] * T, 1)
    for lane, k in ((0, 0), (0, 3), (1, 0), (1, 3)):
        y, g, step = (getattr(p.lcp, name).array[k : k + 3, lane] for name in ("y", "g", "step"))
        n = y[0] - T * step[0] * (g[0] + mu * np.linalg.norm(g[1:]))
        s = (y[1:] - T * step[1:] * g[1:]) / mu
        length = np.linalg.norm(s)
        top = 0.5 * max(n + length, 0.0)
        n, r = (n, length) if length <= n else (top, top)
        x = np.array([n, *(mu * s * r / length)])
        np.testing.assert_allclose(p.lcp.dx.array[k : k + 3, lane], x - y, atol=EXACT)


def test_curvature_and_momentum(tile):
    p, problems = tile
    set_steps(p, 0)
    d = p.lcp.dx.array[...] = 0.1 * p.lcp.w.array
    bend, size = apgd.direction_curvature(p)
    uphill = apgd.goes_uphill(p)
    for lane, problem in enumerate(problems):
        A, e = problem.matrix, d[:, lane]
        np.testing.assert_allclose(p.lcp.dw.array[:, lane], A @ e, atol=EXACT)
        np.testing.assert_allclose([bend[lane], size[lane]], [e @ A @ e, e @ (A.diagonal() * e)])
        new = p.lcp.y.array[:, lane] + e - p.lcp.x.array[:, lane]
        assert uphill[lane] == (e @ (A.diagonal() * new) < 0.0)
    p.lcp.dx.array[...] = p.lcp.x.array - p.lcp.y.array  # back to x: neither
    assert not apgd.goes_uphill(p).any()


def test_the_new_iterate_and_its_extrapolation(tile):
    p, _ = tile
    p.lcp.dx.array[...], p.lcp.dw.array[...] = 0.3, -0.2
    x, w, y, g = (getattr(p.lcp, name).array.copy() for name in ("x", "w", "y", "g"))
    apgd.extrapolate(p, p.lcp.parameter[1] * 0.5, np.array([True, False]))
    for name, old, new in (("x", x, y + 0.3), ("w", w, g - 0.2), ("y", y, y + 0.3 + 0.5 * (y + 0.3 - x)),
                           ("g", g, g - 0.2 + 0.5 * (g - 0.2 - w))):  # fmt: skip
        found = getattr(p.lcp, name).array
        np.testing.assert_allclose(found[:, 0], new[:, 0], atol=EXACT, err_msg=name)
        np.testing.assert_array_equal(found[:, 1], old[:, 1], err_msg=name)
    p.lcp.best.array[...] = 9.0
    apgd.keep_best(p, np.array([False, True]))
    assert (p.lcp.best.array[:, 0] == 9.0).all() and (p.lcp.best.array[:, 1] == p.lcp.x.array[:, 1]).all()


@pytest.mark.parametrize("cone", [0, 1])
def test_it_starts_at_x(cone, tile):
    p, problems = tile
    far = apgd.start_apgd(p, cone)
    for lane, problem in enumerate(problems):
        w = problem.matrix @ p.lcp.x.array[:, lane] - problem.b
        for name, expected in (("w", w), ("g", w), ("y", p.lcp.x.array[:, lane]), ("best", p.lcp.x.array[:, lane])):
            np.testing.assert_allclose(getattr(p.lcp, name).array[:, lane], expected, atol=EXACT)
    np.testing.assert_array_equal(far, lcp_residual(p, p.lcp.x, p.lcp.w, cone))
    steps = p.lcp.step.array.copy()
    (set_cone_steps if cone else lambda q: set_steps(q, 0))(p)
    np.testing.assert_array_equal(p.lcp.step.array, steps)


def test_it_ends_at_the_known_answer(rng):
    problems, known = zip(*(known_problem(rng, 8) for _ in range(2)), strict=True)
    p = lane_record(*problems)
    apgd.solve_apgd.function(p, 400, 0)
    np.testing.assert_allclose(p.lcp.x.array, np.stack(known, 1), atol=KNOWN)
    assert (p.lcp.status.array == Status.SOLVED).all() and (p.lcp.niter.array < 100).all()


def test_sliding_friction_on_cones_opposes_the_motion(rng):
    """Coulomb's law: |x_t| <= mu x_n; if w_t is not 0, x_t is mu x_n opposite to it; x_n w_n = 0."""
    problems = [friction_problem(rng, 3) for _ in range(2)]
    p = lane_record(*problems)
    apgd.apgd(p, 3000, 1)
    assert (p.lcp.status.array == Status.SOLVED).all()
    for lane, problem in enumerate(problems):
        x = p.lcp.x.array[:, lane]
        w = problem.matrix @ x - problem.b
        for k in (0, 3, 6):
            n, t, v = x[k], x[k + 1 : k + 3], w[k + 1 : k + 3]
            assert n >= 0.0 and w[k] > -KNOWN * 100 and abs(n * w[k]) < KNOWN * 100
            assert np.linalg.norm(t) <= 0.5 * n + KNOWN
            np.testing.assert_allclose(t @ v, -0.5 * n * np.linalg.norm(v), atol=KNOWN * 100)


def test_the_best_is_kept_when_steps_run_out(rng):
    p = lane_record(*(friction_problem(rng, 3) for _ in range(2)))
    apgd.apgd(p, 4, 0)
    assert (p.lcp.niter.array == 4).all() and (p.lcp.status.array == Status.ITERATIONS).all()
    np.testing.assert_array_equal(p.lcp.x.array, p.lcp.best.array)
