"""Pair functions against MuJoCo, in random and in degenerate poses."""

import numpy as np
import pytest

from sampling import in_ci
from scenes.poses import (
    IDENTITY,
    PAIRS,
    collide,
    equal_in,
    frames,
    oracle,
    pair_model,
    random_poses,
    same_or_exact_contacts,
)

TOLERANCE = 1e-10  # rounding, amplified for nearly parallel axes
ORTHOGONAL = 1e-11  # a capsule's axis is made orthogonal to the normal: rounding divided by the sine of their angle
NPOSE = 120
USUAL = {
    "capsule-capsule": (1,),
    "capsule-box": (2,),
    "box-box": (6, 7, 8),
}  # most points in random poses, if below the possible maximum
ABOUT_X, DIAGONAL = (0, 1, 0, 0), (0.6, 0, 0.8, 0)
QUARTER = (np.sqrt(0.5), 0, np.sqrt(0.5), 0)


@pytest.fixture(params=[1, 8])
def width(request):
    return request.param


def pruned(ours, theirs):
    """Returns whether MuJoCo's broad phase drops the pair; corners may be too far apart without a separating axis."""
    return len(theirs["dist"]) == 0 and len(ours) == 1 and ours.dist[0] > 0.0


@pytest.mark.parametrize("count", [NPOSE, in_ci(400), pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("margin, gap", [(0, 0), (0.1, 0.05), (-0.05, 0.0)])
@pytest.mark.parametrize("name", PAIRS)
def test_contacts_equal_mujoco_or_are_exact_in_random_poses(name, margin, gap, count, rng):
    model = pair_model(*PAIRS[name][:2], margin, gap)
    xpos, xmat = frames(model, *random_poses(rng, name, count))
    theirs = oracle(model, xpos, xmat)
    for width in (1, 8):
        for p, R, ours, expected in zip(xpos, xmat, collide(model, xpos, xmat, width), theirs, strict=True):
            if not (name == "box-box" and pruned(ours, expected)):
                same_or_exact_contacts(model, p, R, ours, expected, TOLERANCE)
    points = [len(c["dist"]) for c in theirs]
    assert 0 < np.count_nonzero(points) < count
    assert max(points) in USUAL.get(name, model.cand_npoint)


@pytest.mark.parametrize("name", PAIRS)
def test_frames_are_right_handed_and_orthonormal(name, rng):
    model = pair_model(*PAIRS[name][:2])
    found = np.concatenate(collide(model, *frames(model, *random_poses(rng, name, NPOSE)), 8))
    R = found["frame"].reshape(-1, 3, 3)
    np.testing.assert_allclose(R @ R.transpose(0, 2, 1), np.broadcast_to(np.eye(3), R.shape), atol=ORTHOGONAL)
    np.testing.assert_allclose(np.linalg.det(R), 1, atol=ORTHOGONAL)


def test_the_normal_of_concentric_spheres_comes_from_their_axes(width):
    poses = [((0, 0, 0), IDENTITY, b) for b in (IDENTITY, DIAGONAL, ABOUT_X, QUARTER)]
    assert equal_in(pair_model('size="0.2"', 'size="0.3"'), poses, width) == [1, 1, 1, 1]


def test_sphere_on_the_axis_of_a_capsule(width):
    model = pair_model('size="0.2"', 'type="capsule" size="0.1 0.3"')
    poses = [((0, 0, z), a, IDENTITY) for z in (0, 0.1, 0.3, 0.5) for a in (IDENTITY, DIAGONAL)]
    assert equal_in(model, poses, width) == [1] * len(poses)


def turned(angle, flip):
    """Returns the quaternion of a rotation about (0.6, 0.8, 0), of an axis that points up or down."""
    c, s = np.cos(angle / 2), np.sin(angle / 2)
    return (-0.6 * s, c, 0, 0.8 * s) if flip else (c, 0.6 * s, 0.8 * s, 0)


@pytest.mark.parametrize("flip", [False, True], ids=["parallel", "antiparallel"])
@pytest.mark.parametrize("angle", [0, 1e-12, 1e-9, 1e-6, 0.999e-4])
def test_parallel_capsules_touch_at_the_ends_of_their_overlap(angle, flip, width):
    model = pair_model('type="capsule" size="0.1 0.5"', 'type="capsule" size="0.15 0.3"', 0.01)
    offsets = [(0.2, z) for z in (0, 0.1, 0.4, -0.4, 0.8, -0.8, 0.94)] + [(0.1, 0.9), (0.1, -0.9), (0.3, 0)]
    poses = [((x, 0, z), IDENTITY, turned(angle, flip)) for x, z in offsets]
    assert equal_in(model, poses, width) == [2] * 9 + [0]


@pytest.mark.parametrize("z", [0, 0.1, 0.6, 0.9])
def test_capsules_on_one_line(z, width):
    model = pair_model('type="capsule" size="0.1 0.5"', 'type="capsule" size="0.15 0.3"')
    assert equal_in(model, [((0, 0, z), IDENTITY, b) for b in (IDENTITY, ABOUT_X)], width) == [2, 2]


def test_capsules_at_an_angle_touch_once(width):
    model = pair_model('type="capsule" size="0.1 0.5"', 'type="capsule" size="0.15 0.3"')
    poses = [((0.2, 0, z), IDENTITY, turned(a, f)) for z in (0, 0.3) for a in (1.001e-4, 2e-3) for f in (False, True)]
    # coordinates of the nearest points lose digits by 1 / sin^2 of the angle
    assert equal_in(model, poses, width, 1e-7) == [1] * len(poses)


def test_parallel_and_crossing_capsules_share_a_tile(width):
    model = pair_model('type="capsule" size="0.1 0.5"', 'type="capsule" size="0.15 0.3"')
    poses = [((0.2, 0, 0.1), IDENTITY, b) for b in (IDENTITY, DIAGONAL, ABOUT_X, QUARTER)]
    assert equal_in(model, poses, width) == [2, 1, 2, 1]


def test_one_of_two_parallel_points_can_exceed_the_margin(width):
    model = pair_model('type="capsule" size="0.1 0.5"', 'type="capsule" size="0.1 0.5"')
    poses = [((0.2, 0, 0), IDENTITY, (1, 0, s, 0)) for s in (4e-5, -4e-5)]
    assert equal_in(model, poses, width) == [1, 1]


def test_capsule_upright_and_flat_on_a_plane(width):
    model = pair_model('type="plane" size="1 1 1"', 'type="capsule" size="0.1 0.3"')
    poses = [((0, 0, z), IDENTITY, b) for z in (0.05, 0.35) for b in (IDENTITY, ABOUT_X, QUARTER)]
    assert equal_in(model, poses, width) == [1, 1, 2, 1, 1, 0]


@pytest.mark.parametrize("quat", [QUARTER, DIAGONAL, (0.5, 0.3, 0.2, 0.1)])
def test_frame_of_a_capsule_on_a_slope_is_orthonormal(quat):
    model = pair_model('type="plane" size="1 1 1"', 'type="capsule" size="0.1 0.3"')
    found = collide(model, *frames(model, [((0, 0, 0), (0, 0, 0))], [(quat, quat)]), 1)[0]
    assert len(found) == 1
    R = found.frame[0].reshape(3, 3)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-14)


def test_box_on_a_face_and_on_an_edge(width):
    model = pair_model('type="plane" size="1 1 1"', 'type="box" size="0.1 0.2 0.3"')
    tilted = (np.cos(0.3), np.sin(0.3), 0, 0)
    poses = [((0, 0, z), IDENTITY, b) for z in (0.299, -0.5) for b in (IDENTITY, ABOUT_X, tilted, QUARTER)]
    assert equal_in(model, poses, width) == [4, 4, 2, 0, 4, 4, 4, 4]


@pytest.mark.parametrize("name", [name for name in PAIRS if name != "plane-mesh"])
@pytest.mark.parametrize("inside", [True, False])
def test_a_point_counts_up_to_margin_and_gap(name, inside, width):
    model = pair_model(*PAIRS[name][:2], margin=0.03, gap=0.02)
    first, second = name.split("-")
    height = {"plane": 0.0, "sphere": 0.2, "capsule": 0.35, "box": 0.3}[first] + 0.05
    height += 0.4 if second == "capsule" else 0.1 if name == "box-box" else 0.3
    found = equal_in(model, [((0, 0, height + (-1e-9 if inside else 1e-9)), IDENTITY, IDENTITY)], width)
    assert bool(found[0]) == inside


def test_a_strongly_negative_margin_yields_no_contact(width):
    model = pair_model('size="0.2"', 'size="0.3"', margin=-1)
    assert equal_in(model, [((0, 0, z), IDENTITY, IDENTITY) for z in (0, 0.2, 0.45)], width) == [0, 0, 0]


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("field", ["geom_xpos", "geom_xmat"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_non_finite_poses_yield_no_contact_and_do_not_affect_other_worlds(name, field, bad, rng):
    model = pair_model(*PAIRS[name][:2])
    xpos, xmat = frames(model, *random_poses(rng, name, 8))
    xpos[:, 1] = xpos[:, 0] + [0, 0, 0.05]
    good = collide(model, xpos, xmat, 8)
    poses = {"geom_xpos": xpos, "geom_xmat": xmat}
    poses[field][3] = bad
    for w, (now, before) in enumerate(zip(collide(model, xpos, xmat, 8), good, strict=True)):
        if w != 3:
            np.testing.assert_array_equal(now, before)
        elif field == "geom_xpos" or name != "sphere-sphere":
            assert len(now) == 0
