"""Worlds of several batches in one call: the results of separate calls."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.extension import roll_together, step_together

NAMES = "quadruped", "arm"
CHOSEN = np.array([0, 3, 4]), np.arange(6)


def batches(rng, nthread=2):
    made = [fl.Batch(fl.bundled(name), 6, nthread=nthread) for name in NAMES]
    for batch in made:
        batch.qvel[:] = rng.normal(0, 0.3, batch.qvel.shape)
        batch.bind("xpos")
    return made, [batch.copy() for batch in made]


@pytest.mark.parametrize(("nstep", "stage"), [(3, None), (2, "velocity"), (0, None)])
def test_steps_are_those_of_separate_calls(rng, nstep, stage):
    together, alone = batches(rng)
    step_together(nstep, list(zip(together, CHOSEN, strict=True)), stage)
    for one, other, ids in zip(together, alone, CHOSEN, strict=True):
        if nstep:
            other.step(nstep, ids=ids, stage=stage)
        else:
            other.forward(ids)
        assert np.array_equal(one.get_state(), other.get_state())
        assert np.array_equal(one.xpos, other.xpos, equal_nan=True)


def test_rollouts_are_those_of_separate_calls(rng):
    together, alone = batches(rng)
    parts, expected = [], []
    for one, other, ids in zip(together, alone, CHOSEN, strict=True):
        control = {"ctrl": rng.normal(size=(len(ids), 4, one.model.nu))}
        expected.append(other.rollout(4, control, ("qpos", "xpos"), ids=ids))
        parts.append((one, ids, control, {name: np.empty_like(rows) for name, rows in expected[-1].items()}))
    roll_together(4, parts)
    for (*_, found), own in zip(parts, expected, strict=True):
        assert all(np.array_equal(found[name], own[name]) for name in own)


def test_numbers_of_threads_are_equal(rng):
    (one, _), (_, other) = batches(rng)[0], batches(rng, 1)[0]
    with pytest.raises(fl.ModelError, match="threads"):
        step_together(1, [(one, CHOSEN[1]), (other, CHOSEN[1])])
