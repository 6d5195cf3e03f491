"""Operators of a kernel: arithmetic of numbers, values, masks and typed rows, and comparisons."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from featherlane.engine.lanes.compiler import tangents
from featherlane.engine.lanes.compiler.expressions import EXPRESSIONS, kernel_call, something
from featherlane.engine.lanes.compiler.functions import FUNCTIONS
from featherlane.engine.lanes.compiler.table import refuse
from featherlane.engine.lanes.compiler.types import (
    BOOL,
    INT,
    REAL,
    Dual,
    Mask,
    Number,
    Tuple,
    Value,
    common_mask,
    common_value,
    literal,
    mask,
)
from featherlane.engine.lanes.compiler.writer import NO_THING, Thing, Writer
from featherlane.engine.lanes.rows import OPERATORS, partwise_type


class Operator(NamedTuple):
    """A binary operator: its sign, its function of constants, and the LLVM instruction of reals and of ints."""

    sign: str
    python: Callable[..., Any]
    of_reals: str = ""
    of_ints: str = ""


BINARY = {
    ast.Add: Operator("+", operator.add, "fadd", "add"),
    ast.Sub: Operator("-", operator.sub, "fsub", "sub"),
    ast.Mult: Operator("*", operator.mul, "fmul", "mul"),
    ast.Div: Operator("/", operator.truediv, "fdiv"),
    ast.FloorDiv: Operator("//", operator.floordiv),
    ast.Mod: Operator("%", operator.mod),
    ast.LShift: Operator("<<", lambda a, b: a << min(b, 64), "", "shl"),  # a longer result fits into no int either
    ast.RShift: Operator(">>", operator.rshift, "", "ashr"),
    ast.BitAnd: Operator("&", operator.and_, "", "and"),
    ast.BitOr: Operator("|", operator.or_, "", "or"),
    ast.BitXor: Operator("^", operator.xor, "", "xor"),
    ast.MatMult: Operator("@", operator.matmul),
}
SHIFTS, OF_TRUTHS = (ast.LShift, ast.RShift), (ast.BitAnd, ast.BitOr, ast.BitXor)
ORDERS = {  # (of reals, of ints, Python's)
    ast.Lt: ("olt", "slt", operator.lt),
    ast.LtE: ("ole", "sle", operator.le),
    ast.Gt: ("ogt", "sgt", operator.gt),
    ast.GtE: ("oge", "sge", operator.ge),
    ast.Eq: ("oeq", "eq", operator.eq),
    ast.NotEq: ("une", "ne", operator.ne),
}


# ---- arithmetic ----------------------------------------------------------------------------------------------------
def _unary(w: Writer, node: ast.UnaryOp) -> Thing:
    a = something(w, node.operand)
    if isinstance(node.op, ast.Not):
        if a.is_known:
            return w.constant(not a.constant, node)
        return Thing(BOOL, (w.register(f"xor i1 {w.truth(a, node)}, true"),))
    if a.type in (INT, BOOL) and isinstance(node.op, (ast.USub, ast.Invert, ast.UAdd)):
        if a.constant is not None:
            python = {ast.USub: operator.neg, ast.Invert: operator.invert, ast.UAdd: operator.pos}[type(node.op)]
            return w.constant(_known(w, node, python, a.constant), node)
        x = w.convert(a, INT, node)
        if isinstance(node.op, ast.UAdd):
            return x
        code = f"sub i64 0, {x.operand}" if isinstance(node.op, ast.USub) else f"xor i64 {x.operand}, -1"
        return Thing(INT, (w.register(code),))
    if isinstance(node.op, ast.USub) and isinstance(a.type, Tuple) and a.type.row:
        return w.tuple([_negated(w, node, p) for p in w.parts(a)], kind=a.type.row)
    if a.type is REAL or isinstance(a.type, (Value, Dual)):
        if isinstance(node.op, ast.UAdd):
            return a
        if isinstance(node.op, ast.USub):
            return _negated(w, node, a)
    advice = "; negate a mask with not_(mask)" if isinstance(a.type, Mask) else ""
    raise w.broken(node, f"`{'~' if isinstance(node.op, ast.Invert) else '-'}` of {a.type.description}{advice}")


def _negated(w: Writer, node, a: Thing) -> Thing:
    """Writes -a of a real."""
    if isinstance(a.type, Dual):
        return tangents.negative(w, node, a)
    if a.constant is not None:
        return w.constant(-a.constant, node)
    return Thing(a.type, (w.register(f"fneg {a.type.llvm} {a.operand}"),))


def _binary(w: Writer, node: ast.BinOp) -> Thing:
    return binary(w, node, type(node.op), something(w, node.left), something(w, node.right))


def operand_kind(t):
    """Returns the row type of an operand, None of a number, and the type itself, which no operator has, of others."""
    return None if isinstance(t, (Number, Value, Dual)) else getattr(t, "row", None) or type(t)


def _of_rows(w: Writer, node, op: type, a: Thing, b: Thing) -> Thing:
    """Writes a op b with a row: a call of the operator's kernel, or part by part."""
    kinds = operand_kind(a.type), operand_kind(b.type)
    made = OPERATORS.get((BINARY[op].sign, *kinds))
    if made:
        return kernel_call(w, node, made, [a, b])
    kind = partwise_type(BINARY[op].sign, *kinds)
    if kind is None:
        raise w.broken(
            node, f"{a.type.description} {BINARY[op].sign} {b.type.description}{_row_advice(node, op, a, b)}"
        )
    a, b = (w.parts(x) if isinstance(x.type, Tuple) else [x] * len(kind._fields) for x in (a, b))
    return w.tuple([binary(w, node, op, x, y) for x, y in zip(a, b, strict=True)], kind=kind)


def _row_advice(node, op: type, a: Thing, b: Thing) -> str:
    """Returns what to write instead of an operator that two types do not have."""
    kinds = [t.type.row for t in (a, b) if isinstance(t.type, Tuple) and t.type.row]
    kind = kinds[0]
    if any(isinstance(t.type, Tuple) and not t.type.row for t in (a, b)):
        return f"; {kind.__name__}(...) makes a row of a tuple"
    if len(kinds) == 1 and op in (ast.Add, ast.Sub):
        return f"; a part of a {kind.__name__} has a name or an index: .{kind._fields[0]}, [0]"
    allowed = sorted(
        f"{x.__name__} {sign} {y.__name__}" for sign, x, y in OPERATORS if sign == BINARY[op].sign and kind in (x, y)
    )
    return f"; allowed are {', '.join(allowed)}" if allowed else ""


def binary(w: Writer, node, op: type, a: Thing, b: Thing) -> Thing:
    """Writes a op b."""
    s, t = a.type, b.type
    if getattr(s, "row", None) or getattr(t, "row", None):
        return _of_rows(w, node, op, a, b)
    numeric = all(isinstance(u, (Number, Value, Dual)) for u in (s, t))
    if numeric and BINARY[op].of_reals and (isinstance(s, Dual) or isinstance(t, Dual)):
        return tangents.binary(w, node, op, a, b, binary)
    if op is ast.MatMult:
        raise w.broken(node, f"{s.description} @ {t.description}; `@` is a product of typed rows, such as Mat3 @ Vec3")
    numbers = isinstance(s, Number) and isinstance(t, Number)
    if a.is_known and b.is_known:
        return w.constant(_known(w, node, BINARY[op].python, a.constant, b.constant), node)
    truth = common_mask((s, t)) or (BOOL if s is t is BOOL else None)
    if truth and op in OF_TRUTHS:
        a, b = w.convert(a, truth, node), w.convert(b, truth, node)
        return Thing(truth, (w.register(f"{BINARY[op].of_ints} {truth.llvm} {a.operand}, {b.operand}"),))
    if numbers and REAL not in (s, t) and op is not ast.Div:
        return _of_ints(w, op, w.convert(a, INT, node), w.convert(b, INT, node))
    c = common_value((s, t)) or (REAL if numbers else None)
    if c is None or not BINARY[op].of_reals:
        raise w.broken(node, f"{s.description} {BINARY[op].sign} {t.description}{_advice(op, s, t)}")
    a, b = w.convert(a, c, node), w.convert(b, c, node)
    return Thing(c, (w.register(f"{BINARY[op].of_reals} {c.llvm} {a.operand}, {b.operand}"),))


def _known(w: Writer, node, function, *numbers):
    """Computes an operation on constants."""
    try:
        return function(*numbers)
    except (ArithmeticError, ValueError, TypeError) as error:
        raise w.broken(node, f"this cannot be evaluated: {error}") from None


def _advice(op: type, s, t) -> str:
    if isinstance(s, (Mask, Number)) and isinstance(t, (Mask, Number)) and (isinstance(s, Mask) or isinstance(t, Mask)):
        return "; combine masks with & and |; where(mask, 1.0, 0.0) converts a mask to a value"
    if isinstance(s, Tuple) and isinstance(t, Tuple) and op is ast.Add:
        return "; join(a, b) concatenates them, tuple(a[i] + b[i] for i in range(3)) adds them"
    if op in (ast.FloorDiv, ast.Mod):
        return "; for reals, write floor(x / y)"
    if op in (*SHIFTS, *OF_TRUTHS):
        return ": bit operations are for ints; combine masks with & and |"
    return ""


def _of_ints(w: Writer, op: type, a: Thing, b: Thing) -> Thing:
    if op in SHIFTS:
        return Thing(INT, (_shifted(w, BINARY[op].of_ints, a, b),))
    if (a.constant == 0 and op is ast.Add) or (a.constant == 1 and op is ast.Mult):
        return b
    if (b.constant == 0 and op in (ast.Add, ast.Sub)) or (b.constant == 1 and op is ast.Mult):
        return a
    if op is ast.Mult and 0 in (a.constant, b.constant):
        return a if a.constant == 0 else b
    if BINARY[op].of_ints:
        return Thing(INT, (w.register(f"{BINARY[op].of_ints} i64 {a.operand}, {b.operand}"),))
    return Thing(INT, (_divided(w, op, a.operand, b),))


def _shifted(w: Writer, shift: str, a: Thing, b: Thing) -> str:
    """Writes a shift; a count outside 0 to 63, which LLVM leaves undefined, shifts out all bits."""
    if b.constant is not None and 0 <= b.constant <= 63:
        return w.register(f"{shift} i64 {a.operand}, {b.operand}")
    empty = w.register(f"ashr i64 {a.operand}, 63") if shift == "ashr" else "0"
    shifted = w.register(f"{shift} i64 {a.operand}, {w.register(f'and i64 {b.operand}, 63')}")
    return w.register(f"select i1 {w.register(f'icmp ugt i64 {b.operand}, 63')}, i64 {empty}, i64 {shifted}")


def _divided(w: Writer, op: type, x: str, b: Thing) -> str:
    """Writes x // b or x % b, rounded down.  No error is raised: x // 0 is x, x % 0 is 0, and -2^63 // -1 is -2^63."""
    y, c, negated = b.operand, b.constant, ""
    if c is not None and c > 0 and c & (c - 1) == 0:  # a power of two
        return w.register(f"ashr i64 {x}, {c.bit_length() - 1}" if op is ast.FloorDiv else f"and i64 {x}, {c - 1}")
    if c in (None, 0, -1):  # the processor traps on division by 0 and on -2^63 / -1
        negated = w.register(f"icmp eq i64 {y}, -1")
        trap = w.register(f"icmp ult i64 {w.register(f'add i64 {y}, 1')}, 2")
        y = w.register(f"select i1 {trap}, i64 1, i64 {y}")
    # Python rounds down, the processor towards zero: off by one if the remainder and the divisor differ in sign
    q, r = w.register(f"sdiv i64 {x}, {y}"), w.register(f"srem i64 {x}, {y}")
    opposite = w.register(f"icmp slt i64 {w.register(f'xor i64 {r}, {y}')}, 0")
    off = w.register(f"and i1 {w.register(f'icmp ne i64 {r}, 0')}, {opposite}")
    if op is ast.Mod:
        return w.register(f"select i1 {off}, i64 {w.register(f'add i64 {r}, {y}')}, i64 {r}")
    q = w.register(f"sub i64 {q}, {w.register(f'zext i1 {off} to i64')}")
    return w.register(f"select i1 {negated}, i64 {w.register(f'sub i64 0, {x}')}, i64 {q}") if negated else q


# ---- comparisons ---------------------------------------------------------------------------------------------------
def _compare(w: Writer, node: ast.Compare) -> Thing:
    """Writes a < b, a < b < c, a in (b, c); a chain holds if each of its comparisons holds."""
    left, result = something(w, node.left), None
    for op, e in zip(node.ops, node.comparators, strict=True):
        right = something(w, e)
        link = (
            _membership(w, node, op, left, right)
            if isinstance(op, (ast.In, ast.NotIn))
            else _order(w, node, type(op), left, right)
        )
        result = link if result is None else binary(w, node, ast.BitAnd, result, link)
        left = right
    return result or NO_THING


def _membership(w: Writer, node, op, a: Thing, b: Thing) -> Thing:
    if not isinstance(b.type, Tuple) or not b.type.items:
        raise w.broken(node, f"`in` {b.type.description}; allowed is a tuple of numbers")
    links = [_order(w, node, ast.Eq, a, part) for part in w.parts(b)]
    found = links[0]
    for link in links[1:]:
        found = binary(w, node, ast.BitOr, found, link)
    if isinstance(op, ast.In):
        return found
    return Thing(found.type, (w.register(f"xor {found.type.llvm} {found.operand}, {literal(True, found.type)}"),))


def _order(w: Writer, node, op: type, a: Thing, b: Thing) -> Thing:
    of_reals, of_ints, python = ORDERS[op]
    a, b = tangents.primal(a), tangents.primal(b)
    numbers = isinstance(a.type, Number) and isinstance(b.type, Number)
    if a.is_known and b.is_known:
        return w.constant(python(a.constant, b.constant), node)
    if numbers and REAL not in (a.type, b.type):
        a, b = w.convert(a, INT, node), w.convert(b, INT, node)
        return Thing(BOOL, (w.register(f"icmp {of_ints} i64 {a.operand}, {b.operand}"),))
    c = common_value((a.type, b.type)) or (REAL if numbers else None)
    if c is None:
        advice = _advice(ast.Sub, a.type, b.type) or "; compare numbers with numbers"
        raise w.broken(node, f"{a.type.description} is compared with {b.type.description}{advice}")
    a, b = w.convert(a, c, node), w.convert(b, c, node)
    x = w.register(f"fcmp {of_reals} {c.llvm} {a.operand}, {b.operand}")
    return Thing(BOOL if c is REAL else mask(c.width, c.base), (x,))


@FUNCTIONS.function("dot", 2)
def _dot(w: Writer, node, *arguments) -> Thing:
    made = OPERATORS.get(("dot", *(operand_kind(a.type) for a in arguments)))
    if not made:
        raise refuse(w, node, "dot", arguments, "two vectors, or a motion and a force")
    return kernel_call(w, node, made, list(arguments))


EXPRESSIONS |= {ast.UnaryOp: _unary, ast.BinOp: _binary, ast.Compare: _compare}
