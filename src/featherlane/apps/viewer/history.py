"""History of the last seconds: the state of the worlds before each piece of steps, and the inputs within it.

Replaying from a state is bitwise identical, so one state per piece of several steps is enough to restore every step.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from featherlane import Batch, MixedBatch
from featherlane.errors import OutOfRangeError

SECONDS = 10.0
MOST_BYTES = 1 << 28
FRAME = ("time", "qpos", "qvel", "act", "ctrl", "mocap_pos", "mocap_quat")  # fields of a recorded frame
Kept = dict[str, np.ndarray]


@dataclass
class Pull:
    """A wrench that the mouse applied in one step: force and torque (6,) [N, N m] on the centre of mass of a body."""

    world: int
    body: int
    wrench: np.ndarray


@dataclass
class Moment:
    """State of the worlds before a piece of steps."""

    kept: Kept  # the persistent state of the worlds, without fields of the model
    clock: float  # of the session [s]
    epoch: int  # number of model edits so far; a replay is bitwise identical only under the same model
    fresh: bool = False  # whether the worlds were set, so that they do not follow from the previous moment
    steps: int = 0  # in the piece; 0 before it begins
    pulls: list[list[Pull]] = field(default_factory=list)  # wrenches of the mouse by step; empty if there were none

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.kept.values())

    def cut(self, steps: int) -> None:
        """Discards everything after these steps."""
        self.steps, self.pulls = steps, self.pulls[:steps]


class History:
    """Moments, oldest first; those older than `seconds` on the session's clock or beyond `most_bytes` are discarded."""

    def __init__(self, seconds: float = SECONDS, most_bytes: int = MOST_BYTES):
        self.seconds, self.most_bytes = seconds, most_bytes
        self._moments: deque[Moment] = deque()
        self._nbytes = 0

    def __len__(self) -> int:
        return len(self._moments)

    def __getitem__(self, k: int) -> Moment:
        if not -len(self) <= k < len(self):
            raise OutOfRangeError(f"moment: got {k}, allowed are 0 to {len(self) - 1}")
        return self._moments[k]

    def add(self, moment: Moment) -> None:
        """Appends a moment; the newest one is kept, whatever its size."""
        self._moments.append(moment)
        self._nbytes += moment.nbytes
        while len(self) > 1 and (moment.clock - self[0].clock > self.seconds or self._nbytes > self.most_bytes):
            self._nbytes -= self._moments.popleft().nbytes

    def drop_from(self, k: int) -> None:
        """Discards moment k and all later ones."""
        while len(self) > k:
            self._nbytes -= self._moments.pop().nbytes

    def before(self, clock: float) -> int:
        """Returns the index of the last moment that began no later than `clock`; 0 if there is none."""
        return max((k for k, moment in enumerate(self._moments) if moment.clock <= clock), default=0)

    def since(self, clock: float) -> list[Moment]:
        """Returns the newest moments, starting with the last one that began no later than `clock`."""
        return list(self._moments)[self.before(clock) :]


def pulled_step(batch: Batch | MixedBatch, pulls: list[Pull]) -> None:
    """Takes one step with the wrenches of the mouse, of different bodies, added to `xfrc_applied`."""
    before = []
    for pull in pulls:
        target = batch.xfrc_applied[pull.world, pull.body]
        before.append((target, target.copy()))
        target += pull.wrench
    batch.step()
    for target, value in before:
        target[:] = value


def kept_of(batch: Batch | MixedBatch) -> Kept:
    """Returns the persistent state of worlds, without fields of the model."""
    return {name: array for name, array in batch.checkpoint().items() if "model." not in name}


def keep(batch: Batch | MixedBatch, kept: Kept) -> None:
    """Restores a persistent state under the present model."""
    batch.restore({name: array for name, array in batch.checkpoint().items() if "model." in name} | kept)


def kept_of_world(batch: Batch | MixedBatch, kept: Kept, world: int) -> Kept:
    """Returns the part of a persistent state that belongs to one world, as that of a batch of one world."""
    k = int(np.searchsorted(batch.starts, world, "right")) - 1
    row, prefix = world - batch.starts[k], "" if batch.groups[0] is batch else f"{k}."
    found = {name.removeprefix(prefix): array for name, array in kept.items() if name.startswith(prefix)}
    return {name: array[row : row + 1].copy() for name, array in found.items()}
