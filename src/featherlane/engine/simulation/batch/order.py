"""Computes the order in which a batch's worlds fill tiles, on all threads, and keeps it for some steps."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from featherlane.engine.lanes import Record, allocate
from featherlane.engine.simulation.tile.arrange import ARRANGEMENT, BLOCK, WORD, arrange_block
from featherlane.engine.simulation.tile.capacity import SIGNATURE_BITS
from featherlane.engine.simulation.tile.library import library
from featherlane.engine.simulation.tile.team import Team
from featherlane.engine.simulation.tile.uninterrupted import take_all

LASTS = 8  # steps for which an order is kept: computing one takes a twentieth of the time of a step of humanoids


class TileOrder:
    """Orders worlds for tiles of one width.

    Args:
        nworld: worlds of a call, at most.
        nsignature: words of a world's signature.
        width: worlds of a tile.
        team: threads.
    """

    def __init__(self, nworld: int, nsignature: int, width: int, team: Team):
        nbit = SIGNATURE_BITS * nsignature
        self._sizes = {
            "nworld": nworld,
            "nsignature": nsignature,
            "nbit": nbit,
            "nword": -(-nbit // WORD),
            "tile_width": width,
        }
        self._team = team
        first = self._record({})
        self._arrays, self._loops = first.arrays, [self._loop(first)]
        self._kept = np.zeros(0, np.int64), np.zeros(0, np.int64)  # worlds, and their order
        self._steps = 0  # remaining steps for which the order is kept

    def _record(self, shared: dict[str, np.ndarray]) -> Record:
        """Returns a record of a thread."""
        own = {"nworld": 1} if shared else {}
        arrays = allocate(ARRANGEMENT, {**self._sizes, **own}, width=1, dtype=np.float64) | shared
        return Record(ARRANGEMENT, self._sizes, arrays, width=1, dtype=np.float64)

    def _loop(self, record: Record) -> tuple[Record, Callable[[int], None]]:
        """Returns a record and the function that arranges one of its blocks, for a thread."""
        return record, library().bind(arrange_block, record)

    def of(self, worlds: np.ndarray, signature: np.ndarray, nstep: int) -> np.ndarray:
        """Returns the worlds tile by tile, for a call of nstep steps; the same read-only array while the order is kept.

        Args:
            worlds: (n,) their numbers, ascending.
            signature: (nworld, nsignature) of all worlds, after their last step.
            nstep: 0 for forward.
        """
        known, order = self._kept
        if self._steps <= 0 or not (worlds is known or np.array_equal(worlds, known)):
            order = self._arrange(worlds, signature)
            # a call of a few worlds does not discard the order of all others
            if self._steps <= 0 or len(worlds) >= len(known):
                # one assignment: an interrupt may come before or after it
                self._kept = worlds.copy() if worlds.flags.writeable else worlds, order
                self._steps = LASTS
        self._steps -= max(nstep, 1)
        return order

    def _arrange(self, worlds: np.ndarray, signature: np.ndarray) -> np.ndarray:
        n, blocks = len(worlds), -(-len(worlds) // BLOCK)
        self._arrays["signature"][: n * self._sizes["nsignature"]] = signature[worlds].ravel()
        shared = {name: self._arrays[name] for name in ("signature", "tile_world")}
        threads = min(self._team.nthread, blocks)
        while len(self._loops) < threads:
            self._loops.append(self._loop(self._record(shared)))
        runs = []
        for k, (record, loop) in enumerate(self._loops[:threads]):
            record.set_size("nworld", n)
            runs.append(map(loop, range(k, blocks, threads)))
        self._team.run({k: functools.partial(take_all, run) for k, run in enumerate(runs) if k > 0}, runs[0])
        order = worlds[self._arrays["tile_world"][:n]]
        order.flags.writeable = False
        return order
