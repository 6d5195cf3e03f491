"""Statements of a kernel: bindings, branches, loops, returns."""

from __future__ import annotations

import ast

from featherlane.engine.lanes.compiler.expressions import expression, range_bounds
from featherlane.engine.lanes.compiler.indices import augment
from featherlane.engine.lanes.compiler.operators import binary
from featherlane.engine.lanes.compiler.rules import UnknownYetError
from featherlane.engine.lanes.compiler.source import is_call
from featherlane.engine.lanes.compiler.types import INT, Range
from featherlane.engine.lanes.compiler.unrolled import bind, parts, unrolled_values
from featherlane.engine.lanes.compiler.writer import NO_THING, Thing, Writer


def block(w: Writer, body: list[ast.stmt]) -> None:
    """Writes statements up to the first unreachable one.

    Raises:
        KernelLanguageError: a rule is broken.
    """
    for statement in body:
        if not w.reached:
            return
        try:
            STATEMENTS[type(statement)](w, statement)
        except UnknownYetError:
            w.reached = True  # later lines may determine the type


def _nothing(w: Writer, s: ast.stmt) -> None:
    pass


def _expression(w: Writer, s: ast.Expr) -> None:
    if not (isinstance(s.value, ast.Constant) and isinstance(s.value.value, str)):  # a docstring
        expression(w, s.value)


# ---- bindings ------------------------------------------------------------------------------------------------------
def _assign(w: Writer, s: ast.Assign) -> None:
    thing = expression(w, s.value)
    for target in s.targets:
        bind(w, target, thing)


def _augmented(w: Writer, s: ast.AugAssign) -> None:
    """Writes x += y, d.x[i] += y."""
    op = type(s.op)
    if isinstance(s.target, ast.Name):
        old = w.read(s.target.id, s.web)
        w.bind(s.target.id, s.target.web, binary(w, s, op, old, expression(w, s.value)), s)
        return
    augment(w, s, s.target)


# ---- branches ------------------------------------------------------------------------------------------------------
def _if(w: Writer, s: ast.If) -> None:
    test = expression(w, s.test)
    if test.is_known:
        block(w, s.body if test.constant else s.orelse)
        return
    condition, yes, no, end = w.truth(test, s.test), w.label(), w.label(), w.label()
    w.branch(condition, yes, no)
    reached = False
    for label, body in ((yes, s.body), (no, s.orelse)):
        w.place(label)
        block(w, body)
        reached |= w.reached
        w.jump(end)
    if reached:
        w.place(end)


# ---- loops ---------------------------------------------------------------------------------------------------------
def _while(w: Writer, s: ast.While) -> None:
    head, body, end = w.label(), w.label(), w.label()
    w.place(head)
    test = expression(w, s.test)
    if test.is_known and test.constant:
        w.jump(body)
    else:
        w.branch(w.truth(test, s.test), body, end)
    w.place(body)
    _body(w, s, head, end)


def _body(w: Writer, s: ast.For | ast.While, head: str, end: str) -> None:
    """Writes the body of a loop and the label after it."""
    w.loops.append((end, head))
    block(w, s.body)
    w.loops.pop()
    w.jump(head)
    w.place(end)


def _for(w: Writer, s: ast.For) -> None:
    if is_call(s.iter, "range"):
        _count(w, s, *range_bounds(w, s.iter))
        return
    if is_call(s.iter, "unrolled") and len(s.iter.args) == 1 and not s.iter.keywords:
        turns = unrolled_values(w, s.iter.args[0])
    else:
        over = expression(w, s.iter)
        if isinstance(over.type, Range):
            start, stop = (Thing(INT, (operand,)) for operand in over.operands)
            _count(w, s, start, stop, w.constant(over.type.step, s.iter))
            return
        turns = parts(w, over, s.iter)
    end = w.label()
    for part in turns:
        again = w.label()
        w.loops.append((end, again))
        bind(w, s.target, part)
        block(w, s.body)
        w.loops.pop()
        w.place(again)
    w.place(end)


def _count(w: Writer, s: ast.For, start: Thing, stop: Thing, step: Thing) -> None:
    """Writes for i in range(start, stop, step): the counter is separate, so the body may rebind i."""
    ((count, _),) = w.slot("count", INT)
    head, body, end = w.label(), w.label(), w.label()
    w.write(f"store i64 {start.operand}, ptr {count}")
    w.place(head)
    i = w.register(f"load i64, ptr {count}")
    w.branch(_goes_on(w, i, stop, step), body, end)
    w.place(body)
    w.write(f"store i64 {w.register(f'add nsw i64 {i}, {step.operand}')}, ptr {count}")
    bind(w, s.target, Thing(INT, (i,)))
    _body(w, s, head, end)


def _goes_on(w: Writer, i: str, stop: Thing, step: Thing) -> str:
    if step.constant is not None:
        return w.register(f"icmp {'slt' if step.constant > 0 else 'sgt'} i64 {i}, {stop.operand}")
    # a step of 0 raises no error and runs no iteration
    up, down = (w.register(f"icmp {order} i64 {step.operand}, 0") for order in ("sgt", "slt"))
    below, above = (w.register(f"icmp {order} i64 {i}, {stop.operand}") for order in ("slt", "sgt"))
    return w.register(f"select i1 {up}, i1 {below}, i1 {w.register(f'and i1 {down}, {above}')}")


def _break(w: Writer, s: ast.Break) -> None:
    w.jump(w.loops[-1][0])


def _continue(w: Writer, s: ast.Continue) -> None:
    w.jump(w.loops[-1][1])


# ---- results -------------------------------------------------------------------------------------------------------
def _return(w: Writer, s: ast.Return) -> None:
    w.give(NO_THING if s.value is None else expression(w, s.value), s)


STATEMENTS = {
    ast.Pass: _nothing,
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AugAssign: _augmented,
    ast.If: _if,
    ast.While: _while,
    ast.For: _for,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Return: _return,
}
