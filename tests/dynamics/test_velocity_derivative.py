"""Analytic velocity derivatives: against differences of the forces, the whole matrix, and MuJoCo."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import featherlane as fl
from featherlane.engine.dynamics.body.rne_derivative import rne_vel
from featherlane.engine.dynamics.integrator.velocity_derivative import smooth_vel
from featherlane.engine.simulation.tile.workspace import Workspace
from oracles import smooth
from oracles.smooth import dense_rate, differences
from scenes.states import kicked

DIFFERENCE = 1e-7  # relative: central differences with a step of 1e-5 have an error of 1e-10, the rest is rounding
ORACLE = 1e-12  # relative, against MuJoCo's matrix: sums in a different order


def prepared(model, rng):
    data = fl.Data(model)
    for name, value in smooth.random_state(model, rng).items():
        setattr(data, name, value)
    fl.forward(model, data)
    return data


def bias(model, data):
    fl.stages.com_vel(model, data)
    return fl.stages.rne(model, data)


def smooth_force(model, data):
    fl.stages.com_vel(model, data)
    fl.stages.passive(model, data)
    fl.stages.actuation(model, data)
    return data.qfrc_actuator + data.qfrc_passive - fl.stages.rne(model, data)


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6), nbody=st.integers(1, 7))
def test_the_rate_of_the_bias_force_is_its_difference_quotient(seed, nbody):
    rng = np.random.default_rng(seed)
    model = fl.load(smooth.random_tree(rng, nbody))
    data = fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng, velocity=3.0)
    fl.forward(model, data)
    expected = differences(model, data, lambda: bias(model, data))
    fl.stages.com_vel(model, data)
    fl.stages.rne_vel(model, data)
    assert smooth.relative(dense_rate(model, data.qDeriv), expected) < DIFFERENCE


def test_the_rate_of_all_smooth_forces_is_their_difference_quotient(rng):
    model = fl.load(smooth.XML)
    for _ in range(3):
        data = prepared(model, rng)
        expected = differences(model, data, lambda d=data: smooth_force(model, d))
        smooth_force(model, data)
        fl.stages.smooth_vel(model, data)
        assert smooth.relative(dense_rate(model, data.qDeriv), expected) < DIFFERENCE


def test_the_parts_add_up(rng):
    model = fl.load(smooth.XML)
    data, parts = prepared(model, rng), []
    for part in (fl.stages.actuator_vel, fl.stages.passive_vel, fl.stages.rne_vel, fl.stages.smooth_vel):
        part(model, data)
        parts.append(data.qDeriv.copy())
    actuator, passive, bias_force, total = parts
    assert actuator.any() and passive.any() and bias_force.any()
    np.testing.assert_allclose(total, actuator + passive - bias_force, rtol=1e-13, atol=1e-13)


def test_saturated_actuators_contribute_nothing(rng):
    model = fl.load(
        "<mujoco><worldbody><body><joint name='a'/><geom size='.1'/></body></worldbody>"
        "<actuator><position joint='a' kp='5' kv='1' forcerange='-1 1'/></actuator></mujoco>"
    )
    data = fl.Data(model)
    for control, rate in ((0.1, -1.0), (9.0, 0.0)):
        data.ctrl = control
        fl.forward(model, data)
        fl.stages.actuator_vel(model, data)
        assert data.qDeriv[0] == rate


@pytest.mark.parametrize("width", smooth.WIDTHS)
def test_the_matrix_equals_mujoco(rng, width):
    model = fl.load(smooth.XML)
    mj = model.to_mujoco()
    mj.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICIT
    ws, states = Workspace(model, width), [smooth.random_state(model, rng) for _ in range(width)]
    for k, state in enumerate(states):
        smooth.fill(ws, k, **state)
    smooth.forward(ws)
    ws.run(smooth_vel)
    for k, state in enumerate(states):
        data = mujoco.MjData(mj)
        for name, value in state.items():
            getattr(data, name)[...] = value
        mujoco.mj_forward(mj, data)
        mujoco.mj_implicit(mj, data)
        assert smooth.relative(ws.arrays["qDeriv"][: model.nD, k], data.qDeriv) < ORACLE


@pytest.mark.parametrize("text", [smooth.XML, "stacks", "quadruped"], ids=["mixed", "stacks", "quadruped"])
def test_implicitfast_stores_the_matrix_of_mujoco(rng, text):
    """Without the bias force, and at the velocity before the step; in a batch on request."""
    model = fl.load(text) if "<" in text else fl.bundled(text)
    model.opt.integrator = "implicitfast"
    mj = model.to_mujoco()
    data, batch, unbound, expected = fl.Data(model), fl.Batch(model, 3), fl.Batch(model, 3), mujoco.MjData(mj)
    bound = batch.bind("qDeriv")
    for _ in range(3):
        for name, value in smooth.random_state(model, rng).items():
            getattr(expected, name)[...] = value
            for worlds in (data, batch, unbound):
                setattr(worlds, name, value)
        mujoco.mj_step(mj, expected)
        for worlds in (data, batch, unbound):
            worlds.step()
        assert smooth.relative(data.qDeriv, expected.qDeriv) < ORACLE
        assert (bound == data.qDeriv).all() and (batch.qvel == unbound.qvel).all()
    assert data.qDeriv.any() or text == "stacks"


def test_a_world_is_bitwise_equal_in_any_batch(rng):
    model = fl.load(smooth.random_tree(rng, 6))
    tile, alone = Workspace(model, 8), Workspace(model, 1)
    states = [dict(zip(("qpos", "qvel"), kicked(model, rng), strict=True)) for _ in range(8)]
    for k, state in enumerate(states):
        smooth.fill(tile, k, **state)
    smooth.forward(tile)
    tile.run(rne_vel)
    for k, state in enumerate(states):
        smooth.fill(alone, 0, **state)
        smooth.forward(alone)
        alone.run(rne_vel)
        assert alone.arrays["qDeriv"][:, 0].tobytes() == tile.arrays["qDeriv"][:, k].tobytes()
