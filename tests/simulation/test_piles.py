"""Stable piles and grips: a tower, a pyramid, a hand that holds a ball, for a minute."""

import mujoco
import numpy as np
import pytest

import featherlane as fl

DRIFT = 1e-3  # m, from 5 s to the end
REST = 5e-4  # m: rest poses of the two engines; creep starts at different places


def run(model, data, seconds):
    while data.time < seconds - 1e-9:
        fl.step(model, data)


def oracle(model, seconds):
    mj = model.to_mujoco()
    data = mujoco.MjData(mj)
    mujoco.mj_step(mj, data, round(seconds / mj.opt.timestep))
    return data


def settled(name, start, end):
    """Steps a model to two times, and returns the positions of its bodies at both."""
    model = fl.bundled(name)
    data = fl.Data(model)
    run(model, data, start)
    before = data.xpos.copy()
    run(model, data, end)
    assert not np.any(data.warning)
    return model, data, before


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("box_stack", 8.0),
        pytest.param("box_stack", 60.0, marks=pytest.mark.slow),
        pytest.param("pyramid", 60.0, marks=pytest.mark.slow),
    ],
)
def test_piles_of_boxes_rest(name, end):
    model, data, before = settled(name, 5.0, end)
    assert np.abs(data.xpos - before).max() < DRIFT
    top = max(range(model.nbody), key=lambda b: data.xpos[b, 2])
    assert data.xpos[top, 2] == pytest.approx(0.95, abs=1e-2)


def test_the_tower_rests_as_in_mujoco():
    model, data, _ = settled("box_stack", 1.0, 2.0)
    assert np.abs(data.xpos - oracle(model, 2.0).xpos).max() < REST


@pytest.mark.parametrize("end", [3.0, pytest.param(60.0, marks=pytest.mark.slow)])
def test_the_hand_holds_its_ball(end):
    model, data, _ = settled("hand", 2.0, end)
    ball = model.body("ball").id
    assert data.xpos[ball, 2] > 0.24
    assert np.abs(data.xpos[ball, :2]).max() < 5e-3
    assert np.linalg.norm(data.qvel[8:11]) < 0.01
    if end <= 3.0:
        assert np.abs(data.xpos - oracle(model, end).xpos).max() < 2e-3
