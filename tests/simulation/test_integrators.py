"""One step of every integrator against MuJoCo, on real and bundled models, from states along motion with contact."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.simulation.step.forward import step
from featherlane.simulation.tile.workspace import Workspace
from oracles import parity

NEXT_VELOCITY = 1e-10  # relative; rounding of both engines stays below 3e-14 on all these models
INTEGRATORS = ("rk4", "implicit", "implicitfast", "discrete")
SAMPLE = ("bundled/humanoid", "bundled/quadruped", "bundled/arm", "bundled/double_pendulum")
# dense in the oracle, or M is ill-conditioned
LARGE = ("bundled/pyramid", "bundled/rope", "bundled/chain", "bundled/stacks", "bundled/pile")


def worst_next_velocity(name, integrator, count):
    """Largest relative error of the next velocity over the model's states, eight worlds side by side."""
    mj = parity.oracle(name)
    met = parity.states(mj, count, np.random.default_rng(0))
    model = fl.load(mj)
    model.opt.integrator = integrator
    mj = model.to_mujoco()
    tile, other, worst = Workspace(model, 8), mujoco.MjData(mj), 0.0
    for first in range(0, count, 8):
        eight = met[first : first + 8]
        for lane, state in enumerate(eight):
            for field, value in state.items():
                tile.arrays[field][: value.size, lane] = value
        tile.run(step)
        for lane, state in enumerate(eight):
            for field, value in state.items():
                setattr(other, field, value)
            mujoco.mj_step(mj, other)
            worst = max(worst, parity.relative(tile.arrays["qvel"][: mj.nv, lane], other.qvel))
    return worst


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("name", SAMPLE)
def test_a_step_equals_mujocos(name, integrator):
    assert worst_next_velocity(name, integrator, 8) < NEXT_VELOCITY


@pytest.mark.slow
@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("name", [n for n in parity.MODELS if n not in LARGE])
def test_a_step_equals_mujocos_on_all_models(name, integrator):
    bound = parity.EXCEPTIONS.get((name, "next qvel"), NEXT_VELOCITY)
    assert worst_next_velocity(name, integrator, 48) < bound
