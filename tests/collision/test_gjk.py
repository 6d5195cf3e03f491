"""Distance of separated convex shapes: simplices, closed forms, MuJoCo, coal."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from featherlane.engine.collision.convex.gjk import nearest_on_simplex
from featherlane.engine.collision.convex.support import support_point
from scenes.shapes import MESHES, PAIRS, Oracle, Pair, direction, few, random_turn, turn

ROUNDING = 1e-14  # of values near 0.1
CURVED = 1e-12  # Newton's method converges within a few rounding errors of the distance
MUJOCO = 1e-6  # accuracy of MuJoCo's search for curved shapes
COAL = 1e-9


def naive_nearest(points):
    """Returns the simplex point nearest to the origin: the nearest foot on a face, among feet inside their face."""
    best = np.full(3, np.inf)
    for n in range(1, len(points) + 1):
        for face in itertools.combinations(points, n):
            a, e = face[0], np.array(face[1:]).reshape(-1, 3) - face[0]
            t = np.linalg.lstsq(e.T, -a, rcond=None)[0] if n > 1 else np.zeros(0)
            if (t >= -1e-12).all() and t.sum() <= 1 + 1e-12:
                foot = a + t @ e
                best = foot if foot @ foot < best @ best else best
    return best


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("flat", [1.0, 1e-3, 1e-7, 0.0])
def test_nearest_point_of_a_simplex_is_the_nearest_of_its_faces(n, flat, rng):
    pair = Pair()
    a = pair.arrays
    for _ in range(few(50)):
        points = rng.standard_normal((n, 3)) * (1, 1, flat) + rng.standard_normal(3) * (0.5, 0.5, 0.2)
        a["simplex.count"][0] = n
        a["simplex.point"][: 3 * n] = points.ravel()
        pair.workspace.bound(nearest_on_simplex)()
        v, k = a["gjk.nearest"].copy(), int(a["simplex.count"][0])
        assert np.linalg.norm(v) <= np.linalg.norm(naive_nearest(points)) + 1e-9
        weight, kept = a["simplex.weight"][:k], a["simplex.point"][: 3 * k].reshape(k, 3)
        np.testing.assert_allclose(weight.sum(), 1, atol=1e-12)
        if k < 4:  # four contain the origin
            np.testing.assert_allclose(weight @ kept, v, atol=1e-8)


@pytest.mark.parametrize("mesh", list(MESHES))
def test_support_of_a_hull_is_its_highest_vertex(mesh, rng):
    pair = Pair()
    for _ in range(few(100)):
        pair.put(0, mesh)
        pair.put(1, "sphere", (0, 0, 0))
        a = pair.arrays
        a["convex.mat"][:] = np.eye(3).ravel()
        a["convex.pos"][:] = 0
        u = direction(rng)
        a["support.dir"][:] = u
        a["support.vertex"][:2] = rng.integers(len(pair.vertices(0))), 0
        pair.workspace.bound(support_point)()
        assert abs(a["support.point"] @ u - (pair.vertices(0) @ u).max()) < 1e-9  # vertices are float32


CLOSED = {
    "faces of boxes": ("box", (0.1, 0.2, 0.3), "box", (0.1, 0.2, 0.3), (0.5, 0.05, 0), 0.3, (1, 0, 0)),
    "edges of boxes": ("box", (0.1, 0.1, 0.1), "box", (0.1, 0.1, 0.1), (0.5, 0.6, 0.05), 0.5, (0.6, 0.8, 0)),
    "corners of boxes": ("box", (0.1,) * 3, "box", (0.1,) * 3, (0.4, 0.4, 0.3), 0.3, (2 / 3, 2 / 3, 1 / 3)),
    "spheres": ("ellipsoid", (0.1,) * 3, "ellipsoid", (0.2,) * 3, (0.6, 0.8, 0), 0.7, (0.6, 0.8, 0)),
    "sphere and its like": ("sphere", (0.1, 0, 0), "ellipsoid", (0.2,) * 3, (0, 0.6, 0.8), 0.7, (0, 0.6, 0.8)),
    "caps": ("cylinder", (0.1, 0.2, 0), "cylinder", (0.3, 0.1, 0), (0.05, 0, 0.5), 0.2, (0, 0, 1)),
    "sides": ("cylinder", (0.1, 0.2, 0), "cylinder", (0.3, 0.1, 0), (0.3, 0.4, 0.1), 0.1, (0.6, 0.8, 0)),
    "rims": ("cylinder", (0.1, 0.1, 0), "cylinder", (0.1, 0.1, 0), (0.5, 0, 0.6), 0.5, (0.6, 0, 0.8)),
    "cap and box": ("cylinder", (0.1, 0.2, 0), "box", (1, 1, 0.1), (0.3, 0.4, 0.4), 0.1, (0, 0, 1)),
    "capsule and cap": ("capsule", (0.05, 0.1, 0), "cylinder", (0.2, 0.1, 0), (0.1, 0, 0.5), 0.25, (0, 0, 1)),
}


@pytest.mark.parametrize("name", list(CLOSED))
def test_distance_in_closed_form(name, rng):
    first, size1, second, size2, pos, dist, normal = CLOSED[name]
    pair, R, origin = Pair(), random_turn(rng), rng.standard_normal(3)
    for turned, at in ((np.eye(3), np.zeros(3)), (R, origin)):
        pair.put(0, first, at, turned, size1)
        pair.put(1, second, at + turned @ pos, turned, size2)
        found, n, witness = pair.distance()
        np.testing.assert_allclose(found, dist, atol=CURVED)
        np.testing.assert_allclose(n, turned @ normal, atol=1e-9)
        np.testing.assert_allclose(witness[1] - witness[0], found * n, atol=CURVED)


def compare_with_mujoco(first, second, n, rng):
    """Compares distance and normal of n random poses around the first touch."""
    pair, oracle, apart = Pair(), Oracle(first, second), 0
    for _ in range(n):
        mats, pos = [random_turn(rng), random_turn(rng)], rng.standard_normal(3)
        v = direction(rng) * rng.uniform(0.2, 0.6)
        pair.put(0, first, pos, mats[0])
        pair.put(1, second, pos + v, mats[1])
        dist, normal, witness = pair.distance()
        oracle.place([pos, pos + v], mats)
        theirs, fromto = oracle.distance()
        np.testing.assert_allclose(dist, theirs, atol=MUJOCO)
        np.testing.assert_allclose(witness[1] - witness[0], dist * normal, atol=CURVED)
        if dist > 0.01:
            apart += 1
            np.testing.assert_allclose(normal, (fromto[1] - fromto[0]) / theirs, atol=3e-5)  # square root of its gap
    assert apart > n // 4


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_distance_and_normal_equal_mujoco(first, second, rng):
    compare_with_mujoco(first, second, few(60), rng)


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_distance_and_normal_of_ten_thousand_poses_equal_mujoco(first, second, rng):
    compare_with_mujoco(first, second, 10_000, rng)


def test_the_limit_ends_the_search_and_changes_nothing_within():
    pair = Pair()
    pair.put(0, "stone")
    pair.put(1, "ellipsoid", (0.4, 0.1, 0.05), turn((1, 2, 3), 0.7))
    dist, n, witness = pair.distance()
    near = pair.distance(dist + 1e-9)
    assert near[0] == dist
    assert np.array_equal(near[1], n)
    assert np.array_equal(near[2], witness)
    assert pair.distance(dist * 0.999)[0] > 1e29


def test_distance_of_hulls_is_coals(rng):
    coal = pytest.importorskip("coal")
    from oracles.coal import coal_distance

    pair = Pair()
    for first, second in (("cube", "stone"), ("stone", "pebble"), ("tetrahedron", "tetrahedron"), ("needle", "plate")):
        for _ in range(few(40)):
            pair.put(0, first, rng.standard_normal(3), random_turn(rng))
            at = pair.arrays["shapes.pos"][:3] + direction(rng) * rng.uniform(0.3, 0.8)
            pair.put(1, second, at, random_turn(rng))
            dist, _, _ = pair.distance()
            np.testing.assert_allclose(dist, coal_distance(coal, pair), atol=COAL)
