"""Copies of a batch's arrays in the type that another library reads and writes."""

from __future__ import annotations

import numpy as np


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

    def pull(self, ids: np.ndarray | None = None) -> None:
        """Copies worlds from the batch; None for all."""
        at = slice(None) if ids is None else ids
        self.shown[at] = self.rows[at]
        if self._kept is not None:
            self._kept[at] = self.shown[at]

    def push(self, ids: np.ndarray | None = None) -> bool:
        """Copies edited elements of worlds to the batch and returns whether there are any; None for all worlds."""
        if self._kept is None:
            return False
        at = slice(None) if ids is None else ids
        given = self.shown[at]
        edited = given != self._kept[at]
        if not edited.any():
            return False
        self.rows[at] = np.where(edited, given, self.rows[at])
        self._kept[at] = given
        return True
