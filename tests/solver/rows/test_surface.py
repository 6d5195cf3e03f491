"""Moving surfaces: a point of a moving geom, and the contact velocities between two of them."""

import numpy as np

from featherlane.engine.solver.rows.surface import add_surface_velocities, surface_velocity
from featherlane.engine.spatial.types import Vec3
from oracles.uncompiled import call, record

ROUNDING = 1e-13  # of a few products of values near 1
DIFFERENCE = 1e-8  # of central differences over 1e-6 of a rotation


def rotation(axis, angle):
    """Returns a rotation matrix by Rodrigues' formula."""
    n = np.linalg.norm(axis)
    K = np.cross(np.eye(3), axis / n)
    return np.eye(3) + np.sin(angle * n) * K + (1 - np.cos(angle * n)) * K @ K


def scene(rng, dims=(1, 3, 4, 6)):
    """Returns two geoms with velocities and contacts of every dimension between them; the last one without geom 1."""
    n = len(dims)
    R = np.array([rotation(rng.normal(size=3), 1.0) for _ in range(2)])
    frames = np.array([rotation(rng.normal(size=3), 1.0) for _ in dims])
    m = record(1, geom_surfacevel=rng.normal(size=12), flg_surfacevel=1)
    d = record(
        1,
        nconmax=n,
        ncon_slot=[n],
        con_dim=[*dims],
        con_geom=[0, 1] * (n - 1) + [-1, 1],
        geom_xmat=R.reshape(-1),
        geom_xpos=rng.normal(size=6),
        con_pos=rng.normal(size=3 * n),
        con_frame=frames.reshape(-1),
        con_friction=rng.uniform(0.1, 1, 5 * n),
        con_frictiondamping=rng.uniform(1, 9, n),
        primal={"con_y": rng.normal(size=6 * n)},
    )
    return m, d, R


def moved(m, d, R, g, p, t):
    """Returns the position of a point of geom g's surface after a time t, with its geom's frame at rest."""
    x, v, w = d.geom_xpos.array[3 * g : 3 * g + 3, 0], *m.geom_surfacevel.array[6 * g : 6 * g + 6, 0].reshape(2, 3)
    return x + R[g] @ (t * v + rotation(w, t) @ R[g].T @ (p - x))


def test_a_surface_moves_as_a_body_of_its_velocity(rng):
    m, d, R = scene(rng)
    for g in range(2):
        p = rng.normal(size=3)
        v, w = call(surface_velocity, m, d, g, Vec3(*p))
        expected = (moved(m, d, R, g, p, 1e-6) - moved(m, d, R, g, p, -1e-6)) / 2e-6
        np.testing.assert_allclose(np.ravel(v), expected, atol=DIFFERENCE)
        np.testing.assert_allclose(np.ravel(w), R[g] @ m.geom_surfacevel.array[6 * g + 3 : 6 * g + 6, 0], atol=ROUNDING)
    assert not np.any(call(surface_velocity, m, d, -1, Vec3(*rng.normal(size=3))))


def test_contacts_use_relative_surface_velocity_along_tangents_and_about_the_normal(rng):
    m, d, _ = scene(rng)
    before = d.primal.con_y.array.copy()
    call(add_surface_velocities, m, d, d.primal.con_y)
    added, n = (d.primal.con_y.array - before)[:, 0], d.nconmax
    for k in range(n):
        p, frame = d.con_pos.array[3 * k : 3 * k + 3, 0], d.con_frame.array[9 * k : 9 * k + 9, 0].reshape(3, 3)
        (v1, w1), (v2, w2) = (call(surface_velocity, m, d, d.con_geom[2 * k + i], Vec3(*p)) for i in range(2))
        v, w = np.ravel(v2) - np.ravel(v1), np.ravel(w2) - np.ravel(w1)
        mu, b, dim = d.con_friction.array[5 * k : 5 * k + 5, 0], d.con_frictiondamping.array[k, 0], d.con_dim[k]
        expected = np.zeros(6)
        if dim > 1:
            expected[1:3] = b * mu[:2] * (frame[1:] @ v)
        if dim > 3:
            expected[3] = b * mu[2] * (frame[0] @ w)
        got = [*added[3 * k : 3 * k + 3], *added[3 * (n + k) : 3 * (n + k) + 3]]
        np.testing.assert_allclose(got, expected, atol=100 * ROUNDING)
