"""Types of the kernel language: one object per type, created once, so that equal types are identical.

    Number   a plain number: `int` (64 bits), `bool`, or `real`, a literal that takes any precision
    Value    one real for each of W worlds: a float or double at W = 1, else a vector <W x float> or <W x double>
    Dual     a value with tangents, for derivatives
    Mask     one truth value for each of W worlds, from a comparison of values; at W = 1 it is also a bool
    Tuple    several things, by index or by name, such as a kernel's results
    Range    ints over which a `for` loop runs, such as the dofs of a body
    View     a field of a record: rows at an address
    Record   the model, or a tile of worlds
    POINTER  the address of a record, for `call`
    NOTHING  the result of a kernel that returns nothing

A thing has operands, the registers or literals of the LLVM IR: one for a number, a value or a mask, those of all parts
for a tuple, start and stop of a range, an address for a record and a view (with bounds checks: address, length, index
of the field, table).
"""

from __future__ import annotations

import functools
import struct
from typing import NamedTuple

from featherlane.engine.lanes.rows import TypedRow

LLVM_BASES = {"f64": "double", "f32": "float"}
BASES = {llvm: base for base, llvm in LLVM_BASES.items()}
BITS = {"double": 64, "float": 32, "i64": 64, "i32": 32}


class Type:
    """A type.

    Attributes:
        operands: LLVM types of its operands.
        description: name in error messages.
        key: identifier that differs from every other type's, the same in each process.
    """

    operands: tuple[str, ...] = ()
    description = key = "nothing"

    def __repr__(self):
        return f"<{self.description}>"


class Number(Type):
    """`int`, `bool` or `real`: a number that all worlds share."""

    def __init__(self, llvm: str, description: str):
        self.llvm, self.description, self.operands, self.key = llvm, description, (llvm,), llvm


INT = Number("i64", "an int")
BOOL = Number("i1", "a bool")
REAL = Number("double", "a plain number")
NOTHING = Type()


class _Pointer(Type):
    """The address of a record of another layout, which only `call` takes."""

    operands, description, key = ("ptr",), "the address of a record", "ptr"


POINTER = _Pointer()


class Value(Type):
    """One real for each of W worlds; `shared`: one real that all worlds share, which takes their precision."""

    def __init__(self, width: int, base: str, shared: bool = False):
        self.width, self.base, self.shared = width, base, shared
        self.llvm = base if width == 1 else f"<{width} x {base}>"
        self.operands = (self.llvm,)
        self.key = f"{width}{base}{'shared' if shared else ''}"
        self.description = f"a value (float{BITS[base]} x {width})"


class Dual(Type):
    """A value with tangents, of which those that are not `active` are zero by construction."""

    def __init__(self, primal: Value, active: tuple[bool, ...]):
        self.primal, self.active, self.base = primal, active, primal.base
        self.operands = (primal.llvm,) * (1 + sum(active))
        self.key = f"dual{primal.key}{''.join(str(int(a)) for a in active)}"
        self.description = f"{primal.description} with {len(active)} tangents"


class Mask(Type):
    """One truth value for each of W worlds; `base` is that of the compared values, and of where(mask, 1.0, 0.0)."""

    def __init__(self, width: int, base: str):
        self.width, self.base = width, base
        self.llvm = "i1" if width == 1 else f"<{width} x i1>"
        self.operands = (self.llvm,)
        self.key = f"mask{width}{base}"
        self.description = f"a mask (of {width} worlds)"


class Tuple(Type):
    """Several things, each with a separate type; `kind` is the NamedTuple or the row type that names them."""

    def __init__(self, items: tuple[Type, ...], kind: type | None = None):
        self.items, self.kind = items, kind
        self.names: tuple[str, ...] = kind._fields if kind else ()
        self.operands = tuple(o for t in items for o in t.operands)
        self.description = f"a {kind.__name__}" if self.row else f"a tuple of {len(items)}"
        self.key = f"{kind.__name__ if self.row else ''}{'.'.join(self.names)}({' '.join(t.key for t in items)})"

    @property
    def row(self) -> type | None:
        """The row type; None of any other tuple."""
        return self.kind if self.kind and issubclass(self.kind, TypedRow) else None


class Range(Type):
    """The ints range(start, stop, step), with a step that is known when the kernel is compiled."""

    operands = ("i64", "i64")

    def __init__(self, step: int):
        self.step, self.key, self.description = step, f"range{step}", f"a range with step {step}"


class View(Type):
    """The rows of a field.

    Attributes:
        base: LLVM type of one number: double, float, i32, i64.
        width: worlds in a row.
        constant: whether it is read-only.
        checked: whether every index is checked against the length.
        dense: whether the rows follow other numbers, so that only the numbers are aligned.
        row: LLVM type of a row.
        element: type of a number of the field.
        alignment: alignment of a number [bytes].
        kind: row type of an indexed row; None: a number.
        inner: sizes of the indices after the first one, by number or by name; an operand holds each named one.
        shared: LLVM type of its reals in an expression if all worlds share them, else "".
        seed: (number of the tangent, number of all tangents) of loaded values in a derivative; None: none.
    """

    def __init__(
        self,
        base: str,
        width: int,
        constant: bool,
        checked: bool,
        dense=False,
        kind=None,
        inner=(),
        shared="",
        seed: tuple[int, int] | None = None,
    ):
        self.base, self.width, self.constant, self.checked, self.dense = base, width, constant, checked, dense
        self.kind: type[TypedRow] | None = kind
        self.row = base if width == 1 else f"<{width} x {base}>"
        self.element = INT if base in ("i32", "i64") else value(width, shared or base, bool(shared))
        self.shared, self.seed = shared, seed
        self.alignment = BITS[base] // 8 if dense else min(BITS[base] // 8 * width, 64)
        self.inner: tuple[int | str, ...] = inner
        self.place = ("ptr", "i64", "i64", "ptr") if checked else ("ptr",)
        self.operands = (*self.place, *("i64" for n in inner if isinstance(n, str)))
        form = f"{constant:d}{checked:d}{'dense' if dense else ''}{kind.__name__ if kind else ''}"
        self.key = f"rows{width}{base}{form}{'x'.join(map(str, inner))}{shared and f'shared {shared}'}{seed or ''}"
        self.description = f"a field of {kind.__name__ if kind else 'ints' if self.element is INT else 'reals'}"


class Access(NamedTuple):
    """A user callback's access to a record: fields that it may read, and those that it may also write."""

    reads: frozenset[str]
    sets: tuple[str, ...] = ()


class Record(Type):
    """A record of a layout: the address of a table of addresses and lengths.

    Attributes:
        layout: layout of its fields.
        width, base: those of its values.
        constant: whether it is the model, which no stage writes.
        checked: whether its views are bounds-checked.
        shared: whether only fields that all worlds of a tile share are accessible.
        access: fields that may be read and written; None: everything that is not constant.
        prefix: `primal.` for the nested record `primal`, empty for the record itself.
        seeds: fields whose values have a unit tangent, in a derivative by them.
    """

    operands = ("ptr",)

    def __init__(
        self,
        layout,
        width: int,
        base: str,
        constant: bool,
        checked: bool,
        shared: bool,
        access: Access | None = None,
        prefix: str = "",
        seeds: tuple[str, ...] = (),
    ):
        self.layout, self.width, self.base = layout, width, base
        self.constant, self.checked, self.shared, self.access, self.prefix = constant, checked, shared, access, prefix
        self.seeds = seeds
        self.key = f"{layout.name}{width}{base}{constant:d}{checked:d}{shared:d}{prefix}{' '.join(seeds)}"
        self.description = f"a record ({layout.name})"
        self._variants: dict[tuple, Record] = {}

    def within(self, name: str) -> Record:
        """Returns the type of a nested record, which has the same address."""
        return self._variant(f"{name}.", self.seeds)

    def seeded(self, seeds: tuple[str, ...]) -> Record:
        """Returns the type of the same record with seeded fields."""
        return self._variant(self.prefix, seeds)

    @functools.cached_property
    def of_one_world(self) -> Record:
        """The type of this record for a parameter such as `m1`: only what all worlds share, in float64."""
        form = self.layout, 1, "double", self.constant, self.checked, True, self.access, self.prefix
        return self if self.shared else Record(*form)

    def _variant(self, prefix: str, seeds: tuple[str, ...]) -> Record:
        if (prefix, seeds) not in self._variants:
            form = self.layout, self.width, self.base, self.constant, self.checked, self.shared, self.access
            self._variants[prefix, seeds] = Record(*form, prefix, seeds)
        return self._variants[prefix, seeds]

    @property
    def value(self) -> Value:
        """The type of its reals."""
        return value(self.width, self.base)


class Group(Type):
    """The objects of one kind in a record, such as `d.contact`."""

    operands = ("ptr",)

    def __init__(self, record: Record, name: str):
        self.record, self.name, self.prefix = record, name, record.layout.groups[name]
        self.description, self.key = f"the objects {name}", f"{record.key}.{name}"


class Object(Type):
    """One object, `d.contact[k]`: its fields are those of the record with the prefix, at this index."""

    operands = ("ptr", "i64")

    def __init__(self, group: Group):
        self.group = group
        self.description, self.key = f"an object of {group.name}", f"{group.key}[]"


_value, _view = functools.cache(Value), functools.cache(View)


def value(width: int, base: str, shared: bool = False) -> Value:
    """Returns the type of a value."""
    return _value(width, base, shared)


def view(
    base: str, width: int, constant: bool, checked: bool, dense=False, kind=None, inner=(), shared="", seed=None
) -> View:
    """Returns the type of a field."""
    return _view(base, width, constant, checked, dense, kind, inner, shared, seed)


dual = functools.cache(Dual)
mask = functools.cache(Mask)
tuple_of = functools.cache(Tuple)
range_of = functools.cache(Range)
group_of = functools.cache(Group)
object_of = functools.cache(Object)


def common_value(types) -> Value | None:
    """Returns the common type of values and plain numbers, the widest one; None without a value.

    A number that all worlds share takes the precision of the worlds' values, as a literal does.  Values of float32 and
    float64 convert to float64, as in NumPy.
    """
    found = [t for t in types if isinstance(t, Value)]
    if not found or not all(isinstance(t, Value) or t in (INT, REAL) for t in types):
        return None
    shared = all(t.shared for t in found)
    bases = {t.base for t in found if t.shared is shared}
    return value(max(t.width for t in found), "double" if len(bases) > 1 else bases.pop(), shared)


def common_mask(types) -> Mask | None:
    """Returns the common type of masks and bools; None without a mask."""
    found = [t for t in types if isinstance(t, Mask)]
    if not found or not all(isinstance(t, Mask) or t is BOOL for t in types):
        return None
    return max(found, key=lambda t: t.width)


def common_type(a: Type, b: Type) -> Type | None:
    """Returns the type of a variable that is assigned both types; None if they are incompatible.

    A literal becomes a value, and one world's value becomes W worlds'; an int stays an int.
    """
    if a is b:
        return a
    if isinstance(a, Tuple) and isinstance(b, Tuple) and len(a.items) == len(b.items):
        items = [common_type(x, y) for x, y in zip(a.items, b.items, strict=True)]
        if None in items or (a.row and b.row and a.row is not b.row):
            return None
        return tuple_of(tuple(items), a.kind if a.kind is b.kind else None)
    if isinstance(a, Number) and isinstance(b, Number):
        return INT if {a, b} == {INT, BOOL} else None
    if INT in (a, b):
        return None
    if isinstance(a, Dual) or isinstance(b, Dual):
        return _common_dual(a, b)
    return common_value((a, b)) or common_mask((a, b))


def _common_dual(a: Type, b: Type) -> Dual | None:
    """Returns the common type of two numbers, of which one has tangents."""
    base = common_value([t.primal if isinstance(t, Dual) else t for t in (a, b)])
    active = [t.active for t in (a, b) if isinstance(t, Dual)]
    if base is None or len({len(t) for t in active}) > 1:
        return None
    return dual(base, tuple(map(any, zip(*active, strict=True))))


# ---- literals ------------------------------------------------------------------------------------------------------
def real_literal(x: float, base: str) -> str:
    """Returns a real number as LLVM IR: the bits of a double with that value."""
    if base == "float":
        try:
            (x,) = struct.unpack("f", struct.pack("f", x))
        except OverflowError:
            x = float("inf") if x > 0 else float("-inf")
    return f"0x{struct.unpack('>Q', struct.pack('>d', x))[0]:016X}"


def literal(x, t: Type) -> str:
    """Returns a number as LLVM IR constant of a type, the same in every lane."""
    if t is INT:
        return str(int(x))
    if t is BOOL:
        return "true" if x else "false"
    if t is REAL:
        return real_literal(float(x), "double")
    one = real_literal(float(x), t.base) if isinstance(t, Value) else literal(x, BOOL)
    return one if t.width == 1 else f"splat ({t.base if isinstance(t, Value) else 'i1'} {one})"
