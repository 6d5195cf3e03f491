"""Tactile sensors and touch grids against MuJoCo's, at random states with contacts."""

from __future__ import annotations

import copy
from pathlib import Path

import mujoco
import numpy as np
import pytest

import featherlane as fl
from oracles.contact_parity import axis_meets_box
from scenes.tactile import GRID, OTHERS, scene

PARITY = 1e-9  # of the larger of 1 and the value: solvers converge to rounding
NWORLD, NSTEP = 9, 4
EXACT = ("sphere", "capsule", "box")  # pairs whose contacts, and so forces, are those of MuJoCo


def grid(more: str = "", cutoff: str = "") -> str:
    """Returns a touch grid; skips the test if this MuJoCo comes without its plugins."""
    if not list((Path(mujoco.__file__).parent / "plugin").glob("*sensor*")):
        pytest.skip("this MuJoCo comes without its plugins")
    return GRID.format(more=more, cutoff=cutoff)


def pairs(model: fl.Model, rng, dtype: str = "float64") -> tuple[fl.Batch, list[mujoco.MjData]]:
    """Returns worlds in random states, ours and MuJoCo's; in their first NSTEP steps no capsule's axis meets a box."""
    mj = model.to_mujoco()
    batch, worlds = fl.Batch(model, NWORLD, dtype=dtype), []
    for _ in range(1000):
        data = mujoco.MjData(mj)
        mujoco.mj_integratePos(mj, data.qpos, 0.05 * rng.standard_normal(mj.nv), 1.0)
        data.qvel = rng.standard_normal(mj.nv)
        if _pierced(mj, data):
            continue
        batch.qpos[len(worlds)], batch.qvel[len(worlds)] = data.qpos, data.qvel
        worlds.append(data)
        if len(worlds) == NWORLD:
            return batch, worlds
    raise AssertionError("too few states")


def _pierced(mj, data) -> bool:
    """Returns whether the axis of a capsule meets a box in the first NSTEP steps; does not change `data`."""
    ahead = copy.copy(data)
    for _ in range(NSTEP):
        if axis_meets_box(mj, ahead):
            return True
        mujoco.mj_step(mj, ahead)
    return axis_meets_box(mj, ahead)


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
        batch.step(2, ids=ids)
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


def test_depths_in_the_octree_of_a_mesh_equal_mujoco(rng):
    """MuJoCo 4.0.1 measures an SDF geom without a plugin wrongly; here it is measured as the mesh."""
    spec = mujoco.MjSpec.from_string(scene())
    other = spec.geom("other")
    other.type, other.meshname, spec.mesh("points").needsdf = mujoco.mjtGeom.mjGEOM_MESH, "points", 1
    model = fl.load(spec)
    batch, worlds = pairs(model, rng)
    measured = batch.bind("sensordata")
    batch.forward()
    for data in worlds:
        mujoco.mj_forward(data.model, data)
    theirs = np.array([data.sensordata for data in worlds])
    assert np.abs(measured - theirs).max() < PARITY and (theirs > 0).sum() > 20
    other.type = mujoco.mjtGeom.mjGEOM_SDF
    field = fl.Batch(fl.load(spec), NWORLD)
    field.qpos, field.qvel, values = batch.qpos, batch.qvel, field.bind("sensordata")
    field.forward()
    touching = (values > 0).any(axis=1)
    assert touching.any() and np.abs(values - measured)[touching].max() < PARITY
