"""Diagnostics of a solve: its record, and a gap that bounds the distance to the minimum."""

import numpy as np
import pytest

from featherlane.engine.solver.primal.history import half_gradient_product, primal_gap, record_iteration
from featherlane.engine.solver.primal.line_search import FAR
from oracles import uncompiled
from oracles.uncompiled import call
from scenes.touching import each, near, touching

EXACT = 1e-11  # relative: a solve with M


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_the_gap_bounds_the_cost_above_its_minimum(cone, rng):
    s = touching(cone)
    best = np.array([p.cost(p.minimum()) for p in s.problems])
    for size in (1e-3, 10.0):
        a = near(s, rng, size)
        g = each(s, a, lambda p, x: p.gradient(x))
        s.a["primal.grad"][: s.nv] = g.T
        gap = call(primal_gap, s.m, s.d)
        above = each(s, a, lambda p, x: p.cost(x)) - best
        assert (gap >= above * (1 - 1e-9)).all()
        expected = [0.5 * y @ np.linalg.solve(p.M, y) for y, p in zip(g, s.problems, strict=True)]
        np.testing.assert_allclose(gap, expected, rtol=EXACT)


def test_a_negative_product_beyond_rounding_yields_no_bound():
    grad, Mgrad = np.array([[1.0, 1.0, 1.0, 0.0], [2.0, 1.0, 1.0, 0.0]]), np.ones((2, 4))
    Mgrad[1] = [0.5, -1.0 - 1e-6, -1.1, 0.0]
    d, m = uncompiled.record(4, primal={"grad": grad, "Mgrad": Mgrad}), uncompiled.record(1, nv=2)
    np.testing.assert_array_equal(call(half_gradient_product, m, d), [1.0, 0.0, FAR, 0.0])


def test_points_are_recorded_if_requested_and_within_the_capacity():
    names = "stat_cost", "stat_gradient", "stat_improvement", "stat_step"
    for want in (0, 1):
        d = uncompiled.record(2, want_history=want, nrecord=3, **{name: np.zeros((4, 2)) for name in names})
        for k in range(4):
            call(record_iteration, d, k, *(10.0 * k + 1 + c + np.zeros(2) for c in range(4)))
        for c, name in enumerate(names):
            expected = [1.0 + c, 11.0 + c, 21.0 + c, 0.0] if want else [0.0] * 4
            np.testing.assert_array_equal(getattr(d, name).array[:, 1], expected)
