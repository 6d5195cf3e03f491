"""Computes poses of bodies in the present states of worlds without changing them, for rendering."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from featherlane.engine.dynamics.body.kinematics import frames, kinematics
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.query.query import Query
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.tile.rows import write_records
from featherlane.engine.simulation.tile.tiles import over_tiles


@over_tiles
def pose_tiles(m, d, b, thread, tile):
    """Computes the frames of the worlds of a tile.

    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; active, recall_address, tree_settled, and all else of this thread's workspace.
    """
    kinematics(m, d)
    frames(m, d)
    for s in range(b.nstep):  # nstep is 1
        write_records(b, thread, tile, s)


class Poses(Query):
    """Queries fields that `kinematics` and `frames` write, of some worlds; the answer has them by name, (nworld, ...).

    Args:
        model: the model.
        nworld: worlds.
        dtype: float64 or float32.
        fields: their names.
    """

    loop = pose_tiles
    number = 1

    def __init__(self, model: Model, nworld: int, dtype, fields: Iterable[str]):
        sizes = model.size_values()
        self.taken = {
            name: np.zeros((nworld, 1, *DATA[name].dims(sizes)), DATA[name].stored_as(dtype)) for name in fields
        }

    def answer(self) -> dict[str, np.ndarray]:
        return {name: DATA[name].public(rows[:, 0]) for name, rows in self.taken.items()}
