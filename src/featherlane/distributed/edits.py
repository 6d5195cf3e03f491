"""Tracks the user's edits that must be sent to workers: the model, and its per-world fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from featherlane.distributed.node import Order
from featherlane.distributed.serialization import serialize
from featherlane.model.fields import MODEL
from featherlane.model.limits import check_field
from featherlane.model.model import KEYFRAME_FIELDS, Model, peek
from featherlane.model.write_detection import TrackedArray

REALS, OTHERS = "real_buffer", ("int_buffer", "scalar_buffer")


class ModelEdits:
    """Computes the orders that update the workers' models to the present one.

    Args:
        model: model that the workers have.
        is_shared: whether the workers use this same object, so that no update is needed.
    """

    def __init__(self, model: Model, is_shared: bool):
        self.model, self.is_shared = model, is_shared
        self._take()

    def _take(self) -> None:
        """Records the present model."""
        model = self.model
        self._buffers = {name: getattr(model, name).copy() for name in (REALS, *OTHERS)}
        self._mark: tuple = self._marked()

    def _marked(self) -> tuple:
        """Returns counters of edits of options and functions, and the keyframes."""
        return self.model.revision, *(np.array(getattr(self.model, name)).tobytes() for name in KEYFRAME_FIELDS)

    def forget(self) -> None:
        """Marks the workers' models as outdated."""
        self._mark = ()

    def orders(self) -> list[Order]:
        """Returns the orders that update the workers.

        Raises:
            ModelError: a value of a field is out of range.
        """
        model = self.model
        model.check_edits()
        if self.is_shared:
            return []
        if self._marked() != self._mark or not all(self._is_same(name) for name in OTHERS):
            self._take()
            return [("model", (serialize("model", model),))]
        if not self._is_same(REALS):
            self._take()
            return [("model_reals", (self._buffers[REALS],))]
        return []

    def _is_same(self, name: str) -> bool:
        return np.array_equal(self._buffers[name], getattr(self.model, name))


class Fields:
    """The caller's per-world fields of the model.

    Args:
        dtype: dtype of the rows, except for fields that are always float64.
        fetch: function that returns the workers' rows of a field.
    """

    def __init__(self, model: Model, nworld: int, dtype: np.dtype, fetch: Callable[[str], np.ndarray]):
        self.model, self.nworld, self.dtype, self._fetch = model, nworld, dtype, fetch
        self.names: list[str] = []  # fields with rows in the workers
        self._tracked: dict[str, TrackedArray] = {}
        self._sent: dict[str, np.ndarray] = {}
        self._edited: set[str] = set()
        self._stale: set[str] = set()
        self._unsent: set[str] = set()

    def forget(self) -> None:
        """Marks the sent rows as possibly missing in the workers."""
        self._unsent = self._tracked.keys() - self._stale  # except rows that workers have recomputed
        self._edited |= self._unsent

    def lend(self, name: str) -> np.ndarray:
        """Returns a live array (nworld, ...), initially the model's values."""
        if name not in self._tracked:
            if name in self.names:
                rows = self._fetch(name)
                self._unsent.add(name)
            else:
                value = peek(self.model, name)
                rows = np.broadcast_to(value, (self.nworld, *value.shape))
            own = np.array(rows, MODEL[name].stored_as(self.dtype), order="C")
            self._sent[name] = own.copy()
            self._tracked[name] = TrackedArray(own)
        elif name in self._stale:
            self._refresh(name, self._fetch)
        self._edited.add(name)
        return self._tracked[name].view

    def rows(self, name: str) -> np.ndarray | None:
        """Returns the present values (nworld, ...), read-only; None if all worlds have the model's."""
        if name in self._stale or (name in self.names and name not in self._tracked):
            return self._fetch(name)
        return self._tracked[name].array if name in self._tracked else None

    def disown(self, names: Iterable[str]) -> None:
        """Makes the workers' rows authoritative; called before they change, so that no interrupt comes in between."""
        self._stale |= self._tracked.keys() & set(names)
        self.names += [name for name in names if name not in self.names]

    def renew(self, fetch: Callable[[str], np.ndarray]) -> None:
        """Updates stale arrays that the caller still holds; an array that was written to meanwhile counts as edited."""
        for name in sorted(self._stale):
            if self._tracked[name].is_held():
                if np.array_equal(self._tracked[name].array, self._sent[name]):
                    self._refresh(name, fetch)
                self._stale.discard(name)

    def _refresh(self, name: str, fetch: Callable[[str], np.ndarray]) -> None:
        self._tracked[name].array[...] = self._sent[name] = fetch(name)
        self._stale.discard(name)

    def edited(self) -> dict[str, np.ndarray]:
        """Returns fields with rows that workers do not have, and marks them as sent.

        Raises:
            ModelError: a value of a field is out of range.
        """
        found = {}
        for name in sorted(self._edited):
            rows = self._tracked[name].array
            is_known = name in self.names and name not in self._unsent
            if not is_known or not np.array_equal(rows, self._sent[name]):
                check_field(self.model, name, rows, worlds=True)
                found[name] = rows
        for name, rows in found.items():
            self._sent[name] = rows.copy()
            if name not in self.names:
                self.names.append(name)
        self._unsent = set()
        self._edited = {name for name in self._edited if self._tracked[name].is_held()}
        return found

    def taken(self, name: str, rows: np.ndarray) -> None:
        """Records that workers have these rows."""
        if name not in self.names:
            self.names.append(name)
        if name in self._tracked:
            self._tracked[name].array[...] = rows
            self._sent[name] = self._tracked[name].array.copy()
            self._stale.discard(name)
