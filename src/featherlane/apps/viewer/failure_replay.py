"""Replays the last second of a world before it became non-finite; the replay from the history is bitwise identical."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import featherlane as fl
from featherlane import Batch, MixedBatch, Model
from featherlane.apps.viewer.history import FRAME, History, Moment, kept_of_world, pulled_step
from featherlane.apps.viewer.source import BAD
from featherlane.errors import ModelError

SECONDS = 1.0
INPUTS = frozenset("ctrl qfrc_applied xfrc_applied eq_active mocap_pos mocap_quat".split())  # that the user sets


@dataclass
class Incident:
    """The last second of a world before it became non-finite or out of range."""

    world: int
    clock: float  # of the session at the start of the piece with the failure [s]
    model: Model  # of this world at that time
    pieces: list[Moment]  # of this world alone, up to the failure; the last one contains it
    dtype: np.dtype

    def replay(self) -> tuple[dict[str, np.ndarray], fl.results.Failure]:
        """Repeats all steps of the second, up to the failed one.

        Returns:
            Frames (1, nframe, ...) by name, in the format of a recording, and the `Failure`, which can be saved.

        Raises:
            ModelError: the failure did not occur again.
        """
        total = sum(piece.steps for piece in self.pieces)
        batch = Batch(self.model, 1, nthread=1, dtype=self.dtype, record_failures=max(total, 1))
        batch.mute()
        batch.restore(self.pieces[0].kept)
        for piece in self.pieces:
            for name in INPUTS & piece.kept.keys():
                rows = getattr(batch, name)
                rows[...] = piece.kept[name].reshape(rows.shape)
            for k in range(piece.steps):
                pulled_step(batch, piece.pulls[k] if piece.pulls else [])
                for failure in batch.failures:
                    if not {*BAD}.isdisjoint(failure.causes):
                        return frames_of(failure), failure
        raise ModelError("the failure did not occur again in the replay")


def frames_of(failure: fl.results.Failure) -> dict[str, np.ndarray]:
    """Returns the recorded states of a failure as frames of one world, (1, nframe, ...) by name."""
    rows = {name: failure.states[name][None] for name in FRAME if name in failure.states}
    return rows | {"time": rows["time"].reshape(1, -1)}


def incident_of(batch: Batch | MixedBatch, world: int, history: History, epoch: int) -> Incident:
    """Collects the history of a world that failed in the newest moment, after the last edit of the model (`epoch`)."""
    newest = history[-1]
    moments = [moment for moment in history.since(newest.clock - SECONDS) if moment.epoch == epoch and moment.steps]
    pieces: list[Moment] = []
    for moment in moments:
        pulls = [[replace(pull, world=0) for pull in step if pull.world == world] for step in moment.pulls]
        if moment.fresh:
            pieces.clear()  # earlier pieces do not lead to this state
        pieces.append(replace(moment, kept=kept_of_world(batch, moment.kept, world), pulls=pulls))
    return Incident(world, newest.clock, batch.get_model(world), pieces, batch.dtype)
