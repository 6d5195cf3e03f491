"""Jacobians against MuJoCo and against the naive sum over dofs."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane import load
from featherlane.engine.lanes.processor import tile_width
from featherlane.query import jac, jac_body, jac_body_com, jac_geom, jac_site, jac_subtree_com
from oracles import smooth
from oracles.naive import Naive

TOLERANCE = 1e-13  # sums of a few products of values around 1


@pytest.fixture
def world(rng):
    """Returns (model, state, data with our fields, MuJoCo's model and data)."""
    model = load(smooth.XML)
    data, state = fl.Data(model), smooth.random_state(model, rng)
    smooth.fill(data.workspace, 0, **state)
    smooth.forward(data.workspace)
    oracle = model.to_mujoco()
    theirs = mujoco.MjData(oracle)
    theirs.qpos[:], theirs.qvel[:] = state["qpos"], state["qvel"]
    mujoco.mj_forward(oracle, theirs)
    return model, state, data, oracle, theirs


def test_jacobian_of_a_point_equals_the_sum_over_dofs(rng, world):
    model, state, data, _, _ = world
    naive = Naive(model, state["qpos"], state["qvel"])
    for body in range(model.nbody):
        point = rng.standard_normal(3)
        for found, expected in zip(jac(model, data, point, body), naive.jac(point, body), strict=True):
            assert smooth.relative(found, expected) <= TOLERANCE


@pytest.mark.parametrize(
    ("ours", "theirs", "count"),
    [
        (jac_body, mujoco.mj_jacBody, "nbody"),
        (jac_body_com, mujoco.mj_jacBodyCom, "nbody"),
        (jac_geom, mujoco.mj_jacGeom, "ngeom"),
        (jac_site, mujoco.mj_jacSite, "nsite"),
    ],
)
def test_jacobians_of_elements_equal_mujoco(world, ours, theirs, count):
    model, _, data, oracle, reference = world
    for i in range(getattr(model, count)):
        p, r = np.zeros((3, model.nv)), np.zeros((3, model.nv))
        theirs(oracle, reference, p, r, i)
        found = ours(model, data, i)
        assert smooth.relative(found[0], p) <= TOLERANCE
        assert smooth.relative(found[1], r) <= TOLERANCE


def test_jacobian_of_a_subtree_equals_mujoco(world):
    model, _, data, oracle, reference = world
    for i in range(model.nbody):
        expected = np.zeros((3, model.nv))
        mujoco.mj_jacSubtreeCom(oracle, reference, expected, i)
        assert smooth.relative(jac_subtree_com(model, data, i), expected) <= TOLERANCE


def test_queries_follow_a_change_of_the_model():
    text = "<mujoco><worldbody><body><joint/><geom size='.1' pos='{} 0 0' mass='1'/></body></worldbody></mujoco>"
    models = [load(text.format(x)) for x in (0.5, 2.0)]
    data = fl.Data(models[0])
    for model, x in zip(models + models, (0.5, 2.0, 0.5, 2.0), strict=True):
        data.model = model
        fl.forward(model, data)
        close = {"rtol": 1e-12, "atol": 1e-12}
        np.testing.assert_allclose(jac_body_com(model, data, 1)[0], [[0.0], [x], [0.0]], **close)
        assert fl.query.full_m(model, data) == pytest.approx(0.4 * 0.1**2 + x**2)


def test_a_subtree_without_mass_has_no_jacobian():
    model = load("<mujoco><worldbody><body><joint/><geom size='.1'/><body pos='0 0 1'/></body></worldbody></mujoco>")
    data = fl.Data(model)
    data.forward()
    assert not jac_subtree_com(model, data, 2).any() and jac_body(model, data, 2)[1].any()


def test_jacobians_follow_another_model_of_equal_sizes():
    xml = "<mujoco><worldbody><body pos='{} 0 0'><joint/><geom size='.1' pos='1 0 0'/>"
    xml += "<body><geom size='{}'/></body></body></worldbody></mujoco>"
    models = [load(xml.format(*given)) for given in ((0, 0.1), (3, 0.3))]
    data, second = (fl.Data(model) for model in models)
    fl.forward(models[0], data)
    jac_subtree_com(models[0], data, 1)
    data.model = models[1]
    for one in (data, second):
        one.forward()
    found = [jac_subtree_com(models[1], one, 1) for one in (data, second)]
    assert found[0].tobytes() == found[1].tobytes() and found[0].any()


def test_a_body_that_does_not_exist_is_named(world):
    model, _, data, _, _ = world
    with pytest.raises(fl.UnknownNameError, match=f"{model.nbody}"):
        jac(model, data, np.zeros(3), model.nbody)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_jacobians_in_a_batch_equal_those_of_each_world(dtype, rng):
    model = fl.bundled("arm")
    nworld, tolerance = 2 * tile_width(dtype) + 3, TOLERANCE if dtype == "float64" else 1e-5
    batch, point = fl.Batch(model, nworld, dtype=dtype), rng.standard_normal((nworld, 3))
    batch.qpos = rng.uniform(-1, 1, (nworld, model.nq))
    batch.bind("xpos")
    before, ids = batch.get_state(), [nworld - 2, 1]
    both = batch.jac(point, "hand"), batch.jac_body("hand"), batch.jac_site("grip")
    some = batch.jac(point[ids], "hand", ids=ids), batch.jac_body("hand", ids=ids), batch.jac_site("grip", ids=ids)
    for pair, part in zip(both, some, strict=True):
        np.testing.assert_array_equal(np.array(pair)[:, ids], part)
    for world in range(nworld):
        data = batch.get_data(world)
        alone = jac(model, data, point[world], "hand"), jac_body(model, data, "hand"), jac_site(model, data, "grip")
        for pair, expected in zip(both, alone, strict=True):
            for found, reference in zip(pair, expected, strict=True):
                assert found.dtype == dtype and smooth.relative(found[world], reference) <= tolerance
    np.testing.assert_array_equal(batch.get_state(), before)
    assert np.isnan(batch.xpos).all()  # bound outputs do not change


def test_jacobians_in_a_batch_use_the_fields_of_each_world():
    batch = fl.Batch(fl.bundled("arm"), 3)
    batch.expand("body_pos")[:, 1:, 2] += np.arange(3.0)[:, None]
    found = batch.jac_site("grip")[0]
    for world in range(3):
        data = batch.get_data(world)
        expected = jac_site(data.model, data, "grip")[0]
        np.testing.assert_allclose(found[world], expected, rtol=0, atol=1e-14)
    assert not np.allclose(found[0], found[2])


def test_wrong_points_and_elements_are_refused():
    batch = fl.Batch(fl.bundled("arm"), 3)
    for call in (lambda: batch.jac(np.zeros((2, 3)), 1), lambda: batch.jac("point", 1), lambda: batch.jac([0, 0], 1)):
        with pytest.raises(fl.ModelError, match="point"):
            call()
    for call in (batch.jac_body, batch.jac_site, lambda key: batch.jac(np.zeros(3), key)):
        for key in ("nothing", 99, -1, 0.5):
            with pytest.raises(fl.UnknownNameError):
                call(key)
    assert batch.jac_body(1, ids=[])[0].shape == (0, 3, batch.model.nv)


def test_each_world_can_have_another_body(rng):
    model = fl.bundled("arm")
    batch = fl.Batch(model, 5, nthread=1)
    batch.qpos = rng.uniform(-1, 1, (5, model.nq))
    points, bodies, ids = rng.uniform(-1, 1, (3, 3)), np.array([2, 1, 2]), [4, 0, 3]
    found = batch.jac(points, bodies, ids=ids)
    for k, w in enumerate(ids):
        for a, b in zip(found, batch.jac(points[k], int(bodies[k]), ids=[w]), strict=True):
            assert np.array_equal(a[k], b[0])
    for wrong in (np.array([1, 2]), np.array([1.0, 2.0, 1.0])):
        with pytest.raises(fl.ModelError, match="body: got"):
            batch.jac(points, wrong, ids=ids)
    with pytest.raises(fl.UnknownNameError):
        batch.jac(points, np.array([1, 2, model.nbody]), ids=ids)
