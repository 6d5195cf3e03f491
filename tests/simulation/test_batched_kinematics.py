"""Jacobians, velocities, accelerations and inertia matrices of many worlds: against MuJoCo's functions of one world."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl

# a ball joint after a slide, a fixed body, an offset centre of mass, two trees
MIXED = """
<mujoco><worldbody>
  <body name="cart" pos="0 0 1"><joint type="slide" axis="1 0 .2"/><joint type="ball" pos=".1 0 0"/>
    <geom name="cart" type="box" size=".1 .2 .3" pos=".05 0 .1"/>
    <body name="fixed" pos=".2 .1 0" euler="20 30 0"><geom name="fixed" size=".05" mass=".3"/>
      <site name="tip" pos=".1 0 0"/><camera name="eye" pos="0 .1 .1" euler="10 20 0"/>
      <body name="hand" pos="0 0 .3"><joint axis="0 1 1"/><joint type="slide" axis="0 0 1"/>
        <geom name="hand" type="capsule" size=".03 .1" euler="0 50 0"/></body></body></body>
  <body name="free" pos="2 0 1" euler="10 0 40"><freejoint/>
    <geom name="free" type="ellipsoid" size=".1 .2 .3" pos=".1 0 0"/></body>
</worldbody></mujoco>"""
TOLERANCE = {"float64": 1e-9, "float32": 1e-4}  # relative to the largest entry; the in float64
KINDS = {"body": mujoco.mjtObj.mjOBJ_BODY, "xbody": mujoco.mjtObj.mjOBJ_XBODY, "geom": mujoco.mjtObj.mjOBJ_GEOM,
         "site": mujoco.mjtObj.mjOBJ_SITE, "camera": mujoco.mjtObj.mjOBJ_CAMERA}  # fmt: skip
OBJECTS = [("body", "hand"), ("xbody", "hand"), ("geom", "cart"), ("site", "tip"), ("body", "free"), ("xbody", "fixed"),
           ("camera", "eye")]  # fmt: skip


def worlds(dtype: str = "float64", n: int = 9, source: str = MIXED) -> fl.Batch:
    """Returns worlds in different states, more than fit into a tile of float64."""
    model, random = fl.load(source), np.random.default_rng(3)
    batch = fl.Batch(model, n, nthread=1, dtype=dtype)
    batch.qpos[:] = fl.integrate_pos(model, batch.qpos, random.normal(size=(n, model.nv)), 0.4)
    batch.qvel[:] = random.normal(size=(n, model.nv))
    return batch


def mujoco_worlds(batch: fl.Batch):
    """Returns number, MjModel and MjData of the first, an inner and the last world, with accelerations of bodies."""
    mj = batch.model.mj_model
    for w in (0, 4, batch.nworld - 1):
        data = mujoco.MjData(mj)
        data.qpos, data.qvel = batch.qpos[w], batch.qvel[w]
        mujoco.mj_forward(mj, data)
        mujoco.mj_rnePostConstraint(mj, data)
        yield w, mj, data


def assert_near(found, expected, dtype: str = "float64") -> None:
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(found / scale, np.asarray(expected) / scale, rtol=0, atol=TOLERANCE[dtype])


def frame_of(data, kind: str, name: str) -> tuple[np.ndarray, np.ndarray, int]:
    """Returns (position, orientation, body) of an object."""
    at = getattr(data, "body" if kind == "xbody" else kind)(name)
    pos, R = (at.xipos, at.ximat) if kind == "body" else (at.xpos, at.xmat)
    lookup = getattr(data.model, "body" if kind == "xbody" else kind)(name)
    return pos, R.reshape(3, 3), lookup.id if "body" in kind else lookup.bodyid[0]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("rate", [False, True])
def test_jacobians_of_objects_and_their_rates_equal_mujocos(dtype, rate):
    batch = worlds(dtype)
    call, oracle = (batch.jac_dot, mujoco.mj_jacDot) if rate else (batch.jac, mujoco.mj_jac)
    linear, angular = call(OBJECTS)
    local = call(OBJECTS, local=True)
    for w, mj, data in mujoco_worlds(batch):
        for k, (kind, name) in enumerate(OBJECTS):
            pos, R, body = frame_of(data, kind, name)
            jacp, jacr = np.zeros((2, 3, mj.nv))
            oracle(mj, data, jacp, jacr, pos, body)
            for found, expected in ((linear, jacp), (angular, jacr), (local[0], R.T @ jacp), (local[1], R.T @ jacr)):
                assert_near(found[w, k], expected, dtype)


def test_jacobians_of_given_points_equal_mujocos():
    batch = worlds()
    points, body = np.random.default_rng(5).normal(size=(9, 3)), np.arange(9) % 5
    one, each = batch.jac_dot(points, "hand"), batch.jac_dot(points, body)
    assert np.array_equal(batch.jac(("xbody", "hand"))[0], batch.jac_body("hand")[0])
    for w, mj, data in mujoco_worlds(batch):
        for found, b in ((one, mj.body("hand").id), (each, body[w])):
            jacp, jacr = np.zeros((2, 3, mj.nv))
            mujoco.mj_jacDot(mj, data, jacp, jacr, points[w], b)
            assert_near(found[0][w], jacp)
            assert_near(found[1][w], jacr)


def test_a_rate_is_the_difference_of_jacobians_also_if_a_slide_follows_a_ball():
    """MuJoCo moves the ball's axes with the slide."""
    source = """<mujoco><option gravity="0 0 0"/><worldbody><body><joint type="ball"/>
      <joint type="slide" axis="1 0 0"/><geom name="rod" type="capsule" size=".1 .3" pos=".2 .1 0"/></body>
    </worldbody></mujoco>"""
    batch, h = worlds(source=source), 1e-6
    rate, ends = batch.jac_dot(("geom", "rod")), []
    start = batch.qpos.copy()
    for side in (-h, h):
        batch.qpos[:] = fl.integrate_pos(batch.model, start, batch.qvel, side)
        ends.append(batch.jac(("geom", "rod")))
    for k in range(2):
        np.testing.assert_allclose(rate[k], (ends[1][k] - ends[0][k]) / (2 * h), atol=1e-8)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_matrices_equal_mujocos(dtype):
    batch = worlds(dtype)
    momentum, middle = batch.angular_momentum_matrix(["cart", "world"]), batch.jac_subtree_com("cart")
    inertia, one = batch.full_m(), batch.angular_momentum_matrix("hand")
    for w, mj, data in mujoco_worlds(batch):
        matrix, full = np.zeros((3, mj.nv)), np.zeros((mj.nv, mj.nv))
        for found, body in ((momentum[w, 0], "cart"), (momentum[w, 1], "world"), (one[w], "hand")):
            mujoco.mj_angmomMat(mj, data, matrix, mj.body(body).id)
            assert_near(found, matrix, dtype)
        mujoco.mj_jacSubtreeCom(mj, data, matrix, mj.body("cart").id)
        assert_near(middle[w], matrix, dtype)
        mujoco.mj_fullM(mj, data, full)
        assert_near(inertia[w], full, dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("local", [False, True])
def test_velocities_and_accelerations_equal_mujocos(dtype, local):
    batch = worlds(dtype)
    for kind in KINDS:
        names = [name for k, name in OBJECTS if k == kind]
        speed = batch.object_velocity([(kind, name) for name in names], local=local)
        rate = batch.object_acceleration([(kind, name) for name in names], local=local)
        assert np.array_equal(batch.object_velocity((kind, names[0]), local=local, ids=[4])[0], speed[4, 0])
        for w, mj, data in mujoco_worlds(batch):
            for k, name in enumerate(names):
                expected, index = np.zeros(6), getattr(mj, "body" if kind == "xbody" else kind)(name).id
                mujoco.mj_objectVelocity(mj, data, KINDS[kind], index, expected, local)
                assert_near(speed[w, k], expected, dtype)
                mujoco.mj_objectAcceleration(mj, data, KINDS[kind], index, expected, local)
                assert_near(rate[w, k], expected, dtype)


def test_one_world_has_the_same_values():
    batch = worlds()
    data, model, point = batch.get_data(4), batch.model, (0.1, 0.2, 0.3)
    fl.stages.rne_post_constraint(model, data)
    for k in range(2):
        assert_near(fl.query.jac_dot(model, data, point, "hand")[k], batch.jac_dot(point, "hand")[k][4])
    assert_near(fl.query.angular_momentum_matrix(model, data, "cart"), batch.angular_momentum_matrix("cart")[4])
    for local in (False, True):
        alone = fl.query.object_acceleration(model, data, ("geom", "hand"), local=local)
        assert_near(alone, batch.object_acceleration(("geom", "hand"), local=local)[4])


def test_a_world_has_equal_bits_in_any_batch_and_states_do_not_change():
    batch = worlds()
    before = batch.checkpoint()
    for call in (
        lambda ids: batch.jac_dot(OBJECTS, ids=ids)[0],
        lambda ids: batch.object_acceleration(("geom", "hand"), ids=ids),
        lambda ids: batch.full_m(ids),
    ):
        assert call([7, 2]).tobytes() == call(None)[[7, 2]].tobytes()
    for name, rows in batch.checkpoint().items():
        assert np.array_equal(rows, before[name]), name


def test_wrong_objects_are_named():
    batch = worlds()
    with pytest.raises(fl.ModelError, match="'light', allowed are body, xbody, geom, site, camera"):
        batch.jac(("light", 0))
    with pytest.raises(fl.ModelError, match="point: got an empty list"):
        batch.jac([])
    with pytest.raises(fl.UnknownNameError, match="hnd"):
        batch.object_acceleration([("geom", "hand"), ("geom", "hnd")])
    with pytest.raises(fl.ModelError, match="local"):
        batch.jac_dot(("geom", "hand"), local="yes")
    with pytest.raises(AttributeError, match="groups"):
        fl.MixedBatch([(batch.model, 2)]).full_m  # noqa: B018


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_poses_equal_mujoco(dtype):
    batch = worlds(dtype)
    names = "xpos xquat xmat xipos xanchor xaxis geom_xpos geom_xmat site_xpos site_xmat".split()
    before, found = batch.qpos.copy(), batch.present_fields(names)
    for w, _, data in mujoco_worlds(batch):
        for name in names:
            expected = getattr(data, name)
            if name == "xquat":  # q and -q are one rotation
                expected = expected * np.sign((expected * found[name][w]).sum(-1, keepdims=True))
            assert_near(found[name][w], expected, dtype)
    assert list(batch.present_fields("xmat", ids=[3])) == ["xmat"]
    np.testing.assert_array_equal(batch.present_fields("xmat", ids=[3])["xmat"][0], found["xmat"][3])
    np.testing.assert_array_equal(batch.qpos, before)
    with pytest.raises(fl.ModelError, match="qacc"):
        batch.present_fields("qacc")
