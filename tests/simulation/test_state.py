"""States as flat vectors, in MuJoCo's layout; keyframes from states."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from scenes.joints import XML
from scenes.states import kicked

STATE = fl.State
# bodies and fields of all kinds that a state may hold
SCENE = """<mujoco><size nuserdata="3"/><option timestep="0.005"/><worldbody>
  <body name="hand" mocap="true" pos="0 0 2"><geom size="0.1" contype="0" conaffinity="0"/></body>
  <body><freejoint/><geom size="0.1"/></body>
  <body pos="1 0 1"><joint name="hinge" axis="0 1 0"/><geom type="capsule" size="0.05" fromto="0 0 0 0 0 -0.4"/></body>
</worldbody><actuator><motor joint="hinge"/></actuator>
<equality><joint joint1="hinge"/><joint joint1="hinge" active="false"/></equality>
<keyframe><key name="one" time="2"/><key name="two"/></keyframe></mujoco>"""
NAMES = "qpos qvel act qacc_warmstart ctrl qfrc_applied xfrc_applied mocap_pos mocap_quat".split()


@pytest.fixture(scope="module")
def model():
    return fl.load(SCENE)


def filled(mj, rng):
    """Returns MuJoCo's data with a distinct value in every place."""
    data = mujoco.MjData(mj)
    data.time, data.eq_active[:] = 3.5, [0, 1]
    for name in (*NAMES, "userdata"):
        getattr(data, name)[...] = rng.standard_normal(np.shape(getattr(data, name)))
    return data


def vector(mj, data, bits):
    out = np.empty(mujoco.mj_stateSize(mj, int(bits)))
    mujoco.mj_getState(mj, data, out, int(bits))
    return out


def test_state_bits_equal_mujoco():
    theirs = {name.removeprefix("mjSTATE_"): int(bit) for name, bit in mujoco.mjtState.__members__.items()}
    ours = {name: int(bit) for name, bit in STATE.__members__.items()}
    assert ours == {name: bit for name, bit in theirs.items() if name != "mjNSTATE"}


def test_sizes_equal_mujoco(model):
    for bits in (*STATE, STATE.PHYSICS, STATE.FULLPHYSICS, STATE.USER, STATE.INTEGRATION, 0, 0x123):
        assert fl.state_size(model, bits) == mujoco.mj_stateSize(model.mj_model, int(bits))


@pytest.mark.parametrize("name", ["mjSTATE_FULLPHYSICS", "mjSTATE_QPOS", "mjSTATE_INTEGRATION"])
def test_state_bits_equal_members_of_mujocos_enum(model, name):
    bits, data = getattr(mujoco.mjtState, name), fl.Data(model)
    state = fl.get_state(model, data, bits)
    assert state.size == fl.state_size(model, bits) == mujoco.mj_stateSize(model.mj_model, int(bits))
    fl.set_state(model, data, state + 1.0, bits)
    np.testing.assert_array_equal(data.qpos, model.qpos0 + 1.0)


@pytest.mark.parametrize("bits", [STATE.INTEGRATION & ~STATE.USERDATA, STATE.PHYSICS, STATE.CTRL | STATE.TIME])
def test_a_state_vector_of_mujoco_round_trips(model, rng, bits):
    expected = vector(model.mj_model, filled(model.mj_model, rng), bits)
    data = fl.Data(model)
    fl.set_state(model, data, expected, bits)
    np.testing.assert_array_equal(fl.get_state(model, data, bits), expected)
    again = mujoco.MjData(model.mj_model)
    mujoco.mj_setState(model.mj_model, again, fl.get_state(model, data, bits), int(bits))
    np.testing.assert_array_equal(vector(model.mj_model, again, bits), expected)


def test_components_that_are_not_stored_are_zeros(model, rng):
    bits = STATE.QPOS | STATE.USERDATA
    data = fl.Data(model)
    fl.set_state(model, data, vector(model.mj_model, filled(model.mj_model, rng), bits), bits)
    out = fl.get_state(model, data, bits)
    assert out.shape == (model.nq + 3,)
    assert out[: model.nq].all() and not out[model.nq :].any()


def test_a_restored_state_continues_bitwise_equally(rng):
    model = fl.load(XML)
    data, other = fl.Data(model), fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng)
    fl.step(model, data, 5)
    fl.set_state(model, other, fl.get_state(model, data, STATE.INTEGRATION), STATE.INTEGRATION)
    for one in (data, other):
        fl.step(model, one, 5)
    assert data.qpos.tobytes() == other.qpos.tobytes()
    assert data.time == other.time


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_batch_has_a_row_for_each_world(model, rng, dtype):
    batch, bits = fl.Batch(model, 3, nthread=1, dtype=dtype), STATE.INTEGRATION
    assert fl.get_state(model, batch, bits).shape == (3, fl.state_size(model, bits))
    assert batch.is_left_out("qfrc_applied")
    worlds = [filled(model.mj_model, rng) for _ in range(3)]
    rows = np.array([vector(model.mj_model, world, bits) for world in worlds], dtype)
    fl.set_state(model, batch, rows, bits)
    np.testing.assert_array_equal(batch.mocap_pos[:, 0], np.array([w.mocap_pos[0] for w in worlds], dtype))
    np.testing.assert_array_equal(batch.time, 3.5)
    np.testing.assert_array_equal(batch.eq_active, [[0, 1]] * 3)
    at = slice(0, fl.state_size(model, bits & ~STATE.USERDATA & ~STATE.PLUGIN & ~STATE.PLASTIC))
    given = fl.get_state(model, batch, bits)
    assert given.dtype == np.float64, "it holds the time"
    assert fl.get_state(model, batch, STATE.QPOS).dtype == dtype
    np.testing.assert_array_equal(given[:, at], rows[:, at])


def test_one_state_vector_applies_to_all_worlds(model):
    batch = fl.Batch(model, 3, nthread=1)
    fl.set_state(model, batch, np.arange(model.nv, dtype=float), STATE.QVEL)
    np.testing.assert_array_equal(batch.qvel, np.tile(np.arange(model.nv), (3, 1)))


def test_invalid_arguments_are_named(model):
    data = fl.Data(model)
    with pytest.raises(fl.ModelError, match="bits"):
        fl.get_state(model, data, 1 << 15)
    with pytest.raises(fl.ModelError, match="bits"):
        fl.state_size(model, "qpos")
    with pytest.raises(fl.ModelError, match="state"):
        fl.set_state(model, data, np.zeros(3), STATE.QPOS)
    with pytest.raises(fl.errors.ArgumentTypeError):
        fl.get_state(model, model.mj_model, STATE.QPOS)
    with pytest.raises(fl.ModelError):
        fl.get_state(fl.load(SCENE), fl.Batch(model, 2, nthread=1), STATE.QPOS)


def test_a_state_becomes_a_keyframe(rng):
    model = fl.load(SCENE)
    data, mj = fl.Data(model), model.to_mujoco()
    truth = filled(mj, rng)
    for name in ("time", *NAMES):
        setattr(data, name, getattr(truth, name))
    fl.set_keyframe(model, data, "two")
    mujoco.mj_setKeyframe(mj, truth, 1)
    for name in ("time", "qpos", "qvel", "act", "ctrl", "mpos", "mquat"):
        np.testing.assert_array_equal(getattr(model, f"key_{name}"), getattr(mj, f"key_{name}"), err_msg=name)
    again = fl.Data(model)
    fl.reset_data_keyframe(model, again, 1)
    np.testing.assert_array_equal(again.qpos, truth.qpos)
    assert again.time == truth.time
    with pytest.raises(fl.UnknownNameError):
        fl.set_keyframe(model, data, "three")
