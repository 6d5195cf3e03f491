"""Rays against signed distance fields: MuJoCo's hits, the fields themselves, sensors, cameras, batches."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from scenes.signed_distance import PLUGINS, scene

PARITY = 3e-7  # m: MuJoCo ends its march at 1e-7
NRAY = 300
TORUS = "torus", "sphere"
# MuJoCo's test model ray/sdf.xml at its first position: the ray passes 29 mm above a torus, and meets its box
NEAR_MISS = """<mujoco><extension><plugin plugin="mujoco.sdf.torus"><instance name="torus">
<config key="radius1" value="1"/><config key="radius2" value="0.3"/></instance></plugin></extension>
<asset><mesh name="torus"><plugin instance="torus"/></mesh></asset><worldbody>
<body pos="1 0 0"><joint axis="0 -1 0"/><inertial mass="1" diaginertia=".002 .002 .002" pos="0 0 1.1"/>
  <site name="rf" pos="-.1 0 1.1" zaxis="-1 .1 0"/></body>
<body pos="-.5 .002 -.2" euler="90 0 -40" mocap="true"><geom type="sdf" mesh="torus"><plugin instance="torus"/></geom>
</body></worldbody><sensor><rangefinder site="rf" data="dist normal"/></sensor></mujoco>"""


def worlds(xml: str, rng) -> tuple[fl.Model, fl.Data, mujoco.MjData]:
    """Returns a model, and the same random pose of its bodies, ours and MuJoCo's."""
    model = fl.load(xml)
    data, theirs = fl.Data(model), mujoco.MjData(model.to_mujoco())
    theirs.mocap_quat[0] = rng.standard_normal(4)
    theirs.qpos[2] = 50.0
    data.mocap_quat, data.qpos = theirs.mocap_quat, theirs.qpos
    data.forward()
    mujoco.mj_forward(theirs.model, theirs)
    return model, data, theirs


def rays_at(model, data, rng, number: int = NRAY) -> tuple[np.ndarray, np.ndarray]:
    """Returns points around the first geom, some inside, and directions to points of its box."""
    box, R = model.geom_aabb[0], data.geom_xmat[0].reshape(3, 3)
    away = rng.standard_normal((number, 3))
    away *= (2.0 * model.geom_rbound[0] * rng.uniform(0, 1, number) / np.linalg.norm(away, axis=1))[:, None]
    point = data.geom_xpos[0] + away
    to = data.geom_xpos[0] + (box[:3] + box[3:] * rng.uniform(-1, 1, (number, 3))) @ R.T
    return point, to - point


def mujoco_rays(data, point, direction) -> tuple[np.ndarray, np.ndarray]:
    """Returns MuJoCo's distances in lengths of the directions (-1: none) and its normals."""
    geom, normal, found = np.zeros(1, np.int32), np.zeros(3), []
    for p, v in zip(point, direction, strict=True):
        length = np.linalg.norm(v)
        x = mujoco.mj_ray(data.model, data, p, v / length, None, 1, -1, geom, normal)
        found.append((x / length if x >= 0 else -1.0, *normal))
    found = np.array(found)
    return found[:, 0], found[:, 1:]


@pytest.mark.parametrize("shape", [*PLUGINS, "octree"])
def test_rays_hit_what_mujoco_hits(shape, rng):
    """Each hit of MuJoCo is one here, at its distance, unless MuJoCo's march has passed through a nearer surface."""
    model, data, theirs = worlds(scene(shape, "sphere"), rng)
    point, direction = rays_at(model, data, rng)
    hits, (distance, normal) = fl.query.ray(model, data, point, direction), mujoco_rays(theirs, point, direction)
    found = distance >= 0
    assert found.sum() > NRAY / 3 and (hits.geom[found] == 0).all()
    error = (hits.distance - distance)[found] * np.linalg.norm(direction[found], axis=1)
    same = np.abs(error) < PARITY
    assert (error[~same] < 0).all() and same.mean() > 0.8
    if shape != "octree":  # MuJoCo's gradient in a leaf is by the place in it
        assert ((hits.normal * normal)[found].sum(1)[same] > 1 - 1e-6).all()


def test_rays_meet_a_torus_exactly(rng):
    """Hits lie on the torus with its normal; rays without a hit do not enter it."""
    model, data, _ = worlds(scene(*TORUS), rng)
    ring, tube = PLUGINS["torus"].values()
    R, centre = data.geom_xmat[0].reshape(3, 3), data.geom_xpos[0]
    point, direction = rays_at(model, data, rng)
    hits = fl.query.ray(model, data, point, direction)

    def field(x):
        local = (x - centre) @ R
        return np.hypot(np.hypot(local[..., 0], local[..., 1]) - ring, local[..., 2]) - tube

    hit = hits.geom == 0
    on = point[hit] + hits.distance[hit, None] * direction[hit]
    assert 0.3 < hit.mean() < 0.99 and np.abs(field(on)).max() < 1e-12
    local = (on - centre) @ R
    middle = local * [1, 1, 0] / np.linalg.norm(local[:, :2], axis=1)[:, None] * ring
    np.testing.assert_allclose(hits.normal[hit], (local - middle) @ R.T / tube, atol=1e-11)
    along = np.linspace(0, 3, 4001)[:, None, None]
    before = np.where(hit, hits.distance, 3.0)
    values = field(point + along * direction)
    outside = field(point) > 0
    assert ((values > -1e-4) | (along[..., 0] > before - 1e-9))[:, outside].all()


def test_a_ray_may_pass_through_the_box_of_a_field():
    model = fl.load(NEAR_MISS)
    data = fl.Data(model)
    data.forward()
    theirs = mujoco.MjData(model.to_mujoco())
    mujoco.mj_forward(theirs.model, theirs)
    assert (data.sensordata == [-1, 0, 0, 0]).all() and (theirs.sensordata == data.sensordata).all()
    thicker = fl.load(NEAR_MISS.replace('value="0.3"', 'value="0.3291"'))
    data = fl.Data(thicker)
    data.forward()
    assert 1.2 < data.sensordata[0] < 1.4


def test_rays_start_inside_and_on_the_surface(rng):
    """From inside the far wall is hit, as by MuJoCo; on the surface the distance is 0."""
    model, data, _ = worlds(scene(*TORUS), rng)
    R, centre = data.geom_xmat[0].reshape(3, 3), data.geom_xpos[0]
    axis, radial = R[:, 2], R[:, 0]
    inside = fl.query.ray(model, data, centre + 0.35 * radial, [axis, radial, -radial])
    np.testing.assert_allclose(inside.distance, 0.15, atol=1e-12)
    np.testing.assert_allclose(inside.normal, [axis, radial, -radial], atol=1e-12)
    assert fl.query.ray(model, data, centre + 0.5 * radial, radial).distance == pytest.approx(0, abs=1e-7)
    assert fl.query.ray(model, data, centre + 0.6 * radial, radial).geom == -1


def test_batches_float32_and_cutoffs(rng):
    model = fl.load(scene("nut", "sphere"))
    data, batch, small = fl.Data(model), fl.Batch(model, 11), fl.Batch(model, 11, dtype="float32")
    quat = rng.standard_normal((11, 4))
    for each in (batch, small):
        each.mocap_quat[:, 0] = quat
        each.qpos[:, 2] = 50.0
    data.qpos[2] = 50.0
    data.forward()
    point, direction = rays_at(model, data, rng, 40)
    hits = batch.ray(point, direction)
    for w in (0, 5, 10):
        data.mocap_quat = quat[w]
        data.forward()
        alone = fl.query.ray(model, data, point, direction)
        for name, rows in hits._asdict().items():
            np.testing.assert_array_equal(rows[w], getattr(alone, name), err_msg=name)
    rough = small.ray(point, direction)
    both = (hits.geom == 0) & (rough.geom == 0)
    assert both.mean() > 0.4 and (hits.geom != rough.geom).mean() < 0.02
    assert (np.abs(hits.distance - rough.distance)[both] < 1e-5).mean() > 0.97
    unit = direction / np.linalg.norm(direction, axis=1)[:, None]
    full, cut = batch.ray(point, unit), batch.ray(point, unit, cutoff=0.5)
    np.testing.assert_array_equal(cut.geom == 0, (full.geom == 0) & (full.distance < 0.5))


def test_a_camera_and_a_height_scan_see_the_field():
    """The image of a nut from above has its hole; a height scan hits its face and misses in the hole."""
    camera = '<camera name="top" pos="0 0 3" fovy="40"/>'
    xml = scene("nut", "sphere", worldbody=camera).replace("<body><free", '<body name="ball"><free')
    batch = fl.Batch(fl.load(xml), 2)
    batch.qpos[:, 2] = 50.0
    images = batch.render("top", width=21, height=21, output=("depth", "segmentation", "normal", "rgb"))
    hit = images.segmentation[0] == 0
    assert not hit[10, 10] and 0.1 < hit.mean() < 0.6 and np.ptp(images.depth[0][hit]) < 0.7
    assert (images.normal[0][hit][:, 2] > 0.99).mean() > 0.5 and images.rgb[0][hit].mean() > 20
    hits = batch.ray([(0.4, 0.0, 3.0), (0.0, 0.0, 3.0)], (0, 0, -1))
    assert hits.geom[0].tolist() == [0, -1]
    heights = batch.height_scan("ball", fl.patterns.grid((0.8, 0.0), 0.4), miss=99.0)
    np.testing.assert_allclose(heights[0], [hits.distance[0, 0] + 47.0, 99.0, hits.distance[0, 0] + 47.0], atol=1e-9)


def test_meshes_with_octrees_vary_by_world():
    """A world whose SDF geom has another mesh is hit where a model with this mesh alone is hit."""
    small, large = "-1 -1 -1 1 -1 -1 0 1 -1 0 0 1", "-2 -2 -2 2 -2 -2 0 2 -2 0 0 2"
    xml = f"""<mujoco><asset><mesh name="small" vertex="{small}"/><mesh name="large" vertex="{large}"/></asset>
    <worldbody><body><freejoint/><geom name="stone" type="sdf" mesh="{{}}"/></body></worldbody></mujoco>"""
    model, expected = fl.load(xml.format("small"), variants={"stone": ["small", "large"]}), []
    for mesh in ("small", "large"):
        data = fl.Data(fl.load(xml.format(mesh)))
        data.forward()
        expected.append(fl.query.ray(data.model, data, (0.1, 0.2, 5), (0, 0, -1)).distance)
    batch = fl.Batch(model, 11)
    batch.set_variant("stone", "large", ids=[1, 4, 9])
    found = batch.ray((0.1, 0.2, 5), (0, 0, -1)).distance
    np.testing.assert_allclose(np.delete(found, [1, 4, 9]), expected[0], atol=1e-6)
    np.testing.assert_allclose(found[[1, 4, 9]], expected[1], atol=1e-6)
    assert expected[0] > expected[1] + 0.5
