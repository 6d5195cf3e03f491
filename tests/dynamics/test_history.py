"""Histories of delayed values: insertion, reads at any time, and initial values."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.dynamics.actuator.history import find_bracket, insert_sample, interpolate, reset_histories
from featherlane.engine.lanes import stage, true_mask
from featherlane.engine.lanes.record import python_record
from featherlane.engine.model.history import empty_history
from featherlane.engine.model.load import from_mujoco
from featherlane.engine.simulation.tile.workspace import Workspace

ROUNDING = 1e-12  # of a spline through closely spaced samples
DELAYED = """<mujoco><option timestep="0.007"/><worldbody><body>
  <joint name="hinge" axis="0 1 0"/><geom size="0.1" pos="0.3 0 0"/></body></worldbody>
<actuator><motor joint="hinge" delay="0.03" nsample="5"/>
  <motor joint="hinge" delay="0.02" nsample="6" interp="linear"/>
  <pid joint="hinge" input="pos vel" delay="0.025" nsample="7" interp="cubic"/><motor joint="hinge" nsample="1"/>
</actuator>
<sensor><jointpos joint="hinge" delay="0.02" nsample="3"/><jointpos joint="hinge" interval="0.035" nsample="3"/>
  <jointpos joint="hinge" interval="0.035 -0.005" nsample="4" delay="0.1"/>
  <framepos objtype="body" objname="world" nsample="2"/></sensor></mujoco>"""


@stage
def _insert_given(m, d):
    """Stores ctrl[2], ctrl[3] in the history of actuator 2 at time ctrl[0]."""
    insert_sample(d, m.actuator_historyadr[2], m.actuator_history[4], 2, d.ctrl[0], d.ctrl, 2, true_mask(d))


@stage
def _read_given(m, d, order):
    """Reads ctrl[2], ctrl[3] <- the values at time ctrl[0]."""
    a, n = m.actuator_historyadr[2], m.actuator_history[4]
    at = find_bracket(d, a, n, d.ctrl[0])
    d.ctrl[2] = interpolate(d, a, n, 2, 0, d.ctrl[0], at, order)
    d.ctrl[3] = interpolate(d, a, n, 2, 1, d.ctrl[0], at, order)


@stage
def _reset(m, d):
    reset_histories(m, d, d.ctrl[0] > 0.0)


def run(workspace, kernel, *numbers):
    """Runs a stage of these tests, uncompiled."""
    with np.errstate(all="ignore"):
        kernel.function(python_record(workspace.rows.record), python_record(workspace.record), *numbers)


@pytest.fixture(scope="module")
def mj():
    return mujoco.MjModel.from_xml_string(DELAYED)


@pytest.fixture(scope="module")
def model(mj):
    return from_mujoco(mj, "test")


@pytest.mark.parametrize("timestep", [0.007, 0.01, 0.0123])
def test_a_reset_gives_the_history_of_mujoco(mj, model, timestep):
    mj.opt.timestep = timestep
    given = mujoco.MjData(mj).history
    assert np.array_equal(empty_history(model, timestep)[0], given)
    space = Workspace(model, 4)
    space.arrays["history"][...] = 7.0
    space.rows.own(["opt_timestep"])
    model.opt.timestep = timestep
    space.arrays["ctrl"][0] = [1, 0, 1, 0]
    space.rows.refresh()
    run(space, _reset)
    assert np.array_equal(space.arrays["history"][:, ::2], np.repeat(given[:, None], 2, 1))
    assert (space.arrays["history"][:, 1::2] == 7).all()


def test_samples_are_inserted_as_mujoco_does(mj, model, rng):
    """Covers samples newer, older than all, between two, at an existing time; worlds and cursors differ in state."""
    space, worlds = Workspace(model, 4), [mujoco.MjData(mj) for _ in range(4)]
    mj.opt.timestep = model.opt_timestep[0]
    for data in worlds:
        mujoco.mj_resetData(mj, data)
    for k in range(40):
        for w, data in enumerate(worlds):
            a = mj.actuator_historyadr[2]
            known = data.history[a + 2 : a + 2 + 7]
            data.time = [known.max() + rng.random(), rng.choice(known), rng.uniform(known.min() - 0.1, known.max())][
                (k + w) % 3
            ]
            data.ctrl[:] = rng.standard_normal(5)
            space.arrays["ctrl"][:, w] = [data.time, 0, *data.ctrl[2:4], 0]
            before, time = data.history.copy(), data.time
            mj.opt.disableflags = int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
            mujoco.mj_Euler(mj, data)
            data.time, inserted = time, data.history.copy()
            data.history[:] = before
            last = a + 2 + 3 * 7
            data.history[a:last] = inserted[a:last]
        run(space, _insert_given)
        for w, data in enumerate(worlds):
            assert np.array_equal(space.arrays["history"][a:last, w], data.history[a:last]), (k, w)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_values_are_read_as_mujoco_does(mj, model, rng, order):
    """Covers times at, between, before and after the samples, for every position of the cursor."""
    space, data = Workspace(model, 4), mujoco.MjData(mj)
    a = mj.actuator_historyadr[2]
    for k in range(30):
        cursor, times = k % 7, np.sort(rng.standard_normal(7))
        data.history[a + 1] = cursor
        data.history[a + 2 : a + 9] = np.roll(times, cursor + 1)
        data.history[a + 9 : a + 23] = rng.standard_normal(14)
        space.arrays["history"][...] = data.history[:, None]
        at = np.array([rng.choice(times), rng.uniform(times[0], times[-1]), times[0] - 1, times[-1] + k % 2])
        space.arrays["ctrl"][0] = at
        run(space, _read_given, order)
        for w in range(4):
            out = np.zeros(2)
            # at an exact sample MuJoCo returns a pointer into the history
            given = mujoco.mj_readCtrl(mj, data, 2, at[w] + mj.actuator_delay[2], out, order)
            given = out if given is None else given
            read = space.arrays["ctrl"][2:4, w]
            assert np.allclose(read, given, rtol=ROUNDING, atol=ROUNDING * abs(data.history).max()), (k, w)


@pytest.mark.parametrize("interp", ["zoh", "linear", "cubic"])
def test_a_user_reads_and_fills_histories_as_in_mujoco(mj, model, rng, interp):
    mj.opt.timestep = model.opt_timestep[0]
    data, given = fl.Data(model), mujoco.MjData(mj)
    times, values = np.cumsum(rng.random(7)), rng.standard_normal((7, 2))
    fl.init_ctrl_history(model, data, 2, times, values)
    mujoco.mj_initCtrlHistory(mj, given, 2, times, values)
    assert np.array_equal(data.history, given.history)
    for time in (*rng.uniform(0, 4, 30), *times, times[3] + mj.actuator_delay[2]):
        out = np.zeros(2)
        read = mujoco.mj_readCtrl(mj, given, 2, time, out, ["zoh", "linear", "cubic"].index(interp))
        expected = out if read is None else read
        assert np.allclose(fl.read_ctrl(model, data, 2, time, interp), expected, rtol=0, atol=ROUNDING)
    data.ctrl[4] = 3.0
    with pytest.raises(fl.ModelError):
        fl.init_ctrl_history(model, data, 2, None, values[:5])
    with pytest.raises(fl.ModelError):
        fl.init_ctrl_history(model, data, 2, times[::-1], values)


def test_a_state_holds_the_histories(mj, model, rng):
    data = fl.Data(model)
    given = rng.standard_normal(mj.nhistory)
    fl.set_state(model, data, given, fl.State.HISTORY)
    assert np.array_equal(data.history, given)
    assert np.array_equal(fl.get_state(model, data, fl.State.HISTORY), given)
    data.reset()
    assert np.array_equal(data.history, empty_history(model)[0])


def test_initial_histories_use_the_time_step_of_each_world(model):
    batch = fl.Batch(model, 3)
    batch.expand("opt_timestep")[:] = [[0.01], [0.02], [0.04]]
    batch.reset()
    each = [empty_history(model, h)[0] for h in (0.01, 0.02, 0.04)]
    assert np.array_equal(batch.history, each)


def test_a_negative_number_of_samples_means_no_history():
    """MuJoCo does the same; the reset of a `Data` once treated it as a length."""
    model = fl.load(DELAYED.replace('<motor joint="hinge" nsample="1"/>', '<motor joint="hinge" nsample="-3"/>'))
    data = fl.Data(model)
    data.ctrl[4] = 0.5
    assert fl.read_ctrl(model, data, 3) == [0.5]
    fl.step(model, data)
    assert np.isfinite(data.qpos).all() and data.status["non_finite"] == 0


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_histories_of_a_batch_equal_those_of_single_worlds(model, rng, dtype):
    batch, ids = fl.Batch(model, 5, dtype=dtype), [3, 1]
    batch.ctrl = rng.standard_normal(batch.ctrl.shape)
    batch.step(9)  # the rings have turned
    delays = batch.expand("actuator_delay")
    delays[:, 2] *= [1.0, 1.5, 0.5, 0.25, 2.0]
    before = batch.history.copy()
    times, values = np.cumsum(rng.random((2, 7)), axis=1), rng.standard_normal((2, 7, 2))
    for interp in ("zoh", "linear", "cubic", ""):
        for time in (None, 0.017, [0.01, 0.5]):
            found = fl.read_ctrl(model, batch, 2, time, interp, ids=ids)
            for row, w, t in zip(found, ids, np.broadcast_to(np.nan if time is None else time, 2), strict=True):
                one = batch.get_data(w)
                expected = fl.read_ctrl(one.model, one, 2, None if time is None else t, interp)
                np.testing.assert_array_equal(row, expected)
    fl.init_ctrl_history(model, batch, 2, times, values, ids=ids)
    for k, w in enumerate(ids):
        one = batch.get_data(w)
        one.history = before[w]
        fl.init_ctrl_history(one.model, one, 2, times[k], values[k])
        np.testing.assert_array_equal(batch.history[w], one.history)
    np.testing.assert_array_equal(batch.history[[0, 2, 4]], before[[0, 2, 4]])
    fl.init_ctrl_history(model, batch, 2, times[0], values[0])
    own = model.actuator_historyadr[2] + np.arange(2 + 7 * 3)
    np.testing.assert_array_equal(batch.history[0, own], batch.history[4, own])
    with pytest.raises(fl.ModelError, match=r"values: got shape \(3, 7, 2\), allowed is \(7, 2\) or \(2, 7, 2\)"):
        fl.init_ctrl_history(model, batch, 2, None, np.zeros((3, 7, 2)), ids=ids)
    with pytest.raises(fl.ModelError, match="ids: got worlds of a Data"):
        fl.read_ctrl(model, fl.Data(model), 2, ids=[0])
