"""Row types: tuples with a type, such as vectors and matrices, whose products and attributes are kernels.

    Vec3 = row_type("Vec3", "x y z")
    Mat3 = row_type("Mat3", "xx xy xz yx yy yz zx zy zz")

    @operator("@", Mat3, Vec3)
    @kernel
    def mat_mul_vec(R, v):
        return Vec3(...)

    @attribute(Mat3, "T")
    @kernel
    def transposed(R):
        return Mat3(...)

In a kernel `R @ v` is then the call `mat_mul_vec(R, v)`, compiled and uncompiled, so an operator rounds as its kernel
does.  Sums and differences of rows of one type, and products and quotients with a number, are computed part by part,
without fused operations; `fma(s, a, b)` of rows is fused.

A field that is declared with a row type has one row per object: `d.xpos[b]` is a Vec3, `d.xpos[b] = v` stores one, and
`flat(d.xpos)` is the field without its row type.  No physics is here.
"""

from __future__ import annotations

import functools
import operator as arithmetic
from collections.abc import Callable
from typing import Any

OPERATORS: dict[tuple, Any] = {}  # (sign, type of the left operand, type of the right one) -> kernel
ATTRIBUTES: dict[tuple, Any] = {}  # (type, name) -> kernel
PARTWISE = {"+": arithmetic.add, "-": arithmetic.sub, "*": arithmetic.mul, "/": arithmetic.truediv}
METHODS = {"+": "add", "-": "sub", "*": "mul", "/": "truediv", "@": "matmul"}


class TypedRow(tuple):
    """A row: a tuple of parts with names.  Uncompiled, its operators call the same kernels.

    Attributes:
        place: uncompiled, the field and the index that the row was read from: `d.xmat[b][2] = x` writes one part.
    """

    _fields: tuple[str, ...] = ()
    place: tuple[Any, int] | None = None
    __array_ufunc__ = None  # NumPy leaves `value * row` to the row

    def __new__(cls, *parts):
        parts = parts[0] if len(parts) == 1 and len(cls._fields) > 1 else parts
        row = tuple.__new__(cls, parts)
        if len(row) != len(cls._fields):
            raise TypeError(f"{cls.__name__} has the parts {', '.join(cls._fields)}; got {len(row)} values")
        return row

    def __repr__(self):
        return f"{type(self).__name__}{tuple(self)!r}"

    def __getattr__(self, name: str):
        if name in self._fields:
            return self[self._fields.index(name)]
        made = ATTRIBUTES.get((type(self), name))
        if made is None:
            raise AttributeError(f"a {type(self).__name__} has no attribute {name}")
        return made(self)

    def __setitem__(self, k: int, x):
        if self.place is None:
            raise TypeError("parts of a row are assigned in a field only, for example d.xmat[b][2] = x")
        rows, i = self.place
        rows.flat()[len(self) * i + k] = x

    def __neg__(self):
        return type(self)(-x for x in self)


def _operation(sign: str, swapped: bool) -> Callable:
    def apply(self, other):
        a, b = (other, self) if swapped else (self, other)
        made = OPERATORS.get((sign, kind_of(a), kind_of(b)))
        if made is not None:
            return made(a, b)
        kind = partwise_type(sign, kind_of(a), kind_of(b))
        if kind is None:
            raise TypeError(f"{_name(a)} {sign} {_name(b)}")
        n = len(kind._fields)
        a, b = (x if isinstance(x, kind) else (x,) * n for x in (a, b))
        return kind(PARTWISE[sign](x, y) for x, y in zip(a, b, strict=True))

    return apply


for _sign, _method in METHODS.items():
    setattr(TypedRow, f"__{_method}__", _operation(_sign, False))
    setattr(TypedRow, f"__r{_method}__", _operation(_sign, True))


def kind_of(x) -> type | None:
    """Returns the row type of an uncompiled operand, `tuple` of another tuple, None of a number."""
    return type(x) if isinstance(x, TypedRow) else tuple if isinstance(x, tuple) else None


def _name(x) -> str:
    return "a number" if kind_of(x) is None else f"a {type(x).__name__}"


def partwise_type(sign: str, a: type | None, b: type | None) -> type | None:
    """Returns the row type of a sum of rows of one type, or of a row times or over a number; None of anything else."""
    if sign in ("+", "-"):
        kind = a if a is b else None
    elif sign == "*":
        kind = (a or b) if None in (a, b) else None
    else:
        kind = a if sign == "/" and b is None else None
    return kind if kind is not None and issubclass(kind, TypedRow) else None


def row_type(name: str, parts: str) -> type:
    """Returns a new row type with these parts."""
    return type(name, (TypedRow,), {"_fields": tuple(parts.split()), "__module__": "featherlane.engine.spatial"})


def operator(sign: str, *types: type):
    """Decorates the kernel of an operator, or of the function `dot`, of operands of these row types."""

    def enter(kernel):
        OPERATORS[(sign, *types)] = kernel
        return kernel

    return enter


def attribute(kind: type, name: str):
    """Decorates the kernel of an attribute of a row type, such as R.T."""

    def enter(kernel):
        ATTRIBUTES[kind, name] = kernel
        return kernel

    return enter


def partwise(function: Callable) -> Callable:
    """Decorates an uncompiled function of numbers: of rows, it is computed part by part."""

    @functools.wraps(function)
    def apply(*arguments):
        kind = next((type(a) for a in arguments if isinstance(a, TypedRow)), None)
        if kind is None:
            return function(*arguments)
        n = len(kind._fields)
        columns = [a if isinstance(a, tuple) else (a,) * n for a in arguments]
        return kind(function(*part) for part in zip(*columns, strict=True))

    return apply


def used_operators(signs: set[str], names: set[str]) -> list[tuple[str, Any]]:
    """Returns (label, kernel) of the operators that code with these signs, and these names, can call."""
    found = [
        (" ".join((sign, *(t.__name__ for t in types))), k) for (sign, *types), k in OPERATORS.items() if sign in signs
    ]
    found += [(f"{kind.__name__}.{name}", k) for (kind, name), k in ATTRIBUTES.items() if name in names]
    return sorted(found, key=lambda item: item[0])
