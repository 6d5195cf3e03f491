"""Recordings that stay on the nodes until they are read."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from featherlane.distributed.cluster import last_line
from featherlane.errors import ModelError
from featherlane.simulation.query.camera import Camera


class Recording(NamedTuple):
    """Describes what a rollout records.

    Attributes:
        nbytes: size of the recording per world and step.
    """

    names: tuple[str, ...]
    cameras: tuple[Camera, ...]
    nbytes: int


class Recorded(NamedTuple):
    """Holds a part of the recordings of a rollout.

    Attributes:
        worlds: (n,) numbers of the worlds.
        start: first step of the rollout in this part.
        reference: Ray's reference to the result of `get`; without Ray, the result itself.
        replay: recipe to compute the result again.

    Note:
        The recordings are stored on the node of their worker.  If the node is lost, `get` recomputes them from the
        worker's previous checkpoint, bitwise identical.  The checkpoint and the later inputs are kept as long as this
        object exists.
    """

    worlds: np.ndarray
    start: int
    nstep: int
    reference: Any
    replay: Any = None

    def get(self) -> dict[str, np.ndarray]:
        """Returns fields by name, each (n, nstep, ...).

        Raises:
            ModelError: its node was lost, and it cannot be computed again.
        """
        if isinstance(self.reference, dict):
            return self.reference
        ray = sys.modules["ray"]
        try:
            return ray.get(self.reference)
        except (ray.exceptions.ObjectLostError, ray.exceptions.RayActorError):
            pass
        lost = f"the recording of {len(self.worlds)} worlds from step {self.start} on was lost with its node"
        if self.replay is None:
            raise ModelError(
                f"{lost}; with checkpoint_folder=None it would be computed again, and without "
                f"out='refs' it would not be lost"
            )
        try:
            return self.replay.again()
        except ray.exceptions.RayError as error:
            raise ModelError(f"{lost}, and cannot be computed again: {last_line(error)}") from None


def gathered(parts: Sequence[Recorded]) -> dict[str, np.ndarray]:
    """Assembles the parts of a recording.

    Args:
        parts: results of `Batch.rollout(..., out="refs")`: all parts, or those of some worlds or steps.

    Returns:
        name -> (n, nstep, ...), worlds in ascending order.

    Raises:
        ModelError: there are no parts, some are missing, or one was lost and cannot be computed again.
    """
    if not parts:
        raise ModelError("parts: got none, allowed are those of a rollout")
    worlds = np.unique(np.concatenate([part.worlds for part in parts]))
    first, end = min(part.start for part in parts), max(part.start + part.nstep for part in parts)
    filled = sum(len(part.worlds) * part.nstep for part in parts)
    if filled != len(worlds) * (end - first):
        raise ModelError("parts: some steps of some worlds are missing or occur twice")
    out: dict[str, np.ndarray] = {}
    for part in parts:
        at = np.searchsorted(worlds, part.worlds)
        for name, rows in part.get().items():
            if name not in out:
                out[name] = np.empty((len(worlds), end - first, *rows.shape[2:]), rows.dtype)
            out[name][at, part.start - first : part.start - first + part.nstep] = rows
    return out
