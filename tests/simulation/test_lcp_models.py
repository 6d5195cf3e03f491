"""Bundled models and gymnasium's robots step under the contact model lcp, with each of its solvers."""

import pickle

import numpy as np
import pytest

import featherlane as fl

SOLVERS = ("dantzig", "pgs", "apgd")
STILL = 1e-6  # m: a stack that a pivoting solver holds for 2 s


def run(model, steps: int):
    """Returns the data after so many steps under random controls."""
    data, rng = fl.Data(model), np.random.default_rng(1)
    for k in range(steps):
        if k % 20 == 0:
            limited, limits = model.actuator_ctrllimited.astype(bool), model.actuator_ctrlrange.reshape(-1, 2)
            data.ctrl[:] = rng.uniform(np.where(limited, limits[:, 0], -1.0), np.where(limited, limits[:, 1], 1.0))
        fl.step(model, data)
    return data


def prepared(model, solver: str):
    """Returns the model under lcp, for every integrator setting."""
    model.opt.integrator, model.opt.noslip_iterations = "euler", 0
    model.opt.contact_model, model.opt.lcp_solver, model.opt.lcp_iterations = "lcp", solver, 30
    return model


def check(model, solver: str, steps: int):
    data = run(prepared(model, solver), steps)
    assert np.isfinite(data.qpos).all() and np.isfinite(data.qvel).all() and data.status["non_finite"] == 0
    if solver == "dantzig":
        assert data.status["not_converged"] == 0


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_humanoid_steps_with_each_solver(solver):
    check(fl.bundled("humanoid"), solver, 100)


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", sorted({*fl.bundled_names()} - {"pyramid", "chain"}))
def test_bundled_models_step_with_each_solver(name, solver):
    check(fl.bundled(name), solver, 200)


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", ["ant", "half_cheetah", "hopper", "humanoid", "walker2d_v5", "pusher_v5"])
def test_gymnasiums_robots_step_with_each_solver(name, solver, real_model):
    check(fl.load(real_model(f"gymnasium/{name}")), solver, 200)


def test_a_closed_loop_holds():
    model = prepared(fl.bundled("slider_crank"), "dantzig")
    data = fl.Data(model)
    data.qvel[0] = 3.0
    for _ in range(500):
        fl.step(model, data)
    ends = [
        data.xpos[body] + data.xmat[body].reshape(3, 3) @ anchor
        for body, anchor in ((model.eq_obj1id[0], model.eq_data[0, :3]), (model.eq_obj2id[0], model.eq_data[0, 3:6]))
    ]
    assert np.abs(ends[0] - ends[1]).max() < 1e-3
    assert data.status["not_converged"] == 0
    assert np.abs(data.qvel).max() > 0.5


def test_a_stack_stands():
    model = prepared(fl.bundled("box_stack"), "dantzig")
    data = fl.Data(model)
    for _ in range(300):
        fl.step(model, data)
    start = data.qpos.copy()
    for _ in range(1000):
        fl.step(model, data)
    np.testing.assert_allclose(data.qpos, start, rtol=0, atol=STILL)


@pytest.mark.parametrize("name", ["humanoid", "pile"])
def test_worlds_of_a_batch_equal_single_simulations(name, rng):
    model = prepared(fl.bundled(name), "dantzig")
    batch = fl.Batch(model, 9, nthread=1)
    batch.qvel[...] = speeds = rng.normal(0, 0.5, batch.qvel.shape)
    batch.step(20)
    for k in (0, 5, 8):
        data = fl.Data(model)
        data.qvel[:] = speeds[k]
        for _ in range(20):
            fl.step(model, data)
        np.testing.assert_array_equal(data.qpos, batch.qpos[k])


def test_a_pickle_omits_solver_buffers():
    model = prepared(fl.bundled("pile"), "dantzig")
    data = fl.Data(model)
    for _ in range(3):
        fl.step(model, data)
    text = pickle.dumps(data)
    assert len(text) < 2e7  # bytes: the solver's buffer is 0.4 GB
    again = pickle.loads(text)
    for _ in range(3):
        fl.step(model, data)
        fl.step(again.model, again)
    np.testing.assert_array_equal(again.qpos, data.qpos)
