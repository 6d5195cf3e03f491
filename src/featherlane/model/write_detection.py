"""Arrays that are lent to a user: may somebody have written to one since the last look?

A live array can be written at any time, and no write tells.  But whoever can write holds a reference: to the view that
users get, or to the array that it and all views made of it have as their base.  So what was not lent since the last
look, and is not held, is as it was, and need not be compared.
"""

from __future__ import annotations

import sys

import numpy as np

SMALL = 1 << 16  # bytes: up to here a comparison costs less than looking for what is wrong


class Lent:
    """One array and what is known of its users.

    Args:
        array: C-contiguous.

    Attributes:
        array: the array itself, for the engine.
        view: the live array that users get.
    """

    __slots__ = ("_idle", "_root", "_seen", "array", "view")

    def __init__(self, array: np.ndarray):
        self.array, self._seen = array, None  # bytes of the values that were kept
        # a base that is no array is where NumPy's chains of views end: all that is made of the view holds the root
        self._root = np.asarray(array.data)
        self.view = self._root.view()
        self.view.flags.writeable = array.flags.writeable
        self._idle = self._references()

    def is_held(self) -> bool:
        """Does anybody hold the view, or one that was made of it?

        Without this test, a step of one humanoid takes 82 us instead of 11 us after ten fields have been read.
        """
        return self._references() > self._idle

    def has_changed(self) -> bool:
        """Are the values others than those that were kept?  Of large arrays nobody knows."""
        return self.array.nbytes > SMALL or self.array.tobytes() != self._seen

    def keep(self) -> None:
        """Keep the values, which were found to be in order."""
        if self.array.nbytes <= SMALL:
            self._seen = self.array.tobytes()

    def _references(self) -> int:
        return sys.getrefcount(self._root) + sys.getrefcount(self.view)
