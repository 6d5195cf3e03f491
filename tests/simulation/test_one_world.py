"""`batch_of`: a `Data` as a batch of one world, in the memory of the `Data`."""

import copy
import pickle

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.batch.one_world import batch_of
from featherlane.engine.simulation.batch.worlds import Worlds
from featherlane.engine.simulation.tile.call_lock import hold


def falling(name: str = "humanoid") -> fl.Data:
    data = fl.Data(fl.bundled(name))
    data.ctrl = 0.1
    data.xfrc_applied[1] = [0.0, 0.0, 5.0, 0.0, 0.0, 1.0]
    data.step(20)
    return data


def test_both_have_the_same_memory_and_the_same_steps():
    data = falling()
    alone, batch = data.copy(), batch_of(data)
    assert batch_of(data) is batch and batch_of(batch) is batch and isinstance(batch, Worlds)
    assert np.shares_memory(batch.qpos, data.qpos) and batch.nworld == 1
    np.testing.assert_array_equal(batch.bind("xpos")[0], alone.xpos)
    alone.step(3)
    batch.step(3)
    np.testing.assert_array_equal(data.get_state(), alone.get_state())
    np.testing.assert_array_equal(batch.get_state()[0], alone.get_state())
    np.testing.assert_array_equal(data.xpos, alone.xpos)


def test_queries_change_nothing():
    data = falling()
    data.forward()
    before, qacc, batch = data.get_state(), data.qacc.copy(), batch_of(data)
    batch.full_m(), batch.jac_site(0), batch.object_velocity(("site", 0))
    assert batch.ray([0.1, 0.2, 3.0], [0.0, 0.0, -1.0]).distance.shape == (1,)
    assert batch.contacts().found.shape == (1,)
    np.testing.assert_array_equal(data.get_state(), before)
    np.testing.assert_array_equal(data.qacc, qacc)


def test_a_call_of_one_excludes_calls_of_the_other():
    data = falling()
    batch = batch_of(data)

    def step():
        with pytest.raises(RuntimeError, match="another call"):
            data.step()
        with pytest.raises(RuntimeError, match="another call"):
            batch.full_m()

    hold((batch.runner.turn,), step)
    data.step()


def test_sleeping_trees_keep_their_state():
    model = fl.load(
        """<mujoco><option><flag sleep="enable"/></option><worldbody><geom type="plane" size="5 5 .1"/>
        <body pos="0 0 .1"><freejoint/><geom size=".1 .1 .1" type="box"/></body></worldbody></mujoco>"""
    )
    data = fl.Data(model)
    data.step(400)
    asleep = data.tree_asleep.copy()
    batch = batch_of(data)
    np.testing.assert_array_equal(batch.tree_asleep[0], asleep)
    np.testing.assert_array_equal(data.tree_asleep, asleep)


def test_copies_and_pickles_are_independent():
    data = falling()
    batch, time = batch_of(data), data.time
    for other in (batch.copy(), pickle.loads(pickle.dumps(batch)), batch_of(copy.copy(data))):
        other.step()
        assert data.time == time
        assert other.time[0] > time


def test_a_data_that_switches_to_another_model_has_another_batch():
    data = falling()
    batch, heavy = batch_of(data), copy.deepcopy(data.model)
    heavy.body_mass *= 2.0
    data.model = heavy
    fl.forward(heavy, data)
    assert batch_of(data) is not batch and batch_of(data).model is heavy
    np.testing.assert_array_equal(batch_of(data).full_m()[0], fl.query.full_m(heavy, data))
