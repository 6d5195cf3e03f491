"""Viewing worlds that another program steps: shown unchanged, not modified, without loss of speed or accuracy."""

import copy
import importlib
import pickle
import threading
import time

import numpy as np
import pytest

import featherlane as fl
from featherlane.apps.viewer.watch import Watch


@pytest.fixture
def model():
    return fl.bundled("humanoid")


def watcher(batch):
    """Returns the callbacks after a batch's calls: no public attribute shows whether there are any."""
    return batch.runner.watcher


def driven(batch, n=150):
    for k in range(n):
        batch.ctrl[:] = np.sin(k + np.arange(batch.nworld))[:, None]
        batch.step(2)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_watched_batch_takes_the_same_steps(model, dtype):
    alone, seen = fl.Batch(model, 24, dtype=dtype), fl.Batch(model, 24, dtype=dtype)
    driven(alone, 1500)
    watch = Watch(seen)
    watch.attach()
    thread = threading.Thread(target=driven, args=(seen, 1500))
    thread.start()
    taken = 0
    while thread.is_alive():
        taken += watch.tick()
        time.sleep(2e-3)
    thread.join()
    assert taken > 0
    assert alone.qpos.tobytes() == seen.qpos.tobytes()


def test_an_observed_state_is_the_state_after_a_call(model):
    """Every copy is a state that the worlds really had: each is found among their states after calls."""
    batch, copies = fl.Batch(model, 8), []
    states = {batch.qpos.tobytes()}
    watch = Watch(batch)
    watch.rate = 1e9
    watch.attach()
    done = threading.Event()

    def look():
        while not done.is_set():
            if watch.tick():
                copies.append(watch.batch.qpos.tobytes())

    thread = threading.Thread(target=look)
    thread.start()
    for _ in range(200):
        batch.step()
        states.add(batch.qpos.tobytes())
    done.set()
    thread.join()
    assert copies and set(copies) <= states


def test_an_idle_batch_shows_its_current_state(model):
    batch = fl.Batch(model, 3)
    watch = Watch(batch)
    watch.attach()
    batch.qpos[:, 2] = (3, 4, 5)
    batch.reset([1])
    assert watch.tick()
    assert watch.batch.qpos[:, 2].tolist() == [3, model.qpos0[2], 5]


def test_a_group_of_a_mixed_batch_is_shown_while_all_worlds_step(model):
    batch = fl.MixedBatch([(fl.bundled("pendulum"), 2), (model, 3)])
    watch = Watch(batch, 1)
    watch.rate = 1e9
    watch.attach()
    for _ in range(3):
        batch.step()
        assert watch.tick()
        np.testing.assert_array_equal(watch.batch.qpos, batch.groups[1].qpos)


def test_an_unobserved_batch_reports_nothing(model):
    batch = fl.Batch(model, 2)
    watch = Watch(batch)
    assert watcher(batch) is None
    watch.attach()
    assert watcher(batch) is not None
    assert watcher(copy.copy(batch)) is None and watcher(pickle.loads(pickle.dumps(batch))) is None
    watch.detach()
    assert watcher(batch) is None
    batch.step()


def test_long_rollouts_are_shown_during_the_call(model):
    batch = fl.Batch(model, 2, record_failures=4)
    watch, times = Watch(batch), set()
    watch.rate = 1e9
    watch.attach()
    look = watcher(batch)

    def count():
        look()
        watch.tick()
        times.add(float(watch.batch.time[0]))

    batch.watch(count)
    batch.rollout(300)
    assert len(times) > 2


def test_a_data_is_shown_while_it_runs(model):
    data = fl.Data(model)
    watch = Watch(data)
    watch.attach()

    def run():
        for _ in range(5000):
            fl.step(model, data)

    thread = threading.Thread(target=run)
    thread.start()
    times = []
    while thread.is_alive():
        if watch.tick():
            times.append(float(watch.batch.time[0]))
        time.sleep(2e-3)
    thread.join()
    assert times == sorted(times)
    time.sleep(1.0 / watch.rate + 0.01)
    watch.tick()
    assert np.array_equal(watch.batch.qpos[0], data.qpos) and watch.batch.time[0] == data.time


def test_only_drawn_worlds_are_copied(model, monkeypatch):
    monkeypatch.setattr(importlib.import_module("featherlane.apps.viewer.watch"), "MOST_BYTES", 1000)
    batch = fl.Batch(model, 6)
    watch = Watch(batch)
    watch.drawn = np.array([1, 4])
    watch.attach()
    batch.step(5)
    watch.tick()
    assert watch.batch.time == pytest.approx([0, 0.025, 0, 0, 0.025, 0])
    watch.whole()
    assert np.array_equal(watch.batch.qpos, batch.qpos)
    assert watch.drawn.tolist() == [1, 4]


def test_edits_of_the_model_and_of_worlds_are_shown(model, monkeypatch):
    monkeypatch.setattr(importlib.import_module("featherlane.apps.viewer.watch"), "MODEL_SECONDS", 0.0)
    batch = fl.Batch(model, 2)
    watch = Watch(batch)
    watch.attach()
    model.opt.gravity = (0, 0, -1)
    model.opt.solver = "cg"
    batch.expand("geom_friction")[1] = 0.5
    batch.step()
    watch.tick()
    assert watch.model.opt.gravity.tolist() == [0, 0, -1] and watch.model.opt.solver == model.opt.solver
    assert np.array_equal(watch.batch.expanded("geom_friction"), batch.expanded("geom_friction"))
    assert watch.model is not model


def test_later_inputs_are_shown(model):
    """Applied forces have rows once they are written; sleep once its flag is on."""
    batch = fl.Batch(model, 2)
    watch = Watch(batch)
    watch.rate = 1e9
    watch.attach()
    batch.xfrc_applied[1, 1, 2] = 100.0
    batch.step()
    watch.tick()
    assert watch.batch.xfrc_applied[1, 1, 2] == 100.0
    model.opt.enableflags = "sleep"
    batch.step()
    watch.tick()
    assert np.array_equal(watch.batch.tree_asleep, batch.tree_asleep)
