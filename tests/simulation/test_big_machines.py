"""What threads share, and what a million worlds take: counted here, for nobody has a machine of 64 cores at hand."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

import featherlane as fl
from featherlane.simulation.tile.work import CHUNKS, MOST_TILES, Work

THREADS = 64
LINE = 64  # bytes of a cache line
PATIENCE = 60.0  # [s]


def plan_of(run):
    """A plan whose threads all call `run(thread, first tile, last tile)`."""
    calls = SimpleNamespace(calls_python=False, raise_errors=lambda: None)
    return SimpleNamespace(run=[run] * THREADS, workspaces=[SimpleNamespace(calls=calls)])


def test_no_lock_is_held_while_a_thread_runs_its_tiles():
    """All threads are within a chunk at the same time, or none gets past the barrier."""
    barrier, met = threading.Barrier(THREADS), []

    def run(thread, first, last):
        barrier.wait(PATIENCE)
        met.append((first, last))

    with ThreadPoolExecutor(THREADS) as pool:
        Work([(plan_of(run), THREADS)], THREADS, lambda: pool).finish()
    assert sorted(met) == [(k, k + 1) for k in range(THREADS)]


@pytest.mark.parametrize("ntile", [1, THREADS - 1, 1000, 131_072])
def test_threads_meet_at_the_queue_alone_and_seldom(ntile):
    """Every tile is run once; a thread goes to the queue once for each chunk, however many tiles there are."""
    taken = []

    def run(thread, first, last):
        taken.append((first, last))

    with ThreadPoolExecutor(THREADS) as pool:
        Work([(plan_of(run), ntile)], THREADS, lambda: pool).finish()
    tiles = list(itertools.chain.from_iterable(range(*chunk) for chunk in taken))
    assert sorted(tiles) == list(range(ntile))
    assert len(taken) <= max(ntile / MOST_TILES, 2 * CHUNKS * THREADS) + 1


def test_threads_write_to_no_cache_line_of_another():
    batch = fl.Batch(fl.load("humanoid"), 8 * THREADS, nthread=THREADS)
    batch.step()
    spans = []
    for k, workspace in enumerate(batch._prepare()):
        for array in workspace.arrays.values():
            start = array.__array_interface__["data"][0]
            if array.size:
                spans.append((start // LINE, (start + array.nbytes - 1) // LINE, k))
    spans.sort()
    assert {k for *_, k in spans} == set(range(THREADS))
    assert all(b[0] > a[1] for a, b in itertools.pairwise(spans) if a[2] != b[2])


def test_a_world_takes_its_rows_and_little_else():
    """Memory grows with threads, not with worlds, but for the rows that last."""
    program = """
import featherlane as fl
def resident():
    return 4096 * int(open('/proc/self/statm').read().split()[1])
model = fl.load('cartpole')
fl.Batch(model, 8).step(2)
before, n = resident(), 1_000_000
batch = fl.Batch(model, n, nthread=2)
batch.step()
rows = sum(a.nbytes for a in batch._arrays.values()) / n
print(rows, (resident() - before) / n)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    rows, taken = map(float, done.stdout.split())
    assert rows < 200
    assert taken < 2 * rows


def test_what_many_threads_step_has_the_same_bits():
    alone, many = (fl.Batch(fl.load("quadruped"), 200, nthread=n) for n in (1, THREADS))
    for batch in (alone, many):
        batch.qvel[:] = np.random.default_rng(1).normal(size=batch.qvel.shape)
        batch.step(20)
    assert np.array_equal(alone.qpos, many.qpos) and np.array_equal(alone.qvel, many.qvel)
