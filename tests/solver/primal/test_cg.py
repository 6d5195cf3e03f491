"""Conjugate gradients: directions by their formula, and convergence to the minimum."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.solver.primal.cg import ETA, cg, hager_zhang_beta, precondition, update_direction
from oracles.uncompiled import call, record
from scenes.touching import each, touching, vectors

EXACT = 1e-10  # relative: a solve with M
CLOSE = 1e-8  # relative: of the cost above its minimum, after many iterations


def test_beta_equals_hager_and_zhang(rng):
    """beta = (y M^-1 g - 2 (p g) (y M^-1 y) / (p y)) / (p y), at least -1 / (|p| min(|g|, eta)); 0 where p y <= 0."""
    n, worlds = 5, 300
    L = rng.normal(size=(n, n))
    inverse = L @ L.T + np.eye(n)
    p, g, old = rng.normal(size=(3, n, worlds))
    g[:, ::3] *= 1e-3
    fields = {"search": p, "grad": g, "grad_old": old, "Mgrad": inverse @ g, "Mgrad_old": inverse @ old}
    beta = call(hager_zhang_beta, record(1, nv=n), record(worlds, primal=fields))
    y, floors = g - old, 0
    for w in range(worlds):
        py = p[:, w] @ y[:, w]
        if py <= 0:
            assert beta[w] == 0
            continue
        My = inverse @ y[:, w]
        turn = (My @ g[:, w] - 2 * (p[:, w] @ g[:, w]) * (y[:, w] @ My) / py) / py
        least = -1 / (np.linalg.norm(p[:, w]) * min(np.linalg.norm(g[:, w]), ETA))
        expected = max(turn, least)
        floors += expected == least
        assert abs(beta[w] - expected) <= 1e-12 * abs(expected)
    assert floors and (beta == 0).any()


def test_a_search_direction_updates_its_rows_and_keeps_the_gradient(rng):
    s = touching(solver="cg")
    g, p, beta = (vectors(s, rng) for _ in range(3))
    s.a["primal.grad"][: s.nv], s.a["primal.search"][: s.nv] = g, p
    call(precondition, s.m, s.d)
    Mg = np.array([np.linalg.solve(q.M, x) for q, x in zip(s.problems, g.T, strict=True)]).T
    assert np.abs(s.a["primal.Mgrad"][: s.nv] - Mg).max() <= EXACT * np.abs(Mg).max()
    call(update_direction, s.m, s.d, beta[0])
    expected = beta[0] * p - Mg
    assert np.abs(s.a["primal.search"][: s.nv] - expected).max() <= EXACT * np.abs(expected).max()
    np.testing.assert_array_equal(s.a["primal.grad_old"][: s.nv], g)
    np.testing.assert_array_equal(s.a["primal.Mgrad_old"], s.a["primal.Mgrad"])
    Mv = each(s, expected, lambda q, x: q.M @ x).T
    assert np.abs(s.a["primal.Mv"][: s.nv] - Mv).max() <= EXACT * np.abs(Mv).max()
    k = s.a["nfrictionrow"][0] - 1
    assert np.abs(s.a["primal.row_v"][k] - expected[s.a["row_dof"][k]]).max() <= EXACT * np.abs(expected).max()


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_it_ends_at_the_minimum(cone):
    s = touching(cone, solver="cg", iterations=2000)
    s.a["active"][0, 2] = 0.0
    s.w.run(cg)
    part, qacc, niter = np.arange(s.width) != 2, s.a["qacc"][: s.nv], s.a["solver_niter"][0]
    least = np.array([p.cost(p.minimum()) for p in s.problems])
    above = each(s, qacc, lambda p, x: p.cost(x)) - least
    assert (above <= CLOSE * np.abs(least))[part].all()
    assert niter[2] == 0 and (niter[part] > 5).all() and (niter < 2000).all()
    np.testing.assert_array_equal(qacc[:, 2], s.a["qacc_smooth"][: s.nv, 2])
    trace = np.array([np.trace(p.M) for p in s.problems])
    residual = each(s, qacc, lambda p, x: np.linalg.norm(p.gradient(x))) / trace
    assert np.abs(s.a["solver_residual"][0] - residual)[part].max() <= 1e-6 * (1 + residual.max())
    assert (above[part] <= s.a["solver_gap"][0][part] * trace[part] + 1e-11 * np.abs(least)[part]).all()


def test_an_iteration_limit_is_reported_and_iterations_are_recorded():
    s = touching(solver="cg", iterations=3)
    call(cg, s.m, s.d)
    np.testing.assert_array_equal(s.a["solver_niter"][0, :-1], 3)
    assert s.a["warning"][3, :-1].all()
    cost = each(s, s.a["qacc"][: s.nv], lambda p, x: p.cost(x))
    start = each(s, s.a["qacc_smooth"][: s.nv], lambda p, x: p.cost(x))
    assert (cost[:-1] < 0.9 * start[:-1]).all()


def test_a_tolerance_ends_it_earlier():
    counts = []
    for tolerance in (1e-4, 1e-10):
        s = touching(solver="cg", iterations=2000, tolerance=tolerance)
        s.w.run(cg)
        counts.append(s.a["solver_niter"][0].copy())
        assert not s.a["warning"][3].any()
    assert (counts[0] <= counts[1]).all() and (counts[0] < counts[1]).any()


HINGE_SLIDE = """<mujoco><worldbody><body><joint axis="0 1 0" range="0 1" limited="true"/>
<joint type="slide" axis="1 0 0" range="0 .1" limited="true"/><geom size=".1" pos=".2 0 .1"/></body>
</worldbody></mujoco>"""
CONVERGED = 1e-10  # relative; the gap of 1e-8 alone ended worlds at an error of 1e-5


def test_limits_are_solved_to_the_tolerance_and_not_to_its_root():
    model = fl.load(HINGE_SLIDE)
    assert model.opt.tolerance == 1e-8
    batch, rng = fl.Batch(model, 100), np.random.default_rng(0)
    batch.qpos[:], batch.qvel[:] = 0.05 * rng.normal(size=(100, 2)), rng.normal(size=(100, 2))
    found = []
    for solver, tolerance in (("cg", 1e-8), ("newton", 0.0)):
        model.opt.solver, model.opt.tolerance = solver, tolerance
        batch.qacc_warmstart[:] = 0.0
        batch.bind("qacc")
        batch.forward()
        found.append(np.array(batch.qacc))
    np.testing.assert_allclose(found[0], found[1], atol=CONVERGED * np.abs(found[1]).max())
