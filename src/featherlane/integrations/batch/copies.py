"""Arrays of another type than the fields that they copy, which each call reads and refreshes."""

from __future__ import annotations

import numpy as np

Sims = np.ndarray | slice


def bits(array: np.ndarray) -> np.ndarray:
    """Returns the bit patterns of an array as unsigned integers, so that equal NaN compare equal."""
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


class Copy:
    """Copies a field with a row per simulation into an array of another type.

    Args:
        rows: (nsim, ...) the field.
        dtype: type of the copy.
        written: whether the caller's writes to the copy reach the field.

    Attributes:
        array: (nsim, ...) the copy.
    """

    def __init__(self, rows: np.ndarray, dtype: np.dtype, written: bool):
        self._rows, self.array = rows, rows.astype(dtype)
        self._seen = self.array.copy() if written else None

    def put(self, sims: Sims) -> None:
        """Writes the elements into the field that the caller changed since the last `take`."""
        if self._seen is None:
            return
        array = self.array[sims]
        changed = bits(array) != bits(self._seen[sims])
        if changed.any():
            rows = self._rows[sims]
            rows[changed] = array[changed]
            self._rows[sims] = rows

    def take(self, sims: Sims) -> None:
        """Refreshes the copy from the field."""
        self.array[sims] = self._rows[sims]
        if self._seen is not None:
            self._seen[sims] = self.array[sims]
