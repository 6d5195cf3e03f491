"""Workers are killed during calls: the results stay bitwise identical."""

import contextlib
import os
import signal
import threading

import numpy as np
import pytest

import featherlane as fl
from featherlane.distributed import Batch, gathered, restarts

ray = pytest.importorskip("ray")
N, STEPS = 48, 240
RECORD = ("qpos", "cvel")


@pytest.fixture(scope="module")
def model():
    return fl.bundled("humanoid")


@pytest.fixture(scope="module")
def controls(model):
    return np.random.default_rng(3).uniform(-1, 1, (N, STEPS, model.nu))


def session(batch, controls, between=lambda k: None):
    """Runs a program with a batch, with `between(k)` before its parts; returns its results."""
    found = {}
    batch.expand("body_mass")[:] = batch.model.body_mass * np.linspace(0.8, 1.2, N)[:, None]
    batch.set_const()
    batch.bind("xpos")
    for k in range(4):
        between(k)
        batch.reset([5 * k, 40])
        part = controls[:, 60 * k : 60 * (k + 1)]
        for name, rows in batch.rollout(60, part, RECORD).items():
            found[f"{name}{k}"] = rows
        batch.step(3, ids=[1, 2, 47])
        batch.qfrc_applied = np.full((N, batch.model.nv), 0.1 * k)
    batch.step(20)
    found |= {"xpos": np.array(batch.xpos), "nreset": np.array(batch.nreset)}
    return found | {key: value for key, value in batch.checkpoint().items() if key != "signature"}


@pytest.fixture(scope="module")
def workers(model, cluster):
    """Returns a batch on two workers, for all tests."""
    with Batch(model, N, 2, nthread=1) as made:
        yield made


@pytest.fixture
def batch(workers, model):
    """Returns the batch at its start, without lost workers."""
    workers.restore(fl.Batch(model, N).checkpoint())
    for w in workers._workers:  # reset the loss counters: a new batch for each test would take seconds
        w.losses, w._restarts = 0, restarts.Restarts()
    return workers


def every(batch, steps):
    """Sets the checkpoint interval in steps: the public argument is read only when a batch is made."""
    batch.__dict__["_every"] = steps


@pytest.fixture(scope="module")
def expected(model, controls):
    return session(fl.Batch(model, N, nthread=1), controls)


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    assert [name for name in expected if not np.array_equal(found[name], expected[name])] == []


def kill(batch, k):
    """Kills a worker's process by its handle: `batch.call(os.getpid)` would first wait for posted calls."""
    ray.kill(batch._workers[k].actor, no_restart=True)


@pytest.mark.parametrize(
    "steps", [pytest.param(10_000, id="from the start", marks=pytest.mark.ci), pytest.param(70, id="from a checkpoint")]
)
def test_a_worker_killed_between_calls_is_restarted(batch, controls, expected, steps):
    every(batch, steps)
    found = session(batch, controls, lambda k: kill(batch, 1) if k == 2 else None)
    assert_same(found, expected)
    assert batch.losses == [0, 1]


def test_a_worker_killed_during_a_call_is_restarted(batch, controls, expected, monkeypatch):
    monkeypatch.setitem(batch.__dict__, "_at_once", 10 * N)  # six pieces a rollout, two at a time
    every(batch, 50)
    timers = []

    def between(k):
        if k in (1, 2):
            pid = batch._pool.where[k - 1].pid  # `batch.call(os.getpid)` would wait
            timers.append(threading.Timer(0.02, os.kill, (pid, signal.SIGKILL)))
            timers[-1].start()

    found = session(batch, controls, between)
    [timer.join() for timer in timers]
    assert_same(found, expected)
    assert sum(batch.losses) == 2


@pytest.mark.ci
def test_replacements_that_are_killed_while_they_start_are_replaced(batch, model, monkeypatch):
    """Three workers are lost in a row, two of them with actors that have not answered yet."""
    started, make = [], batch._pool._actor  # the loss must come before the actor answers

    def killed(k, is_reserved):
        actor = make(k, is_reserved)
        started.append(is_reserved)
        if len(started) <= 2:
            ray.kill(actor, no_restart=True)
        return actor

    monkeypatch.setattr(batch._pool, "_actor", killed)
    batch.step(3)
    kill(batch, 0)
    batch.step(3)
    local = fl.Batch(model, N)
    local.step(6)
    assert np.array_equal(batch.qpos, local.qpos)
    assert batch.losses == [3, 0] and started == [True, True, True]


def test_an_error_in_one_worker_restores_all_workers(batch):
    batch.step(3)
    batch.step(1, ids=[N - 1])
    before = batch.checkpoint()

    def stepped(own):
        own.step(2)
        return own.no_such if own.time[-1] > own.time[0] else None

    with pytest.raises(fl.errors.UnknownAttributeError):
        batch.call(stepped)
    after = batch.checkpoint()
    assert [name for name in before if not np.array_equal(before[name], after[name])] == []


@pytest.mark.slow
def test_checkpoints_in_a_folder(model, cluster, controls, expected, tmp_path):
    with Batch(model, N, 2, nthread=1, checkpoint_every=50, checkpoint_folder=tmp_path) as batch:
        found = session(batch, controls, lambda k: kill(batch, 0) if k in (1, 3) else None)
        assert_same(found, expected)
        assert batch.losses == [2, 0]
        assert list(tmp_path.glob("worlds-*.batch"))
    assert not list(tmp_path.iterdir())  # finished calls leave no checkpoints


@pytest.mark.slow
def test_a_call_that_repeatedly_kills_its_worker_raises(batch, monkeypatch):
    monkeypatch.setattr(restarts, "MOST", 1)
    batch.step(3)
    before = batch.checkpoint()
    with pytest.raises(fl.errors.CallError, match="lost"):
        batch.call(lambda b: os.kill(os.getpid(), signal.SIGKILL))
    after = batch.checkpoint()  # the batch continues
    assert all(np.array_equal(before[name], after[name]) for name in before)


@pytest.mark.ci
def test_lost_recordings_on_a_worker_are_recomputed(batch, controls, monkeypatch):
    """As after the loss of a node, an actor elsewhere computes from the checkpoint before each part."""
    monkeypatch.setitem(batch.__dict__, "_at_once", 10 * N)
    monkeypatch.setattr(Batch, "_learn", lambda self, steps, seconds: None)
    every(batch, 25)
    batch.expand("body_mass")[:] *= 1.01
    batch.step(7)
    batch.qvel = batch.qvel + 0.01
    parts = batch.rollout(60, controls[:, :60], RECORD, out="refs")
    batch.step(3)
    assert len(parts) > 6
    expected, gone = gathered(parts), [part.reference for part in (parts[0], parts[-1])]

    def get(what, real=ray.get, **how):
        if isinstance(what, ray.ObjectRef) and what in gone:
            raise ray.exceptions.ObjectLostError(what.hex(), None, "")
        return real(what, **how)

    monkeypatch.setattr(ray, "get", get)
    found = gathered(parts)
    assert all(np.array_equal(found[name], expected[name]) for name in expected)
    with pytest.raises(fl.ModelError, match="lost"):
        parts[0]._replace(replay=None).get()


def test_an_interrupt_leaves_all_worlds_at_the_same_step(batch, model):
    batch.step(500)
    timer = threading.Timer(0.7, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        batch.step(10_000_000)
    done = np.rint(batch.time / model.opt.timestep).astype(int)
    assert len(set(done.tolist())) == 1 and 500 <= done[0] < 1_000_000  # a busy machine may have taken no step
    local = fl.Batch(model, N)
    local.step(int(done[0]))
    assert np.array_equal(batch.qpos, local.qpos)


@pytest.mark.slow
def test_twenty_kills_at_random_moments(batch, controls, model, expected, monkeypatch, rng):
    kills = rounds = 0
    while kills < 20:
        batch.restore(fl.Batch(model, N).checkpoint())
        monkeypatch.setitem(batch.__dict__, "_at_once", 10 * N)
        every(batch, int(rng.integers(20, 200)))
        before, over = sum(batch.losses), threading.Event()

        def hunt(over=over):
            while not over.wait(float(rng.uniform(0.05, 2.0))):
                with contextlib.suppress(ProcessLookupError):
                    # `batch.call(os.getpid)` would wait
                    os.kill(batch._pool.where[int(rng.integers(2))].pid, signal.SIGKILL)

        hunter = threading.Thread(target=hunt)
        hunter.start()
        try:
            found = session(batch, controls)
        finally:
            over.set()
            hunter.join()
        assert_same(found, expected)
        kills, rounds = kills + sum(batch.losses) - before, rounds + 1
    print(f"{kills} kills in {rounds} runs")
