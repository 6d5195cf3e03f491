"""Plotted quantities equal the fields of `fl.forward`, and are found by name."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.apps.viewer.quantities import names, quantity, values


@pytest.fixture
def batch():
    batch = fl.Batch(fl.bundled("humanoid"), 3)
    batch.qvel[:] = np.random.default_rng(1).normal(size=batch.qvel.shape)
    batch.step(60)
    return batch


def sampled(batch, name, reported=True):
    return values(batch, 1, [quantity(batch.model, name)], reported)[0]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("qpos[2]", lambda data: data.qpos[2]),
        ("qpos[0:3]", lambda data: data.qpos[:3]),
        ("xpos[torso, 2]", lambda data: data.body("torso").xpos[2]),
        ("xpos[torso]", lambda data: data.body("torso").xpos),
        ("actuator_force", lambda data: data.actuator_force[:8]),
        ("time", lambda data: data.time),
    ],
)
def test_fields_are_those_of_forward(batch, text, expected):
    assert np.array_equal(sampled(batch, text), np.ravel(expected(batch.get_data(1))))


def test_a_sensor_is_plotted_next_to_one_that_is_not_computed():
    model = fl.load(
        "<mujoco><worldbody><body><joint name='j'/><geom size='.1'/></body></worldbody>"
        "<sensor><user name='no' dim='1'/><jointvel name='rate' joint='j'/></sensor></mujoco>"
    )
    batch = fl.Batch(model, 2)
    batch.qvel[1] = 3.0
    assert sampled(batch, "rate") == 3.0
    with pytest.raises(fl.UnsupportedFeatureError):
        quantity(model, "no")
    with pytest.raises(fl.UnsupportedFeatureError):
        quantity(model, "sensordata")


def test_reports_are_those_of_the_last_step(batch):
    assert sampled(batch, "iterations") == batch.solver_niter[1]
    assert sampled(batch, "contacts") == batch.ncon[1]
    assert sampled(batch, "contacts", reported=False) == len(batch.get_data(1).contact)


def test_energy_is_that_of_the_state(batch):
    batch.model.opt.enableflags |= fl.enums.Enable.ENERGY
    potential, kinetic, total = sampled(batch, "energy")
    assert np.array_equal((potential, kinetic), batch.get_data(1).energy) and total == potential + kinetic


def test_the_worlds_do_not_change(batch):
    before = batch.checkpoint()
    for name in ("energy", "qacc", "contacts"):
        sampled(batch, name, reported=False)
    assert all(np.array_equal(before[name], array) for name, array in batch.checkpoint().items())


def test_every_listed_name_is_a_quantity(batch):
    listed = names(batch.model)
    assert listed[:2] == ["energy", "contacts"] and {"qpos", "xpos", "qfrc_constraint"} <= set(listed)
    row = [quantity(batch.model, name) for name in listed]
    for found, numbers in zip(row, values(batch, 1, row), strict=True):
        assert len(numbers) == len(found.labels) > 0


@pytest.mark.parametrize(
    "text", ["nonsense", "qpos[2", "qpos]", "qpos[999]", "xpos[nobody]", "qpos[0, 0]", "", "ncon[0"]
)
def test_wrong_names_are_reported(batch, text):
    with pytest.raises(fl.ModelError):
        quantity(batch.model, text)
