"""Computes inverse dynamics of the worlds of a batch: checks arguments and shapes results."""

from __future__ import annotations

import numpy as np

from featherlane.engine.model.assignment import broadcast_reals
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.query.pose import Poses
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.tile.tiles import inverse_tiles


class Accelerations(Poses):
    """Holds accelerations as kernels take them, checked, and the rows of the resulting forces, `qfrc_inverse`.

    Args:
        model: the model.
        nworld: worlds.
        dtype: float64 or float32.
        qacc: what broadcasts to (nworld, nv), or None for those of forward dynamics.
    """

    loop = inverse_tiles
    reads = (*DATA.that("lasts"), *DATA.of("count"))

    def __init__(self, model: Model, nworld: int, dtype, qacc):
        super().__init__(model, nworld, dtype, ("qfrc_inverse",))
        self.number = int(qacc is not None)
        if qacc is not None:
            rows = broadcast_reals("qacc", qacc, (nworld, model.nv))
            self.brought = {"qacc": np.ascontiguousarray(rows, dtype).reshape(nworld, 1, model.nv)}
