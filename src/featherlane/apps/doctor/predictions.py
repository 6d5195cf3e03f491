"""Tests a predicted instability: a push along it must not decay in a trial.

Two worlds start equally, except for the push.  The prediction is refuted if their difference halves without doubling
before, no velocity alternates from step to step at the end, and no status code is counted.  A refuted prediction is a
note.
"""

from __future__ import annotations

import warnings

import numpy as np

from featherlane import Batch
from featherlane.apps.doctor.examined_model import ExaminedModel, Start
from featherlane.errors import CapacityWarning, NonFiniteWarning

PUSH = 1e-3  # m/s, rad/s
TENFOLD = 10.0  # smallest predicted growth in a trial that a decay refutes
DOUBLE = 2.0  # a push moves energy between inertia, springs and rows before it decays
LAST = 20  # steps at the end without an alternating velocity
REFUTED = "; not confirmed: a push along it decays in a trial from "


def is_refuted(examined: ExaminedModel, start: Start, direction: np.ndarray, factor: float) -> bool:
    """Returns whether a push (nv,) decays in a trial, although each step should multiply it by a factor."""
    m, steps = examined.model, examined.trial_steps
    if not steps * np.log(factor) > np.log(TENFOLD) or steps <= 2 * LAST:
        return False
    if any(np.isfinite(trial.when) for trial in examined.trials):
        return False
    batch = Batch(m, 2, nthread=1)
    batch.reset(keyframe=np.full(2, start.keyframe))
    batch.qvel[1] += direction
    with warnings.catch_warnings():
        for category in (CapacityWarning, NonFiniteWarning):
            warnings.simplefilter("ignore", category)
        velocity = np.asarray(batch.rollout(steps, record=("qvel",))["qvel"])
    if any(counts.any() for counts in batch.status.values()) or not np.isfinite(velocity).all():
        return False
    difference = velocity[1] - velocity[0]
    size = np.sqrt(np.maximum(np.einsum("ti,ij,tj->t", difference, start.M, difference), 0.0))
    first = np.sqrt(float(direction @ start.M @ direction))
    bends = velocity[:, -LAST - 2 :]
    alternating = np.abs(bends[:, 2:] - 2 * bends[:, 1:-1] + bends[:, :-2]).max() / 4  # its amplitude if it alternates
    return bool(size.max() < DOUBLE * first and size[-1] < first / 2 and alternating < PUSH)


def push_along(start: Start, J: np.ndarray) -> np.ndarray:
    """Returns the change of velocity (nv,) by an impulse along J, of the speed PUSH along it."""
    moved = np.linalg.solve(start.M, J)
    return PUSH * moved / float(J @ moved)


def push_all(start: Start) -> np.ndarray:
    """Returns a change of all velocities (nv,), with signs that change from DoF to DoF."""
    return PUSH * np.where(np.random.default_rng(0).random(len(start.M)) < 0.5, -1.0, 1.0)
