"""The vocabulary of kernels, uncompiled: a value is a NumPy row of W worlds (or a plain number).

Kernels import these names.  Run as plain Python they are what stands here; the table in `compiler/table.py` gives the
same names their compiled meaning, one LLVM vector (or scalar at W = 1) for each value.
"""

from __future__ import annotations

import numpy as np


class Row(np.ndarray):
    """A value uncompiled.  `x += y` makes a new row, as in compiled code, where no other name of x sees it change."""

    __iadd__ = np.ndarray.__add__
    __isub__ = np.ndarray.__sub__
    __imul__ = np.ndarray.__mul__
    __itruediv__ = np.ndarray.__truediv__
    __iand__ = np.ndarray.__and__
    __ior__ = np.ndarray.__or__


# ---- arithmetic ------------------------------------------------------------------------------------


def sqrt(x):
    """Square root, correctly rounded."""
    return np.sqrt(x)


def fabs(x):
    """Absolute value."""
    return np.abs(x)


def copysign(x, sign):
    """|x| with the sign of `sign`, the sign of a zero included."""
    return np.copysign(x, sign)


def floor(x):
    """Largest whole number not above x."""
    return np.floor(x)


def rint(x):
    """Nearest whole number, ties to even."""
    return np.rint(x)


def fma(a, b, c):
    """a b + c.  Compiled: one rounding; uncompiled: two (so the modes agree to rounding, not in bits)."""
    return a * b + c


def fmin(a, b):
    """The smaller of two; b where either is NaN (one machine instruction, the same on every CPU)."""
    return where(a < b, a, b)


def fmax(a, b):
    """The larger of two; b where either is NaN."""
    return where(a > b, a, b)


def clip(x, lo, hi):
    """x forced into [lo, hi]; NaN becomes lo."""
    return fmin(fmax(x, lo), hi)


# ---- masks -----------------------------------------------------------------------------------------


def where(mask, a, b):
    """a where the mask holds, else b, world by world."""
    return np.where(mask, a, b).view(Row)


def any_(mask) -> bool:
    """Does the mask hold in any world of the tile?"""
    return bool(np.any(mask))


def all_(mask) -> bool:
    """Does the mask hold in every world of the tile?"""
    return bool(np.all(mask))


def not_(mask):
    """The complement of a mask."""
    return np.logical_not(mask)


def has(mask, lane: int) -> bool:
    """Does the mask hold in the world at this place of the tile?"""
    return bool(np.ravel(mask)[lane % np.size(mask)])


# ---- bits: the exponent and the significand, for lane mathematics --------------------------------------


def split_exponent(x):
    """(f, e) with x = f 2^e, f in [1, 2), e whole, for normal positive x."""
    f, e = np.frexp(x)
    return f * 2.0, (e - 1).astype(np.asarray(x).dtype)


def scale_exponent(x, e):
    """x 2^e for a whole e within the range of normal exponents."""
    return np.ldexp(x, np.asarray(e).astype(np.int64)).astype(np.asarray(x).dtype)


# ---- loops -----------------------------------------------------------------------------------------


def unrolled(counts):
    """Returns the range of a loop that is unrolled: compiled, its variable is a known number in each turn."""
    return counts


# ---- records ---------------------------------------------------------------------------------------


def real(record, x):
    """The number x, or a scalar, as a value of the record's width and precision."""
    return np.full(record.shape, x, record.dtype).view(Row)


def zero(record):
    """Returns zero as a value of the record's width and precision."""
    return real(record, 0.0)


def true_mask(record):
    """Returns a mask that holds in every world."""
    return np.ones(record.shape, bool)


def false_mask(record):
    """Returns a mask that holds in no world."""
    return np.zeros(record.shape, bool)


def width(record) -> int:
    """W, the number of worlds in a tile of this record."""
    return record.width


def lane_index(record):
    """0, 1, ..., W - 1: each world's place in its tile."""
    return np.arange(record.width).astype(record.dtype).view(Row)


def single_precision(x) -> bool:
    """Is this value, or are the values of this record, float32?  Known when a kernel is compiled."""
    return getattr(x, "dtype", None) == np.float32


def read_lane(rows, i: int, lane: int):
    """One world's number of row i, as a float64 whatever the record's precision."""
    return np.float64(np.ravel(rows[i])[lane])


def write_lane(rows, i: int, lane: int, x) -> None:
    """Set one world's number of row i."""
    rows.set_lane(i, lane, x)


def whole(x) -> int:
    """The number of one world as an int, towards zero; only for what is known to fit."""
    return int(np.ravel(x)[0])


def count_ones(x: int) -> int:
    """How many bits of an int from 0 on are 1."""
    return x.bit_count()


def gather(table, index):
    """table[index] with an index of its own in each world; `table` holds reals that all worlds share."""
    return table.gather(index)


def gather_rows(rows, index):
    """rows[index] with an index of its own in each world, each world reading its own lane."""
    return rows.gather(index)


def eights(numbers):
    """A field of scalars, eight of them side by side as one value: row k holds the numbers 8 k to 8 k + 7."""
    return numbers.eights()


def scalars(record, address: int):
    """The reals at a memory address, one by one."""
    return record.scalars(address)


def doubles(record, address: int):
    """The float64 numbers at a memory address, one by one, whatever the record's precision."""
    return record.doubles(address)


def call(function: int, m, d, i: int) -> None:
    """Call the function f(m, d, i) at a memory address; uncompiled, the one of that number in the record d."""
    d.functions[function](m, d, i)
