"""Memory of records: aligned rows, and the table of addresses that compiled code reads.  Uses NumPy only.

A table is int64: four fault words, then for each field its address (or the value of a size) and its length.
`Rows` and `python_record` give uncompiled kernels access to the same memory.
"""

from __future__ import annotations

import ctypes
import math
import mmap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from featherlane.engine.lanes.layout import Layout
from featherlane.engine.lanes.values import Row
from featherlane.errors import ArgumentError, OutOfRangeError

LARGE = 1 << 18  # bytes from which an array gets separate pages
LINE = 64  # bytes of a cache line, and of the widest vector
MOST_ALLOCATIONS = 64  # sets of sizes whose placements are kept
FUNCTION = 2  # check mode of user callbacks: `gather` accepts an index out of range, because it is a world's value
FAULT_WORDS = 4  # before the first field of a table: number of faults, then field, index, length of the first one


def aligned(shape: int | tuple[int, ...], dtype: DTypeLike = np.float64) -> np.ndarray:
    """Returns zeros on a 64-byte boundary, padded by a cache line so that a kernel may load whole vectors anywhere."""
    dtype = np.dtype(dtype)
    n = int(np.prod(shape)) * dtype.itemsize
    raw = _pages(n + 2 * LINE) if n >= LARGE else np.zeros(n + 2 * LINE, np.uint8)
    start = -address(raw) % LINE
    return raw[start : start + n].view(dtype).reshape(shape)


def _pages(n: int) -> np.ndarray:
    """Returns n zero bytes in separate pages, which are allocated at the first write and freed with the array.

    A general allocator would reuse freed memory and would have to fill it with zeros.
    """
    if not hasattr(mmap, "MAP_ANONYMOUS"):
        return np.zeros(n, np.uint8)
    return np.frombuffer(mmap.mmap(-1, n, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)


_no_bytes = (ctypes.c_char * 0).from_buffer


def address(array: np.ndarray) -> int:
    """Returns the address of an array's first element (1 to 2 us faster than `array.ctypes.data`)."""
    try:
        return ctypes.addressof(_no_bytes(array))
    except TypeError:  # read-only or not contiguous
        return array.__array_interface__["data"][0]


class Record:
    """A record of a layout over existing arrays.

    Args:
        layout: the record's fields.
        sizes: value of each size field.
        arrays: one array for each other field: int rows, or real rows of shape (n, W).
        width: worlds in a row.
        dtype: float64 or float32.

    Raises:
        ValueError: an array is missing, or has another dtype, row length or alignment than compiled code expects.

    The record keeps the arrays alive.  `set_size` changes a size in place; `check_faults` reads the words that bounds
    checks write; uncompiled kernels `call` the entries of `functions` by number.
    """

    def __init__(self, layout: Layout, sizes, arrays, *, width: int, dtype):
        self.layout, self.width, self.dtype = layout, width, np.dtype(dtype)
        self.arrays = arrays
        self.functions: list[Callable] = []
        table = [0] * FAULT_WORDS
        for f in layout.fields:
            if f.kind == "size":
                table += (sizes[f.name], 0)
                continue
            if f.name not in arrays:
                raise ArgumentError(f"layout {layout.name}: no array for field {f.name}")
            a = arrays[f.name]
            expected = f.stored_as(self.dtype)
            lanes = width if f.kind == "real" else 1
            if a.dtype != expected or not a.flags.c_contiguous or a.size % lanes:
                raise ArgumentError(
                    f"field {f.name}: got {a.dtype} {a.shape}, allowed are contiguous {expected} rows of {lanes}"
                )
            table += (self._start(f.name, a, lanes), a.size // lanes)
        self.table = np.array(table, np.int64)
        self.address = address(self.table)

    def set_size(self, name: str, value: int) -> None:
        """Changes a size field."""
        self.table[FAULT_WORDS + 2 * self.layout.index[name]] = value

    def places(self, names: Iterable[str]) -> np.ndarray:
        """Returns where size fields are in `table`, for writing several at once."""
        return np.array([FAULT_WORDS + 2 * self.layout.index[name] for name in names], np.intp)

    def size(self, name: str) -> int:
        """Returns the value of a size field."""
        return int(self.table[FAULT_WORDS + 2 * self.layout.index[name]])

    def point(self, name: str, array: np.ndarray) -> None:
        """Makes a field use another array of the same kind and length; `aligned` allocates such memory.

        Raises:
            ValueError: the array is not on the boundary of whole vectors.
        """
        k = self.layout.index[name]
        lanes = self.width if self.layout.fields[k].kind == "real" else 1
        self.table[FAULT_WORDS + 2 * k] = self._start(name, array, lanes)
        self.arrays[name] = array

    @staticmethod
    def _start(name: str, array: np.ndarray, lanes: int) -> int:
        """Returns the address of a field's array, which must be a multiple of the vector size."""
        start, boundary = address(array), min(array.itemsize * lanes, LINE)
        if start % boundary and array.size:
            raise ArgumentError(
                f"field {name}: got unaligned memory, allowed is an address that is a multiple of {boundary} bytes"
            )
        return start

    def check_faults(self, where: str, error: type[Exception] = OutOfRangeError) -> None:
        """Raises an error if a bounds-checked kernel left its rows, and clears the fault words."""
        count, k, index, length = (int(x) for x in self.table[:FAULT_WORDS])
        if count:
            self.table[:FAULT_WORDS] = 0
            name = f"{self.layout.name}.{self.layout.fields[k].name}"
            raise error(f"{where}: {name}[{index}] of {length} rows ({count} accesses out of range)")


def shaping(layout: Layout) -> tuple[str, ...]:
    """Returns names of the sizes in the shapes of a layout's fields."""
    return tuple(sorted({n for f in layout.fields for n in f.shape if isinstance(n, str)}))


class Place(NamedTuple):
    """Location of a field: block of memory, first byte, and the array's shape and dtype."""

    name: str
    block: int
    start: int
    shape: tuple[int, ...]
    dtype: np.dtype


class Placement:
    """Locations of all fields of a layout for one set of sizes, from which records are created without another search.

    Args:
        layout: the records' fields.
        places: one for each field except the sizes.
        width: worlds in a row.
        dtype: float64 or float32.
    """

    def __init__(self, layout: Layout, places: Sequence[Place], width: int, dtype: DTypeLike):
        self.layout, self.places, self.width, self.dtype = layout, places, width, np.dtype(dtype)
        self._sizes = [(f.name, FAULT_WORDS + 2 * k) for k, f in enumerate(layout.fields) if f.kind == "size"]
        self._size_entries = [k for _, k in self._sizes]
        self._entries = np.array([FAULT_WORDS + 2 * layout.index[p.name] for p in places], int)
        self._blocks = np.array([p.block for p in places], int)
        self._table = np.zeros(FAULT_WORDS + 2 * len(layout.fields), np.int64)
        self._table[self._entries] = [p.start for p in places]
        self._table[self._entries + 1] = [p.shape[0] for p in places]

    def record(self, sizes: Mapping[str, int], blocks: Sequence[np.ndarray]) -> Record:
        """Returns a record over aligned, contiguous blocks of memory, with the values of its size fields."""
        record = object.__new__(Record)
        record.layout, record.width, record.dtype, record.functions = self.layout, self.width, self.dtype, []
        record.arrays = {name: np.ndarray(shape, kind, blocks[k], at) for name, k, at, shape, kind in self.places}
        record.table = table = self._table.copy()
        table[self._entries] += np.array([address(block) for block in blocks])[self._blocks]
        table[self._size_entries] = [sizes[name] for name, _ in self._sizes]
        record.address = address(table)
        return record


_shaping: dict[int, tuple[Layout, tuple[str, ...]]] = {}  # by id, which is unique while the layout is held
_allocations: dict[tuple, tuple[Placement, list[tuple]]] = {}


def _allocation(layout: Layout, sizes, width: int, dtype: np.dtype) -> tuple[Placement, list[tuple]]:
    """Returns locations for a record's memory, and shape and dtype of each block: small arrays share the first block.

    Allocating one block takes as long as allocating one array.
    """
    places, blocks, total = [], [], 0
    for f in layout.stored:
        kind, n = f.stored_as(dtype), max(f.count(sizes), 1)
        shape = (n, width) if f.kind == "real" else (n,)
        nbytes = kind.itemsize * n * (width if f.kind == "real" else 1)
        if nbytes >= LARGE:
            blocks.append((shape, kind))
            places.append(Place(f.name, len(blocks), 0, shape, kind))
        else:
            places.append(Place(f.name, 0, total, shape, kind))
            total += -(-nbytes // LINE) * LINE + LINE
    return Placement(layout, places, width, dtype), [((total,), np.dtype(np.uint8)), *blocks]


def allocated(layout: Layout, sizes: Mapping[str, int], width: int, dtype: DTypeLike) -> Record:
    """Returns a record over new zeroed arrays: (n, W) for reals, (n,) for ints; at least one row each."""
    real = np.dtype(dtype)
    if id(layout) not in _shaping:
        _shaping[id(layout)] = layout, shaping(layout)
    key = id(layout), tuple(sizes[name] for name in _shaping[id(layout)][1]), width, real
    if key not in _allocations:
        if len(_allocations) >= MOST_ALLOCATIONS:
            _allocations.clear()
        _allocations[key] = _allocation(layout, sizes, width, real)
    placement, blocks = _allocations[key]
    return placement.record(sizes, [aligned(shape, kind) for shape, kind in blocks])


def allocate(layout: Layout, sizes: Mapping[str, int], *, width: int, dtype: DTypeLike) -> dict[str, np.ndarray]:
    """Returns zeroed arrays for every field except the sizes, as `allocated` does."""
    return allocated(layout, sizes, width, dtype).arrays


# ---- the same memory for uncompiled kernels -------------------------------------------------------------


class Rows:
    """An uncompiled view: an index returns a copy (a value, or a row of type `kind`); bounds are always checked."""

    __slots__ = ("array", "inner", "kind", "label")

    def __init__(self, array, label, kind=None, inner=()):
        self.array, self.label, self.kind, self.inner = array, label, kind, inner

    def flat(self):
        """Returns the same numbers without a row type."""
        return Rows(self.array, self.label)

    def _row(self, index):
        """Returns the row of several indices."""
        if len(index) != len(self.inner) + 1:
            raise ArgumentError(f"{self.label}: {len(index)} indices, allowed are {len(self.inner) + 1}")
        return int(np.ravel_multi_index(index[1:], self.inner)) + int(index[0]) * math.prod(self.inner)

    def of(self, i):
        """Returns what an object with this index has: its row, or the view of its rows."""
        if not self.inner:
            return self[i]
        n = math.prod(self.inner) * (len(self.kind._fields) if self.kind else 1)
        first = self._checked(n * i)
        return Rows(self.array[first : first + n], self.label, self.kind, self.inner[1:])

    def _checked(self, i):
        if not 0 <= i < len(self.array):
            raise OutOfRangeError(f"{self.label}[{i}] of {len(self.array)} rows")
        return i

    def _parts(self, i):
        """Returns where the parts of row i are."""
        n = len(self.kind._fields)
        if not 0 <= i < len(self.array) // n:
            raise OutOfRangeError(f"{self.label}[{i}] of {len(self.array) // n} rows")
        return range(n * i, n * i + n)

    def __getitem__(self, i):
        if isinstance(i, slice):
            return tuple(self[k] for k in self._slice(i))
        i = self._row(i) if isinstance(i, tuple) else i
        if self.kind:
            numbers = self.flat()
            row = self.kind(numbers[k] for k in self._parts(i))
            row.place = self, i
            return row
        x = self.array[self._checked(i)]
        if self.array.ndim > 1:
            return x.copy().view(Row)
        return int(x) if self.array.dtype.kind == "i" else float(x)  # float takes the precision of a value

    def _slice(self, s: slice) -> range:
        """Returns the indices of a slice of a field without a row type."""
        if self.kind or s.step is not None:
            raise ArgumentError(f"{self.label}: a slice is [a : a + n], of a flat field; flat(field) is one")
        return range(s.start, s.stop)

    def __setitem__(self, i, x):
        if isinstance(i, slice):
            for k, part in zip(self._slice(i), x, strict=True):
                self[k] = part
            return
        i = self._row(i) if isinstance(i, tuple) else i
        if self.kind:
            for k, part in zip(self._parts(i), x, strict=True):
                self.array[k] = part
            return
        self.array[self._checked(i)] = x

    def set_lane(self, i, lane, x):
        """Sets one world's value, or typed row, of row i."""
        if self.kind:
            for k, part in zip(self._parts(i), x, strict=True):
                self.flat().set_lane(k, lane, part)
            return
        self.array[self._checked(i)].reshape(-1)[lane] = x

    def eights(self):
        """Returns the same numbers, eight per row."""
        return Rows(self.array[: self.array.size // 8 * 8].reshape(-1, 8), self.label)

    def gather(self, index):
        """Returns element index[lane] in each lane: of a shared table, or of the lane's column."""
        rows = np.asarray(index).astype(np.int64)
        for i in np.ravel(rows):
            self._checked(i)
        x = self.array[rows] if self.array.ndim == 1 else self.array[rows, np.arange(rows.size)]
        return x.view(Row)


def python_record(record: Record) -> SimpleNamespace:
    """Returns the record as attributes for uncompiled kernels."""

    def memory(kind, pointer):
        return _Memory(ctypes.cast(pointer, ctypes.POINTER(kind)))

    scalars = partial(memory, ctypes.c_double if record.dtype == np.float64 else ctypes.c_float)
    doubles = partial(memory, ctypes.c_double)
    form = {"width": record.width, "shape": (record.width,), "dtype": record.dtype}
    form |= {"scalars": scalars, "doubles": doubles, "functions": record.functions}
    out = SimpleNamespace(**form, **{name: SimpleNamespace(**form) for name in record.layout.records})
    for f in record.layout.fields:
        within, _, name = f.name.rpartition(".")
        owner = getattr(out, within) if within else out
        if f.kind == "size":
            setattr(owner, name, record.size(f.name))
        else:
            inner = tuple(n if isinstance(n, int) else record.size(n) for n in record.layout.inner(f))
            setattr(owner, name, Rows(record.arrays[f.name], f"{record.layout.name}.{f.name}", f.rows, inner))
    for name, prefix in record.layout.groups.items():
        setattr(out, name, Objects(out, prefix))
    return out


class Objects:
    """The objects of one kind in an uncompiled record: `d.contact[k]`."""

    def __init__(self, record, prefix):
        self.record, self.prefix = record, prefix

    def __getitem__(self, i):
        return _Object(self, i)

    def of_record(self, record):
        """Returns the same objects of another record."""
        return Objects(record, self.prefix)


class _Object:
    """One object: its fields are those of the record with the prefix of its group, at its index."""

    __slots__ = ("_group", "_index")

    def __init__(self, group, index):
        object.__setattr__(self, "_group", group)
        object.__setattr__(self, "_index", index)

    def __getattr__(self, name):
        return getattr(self._group.record, self._group.prefix + name).of(self._index)

    def __setattr__(self, name, x):
        getattr(self._group.record, self._group.prefix + name)[self._index] = x


class _Memory:
    """Reals at an address, for uncompiled kernels."""

    def __init__(self, pointer):
        self.pointer = pointer

    def __getitem__(self, i):
        if isinstance(i, slice):
            return tuple(self.pointer[k] for k in range(i.start, i.stop))
        return self.pointer[int(i)]

    def __setitem__(self, i, x):
        if isinstance(i, slice):
            for k, part in zip(range(i.start, i.stop), x, strict=True):
                self[k] = part
            return
        self.pointer[int(i)] = float(np.asarray(x).reshape(-1)[0])

    def set_lane(self, i, lane, x):
        self.pointer[int(i) + int(lane)] = float(x)
