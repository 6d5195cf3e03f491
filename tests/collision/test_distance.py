"""`geom_distance`: MuJoCo's result for every pair of shapes, its conventions, many pairs and worlds at once."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from scenes.poses import random_quat
from scenes.shapes import assets, geom

EXACT = 1e-9  # both converge to rounding; for curved shapes MuJoCo converges to its tolerance
POINT = 1e-6  # nearest points of curved shapes, from MuJoCo's search
SINGLE = 1e-5
LIMIT = 1.0
MOVING = ("sphere", "capsule", "ellipsoid", "cylinder", "box", "stone", "cube")
FIELD = 1  # the height field among STILL
STILL = {"plane": 'type="plane" size="1 1 1" contype="0" conaffinity="0"', "field": 'type="hfield" hfield="rough"'}


@pytest.fixture(scope="module")
def model():
    still = "".join(f'<geom name="{k}" pos="0 0 -0.2" {v}/>' for k, v in STILL.items())
    moving = "".join(f'<body><freejoint/><geom name="{k}" {geom(k)} mass="1"/></body>' for k in MOVING)
    field = '<hfield name="rough" nrow="4" ncol="5" size="1 1 .3 .1"/>'
    option = '<option ccd_tolerance="1e-12" ccd_iterations="500"/>'
    asset = assets().replace("</asset>", field + "</asset>")
    xml = f"<mujoco>{option}{asset}<worldbody>{still}{moving}</worldbody></mujoco>"
    mj = mujoco.MjModel.from_xml_string(xml)
    mj.hfield_data[:] = np.random.default_rng(0).uniform(size=mj.nhfielddata)
    return fl.load(mj)


def poses(rng, n) -> np.ndarray:
    """Returns qpos of n worlds: shapes close to and inside each other."""
    q = np.empty((n, len(MOVING), 7))
    q[..., :3] = 0.2 * rng.standard_normal((n, len(MOVING), 3))
    q[..., 3:] = random_quat(rng, n * len(MOVING)).reshape(n, -1, 4)
    return q.reshape(n, -1)


def all_pairs(model) -> tuple[np.ndarray, np.ndarray]:
    """Returns the numbers of all pairs of geoms that have a distance."""
    g, h = np.triu_indices(model.ngeom, 1)
    return g[h >= len(STILL)], h[h >= len(STILL)]


def test_distances_and_nearest_points_equal_mujoco(model, rng):
    """Depths below a height field are measured in another way: only the sign is compared."""
    mj, data, signs = model.to_mujoco(), fl.Data(model), set()
    theirs, (g, h) = mujoco.MjData(mj), all_pairs(model)
    for qpos in poses(rng, 12):
        data.qpos[:] = theirs.qpos[:] = qpos
        fl.stages.kinematics(model, data)
        mujoco.mj_kinematics(mj, theirs)
        found = fl.query.geom_distance(model, data, g, h, LIMIT)
        for k, pair in enumerate(zip(g.tolist(), h.tolist(), strict=True)):
            fromto = np.zeros(6)
            dist = mujoco.mj_geomDistance(mj, theirs, *pair, LIMIT, fromto)
            if dist < 0 and pair[0] == FIELD:
                assert found.distance[k] < EXACT
                continue
            np.testing.assert_allclose(found.distance[k], dist, atol=EXACT)
            np.testing.assert_allclose(found.fromto[k], fromto, atol=POINT)
            signs.add(np.sign(dist))
    assert signs == {-1, 1}


def test_swapped_geoms_swap_the_nearest_points(model, rng):
    data, (g, h) = fl.Data(model), all_pairs(model)
    data.qpos[:] = poses(rng, 1)[0]
    fl.stages.kinematics(model, data)
    one, other = fl.query.geom_distance(model, data, g, h), fl.query.geom_distance(model, data, h, g)
    np.testing.assert_allclose(one.distance, other.distance, atol=EXACT)
    np.testing.assert_allclose(one.fromto, np.roll(other.fromto, 3, -1), atol=POINT)


def test_one_pair_by_name_is_a_number(model):
    data = fl.Data(model)
    data.qpos[:3], data.qpos[28:31] = (1, 0, 0), (0.5, 0, 0)
    fl.stages.kinematics(model, data)
    distance, fromto = fl.query.geom_distance(model, data, "sphere", "box")
    assert np.ndim(distance) == 0
    np.testing.assert_allclose(distance, 0.3, atol=EXACT)
    np.testing.assert_allclose(fromto, [0.9, 0, 0, 0.6, 0, 0], atol=EXACT)
    assert fl.query.geom_distance(model, data, [["sphere"]], ["box", "cube"]).fromto.shape == (1, 2, 6)


def test_distance_is_clamped_to_the_limit(model):
    data = fl.Data(model)
    data.qpos[:3] = 3, 4, 0
    fl.stages.kinematics(model, data)
    for name in ("capsule", "plane", "field", "stone"):
        far, fromto = fl.query.geom_distance(model, data, "sphere", name, 0.05)
        assert far == 0.05
        assert not fromto.any()


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 0), ("float32", SINGLE)])
def test_distances_in_a_batch_equal_those_of_single_worlds(model, rng, dtype, tolerance):
    n, data, (g, h) = 21, fl.Data(model), all_pairs(model)
    batch, ids = fl.Batch(model, n, dtype=dtype), [3, 20, 7]
    batch.qpos[:] = poses(rng, n)
    everyone, some = batch.geom_distance(g, h, LIMIT), batch.geom_distance(g, h, LIMIT, ids=ids)
    assert everyone.distance.shape == (n, len(g))
    assert everyone.distance.dtype == dtype
    np.testing.assert_array_equal(some.fromto, everyone.fromto[ids])
    for w in range(n):
        data.qpos[:] = batch.qpos[w]
        fl.stages.kinematics(model, data)
        alone = fl.query.geom_distance(model, data, g, h, LIMIT)
        np.testing.assert_allclose(everyone.distance[w], alone.distance, rtol=0, atol=tolerance)
        if not tolerance:
            np.testing.assert_array_equal(everyone.fromto[w], alone.fromto)


def test_each_world_can_query_different_pairs(model, rng):
    batch = fl.Batch(model, 3)
    batch.qpos[:] = poses(rng, 3)
    g, h = all_pairs(model)
    everything = batch.geom_distance(g, h)
    picked = batch.geom_distance(g[[[5], [9], [2]]], h[[[5], [9], [2]]])
    np.testing.assert_array_equal(picked.distance[:, 0], everything.distance[[0, 1, 2], [5, 9, 2]])
    one, listed = batch.geom_distance("box", "stone"), batch.geom_distance(["box"], "stone")
    assert [rows.shape for rows in one] == [(3,), (3, 6)]
    assert [rows.shape for rows in listed] == [(3, 1), (3, 1, 6)]
    assert all((a == b[:, 0]).all() for a, b in zip(one, listed, strict=True))


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (("plane", "field"), fl.ModelError, "convex"),
        (("plane", "nothing"), fl.UnknownNameError, "nothing"),
        ((2, 99), fl.ModelError, "geom2"),
        ((2, 3.5), fl.ModelError, "geom2"),
        (([2, 3], [2, 3, 4]), fl.ModelError, "do not broadcast"),
        ((2, 3, np.nan), fl.ModelError, "distmax"),
        ((2, 3, -1.0), fl.ModelError, "distmax"),
    ],
)
def test_geoms_without_a_distance_are_refused(model, given, error, words):
    data = fl.Data(model)
    fl.stages.kinematics(model, data)
    with pytest.raises(error, match=words):
        fl.query.geom_distance(model, data, *given)
    with pytest.raises(error):
        fl.Batch(model, 2).geom_distance(*given)


def test_a_mesh_without_a_hull_is_refused():
    asset = '<asset><mesh name="round" builtin="sphere" params="2"/></asset>'
    bare = '<geom type="mesh" mesh="round" contype="0" conaffinity="0"/>'
    model = fl.load(f'<mujoco>{asset}<worldbody>{bare}<geom name="ball" size=".1"/></worldbody></mujoco>')
    data = fl.Data(model)
    fl.stages.kinematics(model, data)
    with pytest.raises(fl.ModelError, match="hull"):
        fl.query.geom_distance(model, data, 0, "ball")
