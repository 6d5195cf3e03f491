"""Properties of integrators over many steps: order of convergence, energy of spinning bodies, independent worlds."""

from __future__ import annotations

import os

import mujoco
import numpy as np
import pytest

from featherlane.engine.dynamics.integrator.integrate import euler, implicitfast
from featherlane.engine.dynamics.integrator.runge_kutta import rk4_finish, rk4_stage, rk4_start
from featherlane.engine.model.load import load
from featherlane.engine.simulation.tile.workspace import Workspace
from oracles import smooth

SPINNING = """
<mujoco><option gravity="0 0 0"/><worldbody>
  <body><joint type="{0}"/><geom type="box" size=".1 .2 .3" pos="{1}" contype="0" conaffinity="0"/></body>
</worldbody></mujoco>
"""
TURNED = 1e-12  # rounding: no stage rotates by more than 13 rad
ORDER = 3.8  # measured 3.9 to 4.1 between steps of 1/16 s and 1/32 s
COMPILED = os.environ.get("FEATHERLANE_MODE") != "python"


def runge_kutta(ws):
    smooth.forward(ws)
    ws.run(rk4_start)
    for k in (1, 2, 3):
        ws.run(rk4_stage, k)
        smooth.forward(ws)
    ws.run(rk4_finish)


def final_pose(kind, nstep):
    """Returns qpos of a body that spins for half a second, in so many steps."""
    model = load(SPINNING.format(kind, ".04 0 .02"))
    model.opt.timestep = 0.5 / nstep
    ws = Workspace(model, 1)
    ws.arrays["qvel"][-3:, 0] = 2.0, -3.0, 1.5
    for _ in range(nstep):
        runge_kutta(ws)
    return ws.arrays["qpos"].copy()


@pytest.mark.parametrize("kind", ["ball", "free"])
def test_runge_kutta_is_of_fourth_order_in_orientation(kind):
    exact = final_pose(kind, 128)
    errors = [np.abs(final_pose(kind, n) - exact).max() for n in (8, 16)]
    assert np.log2(errors[0] / errors[1]) > ORDER


@pytest.mark.parametrize("kind", ["ball", "free"])
@pytest.mark.parametrize("timestep", [0.1, 0.8, 1.5, 2.5])
def test_a_runge_kutta_stage_with_more_than_half_a_turn_equals_mujoco(kind, timestep):
    model = load(SPINNING.format(kind, "0 0 0"))
    model.opt.timestep, model.opt.integrator = timestep, "RK4"
    ws = Workspace(model, 1)
    mj = model.to_mujoco()
    data = mujoco.MjData(mj)
    data.qvel[-3:] = ws.arrays["qvel"][-3:, 0] = 1.0, 1.5, 0.7  # the stages rotate by up to 13 rad
    runge_kutta(ws)
    mujoco.mj_step(mj, data)
    assert np.abs(ws.arrays["qpos"][:, 0] - data.qpos).max() < TURNED
    assert np.abs(ws.arrays["qvel"][:, 0] - data.qvel).max() < TURNED


def test_a_spinning_free_body_does_not_gain_energy_under_implicitfast(rng):
    model = load(SPINNING.format("free", "0 0 0"))
    ws = Workspace(model, 8)
    ws.arrays["qvel"][3:6] = 20 * rng.standard_normal((3, 8))
    smooth.forward(ws)
    before = ws.arrays["energy"][1].copy()
    for _ in range(50):
        ws.run(implicitfast)
        smooth.forward(ws)
        assert np.all(ws.arrays["energy"][1] <= before * (1 + 1e-12))
        before = ws.arrays["energy"][1].copy()


@pytest.mark.parametrize("integrate", [euler, implicitfast])
def test_a_nan_world_does_not_affect_other_worlds(rng, integrate):
    model = load(smooth.XML)
    results = []
    for spoiled in (False, True):
        ws, states = Workspace(model, 8), np.random.default_rng(7)
        for k in range(8):
            smooth.fill(ws, k, **smooth.random_state(model, states))
        if spoiled:
            for name in ("qpos", "qvel", "qfrc_applied", "xfrc_applied", "ctrl"):
                ws.arrays[name][:, 5] = np.nan
        smooth.forward(ws)
        ws.run(integrate)
        results.append(np.delete(np.concatenate([ws.arrays["qpos"], ws.arrays["qvel"], ws.arrays["qacc"]]), 5, axis=1))
    assert results[0].tobytes() == results[1].tobytes()


@pytest.mark.skipif(not COMPILED, reason="uncompiled rows round as NumPy does")
@pytest.mark.parametrize("integrate", [euler, implicitfast])
def test_a_world_is_bitwise_equal_alone_and_in_a_tile(rng, integrate):
    model = load(smooth.XML)
    states = [smooth.random_state(model, rng) for _ in range(8)]
    tile, alone = Workspace(model, 8), Workspace(model, 1)
    for k, state in enumerate(states):
        smooth.fill(tile, k, **state)
    smooth.forward(tile)
    tile.run(integrate)
    for k, state in enumerate(states):
        alone.reset()
        smooth.fill(alone, 0, **state)
        smooth.forward(alone)
        alone.run(integrate)
        for name in ("qpos", "qvel", "qacc", "qfrc_smooth", "energy"):
            assert alone.arrays[name][:, 0].tobytes() == tile.arrays[name][:, k].tobytes(), name
