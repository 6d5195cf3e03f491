"""Detects possible user writes to live arrays since the last check.

A live array can be written at any time, without notification.  But a writer needs a reference: to the view that
users get, or to the array that is the base of this view and of all views made from it.  So an array that was not
accessed since the last check, and is not referenced, is unchanged and need not be compared.

Reference counts are exact only with the global interpreter lock: without it, importing this module is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

import numpy as np

from featherlane.errors import InstallationError

SMALL = 1 << 16  # bytes: up to this size a comparison is cheaper than a check of the values


def check_interpreter() -> None:
    """Checks that the interpreter has its global lock.

    Raises:
        InstallationError: a free-threaded Python runs without the lock.
    """
    if not getattr(sys, "_is_gil_enabled", lambda: True)():  # Python 3.13 and later
        raise InstallationError(
            "free-threaded Python without the global interpreter lock is not supported: writes to live arrays are "
            "detected by exact reference counts; set PYTHON_GIL=1, or install a Python with the lock"
        )


check_interpreter()


class TrackedArray:
    """One array and the state of its user references.

    Args:
        array: the array.
        whole: a larger array that users reach instead of its part `array`; None: users reach `view`.

    Attributes:
        array: the array itself, for the engine.
        view: the live array for users.
    """

    __slots__ = ("_idle", "_root", "_snapshot", "_whole", "array", "view")

    def __init__(self, array: np.ndarray, whole: TrackedArray | None = None):
        self.array, self._whole = array, whole
        self._snapshot = None  # bytes of the values at the last `keep`
        # a base that is not an array ends NumPy's chain of bases: every array made from the view references the root
        self._root = np.asarray(array.data)
        self.view = self._root.view()
        self.view.flags.writeable = array.flags.writeable
        self._idle = self._references()

    def is_held(self) -> bool:
        """Returns whether a user holds the view, or an array made from it.

        Without this test, a step of one humanoid takes 82 us instead of 11 us after ten fields have been read.
        """
        return self._references() > self._idle or (self._whole is not None and self._whole.is_held())

    def has_changed(self) -> bool:
        """Returns whether the values differ from those at the last `keep`; always True for large arrays."""
        return self.array.nbytes > SMALL or self.array.tobytes() != self._snapshot

    def keep(self) -> None:
        """Stores the values, which passed the check."""
        if self.array.nbytes <= SMALL:
            self._snapshot = self.array.tobytes()

    def _references(self) -> int:
        return sys.getrefcount(self._root) + sys.getrefcount(self.view)


def check_edited(
    tracked: Mapping[str, TrackedArray], edited: set[str], check: Callable[[str, np.ndarray], None]
) -> set[str]:
    """Checks the arrays that users may have written to, in the order of their names; returns the changed ones.

    Args:
        tracked: arrays by field.
        edited: names of the fields to check; those that no user references any more are removed.
        check: raises an error for values that a field cannot hold.
    """
    changed = set()
    for name in sorted(edited):
        array = tracked[name]
        if array.has_changed():
            changed.add(name)
            check(name, array.array)
            array.keep()
        edited.discard(name)
        if array.is_held():
            edited.add(name)
    return changed
