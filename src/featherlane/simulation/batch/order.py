"""Computes the order in which a batch's worlds fill tiles, and keeps it for some steps."""

from __future__ import annotations

import numpy as np

from featherlane.lanes import Record, allocate
from featherlane.simulation.tile.arrange import ARRANGEMENT, WORD, fill_tiles, pack_patterns, rank_pairs
from featherlane.simulation.tile.capacity import SIGNATURE_BITS
from featherlane.simulation.tile.library import library

LASTS = 8  # steps for which an order is kept: computing one takes a twentieth of the time of a step of humanoids


class TileOrder:
    """Orders worlds for tiles of one width.

    Args:
        nworld: worlds of a call, at most.
        nsignature: words of a world's signature.
        width: worlds of a tile.
    """

    def __init__(self, nworld: int, nsignature: int, width: int):
        nbit = SIGNATURE_BITS * nsignature
        sizes = {
            "nworld": nworld,
            "nsignature": nsignature,
            "nbit": nbit,
            "nword": -(-nbit // WORD),
            "tile_width": width,
        }
        self._arrays = allocate(ARRANGEMENT, sizes, 1, np.float64)
        self._record = Record(ARRANGEMENT, sizes, self._arrays, 1, np.float64)
        self._rank, self._pack, self._fill = (
            library().bind(stage, self._record) for stage in (rank_pairs, pack_patterns, fill_tiles)
        )
        self._nsignature = nsignature
        self._worlds = self._order = np.zeros(0, np.int64)
        self._steps = 0  # remaining steps for which the order is kept

    def of(self, worlds: np.ndarray, signature: np.ndarray, nstep: int) -> np.ndarray:
        """Returns the worlds tile by tile, for a call of nstep steps.

        Args:
            worlds: (n,) their numbers, ascending.
            signature: (nworld, nsignature) of all worlds, after their last step.
            nstep: 0 for forward.
        """
        order = self._order
        if self._steps <= 0 or not np.array_equal(worlds, self._worlds):
            order = self._arrange(worlds, signature)
            # a call of a few worlds does not discard the order of all others
            if self._steps <= 0 or len(worlds) >= len(self._worlds):
                self._worlds, self._order, self._steps = worlds.copy(), order, LASTS
        self._steps -= max(nstep, 1)
        return order

    def _arrange(self, worlds: np.ndarray, signature: np.ndarray) -> np.ndarray:
        n, arrays, set_size = len(worlds), self._arrays, self._record.set_size
        set_size("nworld", n)
        arrays["signature"][: n * self._nsignature] = signature[worlds].ravel()
        self._rank()
        nword = max(-(-int(arrays["pair_count"][0]) // WORD), 1)
        set_size("nword", nword)
        self._pack()
        pattern = arrays["pattern"][: n * nword].reshape(n, nword)
        arrays["sorted_world"][:n] = np.lexsort(pattern.T[::-1])
        self._fill()
        return worlds[arrays["tile_world"][:n]]
