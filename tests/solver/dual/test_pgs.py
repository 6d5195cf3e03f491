"""Projected Gauss-Seidel: each visit minimizes over its block, a sweep reports its gain, the limit is the minimum."""

import numpy as np
import pytest

from featherlane.engine.solver.dual.pgs import (
    dual_cost,
    extrapolate_forces,
    pgs,
    start_forces,
    sweep_blocks,
)
from featherlane.engine.solver.dual.problem import store_whitened_force
from oracles.uncompiled import call
from scenes.dual_forces import admissible, gains, ready, started
from scenes.touching import near

CLOSE = 1e-9  # relative: of the cost above its minimum, at tolerance 0


@pytest.fixture(scope="module", params=["pyramidal", "elliptic"])
def s(request):
    return ready(request.param)


def test_the_start_is_the_last_forces_if_they_lower_the_cost(s, rng):
    best = np.array([p.minimum() for p in s.problems]).T
    s.a["qacc_warmstart"][: s.nv] = np.where(np.arange(s.width) % 2 == 0, best, near(s, rng, 1e4))
    call(start_forces, s.m, s.d)
    cost = call(dual_cost, s.m, s.d)
    expected = [-p.cost(a) for p, a in zip(s.problems, best.T, strict=True)]
    np.testing.assert_allclose(cost[::2], expected[::2], rtol=1e-8)
    assert (cost[1::2] <= 0).all() and (cost[1::2] == 0).any()
    admissible(s)


def test_momentum_stays_admissible(s, rng):
    started(s, rng)
    s.a["dual.old"][...] = s.a["dual.f"] * rng.uniform(0, 3, s.a["dual.f"].shape)
    before, old = s.a["dual.f"].copy(), s.a["dual.old"].copy()
    beta = np.where(np.arange(s.width) % 2 == 0, 0.8, 0.0)
    call(extrapolate_forces, s.m, s.d, beta)
    admissible(s)
    n = s.a["dual.ndual"][0]
    np.testing.assert_array_equal(s.a["dual.f"][: 10 * n, 1::2], before[: 10 * n, 1::2])
    np.testing.assert_array_equal(s.a["dual.old"][: 10 * s.first : 10], before[: 10 * s.first : 10])
    a = s.a
    lo, hi = a["row_lo"][: s.first], a["row_hi"][: s.first]
    expected = (before + beta * (before - old))[: 10 * s.first : 10]
    np.testing.assert_allclose(a["dual.f"][: 10 * s.first : 10], np.clip(expected, lo, hi), rtol=1e-14)
    z = s.a["dual.z"].copy()
    call(store_whitened_force, s.m, s.d)
    np.testing.assert_array_equal(z, s.a["dual.z"])


def test_a_sweep_falls_by_the_sum_of_its_visits(s, rng):
    started(s, rng)
    for sweep in (0, 3):
        before = call(dual_cost, s.m, s.d)
        fall, _ = call(sweep_blocks, s.m, s.d, sweep, np.ones(s.width, bool))
        assert gains(before, call(dual_cost, s.m, s.d), fall)
        assert (fall[:-1] > 0).all()


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_sweeps_end_at_the_minimum(cone):
    s = ready(cone, iterations=2000)
    s.a["active"][0, 2] = 0.0
    s.w.run(pgs)
    part, niter = np.arange(s.width) != 2, s.a["solver_niter"][0]
    least = np.array([p.cost(p.minimum()) for p in s.problems])
    cost = np.array([p.cost(x) for p, x in zip(s.problems, s.a["qacc"][: s.nv].T, strict=True)])
    assert (cost - least <= CLOSE * np.abs(least))[part].all()
    assert (niter[part] > 1).all() and (niter[part] < 2000).all() and niter[2] == 0
    assert not s.a["warning"][3].any()
    trace = np.array([np.trace(p.M) for p in s.problems])
    residual = [np.linalg.norm(p.gradient(x)) for p, x in zip(s.problems, s.a["qacc"][: s.nv].T, strict=True)]
    assert np.abs(s.a["solver_residual"][0] - residual / trace)[part].max() < 1e-6
    assert ((cost - least)[part] <= (s.a["solver_gap"][0] * trace)[part] + CLOSE * np.abs(least)[part]).all()


def test_sweeps_that_stop_early_are_reported():
    s = ready("pyramidal", iterations=2)
    s.w.run(pgs)
    np.testing.assert_array_equal(s.a["solver_niter"][0], 2)
    assert s.a["warning"][3].all()
