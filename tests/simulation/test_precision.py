"""Float32 against float64: one step from the same numbers, and means over long motions."""

import numpy as np
import pytest

import featherlane as fl
from oracles import parity

STEP = 1e-4  # of qvel, relative to its largest entry or 1
MEANS = 0.01
EDGE = 0.005
FEW, MANY = 32, 504
# M of the rope and of the chain has a condition number of millions: seven digits do not solve with it; the pyramid's
# boxes lie edge on edge, where the seventh digit decides what touches
ILL_CONDITIONED = ("bundled/rope", "bundled/chain", "bundled/pyramid")
WELL_CONDITIONED = tuple(name for name in parity.MODELS if name not in ILL_CONDITIONED)


def batches(name, path, nworld):
    """The same worlds in both precisions, in states that float32 holds, with the model's own tolerance."""
    mj = parity.oracle(name, path)
    states = parity.states(mj, nworld, np.random.default_rng(0))
    mj.opt.tolerance, mj.opt.ls_iterations = 1e-8, 50
    model = fl.load(mj)
    single, double = fl.Batch(model, nworld, dtype="float32"), fl.Batch(model, nworld)
    for field in parity.INPUTS:
        setattr(single, field, np.array([state[field] for state in states]))
        setattr(double, field, getattr(single, field))
    return single, double


def check_step(name, path, nworld):
    single, double = batches(name, path, nworld)
    for batch in (single, double):
        batch.step()
    assert single.qvel.dtype == np.float32
    scale = np.maximum(1.0, np.abs(double.qvel).max(axis=1, initial=0.0))
    error = np.abs(single.qvel - double.qvel).max(axis=1, initial=0.0) / scale

    # a contact starts with a jump of the force: within 1e-7 m of its start the two may differ on whether it has
    edge = single.ncon != double.ncon
    assert edge.mean() <= EDGE
    error[edge] = 0.0
    assert error.max() <= STEP, f"world {error.argmax()}"


@pytest.mark.parametrize("name", WELL_CONDITIONED)
def test_a_float32_step_is_near_the_float64_step(name, real_model):
    check_step(name, real_model, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("name", WELL_CONDITIONED)
def test_many_float32_steps_are_near_the_float64_steps(name, real_model):
    check_step(name, real_model, MANY)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["dm_control/humanoid", "gymnasium/ant", "gymnasium/half_cheetah", "bundled/quadruped"]
)
def test_means_over_a_thousand_steps_are_those_of_float64(name, real_model):
    nstep, means = 1000, []
    batches_of = batches(name, real_model, 8)
    model = batches_of[0].model
    control = np.random.default_rng(1).uniform(-0.5, 0.5, (512, nstep, model.nu))
    for small in batches_of:
        batch = fl.Batch(model, 512, dtype=small.dtype)
        out = batch.rollout(nstep, control=control, record=("qfrc_constraint", "energy", "solver_niter"))
        force = np.linalg.norm(out["qfrc_constraint"], axis=2)
        means.append(
            [np.mean(x[:, 200:], dtype=float) for x in (force, *np.moveaxis(out["energy"], 2, 0), out["solver_niter"])]
        )
    np.testing.assert_allclose(means[0], means[1], rtol=MEANS)
