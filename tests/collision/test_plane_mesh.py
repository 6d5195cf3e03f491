"""Hulls over a plane: MuJoCo's corners in any pose, the lowest vertex by definition."""

import numpy as np
import pytest

from featherlane.engine.model import load
from scenes.poses import IDENTITY, collide, equal_at, frames, random_quat

SCENE = """
<mujoco>
  <asset><mesh name="m" vertex="{vertices}"/></asset>
  <worldbody>
    <body mocap="true"><geom type="plane" size="1 1 1"/></body>
    <body><freejoint/><geom type="mesh" mesh="m" margin="{margin}"/></body>
  </worldbody>
</mujoco>"""
FLOAT32 = 1e-7  # vertices are float32: vertices of the same height may differ by rounding


def ball(rng):
    """Returns 5 to 39 points of an ellipsoid."""
    v = rng.standard_normal((rng.integers(5, 40), 3))
    return v / np.linalg.norm(v, axis=1, keepdims=True) * (0.2, 0.25, 0.3)


def pebble(rng):
    """Returns 300 points of an ellipsoid: enough for hill climbing."""
    v = rng.standard_normal((300, 3))
    return v / np.linalg.norm(v, axis=1, keepdims=True) * (0.2, 0.25, 0.3)


def drum(rng):
    """Returns two faces of 30 to 60 corners: hill climbing among vertices of the same height."""
    return prism(rng, rng.integers(30, 61))


def prism(rng, corners=None):
    """Returns two faces of 3 to 13 corners, with rectangular sides."""
    a = np.sort(rng.uniform(0, 2 * np.pi, corners or rng.integers(3, 14)))
    rim = np.stack([0.2 * np.cos(a), 0.3 * np.sin(a), np.full(a.size, 0.1)], axis=1)
    return np.concatenate([rim, rim * (1, 1, -1)])


def brick(rng):
    """Returns a box of eight vertices."""
    return np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * rng.uniform(0.1, 0.3, 3)


SHAPES = (ball, pebble, prism, brick)


def scene(vertices, margin=0.0):
    return load(SCENE.format(vertices=" ".join(f"{x:.9g}" for x in np.ravel(vertices)), margin=margin))


def over_a_plane(rng, count, tilt):
    """Returns poses of a mesh over a plane in any pose; it is rotated by about `tilt`, or arbitrarily."""
    pos, quat = np.zeros((count, 2, 3)), np.empty((count, 2, 4))
    pos[:, 1, 2] = rng.uniform(0, 0.3, count)
    quat[:, 0] = IDENTITY
    quat[:, 1] = random_quat(rng, count)
    if tilt is not None:
        quat[:, 1] = (1, 0, 0, 0) + tilt * quat[:, 1]
    quat[:, 1] /= np.linalg.norm(quat[:, 1], axis=1, keepdims=True)
    return pos, quat


@pytest.mark.parametrize("meshes, count", [(4, 50), pytest.param(100, 100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("margin", [0.0, 0.05])
@pytest.mark.parametrize("tilt", [None, 1e-1, 1e-4])
@pytest.mark.parametrize("shape", SHAPES)
def test_contacts_equal_mujoco(shape, tilt, margin, meshes, count, rng):
    most = 0
    for _ in range(meshes):
        most = max(most, *equal_at(scene(shape(rng), margin), *over_a_plane(rng, count, tilt), 8))
    assert most >= 3


@pytest.mark.parametrize("shape", [prism, drum, brick])
def test_a_flat_face_has_mujocos_corners_in_order(shape, rng):
    for _ in range(5):
        model = scene(shape(rng), 0.01)
        assert set(equal_at(model, *over_a_plane(rng, 8, 0.0), 8)) <= {0, 3, 4}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_lowest_vertex_touches_first(shape, rng):
    model = scene(shape(rng), 0.1)
    xpos, xmat = frames(model, *over_a_plane(rng, 50, None))
    vertices = model.hull_vert.reshape(-1, 3)
    for p, R, points in zip(xpos, xmat, collide(model, xpos, xmat, 8), strict=True):
        height = (vertices @ R[1].reshape(3, 3).T + p[1])[:, 2]
        assert bool(len(points)) == (height.min() <= 0.1)
        if len(points):
            np.testing.assert_allclose(points.dist[0], height.min(), rtol=0, atol=1e-15)
            assert points.dist.min() == points.dist[0]
            for dist in points.dist:
                assert np.abs(height - dist).min() < 1e-15


def test_selected_corners_of_a_round_face_cover_most_of_it(rng):
    """A prism of 40 corners stands on four, which are not adjacent."""
    a = np.arange(40) * 2 * np.pi / 40
    rim = np.stack([0.2 * np.cos(a), 0.2 * np.sin(a), np.full(a.size, 0.1)], axis=1)
    model = scene(np.concatenate([rim, rim * (1, 1, -1)]))
    found = collide(model, *frames(model, [[(0, 0, 0), (0, 0, 0.0999)]], [[IDENTITY, IDENTITY]]), 1)[0]
    assert len(found) == 4
    p, q, r, s = found.pos
    area = 0.5 * np.linalg.norm(np.cross(r - p, s - q))
    assert area > 1.8 * 0.2 * 0.2  # the largest has 2 r^2
    np.testing.assert_allclose(found.dist, -0.0001, rtol=0, atol=FLOAT32)
