"""Arbitrary input for every pair of shapes: finite results, termination, valid indices.

The slow cases and `.ci/run` use kernels with bounds checks.
"""

import numpy as np
import pytest

from featherlane.engine.collision.collision import collision
from featherlane.engine.simulation.tile.workspace import Workspace
from pages.pairs import CELLS, MARGIN, model_of

NAMES = [f"{first}-{second}" for first, second, _, _ in CELLS]
WIDTH, CHUNK = 8, 4000  # worlds of a tile, poses sampled at once
LATTICE = np.array([-0.45, -0.4, -0.32, -0.25, -0.2, -0.12, -0.05, 0.0, 0.05, 0.12, 0.2, 0.25, 0.32, 0.4, 0.45])
QUARTERS = [np.eye(3)[list(p)] * s for p, s in (((0, 1, 2), 1), ((1, 2, 0), 1), ((0, 2, 1), -1), ((2, 1, 0), -1))]
BAD = (np.nan, np.inf, -np.inf, 1e300, 1e-320)


def orthogonal(a: np.ndarray) -> np.ndarray:
    """Returns the rotations nearest to some matrices."""
    u, _, v = np.linalg.svd(a)
    u[:, :, 2] *= np.linalg.det(u @ v)[:, None]
    return u @ v


def turns(rng, n: int) -> np.ndarray:
    """Returns rotations (n, 3, 3): arbitrary, by multiples of 90 degrees, and by these plus a little."""
    anyhow = orthogonal(rng.normal(size=(n, 3, 3)))
    quarter = np.array(QUARTERS)[rng.integers(4, size=n)]
    w = rng.normal(size=(n, 3)) * 10.0 ** rng.uniform(-16, -3, (n, 1))
    zero = np.zeros(n)
    little = np.array([[zero, -w[:, 2], w[:, 1]], [w[:, 2], zero, -w[:, 0]], [-w[:, 1], w[:, 0], zero]])
    nearly = orthogonal(quarter @ (np.eye(3) + little.transpose(2, 0, 1)))
    which = rng.random(n)[:, None, None]
    return np.where(which < 0.4, anyhow, np.where(which < 0.7, quarter, nearly))


def poses(rng, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns positions (n, 2, 3), orientations (n, 2, 9), and which are finite: one in twenty is not."""
    lattice, anywhere = rng.choice(LATTICE, (n, 2, 3)), 0.25 * rng.standard_normal((n, 2, 3))
    pos = np.where(rng.random((n, 1, 1)) < 0.6, lattice, anywhere)
    mat = turns(rng, 2 * n).reshape(n, 2, 9)
    healthy = rng.random(n) > 0.05
    for k in np.flatnonzero(~healthy):
        target = pos[k] if rng.random() < 0.5 else mat[k]
        target.ravel()[rng.integers(target.size)] = rng.choice(BAD)
    return pos, mat, healthy


def check(ws, most: int, healthy: np.ndarray) -> int:
    """Reads all slots of a tile; returns the number of its contacts."""
    count = int(ws.arrays["ncon_slot"][0])
    assert count <= most
    if count == 0:
        return 0
    present = ws.arrays["con_present"][:count] > 0
    seen = present & healthy
    dist = ws.arrays["con_dist"][:count]
    assert np.isfinite(dist[seen]).all()
    assert (dist[seen] <= MARGIN + 1e-12).all()
    assert np.isfinite(ws.arrays["con_pos"][: 3 * count].reshape(count, 3, -1).transpose(0, 2, 1)[seen]).all()
    frame = ws.arrays["con_frame"][: 9 * count].reshape(count, 3, 3, -1).transpose(0, 3, 1, 2)[seen]
    if len(frame):
        assert np.abs(frame @ frame.transpose(0, 2, 1) - np.eye(3)).max() < 1e-9
    return int(seen.sum())


@pytest.mark.parametrize("total", [400, pytest.param(1_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("cell", CELLS, ids=NAMES)
def test_no_pose_hangs_writes_out_of_bounds_or_yields_non_finite_values(cell, total, rng, monkeypatch):
    first, second, _, most = cell
    if total > CHUNK:
        monkeypatch.setenv("FEATHERLANE_MODE", "checked")
    ws, met = Workspace(model_of(first, second), WIDTH), 0
    run, xpos, xmat = ws.bound(collision), ws.arrays["geom_xpos"], ws.arrays["geom_xmat"]
    ws.rows.refresh()
    for _ in range(0, total, min(CHUNK, total)):
        pos, mat, healthy = poses(rng, min(CHUNK, total))
        for k in range(0, len(pos), WIDTH):
            tile = slice(k, k + WIDTH)
            xpos[...], xmat[...] = pos[tile].reshape(WIDTH, -1).T, mat[tile].reshape(WIDTH, -1).T
            run()
            met += check(ws, most, healthy[tile])
    assert met > total / 50
