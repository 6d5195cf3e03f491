"""Sensors as users meet them: by name, in batches and rollouts, with noise, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import featherlane as fl

ARM = """<mujoco><worldbody><body name="arm"><joint name="hinge"/><geom type="capsule" size=".05 .3"/>
<site name="tip" pos="0 0 .3"/></body></worldbody><sensor>
<gyro name="gyro" site="tip" noise=".1"/><framequat name="quat" objtype="site" objname="tip" noise=".2"/>
<framezaxis name="axis" objtype="site" objname="tip" noise=".2"/><touch name="touch" site="tip" noise=".5"/>
<rangefinder name="ray" site="tip" noise=".5"/><jointpos name="angle" joint="hinge"/></sensor></mujoco>"""
USER = """<mujoco><worldbody><body><joint name="hinge"/><geom size=".1"/><site name="tip"/></body></worldbody>
<sensor><jointvel name="rate" joint="hinge"/><user name="mine" dim="2" needstage="pos"/></sensor></mujoco>"""


def test_a_sensor_is_read_by_its_name():
    model = fl.load(ARM)
    data, batch = fl.Data(model), fl.Batch(model, 3)
    data.qvel = 2.0
    batch.bind("sensordata")
    batch.qvel = 2.0
    data.forward()
    batch.forward()
    assert np.shares_memory(data.sensor("gyro").data, data.sensordata)
    assert np.array_equal(data.sensor("gyro").data, [0, 0, 2])
    assert np.array_equal(batch.sensor("gyro").data, [[0, 0, 2]] * 3)
    assert batch.sensor("angle").data.shape == (3, 1)
    with pytest.raises(fl.UnknownNameError, match="gyro"):
        data.sensor("giro")


def test_a_sensor_that_is_not_computed_is_refused_by_name():
    model = fl.load(USER)
    data, batch = fl.Data(model), fl.Batch(model, 2)
    data.qvel = 3.0
    data.forward()
    assert data.sensor("rate").data == 3.0
    assert batch.sensor("rate").data.shape == (2, 1)
    for read in (
        lambda: data.sensordata,
        lambda: data.sensor("mine").data,
        lambda: batch.sensordata,
        lambda: batch.sensor("mine").data,
        lambda: batch.rollout(1, record="sensordata"),
        lambda: fl.transition_fd(model, data, sensors=True),
    ):
        with pytest.raises(fl.UnsupportedFeatureError, match="sensor 'mine': user"):
            read()


def test_noise_has_the_deviation_of_the_model_and_repeats_by_its_seed(rng):
    model = fl.load(ARM)
    recorded = fl.Batch(model, 400).rollout(5, record="sensordata")["sensordata"]
    clean, again = recorded.copy(), recorded.copy()
    fl.add_sensor_noise(model, recorded, 5)
    fl.add_sensor_noise(model, again, 5)
    assert np.array_equal(recorded, again)
    noise = recorded - clean
    assert np.std(noise[..., :3]) == pytest.approx(0.1, rel=0.05)
    assert np.linalg.norm(recorded[..., 3:7], axis=-1) == pytest.approx(1.0)
    assert np.linalg.norm(recorded[..., 7:10], axis=-1) == pytest.approx(1.0)
    angle = 2 * np.arccos(
        np.abs(np.sum(clean * recorded, -1, where=np.isin(np.arange(12 + 1), range(3, 7)))).clip(0, 1)
    )
    assert np.sqrt(np.mean(angle**2) / 3) == pytest.approx(0.2, rel=0.05)
    assert (recorded[..., 10] >= 0).all()
    assert np.std(recorded[..., 10]) > 0.1
    assert (recorded[..., 11] == -1).all()
    assert not noise[..., 12].any()


def test_noise_of_a_batch_is_each_worlds_own():
    model = fl.load(ARM)
    data, batch = fl.Data(model), fl.Batch(model, 3)
    batch.expand("sensor_noise")[:] = 0.0
    batch.expand("sensor_noise")[2] = model.sensor_noise
    shown = batch.bind("sensordata")
    batch.forward()
    data.forward()
    clean = shown.copy()
    fl.add_sensor_noise(model, batch, 1)
    fl.add_sensor_noise(model, data, 1)
    assert np.array_equal(shown[:2], clean[:2])
    assert not np.array_equal(shown[2], clean[2])
    assert not np.array_equal(data.sensordata, clean[0])
    batch.forward()
    assert np.array_equal(shown, clean)


@pytest.mark.parametrize("wrong", [np.zeros(3), np.zeros((2, 13), int), "data"])
def test_noise_on_anything_else_is_refused(wrong):
    with pytest.raises(fl.ModelError, match=r"sensordata: got .*allowed is .*13"):
        fl.add_sensor_noise(fl.load(ARM), wrong)
