"""The elliptic cone: forces minimize over the cone, costs are at that minimum, derivatives match the costs."""

import numpy as np
import pytest

from featherlane.engine.solver.rows.cone import cone_force, cone_slope, cone_switch, cone_weights, is_held
from oracles.uncompiled import call, record, typed

MODEL = record(1, opt_contact_model=0)

WORLDS = 300
ROUNDING = 1e-12  # relative: a few operations
DIFFERENCE = 1e-6  # relative: central differences, steps of 1e-6 of values near 1
DIMS = (3, 4, 6)


def contact(dim, rng, **others):
    """Returns slot 1 of two, in as many worlds: y of size 1, and other D, Dt in each; absent in the last world."""
    mu2, D = rng.uniform(0.3, 3, WORLDS), rng.uniform(1, 4, WORLDS)
    D[-1] = 0.0
    y = rng.normal(size=(12, WORLDS))
    y[9 + (dim - 3) :] = 0.0  # components beyond the dimension
    y[:, -1] = 0.0
    two = np.array([np.full(WORLDS, np.nan), D])
    return record(
        WORLDS,
        nconmax=2,
        con_dim=[9, dim],
        con_D=two,
        con_Dt=two / mu2,
        con_slip=two / (1 + mu2),
        primal={"con_y": y},
        **others,
    )


def rows_of(dim):
    """Returns the rows of the contact's y: normal and tangents in its slot, rotations after all slots."""
    return [3, 4, 5, 9, 10, 11][:dim]


def forces(d, dim, y=None):
    """Returns (dim, worlds) forces, and costs."""
    y = d.primal.con_y if y is None else typed(y, "primal.con_y", {"nconmax": 2})
    f, s, c = call(cone_force, MODEL, d, 1, y)
    return np.array([f, *(s * y.array[i] for i in rows_of(dim)[1:])]), c


def zones(f):
    """Returns 0 for separation, 1 for sticking, 2 for slipping."""
    across = np.linalg.norm(f[1:], axis=0)
    return np.where(f[0] <= 0, 0, np.where(across < f[0] * (1 - 1e-9), 1, 2))


@pytest.mark.parametrize("dim", DIMS)
def test_forces_are_the_best_of_their_cone(dim, rng):
    """f minimizes f.R f / 2 + f.y over |f across| <= f along n: (y + R f).(g - f) >= 0 for every g of the cone."""
    d = contact(dim, rng)
    f, c = forces(d, dim)
    y = d.primal.con_y.array[rows_of(dim), :-1]
    R = 1 / np.array([d.con_D.array[1], *[d.con_Dt.array[1]] * (dim - 1)])[:, :-1]
    assert not f[:, -1].any() and c[-1] == 0
    f, c = f[:, :-1], c[:-1]
    assert (np.linalg.norm(f[1:], axis=0) <= f[0] + ROUNDING).all()
    np.testing.assert_allclose(c, -(f * y).sum(0) - 0.5 * (R * f * f).sum(0), atol=1e-11)
    for _ in range(30):
        t = rng.normal(size=(dim - 1, WORLDS - 1))
        g = np.array([rng.uniform(0, 9, WORLDS - 1) * np.ones(WORLDS - 1), *(t / np.linalg.norm(t, axis=0))])
        g[1:] *= g[0]
        assert (((y + R * f) * (g - f)).sum(0) > -1e-11).all()
    assert {*zones(f)} == {0, 1, 2}


@pytest.mark.parametrize("dim", DIMS)
def test_derivatives_along_a_line_equal_those_of_the_cost(dim, rng):
    d = contact(dim, rng)
    z = rng.normal(size=(12, WORLDS))
    z[9 + dim - 3 :], z[:, -1] = 0.0, 0.0
    d.primal.con_z = typed(z, "primal.con_z", {"nconmax": 2})
    y, a, e = d.primal.con_y.array, 0.3, 1e-6
    g, h = call(cone_slope, MODEL, d, 1, a, 2.0, 5.0)
    up, down = (forces(d, dim, y + (a + s) * z)[1] for s in (e, -e))
    np.testing.assert_allclose(g - 2.0, (up - down) / (2 * e), rtol=DIFFERENCE, atol=1e-8)
    after, before = (call(cone_slope, MODEL, d, 1, a + s, 0.0, 0.0)[0] for s in (e, -e))
    apart = np.abs((after - before) / (2 * e) - (h - 5.0)) > 1e-4 * np.maximum(1, np.abs(h))
    assert apart.sum() <= 1  # a world at a zone's border


@pytest.mark.parametrize("dim", DIMS)
def test_weights_are_the_derivative_of_the_force(dim, rng):
    d = contact(dim, rng)
    (w, b1, q, b), inverse = call(cone_weights, MODEL, d, 1)
    at, y, e, off = rows_of(dim), d.primal.con_y.array, 1e-6, 0
    n, t = np.eye(dim)[0], np.array([np.zeros(WORLDS), *(inverse * y[at[1:]])])
    others = np.diag(np.array([0.0, *[1.0] * (dim - 1)]))
    W = w * np.multiply.outer(np.outer(n, n), np.ones(WORLDS)) + b * others[..., None]
    W = W - b1 * (n[:, None, None] * t[None] + t[:, None] * n[None, :, None]) + q * t[:, None] * t[None]
    for c in range(dim):
        step = np.zeros_like(y)
        step[at[c], :-1] = e
        expected = -(forces(d, dim, y + step)[0] - forces(d, dim, y - step)[0]) / (2 * e)
        off = np.maximum(off, np.abs(W[:, c] - expected).max(axis=0))
    assert (off > 1e-5).sum() <= 1


@pytest.mark.parametrize("dim", DIMS)
def test_switches_mark_inexact_steps(dim, rng):
    d = contact(dim, rng)
    z = rng.normal(size=(12, WORLDS))
    z[9 + dim - 3 :], z[:, -1] = 0.0, 0.0
    d.primal.con_z = typed(z, "primal.con_z", {"nconmax": 2})
    a = 0.2
    before, after = zones(forces(d, dim)[0]), zones(forces(d, dim, d.primal.con_y.array + a * z)[0])
    n = call(cone_switch, d, 1, a)
    assert (n[before != after] > 0).all() and (before != after).any()
    same = (before == after) & (before != 2)
    assert not n[same].any()
    assert (n[(before == 2) & (after == 2)] > 0).all()  # they rotate
    # along the slip direction nothing rotates, and only n may change
    straight = d.primal.con_y.array * rng.normal(size=WORLDS)
    straight[3] = z[3]
    d.primal.con_z = typed(straight, "primal.con_z", {"nconmax": 2})
    after = zones(forces(d, dim, d.primal.con_y.array + 1e-3 * straight)[0])
    n = call(cone_switch, d, 1, 1e-3)
    slides = (before == 2) & (after == 2)
    assert slides.any() and not n[slides].any()


@pytest.mark.parametrize("dim", DIMS)
def test_separating_contacts_are_not_sticking(dim, rng):
    d = contact(dim, rng)
    f, _ = forces(d, dim)
    np.testing.assert_array_equal(call(is_held, MODEL, d, 1), f[0] > 0)


def test_forces_and_costs_are_continuous_over_the_borders_of_zones(rng):
    d = contact(3, rng)
    y, D, Dt = d.primal.con_y.array, d.con_D.array[1], d.con_Dt.array[1]
    T = np.hypot(y[4], y[5])
    for border in (T, -(Dt / np.maximum(D, 1e-3)) * T):
        near = []
        for side in (-1e-9, 1e-9):
            y[3] = border + side
            near.append(forces(d, 3))
        for x, z in zip(*near, strict=True):
            assert np.abs(x - z)[..., :-1].max() < 1e-7
