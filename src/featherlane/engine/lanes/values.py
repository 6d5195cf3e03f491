"""The functions that kernels may call, uncompiled: a value is a NumPy row of W worlds (or a plain number).

Kernels import these names.  Plain Python runs the definitions here; the table in `compiler/table.py` holds the
compiled definitions, with one LLVM vector (or scalar at W = 1) per value.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from featherlane.engine.lanes.rows import OPERATORS
from featherlane.engine.lanes.rows import kind_of as _kind_of
from featherlane.engine.lanes.rows import partwise as _partwise
from featherlane.engine.lanes.tangents import Dual as _Dual
from featherlane.engine.lanes.tangents import split as _split


class Row(np.ndarray):
    """An uncompiled value.  `x += y` creates a new row, as in compiled code, so other names of x keep their value."""

    __iadd__ = np.ndarray.__add__
    __isub__ = np.ndarray.__sub__
    __imul__ = np.ndarray.__mul__
    __itruediv__ = np.ndarray.__truediv__
    __iand__ = np.ndarray.__and__
    __ior__ = np.ndarray.__or__


# ---- arithmetic ------------------------------------------------------------------------------------


@_partwise
def sqrt(x):
    """Returns the square root, correctly rounded."""
    return np.sqrt(x)


@_partwise
def fabs(x):
    """Returns the absolute value."""
    return np.abs(x)


@_partwise
def copysign(x, sign):
    """Returns |x| with the sign of `sign`, including the sign of a zero."""
    return np.copysign(x, sign)


@_partwise
def floor(x):
    """Returns the largest integer not above x."""
    return np.floor(x)


@_partwise
def rint(x):
    """Returns the nearest integer, ties to even."""
    return np.rint(x)


@_partwise
def fma(a, b, c):
    """Returns a b + c.  Compiled: one rounding; uncompiled: two, so the modes agree to rounding, not bitwise."""
    return a * b + c


@_partwise
def fmin(a, b):
    """Returns the smaller of two; b if either is NaN (one machine instruction, the same on every CPU)."""
    return where(a < b, a, b)


@_partwise
def fmax(a, b):
    """Returns the larger of two; b if either is NaN."""
    return where(a > b, a, b)


@_partwise
def clip(x, lo, hi):
    """Returns x clipped to [lo, hi]; NaN becomes lo."""
    clipped = fmin(fmax(x, lo), hi)
    # a derivative by x is 1 up to both bounds
    return where((x >= lo) & (x <= hi), x, clipped) if isinstance(x, _Dual) else clipped


# ---- tuples ----------------------------------------------------------------------------------------------------------
def join(*parts):
    """Returns one tuple with the items of several tuples; `+` of tuples is refused, because it reads as a sum."""
    return tuple(item for part in parts for item in part)


# ---- masks -----------------------------------------------------------------------------------------


@_partwise
def where(mask, a, b):
    """Returns a if the mask holds, else b, world by world."""
    return np.where(mask, a, b).view(Row)


def any_(mask) -> bool:
    """Returns whether the mask holds in any world of the tile."""
    return bool(np.any(mask))


def all_(mask) -> bool:
    """Returns whether the mask holds in every world of the tile."""
    return bool(np.all(mask))


def not_(mask):
    """Returns the complement of a mask."""
    return np.logical_not(mask)


def has(mask, lane: int) -> bool:
    """Returns whether the mask holds in the world at this place of the tile."""
    return bool(np.ravel(mask)[lane % np.size(mask)])


# ---- derivatives -----------------------------------------------------------------------------------


@_partwise
def seed(x, *tangents):
    """Returns x with tangents, which derivatives of results are multiples of; a literal 0.0 costs nothing."""
    if isinstance(x, _Dual):
        raise TypeError("seed: the value already has tangents")
    return _Dual(x, [None if isinstance(t, float) and t == 0.0 else t for t in tangents])


def split_tangents(x, n: int):
    """Returns (result, tangent 1, ..., tangent n) of a value, or of a tuple, with n tangents."""
    return _split(x, n)


# ---- bits: the exponent and the significand, for lane mathematics --------------------------------------


def split_exponent(x):
    """Returns (f, e) with x = f 2^e, f in [1, 2), integer e, for normal positive x."""
    f, e = np.frexp(x)
    return f * 2.0, (e - 1).astype(np.asarray(x).dtype)


def scale_exponent(x, e):
    """Returns x 2^e for an integer e within the range of normal exponents."""
    return np.ldexp(x, np.asarray(e).astype(np.int64)).astype(np.asarray(x).dtype)


# ---- loops -----------------------------------------------------------------------------------------


def unrolled(counts):
    """Returns the range of a loop that is unrolled: compiled, its variable is a constant in each iteration."""
    return counts


# ---- records ---------------------------------------------------------------------------------------


def real(record, x):
    """Returns the number x, or a scalar, as a value of the record's width and precision."""
    return np.full(record.shape, x, record.dtype).view(Row)


def true_mask(record):
    """Returns a mask that holds in every world."""
    return np.ones(record.shape, bool)


def false_mask(record):
    """Returns a mask that holds in no world."""
    return np.zeros(record.shape, bool)


def width(record) -> int:
    """Returns W, the number of worlds in a tile of this record."""
    return record.width


def lane_index(record):
    """Returns 0, 1, ..., W - 1: each world's place in its tile."""
    return np.arange(record.width).astype(record.dtype).view(Row)


def single_precision(x) -> bool:
    """Returns whether this value, or the values of this record, are float32; a compile-time constant."""
    return getattr(x, "dtype", None) == np.float32


def read_lane(rows, i: int, lane: int) -> Any:
    """Returns one world's number, or typed row, of row i, as float64 at every precision of the record."""
    row = rows[i]
    if _kind_of(row):
        return type(row)(float(np.ravel(part)[lane]) for part in row)
    return float(np.ravel(row)[lane])


def write_lane(rows, i: int, lane: int, x) -> None:
    """Sets one world's number, or typed row, of row i."""
    rows.set_lane(i, lane, x)


def whole(x) -> int:
    """Returns the number of one world as an int, rounded towards zero; the number must fit."""
    return int(np.ravel(x)[0])


def count_ones(x: int) -> int:
    """Returns the number of 1 bits of an int >= 0."""
    return x.bit_count()


def gather(table, index):
    """Returns table[index] with a separate index in each world; `table` holds reals that all worlds share."""
    return table.gather(index)


def gather_rows(rows, index):
    """Returns rows[index] with a separate index in each world; each world reads its lane."""
    return rows.gather(index)


def eights(numbers):
    """Returns a field of scalars as rows of eight: row k holds the numbers 8 k to 8 k + 7 as one value."""
    return numbers.eights()


def scalars(record, address: int):
    """Returns the reals at a memory address, one by one."""
    return record.scalars(address)


def doubles(record, address: int):
    """Returns the float64 numbers at a memory address, one by one, at every precision of the record."""
    return record.doubles(address)


def flat(rows):
    """Returns a field without its row type: `flat(d.xpos)[3 * b + 2]` is part 2 of row b."""
    return rows.flat()


def dot(a, b):
    """Returns the scalar product of two rows: of two vectors, or of a motion and a force."""
    made = OPERATORS.get(("dot", _kind_of(a), _kind_of(b)))
    if made is None:
        raise TypeError(f"dot: got {type(a).__name__}, {type(b).__name__}")
    return made(a, b)


def prefetch(rows, i: int) -> None:
    """Requests the cache line of row i, which is read later; it changes no value."""


def record_at(record, address: int):
    """Returns the record at a memory address, as an argument of `call`; uncompiled, an entry of record's functions."""
    return record.functions[address]


def call(function: int, m, d, i) -> None:
    """Calls the C function f(m, d, i) of records, ints or addresses at a memory address.

    Uncompiled, and if d is a record, it calls entry `function` of the record's functions.
    """
    if hasattr(d, "functions"):
        d.functions[function](m, d, i)
    else:
        ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(function)(m, d, i)
