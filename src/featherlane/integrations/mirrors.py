"""Copies of a batch's arrays in the type that another library reads and writes."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

Worlds = np.ndarray | slice
EVERY = slice(None)


def bits(array: np.ndarray) -> np.ndarray:
    """Returns the bit patterns of an array as unsigned integers, so that equal NaN compare equal."""
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


class Mirror:
    """Holds a converted copy of rows of a batch.

    Edits of the copy are written to the batch before a call (`push`), and the copy is refreshed after it (`pull`).
    Elements that were not edited keep all digits in the batch.

    Args:
        rows: (nworld, ...) memory of the batch.
        shown: (nworld, ...) array of as many elements, which the library reads and writes.
        written: the library may write; else `push` does nothing.
    """

    def __init__(self, rows: np.ndarray, shown: np.ndarray, written: bool = True):
        self.rows, self.shown = rows.reshape(shown.shape), shown
        self._kept = np.empty_like(shown) if written else None
        self.pull()

    def pull(self, worlds: Worlds = EVERY) -> None:
        """Copies worlds from the batch."""
        self.shown[worlds] = self.rows[worlds]
        if self._kept is not None:
            self._kept[worlds] = self.shown[worlds]

    def push(self, worlds: Worlds = EVERY, once: bool = True) -> None:
        """Copies edited elements of worlds to the batch; without `once`, the next push copies them again."""
        if self._kept is None:
            return
        given = self.shown[worlds]
        edited = bits(given) != bits(self._kept[worlds])
        if edited.any():
            self.rows[worlds] = np.where(edited, given, self.rows[worlds])
            if once:
                self._kept[worlds] = given


class Mirrors(dict[str, Mirror]):
    """Holds the mirrors of fields by name."""

    def shown(self, name: str, rows: np.ndarray, dtype: DTypeLike, written: bool = True) -> np.ndarray:
        """Returns rows of a batch in a type: the rows, or their mirror's array; `written` as for `Mirror`."""
        if rows.dtype == np.dtype(dtype):
            return rows
        if name not in self:
            self[name] = Mirror(rows, rows.astype(dtype), written)
        return self[name].shown

    def pull(self, worlds: Worlds = EVERY) -> None:
        """Copies worlds from the batch."""
        for mirror in self.values():
            mirror.pull(worlds)

    def push(self, worlds: Worlds = EVERY, once: bool = True) -> None:
        """Copies edited elements of worlds to the batch; without `once`, the next push copies them again."""
        for mirror in self.values():
            mirror.push(worlds, once)
