"""Cylinders and ellipsoids with planes and spheres: degenerate poses against MuJoCo, distances against formulas."""

import numpy as np
import pytest

from featherlane.engine.simulation.tile.workspace import Workspace
from sampling import in_ci
from scenes.poses import PAIRS, aligned_poses, collide, equal_at, frames, pair_model, random_poses, random_quat

EXACT = 1e-12
OFFSETS = {
    "plane-ellipsoid": ((0,), (0,), (0.1, 0.2, 0.3, 0.299, 0.0, -0.3)),
    "plane-cylinder": ((0,), (0,), (0.2, 0.3, 0.299, 0.1, 0.0, -0.3)),
    "sphere-cylinder": ((0, 0, 0.2, 0.4, 0.1), (0, 0, 0.2), (0, 0.1, -0.1, 0.3, -0.3, 0.5)),
}


@pytest.mark.parametrize("count", [400, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("margin", [0.003, 0.01])  # without one, rounding decides if touching shapes have a contact
@pytest.mark.parametrize("name", OFFSETS)
def test_contacts_equal_mujoco_or_are_exact_for_aligned_axes(name, margin, count, rng):
    found = equal_at(pair_model(*PAIRS[name][:2], margin), *aligned_poses(rng, OFFSETS[name], count), 8)
    assert np.count_nonzero(found) > 0


def lowest(kind, n, R, size):
    """Returns the shape's extent in direction -n, by definition."""
    u = R.T @ n
    if kind == "ellipsoid":
        return np.linalg.norm(size * u)
    return size[1] * abs(u[2]) + size[0] * np.sqrt(max(1 - u[2] ** 2, 0))


@pytest.mark.parametrize("kind", ["ellipsoid", "cylinder"])
def test_the_first_point_is_the_lowest(kind, rng):
    model = pair_model(*PAIRS[f"plane-{kind}"][:2], margin=0.1)
    xpos, xmat = frames(model, *random_poses(rng, f"plane-{kind}", 300))
    for p, R, points in zip(xpos, xmat, collide(model, xpos, xmat, 8), strict=True):
        n = R[0].reshape(3, 3)[:, 2]
        dist = n @ (p[1] - p[0]) - lowest(kind, n, R[1].reshape(3, 3), model.geom_size[1])
        assert bool(len(points)) == (dist <= 0.1)
        if len(points):
            np.testing.assert_allclose(points.dist[0], dist, rtol=0, atol=EXACT)
            assert points.dist.min() == points.dist[0]


def test_points_of_a_cylinder_lie_on_its_rims(rng):
    model = pair_model(*PAIRS["plane-cylinder"][:2], margin=0.1)
    xpos, xmat = frames(model, *random_poses(rng, "plane-cylinder", 100))
    for p, R, points in zip(xpos, xmat, collide(model, xpos, xmat, 8), strict=True):
        if len(points):
            surface = points.pos + 0.5 * points.dist[:, None] * points.frame[:, :3]
            local = (surface - p[1]) @ R[1].reshape(3, 3)
            np.testing.assert_allclose(np.hypot(local[:, 0], local[:, 1]), 0.2, rtol=0, atol=EXACT)
            np.testing.assert_allclose(np.abs(local[:, 2]), 0.3, rtol=0, atol=EXACT)


def test_sphere_cylinder_distance_equals_the_signed_distance_function(rng):
    model = pair_model(*PAIRS["sphere-cylinder"][:2], margin=1.0)
    xpos, xmat = frames(model, *random_poses(rng, "sphere-cylinder", 400))
    for p, R, points in zip(xpos, xmat, collide(model, xpos, xmat, 8), strict=True):
        x, y, z = R[1].reshape(3, 3).T @ (p[0] - p[1])
        out = np.array([np.hypot(x, y) - 0.2, abs(z) - 0.3])
        signed = np.linalg.norm(np.maximum(out, 0)) + min(out.max(), 0)
        np.testing.assert_allclose(points.dist, [signed - 0.2], rtol=0, atol=EXACT)


# ---- all closed forms ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", PAIRS)
def test_float32_agrees_with_float64(name, rng):
    """Distances agree to float32 rounding; in a scalar pair's few ties the number of points differs."""
    model = pair_model(*PAIRS[name][:2])
    xpos, xmat = frames(model, *random_poses(rng, name, 64))
    xpos = xpos - xpos[:, :1]
    exact, found = collide(model, xpos, xmat, 8), collide(model, xpos, xmat, 16, Workspace(model, 16, np.float32))
    other = 0
    for ours, expected in zip(found, exact, strict=True):
        if len(ours) == len(expected):
            np.testing.assert_allclose(ours.dist, expected.dist, rtol=0, atol=1e-5)
        else:
            other += 1
    assert other <= 2


@pytest.mark.parametrize("count", [in_ci(256), pytest.param(25_600, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", PAIRS)
def test_no_pose_yields_non_finite_values(name, count, rng, monkeypatch):
    """Covers, with bounds checks, sizes and distances of all scales, aligned axes and coincident centres."""
    monkeypatch.setenv("FEATHERLANE_MODE", "checked")
    grid = ((-0.3, 0, 0.1, 0.3),) * 3
    many = 256
    for _ in range(-(-count // many)):
        model = pair_model(*PAIRS[name][:2], margin=rng.choice([0, 1e-9, 0.1]))
        model.geom_size[:] *= 10.0 ** rng.uniform(-3, 1, (2, 1))
        pos, quat = random_poses(rng, name, many)
        pos[::2], quat[::2] = aligned_poses(rng, grid, many // 2)
        pos[::3, 1] = pos[::3, 0] + 10.0 ** rng.uniform(-17, 0) * random_quat(rng, len(pos[::3]))[:, :3]
        for points in collide(model, *frames(model, pos, quat), 8):
            assert np.isfinite(points.dist).all() and np.isfinite(points.pos).all()
            np.testing.assert_allclose(np.linalg.norm(points.frame[:, :3], axis=1), 1.0, rtol=0, atol=1e-9)
