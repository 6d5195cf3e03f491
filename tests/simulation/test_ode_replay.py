"""ODE's recorded steps, repeated from every recorded state with the recorded contacts."""

from __future__ import annotations

import numpy as np
import pytest

import featherlane as fl
from oracles import ode_steps
from oracles.naive import matrix

STEP = 1e-11  # of one step, m, m/s, 1: the same problem, solved to rounding; measured: 5e-14
FORCE = 1e-9  # of the largest force
NAMES = sorted(path.stem for path in ode_steps.FOLDER.glob("*.npz") if not path.stem.startswith("spin"))
LINKED = [name for name in NAMES if "joint_type" in ode_steps.load(name)]


@pytest.fixture(scope="module", params=NAMES)
def replay(request):
    """Returns a record, and a batch of its states one step later."""
    record = ode_steps.load(request.param)
    model = ode_steps.scene(record, request.param)
    batch = fl.Batch(model, nworld=len(record["step"]), given_contacts=ode_steps.room(record))
    forces = batch.bind("link_force") if model.nlink else None
    ode_steps.start(batch, record)
    batch.step()
    return record, batch, forces


def test_the_next_state_equals_ode(replay):
    record, batch, _ = replay
    worst = {name: error.max() for name, error in ode_steps.errors(batch, record).items()}
    assert max(worst.values()) < STEP, worst


@pytest.mark.parametrize("replay", LINKED, indirect=True)
def test_link_forces_equal_ode_joint_forces(replay):
    record, _, forces = replay
    expected = record["feedback"][..., :6]
    np.testing.assert_allclose(forces, expected, rtol=0, atol=FORCE * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("name", LINKED)
def test_a_whole_motion_equals_ode(name):
    """Linked bodies move without control for hundreds of steps, so errors of single steps would accumulate."""
    record = ode_steps.load(name)
    model = ode_steps.scene(record, name)
    data, nbody = fl.Data(model), len(record["mass"])
    data.qvel.reshape(nbody, 6)[:, :3] = record["lvel"][0]
    data.qvel.reshape(nbody, 6)[:, 3:] = [
        matrix(q).T @ w for q, w in zip(record["quat"][0], record["avel"][0], strict=True)
    ]
    for k, step in enumerate(record["step"]):
        while round(data.time / model.opt.timestep) < step:
            fl.step(model, data)
        np.testing.assert_allclose(data.qpos.reshape(nbody, 7)[:, :3], record["pos"][k], rtol=0, atol=STEP)
