"""States and derivatives of batches of several models equal those of their groups."""

import copy
import pickle

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.enums import State

LENGTHS = [0.5, 0.7, 0.5, 0.4]


def lengthen(spec, length):
    spec.geom("upper_rod").fromto = [0, 0, 0, 0, 0, -length]
    spec.body("lower").pos = [0, -0.05, -length]


def variants():
    return fl.variants("double_pendulum", LENGTHS, lengthen)


def moved(batch, seed=0):
    rng = np.random.default_rng(seed)
    for group in batch.groups:
        group.qpos[:] += rng.uniform(-0.3, 0.3, group.qpos.shape)
        group.qvel[:] = rng.normal(size=group.qvel.shape)
    return batch


def mixed(dtype="float64"):
    return moved(fl.MixedBatch([(fl.bundled("quadruped"), 3), (fl.bundled("pendulum"), 2)], 1, dtype=dtype))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_states_are_those_of_the_groups_with_zeros_behind(dtype):
    batch = mixed(dtype)
    batch.step(3)
    state, size = batch.get_state(), fl.state_size(fl.bundled("pendulum"), State.INTEGRATION)
    np.testing.assert_array_equal(state[:3], batch.groups[0].get_state())
    np.testing.assert_array_equal(state[3:, :size], batch.groups[1].get_state())
    assert not state[3:, size:].any()
    after = mixed(dtype)
    after.set_state(state)
    batch.step(5), after.step(5)
    np.testing.assert_array_equal(after.qpos, batch.qpos)
    np.testing.assert_array_equal(after.get_state(State.QVEL), batch.get_state(State.QVEL))


def test_padding_of_a_state_is_not_read():
    batch = mixed()
    state = batch.get_state(State.QPOS)
    expected = state.copy()
    state[3:, 1:] = np.nan
    batch.set_state(state, State.QPOS)
    np.testing.assert_array_equal(batch.get_state(State.QPOS), expected)


def test_a_refused_state_sets_no_world():
    batch = mixed()
    before = batch.get_state()
    with pytest.raises(fl.ModelError, match="shape"):
        batch.set_state(np.zeros((2, 3, 4)))
    with pytest.raises(fl.ModelError, match="bits"):
        batch.get_state(-1)
    np.testing.assert_array_equal(batch.get_state(), before)


def test_linearizations_of_variants_are_those_of_each_world():
    found = variants()
    batch = moved(fl.MixedBatch(found.models))
    result = fl.linearize(batch.models, batch)
    assert result.A.shape == (4, 4, 4) and result.switching.shape == (4,)
    for world in range(4):
        data = batch.get_data(world)
        one = fl.linearize(data.model, data, method="finite_difference")
        np.testing.assert_allclose(result.A[world], one.A, rtol=0, atol=1e-6)
        np.testing.assert_allclose(result.B[world], one.B, rtol=0, atol=1e-6)
    assert np.abs(result.A[0] - result.A[2]).max() > 1e-4
    with_sensors = fl.linearize(batch.models, batch, sensors=True, parameters=["dof_damping"])
    assert with_sensors.C is not None and with_sensors.C.shape[0] == 4 and with_sensors.P["dof_damping"].shape[0] == 4


def test_models_of_different_sizes_are_not_linearized_together():
    batch = mixed()
    with pytest.raises(fl.ModelError, match="nq = "):
        fl.linearize(batch.models, batch)
    for models in (batch.models[0], batch.models[:1], batch.models[::-1]):
        with pytest.raises(fl.ModelError, match=r"batch\.models"):
            fl.linearize(models, batch)
    assert fl.linearize(batch.groups[1].model, batch.groups[1]).A.shape == (2, 2, 2)


@pytest.mark.parametrize("function", [fl.acceleration_derivatives, fl.inverse_derivatives, fl.rnea_derivatives])
def test_other_derivatives_name_the_groups(function):
    batch = mixed()
    with pytest.raises(fl.errors.ArgumentTypeError, match=r"MixedBatch.*groups"):
        function(batch.models[0], batch)


def test_a_mixed_batch_has_models_and_no_model():
    batch = mixed()
    assert [model.nq for model in batch.models] == [batch.groups[0].model.nq, 1]
    with pytest.raises(fl.errors.UnknownAttributeError, match=r"batch\.models"):
        _ = batch.model


def test_bound_outputs_of_reset_worlds_are_computed():
    batch = mixed()
    batch.bind("xpos")
    batch.step()
    batch.reset([0, 4], forward=False)
    batch.forward_bound([0, 4])
    fresh = fl.MixedBatch([(model, group.nworld) for model, group in zip(batch.models, batch.groups, strict=True)])
    fresh.bind("xpos")
    fresh.forward()
    np.testing.assert_array_equal(batch.xpos[[0, 4]], fresh.xpos[[0, 4]])
    assert set(batch.bound) == {"xpos"} and batch.rows["qpos"].shape == batch.qpos.shape
    assert not np.array_equal(batch.xpos[1], fresh.xpos[1])


def test_counts_of_causes_are_those_of_all_worlds():
    batch = mixed()
    batch.qvel[4] = np.nan
    with pytest.warns(fl.NonFiniteWarning):
        batch.step()
    assert batch.count_of("non_finite", "bad_control").tolist() == [0, 0, 0, 0, 1]


def test_copies_keep_their_states():
    batch = mixed()
    for other in (copy.deepcopy(batch), pickle.loads(pickle.dumps(batch))):
        np.testing.assert_array_equal(other.get_state(), batch.get_state())
