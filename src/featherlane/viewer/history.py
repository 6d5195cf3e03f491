"""The last seconds of some worlds: states as they were before pieces of steps, and what acted within the pieces.

A state replays to the same bits, so a state for each piece, some steps long, holds every step of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from featherlane.errors import OutOfRangeError

SECONDS = 10.0
MOST_BYTES = 1 << 28
Kept = dict[str, np.ndarray]


@dataclass
class Pull:
    """A wrench that the hand applied in one step: force and torque (6,) [N, N m] on the centre of mass of a body."""

    world: int
    body: int
    wrench: np.ndarray


@dataclass
class Moment:
    """Worlds before a piece of steps.

    Attributes:
        kept: all that lasts of each batch, without fields of the model.
        clock: seconds that the session had run.
        epoch: how often the model had been edited: steps replay to the same bits under the same model.
        steps: of the piece; 0 while it has not begun.
        fresh: the worlds were set anew: they do not follow from the moment before.
        pulls: wrenches of the hand, a list for each step, or nothing where it was idle.
    """

    kept: tuple[Kept, ...]
    clock: float
    epoch: int
    fresh: bool = False
    steps: int = 0
    pulls: list[list[Pull]] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for kept in self.kept for array in kept.values())

    def cut(self, steps: int) -> None:
        """Forget what came after these steps."""
        self.steps, self.pulls = steps, self.pulls[:steps]


class History:
    """Moments, oldest first; those fall out that are older than `seconds`, or do not fit into `most_bytes`.

    Args:
        seconds: of the session's clock.
        most_bytes: of all states.
    """

    def __init__(self, seconds: float = SECONDS, most_bytes: int = MOST_BYTES):
        self.seconds, self.most_bytes = seconds, most_bytes
        self._moments: list[Moment] = []
        self._first = 0  # moments before it have fallen out
        self._nbytes = 0

    def __len__(self) -> int:
        return len(self._moments) - self._first

    def __getitem__(self, k: int) -> Moment:
        if not -len(self) <= k < len(self):
            raise OutOfRangeError(f"moment {k}: there are {len(self)}")
        return self._moments[self._first + k if k >= 0 else k]

    def __iter__(self) -> Iterator[Moment]:
        return islice(self._moments, self._first, None)

    def add(self, moment: Moment) -> None:
        """Keep a moment, the newest; the newest stays, however large it is."""
        self._moments.append(moment)
        self._nbytes += moment.nbytes
        while len(self) > 1 and (moment.clock - self[0].clock > self.seconds or self._nbytes > self.most_bytes):
            self._nbytes -= self[0].nbytes
            self._moments[self._first].kept = ()
            self._first += 1
        if self._first > len(self._moments) // 2:
            del self._moments[: self._first]
            self._first = 0

    def drop_from(self, k: int) -> None:
        """Forget moment k and all that came after it."""
        for moment in self._moments[self._first + k :]:
            self._nbytes -= moment.nbytes
        del self._moments[self._first + k :]

    def clear(self) -> None:
        """Forget all."""
        self._moments, self._first, self._nbytes = [], 0, 0

    def since(self, clock: float) -> list[Moment]:
        """The newest moments, from the last one that began no later than `clock` on."""
        moments = list(self)
        begun = [k for k, moment in enumerate(moments) if moment.clock <= clock]
        return moments[begun[-1] if begun else 0 :]
