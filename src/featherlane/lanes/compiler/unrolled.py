"""Unrolling at compile time: comprehensions, and loops over tuples and constant ranges."""

from __future__ import annotations

import ast

from featherlane.lanes.compiler.expressions import EXPRESSIONS, expression, something
from featherlane.lanes.compiler.indices import TARGETS, assign
from featherlane.lanes.compiler.source import is_call
from featherlane.lanes.compiler.types import INT, Tuple
from featherlane.lanes.compiler.writer import Thing, Writer

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
def range_bounds(w: Writer, ranged: ast.Call) -> tuple[Thing, Thing, Thing]:
    """Returns (start, stop, step) of a range."""
    if not 1 <= len(ranged.args) <= 3 or ranged.keywords:
        raise w.broken(ranged, f"range takes one to three arguments, got {len(ranged.args)}")
    numbers = [w.convert(expression(w, a), INT, a) for a in ranged.args]
    zero, one = w.constant(0, ranged), w.constant(1, ranged)
    start, stop, step = [zero, *numbers, one] if len(numbers) == 1 else [*numbers, one][:3]
    if step.constant == 0:
        raise w.broken(ranged, "a range with step 0 does not end")
    return start, stop, step


def unrolled_values(w: Writer, node: ast.expr) -> list[Thing]:
    """Returns the parts of a tuple, or the numbers of a constant range: one per unrolled iteration.

    Raises:
        KernelLanguageError: anything else, or a range whose bounds are not constants.
    """
    if not is_call(node, "range"):
        things = expression(w, node)
        if not isinstance(things.type, Tuple):
            raise w.broken(node, f"`for` loops over {things.type.description}, allowed are range(...) and a tuple")
        return w.parts(things)
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
