"""Indices of a kernel: rows of fields, parts of tuples, slices; read and assigned."""

from __future__ import annotations

import ast

from featherlane.engine.lanes.compiler import record_functions
from featherlane.engine.lanes.compiler.expressions import EXPRESSIONS, something
from featherlane.engine.lanes.compiler.operators import binary
from featherlane.engine.lanes.compiler.types import INT, NOTHING, Group, Object, Tuple, View, common_type, object_of
from featherlane.engine.lanes.compiler.writer import Stored, Thing, Writer

TARGETS = "allowed targets of an assignment are names and rows of fields, for example d.qpos[i], d.contact[k].dist"


# ---- indices -------------------------------------------------------------------------------------------------------
def _subscript(w: Writer, node: ast.Subscript) -> Thing:
    thing = _located(w, node)
    return w.loaded(thing) if isinstance(thing, Stored) else thing


def _located(w: Writer, node: ast.expr) -> Thing | Stored:
    """Writes an expression; a tuple in memory is returned as its location, so that unused parts are not loaded."""
    if isinstance(node, ast.Name) and hasattr(node, "web"):
        return w.stored(node.web) or something(w, node)
    if not isinstance(node, ast.Subscript):
        return something(w, node)
    if isinstance(node.slice, ast.Slice):
        return _slice(w, node)
    rows = _located(w, node.value)
    index = _index(w, rows, node.slice)
    if isinstance(rows.type, Group):
        return Thing(object_of(rows.type), (*rows.operands, w.index(index, node.slice)))
    if isinstance(rows, Stored):
        if isinstance(rows.type, Tuple) and index.known_int in range(len(rows.type.items)):
            return rows.part(index.known_int)
        rows = w.loaded(rows)
    if isinstance(rows.type, View):
        return record_functions.load_row(w, rows, index, node.slice)
    if isinstance(rows.type, Tuple):
        return _part(w, node, rows, index)
    raise w.broken(node, f"{rows.type.description} cannot be indexed; fields of records and tuples can")


def _index(w: Writer, rows: Thing | Stored, node: ast.expr) -> Thing:
    """Writes an index; several, as in d.con_basis[ANGULAR, k], become the index of the row."""
    if not isinstance(node, ast.Tuple):
        return something(w, node)
    if not isinstance(rows.type, View) or len(node.elts) != len(rows.type.inner) + 1:
        n = len(rows.type.inner) + 1 if isinstance(rows.type, View) else 1
        raise w.broken(node, f"{len(node.elts)} indices of {rows.type.description}, which has {n}")
    index, *rest = (something(w, e) for e in node.elts)
    named = iter(rows.operands[len(rows.type.place) :])
    for n, i, e in zip(rows.type.inner, rest, node.elts[1:], strict=True):
        if isinstance(n, int) and i.known_int is not None and not 0 <= i.known_int < n:
            raise w.broken(e, f"index {i.constant}, allowed are 0 to {n - 1}")
        size = w.constant(n, e) if isinstance(n, int) else Thing(INT, (next(named),))
        index = binary(w, node, ast.Add, binary(w, node, ast.Mult, index, size), i)
    return index


def _part(w: Writer, node: ast.Subscript, whole: Thing, index: Thing) -> Thing:
    """Writes one part of a tuple: a constant index, or an int index if all parts have one type."""
    parts = w.parts(whole)
    if index.known_int is not None:
        if not -len(parts) <= index.known_int < len(parts):
            raise w.broken(node, f"part {index.known_int} of {whole.type.description}")
        return parts[index.known_int]
    index = w.index(index, node.slice)
    t = parts[0].type if parts else NOTHING
    for p in parts[1:]:
        t = common_type(t, p.type) if t is not None else None
    if t is None or t is NOTHING:
        raise w.broken(node, "elements of different types: the index of such a tuple must be a literal number")
    parts = [w.convert(p, t, node) for p in parts]
    operands = list(parts[0].operands)
    for k, p in enumerate(parts[1:], 1):
        here = w.register(f"icmp eq i64 {index}, {k}")
        operands = [
            w.register(f"select i1 {here}, {llvm} {new}, {llvm} {old}")
            for llvm, new, old in zip(t.operands, p.operands, operands, strict=True)
        ]
    return Thing(t, operands)


# ---- slices --------------------------------------------------------------------------------------------------------
def _slice(w: Writer, node: ast.Subscript) -> Thing:
    """Writes x[a : a + n] of a flat field or of a tuple: a tuple of n items."""
    whole = something(w, node.value)
    if isinstance(whole.type, Tuple):
        parts, n = w.parts(whole), len(whole.type.items)
        first, stop = _constant_bound(w, node.slice.lower, 0), _constant_bound(w, node.slice.upper, n)
        if node.slice.step or not 0 <= first <= stop <= n:
            raise w.broken(node, f"[{ast.unparse(node.slice)}] of {whole.type.description}")
        return w.tuple(parts[first:stop])
    return w.tuple([record_functions.load_row(w, *place, node) for place in _slice_places(w, whole, node)])


def _constant_bound(w: Writer, node: ast.expr | None, default: int) -> int:
    """Returns a bound of a slice of a tuple."""
    bound = default if node is None else something(w, node).known_int
    if bound is None:
        raise w.broken(node, f"{ast.unparse(node)} is not constant: a slice of a tuple has constant bounds")
    return bound


def _slice_places(w: Writer, rows: Thing, node: ast.Subscript) -> list[tuple[Thing, Thing]]:
    """Returns (field, index) of each number in x[a : a + n] of a flat field."""
    if not isinstance(rows.type, View):
        raise w.broken(node, f"{rows.type.description} has no slices; flat fields and tuples have")
    if rows.type.kind:
        raise w.broken(node, f"a slice of {rows.type.description}: [b] is a row, flat(field)[a : a + n] has n numbers")
    start, n = _extent(w, node.slice)
    i = w.index(start, node.slice)
    if start.constant is not None:
        return [(rows, w.constant(start.constant + k, node)) for k in range(n)]
    return [(rows, Thing(INT, (w.register(f"add i64 {i}, {k}") if k else i,))) for k in range(n)]


def _extent(w: Writer, bounds: ast.Slice) -> tuple[Thing, int]:
    """Returns the first index of a slice and its constant length: of [a : a + n], [a + 2 : a + 5] or [2 : 5]."""
    lower, upper = bounds.lower, bounds.upper
    if lower and upper and not bounds.step:
        start = something(w, lower)
        if isinstance(upper, ast.BinOp) and isinstance(upper.op, ast.Add) and same(upper.left, lower):
            n = something(w, upper.right).known_int or 0
        else:
            (a, first), (b, stop) = offset(lower), offset(upper)
            n = stop - first if same(a, b) else 0
        if n > 0:
            return start, n
    raise w.broken(bounds, f"[{ast.unparse(bounds)}]: a slice of a field is [a : a + n] with a constant n")


def same(a: ast.expr | None, b: ast.expr | None) -> bool:
    """Returns whether two expressions have the same text, so that at one place they have the same value."""
    return a is b or (a is not None and b is not None and ast.dump(a) == ast.dump(b))


def offset(node: ast.expr) -> tuple[ast.expr | None, int]:
    """Returns (a, k) of the index a + k with a literal k; a is None for k alone."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return None, node.value
    last = node.right if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) else None
    if isinstance(last, ast.Constant) and isinstance(last.value, int):
        return node.left, last.value
    return node, 0


# ---- assigned rows -------------------------------------------------------------------------------------------------
def assign(w: Writer, target: ast.Subscript | ast.Attribute, thing: Thing) -> None:
    """Writes d.x[i] = thing, d.x[i][k] = thing, d.x[a : a + n] = thing, d.contact[k].x = thing."""
    if isinstance(target, ast.Attribute):
        record_functions.store(w, *_assigned_member(w, target), thing, target)
        return
    if isinstance(target.slice, ast.Slice):
        places = _slice_places(w, something(w, target.value), target)
        if not isinstance(thing.type, Tuple) or len(thing.type.items) != len(places):
            raise w.broken(target, f"{thing.type.description} is assigned to a slice of {len(places)} numbers")
        for place, part in zip(places, w.parts(thing), strict=True):
            record_functions.store(w, *place, part, target)
        return
    record_functions.store(w, *_assigned_row(w, target), thing, target)


def augment(w: Writer, s: ast.AugAssign, target: ast.Subscript | ast.Attribute) -> None:
    """Writes d.x[i] += thing, and with other operators; the field and its index are evaluated once."""
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Slice):
        raise w.broken(s, "a slice has no row type: write d.x[a : a + 3] = Vec3(d.x[a : a + 3]) + v")
    rows, index = (_assigned_row if isinstance(target, ast.Subscript) else _assigned_member)(w, target)
    old = record_functions.load_row(w, rows, index, target)
    record_functions.store(w, rows, index, binary(w, s, type(s.op), old, something(w, s.value)), target)


def _assigned_member(w: Writer, target: ast.Attribute) -> tuple[Thing, Thing]:
    """Returns the field and the index of a field of an object that is assigned to."""
    whole = something(w, target.value)
    if not isinstance(whole.type, Object):
        raise w.broken(target, TARGETS)
    rows, index = record_functions.member(w, whole, target.attr, target)
    if rows.type.inner:
        raise w.broken(target, f"{target.attr} has {len(rows.type.inner) + 1} indices: assign one of its rows")
    return rows, index


def _assigned_row(w: Writer, target: ast.Subscript) -> tuple[Thing, Thing]:
    """Returns the field and the index of a row, or of one part of a typed row, that is assigned to."""
    if isinstance(target.value, ast.Subscript):
        rows = something(w, target.value.value)
        index, k = _index(w, rows, target.value.slice), something(w, target.slice)
        if isinstance(rows.type, View) and rows.type.kind and k.known_int is not None:
            return record_functions.part_place(w, rows, index, k.known_int, target)
        raise w.broken(target, "allowed is one part of a typed row with a known index, for example d.xmat[b][2]")
    rows = something(w, target.value)
    index = _index(w, rows, target.slice)
    if not isinstance(rows.type, View):
        raise w.broken(target, f"{rows.type.description} cannot be assigned by index; a field of a record can")
    return rows, index


EXPRESSIONS[ast.Subscript] = _subscript
