"""Gives a `Data` and a `Batch` one interface: rows (n, ...) of the state, a copy for user callbacks, outputs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from featherlane.engine.model.enums import Disable
from featherlane.engine.simulation.batch.arrays import EVOLVING, GIVEN_ROWS, LASTING, REPORTS
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.batch.one_world import batch_of
from featherlane.engine.simulation.tile.uninterrupted import set_all
from featherlane.engine.simulation.world.data import Data
from featherlane.engine.simulation.world.recordings import INPUTS

CARRIED = (*EVOLVING, *REPORTS, "ctrl")  # fields that a step or a control function changes
CONSTANT = (*INPUTS, *GIVEN_ROWS)  # fields that it reads only


class Source:
    """The worlds of a call.

    Args:
        worlds: a `Data` or a `Batch`.

    Attributes:
        batch: the worlds as a batch.
        is_one: whether users have a `Data`, and read results without an axis of worlds.
        turns: locks that a call holds.
        sizes: sizes of fields by name.
        rows: live arrays (nworld, ...) of state, inputs and reports, by field.
        expanded: the model's fields that differ by world.
    """

    def __init__(self, worlds: Data | Batch):
        self.worlds, self.is_one = worlds, isinstance(worlds, Data)
        self.batch = batch = batch_of(worlds)
        self.model, self.nworld, self.nthread = batch.model, batch.nworld, batch.nthread
        self.dtype, self.ngiven = batch.dtype, batch.ngiven
        self.rows, self.expanded = batch.rows, batch.expanded_fields
        self.turns, self.sizes = (batch.runner.turn,), batch.arrays.sizes

    def copy(self) -> Source:
        """Returns a copy of a `Data`, or a batch with the same per-world model fields and its own rows."""
        if isinstance(self.worlds, Data):
            return Source(self.worlds.copy())
        batch = Batch(self.model, self.nworld, self.nthread, dtype=self.dtype, given_contacts=self.ngiven)
        batch.arrays.share_expanded(self.batch.arrays)
        batch.mute()
        copied = Source(batch)
        set_all([(copied.row(name), ..., rows) for name, rows in self.rows.items() if name in LASTING])
        return copied

    def row(self, name: str) -> np.ndarray:
        """Returns the rows of a field of the state, allocated at the first use."""
        return self.batch.row_memory(name)

    def forward(self, ids: np.ndarray) -> None:
        """Computes all fields of a `Data`, or bound outputs; the recorded steps of failures end here."""
        if isinstance(self.worlds, Data):
            self.worlds.forward()
        else:
            self.batch.runner.forget(ids)
            self.batch.forward_bound(ids)

    def bind(self, name: str) -> None:
        """Keeps a derived field from now on."""
        self.batch.bind(name)

    def values(self, name: str, ids: np.ndarray) -> np.ndarray:
        """Returns a derived field of worlds, (k, ...)."""
        return np.asarray(getattr(self.worlds, name))[None] if self.is_one else self.batch.bind(name)[ids]

    def shown(self, array: np.ndarray) -> np.ndarray:
        """Returns an array (n, ...) in the form that users of these worlds read."""
        return array[0, ...] if self.is_one else array


def two_copies(source: Source) -> Batch:
    """Returns a batch with two copies of each world; it is kept for the next call, because its memory takes 40 ms.

    Rows i and n + i have the inputs and the per-world model fields of world i.
    """
    kept, n = source.worlds.__dict__, source.nworld
    batch = kept.get("_two_copies")
    if batch is None or batch.model is not source.model:
        batch = kept["_two_copies"] = Batch(
            source.model, 2 * n, source.nthread, dtype=source.dtype, given_contacts=source.ngiven
        )
        batch.mute()
        batch.runner.plans.disabled = int(Disable.AUTORESET)
    for name in CONSTANT:
        if name in source.rows:
            batch.row_memory(name)[...] = np.concatenate([source.rows[name]] * 2)
        elif name in batch.rows:
            batch.rows[name][...] = 0  # a control kernel has set it
    for name, rows in source.expanded.items():
        batch.arrays.expand(name)[...] = np.concatenate([rows, rows])
    return batch


def copy_state(target: Source, at: np.ndarray, rows: Mapping[str, np.ndarray], place: np.ndarray) -> None:
    """Copies what a step changes from rows to worlds, within one bytecode."""
    set_all([(target.rows[n], at, rows[n][place]) for n in CARRIED if n in target.rows and n in rows])
