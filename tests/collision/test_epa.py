"""Depth of overlapping convex shapes: closed forms, laws, degenerate families, coal."""

from __future__ import annotations

import numpy as np
import pytest

from scenes.shapes import PAIRS, Oracle, Pair, direction, few, random_turn

ROUNDING = 1e-13
INVARIANT = 1e-9
CURVED = 1e-9
COAL = 1e-9
UNIQUE = 1e-4  # if many points are nearest, they are as accurate as the search
OVERLAP = [*PAIRS, ("sphere", "box"), ("capsule", "box"), ("cube", "cube"), ("prism", "box"), ("prism", "ellipsoid")]

CLOSED = {
    "boxes": ("box", (0.1, 0.2, 0.3), "box", (0.1, 0.2, 0.3), (0.19, 0.05, 0.02), 0.01),
    "boxes, corner in face": ("box", (0.1,) * 3, "box", (0.1,) * 3, (0.15, 0.17, 0.19), 0.01),
    "spheres": ("ellipsoid", (0.1,) * 3, "ellipsoid", (0.2,) * 3, (0.15, 0.2, 0), 0.05),
    "caps": ("cylinder", (0.1, 0.2, 0), "cylinder", (0.3, 0.1, 0), (0.05, 0, 0.29), 0.01),
    "sides": ("cylinder", (0.1, 0.2, 0), "cylinder", (0.3, 0.1, 0), (0.21, 0.28, 0.1), 0.05),
    "cap and box": ("cylinder", (0.1, 0.2, 0), "box", (1, 1, 0.1), (0.3, 0.4, 0.29), 0.01),
    "side and box": ("cylinder", (0.1, 0.2, 0), "box", (0.1, 1, 1), (0.19, 0.1, 0.05), 0.01),
    "point in box": ("sphere", (0.1, 0, 0), "box", (1, 1, 0.5), (0, 0, 0.45), 0.15),
    "segment in cylinder": ("capsule", (0.05, 0.1, 0), "cylinder", (0.3, 1, 0), (0.2, 0, 0), 0.15),
}


def set_prism(pair):
    pair.arrays["shapes.prism"][:] = [0, 0, -0.1, 0.2, 0, -0.1, 0, 0.2, -0.1, 0, 0, 0.05, 0.2, 0, 0.1, 0, 0.2, 0]


def overlapping(pair, first, second, rng, depth=None):
    """Moves the two into a random pose in which they overlap."""
    set_prism(pair)
    pos, v = rng.standard_normal(3), direction(rng)
    pair.put(0, first, pos, random_turn(rng))
    pair.put(1, second, pos + v, random_turn(rng))
    dist, n, _ = pair.distance()
    depth = rng.uniform(1e-4, 0.05) if depth is None else depth
    pair.move(1, pos + v - n * (dist + depth), pair.arrays["shapes.mat"][9:].copy())


@pytest.mark.parametrize("name", list(CLOSED))
def test_depth_in_closed_form(name, rng):
    first, size1, second, size2, pos, depth = CLOSED[name]
    pair, R, origin = Pair(), random_turn(rng), rng.standard_normal(3)
    for turned, at in ((np.eye(3), np.zeros(3)), (R, origin)):
        pair.put(0, first, at, turned, size1)
        pair.put(1, second, at + turned @ pos, turned, size2)
        dist, n, witness = pair.distance()
        np.testing.assert_allclose(dist, -depth, atol=CURVED)
        np.testing.assert_allclose(witness[1] - witness[0], dist * n, atol=ROUNDING)


@pytest.mark.parametrize(("first", "second"), OVERLAP)
def test_swapped_shapes_have_the_opposite_normal(first, second, rng):
    pair, a = Pair(), None
    for _ in range(few(15)):
        overlapping(pair, first, second, rng)
        dist, n, witness = pair.distance()
        a = pair.arrays
        for name, c in (("pos", 3), ("mat", 9), ("size", 3), ("type", 1), ("data", 1)):
            a[f"shapes.{name}"][: 2 * c] = np.roll(a[f"shapes.{name}"][: 2 * c], c)
        swapped, m, other = pair.distance()
        np.testing.assert_allclose(swapped, dist, atol=INVARIANT)
        np.testing.assert_allclose(m, -n, atol=1e-6)
        np.testing.assert_allclose(other[1] - other[0], witness[0] - witness[1], atol=1e-6)


@pytest.mark.parametrize(("first", "second"), OVERLAP)
def test_depth_is_invariant_under_a_common_motion(first, second, rng):
    pair = Pair()
    for _ in range(few(15)):
        overlapping(pair, first, second, rng)
        dist, n, witness = pair.distance()
        R, shift = random_turn(rng), rng.standard_normal(3)
        for side in range(2):
            pos = pair.arrays["shapes.pos"][3 * side : 3 * side + 3].copy()
            mat = pair.arrays["shapes.mat"][9 * side : 9 * side + 9].reshape(3, 3).copy()
            pair.move(side, R @ pos + shift, R @ mat)
        moved, m, other = pair.distance()
        np.testing.assert_allclose(moved, dist, atol=INVARIANT)
        np.testing.assert_allclose(m, R @ n, atol=1e-6)
        np.testing.assert_allclose(other[1] - other[0], R @ (witness[1] - witness[0]), atol=1e-6)


@pytest.mark.parametrize(("first", "second"), OVERLAP)
def test_shapes_moved_apart_by_the_depth_just_touch(first, second, rng):
    pair = Pair()
    for _ in range(few(15)):
        thin = second == "plate"  # farther in, the opposite side is nearer
        overlapping(pair, first, second, rng, 1e-6 if thin else rng.choice([1e-6, 1e-3, 0.03, 0.08]))
        dist, n, _ = pair.distance()
        assert dist < 0
        pos, mat = pair.arrays["shapes.pos"][3:].copy(), pair.arrays["shapes.mat"][9:].copy()
        pair.move(1, pos - dist * n, mat)
        np.testing.assert_allclose(pair.distance()[0], 0, atol=INVARIANT)

        # and no shorter translation separates them
        for _ in range(few(20)):
            pair.move(1, pos - 0.999 * dist * direction(rng), mat)
            assert pair.distance()[0] < INVARIANT


@pytest.mark.parametrize(("first", "second"), OVERLAP)
def test_nearest_points_lie_on_their_shapes(first, second, rng):
    pair, probe = Pair(), Pair()
    set_prism(probe)
    for k in range(few(20)):
        overlapping(pair, first, second, rng, rng.choice([-0.01, -1e-5, 0, 1e-5, 0.01]))
        if k % 2:  # collinear
            pair.move(1, pair.arrays["shapes.pos"][3:].copy(), pair.arrays["shapes.mat"][:9].copy())
        _, _, witness = pair.distance()
        for side, kind in enumerate((first, second)):
            pos = pair.arrays["shapes.pos"][3 * side : 3 * side + 3]
            probe.put(0, kind, pos, pair.arrays["shapes.mat"][9 * side : 9 * side + 9])
            probe.put(1, "sphere", witness[side], size=(0, 0, 0))
            np.testing.assert_allclose(probe.distance()[0], 0, atol=UNIQUE)


def test_a_point_on_a_rim_touches():
    pair = Pair()
    for angle in np.linspace(0, 6, 20):
        pair.put(0, "cylinder")
        pair.put(1, "sphere", (0.1 * np.cos(angle), 0.1 * np.sin(angle), 0.12), size=(0, 0, 0))
        np.testing.assert_allclose(pair.distance()[0], 0, atol=ROUNDING)


def test_normals_of_curved_shapes_minimize_the_depth_to_rounding(rng):
    pair = Pair()
    for first, second in (("ellipsoid", "ellipsoid"), ("ellipsoid", "stone"), ("cylinder", "cylinder")):
        for _ in range(few(20)):
            overlapping(pair, first, second, rng)
            dist, n, _ = pair.distance()
            for size in (1e-6, 1e-5, 1e-4):
                m = n + size * direction(rng)
                m /= np.linalg.norm(m)
                pos, mat = pair.arrays["shapes.pos"][3:].copy(), pair.arrays["shapes.mat"][9:].copy()
                pair.move(1, pos - dist * m, mat)  # moved by the depth in another direction they still overlap
                assert pair.distance()[0] < 1e-14
                pair.move(1, pos, mat)


CONCENTRIC = {
    ("box", "box"): 0.2,
    ("cube", "cube"): 0.2,
    ("ellipsoid", "ellipsoid"): 0.2,
    ("cylinder", "cylinder"): 0.2,
    ("sphere", "ellipsoid"): 0.2,
    ("sphere", "box"): 0.2,
    ("capsule", "capsule"): 0.1,
    ("sphere", "sphere"): 0.2,
}


@pytest.mark.parametrize(("first", "second"), list(CONCENTRIC))
def test_depth_of_concentric_shapes_is_the_minimum_width(first, second):
    pair = Pair()
    pair.put(0, first)
    pair.put(1, second)
    dist, n, witness = pair.distance()
    np.testing.assert_allclose(-dist, CONCENTRIC[first, second], atol=1e-8)
    np.testing.assert_allclose(np.linalg.norm(n), 1, atol=ROUNDING)
    assert np.isfinite(witness).all()


FACING = [("box", "box"), ("cylinder", "box"), ("capsule", "cube"), ("cube", "cube")]


@pytest.mark.parametrize("gap", [0.0, 1e-16, -1e-16, 1e-12, -1e-12, 1e-10, -1e-10, 1e-8, -1e-8])
@pytest.mark.parametrize(
    ("first", "second"), [("box", "box"), ("cylinder", "box"), ("capsule", "cube"), ("cube", "cube")]
)
def test_touching_faces_keep_their_normal(first, second, gap):
    pair, reach = Pair(), {"box": 0.15, "cylinder": 0.12, "capsule": 0.15, "cube": 0.1}
    pair.put(0, first)
    pair.put(1, second, (0.01, 0.02, reach[first] + reach[second] + gap))
    dist, n, _ = pair.distance()
    np.testing.assert_allclose(dist, gap, atol=1e-8)  # mesh vertices are float32
    np.testing.assert_allclose(n, (0, 0, 1), atol=1e-7)


FLAT = {
    "plates in one plane": ((0.1, 0.1, 0), (0.05, 0.02, 0), np.eye(3), 0.0),
    "plates across": ((0.1, 0.1, 0), (0.0, 0.0, 0.02), np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0.0]]), -0.08),
    "needles in one line": ((0.1, 0, 0), (0.05, 0, 0), np.eye(3), 0.0),
    "points": ((0, 0, 0), (0, 0, 0), np.eye(3), 0.0),
}


@pytest.mark.parametrize("name", list(FLAT))
def test_flat_shapes_have_a_finite_depth(name):
    size, pos, mat, dist = FLAT[name]
    pair = Pair()
    pair.put(0, "box", (0, 0, 0), np.eye(3), size)
    pair.put(1, "box", pos, mat, size)
    found, n, witness = pair.distance()
    np.testing.assert_allclose(found, dist, atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(n), 1, atol=ROUNDING)
    assert np.isfinite(witness).all()


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_depth_equals_mujoco(first, second, rng):
    pair, oracle = Pair(), Oracle(first, second)
    for _ in range(few(40)):
        overlapping(pair, first, second, rng)
        dist, _, _ = pair.distance()
        oracle.place(pair.arrays["shapes.pos"].reshape(2, 3), pair.arrays["shapes.mat"].reshape(2, 9))
        np.testing.assert_allclose(dist, oracle.distance()[0], atol=1e-6)


def test_depth_of_hulls_is_coals(rng):
    coal = pytest.importorskip("coal")
    from oracles.coal import coal_distance

    pair = Pair()
    for first, second in (("cube", "cube"), ("cube", "stone"), ("stone", "pebble"), ("box", "tetrahedron")):
        for _ in range(few(40)):
            overlapping(pair, first, second, rng)
            np.testing.assert_allclose(pair.distance()[0], coal_distance(coal, pair), atol=COAL)
