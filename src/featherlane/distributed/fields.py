"""The user's edits of the model and of its per-world fields, which the workers need before the next call."""

from __future__ import annotations

import numpy as np

from featherlane import Model
from featherlane.extension import DATA, Expanded

STATE = DATA.of("state", "drive", "input")  # fields that users set


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


class SentFields(Expanded):
    """The per-world fields of the model, which the user may write to at any time, and those that the workers have."""

    def __init__(self, model: Model, nworld: int, dtype: np.dtype):
        super().__init__(model, nworld, dtype)
        self._sent: dict[str, np.ndarray] = {}
        self._changed: set[str] = set()  # fields that may differ from the sent ones

    def lend(self, name: str) -> np.ndarray:
        """Returns the live array (nworld, ...) of a field, initially the model's values."""
        if name not in self:
            self.add(name)
        return super().lend(name)

    def unsent(self) -> dict[str, np.ndarray]:
        """Returns fields with rows that workers do not have.

        Raises:
            ModelError: a value of a field is out of range.
        """
        self._changed |= self.check_edits()
        sent = self._sent
        return {n: self[n] for n in sorted(self._changed) if n not in sent or not np.array_equal(self[n], sent[n])}

    def sent(self, found: dict[str, np.ndarray]) -> None:
        """Records that the workers have these rows."""
        self._sent |= {name: rows.copy() for name, rows in found.items()}
        self._changed.clear()

    def take(self, name: str, rows: np.ndarray) -> None:
        """Stores rows that the workers have computed."""
        self.lend(name)
        self[name][...] = rows
        self._sent[name] = rows.copy()

    def forget(self) -> None:
        """Marks the rows as missing in the workers."""
        self._sent, self._changed = {}, set(self)
