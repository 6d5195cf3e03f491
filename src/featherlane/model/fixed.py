"""Read-only arrays whose error of a write states the reason; NumPy's error states only "read-only".

Kernels index memory by a model's tables without a check, so that no write may reach them.  The memory behind a table is
exported read-only: NumPy does not switch `flags.writeable` on again.
"""

from __future__ import annotations

import numpy as np

from featherlane.errors import ModelError


class Fixed(np.ndarray):
    """A read-only array with a reason; results of operations on it are plain arrays.

    Attributes:
        reason: the text of the error that a write raises.
    """

    reason: str

    def __array_finalize__(self, source):
        self.reason = getattr(source, "reason", "")

    def __setitem__(self, index, value):
        self._refuse()
        super().__setitem__(index, value)

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **options):
        for array in (*out, *(inputs[:1] if method == "at" else ())):
            if isinstance(array, Fixed):
                array._refuse()
        if out:
            options["out"] = tuple(map(_plain, out))
        return getattr(ufunc, method)(*map(_plain, inputs), **options)

    def _refuse(self) -> None:
        """Raise the reason; a copy can be written to."""
        if not self.flags.writeable:
            raise ModelError(self.reason)


def _plain(array):
    return array.view(np.ndarray) if isinstance(array, Fixed) else array


def read_only(array: np.ndarray) -> np.ndarray:
    """The same memory as a root of views that cannot be made writable."""
    return np.asarray(array.data.toreadonly())


def fixed(array: np.ndarray, reason: str) -> Fixed:
    """A read-only array as `Fixed`."""
    view = array.view(Fixed)
    view.reason = reason
    return view
