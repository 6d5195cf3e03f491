"""Stores the fields of the model that differ by world."""

from __future__ import annotations

import functools
from collections.abc import Callable, Container

import numpy as np

from featherlane.engine.lanes import Field
from featherlane.engine.model.fields import MODEL
from featherlane.engine.model.in_use import DECIDING, in_use
from featherlane.engine.model.limits import check_field
from featherlane.engine.model.model import Model
from featherlane.engine.model.set_const import BOTH, DEPENDENT_REALS, VOLUMES
from featherlane.engine.model.variant import MEAN
from featherlane.engine.model.write_detection import TrackedArray, check_edited

Entries = tuple[np.ndarray, np.ndarray]  # flat indices in a field, values there


RowSource = Callable[[Field], np.ndarray]  # returns rows (nworld, n, ...) of a field in memory that others share
Lender = Callable[[Field], TrackedArray]  # returns the array that users reach, of which such rows are a part


class Expanded(dict[str, np.ndarray]):
    """Maps fields to their rows (nworld, ...), and keeps track of the rows that a user may have written to.

    Args:
        model: the model.
        nworld: worlds.
        dtype: dtype of the rows, except fields that are float64 at every precision.
        rows: fields that differ already.

    Attributes:
        source: returns the memory of new fields, which others share; None: each field has separate memory.
        lender: returns the arrays that users reach instead of the rows; None: they reach the rows.
    """

    def __init__(self, model: Model, nworld: int, dtype: np.dtype, rows: dict[str, np.ndarray] | None = None):
        super().__init__(rows or {})
        self.model, self.nworld, self.dtype = model, nworld, dtype
        self.source: RowSource | None = None
        self.lender: Lender | None = None
        self.tracked = {name: TrackedArray(array) for name, array in self.items()}
        self.edited = set(self)

    def __reduce__(self):
        return Expanded, (self.model, self.nworld, self.dtype, {name: rows.copy() for name, rows in self.items()})

    def _new(self, field: Field) -> np.ndarray:
        """Returns separate memory of a field."""
        return np.empty((self.nworld, *self.model.__dict__[field.name].shape), field.stored_as(self.dtype))

    def move_into(self, source: RowSource, lender: Lender | None) -> None:
        """Moves all fields, and those added later, into memory that others share."""
        self.source, self.lender = source, lender
        for name, old in tuple(self.items()):
            self.add(name, old)

    def add(self, name: str, values: np.ndarray | None = None) -> None:
        """Adds rows of a field, initialized with values; None: the model's."""
        field = MODEL[name]
        self[name] = (self.source or self._new)(field)
        self[name][...] = self.model.__dict__[name] if values is None else values
        self.tracked[name] = TrackedArray(self[name], None if self.lender is None else self.lender(field))

    def lend(self, name: str) -> np.ndarray:
        """Returns the rows of a field for a user, who may write to them."""
        if name not in self.tracked:  # rows of another batch, see `WorldArrays.share_expanded`
            self.tracked[name] = TrackedArray(self[name])
        view = self.tracked[name].view
        self.edited.add(name)
        return view

    def check_edits(self) -> set[str]:
        """Checks the fields that users may have written to; returns the changed ones.

        Raises:
            ModelError: a value that a field cannot hold; see `Model.check_edits`.
        """
        return check_edited(self.tracked, self.edited, functools.partial(check_field, self.model, worlds=True))

    def own(self, name: str, at: np.ndarray) -> np.ndarray:
        """Returns a real model field of the named worlds, expanded or not, (n, ...) float64."""
        value = self.model.__dict__[name]
        return self[name][at].astype(float) if name in self else np.broadcast_to(value, (len(at), *value.shape))

    def shared_or_own(self, name: str, at: np.ndarray | slice) -> np.ndarray:
        """Returns a real model field of the named worlds: (n, ...) if it is expanded, else (...) for all worlds."""
        return self[name][at] if name in self else self.model.__dict__[name]

    def in_use(self) -> dict[str, int | np.ndarray]:
        """Returns integers and sizes by name that hold for all worlds together, and replace those of the model.

        A field may be 0 in the model and nonzero in a world.
        """
        return in_use(self.model, self) if self and not self.keys().isdisjoint(DECIDING) else {}

    def inputs(self) -> list[str]:
        """Returns the fields that differ and do not depend on other fields alone."""
        volumes = VOLUMES if self.model.nvariant else ()
        return [name for name in self if name not in DEPENDENT_REALS or name in BOTH or name in volumes]


def dependent(model: Model, differing: Container[str]) -> list[str]:
    """Returns the fields of a model that depend on those that differ by world."""
    # most models have no geom with fluid forces, and their worlds need no separate coefficients
    fluid = "geom_fluid" in differing or model.__dict__["geom_fluid"].any()
    names = [name for name in DEPENDENT_REALS if name != "geom_fluid" or fluid]
    return [*names, MEAN] if any(MEAN in group.places for group in model.variants.values()) else names
