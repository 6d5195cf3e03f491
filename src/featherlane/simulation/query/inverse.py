"""Computes inverse dynamics of the worlds of a batch: checks arguments and shapes results."""

from __future__ import annotations

import numpy as np

from featherlane.errors import ModelError
from featherlane.model.assignment import as_real_array, is_numbers
from featherlane.model.model import Model
from featherlane.simulation.query.query import Query
from featherlane.simulation.tile.fields import DATA
from featherlane.simulation.tile.tiles import inverse_tiles


class Accelerations(Query):
    """Holds accelerations as kernels take them, checked, and the rows of the resulting forces.

    Args:
        model: the model.
        nworld: worlds.
        dtype: float64 or float32.
        qacc: what broadcasts to (nworld, nv), or None for those of forward dynamics.
    """

    loop = inverse_tiles
    reads = (*DATA.that("lasts"), *DATA.of("count"))

    def __init__(self, model: Model, nworld: int, dtype, qacc):
        self.number, self.force = int(qacc is not None), np.empty((nworld, 1, model.nv), dtype)
        if qacc is not None:
            try:
                rows = np.broadcast_to(as_real_array("qacc", qacc, "").astype(dtype, copy=False), (nworld, model.nv))
            except ValueError:
                given = f"shape {np.shape(qacc)}" if is_numbers(qacc) else type(qacc).__name__
                raise ModelError(f"qacc: got {given}, allowed is what broadcasts to ({nworld}, {model.nv})") from None
            self.qacc = np.ascontiguousarray(rows).reshape(nworld, 1, model.nv)

    def brought(self) -> dict[str, np.ndarray]:
        """Returns the rows of the accelerations, if they are given."""
        return {"qacc": self.qacc} if self.number else {}

    def taken(self) -> dict[str, np.ndarray]:
        """Returns the rows of the forces."""
        return {"qfrc_inverse": self.force}

    def answer(self) -> np.ndarray:
        """Returns the forces, (nworld, nv)."""
        return self.force[:, 0]
