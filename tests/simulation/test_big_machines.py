"""Memory shared by threads, and memory of a million worlds: counted here, without a machine of 64 cores."""

from __future__ import annotations

import functools
import gc
import itertools
import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.batch import plans
from featherlane.engine.simulation.tile.team import Team
from featherlane.engine.simulation.tile.work import CHUNKS, MOST_TILES, work

THREADS = 64
LINE = 64  # bytes of a cache line
PATIENCE = 60.0  # [s]


def plan_of(run):
    """Returns a plan whose threads all call `run(thread, first tile, last tile)`."""
    calls = SimpleNamespace(calls_python=False, raise_errors=lambda: None)
    return SimpleNamespace(run=[functools.partial(run)] * THREADS, workspaces=[SimpleNamespace(calls=calls)])


def test_no_lock_is_held_while_a_thread_runs_its_tiles():
    """All threads are inside a chunk at the same time, or none passes the barrier."""
    barrier, met = threading.Barrier(THREADS), []

    def run(thread, first, last):
        barrier.wait(PATIENCE)
        met.append((first, last))

    work([(plan_of(run), THREADS)], Team(THREADS))
    assert sorted(met) == [(k, k + 1) for k in range(THREADS)]


@pytest.mark.parametrize("ntile", [1, THREADS - 1, 1000, 131_072])
def test_threads_synchronize_at_the_queue_only_and_rarely(ntile):
    """Every tile runs once; a thread accesses the queue once per chunk, for any number of tiles."""
    taken = []

    def run(thread, first, last):
        taken.append((first, last))

    work([(plan_of(run), ntile)], Team(THREADS))
    tiles = list(itertools.chain.from_iterable(range(*chunk) for chunk in taken))
    assert sorted(tiles) == list(range(ntile))
    assert len(taken) <= max(ntile / MOST_TILES, 2 * CHUNKS * THREADS) + 1


def test_threads_write_to_no_cache_line_of_another():
    batch = fl.Batch(fl.bundled("humanoid"), 8 * THREADS, nthread=THREADS)
    batch.step()
    spans = []
    for k, workspace in enumerate(batch.runner.plans.prepare(batch.width)):  # no public name has tiles' addresses
        for array in workspace.arrays.values():
            start = array.__array_interface__["data"][0]
            if array.size:
                spans.append((start // LINE, (start + array.nbytes - 1) // LINE, k))
    spans.sort()
    assert {k for *_, k in spans} == set(range(THREADS))
    assert all(b[0] > a[1] for a, b in itertools.pairwise(spans) if a[2] != b[2])


def test_each_thread_allocates_and_reuses_its_workspace():
    """The first thread to write to a page decides its memory node: it is the thread that steps there in every call."""
    team = Team(THREADS)
    for _ in range(3):
        makers = team.build(threading.get_ident)
        assert makers[0] == threading.get_ident() and len(set(makers)) == THREADS
        for _ in range(5):
            barrier, met = threading.Barrier(THREADS), {}

            def run(thread, first, last, barrier=barrier, met=met):
                barrier.wait(PATIENCE)
                met[thread] = threading.get_ident()

            work([(plan_of(run), THREADS)], team)
            assert [met[k] for k in range(THREADS)] == makers


def test_workspaces_are_made_by_the_threads_of_the_batch(monkeypatch):
    makers = []

    class Watched(plans.Workspace):
        def __init__(self, *given):
            makers.append(threading.get_ident())
            super().__init__(*given)

    monkeypatch.setattr(plans, "Workspace", Watched)
    batch = fl.Batch(fl.bundled("pendulum"), 64, nthread=5)
    batch.step()
    assert len(makers) == len(set(makers)) == 5
    assert threading.get_ident() in makers
    groups = fl.MixedBatch([(fl.bundled("pendulum"), 16), (fl.bundled("cartpole"), 16)], nthread=3)
    makers.clear()
    groups.step()
    assert len(makers) == 6 and len(set(makers)) == 3  # one team for all groups


def test_an_error_in_a_thread_is_raised_once_all_have_ended():
    team, made = Team(4), []

    def make():
        made.append(1)
        if len(made) == 3:
            raise KeyError("no room")
        return len(made)

    with pytest.raises(KeyError, match="no room"):
        team.build(make)
    assert len(made) == 4
    assert sorted(team.build(make)) == [5, 6, 7, 8]


def test_threads_end_with_their_batch():
    def serving():
        """Returns the threads of batches, once their number no longer falls."""
        deadline, number = time.monotonic() + PATIENCE, -1
        while (now := sum(f.f_code.co_name == "_serve" for f in sys._current_frames().values())) != number:
            assert time.monotonic() < deadline
            number = now
            time.sleep(0.05)
        return number

    gc.collect()
    before = serving()
    batch = fl.Batch(fl.bundled("pendulum"), 64, nthread=5)
    batch.step()
    assert serving() == before + 4
    del batch
    assert serving() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork there")
def test_a_forked_process_starts_its_own_threads():
    program = """
import os, warnings
import featherlane as fl
warnings.simplefilter("ignore")
batch = fl.Batch(fl.bundled("cartpole"), 64, nthread=3)
batch.ctrl[:] = 0.3
batch.step()
child = os.fork()
batch.step(3)
os.write(1, batch.qpos.tobytes().hex().encode() + b"\\n")  # one write, which the other process does not divide
if child:
    assert os.waitpid(child, 0)[1] == 0
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    child, parent = done.stdout.split()
    assert child == parent and int(child, 16)


def test_memory_per_world_is_little_more_than_its_rows():
    """Memory grows with threads, not with worlds, except for persistent rows."""
    program = """
import featherlane as fl
def resident():
    return 4096 * int(open('/proc/self/statm').read().split()[1])
model = fl.bundled('cartpole')
fl.Batch(model, 8).step(2)
before, n = resident(), 1_000_000
batch = fl.Batch(model, n, nthread=2)
batch.step()
taken = resident() - before
print(sum(a.nbytes for a in batch.checkpoint().values()) / n, taken / n)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    rows, taken = map(float, done.stdout.split())
    assert rows < 200
    assert taken < 2 * rows


def test_many_threads_give_bitwise_equal_steps():
    alone, many = (fl.Batch(fl.bundled("quadruped"), 200, nthread=n) for n in (1, THREADS))
    for batch in (alone, many):
        batch.qvel[:] = np.random.default_rng(1).normal(size=batch.qvel.shape)
        batch.step(20)
    assert np.array_equal(alone.qpos, many.qpos) and np.array_equal(alone.qvel, many.qvel)
