"""Read-only arrays that raise an error with the reason on a write; NumPy's error only states "read-only".

Kernels use a model's tables as unchecked indices, so no write may change them.  The memory of a table is exported
read-only, so NumPy cannot set `flags.writeable` again.
"""

from __future__ import annotations

import numpy as np

from featherlane.errors import ModelError


class Fixed(np.ndarray):
    """A read-only array with a reason; results of operations on it are plain arrays.

    Attributes:
        reason: the error text of a write.
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
        """Raises the error with the reason; copies are writable."""
        if not self.flags.writeable:
            raise ModelError(self.reason)


def _plain(array):
    return array.view(np.ndarray) if isinstance(array, Fixed) else array


def read_only(array: np.ndarray) -> np.ndarray:
    """Returns a base array of the same memory whose views cannot be made writable."""
    return np.asarray(array.data.toreadonly())


def fixed(array: np.ndarray, reason: str) -> Fixed:
    """Returns a read-only array as `Fixed`."""
    view = array.view(Fixed)
    view.reason = reason
    return view
