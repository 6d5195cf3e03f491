"""Tests a predicted instability: a push along it must not decay in a trial.

Two worlds start equally, except for the push.  The prediction is refuted if their difference halves without doubling
before, no velocity alternates from step to step at the end, and no status code is counted.  A refuted prediction is a
note.
"""

from __future__ import annotations

import warnings

import numpy as np

from featherlane import Batch, Data, forward
from featherlane.apps.doctor.examined_model import ExaminedModel, Start
from featherlane.errors import CapacityWarning, NonFiniteWarning
from featherlane.query import jac

PUSH = 1e-3  # m/s, rad/s
TENFOLD = 10.0  # smallest predicted growth in a trial that a decay refutes
TINY = 1e-15  # 1/kg: a direction that nothing moves along
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
    moved = np.linalg.lstsq(start.M, J)[0]
    return PUSH * moved / max(float(J @ moved), TINY)


def push_of_row(examined: ExaminedModel, kind: str, ident: int) -> np.ndarray:
    """Returns the push (nv,) along an equality, or along the normal of the first contact of a geom or a pair in qpos0.

    Without such a contact all velocities are changed.
    """
    m, start = examined.model, examined.start
    if kind == "equality":
        return push_along(start, start.rows["J"][start.rows["id"] == ident].sum(axis=0))
    geoms = [ident] if kind == "geom" else [int(m.pair_geom1[ident]), int(m.pair_geom2[ident])]
    for contact in start.contact:
        if np.isin(geoms, contact.geom).all():
            data = Data(m)
            forward(m, data)
            bodies = m.geom_bodyid[contact.geom]
            first, second = (jac(m, data, contact.pos, int(b))[0] for b in bodies)
            J = contact.frame[:3] @ (second - first)
            return push_along(start, J) if J.any() else push_all(start)
    return push_all(start)


def push_all(start: Start) -> np.ndarray:
    """Returns a change of all velocities (nv,), with signs that change from DoF to DoF."""
    return PUSH * np.where(np.random.default_rng(0).random(len(start.M)) < 0.5, -1.0, 1.0)
