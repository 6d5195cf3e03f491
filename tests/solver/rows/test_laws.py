"""Laws of scalar rows: force, cost, slopes, weight and changes of their zone follow from the definition."""

from types import SimpleNamespace

import numpy as np

from featherlane.engine.solver.rows.laws import (
    bounded_force,
    bounded_slope,
    bounded_switch,
    bounded_weight,
    one_sided_force,
    one_sided_slope,
    one_sided_switch,
    one_sided_weight,
)
from oracles.uncompiled import call

WORLDS = 200
ROUNDING = 1e-13  # relative to values near 1


def row(D, lo=-1.0, hi=1.0):
    return SimpleNamespace(D=D, lo=lo, hi=hi)


def close(a, b):
    np.testing.assert_allclose(np.array(a), b, rtol=0, atol=20 * ROUNDING)


def test_a_row_switches_if_its_force_reaches_or_leaves_a_bound():
    x, v = np.array([0.5, 0.5, 3.0, 3.0, -3.0, 0.1, -3.0]), np.array([0.1, 2.0, 1.0, -2.0, 1.0, -0.2, 6.0])
    n = call(bounded_switch, row(1.0), x, v, 1.0)
    np.testing.assert_array_equal(n > 0, [False, True, False, False, False, False, True])
    assert call(bounded_switch, row(1.0), 3.0, -1.5, 2.0) > 0


def test_a_bounded_row_has_the_force_and_the_cost_of_its_bounds():
    x = np.array([-3.0, -0.25, 0.0, 0.25, 3.0])
    f, c = call(bounded_force, row(2.0), x)
    np.testing.assert_array_equal(f, [1.0, 0.5, 0.0, -0.5, -1.0])
    np.testing.assert_allclose(c, [2.75, 0.0625, 0.0, 0.0625, 2.75], rtol=1e-15)  # |x| - 1 / 2D, and D x^2 / 2


def test_the_slope_of_a_bounded_row_ends_at_its_bounds():
    x = np.array([-3.0, -0.25, 0.25, 3.0])
    g, h = call(bounded_slope, row(2.0), x, 0.5, 0.1, 7.0, 9.0)
    y = x + 0.05
    np.testing.assert_allclose(g - 7.0, 0.5 * np.clip(2 * y, -1, 1))
    np.testing.assert_allclose(h - 9.0, np.where(np.abs(2 * y) < 1, 0.5, 0.0))


def test_a_limit_is_a_bounded_row(rng):
    """Its bounds are 0 and a force that is never reached."""
    D, (x, v, a, g, h) = rng.uniform(1, 4, WORLDS), rng.normal(size=(5, WORLDS))
    limit = row(D, 0.0, 1e30)
    close(call(one_sided_force, D, x), call(bounded_force, limit, x))
    close(call(one_sided_force, D, x), [np.maximum(-D * x, 0), 0.5 * D * np.minimum(x, 0) ** 2])
    close(call(one_sided_force, D, np.zeros(WORLDS)), np.zeros((2, WORLDS)))
    close(call(one_sided_slope, D, x, v, a, g, h), call(bounded_slope, limit, x, v, a, g, h))
    np.testing.assert_array_equal(call(one_sided_weight, D, x), call(bounded_weight, limit, x))
    np.testing.assert_array_equal(call(one_sided_switch, x, v, a), call(bounded_switch, limit, x, v, a))


def test_a_switch_is_a_change_of_sign(rng):
    y, v = rng.normal(size=(2, WORLDS))
    np.testing.assert_array_equal(call(one_sided_switch, y, v, 0.5), (y < 0) != (y + 0.5 * v < 0))
    assert not call(one_sided_switch, y, v, 0.0).any()
