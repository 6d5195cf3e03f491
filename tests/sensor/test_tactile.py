"""Tactile sensors and touch grids against MuJoCo's, at random states with contacts."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

import featherlane as fl

PARITY = 1e-9  # of the larger of 1 and the value: solvers converge to rounding
NWORLD = 9
OTHERS = {
    "sphere": 'type="sphere" size=".06"',
    "capsule": 'type="capsule" size=".04 .05"',
    "ellipsoid": 'type="ellipsoid" size=".05 .06 .07"',
    "cylinder": 'type="cylinder" size=".05 .06"',
    "box": 'type="box" size=".05 .06 .07"',
}
EXACT = ("sphere", "capsule", "box")  # pairs whose contacts, and so forces, are those of MuJoCo
GRID = """<plugin name="grid" plugin="mujoco.sensor.touch_grid" objtype="site" objname="eye" {cutoff}>
  <config key="size" value="6 4"/><config key="fov" value="170 80"/>{more}</plugin>"""
SCENE = """
<mujoco><option tolerance="0" iterations="60" ls_iterations="60"/>{extension}
  <asset><mesh name="plate" builtin="plate" params="7 5" scale=".1 .08 .02"/>
    <mesh name="wedge" builtin="wedge" params="9 8 40 40 0" scale=".1 .1 .1"/>
    <mesh name="points" vertex="-1 -1 -1 1 -1 -1 1 1 -1 -1 1 -1 -1 -1 1 1 -1 1" scale=".05 .04 .02"/></asset>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 .1" pos="0 0 .1"/>
    <body pos="0 0 .12" euler="3 5 0"><joint axis="1 0 0"/><geom type="box" size=".5 .5 .02" pos="0 .03 -.02"/></body>
    <body name="pad" pos="0 0 .2" euler="10 20 30"><freejoint/><geom type="box" size=".1 .08 .02" condim="6"/>
      <body pos="0 0 -.02"><geom size=".01" pos=".02 .01 .05"/><site name="eye" pos=".01 0 .03" euler="0 10 20"/>
        <geom name="flat" type="mesh" mesh="plate" contype="0" conaffinity="0" mass="0"/>
        <geom name="round" type="mesh" mesh="wedge" contype="0" conaffinity="0" mass="0"/></body></body>
    <body pos="0 0 .16"><freejoint/><geom name="other" {other}/></body>
    <body pos=".05 0 .24"><freejoint/><geom size=".04"/></body>
  </worldbody>
  <sensor><tactile name="flat" geom="flat" mesh="plate"/><tactile name="round" geom="round" mesh="wedge"/>
    <tactile name="bare" geom="flat" mesh="points"/><tactile name="cut" geom="flat" mesh="plate" cutoff=".02"/>{grid}
  </sensor>
</mujoco>"""
EXTENSION = '<extension><plugin plugin="mujoco.sensor.touch_grid"/></extension>'


def scene(other: str = "sphere", grid: str = "") -> str:
    """Returns a plate on a floor, touched by other bodies, with tactile sensors and a touch grid."""
    return SCENE.format(other=OTHERS[other], grid=grid, extension=EXTENSION if grid else "")


def grid(more: str = "", cutoff: str = "") -> str:
    """Returns a touch grid; skips the test if this MuJoCo comes without its plugins."""
    if not list((Path(mujoco.__file__).parent / "plugin").glob("*sensor*")):
        pytest.skip("this MuJoCo comes without its plugins")
    return GRID.format(more=more, cutoff=cutoff)


def pairs(model: fl.Model, rng, dtype: str = "float64") -> tuple[fl.Batch, list[mujoco.MjData]]:
    """Returns worlds in random states, ours and MuJoCo's."""
    mj = model.to_mujoco()
    batch, worlds = fl.Batch(model, NWORLD, dtype=dtype), []
    for k in range(NWORLD):
        data = mujoco.MjData(mj)
        mujoco.mj_integratePos(mj, data.qpos, 0.05 * rng.standard_normal(mj.nv), 1.0)
        data.qvel = rng.standard_normal(mj.nv)
        batch.qpos[k], batch.qvel[k] = data.qpos, data.qvel
        worlds.append(data)
    return batch, worlds


def parts(model: fl.Model, values: np.ndarray) -> dict[str, np.ndarray]:
    """Returns values (..., nsensordata) by name of the sensor."""
    return {
        name: values[..., a : a + n]
        for name, a, n in zip(model.names("sensor"), model.sensor_adr, model.sensor_dim, strict=True)
    }


@pytest.mark.covers("sensor", lambda: [scene()])
@pytest.mark.parametrize("other", OTHERS)
def test_tactile_sensors_equal_mujoco(other, rng):
    model = fl.load(scene(other))
    batch, worlds = pairs(model, rng)
    measured = batch.bind("sensordata")
    batch.forward()
    for data in worlds:
        mujoco.mj_forward(data.model, data)
    theirs, ours = parts(model, np.array([data.sensordata for data in worlds])), parts(model, measured)
    for name, values in theirs.items():
        assert np.abs(ours[name] - values).max() < PARITY, name
    assert all((theirs[name] > 0).mean() > 0.03 for name in ("flat", "round"))
    assert theirs["cut"].max() == 0.02 and (ours["bare"][:, ours["bare"].shape[1] // 3 :] == 0).all()
    for k, data in enumerate(worlds[:2]):
        alone = fl.Data(model)
        alone.qpos, alone.qvel = data.qpos, data.qvel
        alone.forward()
        assert alone.sensordata.tobytes() == measured[k].tobytes()


@pytest.mark.covers("sensor", lambda: [scene(grid=grid())])
@pytest.mark.parametrize("other", EXACT)
def test_touch_grids_equal_mujoco_in_steps(other, rng):
    more = '<config key="gamma" value=".3"/><config key="nchannel" value="6"/>'
    model = fl.load(scene(other, grid(more)))
    batch, worlds = pairs(model, rng)
    measured = batch.bind("sensordata")
    for nstep in (1, 3):
        batch.step(nstep)
        for data in worlds:
            mujoco.mj_step(data.model, data, nstep)
        theirs = np.array([data.sensordata for data in worlds])
        assert (np.abs(measured - theirs) < PARITY * np.maximum(1.0, np.abs(theirs))).all()
    cells = parts(model, theirs)["grid"].reshape(NWORLD, 6, 4, 6)
    assert ((cells != 0).any(axis=(0, 2, 3))).all()


def test_a_touch_grid_has_defaults_and_a_cutoff(rng):
    model = fl.load(scene("box", grid(cutoff='cutoff="3"')))
    batch, worlds = pairs(model, rng)
    measured = batch.bind("sensordata")
    batch.forward()
    for k, data in enumerate(worlds):
        mujoco.mj_forward(data.model, data)
        assert np.abs(measured[k] - data.sensordata).max() < PARITY * 100
    assert model.sensor("grid").dim == 24 and np.abs(parts(model, measured)["grid"]).max() == 3.0


def test_values_do_not_depend_on_the_other_worlds(rng):
    model = fl.load(scene("box", grid()))
    batch, _ = pairs(model, rng)
    batch.bind("sensordata")
    start = batch.checkpoint()
    batch.step(2)
    every = batch.sensordata.copy()
    batch.restore(start)
    for ids in ([7, 2], [0], [1, 3, 4, 5, 6, 8]):
        batch.step(2, ids)
    assert batch.sensordata.tobytes() == every.tobytes()


def test_float32_is_near(rng):
    model = fl.load(scene("box"))
    batch, worlds = pairs(model, rng, "float32")
    measured = batch.bind("sensordata")
    batch.forward()
    for k, data in enumerate(worlds):
        mujoco.mj_forward(data.model, data)
        assert np.abs(measured[k] - data.sensordata).max() < 2e-2  # a point may be at a face in one precision only
        assert np.median(np.abs(measured[k] - data.sensordata)) < 1e-6


def test_a_velocity_stage_after_steps_keeps_tactile_values(rng):
    model = fl.load(scene())
    batch, _ = pairs(model, rng)
    other = batch.copy()
    for each, stage in ((batch, None), (other, "velocity")):
        each.bind("sensordata")
        each.step(2, stage=stage)
    assert batch.sensordata.any() and (other.sensordata == batch.sensordata).all()


def test_other_plugins_and_octrees_are_named():
    spec = mujoco.MjSpec.from_string(scene())
    spec.mesh("points").needsdf = 1
    spec.worldbody.add_body().add_geom(name="rock", type=mujoco.mjtGeom.mjGEOM_MESH, meshname="points")
    data = fl.Data(fl.load(spec))
    with pytest.raises(fl.UnsupportedFeatureError, match="sensor 'flat': tactile, geom 'rock': octree"):
        data.sensordata  # noqa: B018
