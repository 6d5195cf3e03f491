"""Laws of sensors for any model: weight, acceleration, momentum; and the parts of a step that they need."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.tile import capacity
from scenes.sensors import GROUPS, scene
from scenes.states import kicked

ROUNDING = 1e-12  # of the largest value in a sum of a few dozen
SETTLED = 1e-6  # [N] a scale at rest after some seconds of damping
CONSERVED = 1e-9  # of the momentum over 0.2 s of a fourth-order step
STILL = """<mujoco><worldbody><site name="post" pos=".1 .2 .3" euler="30 20 10"/>
<body name="stand" mocap="true" pos="1 0 1" euler="10 20 30"><geom size=".1"/><site name="top"/></body>
<body pos="0 0 1"><joint type="slide" axis="0 0 1" damping="50" stiffness="1000"/>
  <geom type="box" size=".1 .1 .02" mass="1"/>
  <body pos="0 0 .1"><site name="plate" euler="0 90 0"/><geom type="box" size=".1 .1 .02" mass="2"/>
    <body pos=".3 0 0"><geom type="sphere" size=".05" mass=".5"/></body></body></body></worldbody>
<sensor><accelerometer site="post"/><accelerometer site="top"/><force site="plate"/><torque site="plate"/></sensor>
</mujoco>"""
SCALE = """<mujoco><option timestep="0.002"/><worldbody><body name="pan" pos="0 0 .02">
<geom name="pan" type="box" size=".3 .3 .02"/><site name="pan" type="box" size=".3 .3 .05"/></body>
<body pos="0 0 .15"><freejoint/><geom name="load" type="box" size=".1 .1 .1" mass="1.5"/></body></worldbody>
<sensor><touch site="pan"/><contact geom1="pan" geom2="load" reduce="netforce" data="found force pos"/></sensor>
</mujoco>"""
FREE = """<mujoco><option gravity="0 0 0" integrator="RK4" timestep="0.002"/><worldbody>
<body name="root"><freejoint/><geom type="box" size=".1 .2 .3"/>
  <body pos=".3 0 0"><joint type="ball"/><geom type="capsule" size=".05 .2" euler="20 30 0"/>
    <body pos="0 .3 0"><joint axis="1 1 0"/><geom size=".1"/></body></body></body></worldbody>
<sensor><subtreelinvel body="root"/><subtreeangmom body="root"/></sensor></mujoco>"""


def test_an_accelerometer_at_rest_reads_gravity_upwards():
    data = fl.Data(fl.load(STILL))
    data.forward()
    for site, first in (("post", 0), ("top", 3)):
        world = data.site(site).xmat.reshape(3, 3) @ data.sensordata[first : first + 3]
        np.testing.assert_allclose(world, [0, 0, 9.81], atol=ROUNDING)


def test_a_force_sensor_measures_the_weight_above_it():
    model = fl.load(STILL)
    data = fl.Data(model)
    fl.step(model, data, 5000)
    R, carried = data.site("plate").xmat.reshape(3, 3), 2.5 * 9.81
    np.testing.assert_allclose(R @ data.sensordata[6:9], [0, 0, carried], atol=SETTLED)
    np.testing.assert_allclose(R @ data.sensordata[9:12], [0, -0.3 * 0.5 * 9.81, 0], atol=SETTLED)


def test_touch_sensors_and_contact_forces_equal_the_weight():
    model = fl.load(SCALE)
    data = fl.Data(model)
    fl.step(model, data, 3000)
    touch, found, *net = data.sensordata
    assert found == 4
    assert touch == pytest.approx(1.5 * 9.81, abs=SETTLED)
    np.testing.assert_allclose(net[:3], [0, 0, 1.5 * 9.81], atol=SETTLED)
    np.testing.assert_allclose(net[3:5], [0, 0], atol=SETTLED)


def test_momentum_of_a_free_system_is_conserved(rng):
    model = fl.load(FREE)
    data = fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng)
    data.forward()
    before = data.sensordata.copy()
    fl.step(model, data, 100)
    np.testing.assert_allclose(data.sensordata, before, atol=CONSERVED * np.abs(before).max())


def test_parent_and_external_forces_balance_the_motion(rng):
    """For the whole tree: the world's force on its root is the rate of momentum less the external forces."""
    model = fl.load(scene(""))
    data = fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng, 0.08)
    data.xfrc_applied = rng.standard_normal((model.nbody, 6))
    data.forward()
    fl.stages.rne_post_constraint(model, data)
    for b in np.flatnonzero(model.body_dofnum == 6):
        np.testing.assert_allclose(data.cfrc_int[b], 0, atol=1e-9 * np.abs(data.cfrc_ext).max())


def all_kinds() -> str:
    """Returns one sensor of each group, some hundred values."""
    picked = (sensors.split("/>") for name, sensors in GROUPS.items() if "touch" not in name and "inside" not in name)
    return "".join(f"{s}/>" for group in picked for s in group[:3] if s) + '<touch site="pad"/>'


@pytest.fixture(scope="module")
def crowded():
    """Returns a model with sensors of all kinds, and states of 11 worlds in contact."""
    model = fl.load(scene(all_kinds()))
    rng = np.random.default_rng(3)
    states = [kicked(model, rng, 0.08) for _ in range(11)]
    return model, np.array([q for q, _ in states]), np.array([v for _, v in states])


def run(model, qpos, qvel, record=("sensordata", "qpos"), nstep=4, **settings):
    batch = fl.Batch(model, len(qpos), **settings)
    batch.qpos, batch.qvel = qpos, qvel
    return batch.rollout(nstep, record=record)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_world_measures_the_same_in_any_batch(crowded, dtype):
    model, qpos, qvel = crowded
    together = run(model, qpos, qvel, dtype=dtype)["sensordata"]
    for k in (0, 4, 10):
        alone = run(model, qpos[k : k + 1], qvel[k : k + 1], dtype=dtype)["sensordata"]
        assert alone[0].tobytes() == together[k].tobytes()
    turned = run(model, qpos[::-1], qvel[::-1], dtype=dtype)["sensordata"]
    assert turned[::-1].tobytes() == together.tobytes()


def test_a_tile_that_is_split_measures_the_same(crowded, monkeypatch):
    model, qpos, qvel = crowded
    roomy = run(model, qpos, qvel, ("sensordata", "cfrc_int", "cfrc_ext", "ncon"))
    monkeypatch.setattr(capacity, "CONTACT_LIMIT", int(roomy["ncon"].max()))
    tight = run(model, qpos, qvel, ("sensordata", "cfrc_int", "cfrc_ext", "ncon"))
    for name, rows in roomy.items():
        assert tight[name].tobytes() == rows.tobytes(), name


def test_sensors_change_no_bit_of_the_motion(crowded):
    model, qpos, qvel = crowded
    measured, bare = run(model, qpos, qvel), run(model, qpos, qvel, ("qpos",))
    assert measured["qpos"].tobytes() == bare["qpos"].tobytes()


@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicitfast"])
def test_a_step_returns_the_sensors_of_the_previous_state(crowded, integrator):
    model, qpos, qvel = crowded
    model = copy.deepcopy(model)
    model.opt.integrator = integrator
    data, other = fl.Data(model), fl.Data(model)
    for one in (data, other):
        one.qpos, one.qvel = qpos[0], qvel[0]
    fl.step(model, data)
    fl.forward(model, other)
    assert data.sensordata.tobytes() == other.sensordata.tobytes()


def test_the_flag_sensor_leaves_sensordata_as_it_was(crowded):
    model, qpos, qvel = crowded
    model = copy.deepcopy(model)
    data = fl.Data(model)
    data.qpos, data.qvel = qpos[0], qvel[0]
    data.sensordata[...] = 7.0
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_SENSOR
    fl.step(model, data)
    assert (data.sensordata == 7.0).all()


def test_inverse_dynamics_measures_at_the_given_acceleration(crowded, rng):
    model, qpos, qvel = crowded
    mj = model.to_mujoco()
    expected, data = mujoco.MjData(mj), fl.Data(model)
    for one in (expected, data):
        one.qpos[:], one.qvel[:] = qpos[0], qvel[0]
    mujoco.mj_forward(mj, expected)
    fl.forward(model, data)
    expected.qvel[:] = data.qvel[:] = qvel[1]
    expected.qacc[:] = data.qacc[:] = rng.standard_normal(model.nv)
    mujoco.mj_inverse(mj, expected)
    fl.inverse(model, data)
    scale = np.maximum(1.0, np.abs(expected.sensordata))
    assert (np.abs(data.sensordata - expected.sensordata) < 1e-9 * scale).all()
