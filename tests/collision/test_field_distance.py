"""Distances of signed distance fields: dense sampling of surfaces, MuJoCo's depths, sensors, batches."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from scenes.signed_distance import PLUGINS, scene

SAMPLED = 1e-3  # m: spacing of the sampled points near the nearest one
EDGES = 1e-3  # m: edges of an octree with cells of 7 mm are bumpy: each bump is a local minimum
RING, TUBE = PLUGINS["torus"].values()
OTHERS = "box", "torus", "octree", "nut"
MORE = "sphere", "capsule", "ellipsoid", "cylinder"


def surface_points(model, data, geom: int, near: np.ndarray, rng) -> np.ndarray:
    """Returns points of a geom's surface in world axes, hit by rays from all sides; a third of them is near a point."""
    centre, reach = data.geom_xpos[geom], 2 * model.geom_rbound[geom]
    away = rng.standard_normal((30000, 3))
    point = centre + reach * away / np.linalg.norm(away, axis=1)[:, None]
    R, box = data.geom_xmat[geom].reshape(3, 3), model.geom_aabb[geom]
    to = centre + (box[:3] + box[3:] * rng.uniform(-1, 1, point.shape)) @ R.T
    to[::3] = near + 0.01 * rng.standard_normal(to[::3].shape)
    hits = fl.query.ray(model, data, point, to - point, bodyexclude=model.geom_bodyid[1 - geom])
    return (point + hits.distance[:, None] * (to - point))[hits.geom == geom]


def placed(model, rng, distance: float) -> fl.Data:
    """Returns random orientations of two bodies, the second at a distance in a random direction."""
    data = fl.Data(model)
    away = rng.standard_normal(3)
    data.mocap_quat, data.qpos[3:7] = rng.standard_normal(4), rng.standard_normal(4)
    data.qpos[:3] = distance * away / np.linalg.norm(away)
    data.forward()
    return data


@pytest.mark.parametrize("other", [*OTHERS, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE)])
def test_distances_are_those_of_sampled_surfaces(other, rng):
    """No sampled point is nearer to the torus, and the nearest points lie on both surfaces."""
    model = fl.load(scene("torus", other))
    for _ in range(3):
        data = placed(model, rng, 1.3)
        found = fl.query.geom_distance(model, data, 0, 1)
        R = data.geom_xmat[0].reshape(3, 3)
        points = surface_points(model, data, 1, found.fromto[3:], rng)
        local = (points - data.geom_xpos[0]) @ R
        least = (np.hypot(np.hypot(local[:, 0], local[:, 1]) - RING, local[:, 2]) - TUBE).min()
        assert found.distance == pytest.approx(np.linalg.norm(found.fromto[3:] - found.fromto[:3]), abs=1e-12)
        assert least - SAMPLED < found.distance < least + 1e-7
        on = (found.fromto[:3] - data.geom_xpos[0]) @ R
        assert np.hypot(np.hypot(on[0], on[1]) - RING, on[2]) == pytest.approx(TUBE, abs=1e-7)
        assert np.linalg.norm(points - found.fromto[3:], axis=1).min() < SAMPLED
        assert fl.query.geom_distance(model, data, 1, 0).distance == pytest.approx(found.distance, abs=EDGES)


def test_depths_are_mujocos(rng):
    model = fl.load(scene("torus", "box"))
    theirs, segment, compared = mujoco.MjData(model.to_mujoco()), np.zeros(6), 0
    for _ in range(10):
        data = placed(model, rng, 0.4)
        theirs.mocap_quat, theirs.qpos = data.mocap_quat, data.qpos
        mujoco.mj_forward(theirs.model, theirs)
        depth = mujoco.mj_geomDistance(theirs.model, theirs, 0, 1, 10.0, segment)
        if depth < 0:
            found, compared = fl.query.geom_distance(model, data, 0, 1), compared + 1
            assert found.distance == pytest.approx(depth, abs=1e-9)
            np.testing.assert_allclose(found.fromto, segment, atol=1e-8)
    assert compared > 3


def test_planes_measure_the_hull_as_in_mujoco(rng):
    model = fl.load(scene("plane", "torus"))
    theirs = mujoco.MjData(model.to_mujoco())
    for _ in range(3):
        data = placed(model, rng, 1.5)
        theirs.mocap_quat, theirs.qpos = data.mocap_quat, data.qpos
        mujoco.mj_forward(theirs.model, theirs)
        expected = mujoco.mj_geomDistance(theirs.model, theirs, 0, 1, 10.0, None)
        assert fl.query.geom_distance(model, data, 0, 1).distance == pytest.approx(expected, abs=1e-9)


def test_sensors_and_batches_measure_the_same(rng):
    xml = scene("torus", "octree").replace("<body mocap", '<body name="a" mocap')
    xml = xml.replace("<body><free", '<body name="b"><free')
    kinds = "".join(
        f'<{kind} name="{kind}" body1="a" body2="b" cutoff="5"/>' for kind in ("distance", "normal", "fromto")
    )
    model = fl.load(xml.replace("</mujoco>", f"<sensor>{kinds}</sensor></mujoco>"))
    batch, singles = fl.Batch(model, 3), [placed(model, rng, 1.2) for _ in range(3)]
    for w, data in enumerate(singles):
        batch.mocap_quat[w], batch.qpos[w] = data.mocap_quat, data.qpos
    measured = batch.bind("sensordata")
    batch.forward()
    together = batch.geom_distance(0, 1)
    for w, data in enumerate(singles):
        found = fl.query.geom_distance(model, data, 0, 1)
        assert found.distance > 0.1 and data.sensor("distance").data[0] == found.distance == together.distance[w]
        np.testing.assert_array_equal(data.sensor("fromto").data, found.fromto)
        np.testing.assert_allclose(
            data.sensor("normal").data * found.distance, np.diff(found.fromto.reshape(2, 3), axis=0)[0]
        )
        assert measured[w].tobytes() == data.sensordata.tobytes()
    far = fl.query.geom_distance(model, singles[0], 0, 1, distmax=0.05)
    assert far.distance == 0.05 and not far.fromto.any()


def test_pairs_without_fields_are_named(rng):
    model = fl.load(scene("mesh", "torus"))
    with pytest.raises(fl.ModelError, match="distance of geoms 0 and 1 is not supported"):
        fl.query.geom_distance(model, placed(model, rng, 1.0), 0, 1)
    xml = (
        scene("mesh", "torus")
        .replace("<geom type", '<geom name="angle" type', 1)
        .replace("<body><free", '<body name="b"><free')
    )
    model = fl.load(xml.replace("</mujoco>", '<sensor><distance geom1="angle" body2="b"/></sensor></mujoco>'))
    with pytest.raises(fl.UnsupportedFeatureError, match="geom 'angle': no signed distance field"):
        fl.Data(model).sensordata  # noqa: B018
