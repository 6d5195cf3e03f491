"""Quaternions of many bodies at once, against rotation matrices."""

import numpy as np
import pytest

from featherlane.engine.spatial.rotation import from_z, product, to_world

EXACT = 1e-14


def matrix(q):
    """Returns the rotation matrix of one unit quaternion."""
    w, x, y, z = q
    cross = np.array([(0, -z, y), (z, 0, -x), (-y, x, 0)])
    return np.eye(3) + 2 * w * cross + 2 * cross @ cross


def some(n, seed=0):
    q = np.random.default_rng(seed).normal(size=(n, 4))
    return q / np.linalg.norm(q, axis=1, keepdims=True)


def test_a_product_rotates_by_both_factors_in_turn():
    p, q = some(5, 1), some(5, 2)
    for one, other, both in zip(p, q, product(p, q), strict=True):
        assert np.allclose(matrix(one) @ matrix(other), matrix(both), atol=EXACT)


def test_vector_rotation_equals_matrix_rotation():
    q, v = some(5), np.random.default_rng(3).normal(size=(5, 3))
    assert np.allclose(to_world(q, v), [matrix(a) @ b for a, b in zip(q, v, strict=True)], atol=EXACT)


def test_worlds_and_parts_broadcast():
    q, v = some(6).reshape(3, 2, 4), np.arange(6.0).reshape(2, 3)
    assert to_world(q, v).shape == (3, 2, 3)
    assert product(q, some(2)).shape == (3, 2, 4)
    assert np.allclose(to_world(q, v)[2, 1], matrix(q[2, 1]) @ v[1], atol=EXACT)


@pytest.mark.parametrize("axis", [(0, 0, 1), (0, 0, -1), (1, 0, 0), (0, -2, 0), (1e-9, 0, -1), (3, -4, 5)])
def test_z_is_rotated_onto_an_axis(axis):
    q = from_z(np.array(axis, float))
    assert np.linalg.norm(q) == pytest.approx(1)
    assert to_world(q, np.array((0.0, 0.0, 1.0))) == pytest.approx(np.array(axis) / np.linalg.norm(axis), abs=1e-6)


def test_a_zero_axis_gives_the_identity():
    assert from_z(np.zeros(3)).tolist() == [1, 0, 0, 0]
