"""A quadratic over a disc: the conditions of its minimum, and a scan."""

import numpy as np
import pytest

from featherlane.engine.dynamics.sparse.packed_factor import triangle_index
from featherlane.engine.solver.dual.friction_disc import solve_on_disc
from oracles.uncompiled import call, record

WORLDS = 200
SIZES = {"t": 5, "b": 5, "w": 5, "A": 15, "L": 15}
EXACT = 1e-11  # relative to values near 1, times the condition of A


def disc(n, rng, dtype=float):
    """Returns A (n, n, worlds), b, and a record that holds them."""
    L = rng.normal(size=(n, n, WORLDS))
    matrix = np.einsum("abw,cbw->acw", L, L) + 0.05 * np.eye(n)[..., None]
    b = rng.normal(size=(n, WORLDS))
    return matrix, b, problem(matrix, b, WORLDS, dtype)


def problem(matrix, b, worlds, dtype=float):
    """Returns a record with A (n, n, worlds) and b (n, worlds)."""
    n, disc = len(b), {name: np.full((size, worlds), np.nan) for name, size in SIZES.items()}
    for c in range(n):
        for e in range(c + 1):
            disc["A"][triangle_index(c, e)] = matrix[c, e]
    disc["b"][:n] = b
    return record(worlds, dtype, disc=disc)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_the_force_minimizes_the_cost_on_its_disc(n, rng):
    """Inside the disc A t = -b; else |t| = r, and A t + b = -l t with l >= 0."""
    matrix, b, d = disc(n, rng)
    r = rng.uniform(0.05, 3, WORLDS)
    call(solve_on_disc, d, n, r)
    t = d.disc.t.array[:n]
    length, slope = np.linalg.norm(t, axis=0), np.einsum("abw,bw->aw", matrix, t) + b
    assert (length <= r * (1 + EXACT)).all()
    inside = length < r * (1 - 1e-9)
    assert inside.any() and not inside.all()
    assert np.abs(slope[:, inside]).max() < EXACT
    multiplier = -(slope * t).sum(0) / length**2
    assert (multiplier[~inside] >= -EXACT).all()
    assert np.abs(slope + multiplier * t)[:, ~inside].max() < 1e-8
    np.testing.assert_allclose(length[~inside], r[~inside], rtol=EXACT)


def test_no_point_of_a_scan_is_better(rng):
    matrix, b, d = disc(2, rng)
    r = rng.uniform(0.05, 3, WORLDS)
    call(solve_on_disc, d, 2, r)

    def cost(t):
        return 0.5 * np.einsum("aw,abw,bw->w", t, matrix, t) + (b * t).sum(0)

    best = cost(d.disc.t.array[:2])
    for angle in np.linspace(0, 2 * np.pi, 60):
        for part in (0.1, 0.5, 0.9, 1.0):
            assert (cost(part * r * np.array([[np.cos(angle)], [np.sin(angle)]])) >= best - 1e-12).all()


def test_a_disc_of_zero_radius_has_no_force(rng):
    _, _, d = disc(3, rng)
    call(solve_on_disc, d, 3, np.zeros(WORLDS))
    assert not d.disc.t.array[:3].any()


def test_an_immobile_direction_has_no_force(rng):
    matrix, b, d = disc(2, rng)
    d.disc.A.array[[triangle_index(1, 0), triangle_index(1, 1)]] = 0.0
    call(solve_on_disc, d, 2, np.full(WORLDS, 100.0))
    t, alone = d.disc.t.array[:2], -b[0] / matrix[0, 0]
    short = np.abs(alone) < 99
    np.testing.assert_allclose(t[0, short], alone[short], rtol=EXACT)
    assert np.abs(t[1]).max() < 1e-25


@pytest.mark.parametrize("n", [2, 5])
def test_float32_reaches_the_rim(n, rng):
    """Iteration counts of other worlds have no effect: all worlds iterate until the last one converges."""
    _, _, d = disc(n, rng, np.float32)
    r = rng.uniform(0.05, 0.5, WORLDS).astype(np.float32)
    call(solve_on_disc, d, n, r)
    assert (np.linalg.norm(d.disc.t.array[:n], axis=0) <= r * (1 + 1e-6)).all()


def test_a_world_is_bitwise_equal_to_a_single_world(rng):
    matrix, b, d = disc(3, rng)
    r = rng.uniform(0.05, 3, WORLDS)
    call(solve_on_disc, d, 3, r)
    for w in range(4):
        alone = problem(matrix[..., w : w + 1], b[:, w : w + 1], 1)
        call(solve_on_disc, alone, 3, r[w : w + 1])
        np.testing.assert_allclose(alone.disc.t.array[:3, 0], d.disc.t.array[:3, w], rtol=1e-12)
