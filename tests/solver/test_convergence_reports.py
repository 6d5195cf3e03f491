"""For every end of Newton's iterations: the gradient is below tolerance, or rounding, or the step reports it."""

from __future__ import annotations

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.enums import Cone
from robots import wheels
from scenes.states import kicked

NWORLD, HOLD = 64, 20
ENOUGH = 1.0001e-8  # the default tolerance
FINE = 2e-4  # of the forces that balance, in float32
SAME = 1e-7  # of the largest acceleration: difference to a cold start that the tolerance permits
# hinges on one axis, pushed hard into their limits, on spheres that overlap at their centres
LIMITS = f"""
<mujoco><option timestep="0.002"/><worldbody>
  <body>{"".join(f'<joint range="0 {10 * (k + 1)}" armature=".1"/>' for k in range(6))}<geom size="1"/></body>
  <body>{"".join(f'<joint range="{-k} 57" armature=".1"/>' for k in range(6))}<geom size="1"/></body>
  <body><freejoint/><geom size="1"/></body>
</worldbody></mujoco>"""

OUTPUTS = ("qfrc_smooth", "qfrc_constraint")


def forces(batch):
    """Returns the norm of the larger of the two balancing forces, world by world."""
    return np.maximum(*(np.linalg.norm(np.asarray(getattr(batch, n), float), axis=1) for n in OUTPUTS))


def driven(model, dtype="float64", steps=800, seed=0):
    """Yields a batch after each step, under new random controls every `HOLD` steps."""
    rng, batch = np.random.default_rng(seed), fl.Batch(model, NWORLD, dtype=dtype)
    for name in OUTPUTS:
        batch.bind(name)
    low, high = np.where(model.actuator_ctrllimited, model.actuator_ctrlrange.T, [[-1.0], [1.0]])
    for k in range(steps):
        if k % HOLD == 0 and model.nu:
            batch.ctrl = rng.uniform(low, high, (NWORLD, model.nu))
        batch.step()
        yield batch


@pytest.mark.parametrize("name", ["quadruped_elliptic", "hand", "quadruped"])
def test_no_driven_step_ends_above_tolerance(name):
    for batch in driven(fl.bundled(name)):
        assert (batch.solver_residual <= ENOUGH).all()
    assert batch.status["not_converged"].sum() == 0


@pytest.mark.parametrize("name", ["quadruped_elliptic", "hand"])
def test_every_wrong_driven_step_in_float32_is_reported(name):
    model = fl.bundled(name)
    scale = model.stat_meaninertia * model.nv
    for batch in driven(model, "float32", steps=400):
        silent = batch.solver_residual * scale > FINE * forces(batch)
        assert not silent.any()
    assert batch.status["not_converged"].sum() <= 1


def test_a_robot_with_a_high_impratio_is_solved():
    model = fl.bundled("quadruped_elliptic")
    model.opt.impratio = 100.0
    for batch in driven(model, steps=400):
        assert (batch.solver_residual <= ENOUGH).all()


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_limits_pushed_hard_are_solved(cone):
    model = fl.load(LIMITS)
    model.opt.cone = cone
    rng, batch = np.random.default_rng(2), fl.Batch(model, NWORLD)
    batch.bind("qacc")
    cold = fl.Batch(model, NWORLD)
    cold.bind("qacc")
    for _ in range(20):
        batch.reset()
        for w in range(NWORLD):
            batch.qpos[w], batch.qvel[w] = kicked(model, rng, 0.3, 100.0 * rng.uniform() ** 2)
        for _ in range(12):
            cold.qpos, cold.qvel, cold.qacc_warmstart = batch.qpos, batch.qvel, np.zeros((NWORLD, model.nv))
            cold.forward()
            batch.step()
            size = np.abs(cold.qacc).max(axis=1, keepdims=True)
            assert (np.abs(batch.qacc - cold.qacc) <= SAME * size).all()
    assert batch.status["not_converged"].sum() == 0


@pytest.mark.parametrize("iterations", [1, 2, 3])
def test_iterations_that_run_out_are_reported(iterations):
    model = fl.bundled("quadruped_elliptic")
    model.opt.iterations = iterations
    told, above = np.zeros(NWORLD), 0
    for batch in driven(model, steps=60):
        said, good = batch.status["not_converged"] - told, batch.nreset == 0
        told = batch.status["not_converged"]
        np.testing.assert_array_equal(said[good] > 0, batch.solver_residual[good] > ENOUGH)
        above += (said[good] > 0).sum()
    assert above > 0


@pytest.mark.parametrize("evaluations", [1, 2, 4, 8])
def test_a_line_search_that_runs_out_does_not_climb(evaluations):
    model = fl.bundled("quadruped_elliptic")
    model.opt.ls_iterations = evaluations
    data, rng = fl.Data(model), np.random.default_rng(3)
    data.record_solver = True
    for k in range(400):
        if k % HOLD == 0:
            data.ctrl = rng.uniform(*model.actuator_ctrlrange.T)
        fl.step(model, data)
        cost = data.solver_history.cost
        assert (np.diff(cost) <= 1e-12 * cost[:-1]).all()


@pytest.mark.slow
@pytest.mark.parametrize("wheel", wheels.WHEELS)
def test_every_unconverged_driven_step_with_elliptic_cones_is_reported(wheel):
    for name in wheels.models_in(wheel):
        try:
            model = fl.load(wheels.model_path(name))
        except (fl.FeatherlaneError, ValueError):
            continue  # part of a model, or an error
        if model.opt.cone != Cone.ELLIPTIC or not model.nv:
            continue
        model.opt.iterations = max(model.opt.iterations, 100)
        told, silent, count = 0, 0, 0
        for batch in driven(model):
            said, above = batch.status["not_converged"] > told, batch.solver_residual > max(model.opt.tolerance, 1e-8)
            told = batch.status["not_converged"]
            silent, count = silent + (above & ~said).sum(), count + NWORLD
        print(f"{name}: {count} steps, {silent} silent, {told.sum()} told")
        assert silent == 0, name
