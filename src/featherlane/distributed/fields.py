"""The user's edits of the model and of its per-world fields, which the workers need before the next call."""

from __future__ import annotations

import numpy as np

from featherlane import Model
from featherlane.extension import MODEL, TrackedArray


class ModelEdits:
    """Detects edits of a model since the workers received it."""

    def __init__(self, model: Model):
        self.model = model
        self._sent = self._state()

    def _state(self) -> tuple:
        """Returns the count of edits of options and functions, and copies of all values."""
        return self.model.revision, [np.array(values) for values in self.model.contents()]

    def take(self) -> bool:
        """Returns whether there were edits since the last call.

        Raises:
            ModelError: a value of a field is out of range.
        """
        self.model.check_edits()
        revision, values = self._sent
        if self.model.revision == revision and all(map(np.array_equal, self.model.contents(), values)):
            return False
        self._sent = self._state()
        return True


class WorldFields:
    """The per-world fields of the model, as arrays that the user may write to at any time.

    Args:
        dtype: dtype of the rows, except for fields that are always float64.
    """

    def __init__(self, model: Model, nworld: int, dtype: np.dtype):
        self.model, self.nworld, self.dtype = model, nworld, dtype
        self._tracked: dict[str, TrackedArray] = {}
        self._sent: dict[str, np.ndarray] = {}  # rows that the workers have
        self._written: set[str] = set()  # fields that the user may have written to

    def lend(self, name: str) -> np.ndarray:
        """Returns the live array (nworld, ...) of a field, initially the model's values."""
        if name not in self._tracked:
            value = getattr(self.model, name)
            rows = np.broadcast_to(value, (self.nworld, *value.shape))
            self._tracked[name] = TrackedArray(np.array(rows, MODEL[name].stored_as(self.dtype), order="C"))
        self._written.add(name)
        return self._tracked[name].view

    def rows(self, name: str) -> np.ndarray | None:
        """Returns the present values (nworld, ...); None if all worlds have the model's."""
        return self._tracked[name].array if name in self._tracked else None

    @property
    def names(self) -> list[str]:
        return [*self._tracked]

    def unsent(self) -> dict[str, np.ndarray]:
        """Returns fields with rows that workers do not have.

        Raises:
            ModelError: a value of a field is out of range.
        """
        found = {}
        for name in sorted(self._written):
            rows = self._tracked[name].array
            if name not in self._sent or not np.array_equal(rows, self._sent[name]):
                self.model.check_values(name, rows, worlds=True)
                found[name] = rows
        return found

    def sent(self, found: dict[str, np.ndarray]) -> None:
        """Records that the workers have these rows."""
        self._sent |= {name: rows.copy() for name, rows in found.items()}
        self._written = {name for name in self._written if self._tracked[name].is_held()}

    def take(self, name: str, rows: np.ndarray) -> None:
        """Stores rows that the workers have computed."""
        self.lend(name)
        self._tracked[name].array[...] = rows
        self._sent[name] = self._tracked[name].array.copy()

    def forget(self) -> None:
        """Marks the rows as missing in the workers."""
        self._sent, self._written = {}, set(self._tracked)
