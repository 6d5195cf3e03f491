"""Which worlds are where: consecutive ones together, as many as a worker has threads for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np


class Part(NamedTuple):
    """What a worker has of some worlds.

    Attributes:
        worker: its number.
        ids: numbers of the worlds there; None for all of its own, in order.
        at: where they stand among the worlds that were asked for: a slice, or numbers.
    """

    worker: int
    ids: np.ndarray | None
    at: Any


class Spread:
    """Worlds over workers.

    Args:
        nworld: worlds.
        threads: of each worker; those for which no world is left have none.
        width: worlds of a tile: a worker's number is a multiple, where that leaves none without.

    Attributes:
        starts: (nworker + 1,) the first world of each, and nworld.
    """

    def __init__(self, nworld: int, threads: Sequence[int], width: int):
        weights = np.cumsum([0, *threads]) / sum(threads)
        self.nworld, each = nworld, np.arange(len(threads) + 1)
        for unit in (width, 1):
            ends = np.rint(weights * -(-nworld // unit)).astype(int) * unit
            self.starts = np.minimum(ends, nworld)
            if (np.diff(self.starts) > 0).all():
                return
        # few worlds: one for each at least, as far as they go
        self.starts = np.minimum(np.maximum(self.starts, each), np.maximum(nworld - each[::-1], 0))
        self.starts[-1] = nworld

    def number(self, worker: int) -> int:
        """How many worlds a worker has."""
        return int(self.starts[worker + 1] - self.starts[worker])

    def parts(self, chosen: np.ndarray) -> Iterator[Part]:
        """Who has some of these worlds, (n,) each once."""
        if len(chosen) == self.nworld and (chosen[1:] > chosen[:-1]).all():
            for k in range(len(self.starts) - 1):
                if self.number(k):
                    yield Part(k, None, slice(int(self.starts[k]), int(self.starts[k + 1])))
            return
        owner = np.searchsorted(self.starts, chosen, "right") - 1
        for k in np.unique(owner):
            at = np.flatnonzero(owner == k)
            yield Part(int(k), chosen[at] - self.starts[k], at)
