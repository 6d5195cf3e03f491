"""Height fields: contacts by hand, against MuJoCo and an independent solver, and bodies at rest on them."""

from __future__ import annotations

import itertools

import mujoco
import numpy as np
import pytest

import featherlane as fl
from robots import wheels
from sampling import in_ci
from scenes.poses import collide, frames, oracle, random_quat, same_contacts

DISTANCE = 1e-6  # the oracle's iterations on round shapes stop at about 1e-8
# at a contact with an ellipsoid or a rim, a distance error e rotates the oracle's normal by sqrt(e)
NORMAL = {"ellipsoid": 3e-3, "cylinder": 3e-3}
SOLID = 1e-11  # polytopes converge to an exact face
# MuJoCo 4.0.1 does not number a prism's corners, and takes a new corner for a known one: against a box or a hull it
# stops early, at as little as a tenth of the depth.  With a margin it does not compare them.
EXACT = 1e-9

SHAPES = {
    "sphere": 'size=".3"',
    "capsule": 'type="capsule" size=".15 .3"',
    "ellipsoid": 'type="ellipsoid" size=".3 .2 .4"',
    "cylinder": 'type="cylinder" size=".2 .3"',
    "box": 'type="box" size=".3 .2 .25"',
    "mesh": 'type="mesh" mesh="tip"',
}
SCENE = """
<mujoco>
  <option ccd_tolerance="1e-12" ccd_iterations="200"/>
  <asset>
    <hfield name="ground" nrow="{nrow}" ncol="{ncol}" size="1.2 1 .5 .3"/>
    <mesh name="tip" vertex="0 0 0  .5 0 0  0 .5 0  0 0 .5  .3 .3 .3"/>
  </asset>
  <worldbody>
    <body mocap="true"><geom type="hfield" hfield="ground" margin="{margin}" gap="{gap}"/></body>
    <body><joint type="free" damping="{damping}"/><geom {shape}/></body>
  </worldbody>
</mujoco>
"""


def ground(shape, heights=None, margin=0.0, gap=0.0, damping=0.0, seed=1):
    """Returns a model of a shape over a height field: a random one, or these heights."""
    if heights is None:
        heights = np.random.default_rng(seed).uniform(size=(9, 11))
    heights = np.asarray(heights, float)
    nrow, ncol = heights.shape
    text = SCENE.format(shape=shape, nrow=nrow, ncol=ncol, margin=margin, gap=gap, damping=damping)
    mj = mujoco.MjModel.from_xml_string(text)
    mj.hfield_data[:] = heights.ravel()
    return fl.load(mj)


def poses(rng, n, low=0.1, high=0.8, wide=1.3):
    """Returns the field anywhere, the shape above, at its border, or outside: positions (n, 2, 3), quats (n, 2, 4)."""
    quat = random_quat(rng, 2 * n).reshape(n, 2, 4)
    pos, R = rng.standard_normal((n, 2, 3)), np.zeros((n, 9))
    for k in range(n):
        mujoco.mju_quat2Mat(R[k], quat[k, 0])
    local = np.concatenate([rng.uniform(-wide, wide, (n, 2)), rng.uniform(low, high, (n, 1))], axis=1)
    pos[:, 1] = pos[:, 0] + np.einsum("nij,nj->ni", R.reshape(n, 3, 3), local)
    return pos, quat


def touch(model, pos, quat=(1, 0, 0, 0)):
    """Returns contacts of the shape at one pose, the field at the origin."""
    x, R = frames(model, [[(0, 0, 0), pos]], [[(1, 0, 0, 0), quat]])
    return collide(model, x, R, 1)[0]


# ---- by hand ------------------------------------------------------------------------------------------------
FLAT = np.full((3, 3), 0.5)  # 0.25 m high


@pytest.mark.parametrize("shape, height", [("sphere", 0.3), ("capsule", 0.45), ("box", 0.25), ("ellipsoid", 0.4)])
def test_flat_field_is_a_floor(shape, height):
    model = ground(SHAPES[shape], FLAT)
    assert len(touch(model, (0.3, 0.1, 0.25 + height + 0.001))) == 0
    found = touch(model, (0.3, 0.1, 0.25 + height - 0.001))
    at_floor = np.abs(found.frame[:, 2] - 1) < 1e-6
    assert at_floor.any()
    np.testing.assert_allclose(found.dist[at_floor], -0.001, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.pos[at_floor, 2], 0.2495, rtol=0, atol=1e-6)


def test_margin_and_gap_count_points_that_do_not_touch():
    for margin, gap in ((0.05, 0.0), (0.0, 0.05), (0.02, 0.03)):
        model = ground(SHAPES["sphere"], FLAT, margin, gap)
        (point,) = touch(model, (0.3, 0.1, 0.25 + 0.349))
        np.testing.assert_allclose(point.dist, 0.049, rtol=0, atol=1e-12)
        assert point.includemargin == margin
        assert len(touch(model, (0.3, 0.1, 0.25 + 0.351))) == 0


def test_field_of_height_zero_is_its_base():
    model = ground(SHAPES["sphere"], np.zeros((2, 2)))
    found = touch(model, (0.3, 0.1, 0.29))
    np.testing.assert_allclose(found.dist.min(), -0.01, rtol=0, atol=1e-12)


def test_height_field_walls_push_bodies_next_to_the_field():
    model = ground(SHAPES["sphere"], FLAT)
    found = touch(model, (1.49, 0.2, 0.0))
    k = np.argmin(found.dist)
    np.testing.assert_allclose(found.dist[k], -0.01, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.frame[k, :3], (1, 0, 0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("pos", [(3, 0, 0.2), (0, -2, 0.2), (0, 0, 2), (0, 0, -2), (1e6, 0, 0)])
@pytest.mark.parametrize("shape", SHAPES)
def test_distant_shapes_have_no_contacts(shape, pos):
    assert len(touch(ground(SHAPES[shape], FLAT), pos)) == 0


@pytest.mark.parametrize("shape", SHAPES)
def test_below_the_base_is_outside(shape):
    model = ground(SHAPES[shape], FLAT)
    assert len(touch(model, (0.1, 0.2, -1.2))) == 0
    found = touch(model, (0.1, 0.2, -0.5))
    assert (found.dist < 0).all() and len(found) > 0


def test_points_are_limited_to_the_capacity():
    model = ground('type="box" size="1 1 .2"', np.full((30, 30), 0.5))
    assert len(touch(model, (0, 0, 0.44))) == 50


def test_a_non_finite_pose_has_no_contacts():
    model = ground(SHAPES["box"], FLAT)
    x, R = frames(model, [[(0, 0, 0), (0, 0, 0.4)]], [[(1, 0, 0, 0), (1, 0, 0, 0)]])
    for rows, value in itertools.product((x, R), (np.nan, np.inf)):
        kept = rows.copy()
        rows[:, 1] = value
        assert len(collide(model, x, R, 1)[0]) <= 50
        rows[...] = kept


# ---- against MuJoCo and an independent solver ----------------------------------------------------------------
def lowest(shape, size, n):
    """Returns the least n . b of the points b of a shape in its frame; cylinders and spheres only."""
    if shape == "cylinder":
        return -size[1] * abs(n[2]) - size[0] * np.hypot(n[0], n[1])
    assert shape in ("sphere", "pebble")
    return -size[0]


def separations(model, shape, x, R, normal):
    """Returns the gaps between the planes across a normal that bound each prism and the shape, negative for overlaps.

    Each is at most the signed distance, which is the largest gap over all normals.
    """
    field, own = R.reshape(2, 3, 3)
    low = normal @ x[1] + lowest(shape, model.geom_size[1], own.T @ normal)
    return low - np.array([((x[0] + prism @ field.T) @ normal).max() for prism in prisms(model)])


def compare(model, shape, x, R, width=8):
    """Asserts MuJoCo's contacts, in its order, and returns their number.

    MuJoCo's iteration can stop before the deepest point.  If a contact differs, the distance must be exact: a prism and
    the shape have this gap across its normal, and a smaller one across MuJoCo's.
    """
    total = 0
    for k, (ours, theirs) in enumerate(zip(collide(model, x, R, width), oracle(model, x, R), strict=True)):
        assert len(ours) == len(theirs["dist"])
        normals = np.abs(ours.frame[:, :3] - theirs["frame"][:, :3]).max(axis=1, initial=0)
        differ = (np.abs(ours.dist - theirs["dist"]) > DISTANCE) | (normals > NORMAL.get(shape, DISTANCE))
        for j in np.flatnonzero(differ):
            gaps, other_gaps = (separations(model, shape, x[k], R[k], n[j, :3]) for n in (ours.frame, theirs["frame"]))
            exact = np.abs(gaps - ours.dist[j]) < SOLID  # of prisms with a common edge
            assert other_gaps[exact].min(initial=np.inf) < ours.dist[j] - SOLID
        total += len(ours)
    return total


@pytest.mark.parametrize("margin", [EXACT, 0.05])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [60, pytest.param(10_000, marks=pytest.mark.slow)])
def test_contacts_equal_mujoco(shape, margin, count, rng):
    model = ground(SHAPES[shape], margin=margin)
    x, R = frames(model, *poses(rng, count))
    assert compare(model, shape, x, R) > 3 * count


@pytest.mark.parametrize("margin", [0.0, 0.05])
def test_a_small_sphere_has_the_contact_of_mujoco(margin, rng):
    """Most centres are above the surface, in a prism or next to one: with and without a closed form."""
    model = ground('size=".03"', margin=margin)
    x, R = frames(model, *poses(rng, 1500, low=-0.3, high=0.5, wide=1.05))
    assert compare(model, "pebble", x, R) > 1500


def test_parameters_are_mixed_as_for_other_pairs(rng):
    model = ground(SHAPES["sphere"] + ' friction=".5 .1 .1" solref=".03 1"', gap=0.1)
    x, R = frames(model, *poses(rng, 20))
    for ours, theirs in zip(collide(model, x, R, 1), oracle(model, x, R), strict=True):
        same_contacts(ours, theirs, DISTANCE)


def least_overlap(A, B):
    """Returns the signed distance of overlapping polytopes over all separating axes: -depth, from A to B."""
    axes = []
    for P, sign in ((A, 1.0), (B, -1.0)):
        for i, j, k in itertools.combinations(range(len(P)), 3):
            n = np.cross(P[j] - P[i], P[k] - P[i])
            heights = (P - P[i]) @ n
            axes += [sign * s * n for s in (1, -1) if (s * heights <= 1e-12).all()]
    edges = [[P[i] - P[j] for i, j in itertools.combinations(range(len(P)), 2)] for P in (A, B)]
    axes += [s * np.cross(a, b) for a, b in itertools.product(*edges) for s in (1, -1)]
    axes = np.array(axes)
    length = np.linalg.norm(axes, axis=1)
    axes = axes[length > 1e-9] / length[length > 1e-9, None]
    return ((B @ axes.T).min(axis=0) - (A @ axes.T).max(axis=0)).max()


def prisms(model):
    """Yields corners (6, 3) of all prisms, sorted as their contacts."""
    nrow, ncol = model.hfield_nrow[0], model.hfield_ncol[0]
    sx, sy, top, base = model.hfield_size[0]
    z = top * model.hfield_data.reshape(nrow, ncol)

    def corners(samples):
        xy = [(sx * (2 * c / (ncol - 1) - 1), sy * (2 * r / (nrow - 1) - 1)) for r, c in samples]
        return np.array([(*p, h) for p, (r, c) in zip(xy, samples, strict=True) for h in (-base, z[r, c])])

    for r, c in itertools.product(range(nrow - 1), range(ncol - 1)):
        yield corners([(r + 1, c), (r, c), (r + 1, c + 1)])
        yield corners([(r, c), (r + 1, c + 1), (r, c + 1)])


@pytest.mark.parametrize("count", [2, pytest.param(100, marks=pytest.mark.slow)])
def test_depth_of_a_box_is_the_least_overlap(count, rng):
    model = ground(SHAPES["box"])
    pos, quat = poses(rng, count, 0.3, 0.6, 1.0)
    pos[:, 1] -= pos[:, 0]
    pos[:, 0], quat[:, 0] = 0, (1, 0, 0, 0)
    pos[:, 1] = np.column_stack([rng.uniform(-1, 1, (count, 2)), rng.uniform(0.3, 0.6, count)])
    x, R = frames(model, pos, quat)
    signs = np.array(list(itertools.product((-1, 1), repeat=3)))
    for ours, p, Q in zip(collide(model, x, R, 1), x[:, 1], R[:, 1], strict=True):
        box = p + (signs * model.geom_size[1]) @ Q.reshape(3, 3).T
        near = [
            c
            for c in prisms(model)
            if (c.min(axis=0) <= box.max(axis=0)).all() and (c.max(axis=0) >= box.min(axis=0)).all()
        ]
        depths = [least_overlap(prism, box) for prism in near]
        np.testing.assert_allclose(ours.dist, [d for d in depths if d <= 0], rtol=0, atol=SOLID)


def test_results_do_not_depend_on_the_tile(rng):
    for shape in SHAPES.values():
        model = ground(shape)
        x, R = frames(model, *poses(rng, 16))
        for one, eight in zip(collide(model, x, R, 1), collide(model, x, R, 8), strict=True):
            np.testing.assert_array_equal(one.tobytes(), eight.tobytes())


def test_height_edits_take_effect_immediately():
    model = ground(SHAPES["sphere"], FLAT)
    data, batch = fl.Data(model), fl.Batch(model, 9)
    data.qpos[:3] = batch.qpos[:, :3] = 0.3, 0.1, 0.25 + 0.31
    fl.forward(model, data)
    batch.forward()
    assert data.ncon == 0 and (batch.ncon == 0).all()
    model.hfield_data[:] = 0.54
    fl.forward(model, data)
    batch.forward()
    np.testing.assert_allclose(data.contact.dist.min(), -0.01, rtol=0, atol=1e-12)
    assert (batch.ncon == data.ncon).all()


# ---- arbitrary poses -----------------------------------------------------------------------------------------
def check(points, room):
    """Asserts finite numbers, unit normals, and at most as many points as the capacity."""
    assert len(points) <= room
    assert np.isfinite(points.dist).all() and np.isfinite(points.pos).all()
    np.testing.assert_allclose(np.linalg.norm(points.frame[:, :3], axis=1), 1.0, rtol=0, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [in_ci(64), pytest.param(25_600, marks=pytest.mark.slow)])
def test_no_pose_yields_non_finite_values(shape, count, rng, monkeypatch):
    """Covers, with bounds checks, all kinds of height fields, shapes of all scales, centres on samples and borders."""
    monkeypatch.setenv("FEATHERLANE_MODE", "checked")
    many = 64
    for _ in range(count // many):
        nrow, ncol = rng.integers(2, 12, 2)
        kind = rng.integers(4)
        heights = [rng.uniform, rng.integers, np.zeros, np.ones][kind]
        shape_of = {"size": (nrow, ncol)} if kind < 2 else {"shape": (nrow, ncol)}
        heights = heights(0, 2, **shape_of) if kind == 1 else heights(**shape_of)
        model = ground(SHAPES[shape], np.clip(heights, 0, 1), rng.choice([0, 1e-9, 0.1]))
        scale = 10.0 ** rng.uniform(-4, 1)
        model.geom_size[1] *= scale
        model.geom_rbound[1] *= scale
        pos = rng.uniform(-1.5, 1.5, (many, 2, 3))
        pos[:, 0] = 0
        pos[::4, 1, 0] = rng.choice([-1.2, 0, 1.2], pos[::4, 1, 0].shape)
        pos[1::4, 1, 1] = rng.choice([-1, 0, 1], pos[1::4, 1, 1].shape)
        quat = random_quat(rng, 2 * many).reshape(many, 2, 4)
        quat[:, 0] = 1, 0, 0, 0
        quat[::3, 1] = 1, 0, 0, 0
        for points in collide(model, *frames(model, pos, quat), 8):
            check(points, 50)


# ---- bodies at rest -----------------------------------------------------------------------------------------
REST = 1e-9  # six seconds of rolling into a hollow, all contacts equal to 1e-12
CREEP = 2e-3  # m/s, rad/s: soft friction creeps under weight, also in MuJoCo


@pytest.mark.parametrize("shape", ["sphere", "capsule", "box"])
def test_rest_pose_on_a_rough_field_equals_mujoco(shape):
    heights = np.random.default_rng(3).uniform(0.3, 0.7, size=(9, 11))
    model = ground(SHAPES[shape] + ' mass="1"', heights, margin=EXACT, damping=2.0)
    data, mj = fl.Data(model), model.to_mujoco()
    mj.opt.timestep = model.opt.timestep = 0.004
    mj.opt.tolerance = 1e-13  # if a step gains little its solver stops with a larger gradient than ours
    theirs = mujoco.MjData(mj)
    data.qpos[:7] = theirs.qpos[:7] = 0.1, 0.2, 0.8, 0.9, 0.3, 0.1, 0.2
    data.qpos[3:] = theirs.qpos[3:] = theirs.qpos[3:7] / np.linalg.norm(theirs.qpos[3:7])
    fl.step(model, data, 1500)
    for _ in range(1500):
        mujoco.mj_step(mj, theirs)
    assert np.abs(data.qvel).max() < CREEP
    np.testing.assert_allclose(data.qpos, theirs.qpos, rtol=0, atol=REST)
    np.testing.assert_allclose(data.qfrc_constraint[2], 9.81, rtol=1e-3)


def escape_terrain(res, size, rng):
    """Returns the heights of dm_control's quadruped escape: a bowl, roughened by smooth bumps."""
    y, x = np.ogrid[-1 : 1 : res * 1j, -1 : 1 : res * 1j]
    bowl = 0.5 - np.cos(2 * np.pi * np.clip(np.hypot(x, y), 0.04, 1)) / 2
    n = int(2 * size / 2)
    bumps, at = rng.uniform(0.15, 1, (n, n)), np.linspace(0, n - 1, res)
    rows = np.array([np.interp(at, np.arange(n), row) for row in bumps])
    return bowl * np.array([np.interp(at, np.arange(n), column) for column in rows.T]).T


def test_quadruped_stands_in_its_terrain_as_in_mujoco(rng):
    spec = mujoco.MjSpec.from_file(str(wheels.model_path("dm_control/quadruped")))
    for element in (*spec.equalities, *spec.tendons, *spec.actuators, *spec.sensors):
        spec.delete(element)
    for geom in spec.geoms:
        terrain = geom.name == "terrain"
        geom.contype, geom.conaffinity = (
            (2, 0) if terrain else (0, 0 if geom.type == mujoco.mjtGeom.mjGEOM_PLANE else 2)
        )
        geom.margin = EXACT
    spec.option.ccd_tolerance, spec.option.ccd_iterations = 1e-12, 200
    mj = spec.compile()
    mj.hfield_data[:] = escape_terrain(mj.hfield_nrow[0], mj.hfield_size[0, 0], rng).ravel()
    model = fl.load(mj)
    data, theirs = fl.Data(model), mujoco.MjData(mj)
    met = 0
    for _ in range(20):
        data.qpos[:] = model.qpos0
        data.qpos[7:] += rng.uniform(-0.5, 0.5, model.nq - 7)
        data.qpos[:2] = rng.uniform(-20, 20, 2)
        row, column = (np.round((data.qpos[:2] / 30 + 1) * 100).astype(int))[::-1]
        data.qpos[2] = 5 * model.hfield_data.reshape(201, 201)[row, column] + rng.uniform(0, 0.4)
        theirs.qpos[:] = data.qpos
        mujoco.mj_forward(mj, theirs)
        fl.forward(model, data)
        found, met = data.contact, met + data.ncon
        np.testing.assert_array_equal(found.geom, theirs.contact.geom)
        np.testing.assert_allclose(found.dist, theirs.contact.dist, rtol=0, atol=DISTANCE)
        assert np.abs(found.frame[:, :3] - theirs.contact.frame[:, :3]).max(initial=0) < NORMAL["ellipsoid"]
    assert met > 100
