"""Losses and exceptions at any bytecode: the worlds are at the end of a piece, or every call asks for a checkpoint."""

import pickle
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import featherlane as fl
from featherlane.distributed import Batch, calls
from ray_stand_in import Cluster, Pool

N, PIECE = 4, 2
FOLDER = Path(calls.__file__).parent
TRACED = {str(FOLDER / f"{name}.py") for name in ("batch", "calls", "fields")}
MODEL = fl.bundled("pendulum")
SKIPPED = {"signature"}  # the assignment of worlds to tiles


@pytest.fixture
def batch(monkeypatch):
    monkeypatch.setattr(calls, "Pool", Pool)
    monkeypatch.setattr(calls, "ray_module", lambda: None)
    monkeypatch.setattr(calls, "serialize", lambda what, thing: pickle.dumps(thing))
    monkeypatch.setattr(calls, "_cluster_of", lambda *given: (Cluster(), 2))
    with Batch(MODEL, N, 2, nthread=1) as made:
        monkeypatch.setitem(made.__dict__, "_at_once", PIECE * N)
        yield made


def begin(batch):
    """Sets the same state each time."""
    batch.expand("body_mass")[:] = MODEL.body_mass * np.linspace(1, 2, N)[:, None]
    batch.set_const()
    batch.reset()
    batch.qvel = np.linspace(-3, 3, N)[:, None]
    batch.step(4)
    return batch.checkpoint()


def state(batch):
    """Returns all of the worlds."""
    return {name: rows.tobytes() for name, rows in batch.checkpoint().items() if name not in SKIPPED}


def edit(batch):
    batch.expand("body_mass")[:] = 0.5
    batch.step(2)


# a call, and calls that give the other states at which it may stop
CALLS = {
    "steps": (lambda b: b.step(6), [lambda b: b.step(2), lambda b: b.step(4)]),
    "an edit and steps": (edit, [lambda b: b.expand("body_mass").fill(0.5)]),
    "an assignment": (lambda b: setattr(b, "qvel", 2.0), []),
    "a reset": (lambda b: b.reset([1, 3]), []),
    "a rollout": (lambda b: b.rollout(4, record=("qpos", "qvel")), [lambda b: b.step(2)]),
    "a read": (lambda b: b.qpos, []),
    "a recomputation": (lambda b: b.set_const([0, 2]), []),
}


def bytecodes(call, at=None, interrupt=None):
    """Counts the bytecodes of the traced files in a call; interrupts before one of them."""
    number = 0

    def trace(frame, event, arg):
        nonlocal number
        if frame.f_code.co_filename not in TRACED:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            number += 1
            if number == at:
                interrupt()
        return trace

    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        assert at is not None
    finally:
        sys.settrace(None)
    return number


@pytest.mark.parametrize("number", [25, pytest.param(100_000, marks=pytest.mark.slow)], ids=["some", "all"])
@pytest.mark.parametrize("name", CALLS)
def test_an_interrupted_call_is_complete_or_asks_for_a_checkpoint(batch, name, number):
    call, partly = CALLS[name]
    allowed = []
    for part in (lambda b: None, *partly, call):
        kept = begin(batch)
        part(batch)
        allowed.append(state(batch))
    batch.restore(kept)
    total, outcomes = bytecodes(lambda: call(batch)), set()
    for at in range(1, total + 1, max(1, total // number)):
        batch.restore(kept)
        bytecodes(lambda: call(batch), at, lambda: signal.raise_signal(signal.SIGINT))
        try:
            found = state(batch)
        except fl.errors.WorkerLostError:
            outcomes.add("lost")
            for refused in (lambda: batch.step(), lambda: batch.qpos, lambda: batch.reset()):
                with pytest.raises(fl.errors.WorkerLostError, match="restore"):
                    refused()
            batch.restore(kept)
            call(batch)
            assert state(batch) == allowed[-1], at
        else:
            outcomes.add("complete")
            assert found in allowed, at
            call(batch)  # the batch is usable
    assert "complete" in outcomes


def test_a_lost_worker_is_an_error_until_a_checkpoint_is_restored(batch):
    kept = begin(batch)
    batch.model.opt.gravity[2] = -3.0
    try:
        batch.bind("xpos")
        batch.step(3)
        expected, frames = state(batch), batch.xpos.copy()
        for lost in (0, 1):
            batch.restore(kept)
            batch._pool.actors[lost].kill()
            first, last = batch.starts[lost : lost + 2]
            for refused in (lambda: batch.step(3), lambda: batch.step(3), lambda: batch.get("qpos", ids=[0])):
                with pytest.raises(fl.errors.WorkerLostError, match=rf"worlds {first} to {last - 1} was lost.*restore"):
                    refused()
            batch.restore(kept)  # the new process gets the edited model, the fields of worlds, the bound outputs
            batch.step(3)
            assert state(batch) == expected and np.array_equal(batch.xpos, frames)
    finally:
        batch.model.opt.gravity[2] = -9.81


def test_a_loss_is_found_by_a_call_that_changes_nothing(batch):
    kept = begin(batch)
    batch._pool.actors[1].kill()
    with pytest.raises(fl.errors.WorkerLostError):
        batch.qpos  # noqa: B018
    with pytest.raises(fl.errors.WorkerLostError):
        batch.step()
    batch.restore(kept)
    batch.step()


def test_a_restart_between_two_calls_is_a_loss(batch):
    """Ray has restarted the process before the next call: it answers, without worlds."""
    begin(batch)
    batch._pool.actors[1].__init__()
    with pytest.raises(fl.errors.WorkerLostError, match="restarted"):
        batch.step()


def test_a_restore_that_meets_a_loss_can_be_repeated(batch, monkeypatch):
    kept, revive = begin(batch), Batch._revive
    expected = state(batch)

    def killed(self):
        revive(self)
        self._pool.actors[0].kill()
        monkeypatch.setattr(Batch, "_revive", revive)

    monkeypatch.setattr(Batch, "_revive", killed)
    with pytest.raises(fl.errors.WorkerLostError):
        batch.restore(kept)
    batch.restore(kept)
    assert state(batch) == expected


def test_an_error_in_one_worker_asks_for_a_checkpoint(batch, monkeypatch):
    kept = begin(batch)
    expected = state(batch)
    monkeypatch.setattr(batch._pool.actors[1].worlds, "order_step", lambda **given: 1 / 0, raising=False)
    with pytest.raises(ZeroDivisionError) as found:
        batch.step()
    assert "worker whose first world is" in found.value.__notes__[0]
    with pytest.raises(fl.errors.WorkerLostError, match=r"failed in one worker.*division"):
        batch.step()
    batch.restore(kept)
    assert state(batch) == expected


def test_an_error_in_all_workers_changes_nothing(batch):
    begin(batch)
    expected = state(batch)
    with pytest.raises(fl.ModelError):
        batch._ask(batch._everyone(), lambda part: ("set_const", {"ids": [77], "names": []}), True)
    assert state(batch) == expected
    batch.step()
