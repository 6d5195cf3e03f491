"""Threads that are pinned to cores: where they run, equal results, and what is refused."""

from __future__ import annotations

import os
import pickle
import threading

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.lanes import cores as cores_module
from featherlane.engine.simulation.tile import work as work_module
from featherlane.engine.simulation.tile.team import Team

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot pin threads")


@pytest.fixture
def usable():
    return sorted(os.sched_getaffinity(0))


def moved(batch):
    batch.ctrl = np.random.default_rng(0).uniform(-1, 1, batch.ctrl.shape)
    batch.bind("xpos")
    batch.step(3)
    batch.step(2, ids=np.arange(0, batch.nworld, 3))
    batch.expand("body_mass")[:, 1] *= 1.5
    batch.rollout(2)
    return batch


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_results_are_bitwise_equal(usable, dtype):
    model, cpus = fl.bundled("humanoid"), usable[:2]
    free, pinned = fl.Batch(model, 600, 1, dtype=dtype), fl.Batch(model, 600, dtype=dtype, cpu_ids=cpus)
    assert pinned.nthread == len(cpus)
    for batch in (free, pinned):
        moved(batch)
    for name in ("qpos", "qvel", "xpos", "ncon"):
        np.testing.assert_array_equal(getattr(free, name), getattr(pinned, name))
    for other in (pickle.loads(pickle.dumps(pinned)), pinned.copy()):
        assert other.runner.plans.team.cpus == tuple(cpus)
        other.step()
    free.step(), pinned.step()
    np.testing.assert_array_equal(free.qpos, pinned.qpos)
    np.testing.assert_array_equal(free.qpos, other.qpos)


def test_each_thread_runs_on_its_core_and_the_caller_is_not_pinned(usable):
    team, found = Team(len(usable), tuple(reversed(usable))), {}

    def look(k):
        found[k] = os.sched_getaffinity(0), threading.get_ident()

    team.run({k: (lambda k=k: look(k)) for k in range(len(usable))})
    assert [found[k][0] for k in range(len(usable))] == [{cpu} for cpu in reversed(usable)]
    assert threading.get_ident() not in {ident for _, ident in found.values()}
    made = team.build(lambda: os.sched_getaffinity(0))
    assert made == [{cpu} for cpu in reversed(usable)]
    assert sorted(os.sched_getaffinity(0)) == usable


def test_a_mixed_batch_has_pinned_threads(usable):
    models = [(fl.bundled("cartpole"), 20), (fl.bundled("arm"), 30)]
    free, pinned = fl.MixedBatch(models, 1), fl.MixedBatch(models, cpu_ids=usable[:1])
    for batch in (free, pinned):
        batch.qvel = 0.1
        batch.step(5)
    np.testing.assert_array_equal(free.qpos, pinned.qpos)
    assert pinned.groups[1].runner.plans.team.cpus == tuple(usable[:1])


@pytest.mark.parametrize("nthread", [1, 2, 3, 7])
@pytest.mark.parametrize("n", [1, 2, 9, 40])
def test_own_and_common_chunks_are_all_chunks(n, nthread):
    every = [(k, k + 1) for k in range(n)]
    common = list(every)
    own = work_module._own_chunks(common, nthread)
    taken = [chunk for some in own for chunk in some]
    assert len(own) == nthread and sorted(common + taken) == every and taken == sorted(taken)


def test_wrong_cores_are_refused(usable, monkeypatch):
    model, free = fl.bundled("cartpole"), max(usable) + 1
    for given, match in (
        ([free], f"cpu_ids: got {free}, allowed"),
        ([usable[0]] * 2, "different cores"),
        ([], "different cores"),
        ("core", "numbers of cores"),
        ([0.5], "numbers of cores"),
        (0, "numbers of cores"),
    ):
        with pytest.raises(fl.ModelError, match=match):
            fl.Batch(model, 2, cpu_ids=given)
    with pytest.raises(fl.ModelError, match=r"1 cores for 2 threads"):
        fl.Batch(model, 2, nthread=2, cpu_ids=usable[:1])
    monkeypatch.delattr(cores_module.os, "sched_setaffinity")
    with pytest.raises(fl.ModelError, match="cannot pin threads"):
        fl.Batch(model, 2, cpu_ids=usable[:1])
