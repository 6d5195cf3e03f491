"""Unrolling at compile time: comprehensions, and loops over tuples and constant ranges."""

from __future__ import annotations

import ast

from featherlane.engine.lanes.compiler.expressions import EXPRESSIONS, expression, range_bounds, something
from featherlane.engine.lanes.compiler.indices import TARGETS, assign
from featherlane.engine.lanes.compiler.source import is_call
from featherlane.engine.lanes.compiler.types import Range, Tuple
from featherlane.engine.lanes.compiler.writer import Thing, Writer

MOST_TURNS = 64  # iterations of a range: each one is text to compile


# ---- bindings ------------------------------------------------------------------------------------------------------
def bind(w: Writer, target: ast.expr, thing: Thing) -> None:
    """Assigns to a target: a name, a tuple of targets, or a row of a field."""
    if isinstance(target, ast.Name):
        w.bind(target.id, target.web, thing, target)
    elif isinstance(target, ast.Tuple):
        if not isinstance(thing.type, Tuple) or len(thing.type.items) != len(target.elts):
            raise w.broken(target, f"{thing.type.description} assigned to {len(target.elts)} names")
        for part, value in zip(target.elts, w.parts(thing), strict=True):
            bind(w, part, value)
    elif isinstance(target, (ast.Subscript, ast.Attribute)):
        assign(w, target, thing)
    else:
        raise w.broken(target, TARGETS)


# ---- turns ---------------------------------------------------------------------------------------------------------
def parts(w: Writer, things: Thing, node: ast.expr) -> list[Thing]:
    """Returns the parts of a tuple: one per unrolled iteration."""
    if not isinstance(things.type, Tuple):
        raise w.broken(node, f"`for` loops over {things.type.description}, allowed are a range and a tuple")
    return w.parts(things)


def unrolled_values(w: Writer, node: ast.expr) -> list[Thing]:
    """Returns the parts of a tuple, or the numbers of a constant range: one per unrolled iteration.

    Raises:
        KernelLanguageError: anything else, or a range whose bounds are not constants.
    """
    if not is_call(node, "range"):
        things = expression(w, node)
        if isinstance(things.type, Range):
            raise w.broken(node, "an unrolled loop runs over a tuple or over range(...) with known bounds")
        return parts(w, things, node)
    limits = [x.constant for x in range_bounds(w, node)]
    if None in limits:
        raise w.broken(
            node,
            "the bounds of an unrolled range must be known when the kernel is compiled: numbers, "
            "constants, or parameters with constant arguments",
        )
    counts = range(*limits)
    if len(counts) > MOST_TURNS:
        raise w.broken(
            node, f"{len(counts)} iterations would be unrolled, allowed are {MOST_TURNS}; write a loop over range(...)"
        )
    return [w.constant(i, node) for i in counts]


def _comprehension(w: Writer, node: ast.GeneratorExp) -> Thing:
    return w.tuple(list(_elements(w, node, node.generators)))


def _elements(w: Writer, node: ast.GeneratorExp, generators: list[ast.comprehension]):
    if not generators:
        yield something(w, node.elt)
        return
    first, *others = generators
    for turn in unrolled_values(w, first.iter):
        bind(w, first.target, turn)
        yield from _elements(w, node, others)


EXPRESSIONS[ast.GeneratorExp] = _comprehension
