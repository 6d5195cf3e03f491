"""Repeated calls of a batch of one world, which skip their preparation: everything that changes in between counts."""

from __future__ import annotations

import numpy as np
import pytest

import featherlane as fl


def heavier(batch):
    batch.expand("body_mass")[:] *= 2.0


def sleepy(batch):
    batch.model.opt.enableflags = "sleep"


CHANGES = {
    "nothing": lambda batch: None,
    "option": lambda batch: setattr(batch.model.opt, "gravity", (0.0, 0.0, -3.0)),
    "integer option": lambda batch: setattr(batch.model.opt, "solver", "cg"),
    "mass": lambda batch: batch.model.body_mass.__setitem__(1, 9.0),
    "expanded mass": heavier,
    "output": lambda batch: batch.bind("xpos"),
    "input": lambda batch: setattr(batch, "qfrc_applied", 0.3),
    "sleep": sleepy,
    "reset": lambda batch: batch.reset(),
    "state": lambda batch: setattr(batch, "qvel", 0.2),
    "forward": lambda batch: batch.forward(),
    "rollout": lambda batch: batch.rollout(3),
    "query": lambda batch: batch.ray((0, 0, 1), (0, 0, -1)),
    "stage": lambda batch: batch.step(2, stage="position"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_between_calls_acts_as_in_a_batch_of_two_worlds(name):
    """A batch of two worlds prepares each call; `nthread=1` and equal worlds give equal bits."""
    found = []
    for nworld in (1, 2):
        batch = fl.Batch(fl.bundled("humanoid"), nworld, nthread=1)
        batch.ctrl = 0.1
        for _ in range(3):
            batch.step(5)
        CHANGES[name](batch)
        for _ in range(3):
            batch.step(5)
        batch.step(2)
        rows = {
            field: np.array(getattr(batch, field)[0]) for field in ("qpos", "qvel", "time", "ncon", "qacc_warmstart")
        }
        if name == "output":
            rows["xpos"] = np.array(batch.xpos[0])
        found.append(rows)
    for field, value in found[0].items():
        np.testing.assert_array_equal(value, found[1][field], field)


def test_an_invalid_value_between_calls_is_refused():
    model = fl.bundled("cartpole")
    batch = fl.Batch(model, 1)
    for _ in range(3):
        batch.step()
    model.body_mass[1] = -1.0
    with pytest.raises(fl.ModelError, match="body_mass"):
        batch.step()
    model.body_mass[1] = 1.0
    batch.step()


def test_other_batches_of_the_model_do_not_hide_an_edit():
    model = fl.bundled("cartpole")
    first, second = (fl.Batch(model, 1) for _ in range(2))
    for batch in (first, second, first, second):
        batch.step()
    model.body_mass[1] = 4.0
    second.step()
    first.step()
    np.testing.assert_array_equal(first.qpos, second.qpos)


def test_each_repeated_call_is_reported_to_the_watcher_and_counted():
    batch, calls = fl.Batch(fl.bundled("cartpole"), 1), []
    batch.watch(lambda: calls.append(float(batch.time[0])))
    for _ in range(4):
        batch.step()
    assert len(calls) == 4 and calls == sorted(calls)
    batch.qvel[:] = np.nan
    with pytest.warns(fl.NonFiniteWarning):
        batch.step()
    assert batch.status["non_finite"].tolist() == [1] and batch.nreset.tolist() == [1]


def test_a_repeated_call_within_a_call_is_refused():
    batch = fl.Batch(fl.bundled("cartpole"), 1)
    for _ in range(3):
        batch.step()
    batch.watch(batch.step)
    with pytest.raises(RuntimeError, match="another call"):
        batch.step()
