"""What threads share, and what a million worlds take: counted here, for nobody has a machine of 64 cores at hand."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

import featherlane as fl
from featherlane.simulation.batch import running
from featherlane.simulation.tile.team import Team
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


def test_each_thread_makes_what_it_works_on_and_has_it_again():
    """The first to write to a page decides where it lies: it is the thread that steps there, call after call."""
    team = Team(THREADS)
    for _ in range(3):
        makers = team.build(threading.get_ident)
        assert makers[0] == threading.get_ident() and len(set(makers)) == THREADS
        for _ in range(5):
            barrier, met = threading.Barrier(THREADS), {}

            def run(thread, first, last, barrier=barrier, met=met):
                barrier.wait(PATIENCE)
                met[thread] = threading.get_ident()

            Work([(plan_of(run), THREADS)], THREADS, team.pool, team.homes).finish()
            assert [met[k] for k in range(THREADS)] == makers


def test_a_thread_takes_another_workspace_where_its_own_is_taken():
    """Two threads are never in one, whoever comes first: numbers are a preference."""
    team, inside, seen = Team(4), set(), []
    team.build(threading.get_ident)

    def run(thread, first, last):
        assert thread not in inside
        inside.add(thread)
        time.sleep(0.0005 * (first % 3))
        inside.discard(thread)
        seen.append((first, last))

    for others in ({}, dict.fromkeys(team.homes, 2), {k: 9 for k in team.homes}, team.homes):
        seen.clear()
        Work([(plan_of(run), 300)], 4, team.pool, others).finish()
        assert sorted(itertools.chain.from_iterable(range(*chunk) for chunk in seen)) == list(range(300))


def test_workspaces_are_made_by_the_threads_of_the_batch(monkeypatch):
    makers = []

    class Watched(running.Workspace):
        def __init__(self, *given):
            makers.append(threading.get_ident())
            super().__init__(*given)

    monkeypatch.setattr(running, "Workspace", Watched)
    batch = fl.Batch(fl.load("pendulum"), 64, nthread=5)
    batch.step()
    assert len(makers) == len(set(makers)) == 5
    assert set(makers) == {threading.get_ident(), *batch._team.homes}
    groups = fl.MixedBatch([(fl.load("pendulum"), 16), (fl.load("cartpole"), 16)], nthread=3)
    makers.clear()
    groups.step()
    assert len(makers) == 6 and len(set(makers)) == 3  # one team for all groups


def test_what_goes_wrong_in_a_thread_that_makes_its_own_is_raised():
    team, lock = Team(4), threading.Lock()
    made = []

    def make():
        with lock:
            made.append(1)
            if len(made) == 3:
                raise KeyError("no room")

    with pytest.raises(KeyError, match="no room"):
        team.build(make)
    made.clear()
    made += [1] * 3
    assert team.build(make) == [None] * 4  # nobody waits for the other any more


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
