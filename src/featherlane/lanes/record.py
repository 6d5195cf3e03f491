"""Memory of records: aligned rows, and the table of addresses that compiled code reads.  NumPy only.

A table is int64: four fault words, then for each field its address (or the value of a size) and its length.
`Rows` and `python_record` give the same memory to uncompiled kernels.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
from numpy.typing import DTypeLike

from featherlane.lanes.layout import Layout
from featherlane.lanes.values import Row

LARGE = 1 << 18  # bytes of an array that gets pages of its own
LINE = 64  # bytes of a cache line, and of the widest vector
FUNCTION = 2  # checks of a function of the user: a `gather` beyond the end is no fault, its index is a world's number
FAULT_WORDS = 4  # before the first field of a table: faults seen, field, index, length of the first one
SHARED_DTYPES = {"int": np.dtype(np.int32), "long": np.dtype(np.int64), "scalar": np.dtype(np.float64)}


def aligned(shape, dtype: DTypeLike = np.float64) -> np.ndarray:
    """Zeros on a 64-byte boundary, one cache line longer than asked: a kernel may load a whole vector anywhere."""
    dtype = np.dtype(dtype)
    n = int(np.prod(shape)) * dtype.itemsize
    raw = _pages(n + 2 * LINE) if n >= LARGE else np.zeros(n + 2 * LINE, np.uint8)
    start = -address(raw) % LINE
    return raw[start : start + n].view(dtype).reshape(shape)


def _pages(n: int) -> np.ndarray:
    """n bytes of zeros in pages of their own, which are taken when they are first written to, and given back.

    An allocator that has freed as much before hands it out again, and has to write zeros all over it.
    """
    if not hasattr(mmap, "MAP_ANONYMOUS"):
        return np.zeros(n, np.uint8)
    return np.frombuffer(mmap.mmap(-1, n, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)


def address(array: np.ndarray) -> int:
    """The address of an array's first element (2 us quicker than `array.ctypes.data`)."""
    return array.__array_interface__["data"][0]


class Record:
    """A record of a layout over arrays that somebody owns.

    Args:
        layout: what the record consists of.
        sizes: value of each size field.
        arrays: one array for each other field: int rows, or real rows of shape (n, W).
        width: worlds in a row.
        dtype: float64 or float32.

    Raises:
        ValueError: an array is missing, or has another dtype, row length or alignment than compiled code expects.

    The record keeps the arrays alive.  `set_size` changes a size in place; `check_faults` reads the words that bounds
    checks write; `functions` are those that uncompiled kernels `call` by number.
    """

    def __init__(self, layout: Layout, sizes, arrays, width: int, dtype):
        self.layout, self.width, self.dtype = layout, width, np.dtype(dtype)
        self.arrays = arrays
        self.functions: list[Callable] = []
        table = [0] * FAULT_WORDS
        for f in layout.fields:
            if f.kind == "size":
                table += (sizes[f.name], 0)
                continue
            if f.name not in arrays:
                raise ValueError(f"layout {layout.name}: no array for field {f.name}")
            a = arrays[f.name]
            expected = SHARED_DTYPES.get(f.kind, self.dtype)
            lanes = width if f.kind == "real" else 1
            if a.dtype != expected or not a.flags.c_contiguous or a.size % lanes:
                raise ValueError(
                    f"field {f.name}: {a.dtype} {a.shape} given; contiguous {expected} rows of {lanes} are needed"
                )
            table += (self._start(f.name, a, lanes), a.size // lanes)
        self.table = np.array(table, np.int64)
        self.address = address(self.table)

    def set_size(self, name: str, value: int) -> None:
        """Change a size field."""
        self.table[FAULT_WORDS + 2 * self.layout.index[name]] = value

    def size(self, name: str) -> int:
        """Value of a size field."""
        return int(self.table[FAULT_WORDS + 2 * self.layout.index[name]])

    def point(self, name: str, array: np.ndarray) -> None:
        """Let a field name another array of the same kind and length; `aligned` gives such memory.

        Raises:
            ValueError: the array is not on the boundary of whole vectors.
        """
        k = self.layout.index[name]
        lanes = self.width if self.layout.fields[k].kind == "real" else 1
        self.table[FAULT_WORDS + 2 * k] = self._start(name, array, lanes)
        self.arrays[name] = array

    @staticmethod
    def _start(name: str, array: np.ndarray, lanes: int) -> int:
        """The address of a field's array, which has to be on the boundary of whole vectors."""
        start, boundary = address(array), min(array.itemsize * lanes, LINE)
        if start % boundary and array.size:
            raise ValueError(f"field {name}: memory at a multiple of {boundary} bytes is needed")
        return start

    def check_faults(self, where: str) -> None:
        """Raise IndexError if a bounds-checked kernel left its rows, and clear the fault words."""
        count, k, index, length = (int(x) for x in self.table[:FAULT_WORDS])
        if count:
            self.table[:FAULT_WORDS] = 0
            name = f"{self.layout.name}.{self.layout.fields[k].name}"
            raise IndexError(f"{where}: {name}[{index}] of {length} rows ({count} accesses out of range)")


def allocate(layout: Layout, sizes, width: int, dtype) -> dict[str, np.ndarray]:
    """Zeroed arrays for every field but the sizes: (n, W) for reals, (n,) for ints; at least one row each."""
    real = np.dtype(dtype)
    plan, total = [], 0
    for f in layout.stored:
        kind, n = SHARED_DTYPES.get(f.kind, real), max(f.count(sizes), 1)
        shape = (n, width) if f.kind == "real" else (n,)
        size = kind.itemsize * n * (width if f.kind == "real" else 1)
        plan.append((f.name, shape, kind, total if size < LARGE else None))
        if size < LARGE:
            total += -(-size // LINE) * LINE + LINE
    # what is small lies together: one piece of memory is made in the time that one array takes
    block = aligned(total, np.uint8)
    return {
        name: aligned(shape, kind) if start is None else np.ndarray(shape, kind, block, start)
        for name, shape, kind, start in plan
    }


# ---- the same memory for uncompiled kernels -------------------------------------------------------------


class Rows:
    """An uncompiled view: an index gives a copy (a value), bounds are always checked."""

    __slots__ = ("array", "label")

    def __init__(self, array, label):
        self.array, self.label = array, label

    def _checked(self, i):
        if not 0 <= i < len(self.array):
            raise IndexError(f"{self.label}[{i}] of {len(self.array)} rows")
        return i

    def __getitem__(self, i):
        x = self.array[self._checked(i)]
        return int(x) if self.array.dtype.kind == "i" else x if self.array.ndim == 1 else x.copy().view(Row)

    def __setitem__(self, i, x):
        self.array[self._checked(i)] = x

    def set_lane(self, i, lane, x):
        """One world's number of row i."""
        self.array[self._checked(i)].reshape(-1)[lane] = x

    def eights(self):
        """The same numbers, eight to a row."""
        return Rows(self.array[: self.array.size // 8 * 8].reshape(-1, 8), self.label)

    def gather(self, index):
        """Element index[lane] in each lane: from a shared table, or from the lane's own column."""
        rows = np.asarray(index).astype(np.int64)
        for i in np.ravel(rows):
            self._checked(i)
        x = self.array[rows] if self.array.ndim == 1 else self.array[rows, np.arange(rows.size)]
        return x.view(Row)


def python_record(record: Record) -> SimpleNamespace:
    """The record as attributes for uncompiled kernels."""

    def scalars(pointer):
        kind = ctypes.c_double if record.dtype == np.float64 else ctypes.c_float
        return _Memory(ctypes.cast(pointer, ctypes.POINTER(kind)))

    out = SimpleNamespace(width=record.width, shape=(record.width,), dtype=record.dtype, scalars=scalars)
    out.functions = record.functions
    for f in record.layout.fields:
        if f.kind == "size":
            setattr(out, f.name, record.size(f.name))
        else:
            setattr(out, f.name, Rows(record.arrays[f.name], f"{record.layout.name}.{f.name}"))
    return out


class _Memory:
    """Reals at an address, for uncompiled kernels."""

    def __init__(self, pointer):
        self.pointer = pointer

    def __getitem__(self, i):
        return self.pointer[int(i)]

    def __setitem__(self, i, x):
        self.pointer[int(i)] = float(np.asarray(x).reshape(-1)[0])

    def set_lane(self, i, lane, x):
        self.pointer[int(i) + int(lane)] = float(x)
