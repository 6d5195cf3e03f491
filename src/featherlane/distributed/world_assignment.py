"""Assigns consecutive worlds to workers, in proportion to their threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np


class Part(NamedTuple):
    """The part of some worlds that one worker has.

    Attributes:
        worker: number of the worker.
        ids: numbers of the worlds on the worker; None for all, in order.
        at: positions among the requested worlds: a slice, or indices.
    """

    worker: int
    ids: np.ndarray | None
    at: Any


class Spread:
    """Distribution of worlds over workers.

    Args:
        threads: threads of each worker; a surplus worker gets no worlds.
        width: worlds per tile; a worker's number of worlds is a multiple, unless a worker would have none.

    Attributes:
        starts: (nworker + 1,) the first world of each worker, then nworld.
    """

    def __init__(self, nworld: int, threads: Sequence[int], width: int):
        weights = np.cumsum([0, *threads]) / sum(threads)
        self.nworld, each = nworld, np.arange(len(threads) + 1)
        for unit in (width, 1):
            ends = np.rint(weights * -(-nworld // unit)).astype(int) * unit
            self.starts = np.minimum(ends, nworld)
            if (np.diff(self.starts) > 0).all():
                return
        # few worlds: one per worker, as far as possible
        self.starts = np.minimum(np.maximum(self.starts, each), np.maximum(nworld - each[::-1], 0))
        self.starts[-1] = nworld

    def number(self, worker: int) -> int:
        """Returns the number of worlds of a worker."""
        return int(self.starts[worker + 1] - self.starts[worker])

    def parts(self, chosen: np.ndarray) -> Iterator[Part]:
        """Yields the workers that have some of these unique worlds, (n,), and their parts."""
        if len(chosen) == self.nworld and (chosen[1:] > chosen[:-1]).all():
            for k in range(len(self.starts) - 1):
                if self.number(k):
                    yield Part(k, None, slice(int(self.starts[k]), int(self.starts[k + 1])))
            return
        owner = np.searchsorted(self.starts, chosen, "right") - 1
        for k in np.unique(owner):
            at = np.flatnonzero(owner == k)
            yield Part(int(k), chosen[at] - self.starts[k], at)
