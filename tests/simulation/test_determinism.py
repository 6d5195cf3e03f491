"""A world's bits are the same alone or in any batch, on any number of threads, and on any CPU level."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.lanes import processor
from scenes.states import kicked

NAMES = ("time", "qpos", "qvel", "qacc_warmstart", "ncon", "solver_niter", "solver_residual", "solver_gap")
OUTPUTS = ("xpos", "cvel", "qacc", "qfrc_constraint", "actuator_force")
NSTEP = 40
MODELS = {"humanoid": "Euler", "quadruped": "implicitfast", "arm": "RK4"}
WORLDS = 64


def loaded(name: str):
    model = fl.bundled(name)
    model.opt.integrator = MODELS[name]
    return model


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return loaded(request.param)


def starts(model, n: int):
    """Returns different states that soon lead to contacts, and controls for them."""
    rng = np.random.default_rng(5)
    free = np.flatnonzero(model.jnt_type == 0)
    worlds = [kicked(model, rng, 0.2 if len(free) else 1.5, 2.0) for _ in range(n)]
    qpos, qvel = (np.array(x) for x in zip(*worlds, strict=True))
    qpos[:, model.jnt_qposadr[free] + 2] -= np.linspace(0.0, 0.5, n)[:, None]
    return qpos, qvel, rng.uniform(-1, 1, (n, model.nu))


def batch_of(model, worlds, n=WORLDS, **settings):
    """Returns a batch of the chosen ones of n worlds, in their order."""
    batch = fl.Batch(model, len(worlds), **settings)
    batch.qpos, batch.qvel, batch.ctrl = (x[worlds] for x in starts(model, n))
    return batch


def bits(batch, order=slice(None)) -> bytes:
    return b"".join(getattr(batch, name)[order].tobytes() for name in (*NAMES, *OUTPUTS))


def ran(batch, nstep=NSTEP):
    for name in OUTPUTS:
        batch.bind(name)
    batch.step(nstep)
    return batch


@pytest.fixture(scope="module")
def truth(model):
    """Returns all worlds in one batch, on one thread."""
    return ran(batch_of(model, np.arange(WORLDS), nthread=1))


def test_the_worlds_differ_and_touch(truth):
    assert truth.ncon.max() > 0
    assert len(np.unique(truth.qpos, axis=0)) == WORLDS
    assert not truth.status["non_finite"].any()


def test_a_data_is_bitwise_equal_to_a_world_of_a_batch(model, truth):
    qpos, qvel, ctrl = starts(model, WORLDS)
    for w in range(0, WORLDS, 7):
        data = fl.Data(model)
        data.qpos, data.qvel, data.ctrl = qpos[w], qvel[w], ctrl[w]
        for _ in range(NSTEP):
            fl.step(model, data)
        for name in (*NAMES, *OUTPUTS):
            expected = getattr(truth, name)[w]
            assert np.asarray(getattr(data, name), expected.dtype).tobytes() == expected.tobytes(), name


@pytest.mark.parametrize("n", [1, 7, WORLDS])
@pytest.mark.parametrize("nthread", [1, 2])
def test_batches_of_any_size_and_order_give_bitwise_equal_results(model, truth, n, nthread, rng):
    worlds = rng.permutation(WORLDS)[:n]
    assert bits(ran(batch_of(model, worlds, nthread=nthread))) == bits(truth, worlds)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_thousand_worlds_in_another_order_give_bitwise_equal_results(name, dtype, rng):
    model = loaded(name)
    worlds = rng.permutation(1000)
    one = ran(batch_of(model, np.arange(1000), 1000, nthread=1, dtype=dtype), 200)
    two = ran(batch_of(model, worlds, 1000, nthread=2, dtype=dtype), 200)
    assert bits(two) == bits(one, worlds)


def test_float32_worlds_are_bitwise_equal_in_any_batch(model, rng):
    worlds = rng.permutation(WORLDS)
    truth = ran(batch_of(model, np.arange(WORLDS), nthread=1, dtype="float32"))
    for chosen, nthread in ((worlds, 2), (worlds[:7], 1), (worlds[:1], 1)):
        assert bits(ran(batch_of(model, chosen, nthread=nthread, dtype="float32"))) == bits(truth, chosen)


def test_subsets_of_worlds_take_the_same_steps(model, truth, rng):
    batch = batch_of(model, np.arange(WORLDS))
    worlds = rng.permutation(WORLDS)
    for ids in (worlds[:5], worlds[5:30], np.isin(np.arange(WORLDS), worlds[30:])):
        for name in OUTPUTS:
            batch.bind(name)
        batch.step(NSTEP, ids=ids)
    assert bits(batch) == bits(truth)


def test_many_steps_at_once_equal_single_steps(model, truth):
    batch = batch_of(model, np.arange(WORLDS))
    for _ in range(NSTEP // 4):
        ran(batch, 1)
        ran(batch, 3)
    assert bits(batch) == bits(truth)


def test_a_rollout_equals_steps(model, truth):
    batch = batch_of(model, np.arange(WORLDS))
    for name in OUTPUTS:
        batch.bind(name)
    control = np.broadcast_to(batch.ctrl[:, None], (WORLDS, NSTEP, model.nu))
    out = batch.rollout(NSTEP, control=control, record=("qpos", "xpos"))
    assert bits(batch) == bits(truth)
    assert out["qpos"][:, -1].tobytes() == truth.qpos.tobytes()
    assert out["xpos"][:, -1].tobytes() == truth.xpos.tobytes()


def test_copies_and_checkpoints_continue_bitwise_equally(model, truth):
    batch = ran(batch_of(model, np.arange(WORLDS)), NSTEP // 2)
    restored = fl.Batch(model, WORLDS)
    restored.restore(pickle.loads(pickle.dumps(batch.checkpoint())))
    for other in (copy.deepcopy(batch), pickle.loads(pickle.dumps(batch)), restored, batch):
        assert bits(ran(other, NSTEP - NSTEP // 2)) == bits(truth)


def digest(name, dtype, nstep) -> str:
    """Returns the bits of a few worlds after some steps, as text."""
    import hashlib

    batch = ran(batch_of(loaded(name), np.arange(20), nthread=1, dtype=dtype), nstep)
    return hashlib.sha256(bits(batch)).hexdigest()


@pytest.mark.slow
@pytest.mark.skipif(processor.cpu_level() != "x86-64-v4", reason="this machine has one CPU level only")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_both_cpu_levels_give_bitwise_equal_results(dtype):
    here = [digest(name, dtype, NSTEP) for name in MODELS]
    call = f"import test_determinism as t; print(*[t.digest(n, {dtype!r}, t.NSTEP) for n in t.MODELS])"
    folders = [os.path.dirname(__file__), os.path.dirname(os.path.dirname(__file__)), *sys.path]
    env = {**os.environ, "FEATHERLANE_CPU": "x86-64-v3", "PYTHONPATH": os.pathsep.join(folders)}
    done = subprocess.run(
        [sys.executable, "-c", call], env=env, capture_output=True, text=True, check=True, timeout=900
    )
    assert done.stdout.split() == here
