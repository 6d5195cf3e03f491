"""Processes of Ray's workers are killed: calls raise an error, and a checkpoint continues bitwise identically."""

import contextlib
import os
import signal
import threading

import numpy as np
import pytest

import featherlane as fl
from featherlane.distributed import Batch

pytest.importorskip("ray")
N, PARTS = 48, 4
STEPS = 600  # of a rollout, which takes longer than the .05 s after which a worker is killed


@pytest.fixture(scope="module")
def model():
    return fl.bundled("humanoid")


@pytest.fixture(scope="module")
def controls(model):
    return np.random.default_rng(3).uniform(-1, 1, (N, STEPS * PARTS, model.nu))


@pytest.fixture(scope="module")
def batch(model, cluster):
    with Batch(model, N, 2, nthread=1) as made:
        yield made


def session(batch, controls, before=lambda k: None):
    """Runs a program in parts, each of which it repeats from a checkpoint after a loss; returns results and losses."""
    batch.restore(fl.Batch(batch.model, N).checkpoint())
    batch.expand("body_mass")[:] = batch.model.body_mass * np.linspace(0.8, 1.2, N)[:, None]
    batch.set_const()
    batch.bind("xpos")
    kept, found, losses, k = batch.checkpoint(), {}, 0, 0
    while k <= PARTS:
        try:
            before(k)
            if k == PARTS:
                batch.step(20)
                found["last"] = {"xpos": np.array(batch.xpos)} | batch.checkpoint()
                break
            batch.reset([5 * k, 40])
            found |= {f"{k}": batch.rollout(STEPS, controls[:, STEPS * k : STEPS * (k + 1)], ("qpos", "cvel"))}
            batch.step(3, ids=[1, 2, 47])
            batch.qfrc_applied = np.full((N, batch.model.nv), 0.1 * k)
            kept, k = batch.checkpoint(), k + 1
        except fl.errors.WorkerLostError:
            losses += 1
            batch.restore(kept)
    return {f"{name}{k}": rows for k, own in found.items() for name, rows in own.items()}, losses


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    assert [k for k in expected if k != "signaturelast" and not np.array_equal(found[k], expected[k])] == []


@pytest.fixture(scope="module")
def expected(model, controls):
    return session(fl.Batch(model, N, nthread=1), controls)[0]


def killer(batch, times):
    """Returns a function that kills a worker at these parts: at once, or .05 s later, within the rollout."""
    left = dict(times)

    def before(k):
        if k in left:
            worker, delay = left.pop(k)
            pid = batch.call(lambda own: __import__("os").getpid())[worker]
            timer = threading.Timer(delay, os.kill, (pid, signal.SIGKILL))
            timer.start()
            if not delay:
                timer.join()

    return before


@pytest.mark.ci
def test_a_worker_killed_between_calls(batch, controls, expected):
    found, losses = session(batch, controls, killer(batch, {2: (1, 0.0)}))
    assert losses == 1
    assert_same(found, expected)


def test_workers_killed_during_calls(batch, controls, expected):
    found, losses = session(batch, controls, killer(batch, {1: (0, 0.05), 3: (1, 0.05)}))
    assert losses == 2
    assert_same(found, expected)


def test_an_interrupt_leaves_all_worlds_at_the_same_step(batch, model):
    batch.restore(fl.Batch(model, N).checkpoint())
    timer = threading.Timer(0.7, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    kept = batch.checkpoint()
    with pytest.raises(KeyboardInterrupt):
        batch.step(10_000_000)
    try:
        done = np.rint(batch.time / model.opt.timestep).astype(int)
    except fl.errors.WorkerLostError:  # it came while a piece was sent
        batch.restore(kept)
        return
    assert len(set(done.tolist())) == 1 and done[0] < 1_000_000
    local = fl.Batch(model, N)
    local.step(int(done[0]))
    assert np.array_equal(batch.qpos, local.qpos)


@pytest.mark.slow
def test_a_call_that_kills_its_worker_each_time(batch, model):
    batch.restore(fl.Batch(model, N).checkpoint())
    kept = batch.checkpoint()
    for _ in range(2):
        with pytest.raises(fl.errors.WorkerLostError, match="lost"):
            batch.call(lambda b: os.kill(os.getpid(), signal.SIGKILL))
        batch.restore(kept)
    after = batch.checkpoint()
    assert all(np.array_equal(kept[name], after[name]) for name in kept)


@pytest.mark.slow
def test_twenty_kills_at_random_moments(batch, controls, expected, rng):
    kills = 0
    while kills < 20:
        over, pids = threading.Event(), []

        def note(k, pids=pids):
            pids[:] = batch.call(lambda own: __import__("os").getpid())

        def hunt(over=over, pids=pids):
            while not over.wait(float(rng.uniform(0.3, 3.0))):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pids[int(rng.integers(2))], signal.SIGKILL) if pids else None

        hunter = threading.Thread(target=hunt)
        hunter.start()
        try:
            found, losses = session(batch, controls, note)
        finally:
            over.set()
            hunter.join()
        assert_same(found, expected)
        kills += losses
