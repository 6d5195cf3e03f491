"""The query of positions and velocities: the values of a forward pass, without one."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.query.moving import Moving, measured
from scenes import sensors

FIELDS = ("xpos", "geom_xmat", "cdof", "cvel", "subtree_com", "sensordata")
N = 11


def moving(batch, names, ids):
    return batch.query(Moving(batch.model, len(ids), batch.dtype, names), np.asarray(ids))


@pytest.fixture(params=["float64", "float32"])
def batch(request, rng):
    batch = fl.Batch(fl.bundled("quadruped"), N, nthread=1, dtype=request.param)
    batch.qpos[:, 7:] += rng.normal(0, 0.2, (N, batch.model.nq - 7))
    batch.qvel[:] = rng.normal(0, 1.0, (N, batch.model.nv))
    for name in FIELDS:
        batch.bind(name)
    batch.step(3)
    return batch


def test_the_fields_are_those_of_a_forward_pass(batch):
    ids = np.array([1, 4, 9])
    before = {name: batch.bind(name).copy() for name in FIELDS}
    found = moving(batch, FIELDS, ids)
    for name in FIELDS:
        assert np.array_equal(batch.bind(name), before[name])
    batch.forward()
    for name in FIELDS:
        own, reference = found[name], batch.bind(name)[ids]
        columns = measured(batch.model) if name == "sensordata" else slice(None)
        assert np.array_equal(own[..., columns], reference[..., columns]), name


def test_the_state_and_the_next_step_do_not_change(batch):
    other = batch.copy()
    moving(batch, FIELDS, np.arange(N))
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
    found = moving(batch, ("sensordata",), np.arange(3))["sensordata"]
    batch.forward()
    assert np.array_equal(found[:, measured(model)], batch.bind("sensordata")[:, measured(model)])
