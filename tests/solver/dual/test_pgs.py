"""Projected Gauss-Seidel: each visit minimizes over its block, a sweep reports its gain, the limit is the minimum."""

import numpy as np
import pytest

from featherlane.solver.dual.block_update import update_row_force, visit_contact
from featherlane.solver.dual.pgs import (
    dual_cost,
    extrapolate_forces,
    pgs,
    start_forces,
    sweep_blocks,
)
from featherlane.solver.dual.problem import force_count, has_edges, store_whitened_force
from featherlane.solver.dual.rows import make_blocks
from oracles.uncompiled import call
from scenes.touching import near, touching, vectors

EXACT = 1e-10  # relative: sums of a hundred products
VISITED = 1e-5  # relative: error after a dozen visits of the edges of one contact
CLOSE = 1e-9  # relative: of the cost above its minimum, at tolerance 0


def ready(cone, **options):
    s = touching(cone, solver="pgs", **options)
    call(make_blocks, s.m, s.d)
    s.first = s.a["ndofrow"][0] + s.a["ngenrow"][0]
    return s


@pytest.fixture(scope="module", params=["pyramidal", "elliptic"])
def s(request):
    return ready(request.param)


def admissible(s, slack=1e-12):
    a = s.a
    for k in range(a["ndofrow"][0]):
        assert (a["dual.f"][10 * k] >= a["dofrow_lo"][k]).all() and (a["dual.f"][10 * k] <= a["dofrow_hi"][k]).all()
    for k in range(a["ngenrow"][0]):
        f = a["dual.f"][10 * (a["ndofrow"][0] + k)]
        assert (f >= a["genrow_lo"][k]).all() and (f <= a["genrow_hi"][k]).all()
    for k in range(a["ncon_slot"][0]):
        n = call(force_count, s.m, s.d, k)
        f = a["dual.f"][10 * (s.first + k) :][:n]
        if call(has_edges, s.m, s.d, k) or n == 1:
            assert (f >= 0).all()
        else:
            assert (np.linalg.norm(f[1:], axis=0) <= f[0] + slack * np.abs(f).max()).all()


def started(s, rng):
    """Starts from forces near the optimum: some are at a bound, others not."""
    best = np.array([p.minimum() for p in s.problems]).T
    s.a["qacc_warmstart"][: s.nv] = best + vectors(s, rng, 0.1)
    call(start_forces, s.m, s.d)
    assert (call(dual_cost, s.m, s.d) < 0).all()


def gains(before, after, fall):
    return (np.abs(before - after - fall) <= EXACT * np.abs(before)).all()


def test_the_start_is_the_last_forces_if_they_lower_the_cost(s, rng):
    best = np.array([p.minimum() for p in s.problems]).T
    s.a["qacc_warmstart"][: s.nv] = np.where(np.arange(s.width) % 2 == 0, best, near(s, rng, 1e4))
    call(start_forces, s.m, s.d)
    cost = call(dual_cost, s.m, s.d)
    expected = [-p.cost(a) for p, a in zip(s.problems, best.T, strict=True)]
    np.testing.assert_allclose(cost[::2], expected[::2], rtol=1e-8)
    assert (cost[1::2] <= 0).all() and (cost[1::2] == 0).any()
    admissible(s)


def test_the_visit_of_a_row_is_its_best_force(s, rng):
    started(s, rng)
    live = np.arange(s.width) != 1
    for q in range(s.first):
        kind, k = ("dofrow", q) if q < s.a["ndofrow"][0] else ("genrow", q - s.a["ndofrow"][0])
        D, lo, hi = (getattr(s.d, f"{kind}_{name}")[k] for name in ("D", "lo", "hi"))
        b = getattr(s.d.primal, f"{kind}_v")[k]
        before, f = call(dual_cost, s.m, s.d), s.a["dual.f"][10 * q].copy()
        fall, _ = call(update_row_force, s.d, q, b, D, lo, hi, live)
        after = call(dual_cost, s.m, s.d)
        assert gains(before, after, fall)
        assert s.a["dual.f"][10 * q, 1] == f[1] and fall[1] == 0
        for step in (1e-4, -1e-4):
            kept = s.a["dual.f"][10 * q].copy()
            s.a["dual.f"][10 * q] = np.clip(kept + step, lo, hi)
            call(store_whitened_force, s.m, s.d)
            assert (call(dual_cost, s.m, s.d)[live] >= after[live] - 1e-12 * np.abs(after[live])).all()
            s.a["dual.f"][10 * q] = kept
        call(store_whitened_force, s.m, s.d)


def test_a_contact_visit_reports_its_improvement_and_stays_admissible(s, rng):
    started(s, rng)
    live = np.arange(s.width) != 1
    gained = np.zeros(s.width)
    for k in range(s.a["ncon_slot"][0]):
        q = s.first + k
        before, f = call(dual_cost, s.m, s.d), s.a["dual.f"][10 * q : 10 * q + 10].copy()
        fall, _ = call(visit_contact, s.m, s.d, k, q, 0, live)
        z = s.a["dual.z"].copy()
        np.testing.assert_array_equal(s.a["dual.f"][10 * q : 10 * q + 10, 1], f[:, 1])
        call(store_whitened_force, s.m, s.d)
        assert np.abs(s.a["dual.z"] - z).max() <= EXACT * np.abs(z).max()
        after = call(dual_cost, s.m, s.d)
        assert gains(before, after, fall)
        assert (fall >= -1e-12 * np.abs(before)).all() and fall[1] == 0
        gained += fall
        admissible(s)
    assert (gained[:-1][live[:-1]] > 0).all()


def test_many_visits_of_one_contact_find_the_best_of_it(s, rng):
    """No other force in its cone has a lower cost."""
    started(s, rng)
    everyone = np.ones(s.width, bool)
    for k in range(s.a["ncon_slot"][0]):
        q, n = s.first + k, call(force_count, s.m, s.d, k)
        for sweep in range(12):
            fall, _ = call(visit_contact, s.m, s.d, k, q, sweep, everyone)
        best, kept = call(dual_cost, s.m, s.d), s.a["dual.f"][10 * q : 10 * q + n].copy()
        assert (np.abs(fall) <= VISITED * np.abs(best)).all()
        for _ in range(4):
            f = kept + rng.normal(size=kept.shape) * 0.03 * (1 + np.abs(kept).max(0))
            f = np.maximum(f, 0) if call(has_edges, s.m, s.d, k) or n == 1 else f
            if n > 1 and not call(has_edges, s.m, s.d, k):
                f[0] = np.maximum(f[0], np.linalg.norm(f[1:], axis=0))
            s.a["dual.f"][10 * q : 10 * q + n] = f
            call(store_whitened_force, s.m, s.d)
            assert (call(dual_cost, s.m, s.d) >= best - VISITED * np.abs(best)).all()
        s.a["dual.f"][10 * q : 10 * q + n] = kept
        call(store_whitened_force, s.m, s.d)


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
    a, joint = s.a, s.a["ndofrow"][0]
    lo, hi = (np.vstack([a[f"dofrow_{x}"][:joint], a[f"genrow_{x}"][: a["ngenrow"][0]]]) for x in ("lo", "hi"))
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
