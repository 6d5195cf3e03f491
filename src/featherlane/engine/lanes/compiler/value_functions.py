"""Compiled functions of values and masks.

A result of plain numbers is a plain number: `sqrt(2.0)` has 64 bits and later takes any precision.
"""

from __future__ import annotations

from collections.abc import Callable

from featherlane.engine.lanes.compiler.table import Table, refuse
from featherlane.engine.lanes.compiler.types import (
    BASES,
    BITS,
    BOOL,
    INT,
    REAL,
    Dual,
    Mask,
    Number,
    Record,
    Tuple,
    Type,
    Value,
    common_mask,
    common_value,
    literal,
    mask,
    real_literal,
    value,
)
from featherlane.engine.lanes.compiler.writer import Thing, Writer

OF_VALUES = Table()
DUALS: dict[str, Callable[..., Thing]] = {}  # writers of functions whose arguments have tangents: tangents.py
UNROLLED = "unrolled(range(...)) is allowed only in a `for` loop"
TRUTH = BOOL, Mask
function = OF_VALUES.function


# ---- from reals to a real ------------------------------------------------------------------------------------------
def intrinsic(w: Writer, name: str, t: Value | Number, arguments: list[str]) -> str:
    """Writes a call of an LLVM intrinsic whose arguments and result have one type."""
    suffix = f"v{t.width}{BASES[t.base]}" if isinstance(t, Value) and t.width > 1 else BASES[t.llvm]
    w.declared.add(f"declare {t.llvm} @llvm.{name}.{suffix}({', '.join([t.llvm] * len(arguments))})")
    return w.register(f"call {t.llvm} @llvm.{name}.{suffix}({', '.join(f'{t.llvm} {x}' for x in arguments)})")


def smaller(w: Writer, t, x: str, y: str) -> str:
    """Writes a compare and a select, not llvm.minnum: one instruction, and the same zeros and NaN on every target."""
    return write_selection(w, t, w.register(f"fcmp olt {t.llvm} {x}, {y}"), x, y)


def larger(w: Writer, t, x: str, y: str) -> str:
    return write_selection(w, t, w.register(f"fcmp ogt {t.llvm} {x}, {y}"), x, y)


def write_selection(w: Writer, t, condition: str, x: str, y: str) -> str:
    """Writes a selection: x where a condition with as many lanes holds, else y."""
    return w.register(f"select {truth_type(t)} {condition}, {t.llvm} {x}, {t.llvm} {y}")


def truth_type(t: Type) -> str:
    """Returns the LLVM type of a comparison of two things of this type."""
    return f"<{t.width} x i1>" if isinstance(t, (Value, Mask)) and t.width > 1 else "i1"


def _row_type(w: Writer, node, name: str, arguments) -> type | None:
    """Returns the row type of the arguments that are rows; None without a row."""
    kinds = {a.type.row for a in arguments if isinstance(a.type, Tuple) and a.type.row}
    lengths = {len(a.type.items) for a in arguments if isinstance(a.type, Tuple)}
    if len(kinds) > 1 or (kinds and len(lengths) > 1):
        raise refuse(w, node, name, arguments, "rows of one type, and numbers")
    return kinds.pop() if kinds else None


def _part_by_part(w: Writer, node, write, kind: type, arguments) -> Thing:
    """Writes a function of rows part by part; a number is an argument of every part."""
    columns = [w.parts(a) if isinstance(a.type, Tuple) else [a] * len(kind._fields) for a in arguments]
    return w.tuple([write(w, node, *part) for part in zip(*columns, strict=True)], kind=kind)


def _of_reals(name: str, arity: int, code) -> None:
    @function(name, arity)
    def write(w: Writer, node, *arguments):
        kind = _row_type(w, node, name, arguments)
        if kind:
            return _part_by_part(w, node, write, kind, arguments)
        if any(isinstance(a.type, Dual) for a in arguments):
            return DUALS[name](w, node, arguments)
        t = common_value([a.type for a in arguments])
        if t is None and all(isinstance(a.type, Number) for a in arguments):
            t = REAL
        if t is None:
            raise refuse(w, node, name, arguments, "values of one precision and plain numbers")
        return Thing(t, (code(w, t, *(w.convert(a, t, node).operand for a in arguments)),))


for _name, _arity in (("sqrt", 1), ("fabs", 1), ("copysign", 2), ("floor", 1), ("rint", 1), ("fma", 3)):
    _of_reals(_name, _arity, lambda w, t, *x, name=_name: intrinsic(w, name, t, list(x)))
_of_reals("fmin", 2, smaller)
_of_reals("fmax", 2, larger)
_of_reals("clip", 3, lambda w, t, x, lo, hi: smaller(w, t, larger(w, t, x, lo), hi))


# ---- ints ----------------------------------------------------------------------------------------------------------
def _of_ints(name: str, order: str) -> None:
    @function(name, None, "ints; for reals use fmin(a, b) and fmax(a, b)", (INT, BOOL))
    def write(w: Writer, node, *arguments):
        x, *others = (w.convert(a, INT, node).operand for a in arguments)
        for y in others:
            x = w.register(f"select i1 {w.register(f'icmp {order} i64 {x}, {y}')}, i64 {x}, i64 {y}")
        return Thing(INT, (x,))


_of_ints("min", "slt")
_of_ints("max", "sgt")


@function("abs", 1, "an int, a value or a plain number", (INT, REAL, Value, Dual))
def absolute(w: Writer, node, a):
    if isinstance(a.type, Dual):
        return DUALS["abs"](w, node, [a])
    if a.type is INT:
        negative = w.register(f"icmp slt i64 {a.operand}, 0")
        return Thing(
            INT, (w.register(f"select i1 {negative}, i64 {w.register(f'sub i64 0, {a.operand}')}, i64 {a.operand}"),)
        )
    return Thing(a.type, (intrinsic(w, "fabs", a.type, list(a.operands)),))


def _is_of_one_world(t: Type) -> bool:
    return isinstance(t, Value) and t.width == 1


@function("whole", 1, "one world's number, from read_lane(rows, i, lane)", _is_of_one_world)
def whole(w: Writer, node, x):
    return Thing(INT, (w.register(f"fptosi {x.type.llvm} {x.operand} to i64"),))


@function("count_ones", 1)
def count_ones(w: Writer, node, x):
    x = w.convert(x, INT, node).operand
    w.declared.add("declare i64 @llvm.ctpop.i64(i64)")
    return Thing(INT, (w.register(f"call i64 @llvm.ctpop.i64(i64 {x})"),))


# ---- masks ---------------------------------------------------------------------------------------------------------
@function("where", 3)
def where(w: Writer, node, condition, a, b):
    arguments = condition, a, b
    kind = _row_type(w, node, "where", (a, b))
    if kind and isinstance(a.type, Tuple) and isinstance(b.type, Tuple):
        return _part_by_part(w, node, where, kind, arguments)
    if isinstance(a.type, Dual) or isinstance(b.type, Dual):
        return DUALS["where"](w, node, arguments)
    if not (isinstance(condition.type, Mask) or condition.type is BOOL):
        raise refuse(w, node, "where", arguments, "a mask or a comparison of ints as the first argument")
    t = _chosen_type(w, node, arguments)
    lanes = t.width if isinstance(t, (Value, Mask)) else 1
    if isinstance(condition.type, Mask):
        condition = w.convert(condition, mask(lanes, condition.type.base), node)
    a, b = w.convert(a, t, node), w.convert(b, t, node)
    bits = condition.type.llvm
    return Thing(t, (w.register(f"select {bits} {condition.operand}, {t.llvm} {a.operand}, {t.llvm} {b.operand}"),))


def _chosen_type(w: Writer, node, arguments) -> Type:
    condition, a, b = (x.type for x in arguments)
    if all(isinstance(t, Mask) or t is BOOL for t in (a, b)):
        return common_mask((condition, a, b)) or BOOL
    t = common_value((a, b))
    if t is None and not (isinstance(a, Number) and isinstance(b, Number)):
        raise refuse(
            w, node, "where", arguments, "a mask and two values of one precision, two plain numbers or two masks"
        )
    if isinstance(condition, Mask):
        width = max(condition.width, t.width if t else 1)
        return value(width, t.base if t and not t.shared else condition.base)
    return t or REAL


def _as_word(w: Writer, thing: Thing) -> tuple[str, str]:
    """Writes a mask as one integer of W bits, and returns it with its type."""
    bits = f"i{thing.type.width}"
    return w.register(f"bitcast {thing.type.llvm} {thing.operand} to {bits}"), bits


def _of_mask(name: str, order: str, word: int) -> None:
    @function(name, 1, "a mask", TRUTH)
    def write(w: Writer, node, given):
        if given.type is BOOL or given.type.width == 1:
            return Thing(BOOL, given.operands)
        x, bits = _as_word(w, given)
        return Thing(BOOL, (w.register(f"icmp {order} {bits} {x}, {word}"),))


_of_mask("any_", "ne", 0)
_of_mask("all_", "eq", -1)


@function("not_", 1, "a mask", TRUTH)
def not_(w: Writer, node, given):
    t = given.type
    return Thing(t, (w.register(f"xor {t.llvm} {given.operand}, {literal(True, t)}"),))


@function("has", 2, "a mask and the number of a lane", TRUTH)
def has(w: Writer, node, given, lane):
    lane = w.convert(lane, INT, node).operand
    if given.type is BOOL or given.type.width == 1:
        return Thing(BOOL, given.operands)
    x, bits = _as_word(w, given)
    x = w.register(f"lshr i64 {w.register(f'zext {bits} {x} to i64')}, {lane}")
    return Thing(BOOL, (w.register(f"trunc i64 {x} to i1"),))


# ---- tuples ---------------------------------------------------------------------------------------------------------
@function("tuple", 1, "a comprehension, for example tuple(x[i] for i in range(3)), or a tuple", Tuple)
def tuple_(w: Writer, node, whole):
    return w.tuple(w.parts(whole), whole.constant)  # without a row type


@function("join", None, "tuples", Tuple)
def join(w: Writer, node, *wholes):
    return w.tuple([item for whole in wholes for item in w.parts(whole)])


@function("unrolled", 1)
def unrolled(w: Writer, node, counts):
    raise w.broken(node, UNROLLED)


# ---- bits and lanes ------------------------------------------------------------------------------------------------
def _format(t: Value) -> tuple[str, int, int]:
    """Returns (LLVM type of the bits, bits of the significand, bias of the exponent)."""
    word = f"i{BITS[t.base]}"
    low, bias = (52, 1023) if t.base == "double" else (23, 127)
    return word if t.width == 1 else f"<{t.width} x {word}>", low, bias


def _same(t: Value, n: int) -> str:
    """Returns an integer constant for every lane."""
    return str(n) if t.width == 1 else f"splat (i{BITS[t.base]} {n})"


@function("split_exponent", 1, "a value", Value)
def split_exponent(w: Writer, node, x):
    t = x.type
    bits, low, bias = _format(t)
    x = w.register(f"bitcast {t.llvm} {x.operand} to {bits}")
    e = w.register(f"sub {bits} {w.register(f'lshr {bits} {x}, {_same(t, low)}')}, {_same(t, bias)}")
    f = w.register(f"and {bits} {x}, {_same(t, (1 << low) - 1)}")
    f = w.register(f"or {bits} {f}, {_same(t, bias << low)}")
    f, e = w.register(f"bitcast {bits} {f} to {t.llvm}"), w.register(f"sitofp {bits} {e} to {t.llvm}")
    return w.tuple([Thing(t, (f,)), Thing(t, (e,))])


@function("scale_exponent", 2)
def scale_exponent(w: Writer, node, *arguments):
    t = common_value([a.type for a in arguments])
    if t is None:
        raise refuse(w, node, "scale_exponent", arguments, "two values of one precision")
    x, e = (w.convert(a, t, node).operand for a in arguments)
    bits, low, bias = _format(t)
    k = w.register(f"add {bits} {w.register(f'fptosi {t.llvm} {e} to {bits}')}, {_same(t, bias)}")
    factor = w.register(f"bitcast {bits} {w.register(f'shl {bits} {k}, {_same(t, low)}')} to {t.llvm}")
    return Thing(t, (w.register(f"fmul {t.llvm} {x}, {factor}"),))


@function("single_precision", 1, "a value or a record", (Value, Dual, Record, Number))
def single_precision(w: Writer, node, x):
    return w.constant(getattr(x.type, "base", "double") == "float", node)


@function("real", 2, "a record and a number", Record, (Value, Number))
def real(w: Writer, node, record, x):
    return w.convert(x, record.type.value, node)


def _constant_mask(name: str, truth: bool) -> None:
    @function(name, 1, "a record", Record)
    def write(w: Writer, node, record):
        t = mask(record.type.width, record.type.base)
        return Thing(t, (literal(truth, t),))


_constant_mask("true_mask", True)
_constant_mask("false_mask", False)


@function("width", 1, "a record", Record)
def width(w: Writer, node, record):
    return w.constant(record.type.width, node)


@function("lane_index", 1, "a record", Record)
def lane_index(w: Writer, node, record):
    t = record.type.value
    lanes = [real_literal(float(k), t.base) for k in range(t.width)]
    return Thing(t, (lanes[0] if t.width == 1 else f"<{', '.join(f'{t.base} {x}' for x in lanes)}>",))
