"""Updates of one block: each visit minimizes the dual cost over the admissible forces of its block."""

import numpy as np
import pytest

from featherlane.engine.solver.dual.block_update import update_row_force, visit_contact
from featherlane.engine.solver.dual.pgs import dual_cost
from featherlane.engine.solver.dual.problem import force_count, has_edges, store_whitened_force
from oracles.uncompiled import call
from scenes.dual_forces import EXACT, admissible, gains, ready, started

VISITED = 1e-5  # relative: error after a dozen visits of the edges of one contact


@pytest.fixture(scope="module", params=["pyramidal", "elliptic"])
def s(request):
    return ready(request.param)


def test_the_visit_of_a_row_is_its_best_force(s, rng):
    started(s, rng)
    live = np.arange(s.width) != 1
    for q in range(s.first):
        D, lo, hi, b = s.d.row_D[q], s.d.row_lo[q], s.d.row_hi[q], s.d.primal.row_v[q]
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
