"""`Batch.present_fields`: the values of a forward pass, without one."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.query.moving import MOVING, measured
from scenes import sensors

N = 11


@pytest.fixture(params=["float64", "float32"])
def batch(request, rng):
    batch = fl.Batch(fl.bundled("quadruped"), N, nthread=1, dtype=request.param)
    batch.qpos[:, 7:] += rng.normal(0, 0.2, (N, batch.model.nq - 7))
    batch.qvel[:] = rng.normal(0, 1.0, (N, batch.model.nv))
    for name in MOVING:
        batch.bind(name)
    batch.step(3)
    return batch


def test_the_fields_are_those_of_a_forward_pass(batch):
    ids = np.array([1, 4, 9])
    before = {name: batch.bind(name).copy() for name in MOVING}
    found = batch.present_fields(MOVING, ids=ids)
    for name in MOVING:
        assert np.array_equal(batch.bind(name), before[name])
    batch.forward()
    for name in MOVING:
        own, reference = found[name], batch.bind(name)[ids]
        columns = measured(batch.model) if name == "sensordata" else slice(None)
        assert np.array_equal(own[..., columns], reference[..., columns]), name


def test_frames_alone_are_those_of_a_forward_pass(batch):
    names = ["xpos", "xquat", "geom_xmat"]
    found = batch.present_fields(names)
    batch.forward()
    for name in names:
        assert np.array_equal(found[name], batch.bind(name)), name


def test_the_state_and_the_next_step_do_not_change(batch):
    other = batch.copy()
    batch.present_fields(MOVING)
    for each in (batch, other):
        each.step(5)
    assert np.array_equal(batch.get_state(), other.get_state())
    assert all(np.array_equal(batch.status[name], other.status[name]) for name in batch.status)


@pytest.mark.parametrize("group", sensors.GROUPS)
def test_every_position_and_velocity_sensor(group, rng):
    model = fl.load(sensors.group_scene(group))
    batch = fl.Batch(model, 3, nthread=1)
    batch.qvel[:] = rng.normal(0, 0.5, (3, model.nv))
    batch.bind("sensordata")
    batch.step(2)
    found = batch.present_fields("sensordata")["sensordata"]
    batch.forward()
    assert np.array_equal(found[:, measured(model)], batch.bind("sensordata")[:, measured(model)])
    assert np.isnan(found[:, ~measured(model)]).all()


@pytest.mark.parametrize("name", ["qacc", "ncon", "qfrc_constraint", "nothing", 3])
def test_fields_that_need_contacts_or_forces_are_refused(name):
    with pytest.raises(fl.ModelError, match="present_fields"):
        fl.Batch(fl.bundled("pendulum"), 2, nthread=1).present_fields(["xpos", name])
