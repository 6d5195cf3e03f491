"""One step of every integrator against MuJoCo, on real and bundled models, from states along motion with contact."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.step.forward import step
from featherlane.engine.simulation.tile.workspace import Workspace
from oracles import parity

NEXT_VELOCITY = 1e-10  # relative; rounding of both engines stays below 3e-14 on all these models
LEFT_OUT = 1 / 8  # Runge-Kutta's states with contacts that differ from MuJoCo's and a larger error: 5 of 48 for a dog
INTEGRATORS = ("rk4", "implicit", "implicitfast", "discrete")
SAMPLE = ("bundled/humanoid", "bundled/quadruped", "bundled/arm", "bundled/double_pendulum")
# dense in the oracle, or M is ill-conditioned
LARGE = ("bundled/pyramid", "bundled/rope", "bundled/chain", "bundled/stacks", "bundled/pile")


def next_velocity_errors(name, integrator, count):
    """Returns relative errors of the next velocity at the model's states, and whether the contacts are the same.

    Eight worlds are stepped in a batch.  If the engines find different contacts, as `parity.same_contacts` defines
    it, the engine steps with MuJoCo's.  Runge-Kutta also detects contacts in its stages, and steps with its own.
    """
    mj = parity.oracle(name)
    met = parity.states(mj, count, np.random.default_rng(0))
    model = fl.load(mj)
    model.opt.integrator = integrator
    mj = model.to_mujoco()
    tile, alone, other = Workspace(model, 8), fl.Data(model), mujoco.MjData(mj)
    errors, same = np.empty(count), np.empty(count, bool)
    for first in range(0, count, 8):
        eight, worlds = list(enumerate(met[first : first + 8])), []
        for lane, state in eight:
            parity.forward_both(mj, alone, other, state)
            same[first + lane] = parity.same_contacts(mj, name, alone, other)
            own = same[first + lane] or integrator == "rk4"
            worlds.append(alone if own else parity.under_given(model, state, other))
        run = parity.with_given(model, tile, worlds)
        for lane, state in eight:
            for field, value in state.items():
                run.arrays[field][: value.size, lane] = value
        run.run(step)
        for lane, state in eight:
            for field, value in state.items():
                setattr(other, field, value)
            mujoco.mj_step(mj, other)
            errors[first + lane] = parity.relative(run.arrays["qvel"][: mj.nv, lane], other.qvel)
    return errors, same


def check_steps(name, integrator, count):
    errors, same = next_velocity_errors(name, integrator, count)
    beyond = ~(errors < parity.EXCEPTIONS.get((name, "next qvel"), NEXT_VELOCITY))
    if integrator == "rk4":
        assert (beyond & ~same).sum() <= LEFT_OUT * count
        beyond &= same
    assert not beyond.any(), {int(k): errors[k] for k in np.flatnonzero(beyond)}


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("name", SAMPLE)
def test_a_step_equals_mujoco(name, integrator):
    check_steps(name, integrator, 8)


@pytest.mark.slow
@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("name", [n for n in parity.MODELS if n not in LARGE])
def test_a_step_equals_mujoco_on_all_models(name, integrator):
    check_steps(name, integrator, 48)


def test_accelerations_after_a_step_of_rk4_are_those_of_mujoco(rng):
    """`qacc` is the mean of the step, `qacc_warmstart` the last stage's; both are equal in a batch."""
    model = fl.bundled("humanoid")
    model.opt.integrator, model.opt.tolerance = "rk4", 0
    mj = model.to_mujoco()
    data, batch, expected = fl.Data(model), fl.Batch(model, 3), mujoco.MjData(mj)
    batch.bind("qacc")
    for _ in range(5):
        control, before = rng.uniform(-1, 1, model.nu), data.qvel.copy()
        data.ctrl, batch.ctrl, expected.ctrl[:] = control, control, control
        mujoco.mj_step(mj, expected)
        fl.step(model, data)
        batch.step()
        mean = (data.qvel - before) / model.opt.timestep
        assert parity.relative(data.qacc, mean) < 1e-13  # rounding of the difference
        for name in ("qacc", "qacc_warmstart"):
            assert parity.relative(getattr(data, name), getattr(expected, name)) < NEXT_VELOCITY
            assert (getattr(batch, name) == getattr(data, name)).all()
    assert parity.relative(data.qacc, data.qacc_warmstart) > 1e-3
