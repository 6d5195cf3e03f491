"""Use of sensors: by name, in batches and rollouts, with noise, and errors."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from scenes.user_functions import callbacks

ARM = """<mujoco><worldbody><body name="arm"><joint name="hinge"/><geom type="capsule" size=".05 .3"/>
<site name="tip" pos="0 0 .3"/></body></worldbody><sensor>
<gyro name="gyro" site="tip" noise=".1"/><framequat name="quat" objtype="site" objname="tip" noise=".2"/>
<framezaxis name="axis" objtype="site" objname="tip" noise=".2"/><touch name="touch" site="tip" noise=".5"/>
<rangefinder name="ray" site="tip" noise=".5"/><jointpos name="angle" joint="hinge"/></sensor></mujoco>"""
USER = """<mujoco><worldbody><body><joint name="hinge" axis="0 1 0"/><geom size=".1"/><site name="tip"/></body>
</worldbody><sensor><jointvel name="rate" joint="hinge"/><user name="mine" dim="2" needstage="pos"/></sensor>
</mujoco>"""


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
    with pytest.raises(fl.UnknownNameError):
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
        lambda: fl.linearize(model, data, sensors=True, method="finite_difference"),
    ):
        with pytest.raises(fl.UnsupportedFeatureError, match="mine"):
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


def test_noise_differs_by_world():
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
def test_noise_on_other_fields_is_refused(wrong):
    with pytest.raises(fl.ModelError):
        fl.add_sensor_noise(fl.load(ARM), wrong)


# ---- user-defined sensors --------------------------------------------------------------------------------------------
def tilt(model, xmat, sensordata):
    """Returns the height of the body's z axis, and twice the rate of the hinge."""
    return np.stack([xmat[..., 1, 8], 2.0 * sensordata[..., 0]], -1)


def swinging(n):
    rng = np.random.default_rng(1)
    return rng.standard_normal((n, 1)), rng.standard_normal((n, 1))


@pytest.mark.covers("sensor", lambda: [USER])
def test_a_user_sensor_is_computed_after_the_others():
    model = fl.load(USER)
    fl.set_user_sensor(model, "mine", tilt, reads=("xmat", "sensordata"))
    data = fl.Data(model)
    data.qpos, data.qvel = 0.3, 2.0
    fl.step(model, data)
    np.testing.assert_allclose(data.sensordata, [2.0, np.cos(0.3), 4.0], atol=1e-15)
    assert data.qpos != 0.3
    assert np.array_equal(data.sensor("mine").data, data.sensordata[1:])


def check_alike(model):
    """Checks three steps of eleven worlds: `step`, `rollout`, and one world as `Data` give the same sensor values.

    Returns the batch that stepped, its sensor values, and the recording of the other one.
    """
    qpos, qvel = swinging(11)
    bound, rolled, data = fl.Batch(model, 11), fl.Batch(model, 11), fl.Data(model)
    shown = bound.bind("sensordata")
    for batch in (bound, rolled):
        batch.qpos, batch.qvel = qpos, qvel
    data.qpos, data.qvel = qpos[4], qvel[4]
    recorded = rolled.rollout(3, record="sensordata")["sensordata"]
    for s in range(3):
        bound.step()
        fl.step(model, data)
        assert np.array_equal(recorded[:, s], shown)
        assert np.array_equal(data.sensordata, shown[4])
    return bound, shown, recorded


def test_a_user_sensor_is_equal_in_data_batches_and_rollouts():
    model = fl.load(USER)
    fl.set_user_sensor(model, "mine", tilt, reads=("xmat", "sensordata"))
    bound, shown, recorded = check_alike(model)
    bound.forward(ids=[2])
    assert not np.array_equal(shown[2], recorded[2, -1])
    assert np.array_equal(np.delete(shown, 2, 0), np.delete(recorded[:, -1], 2, 0))


def test_a_user_sensor_is_cut_off_and_can_be_removed():
    model = fl.load(USER.replace('dim="2"', 'dim="2" cutoff=".5"'))
    data = fl.Data(model)
    fl.set_user_sensor(model, "mine", lambda model, s: np.concatenate([s[..., :1] + 3.0, s[..., :1] - 3.0], -1))
    fl.forward(model, data)
    assert np.array_equal(data.sensordata, [0.0, 0.5, -0.5])
    fl.set_user_sensor(model, "mine", None)
    with pytest.raises(fl.UnsupportedFeatureError):
        _ = fl.Data(model).sensordata


@pytest.mark.parametrize(
    ("sensor", "function", "reads", "message"),
    [
        ("rate", tilt, "xpos", "type user"),
        ("mine", tilt, "qpos", "value of the next step"),
        ("mine", tilt, "xpoz", "unknown field 'xpoz'.*xpos"),
        ("mine", lambda model, x: x[..., 0, 0], "xpos", r"returned shape \(\)"),
        ("mine", lambda model, x: 1 / 0, "xpos", "ZeroDivisionError"),
        ("mine", 0.0, 0.0, "sensor 'mine': function:"),
        ("mine", tilt, 0.0, "sensor 'mine': reads:"),
        ("mine", tilt, np.broadcast_to(1.0, 1 << 40), "reads:"),
    ],
)
def test_a_user_sensor_is_checked_at_registration(sensor, function, reads, message):
    with pytest.raises(fl.ModelError, match=message):
        fl.set_user_sensor(fl.load(USER), sensor, function, reads=reads)


KERNEL = """<mujoco><option timestep=".01"/><worldbody><body><joint name="hinge" axis="0 1 0"/>
<geom size=".1" pos=".2 0 0"/><site name="tip" pos="0 0 .3"/></body></worldbody>
<sensor><jointvel name="rate" joint="hinge"/><user name="mine" dim="3" needstage="acc" cutoff="1.5"/>
<user name="angle" dim="1" needstage="pos"/></sensor></mujoco>"""


@fl.kernel
def three(m, d, i):
    """Uses an acceleration, a site that nothing else uses, and an energy that is computed on demand."""
    return d.qacc[0], d.site_xpos[m.nsite - 1].x, d.energy[1]


@fl.kernel
def angle(m, d, i):
    return d.qpos[0]


def callback(m, d, stage):
    if stage == mujoco.mjtStage.mjSTAGE_ACC:
        mujoco.mj_energyVel(m, d)
        d.sensordata[1:4] = d.qacc[0], d.site_xpos[-1, 0], d.energy[1]
    elif stage == mujoco.mjtStage.mjSTAGE_POS:
        d.sensordata[4] = d.qpos[0]


def with_kernels(xml=KERNEL):
    model = fl.load(xml)
    fl.set_user_sensor(model, "mine", three)
    fl.set_user_sensor(model, "angle", angle)
    return model


@pytest.mark.parametrize("given", [None, 1.0, [1.0j, 2.0], ["1", "2"], [1.0, 2.0, 3.0]], ids=str)
def test_a_callback_with_a_changed_result_shape_is_named(given):
    model, calls = fl.load(USER), []

    def function(model, sensordata):
        calls.append(None)
        return np.zeros((*sensordata.shape[:-1], 2)) if len(calls) < 3 else given

    fl.set_user_sensor(model, "mine", function)
    data = fl.Data(model)
    with pytest.raises(fl.ModelError):
        fl.step(model, data)
        np.asarray(data.sensordata)


@pytest.mark.covers("sensor", lambda: [KERNEL])
def test_a_sensor_kernel_equals_mujoco_callback():
    """The kernel runs within each step, with all fields available; with a cutoff."""
    mj, model = mujoco.MjModel.from_xml_string(KERNEL), with_kernels()
    reference, data = mujoco.MjData(mj), fl.Data(model)
    reference.qvel[:], data.qvel = 3.0, 3.0
    with callbacks(sensor=callback):
        for _ in range(6):
            mujoco.mj_step(mj, reference)
            fl.step(model, data)
            np.testing.assert_allclose(data.sensordata, reference.sensordata, rtol=0, atol=1e-12)


def test_a_sensor_kernel_is_equal_in_data_batches_and_rollouts():
    model = with_kernels()
    check_alike(model)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (angle, "sensor 'mine': angle returned Row"),
        (fl.kernel(lambda m, d: 0.0), r"parameters \(m, d\)"),
        (fl.kernel(lambda m, d, i: d.sensordata[0]), "d.sensordata cannot be read in this callback"),
    ],
)
def test_a_sensor_kernel_is_checked_at_registration(kernel, message):
    with pytest.raises(fl.ModelError, match=message):
        fl.set_user_sensor(fl.load(KERNEL), "mine", kernel)
