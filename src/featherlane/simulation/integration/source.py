"""Gives a `Data` and a `Batch` one interface: rows (n, ...) of the state, a copy for user callbacks, outputs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from featherlane.model.enums import Disable
from featherlane.simulation.batch.arrays import EVOLVING, GIVEN_ROWS, LASTING, REPORTS
from featherlane.simulation.batch.batch import Batch
from featherlane.simulation.tile.uninterrupted import set_all
from featherlane.simulation.world.data import Data
from featherlane.simulation.world.recordings import INPUTS

CARRIED = (*EVOLVING, *REPORTS, "ctrl")  # fields that a step or a control function changes
CONSTANT = (*INPUTS, *GIVEN_ROWS)  # fields that it reads only


class OneWorld:
    """A `Data`, as a batch of one world.

    Attributes:
        worlds: the `Data`.
        turns: locks that a call holds.
        sizes: sizes of fields by name.
        rows: live arrays (1, ...) of its state, inputs and reports, by field.
        expanded: nothing; the model's fields that differ by world.
    """

    expanded: Mapping[str, np.ndarray] = {}
    nworld, nthread, dtype = 1, 1, np.dtype(np.float64)

    def __init__(self, data: Data):
        self.worlds, self.model, self.ngiven = data, data.model, data.ngiven
        self.turns, self.sizes = data._turns, data.workspace.sizes
        names = (*CARRIED, *CONSTANT)
        self.rows = {name: data.workspace.view(name)[None] for name in names if data.workspace.arrays[name].size}

    def copy(self) -> OneWorld:
        """Returns a copy of the world."""
        return OneWorld(self.worlds.copy())

    def row(self, name: str) -> np.ndarray:
        """Returns the rows of a field of the state."""
        return self.worlds.workspace.view(name)[None]

    def forward(self, ids: np.ndarray) -> None:
        """Computes derived fields."""
        self.worlds.forward()

    def bind(self, name: str) -> None:
        """Keeps a derived field from now on; a `Data` has all of them."""

    def values(self, name: str, ids: np.ndarray) -> np.ndarray:
        """Returns a derived field of worlds, (k, ...)."""
        return np.asarray(getattr(self.worlds, name))[None]

    def shown(self, array: np.ndarray) -> np.ndarray:
        """Returns an array (1, ...) in the form that users of one world read."""
        return array[0, ...]


class ManyWorlds:
    """A `Batch`; the attributes are those of `OneWorld`, with n worlds."""

    def __init__(self, batch: Batch):
        self.worlds, self.model, self.ngiven = batch, batch.model, batch.ngiven
        self.nworld, self.nthread, self.dtype = batch.nworld, batch.nthread, batch.dtype
        self.rows, self.expanded = batch.rows, batch.expanded_fields
        self.turns, self.sizes = (batch.runner.turn,), batch.arrays.sizes

    def copy(self) -> ManyWorlds:
        """Returns a batch with the same per-world model fields and its own rows."""
        batch = Batch(self.model, self.nworld, self.nthread, self.dtype, self.ngiven)
        batch.arrays.share_expanded(self.worlds.arrays)
        batch.mute()
        copied = ManyWorlds(batch)
        set_all([(copied.row(name), ..., rows) for name, rows in self.rows.items() if name in LASTING])
        return copied

    def row(self, name: str) -> np.ndarray:
        """Returns the rows of a field of the state, allocated at the first use."""
        return self.worlds.row_memory(name)

    def forward(self, ids: np.ndarray) -> None:
        """Computes bound outputs; the recorded steps of failures end here."""
        if self.worlds.runner.recorder is not None:
            self.worlds.runner.recorder.forget(ids)
        self.worlds.forward_bound(ids)

    def bind(self, name: str) -> None:
        """Keeps a derived field from now on."""
        self.worlds.bind(name)

    def values(self, name: str, ids: np.ndarray) -> np.ndarray:
        """Returns a derived field of worlds, (k, ...)."""
        return self.worlds.bind(name)[ids]

    def shown(self, array: np.ndarray) -> np.ndarray:
        """Returns an array in the form that users of a batch read: unchanged."""
        return array


Source = OneWorld | ManyWorlds


def source_of(worlds: Data | Batch) -> Source:
    """Returns the interface of a `Data` or a `Batch`."""
    return OneWorld(worlds) if isinstance(worlds, Data) else ManyWorlds(worlds)


def two_copies(source: Source) -> Batch:
    """Returns a batch with two copies of each world; it is kept for the next call, because its memory takes 40 ms.

    Rows i and n + i have the inputs and the per-world model fields of world i.
    """
    kept, n = source.worlds.__dict__, source.nworld
    batch = kept.get("_two_copies")
    if batch is None or batch.model is not source.model:
        batch = kept["_two_copies"] = Batch(source.model, 2 * n, source.nthread, source.dtype, source.ngiven)
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
