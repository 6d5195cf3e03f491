"""Coulomb's law of one contact: forces obey the law, slopes and weights are derivatives."""

import numpy as np
import pytest

from featherlane.engine.solver.rows.coulomb import (
    coulomb_force,
    coulomb_weights,
    friction_bound,
    model_friction,
    model_slope,
    slip_rate,
    tresca_slope,
)
from oracles.uncompiled import call, record

WORLDS = 300
DIMS = (3, 4, 6)


def contact(dim, rng, **others):
    """Returns slot 1 of two in many worlds, with y of size 1; absent in the last world."""
    D, Dt = rng.uniform(1, 4, WORLDS), rng.uniform(1, 9, WORLDS)
    D[-1] = Dt[-1] = 0.0
    y = rng.normal(size=(12, WORLDS))
    y[9 + (dim - 3) :] = 0.0  # components beyond the dimension
    y[:, -1] = 0.0
    rows = {"con_D": np.array([D * np.nan, D]), "con_Dt": np.array([D * np.nan, Dt])}
    zone = rng.normal(size=(12, WORLDS))  # of the solver: w, then a direction of length 1 if the contact slips, or 0
    zone[9 + (dim - 3) :] = 0.0
    zone[rows_of(dim)[1:]] *= (np.arange(WORLDS) % 2) / np.linalg.norm(zone[rows_of(dim)[1:]], axis=0)
    zone[3] = rng.uniform(1, 9, WORLDS)
    rows |= {"coulomb": {"zone": zone}}
    return record(WORLDS, nconmax=2, con_dim=[9, dim], primal={"con_y": y} | others, **rows)


def rows_of(dim):
    """Returns the rows of the contact's y: normal and tangents in its slot, rotations after all slots."""
    return [3, 4, 5, 9, 10, 11][:dim]


def forces(d, dim, y, limit=None):
    """Returns (dim, worlds) forces at y; `limit` replaces the friction bound."""
    D, Dt = d.con_D.array[1], d.con_Dt.array[1]
    f = np.maximum(-D * y[0], 0.0)
    T = np.linalg.norm(y[1:], axis=0)
    limit = f if limit is None else limit
    s = np.where(Dt * T <= limit, Dt, limit / np.where(T > 0, T, 1.0))
    return np.array([f, *(-s * y[1:])])


@pytest.mark.parametrize("dim", DIMS)
def test_forces_obey_the_law(dim, rng):
    d = contact(dim, rng)
    f, s, _ = call(coulomb_force, d, 1, d.primal.con_y)
    y = d.primal.con_y.array[rows_of(dim)]
    found = np.array([f, *(s * y[1:])])
    np.testing.assert_allclose(found, forces(d, dim, y), atol=1e-12)
    across = np.linalg.norm(found[1:], axis=0)
    assert (across <= f * (1 + 1e-12)).all() and not found[:, -1].any()
    slips = across > f * (1 - 1e-12)
    slips &= f > 0
    assert slips.any() and (~slips & (f > 0)).any() and (f == 0).any()
    np.testing.assert_array_equal(call(friction_bound, d, 1, d.primal.con_y), f)


@pytest.mark.parametrize("dim", DIMS)
def test_slopes_along_a_line_keep_the_bound(dim, rng):
    v = rng.normal(size=(12, WORLDS))
    v[9 + (dim - 3) :] = 0.0
    d = contact(dim, rng, con_z=v)
    y, p = d.primal.con_y.array[rows_of(dim)], v[rows_of(dim)]
    limit = np.maximum(-d.con_D.array[1] * y[0], 0.0)
    for a in (0.0, 0.4, 1.0):
        g, h = call(tresca_slope, d, 1, a, 2.0, 5.0)
        expected = -(forces(d, dim, y + a * p, limit) * p).sum(0)
        np.testing.assert_allclose(g - 2.0, expected, atol=1e-10)
        e = 1e-6
        after, before = (-(forces(d, dim, y + (a + s) * p, limit) * p).sum(0) for s in (e, -e))
        smooth = np.abs((after - before) / (2 * e) - (h - 5.0)) < 1e-3
        assert smooth.mean() > 0.99  # all but the worlds that change their zone within the difference


@pytest.mark.parametrize("dim", DIMS)
def test_slopes_along_a_line_are_those_of_the_linear_model(dim, rng):
    v = rng.normal(size=(12, WORLDS))
    v[9 + (dim - 3) :] = 0.0
    d = contact(dim, rng, con_z=v)
    y, p = d.primal.con_y.array[rows_of(dim)], v[rows_of(dim)]
    w, *t = d.coulomb.zone.array[rows_of(dim)]

    def model(y):
        """Returns (dim, worlds) forces: friction b t across the slip with stiffness w, or -w y without slip."""
        b = np.maximum(-d.con_D.array[1] * y[0], 0.0)
        across = y[1:] - np.array(t) * (t * y[1:]).sum(0)
        return np.array([b, *(b * np.array(t) - w * across)])

    along, stiffness = call(model_friction, d, 1)
    np.testing.assert_allclose(along * np.array(t) - stiffness * y[1:], model(y)[1:], atol=1e-12)
    for a in (0.0, 0.4, 1.0):
        g, h = call(model_slope, d, 1, a, 2.0, 5.0)
        np.testing.assert_allclose(g - 2.0, -(model(y + a * p) * p).sum(0), atol=1e-10)
        e = 1e-6
        after, before = (-(model(y + (a + s) * p) * p).sum(0) for s in (e, -e))
        smooth = np.abs((after - before) / (2 * e) - (h - 5.0)) < 1e-3
        assert smooth.mean() > 0.99  # all but the worlds that open or close within the difference


@pytest.mark.parametrize("dim", DIMS)
def test_weights_and_slip_rates_are_the_derivative_of_the_force(dim, rng):
    d = contact(dim, rng)
    y = d.primal.con_y.array[rows_of(dim)]
    (w, e, q, b), inverse = call(coulomb_weights, d, 1)
    slips, rate = call(slip_rate, d, 1)
    t, n = y[1:] * inverse, len(y)
    W = np.zeros((n, n, WORLDS))
    W[0, 0] = w
    W[1:, 1:] = q * t[:, None] * t[None] + np.eye(n - 1)[:, :, None] * b
    W[1:, 0] = -rate * y[1:]  # beyond the weights: a rising normal acceleration lowers the bound
    assert not np.any(e)
    for j in range(n):
        step = np.zeros((n, 1))
        step[j] = 1e-6
        difference = -(forces(d, dim, y + step) - forces(d, dim, y - step)) / 2e-6
        assert (np.abs(difference - W[:, j]) < 1e-3).all(0).mean() > 0.99
    assert slips.any() and not slips[-1]
