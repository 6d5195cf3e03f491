"""Sensors with a delay, a period or a history: MuJoCo's values and samples, independently in every world."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl

ROUNDING = 1e-14  # of values of order 1 that both engines compute in a few operations
NSTEP = 60
SCENE = """<mujoco><option timestep="0.01"/><worldbody><body><joint name="h"/><joint name="s" type="slide"/>
<geom size=".1" pos=".1 .2 .3"/><site name="t" pos=".1 .2 .3"/></body></worldbody><sensor>
<jointpos joint="h" delay=".025" nsample="5"/>
<gyro site="t" delay=".025" nsample="5" interp="linear"/>
<velocimeter site="t" delay=".033" nsample="8" interp="cubic"/>
<jointvel joint="h" interval=".03" nsample="3"/>
<jointvel joint="s" interval=".035 -.012" nsample="4" interp="linear"/>
<accelerometer site="t" interval=".025" delay=".04" nsample="6" interp="cubic"/>
<jointpos joint="s" nsample="3"/>
<clock delay=".02" nsample="4"/>
<jointpos joint="h" cutoff=".05" delay=".02" nsample="4"/></sensor></mujoco>"""


@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicitfast"])
def test_delayed_and_sampled_sensors_equal_mujoco(integrator):
    model = fl.load(SCENE)
    model.opt.integrator = integrator
    mj = model.to_mujoco()
    expected, data = mujoco.MjData(mj), fl.Data(model)
    expected.qvel[:], data.qvel = [1.0, 2.0], [1.0, 2.0]
    for _ in range(NSTEP):
        mujoco.mj_step(mj, expected)
        fl.step(model, data)
        np.testing.assert_allclose(data.sensordata, expected.sensordata, atol=ROUNDING)
        np.testing.assert_allclose(data.history, expected.history, atol=ROUNDING)


def test_histories_are_per_world_and_updated_without_sensors(rng):
    model = fl.load(SCENE)
    qvel = rng.standard_normal((11, 2))
    watched, blind, data = fl.Batch(model, 11), fl.Batch(model, 11), fl.Data(model)
    shown = watched.bind("sensordata")
    data.qvel = qvel[7]
    for batch in (watched, blind):
        batch.qvel = qvel
        batch.step(3)
        batch.step(5, ids=[1, 7])
        batch.reset(ids=[7])
        batch.qvel[7] = qvel[7]
        batch.step(9)
    fl.step(model, data, 9)
    assert watched.history.tobytes() == blind.history.tobytes()
    assert watched.history[7].tobytes() == data.history.tobytes()
    assert shown[7].tobytes() == data.sensordata.tobytes()


# ---- reading and filling ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("sensor", [1, 2, 4, 5])
def test_a_user_reads_and_fills_histories_as_in_mujoco(sensor, rng):
    model = fl.load(SCENE)
    mj = model.to_mujoco()
    data, given = fl.Data(model), mujoco.MjData(mj)
    n, dim = mj.sensor_history[sensor, 0], mj.sensor_dim[sensor]
    times, values = np.cumsum(rng.random(n)), rng.standard_normal((n, dim))
    fl.init_sensor_history(model, data, sensor, times, values, phase=0.25)
    mujoco.mj_initSensorHistory(mj, given, sensor, times, values, 0.25)
    assert np.array_equal(data.history, given.history)
    for interp, order in (("zoh", 0), ("linear", 1), ("cubic", 2), ("", -1)):
        for time in (*rng.uniform(-1, n, 20), *times, times[1] + mj.sensor_delay[sensor]):
            out = np.zeros(dim)
            read = mujoco.mj_readSensor(mj, given, sensor, time, out, order)
            expected = out if read is None else read
            found = fl.read_sensor(model, data, sensor, time, interp)
            assert np.allclose(found, expected, rtol=0, atol=ROUNDING)


def test_a_filled_history_determines_the_sensor_of_the_next_steps_as_in_mujoco():
    model = fl.load(SCENE)
    mj = model.to_mujoco()
    data, expected = fl.Data(model), mujoco.MjData(mj)
    for i, phase in ((0, 0.0), (3, -0.02), (4, -0.01)):
        n = mj.sensor_history[i, 0]
        fl.init_sensor_history(model, data, i, None, np.arange(1.0, n + 1), phase=phase)
        mujoco.mj_initSensorHistory(mj, expected, i, None, np.arange(1.0, n + 1), phase)
    for _ in range(10):
        mujoco.mj_step(mj, expected)
        fl.step(model, data)
        np.testing.assert_allclose(data.sensordata, expected.sensordata, atol=ROUNDING)


def test_reading_a_sensor_without_history_returns_its_present_values():
    model = fl.load(SCENE.replace('<jointpos joint="h" delay', '<gyro name="g" site="t"/><jointpos joint="h" delay', 1))
    data = fl.Data(model)
    data.qvel = [0.3, 0.2]
    fl.forward(model, data)
    read = fl.read_sensor(model, data, "g", time=7.0)
    assert np.array_equal(read, data.sensordata[:3]) and not np.shares_memory(read, data.sensordata)
    with pytest.raises(fl.ModelError, match="sensor g: it has no history"):
        fl.init_sensor_history(model, data, "g", None, np.zeros((3, 3)))


@pytest.mark.parametrize(
    "wrong", [{"values": np.zeros(4)}, {"times": [2.0, 1.0, 0.0, 3.0, 4.0]}, {"phase": np.nan}, {"sensor": "none"}]
)
def test_wrong_histories_are_refused_and_change_nothing(wrong):
    model = fl.load(SCENE)
    data = fl.Data(model)
    before = data.history.copy()
    with pytest.raises(fl.FeatherlaneError):
        fl.init_sensor_history(model, data, **({"sensor": 0, "times": None, "values": np.zeros(5)} | wrong))
    assert np.array_equal(data.history, before)


def test_sensor_histories_of_a_batch_equal_those_of_single_worlds(rng):
    model = fl.load(SCENE)
    batch = fl.Batch(model, 4)
    batch.bind("sensordata")
    batch.qvel = rng.standard_normal((4, 2))
    batch.step(7)
    values, times, phase = rng.standard_normal((3, 4)), np.cumsum(rng.random((3, 4)), axis=1), [-0.01, 0.0, -0.02]
    ids = [2, 0, 3]
    for sensor in (1, 4):
        singles = [batch.get_data(w) for w in ids]
        found = fl.read_sensor(model, batch, sensor, ids=ids)
        np.testing.assert_array_equal(found, [fl.read_sensor(d.model, d, sensor) for d in singles])
    fl.init_sensor_history(model, batch, 4, times, values, phase=phase, ids=ids)
    for k, (w, d) in enumerate(zip(ids, singles, strict=True)):
        fl.init_sensor_history(d.model, d, 4, times[k], values[k], phase=phase[k])
        np.testing.assert_array_equal(batch.history[w], d.history)


# ---- time in float32 -------------------------------------------------------------------------------------------------
STAIRS = """<mujoco><option timestep="{h}" gravity="0 0 0"/><worldbody><body><joint name="j" type="slide"/>
<geom size=".1" mass="1"/></body></worldbody><actuator>
<motor joint="j"/><motor joint="j" delay="{delay}" nsample="9"/></actuator><sensor>
<actuatorfrc actuator="a0" delay="{delay}" nsample="9"/><actuatorfrc actuator="a0" interval="{delay}" nsample="9"/>
<actuatorfrc actuator="a1"/></sensor></mujoco>"""


def stairs(h, dtype, start, steps=30):
    """Returns time and sensor values after each step, under controls 0, 1, 2, ... that float32 holds exactly."""
    text = STAIRS.format(h=h, delay=4 * h)
    for name in ("a0", "a1"):
        text = text.replace("<motor joint", f'<motor name="{name}" joint', 1)
    batch = fl.Batch(fl.load(text), 2, dtype=dtype)
    batch.time = start
    control = np.repeat(np.arange(float(steps))[:, None], 2, 1)
    return batch.rollout(steps, control, record=("time", "sensordata", "history"))


@pytest.mark.parametrize("h", [0.01, 0.002])
@pytest.mark.parametrize("start", [0.0, 32768.0, 70000.0, 1e6])
def test_time_delays_and_periods_in_float32_equal_those_of_float64(h, start):
    single, double = stairs(h, "float32", start), stairs(h, "float64", start)
    assert single["time"].dtype == np.float64
    for name, expected in double.items():
        np.testing.assert_array_equal(single[name], expected, name)
    assert double["sensordata"].max() > 20, "delayed controls have arrived"
