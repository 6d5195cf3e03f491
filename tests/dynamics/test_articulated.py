"""Two methods from forces to accelerations, the factor of M and articulated bodies: the cheaper one is chosen."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.forward_dynamics import costs
from featherlane.engine.simulation.step import forward as contents
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.errors import ModelError
from oracles import smooth

LAW = 1e-13  # times the condition number of M: rounding in two different orders
STEP = 1e-8  # one step of MuJoCo's from the same state
SMOOTH = 1 << 0 | 1 << 4  # constraints and contacts off


def run(model, way, state, stage, width=8, everything=0):
    """Returns a workspace of equal worlds after a stage, with that method."""
    model.opt.forward_dynamics = way
    ws = Workspace(model, width)
    ws.record.set_size("want_all", everything)
    for k in range(width):
        smooth.fill(ws, k, **state)
    ws.run(stage)
    return ws


def smooth_model(integrator="euler"):
    model = fl.load(smooth.XML)
    model.opt.integrator = integrator
    return model


@pytest.mark.parametrize("integrator", ["euler", "implicitfast", "rk4"])
@pytest.mark.parametrize("width", smooth.WIDTHS)
def test_both_forward_dynamics_algorithms_step_equally(rng, integrator, width):
    model = smooth_model(integrator)
    state = smooth.random_state(model, rng)
    one, other = (run(model, way, state, contents.step, width) for way in ("crb", "aba"))
    M = smooth.dense(model, run(model, "crb", state, contents.forward, 1, 1).arrays["M"][:, 0])
    for name in ("qacc", "qvel", "qpos"):
        assert smooth.relative(other.arrays[name], one.arrays[name]) <= LAW * np.linalg.cond(M)


@pytest.mark.parametrize("way", ["crb", "aba"])
def test_a_step_is_bitwise_equal_with_and_without_unread_fields(rng, way):
    model = smooth_model()
    state = smooth.random_state(model, rng)
    lean, full = (run(model, way, state, contents.step, 8, everything) for everything in (0, 1))
    for name in ("qpos", "qvel", "qacc", "qfrc_bias", "cvel", "qfrc_smooth"):
        np.testing.assert_array_equal(lean.arrays[name], full.arrays[name])


@pytest.mark.parametrize("way", ["crb", "aba"])
def test_all_tile_widths_are_bitwise_equal(rng, way):
    model = smooth_model()
    state = smooth.random_state(model, rng)
    one, eight = (run(model, way, state, contents.step, width) for width in smooth.WIDTHS)
    for name in ("qpos", "qvel", "qacc"):
        np.testing.assert_array_equal(eight.arrays[name], np.repeat(one.arrays[name], 8, axis=1))


@pytest.mark.parametrize(("name", "way"), [("rope", "aba"), ("humanoid", "crb"), ("arm", "crb")])
def test_the_cheaper_algorithm_is_selected(name, way):
    model = fl.bundled(name)
    cost = costs(model.mj_model)
    assert min(cost, key=cost.__getitem__) == way
    assert model.articulated_pays == (way == "aba")


def test_the_option_overrides_the_choice():
    model = fl.bundled("rope")
    model.opt.disableflags = SMOOTH
    data = fl.Data(model)
    data.qvel[:] = np.random.default_rng(0).standard_normal(model.nv)
    found = {}
    for way in ("auto", "crb", "aba"):
        model.opt.forward_dynamics = way
        fl.forward(model, data)
        found[way] = data.qacc_smooth.copy()
    np.testing.assert_array_equal(found["auto"], found["aba"])
    assert not np.array_equal(found["crb"], found["aba"])
    with pytest.raises(ModelError):
        model.opt.forward_dynamics = "abb"


def test_the_option_is_not_passed_to_mujoco(rng):
    model = smooth_model()
    model.opt.forward_dynamics = "aba"
    assert model.opt.forward_dynamics.name == "ABA"
    model.to_mujoco()
    fl.set_const(model)
    assert model.opt.forward_dynamics.name == "ABA"


def test_the_rope_steps_as_in_mujoco():
    model = fl.bundled("rope")
    mj_model = model.to_mujoco()
    batch, data = fl.Batch(model, 3, nthread=1), mujoco.MjData(mj_model)
    for _ in range(20):
        batch.qpos[:], batch.qvel[:], batch.qacc_warmstart[:] = data.qpos, data.qvel, data.qacc_warmstart
        batch.step()
        mujoco.mj_step(mj_model, data)
        for name in ("qpos", "qvel"):
            assert smooth.relative(getattr(batch, name)[1], getattr(data, name)) <= STEP


@pytest.mark.parametrize("name", ["rope", "humanoid"])
def test_bound_fields_are_computed_even_if_no_step_reads_them(name):
    model = fl.bundled(name)
    batch, data = fl.Batch(model, 2, nthread=1), fl.Data(model)
    bound = {n: batch.bind(n) for n in ("M", "qLD", "crb", "ximat", "cdof_dot", "qfrc_damper")}
    batch.qvel[:] = data.qvel[:] = np.random.default_rng(0).standard_normal(model.nv)
    batch.forward()
    fl.forward(model, data)
    for n, values in bound.items():
        np.testing.assert_array_equal(values[1].ravel(), getattr(data, n).ravel())


def test_the_inertia_is_computed_for_contacts():
    model = fl.bundled("humanoid")
    found = []
    for way in ("crb", "aba"):
        model.opt.forward_dynamics = way
        batch = fl.Batch(model, 9, nthread=1)
        batch.qpos[:, 2] = 0.9
        batch.step(5)
        assert batch.ncon.max() > 0
        found.append(batch.qvel.copy())
    assert smooth.relative(*found) <= 1e-6  # five steps of contact, solved to the model's tolerance
