"""Values with tangents, compiled: the rules of the chain rule for every operation, and calls of `jvp`.

A thing of type `Dual` has the operand of its value and those of its active tangents.  Tangents that are zero by
construction have no operand, and no code is written for them.  `lanes/tangents.py` states the derivatives at kinks.
In the rules below a tangent is a thing, or None for zero.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from featherlane.engine.lanes.compiler.table import refuse
from featherlane.engine.lanes.compiler.types import Dual, Record, Tuple, Value, common_value, dual, mask
from featherlane.engine.lanes.compiler.value_functions import DUALS, OF_VALUES, intrinsic
from featherlane.engine.lanes.compiler.writer import Thing, Writer

Tangent = Thing | None
NESTED = "derivatives are not nested: an argument of a derivative has no tangents"


# ---- values with tangents ------------------------------------------------------------------------------------------
def is_dual(thing: Thing) -> bool:
    return isinstance(thing.type, Dual)


def has_dual(w: Writer, thing: Thing) -> bool:
    """Returns whether a thing, or a part of it, has tangents."""
    return any(has_dual(w, p) for p in w.parts(thing)) if isinstance(thing.type, Tuple) else is_dual(thing)


def primal(thing: Thing) -> Thing:
    """Returns a value without its tangents."""
    return Thing(thing.type.primal, thing.operands[:1]) if isinstance(thing.type, Dual) else thing


def tangents(thing: Thing, n: int) -> list[Tangent]:
    if not isinstance(thing.type, Dual):
        return [None] * n
    rest = iter(thing.operands[1:])
    return [Thing(thing.type.primal, (next(rest),)) if active else None for active in thing.type.active]


def number(w: Writer, node, things: Sequence[Thing]) -> int:
    """Returns the number of tangents, which is the same for all things that have some."""
    numbers = {len(t.type.active) for t in things if isinstance(t.type, Dual)}
    if len(numbers) > 1:
        raise w.broken(node, f"values with {' and '.join(map(str, sorted(numbers)))} tangents are combined")
    return numbers.pop()


def made(w: Writer, node, x: Thing, parts: Sequence[Tangent]) -> Thing:
    """Returns a value with tangents; the value itself if all of them are zero."""
    if not any(parts) or not isinstance(x.type, Value):
        return x
    parts = [p and w.convert(p, x.type, node) for p in parts]
    return Thing(dual(x.type, tuple(p is not None for p in parts)), [x.operand, *(p.operand for p in parts if p)])


# ---- arithmetic of tangents ----------------------------------------------------------------------------------------
def _written(w: Writer, node, code: Callable[..., str], *things: Thing) -> Thing:
    """Writes code of things in their common type."""
    t = common_value([a.type for a in things])
    return Thing(t, (code(t, *(w.convert(a, t, node).operand for a in things)),))


def _operation(w: Writer, node, name: str, a: Thing, b: Thing) -> Thing:
    return _written(w, node, lambda t, x, y: w.register(f"{name} {t.llvm} {x}, {y}"), a, b)


def _negated(w: Writer, a: Tangent) -> Tangent:
    return a and Thing(a.type, (w.register(f"fneg {a.type.llvm} {a.operand}"),))


def _fused(w: Writer, node, a: Tangent, b: Thing, c: Tangent) -> Tangent:
    """Returns a b + c for a factor b that is not zero by construction."""
    if a is None:
        return c
    if c is None:
        return _operation(w, node, "fmul", a, b)
    return _written(w, node, lambda t, *x: intrinsic(w, "fma", t, list(x)), a, b, c)


def _divided(w: Writer, node, a: Tangent, b: Thing) -> Tangent:
    return a and _operation(w, node, "fdiv", a, b)


def _chosen(w: Writer, node, condition: Thing, a: Tangent, b: Tangent) -> Tangent:
    """Returns a where the condition holds, else b."""
    if a is None and b is None:
        return None
    zero = w.constant(0.0, node)
    return OF_VALUES.writer("where")(w, node, condition, a or zero, b or zero)


def _compared(w: Writer, node, order: str, a: Thing, b: Thing) -> Thing:
    x = _written(w, node, lambda t, x, y: w.register(f"fcmp {order} {t.llvm} {x}, {y}"), a, b)
    return Thing(mask(x.type.width, x.type.base), x.operands)


# ---- operators -----------------------------------------------------------------------------------------------------
def binary(w: Writer, node, op: type, a: Thing, b: Thing, plain) -> Thing:
    """Writes a op b of numbers, of which one has tangents; `plain` writes it without tangents."""
    n, x, y = number(w, node, (a, b)), primal(a), primal(b)
    result = plain(w, node, op, x, y)
    rule = OPERATIONS[op]
    parts = [rule(w, node, result, x, y, s, t) for s, t in zip(tangents(a, n), tangents(b, n), strict=True)]
    return made(w, node, result, parts)


def _sum(w: Writer, node, r, x, y, s: Tangent, t: Tangent) -> Tangent:
    return _operation(w, node, "fadd", s, t) if s and t else s or t


def _difference(w: Writer, node, r, x, y, s: Tangent, t: Tangent) -> Tangent:
    return _operation(w, node, "fsub", s, t) if s and t else s or _negated(w, t)


def _product(w: Writer, node, r, x: Thing, y: Thing, s: Tangent, t: Tangent) -> Tangent:
    return _fused(w, node, s, y, _fused(w, node, t, x, None))


def _quotient(w: Writer, node, r: Thing, x, y: Thing, s: Tangent, t: Tangent) -> Tangent:
    """Returns (x / y)' = (x' - (x / y) y') / y."""
    return _divided(w, node, _fused(w, node, _negated(w, t), r, s), y)


OPERATIONS = {ast.Add: _sum, ast.Sub: _difference, ast.Mult: _product, ast.Div: _quotient}


def negative(w: Writer, node, a: Thing) -> Thing:
    """Writes -a."""
    n, x = number(w, node, [a]), _negated(w, primal(a))
    return made(w, node, x, [_negated(w, t) for t in tangents(a, n)])


# ---- functions -----------------------------------------------------------------------------------------------------
def _rule(*names: str):
    """Decorates the rule of functions: (w, node, name, result, values, tangents of one direction) -> tangent."""

    def enter(rule):
        for name in names:
            DUALS[name] = lambda w, node, arguments, name=name: _of_reals(w, node, name, rule, arguments)
        return rule

    return enter


def _of_reals(w: Writer, node, name: str, rule, arguments: list[Thing]) -> Thing:
    n, x = number(w, node, arguments), [primal(a) for a in arguments]
    result = OF_VALUES.writer(name)(w, node, *x)
    directions = zip(*(tangents(a, n) for a in arguments), strict=True)
    return made(w, node, result, [rule(w, node, name, result, x, t) for t in directions])


@_rule("fma")
def _fma(w, node, name, result, x, t):
    return _fused(w, node, t[0], x[1], _fused(w, node, t[1], x[0], t[2]))


@_rule("sqrt")
def _sqrt(w, node, name, result, x, t):
    if t[0] is None:
        return None
    is_zero = _compared(w, node, "oeq", result, w.constant(0.0, node))
    twice = _operation(w, node, "fadd", result, result)
    return _divided(w, node, t[0], _chosen(w, node, is_zero, w.constant(float("inf"), node), twice))


@_rule("fabs", "abs")
def _fabs(w, node, name, result, x, t):
    zero = w.constant(0.0, node)
    above = t[0] and _chosen(w, node, _compared(w, node, "ogt", x[0], zero), t[0], None)
    return t[0] and _chosen(w, node, _compared(w, node, "olt", x[0], zero), _negated(w, t[0]), above)


@_rule("copysign")
def _copysign(w, node, name, result, x, t):
    return t[0] and _chosen(w, node, _compared(w, node, "oeq", result, x[0]), t[0], _negated(w, t[0]))


@_rule("floor", "rint")
def _floor(w, node, name, result, x, t):
    return None


@_rule("fmin", "fmax")
def _fmin(w, node, name, result, x, t):
    first = _compared(w, node, "olt" if name == "fmin" else "ogt", *x)
    return _chosen(w, node, first, *t)


@_rule("clip")
def _clip(w, node, name, result, x, t):
    raised = OF_VALUES.writer("fmax")(w, node, x[0], x[1])
    inner = _chosen(w, node, _compared(w, node, "oge", x[0], x[1]), t[0], t[1])
    return _chosen(w, node, _compared(w, node, "ole", raised, x[2]), inner, t[2])


def _where(w: Writer, node, arguments: list[Thing]) -> Thing:
    condition, a, b = arguments
    n = number(w, node, (a, b))
    x = OF_VALUES.writer("where")(w, node, condition, primal(a), primal(b))
    pairs = zip(tangents(a, n), tangents(b, n), strict=True)
    return made(w, node, x, [_chosen(w, node, condition, s, t) for s, t in pairs])


DUALS["where"] = _where


@OF_VALUES.function("seed", None)
def _seed(w: Writer, node, x, *given):
    arguments = x, *given
    if has_dual(w, x):
        raise w.broken(node, NESTED)
    if isinstance(x.type, Tuple) and x.type.row:
        columns = [w.parts(a) if isinstance(a.type, Tuple) else [a] * len(x.type.items) for a in arguments]
        return w.tuple([_seed(w, node, *part) for part in zip(*columns, strict=True)], kind=x.type.row)
    if not isinstance(x.type, Value) or common_value([a.type for a in arguments]) is None:
        raise refuse(w, node, "seed", arguments, "a value, or a row, and its tangents")
    return made(w, node, x, [None if t.constant == 0.0 else t for t in given])


@OF_VALUES.function("split_tangents", 2)
def _split_tangents(w: Writer, node, x, n):
    if not isinstance(n.constant, int) or n.constant < 1:
        raise refuse(w, node, "split_tangents", (x, n), "a result and the constant number of its tangents")
    return w.tuple(_split(w, node, x, n.constant))


def _split(w: Writer, node, thing: Thing, n: int) -> list[Thing]:
    """Returns a result's values, then each of its tangents, all with the same structure."""
    if isinstance(thing.type, Tuple):
        columns = zip(*(_split(w, node, p, n) for p in w.parts(thing)), strict=True)
        return [w.tuple(list(column), kind=thing.type.kind) for column in columns]
    if isinstance(thing.type, Dual) and len(thing.type.active) != n:
        raise w.broken(node, f"{n} tangents of {thing.type.description}")
    return [primal(thing), *(t or w.constant(0.0, node) for t in tangents(thing, n))]


# ---- calls ---------------------------------------------------------------------------------------------------------
def derivative_call(w: Writer, node, called, arguments: list[Thing], call) -> Thing:
    """Writes a call of `jvp(kernel, ...)`: the kernel with seeded records."""
    records = [a.type for a in arguments if isinstance(a.type, Record)]
    for name in called.fields:
        if not any(name in r.layout for r in records):
            raise w.broken(node, f"jvp: no argument has a field {name}")
    if any(r.seeds for r in records) or any(has_dual(w, a) for a in arguments):
        raise w.broken(node, NESTED)
    given = [Thing(a.type.seeded(called.fields), a.operands) if a.type in records else a for a in arguments]
    return w.tuple(_split(w, node, call(w, node, called.kernel, given), len(called.fields)))


def ruled_call(w: Writer, node, called, arguments: list[Thing], call) -> Thing:
    """Writes a call of a kernel with a derivative rule: its value, and the sum of partial times tangent."""
    n, x = number(w, node, arguments), [primal(a) for a in arguments]
    result = call(w, node, called, x)
    partials = w.parts(call(w, node, called.rule, [result, *x]))
    directions = list(zip(*(tangents(a, n) for a in arguments), strict=True))
    return _chained(w, node, result, partials, directions)


def _chained(w: Writer, node, result: Thing, partials: list[Thing], directions: list[tuple[Tangent, ...]]) -> Thing:
    if isinstance(result.type, Tuple):
        columns = zip(*map(w.parts, partials), strict=True)
        items = [_chained(w, node, r, list(p), directions) for r, p in zip(w.parts(result), columns, strict=True)]
        return w.tuple(items, kind=result.type.kind)
    out = []
    for moved in directions:
        total = None
        for p, t in zip(partials, moved, strict=True):
            total = _fused(w, node, t, p, total)
        out.append(total)
    return made(w, node, result, out)


def loaded(w: Writer, x: Thing, seed: tuple[int, int] | None, node) -> Thing:
    """Returns a loaded value with the unit tangent of its field, if the field is seeded."""
    if seed is None:
        return x
    k, n = seed
    return made(w, node, x, [w.constant(1.0, node) if j == k else None for j in range(n)])
