"""Computes sensor values without their delays in the present states of a batch's worlds."""

from __future__ import annotations

import numpy as np

from featherlane.engine.model.model import Model
from featherlane.engine.simulation.query.contact import NOTHING, contact_tiles
from featherlane.engine.simulation.query.query import Query
from featherlane.engine.simulation.tile.fields import DATA


class PresentSensors(Query):
    """Holds the values of sensors after forward dynamics, without delays; the answer is (nworld, nsensordata).

    Elements of plain Python sensors and of unsupported sensors are 0.

    Args:
        model: the model; a sensor has a history.
        nworld: worlds.
        dtype: float64 or float32.
    """

    loop, number, sizes = contact_tiles, 1, NOTHING
    reads = (*DATA.that("lasts"), *DATA.of("count"))

    def __init__(self, model: Model, nworld: int, dtype):
        self.taken = {"sensor_now": np.zeros((nworld, 1, model.nsensordata), dtype)}

    def answer(self) -> np.ndarray:
        return self.taken["sensor_now"][:, 0]
