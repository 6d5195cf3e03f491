"""Vectors, quaternions, spatial vectors and inertias against their definitions in NumPy; kernels run uncompiled."""

from __future__ import annotations

import numpy as np
import pytest

from featherlane.engine.spatial.inertia import inert_from_com, inert_mul
from featherlane.engine.spatial.motion import cross_force, cross_motion, dot6
from featherlane.engine.spatial.quaternion import (
    axis_angle_quat,
    quat_conj,
    quat_integrate,
    quat_log,
    quat_mul,
    quat_normalize,
    quat_renormalize,
    quat_sub,
    quat_to_mat,
    quat_z_axis,
    rotate,
    rotation_vector_quat,
)
from featherlane.engine.spatial.vector import (
    cross,
    cross_plus,
    dot3,
    mat_mul,
    mat_mul_vec,
    mat_t_mul_vec,
    norm3,
    normalize3,
)
from oracles.naive import matrix, rotation, skew

WIDTH = 8
ROUNDING = 1e-14  # some tens of rounding errors of values around 1


@pytest.fixture
def draw(rng):
    """Returns a function from n to a tuple of n values, as kernels take them."""
    return lambda n: tuple(rng.standard_normal((n, WIDTH)))


def worlds(value):
    """Converts values to one row of numbers per world."""
    return np.stack(value, axis=-1)


def assert_close(found, expected, tolerance=ROUNDING):
    np.testing.assert_allclose(worlds(found), expected, rtol=tolerance, atol=tolerance)


def test_products_of_vectors_and_matrices(draw):
    a, b, c, R, S = draw(3), draw(3), draw(3), draw(9), draw(9)
    A, B = worlds(R).reshape(-1, 3, 3), worlds(S).reshape(-1, 3, 3)
    assert_close(cross(a, b), np.cross(worlds(a), worlds(b)))
    assert_close(cross_plus(a, b, c), np.cross(worlds(a), worlds(b)) + worlds(c))
    np.testing.assert_allclose(dot3(a, b), (worlds(a) * worlds(b)).sum(axis=1), atol=ROUNDING)
    assert_close(mat_mul_vec(R, a), np.einsum("wij,wj->wi", A, worlds(a)))
    assert_close(mat_t_mul_vec(R, a), np.einsum("wji,wj->wi", A, worlds(a)))
    assert_close(mat_mul(R, S), (A @ B).reshape(-1, 9))


def test_a_vector_without_length_gets_a_direction(draw):
    v = draw(3)
    v[0][0] = v[1][0] = v[2][0] = 0.0
    unit, length = normalize3(v)
    np.testing.assert_allclose(length, np.linalg.norm(worlds(v), axis=1), atol=ROUNDING)
    np.testing.assert_array_equal(worlds(unit)[0], [1, 0, 0])
    np.testing.assert_allclose(norm3(unit), 1, atol=ROUNDING)


def test_rotations_by_quaternion_matrix_and_axis_agree(draw):
    q, v, axis, angle = quat_normalize(draw(4)), draw(3), normalize3(draw(3))[0], draw(1)[0]
    R = np.array([matrix(x) for x in worlds(q)])
    assert_close(quat_to_mat(q), R.reshape(-1, 9))
    assert_close(rotate(q, v), np.einsum("wij,wj->wi", R, worlds(v)))
    turned = [rotation(a, x) for a, x in zip(worlds(axis), angle, strict=True)]
    assert_close(quat_to_mat(axis_angle_quat(axis, angle)), np.reshape(turned, (-1, 9)))


def test_products_of_quaternions_are_products_of_rotations(draw):
    p, q = quat_normalize(draw(4)), quat_normalize(draw(4))
    product = [matrix(a) @ matrix(b) for a, b in zip(worlds(p), worlds(q), strict=True)]
    assert_close(quat_to_mat(quat_mul(p, q)), np.reshape(product, (-1, 9)))
    identity = np.tile([1.0, 0, 0, 0], (WIDTH, 1))
    assert_close(quat_mul(q, quat_conj(q)), identity)


def test_a_quaternion_without_length_is_the_identity():
    zero = np.zeros(WIDTH)
    assert_close(quat_normalize((zero, zero, zero, zero)), np.tile([1.0, 0, 0, 0], (WIDTH, 1)))


@pytest.mark.parametrize("size", [1e-20, 1e-9, 0.1, 1.0, 1.7])
def test_logarithm_inverts_the_exponential(draw, size):
    r = tuple(size * x for x in normalize3(draw(3))[0])
    assert_close(quat_log(rotation_vector_quat(r)), worlds(r), 4 * ROUNDING)


def test_applying_the_rotation_difference_gives_the_second_rotation(draw):
    a, b = quat_normalize(draw(4)), quat_normalize(draw(4))
    found = quat_integrate(b, quat_sub(a, b), 1.0)
    assert_close(quat_to_mat(found), worlds(quat_to_mat(a)), 1e-13)
    assert np.all(norm3(quat_sub(a, b)) <= np.pi * (1 + ROUNDING))


def motion_matrix(v):
    """Returns v x as a 6 x 6 matrix, rotation first."""
    return np.block([[skew(v[:3]), np.zeros((3, 3))], [skew(v[3:]), skew(v[:3])]])


def test_spatial_cross_products(draw):
    v, m, f = draw(6), draw(6), draw(6)
    X = np.array([motion_matrix(x) for x in worlds(v)])
    assert_close(cross_motion(v, m), np.einsum("wij,wj->wi", X, worlds(m)))
    assert_close(cross_force(v, f), -np.einsum("wji,wj->wi", X, worlds(f)))
    np.testing.assert_allclose(dot6(m, f), (worlds(m) * worlds(f)).sum(axis=1), atol=ROUNDING)


def spatial_inertia(moments, R, c, mass):
    """Returns the 6 x 6 inertia of a body, from the definition: momentum of unit motions."""
    C = skew(c)
    top = R @ np.diag(moments) @ R.T - mass * C @ C
    return np.block([[top, mass * C], [-mass * C, mass * np.eye(3)]])


def test_inertias_act_as_six_by_six_matrices_and_add(draw, rng):
    v, total, expected = draw(6), None, np.zeros((WIDTH, 6, 6))
    for _ in range(2):
        moments, c, mass = tuple(rng.uniform(1, 2, (3, WIDTH))), draw(3), rng.uniform(1, 2, WIDTH)
        R = quat_to_mat(quat_normalize(draw(4)))
        I = inert_from_com(moments, R, c, mass)
        total = I if total is None else total + I
        parts = zip(worlds(moments), worlds(R).reshape(-1, 3, 3), worlds(c), mass, strict=True)
        expected += [spatial_inertia(*part) for part in parts]
    assert_close(inert_mul(total, v), np.einsum("wij,wj->wi", expected, worlds(v)), 10 * ROUNDING)


def test_the_z_axis_is_the_third_column(draw):
    q = draw(4)
    np.testing.assert_array_equal(quat_z_axis(q), quat_to_mat(q)[2::3])


@pytest.mark.parametrize("size", [0.0, 1e-300, 1e-3, 1.0, 1.0 + 1e-12, 1.0 - 1e-8, 7.0])
def test_a_product_of_rotations_is_brought_to_unit_length(draw, size):
    q = tuple(size * x for x in quat_normalize(draw(4)))
    assert_close(quat_renormalize(q), worlds(quat_normalize(q)), 1e-15)


def test_an_unnormalized_quaternion_does_not_change_other_worlds(draw):
    q = quat_normalize(draw(4))
    alone = quat_renormalize(q)
    far = tuple(np.where(np.arange(WIDTH) == 3, 5 * x, x) for x in q)
    together = quat_renormalize(far)
    np.testing.assert_array_equal(np.delete(together, 3, axis=1), np.delete(alone, 3, axis=1))
