"""Boxes with boxes, capsules and spheres: degenerate poses against MuJoCo, depth against naive searches."""

import itertools

import mujoco
import numpy as np
import pytest

import featherlane as fl
from scenes.poses import (
    IDENTITY,
    PAIRS,
    aligned_poses,
    collide,
    equal_at,
    equal_in,
    frames,
    pair_model,
    random_poses,
    random_quat,
)

CORNERS = np.array(list(itertools.product((-1, 1), repeat=3)), float)
YIELDED = 0.95  # a face contact is preferred to two edges if it is deeper by up to a twentieth
EXACT = 1e-12

# coordinates of the second centre at which faces are coplanar, edges cross or are collinear, and centres coincide
OFFSETS = {
    "box-box": ((0, 0.05, 0.25, -0.25, 0.2), (0, 0.1, 0.4, -0.4, 0.3), (0, 0.2, 0.4, -0.4, 0.1)),
    "capsule-box": ((0, 0.05, 0.1, -0.25, 0.25), (0, 0.2, -0.35, 0.35, 0.4), (0, 0.3, -0.5, 0.65, 0.1)),
    "sphere-box": ((0, 0.05, 0.1, -0.1, 0.3), (0, 0.1, 0.2, -0.2, 0.4), (0, 0.1, 0.3, -0.3, 0.5)),
}


@pytest.fixture(params=[1, 8])
def width(request):
    return request.param


@pytest.mark.parametrize("count", [400, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("margin", [0.0, 0.01])
@pytest.mark.parametrize("name", OFFSETS)
def test_contacts_equal_mujoco_or_are_exact_for_aligned_axes_and_faces(name, margin, count, rng):
    found = equal_at(pair_model(*PAIRS[name][:2], margin), *aligned_poses(rng, OFFSETS[name], count), 8)
    assert np.count_nonzero(found) > 0


@pytest.mark.parametrize("shift", [(0, 0), (0.05, 0.1), (-0.1, 0.3)])
def test_stacked_boxes_touch_at_shared_corners(shift, width):
    model = pair_model('type="box" size="0.1 0.2 0.3"', 'type="box" size="0.1 0.2 0.3"')
    poses = [((*shift, z), IDENTITY, b) for z in (0.6, 0.599, 0.55) for b in (IDENTITY, (0, 0, 0, 1))]
    assert set(equal_in(model, poses, width)) == {4}


def test_a_box_rotated_by_45_degrees_on_another_has_eight_contacts(width):
    model = pair_model('type="box" size="0.2 0.2 0.1"', 'type="box" size="0.2 0.2 0.1"')
    poses = [((0, 0, z), IDENTITY, (np.cos(np.pi / 8), 0, 0, np.sin(np.pi / 8))) for z in (0.2, 0.19)]
    assert equal_in(model, poses, width) == [8, 8]


def test_crossed_edges_touch_in_one_point(width):
    model = pair_model('type="box" size="0.1 0.1 0.5"', 'type="box" size="0.1 0.5 0.1"', 0.01)
    eighth = np.cos(np.pi / 8), np.sin(np.pi / 8)
    first, second = (eighth[0], 0, 0, eighth[1]), (eighth[0], 0, eighth[1], 0)
    poses = [((x, 0, 0), first, second) for x in (0.28, 0.1 * np.sqrt(8), 0.29)]
    assert equal_in(model, poses, width) == [1, 1, 1]


def test_a_box_through_a_thin_box_is_pushed_out(width):
    model = pair_model('type="box" size="1 1 0.01"', 'type="box" size="0.1 0.2 0.3"')
    poses = [((0.2, 0.1, z), IDENTITY, b) for z in (0.3, 0.1, 0, -0.2) for b in (IDENTITY, (0.9, 0.1, 0.2, 0.1))]
    assert min(equal_in(model, poses, width)) >= 1


def test_a_huge_capsule_touches_a_small_box(width):
    model = pair_model('type="capsule" size="10 0.1"', 'type="box" size="0.1 0.1 0.1"')
    assert equal_in(model, [((9, 0, 0), IDENTITY, IDENTITY), ((9.5, 0.3, 3), IDENTITY, IDENTITY)], width) == [2, 2]


# ---- against independent searches -------------------------------------------------------------------------------
def test_a_box_with_its_deepest_corner_near_the_side_of_a_face_equals_mujoco(width, rng):
    """Edges are tested only if that corner is closer to a side than it is deep."""
    half, other, poses = np.array([0.4, 0.3, 0.05]), np.array([0.02, 0.04, 0.01]), []
    for k in range(400):
        depth, matrix = 10.0 ** rng.uniform(-9, -1.5), np.zeros(9)
        turn = random_quat(rng, 1)[0] if k % 4 == 0 else np.array([1, *rng.normal(0, 0.3, 3)])
        turn /= np.linalg.norm(turn)
        mujoco.mju_quat2Mat(matrix, turn)
        R, side = matrix.reshape(3, 3), k % 2
        corner = R @ np.where(R[2] > 0, -other, other)
        foot = rng.uniform(-0.2, 0.2, 3)
        foot[side], foot[2] = half[side] + rng.uniform(-3, 3) * depth, half[2] - depth
        poses.append((foot - corner, IDENTITY, turn))
    found = equal_in(pair_model('type="box" size="0.4 0.3 0.05"', 'type="box" size="0.02 0.04 0.01"'), poses, width)
    assert np.count_nonzero(found) > 200


def corners(xpos, xmat, size):
    return xpos + CORNERS * size @ xmat.reshape(3, 3).T


def overlap(first, second, directions):
    """Returns the distance the second polytope moves along each direction (n, 3) to separate from the first."""
    return (first @ directions.T).max(axis=0) - (second @ directions.T).min(axis=0)


def boxes(model, count, rng, name="box-box"):
    """Yields (corners of both, contacts) in random poses in which they touch."""
    xpos, xmat = frames(model, *random_poses(rng, name, count))
    for p, R, found in zip(xpos, xmat, collide(model, xpos, xmat, 8), strict=True):
        if len(found):
            yield [corners(p[g], R[g], model.geom_size[g]) for g in range(2)], found


def test_no_direction_separates_boxes_with_much_less_depth_than_the_normal(rng):
    directions = rng.standard_normal((3000, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    for (first, second), found in boxes(pair_model(*PAIRS["box-box"][:2]), 300, rng):
        along = overlap(first, second, found.frame[:1, :3])[0]
        assert YIELDED * along <= overlap(first, second, directions).min() + EXACT
        assert -found.dist.min() <= along + EXACT


def test_box_contacts_agree_with_coal_overlaps(rng):
    coal = pytest.importorskip("coal")
    model, request = pair_model(*PAIRS["box-box"][:2]), coal.CollisionRequest()
    shapes = [coal.Box(*2 * model.geom_size[g]) for g in range(2)]
    xpos, xmat = frames(model, *random_poses(rng, "box-box", 400))
    found = collide(model, xpos, xmat, 8)
    for p, R, points in zip(xpos, xmat, found, strict=True):
        poses = [coal.Transform3s(R[g].reshape(3, 3), p[g]) for g in range(2)]
        result = coal.CollisionResult()
        coal.collide(shapes[0], poses[0], shapes[1], poses[1], request, result)
        assert result.isCollision() == bool(len(points))


def test_capsule_box_distance_equals_coal(rng):
    coal = pytest.importorskip("coal")
    model = pair_model(*PAIRS["capsule-box"][:2], margin=0.2)
    shapes = [coal.Capsule(0.15, 0.4), coal.Box(*2 * model.geom_size[1])]
    xpos, xmat = frames(model, *random_poses(rng, "capsule-box", 400))
    compared = 0
    for p, R, points in zip(xpos, xmat, collide(model, xpos, xmat, 8), strict=True):
        if len(points) and points.dist.min() > 0:
            poses = [coal.Transform3s(R[g].reshape(3, 3), p[g]) for g in range(2)]
            request, result = coal.DistanceRequest(), coal.DistanceResult()
            request.gjk_tolerance = 1e-10
            distance = coal.distance(shapes[0], poses[0], shapes[1], poses[1], request, result)
            np.testing.assert_allclose(points.dist.min(), distance, rtol=0, atol=1e-7)
            compared += 1
    assert compared > 50


def test_sphere_box_distance_equals_the_signed_distance_function(rng):
    model = pair_model(*PAIRS["sphere-box"][:2], margin=1.0)
    xpos, xmat = frames(model, *random_poses(rng, "sphere-box", 400))
    for p, R, points in zip(xpos, xmat, collide(model, xpos, xmat, 8), strict=True):
        out = np.abs(R[1].reshape(3, 3).T @ (p[0] - p[1])) - model.geom_size[1]
        signed = np.linalg.norm(np.maximum(out, 0)) + min(out.max(), 0)
        np.testing.assert_allclose(points.dist, [signed - 0.2], rtol=0, atol=EXACT)


# ---- a face at a small angle ----------------------------------------------------------------------------------------
def test_a_rocking_box_keeps_its_contact_face(rng):
    """A box that lies on another, at angles of all sizes, has a face contact: four points and not one."""
    model = pair_model('type="box" size="0.1 0.2 0.3"', 'type="box" size="0.3 0.3 0.1"', 0.01)
    angle = 10.0 ** rng.uniform(-16, -3, 64)
    quat = np.array([[IDENTITY, (1, *a * random_quat(rng, 1)[0][:3])] for a in angle])
    pos = np.array([[(0, 0, 0), (0, 0, 0.399)]] * 64)
    quat[:, 1] /= np.linalg.norm(quat[:, 1], axis=1, keepdims=True)
    assert set(equal_at(model, pos, quat, 8)) == {4}


def test_a_tower_of_boxes_stands_as_in_mujoco():
    """Runs two hundred steps of three boxes: contacts, forces and dependent fields."""
    body = '<body pos="{} 0 {}"><freejoint/><geom type="box" size="0.05 0.05 0.05"/></body>'
    tower = "".join(body.format(0.002 * k, 0.05 + 0.1 * k) for k in range(3))
    model = fl.load(f'<mujoco><worldbody><geom type="plane" size="1 1 1"/>{tower}</worldbody></mujoco>')
    data, mj = fl.Data(model), model.to_mujoco()
    theirs = mujoco.MjData(mj)
    for _ in range(200):
        fl.step(model, data)
        mujoco.mj_step(mj, theirs)
    np.testing.assert_allclose(data.qpos, theirs.qpos, rtol=0, atol=1e-6)
