"""Treats a `Data` as a batch of one world, whose rows are the memory of the `Data`."""

from __future__ import annotations

from typing import Any

import numpy as np

from featherlane.engine.model.arguments import instance
from featherlane.engine.model.model import Model, check_model
from featherlane.engine.simulation.batch.arrays import WorldArrays
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.batch.runner import Runner
from featherlane.engine.simulation.tile.team import Team
from featherlane.engine.simulation.world.data import Data, other_model, ready
from featherlane.errors import ArgumentTypeError


def checked_worlds(model: Model, data: Any) -> Data | Batch:
    """Returns the worlds of a call `f(model, data)`: a `Data`, prepared for this model, or a `Batch`.

    Raises:
        TypeError: `data` is neither a `Data` nor a `Batch`.
        ModelError: the model is not that of the worlds.
    """
    instance("data", data, Data | Batch, "a Data or a Batch of the model", ArgumentTypeError)
    if isinstance(data, Data):
        return ready(model, data)
    if data.model is not model:
        check_model(model)
        raise other_model("batch", model, data.model)
    return data


def batch_of(worlds: Data | Batch) -> Batch:
    """Returns a batch as it is, and a `Data` as a batch of one world.

    Both have the same state, inputs and reports.  A call of one excludes calls of the other.  Outputs that are bound in
    the batch are those of the `Data`.
    """
    if isinstance(worlds, Batch):
        return worlds
    batch = worlds.__dict__.get("_batch")
    if batch is None or batch.model is not worlds.model:
        workspace = worlds.workspace  # its memory as rows (1, n, ...)
        rows = lambda field: workspace.view(field.name)[None]  # noqa: E731
        arrays = WorldArrays(worlds.model, 1, np.dtype(np.float64), worlds.ngiven, rows=rows)
        batch = worlds.__dict__["_batch"] = Batch.__new__(Batch)
        batch._start(arrays, Runner(arrays, Team(1), turn=worlds._turns[0]))
        batch.mute()
        # the batch writes bound outputs into the fields of the data
        worlds.workspace.others["s"].arrays["keeps"][0] = worlds._kept[0] = 0
    return batch
