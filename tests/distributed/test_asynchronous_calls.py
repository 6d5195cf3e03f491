"""Calls that do not wait: they run in order, and their errors are raised by the next call."""

from pathlib import Path

import numpy as np
import pytest

import featherlane as fl
from featherlane.distributed import Batch, pieces
from featherlane.distributed.request import Checkpoints

pytest.importorskip("ray")
N = 32


@pytest.fixture(scope="module")
def model():
    return fl.bundled("pendulum")


@pytest.fixture(scope="module")
def workers(model, cluster):
    with Batch(model, N, 2, nthread=1) as made:
        yield made


@pytest.fixture
def pair(workers, model):
    """Returns the batch and a local one, in the same state, with nothing in progress."""
    local = fl.Batch(model, N)
    local.qvel = np.linspace(-3, 3, N)[:, None]
    workers.restore(local.checkpoint())
    workers.wait()
    return workers, local


def ask_for_what_is_not_there(batch):
    """Posts a call that fails in the second worker: arguments of public calls are checked before they are posted."""
    wrong = {0: [("step", (1, None))], 1: [("step", (1, None)), ("no_such", ())]}
    batch._advance(1, np.arange(N), lambda part, start, n: wrong[part.worker])


def under_way(batch):
    """Returns posted calls that are still pending: every public read waits for them."""
    return batch._under


def test_steps_and_resets_are_posted_and_reads_wait_for_them(pair):
    batch, local = pair
    for b in pair:
        b.step(5)
        b.reset([3, 30])
        b.step(2, ids=np.arange(20))
        b.forward()
    assert len(under_way(batch)) == 4
    assert np.array_equal(batch.qpos, local.qpos)
    assert not under_way(batch)
    batch.step(3)
    batch.wait()
    assert not under_way(batch)


def test_assignments_are_sent_with_the_next_step(pair):
    batch, local = pair
    for b in pair:
        b.ctrl = 0.2
        b.qvel = b.qvel + 1.0
        b.expand("dof_damping")[:] = np.linspace(0, 1, N)[:, None]
    batch.wait()
    before = [w.requests for w in batch._workers]  # the number of messages changes no result
    for b in pair:
        b.qvel = 0.5
        b.expand("dof_damping")[:] = np.linspace(1, 2, N)[:, None]
        b.step()
    assert [w.requests - n for w, n in zip(batch._workers, before, strict=True)] == [1, 1]
    assert np.array_equal(batch.qpos, local.qpos)


def test_repeated_assignments_do_not_accumulate(pair):
    batch, local = pair
    for k in range(250):
        batch.set("qvel", 0.01 * k, ids=[2, 20])
        local.qvel[[2, 20]] = 0.01 * k
    assert max(w.nposted for w in batch._workers) < 100  # the bound concerns memory only
    assert np.array_equal(batch.qvel, local.qvel)


def test_pending_calls_are_bounded(pair, monkeypatch):
    """Calls are split in pieces, in steps of worlds and in bytes, to bound Ctrl-C's delay and Ray's store, too."""
    batch, _ = pair
    monkeypatch.setattr(Batch, "_learn", lambda self, steps, seconds: None)
    monkeypatch.setitem(batch.__dict__, "_at_once", 10 * N)
    for _ in range(100):
        batch.step()
        assert len(under_way(batch)) <= pieces.MOST_PIECES
    for _ in range(10):
        batch.step(7)
        assert sum(p.size.nstep * p.size.number for p in under_way(batch)) <= pieces.DEPTH * 10 * N
    batch.wait()
    most, issue = [], batch._issue  # the peak is inside the call

    def watched(*given, **named):
        issue(*given, **named)
        most.append((len(under_way(batch)), sum(p.size.nbytes for p in under_way(batch))))

    monkeypatch.setitem(batch.__dict__, "_issue", watched)
    monkeypatch.setitem(batch.__dict__, "_at_once", 10_000 * N)
    monkeypatch.setattr(pieces, "CHUNK", 1 << 12)
    parts = batch.rollout(60, record=("qpos", "qvel"), out="refs")
    assert len(parts) == 2 * 60 // 10
    assert max(n for n, _ in most) == pieces.DEPTH and max(nbytes for _, nbytes in most) <= pieces.DEPTH << 12


def test_an_error_of_an_asynchronous_call_is_raised_by_the_next_call(pair):
    batch, local = pair
    for b in pair:
        b.step(3)
    held = batch.expand("dof_damping")
    local.expand("dof_damping")[:] = held
    ask_for_what_is_not_there(batch)
    batch.qvel = 7.0  # after it: undone with it
    held[:] = 0.25
    batch.step(4)
    with pytest.raises(fl.errors.UnknownAttributeError, match="no_such") as found:
        batch.qpos  # noqa: B018
    assert any("an earlier call, which returned" in note for note in found.value.__notes__)
    assert any("worker whose first world is 16" in note for note in found.value.__notes__)
    assert np.array_equal(batch.qpos, local.qpos) and np.array_equal(batch.qvel, local.qvel)
    local.expand("dof_damping")[:] = 0.25  # live values are sent again
    for b in pair:
        b.step(5)
    assert np.array_equal(batch.qvel, local.qvel)


def test_assignments_before_a_failed_call_are_kept(pair):
    batch, local = pair
    for b in pair:
        b.qvel = 1.5
    with pytest.raises(fl.errors.UnknownAttributeError):
        batch.call(lambda own: own.no_such)
    for b in pair:
        b.qpos = 0.5
    ask_for_what_is_not_there(batch)
    with pytest.raises(fl.errors.UnknownAttributeError):
        batch.wait()
    for b in pair:
        b.step(2)
    assert np.array_equal(batch.qpos, local.qpos)


@pytest.mark.ci
def test_a_late_error_is_raised_when_the_batch_is_closed(model, cluster):
    batch = Batch(model, N, 2, nthread=1)
    with pytest.raises(fl.errors.UnknownAttributeError), batch:
        ask_for_what_is_not_there(batch)
    with pytest.raises(fl.errors.CallError):
        batch.wait()


@pytest.mark.ci
def test_a_checkpoint_is_never_written_over_the_last_one(model, cluster, tmp_path):
    with Batch(model, N, 2, nthread=1, checkpoint_every=1, checkpoint_folder=tmp_path) as batch:
        for _ in range(5):
            batch.rollout(1)  # which waits for the recorded data, not for the checkpoint after it
            assert [type(piece) for piece in under_way(batch)] == [Checkpoints]
            for worker in batch._workers:  # checkpoints are read only after a loss
                written = [o[1][1] for r in worker._past.log if not r.is_done for o in r.orders if o[0] == "keep"]
                assert len(written) == 1
                assert worker._past.base is None or Path(worker._past.base).name not in written
            batch.wait()
            assert not under_way(batch)
        assert len(list(tmp_path.glob("worlds-*.batch"))) == 4
