"""Values with tangents, uncompiled: a value and its derivatives in n directions.  `jvp` and `seed` create them.

NumPy functions of them follow the chain rule.  Tangents that are zero by construction are None and are not computed.
At a kink the derivative is that of the chosen side: of |x| at 0 it is 0, of `where`, `fmin` and `fmax` that of the
returned argument, and `clip(x, lo, hi)` at a bound has that of x.  The square root has the derivative 0 at 0.
`compiler/tangents.py` holds the compiled rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from featherlane.errors import ArgumentTypeError

ORDERS = {np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal}
PARTIALS = {  # NumPy function -> the partial derivatives by its arguments, of (result, *arguments); None: 0
    np.add: lambda r, x, y: (1.0, 1.0),
    np.subtract: lambda r, x, y: (1.0, -1.0),
    np.multiply: lambda r, x, y: (y, x),
    np.true_divide: lambda r, x, y: (1.0 / y, -r / y),
    np.negative: lambda r, x: (-1.0,),
    np.absolute: lambda r, x: (np.sign(x),),
    np.copysign: lambda r, x, sign: (np.where(r == x, 1.0, -1.0), None),
    np.sqrt: lambda r, x: (1.0 / np.where(r == 0.0, np.inf, 2.0 * r),),
    np.floor: lambda r, x: (None,),
    np.rint: lambda r, x: (None,),
}


class Dual(NDArrayOperatorsMixin):
    """A value and its tangents; None: a tangent that is zero by construction."""

    def __init__(self, primal, tangents: Sequence[Any]):
        self.primal, self.tangents = primal, tuple(tangents)

    @property
    def dtype(self):
        return getattr(self.primal, "dtype", None)

    def view(self, kind):
        return self

    def __array_ufunc__(self, function, method, *arguments, **keywords):
        x = [primal(a) for a in arguments]
        result = function(*x)
        if function in ORDERS:
            return result
        if function not in PARTIALS or method != "__call__":
            raise ArgumentTypeError(f"{function.__name__} has no derivative rule")
        return chained(result, PARTIALS[function](result, *x), arguments)

    def __array_function__(self, function, types, arguments, keywords):
        if function is not np.where:
            raise ArgumentTypeError(f"{function.__name__} has no derivative rule")
        mask, a, b = arguments
        n, chosen = number((a, b)), np.where(mask, primal(a), primal(b))
        pairs = zip(tangents(a, n), tangents(b, n), strict=True)
        moved = [None if s is t is None else np.where(mask, _dense(s), _dense(t)) for s, t in pairs]
        return Dual(chosen, moved)


for _name in ("add", "sub", "mul", "truediv"):  # x += y creates a new value
    setattr(Dual, f"__i{_name}__", getattr(Dual, f"__{_name}__"))


def primal(x) -> Any:
    """Returns a value without its tangents."""
    return x.primal if isinstance(x, Dual) else x


def tangents(x, n: int) -> Sequence[Any]:
    """Returns the n tangents of a value."""
    return x.tangents if isinstance(x, Dual) else (None,) * n


def _dense(tangent):
    return 0.0 if tangent is None else tangent


def number(things: Sequence[Any]) -> int:
    """Returns the number of tangents, which is the same for all values that have some."""
    numbers = {len(x.tangents) for x in things if isinstance(x, Dual)}
    if len(numbers) != 1:
        raise ArgumentTypeError(f"values with {' and '.join(map(str, sorted(numbers)))} tangents are combined")
    return numbers.pop()


def chained(result, partials: Sequence[Any], arguments: Sequence[Any]) -> Any:
    """Returns a result with the tangents sum(partial * tangent of the argument); a tuple item by item."""
    if isinstance(result, tuple):
        items = [chained(r, [p[k] for p in partials], arguments) for k, r in enumerate(result)]
        return type(result)(*items) if hasattr(result, "_fields") else tuple(items)
    out = []
    for moved in zip(*(tangents(a, number(arguments)) for a in arguments), strict=True):
        terms = [p * t for p, t in zip(partials, moved, strict=True) if p is not None and t is not None]
        out.append(sum(terms[1:], terms[0]) if terms else None)
    return Dual(result, out) if any(t is not None for t in out) else result


def split(x, n: int) -> tuple[Any, ...]:
    """Returns (result without tangents, tangent 1, ..., tangent n), each with the structure of the result."""
    if isinstance(x, tuple):
        parts = zip(*(split(item, n) for item in x), strict=True)
        return tuple(type(x)(*part) if hasattr(x, "_fields") else part for part in parts)
    if isinstance(x, Dual) and len(x.tangents) != n:
        raise ArgumentTypeError(f"split_tangents: {n} tangents of a value with {len(x.tangents)}")
    return primal(x), *map(_dense, tangents(x, n))


class SeededRows:
    """A field of a record whose read values have the tangent 1 in one of n directions."""

    def __init__(self, rows, k: int, n: int):
        if getattr(rows, "kind", None) or not hasattr(rows, "array") or rows.array.dtype.kind != "f":
            raise ArgumentTypeError("jvp: allowed are fields of reals without a row type; seed(x, ...) seeds a row")
        self._rows, self._seed = rows, tuple(1.0 if j == k else None for j in range(n))

    def __getitem__(self, i):
        return tuple(map(self._seeded, x)) if isinstance(x := self._rows[i], tuple) else self._seeded(x)

    def of(self, i):
        return self._seeded(self._rows.of(i))

    def _seeded(self, x):
        return Dual(x, self._seed)


def seeded(things: Sequence[Any], fields: Sequence[str]) -> list[Any]:
    """Returns arguments of a kernel with seeded records."""
    out = [seeded_record(x, fields) for x in things]
    for name in fields:
        within, _, last = name.rpartition(".")
        owners = [getattr(x, within, None) if within else x for x in out]
        if not any(isinstance(getattr(x, last, None), SeededRows) for x in owners):
            raise ArgumentTypeError(f"jvp: no argument has a field {name}")
    return out


def seeded_record(record, fields: Sequence[str]) -> Any:
    """Returns a record whose fields of these names are seeded: field k in direction k; other arguments unchanged."""
    if not isinstance(record, SimpleNamespace):
        return record
    out = SimpleNamespace(**vars(record))
    for name, item in vars(record).items():
        if isinstance(item, SimpleNamespace):
            inner = tuple(f.removeprefix(f"{name}.") if f.startswith(f"{name}.") else "" for f in fields)
            setattr(out, name, seeded_record(item, inner))
        elif name in fields:
            setattr(out, name, SeededRows(item, fields.index(name), len(fields)))
        elif hasattr(item, "of_record"):
            setattr(out, name, item.of_record(out))  # the objects of a kind, such as d.tendon
    return out
