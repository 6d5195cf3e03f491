"""Records and their fields, compiled: `d.qpos`, `d.qpos[i]`, and the functions of `values` with record arguments.

A record is the address of a table of int64: fault words, then for each field its address (or the value of a size) and
its length.  With bounds checks, an index out of range is recorded in the fault words, and row 0 is used instead.
"""

from __future__ import annotations

import ast
import math

from featherlane.engine.lanes.compiler import tangents
from featherlane.engine.lanes.compiler.table import Table, refuse
from featherlane.engine.lanes.compiler.types import (
    BASES,
    BITS,
    INT,
    NOTHING,
    POINTER,
    Group,
    Record,
    Tuple,
    Type,
    Value,
    View,
    group_of,
    value,
    view,
)
from featherlane.engine.lanes.compiler.writer import NO_THING, Thing, Writer
from featherlane.engine.lanes.layout import Field
from featherlane.engine.lanes.record import FAULT_WORDS, FUNCTION
from featherlane.errors import near

SHARED_BASES = {"int": "i32", "long": "i64", "scalar": "double"}  # of fields that all worlds of a tile share
OF_RECORDS = Table()
function = OF_RECORDS.function
READ_ONLY = "the model is read-only while a stage runs; a user callback can write only the fields of its role"
INVARIANT = ", !invariant.load !0"  # tables and models never change while a stage runs


# ---- fields --------------------------------------------------------------------------------------------------------
def field(w: Writer, record: Thing, name: str, node) -> Thing:
    """Writes access to a field of a record: a view, the number of a size, or a nested record."""
    t: Record = record.type
    if not t.prefix and name in t.layout.records:
        return Thing(t.within(name), record.operands)
    if not t.prefix and name in t.layout.groups:
        return Thing(group_of(t, name), record.operands)
    f = _accessible(w, t, t.prefix + name, node)
    entry = FAULT_WORDS + 2 * t.layout.index[f.name]
    word = _word(w, record.operand, entry)
    if f.kind == "size":
        return Thing(INT, (word,))
    seed = (t.seeds.index(f.name), len(t.seeds)) if f.name in t.seeds else None
    if seed and (f.rows or f.kind != "real"):
        raise w.broken(node, f"jvp: {f.name} is not a field of reals without a row type; seed(x, ...) seeds a row")
    base = "double" if f.is_wide else SHARED_BASES.get(f.kind, t.base)
    width, shared = t.width if f.kind == "real" else 1, ""
    if f.kind == "scalar":
        # tables of the model are read in the precision of the worlds, buffers of a tile are float64
        shared = t.base if t.constant else base
    constant = t.constant if t.access is None else f.name not in t.access.sets
    inner = t.layout.inner(f)
    rows = view(base, width, constant, t.checked, False, f.rows, inner, shared, seed)
    place = [w.register(f"inttoptr i64 {word} to ptr")]
    if t.checked:
        place += [_word(w, record.operand, entry + 1), str(t.layout.index[f.name]), record.operand]
    sizes = [FAULT_WORDS + 2 * t.layout.index[n] for n in inner if isinstance(n, str)]
    return Thing(rows, (*place, *(_word(w, record.operand, at) for at in sizes)))


def _accessible(w: Writer, t: Record, name: str, node) -> Field:
    """Returns the declaration of a field.

    Raises:
        KernelLanguageError: the layout has no such field, or the stage may not access it.
    """
    if name not in t.layout:
        names = [f.name for f in t.layout.fields]
        raise w.broken(node, f"{t.layout.name} has no field {name}{near(name, names)}")
    f = t.layout[name]
    if t.access is not None and f.kind != "size" and name not in t.access.reads:
        raise w.broken(node, f"{ast.unparse(node)} cannot be read in this callback{near(name, t.access.reads)}")
    if f.kind == "real" and t.shared:
        raise w.broken(
            node, f"{name} differs by world; a stage that runs for one world at a time can use only ints and scalars"
        )
    return f


def member(w: Writer, whole: Thing, name: str, node) -> tuple[Thing, Thing]:
    """Returns (field, index) of a field of an object: `c.dist` with c = d.contact[k] is d.con_dist[k]."""
    group: Group = whole.type.group
    layout, full = group.record.layout, group.prefix + name
    if full not in layout or layout[full].kind == "size":
        known = [f.name.removeprefix(group.prefix) for f in layout.stored if f.name.startswith(group.prefix)]
        raise w.broken(node, f"{whole.type.description} has no field {name}{near(name, known)}")
    rows = field(w, Thing(group.record, whole.operands[:1]), full, node)
    return rows, Thing(INT, whole.operands[1:])


def load_member(w: Writer, whole: Thing, name: str, node) -> Thing:
    """Loads a field of an object; one with more indices is a view of the object's part."""
    rows, index = member(w, whole, name, node)
    t: View = rows.type
    if not t.inner:
        return load_row(w, rows, index, node)
    if isinstance(t.inner[0], str):
        raise w.broken(node, f"{name} has a variable number of rows per object: index the field of the record")
    n = math.prod(t.inner) * (len(t.kind._fields) if t.kind else 1)
    if t.checked:
        first = _checked(w, rows, w.register(f"mul i64 {index.operand}, {n}"), rows.operands[1])
        place = (w.register(f"getelementptr {t.row}, ptr {rows.operands[0]}, i64 {first}"), str(n), *rows.operands[2:])
    else:
        place = (w.register(f"getelementptr [{n} x {t.row}], ptr {rows.operands[0]}, i64 {index.operand}"),)
    return Thing(view(t.base, t.width, t.constant, t.checked, t.dense, t.kind, t.inner[1:], t.shared, t.seed), place)


def _word(w: Writer, table: str, k: int) -> str:
    return w.register(f"load i64, ptr {w.register(f'getelementptr i64, ptr {table}, i64 {k}')}{INVARIANT}")


def load_row(w: Writer, rows: Thing, index: Thing, node) -> Thing:
    """Loads a row of a view: an int, a value or a typed row."""
    t: View = rows.type
    if t.kind:
        _refuse_flat_index(w, t.kind, node)
        parts = [load_row(w, *place, node) for place in _places(w, rows, index, node)]
        return w.tuple(parts, kind=t.kind)
    pointer = write_row_address(w, rows, w.index(index, node))
    constant = INVARIANT if t.constant and not t.checked else ""
    x = w.register(f"load {t.row}, ptr {pointer}, align {t.alignment}{constant}")
    if t.base == "i32":
        x = w.register(f"sext i32 {x} to i64")
    elif (t.base, t.shared) == ("double", "float"):
        x = w.register(f"fptrunc double {x} to float")
    return tangents.loaded(w, Thing(t.element, (x,)), t.seed, node)


def store(w: Writer, rows: Thing, index: Thing, thing: Thing, node) -> None:
    """Stores a row of a view.

    Raises:
        KernelLanguageError: the view is read-only, or has rows of another type.
    """
    t: View = rows.type
    if t.constant:
        raise w.broken(node, READ_ONLY)
    _refuse_seeded(w, node, t)
    if t.kind:
        _refuse_flat_index(w, t.kind, getattr(node, "slice", node))
        if not isinstance(thing.type, Tuple) or len(thing.type.items) != len(t.kind._fields):
            raise w.broken(node, f"{thing.type.description} is assigned to a {t.kind.__name__}")
        if thing.type.row not in (None, t.kind):
            raise w.broken(node, f"{thing.type.description} is assigned to a {t.kind.__name__}")
        for place, part in zip(_places(w, rows, index, node), w.parts(thing), strict=True):
            store(w, *place, part, node)
        return
    pointer = write_row_address(w, rows, w.index(index, node))
    x = w.convert(thing, t.element, node).operand
    if t.base == "i32":
        x = w.register(f"trunc i64 {x} to i32")
    w.write(f"store {t.row} {x}, ptr {pointer}, align {t.alignment}")


def _refuse_seeded(w: Writer, node, t: Type) -> None:
    """Refuses what a kernel that is differentiated by this field, or by fields of this record, may not do."""
    if getattr(t, "seed", None) or getattr(t, "seeds", None):
        raise w.broken(
            node,
            "a kernel that is differentiated by a field can only load the field's values, and calls no stage",
        )


# ---- typed rows ----------------------------------------------------------------------------------------------------
def flattened(rows: Thing) -> Thing:
    """Returns a field without its row type."""
    t: View = rows.type
    rows_of_numbers = view(t.base, t.width, t.constant, t.checked, t.dense, None, (), t.shared, t.seed)
    return Thing(rows_of_numbers, rows.operands[: len(t.place)])


def part_place(w: Writer, rows: Thing, index: Thing, k: int, node) -> tuple[Thing, Thing]:
    """Returns (field without a row type, index) of part k of a row."""
    n = len(rows.type.kind._fields)
    if not 0 <= k < n:
        raise w.broken(node, f"part {k} of a {rows.type.kind.__name__}, which has {n}")
    i = w.index(index, node)
    if index.constant is not None:
        return flattened(rows), w.constant(n * index.constant + k, node)
    if not rows.type.checked:
        return _row_at(w, rows, i), w.constant(k, node)
    i = w.register(f"mul i64 {i}, {n}")
    return flattened(rows), Thing(INT, (w.register(f"add i64 {i}, {k}") if k else i,))


def _places(w: Writer, rows: Thing, index: Thing, node) -> list[tuple[Thing, Thing]]:
    """Returns the place of each part of a row; the row's address is computed once."""
    parts = range(len(rows.type.kind._fields))
    if rows.type.checked or index.constant is not None:
        return [part_place(w, rows, index, k, node) for k in parts]
    row = _row_at(w, rows, w.index(index, node))
    return [(row, w.constant(k, node)) for k in parts]


def _row_at(w: Writer, rows: Thing, i: str) -> Thing:
    """Returns the numbers of row i."""
    kind = f"[{len(rows.type.kind._fields)} x {rows.type.row}]"
    pointer = w.register(f"getelementptr {kind}, ptr {rows.operands[0]}, i64 {i}")
    return Thing(flattened(rows).type, (pointer,))


def _refuse_flat_index(w: Writer, kind: type, index) -> None:
    """Refuses d.xpos[3 * b] and d.xpos[3 * b + 2]: the index of a typed row is not multiplied by its length."""
    product = index.left if isinstance(index, ast.BinOp) and isinstance(index.op, ast.Add) else index
    if not (isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult)):
        return
    factors = (product.left, product.right)
    if any(isinstance(f, ast.Constant) and f.value == len(kind._fields) for f in factors):
        raise w.broken(
            index,
            f"the field has one {kind.__name__} per index: [b] is a row, [b].{kind._fields[0]} or [b][0] a part; "
            f"flat(field) has the index {ast.unparse(index)}",
        )


@function("flat", 1, "a field", View)
def write_flat(w: Writer, node, rows):
    return flattened(rows)


def write_row_address(w: Writer, rows: Thing, index: str) -> str:
    """Writes the address of a number of a field."""
    if rows.type.checked:
        index = _checked(w, rows, index, rows.operands[1])
    return w.register(f"getelementptr {rows.type.row}, ptr {rows.operands[0]}, i64 {index}")


def _checked(w: Writer, rows: Thing, index: str, length: str) -> str:
    """Writes a bounds check: returns the index, or 0 with the fault recorded if it is out of range."""
    _, _, number, table = rows.operands[:4]
    index = w.register(f"freeze i64 {index}")  # of a NaN: LLVM could assume anything about a poisoned comparison
    bad = w.register(f"icmp uge i64 {index}, {length}")
    fault, first, fine = w.label(), w.label(), w.label()
    w.branch(bad, fault, fine)
    w.place(fault)
    previous = w.register(f"load i64, ptr {table}")
    w.write(f"store i64 {w.register(f'add i64 {previous}, 1')}, ptr {table}")
    w.branch(w.register(f"icmp eq i64 {previous}, 0"), first, fine)
    w.place(first)
    for k, x in enumerate((number, index, length), 1):
        w.write(f"store i64 {x}, ptr {w.register(f'getelementptr i64, ptr {table}, i64 {k}')}")
    w.place(fine)
    return w.register(f"select i1 {bad}, i64 0, i64 {index}")


# ---- one world of a row --------------------------------------------------------------------------------------------
ONE = value(1, "double", True)


def _lane(w: Writer, node, rows: Thing, i: Thing, lane: Thing) -> str:
    _refuse_seeded(w, node, rows.type)
    i, lane = w.index(i, node), w.index(lane, node)
    pointer = write_row_address(w, rows, i)
    if rows.type.checked:
        lane = _checked(w, rows, lane, str(rows.type.width))
    return pointer if rows.type.width == 1 else w.register(f"getelementptr {rows.type.base}, ptr {pointer}, i64 {lane}")


def _has_reals(t: Type) -> bool:
    """Returns whether it is a field of reals."""
    return isinstance(t, View) and t.element is not INT


@function("read_lane", 3, "a field of reals, a row and a lane", _has_reals)
def read_lane(w: Writer, node, rows, i, lane):
    if rows.type.kind:
        parts = [read_lane(w, node, *place, lane) for place in _places(w, rows, i, node)]
        return w.tuple(parts, kind=rows.type.kind)
    x = w.register(f"load {rows.type.base}, ptr {_lane(w, node, rows, i, lane)}")
    return Thing(ONE, (w.register(f"fpext float {x} to double") if rows.type.base == "float" else x,))


@function("write_lane", 4, "a field of reals, a row, a lane and one world's number", _has_reals)
def write_lane(w: Writer, node, rows, i, lane, x):
    if rows.type.constant:
        raise w.broken(node, READ_ONLY)
    if rows.type.kind:
        if not isinstance(x.type, Tuple) or len(x.type.items) != len(rows.type.kind._fields):
            allowed = f"a {rows.type.kind.__name__} as the last argument"
            raise refuse(w, node, "write_lane", (rows, i, lane, x), allowed)
        for place, part in zip(_places(w, rows, i, node), w.parts(x), strict=True):
            write_lane(w, node, *place, lane, part)
        return NO_THING
    pointer = _lane(w, node, rows, i, lane)
    x = w.convert(x, ONE, node).operand
    if rows.type.base == "float":
        x = w.register(f"fptrunc double {x} to float")
    w.write(f"store {rows.type.base} {x}, ptr {pointer}")
    return NO_THING


def _gathered(name: str, own_lane: bool) -> None:
    @function(name, 2, "a field of reals and a value, the index in each world", _has_reals, Value)
    def write(w: Writer, node, rows, index):
        _refuse_seeded(w, node, rows.type)
        s, base, out = index.type, rows.type.base, "poison"
        t = value(s.width, base if own_lane else s.base)  # a table of float64 is rounded to the index's precision
        for lane in range(t.width):
            k = index.operand
            if t.width > 1:
                k = w.register(f"extractelement {s.llvm} {k}, i32 {lane}")
            k = w.register(f"fptosi {s.base} {k} to i64")
            if rows.type.checked == FUNCTION:
                k = w.register(f"freeze i64 {k}")
                inside = w.register(f"icmp ult i64 {k}, {rows.operands[1]}")
                k = w.register(f"select i1 {inside}, i64 {k}, i64 0")
            pointer = write_row_address(w, rows, k)
            if own_lane and rows.type.width > 1:
                pointer = w.register(f"getelementptr {base}, ptr {pointer}, i64 {lane}")
            x = w.register(f"load {base}, ptr {pointer}")
            if base != t.base:
                x = w.register(f"{'fptrunc' if BITS[t.base] < BITS[base] else 'fpext'} {base} {x} to {t.base}")
            out = x if t.width == 1 else w.register(f"insertelement {t.llvm} {out}, {t.base} {x}, i32 {lane}")
        return Thing(t, (out,))


_gathered("gather", own_lane=False)
_gathered("gather_rows", own_lane=True)


# ---- memory, addresses ---------------------------------------------------------------------------------------------
def _has_scalars(t: Type) -> bool:
    return isinstance(t, View) and (t.base, t.width) == ("double", 1)


@function("eights", 1, "a field of scalars", _has_scalars)
def eights(w: Writer, node, rows):
    t = rows.type
    _refuse_seeded(w, node, t)
    operands = list(rows.operands[: len(t.place)])
    if t.checked:
        operands[1] = w.register(f"lshr i64 {operands[1]}, 3")
    # the model's fields lie next to each other
    return Thing(view("double", 8, t.constant, t.checked, t.constant), operands)


def _numbers(name: str, own: str) -> None:
    @function(name, 2, "a record and an address", Record, INT)
    def write(w: Writer, node, record, address):
        base = own or record.type.base
        rows = view(base, 1, False, False, shared=base)
        return Thing(rows, (w.register(f"inttoptr i64 {address.operand} to ptr"),))


_numbers("scalars", "")
_numbers("doubles", "double")


@function("prefetch", 2, "a field and the index of a row", View, INT)
def prefetch(w: Writer, node, rows, index):
    pointer = write_row_address(w, rows, index.operand)
    w.declared.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    w.write(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 3, i32 1)")
    return NO_THING


@function("record_at", 2, "a record and an address", Record, INT)
def record_at(w: Writer, node, record, address):
    return Thing(POINTER, (w.register(f"inttoptr i64 {address.operand} to ptr"),))


@function("call", 4, "an address and three records, ints or `record_at`", INT, *[(Record, INT, POINTER)] * 3)
def call(w: Writer, node, address, *given):
    for a in given:
        _refuse_seeded(w, node, a.type)
    pointer = w.register(f"inttoptr i64 {address.operand} to ptr")
    w.register(f"call i32 {pointer}({', '.join(f'{a.type.operands[0]} {a.operand}' for a in given)})")
    return NO_THING


def stage_call(w: Writer, node, stage, symbol, arguments) -> Thing:
    """Writes a call of a stage by its symbol; `symbol` is (stage, base, width, checked) -> C name.

    Raises:
        KernelLanguageError: records or numbers of other types.  A record that begins with the fields of the expected
            one is accepted.
    """
    if len(arguments) != len(stage.parameters):
        raise w.broken(node, f"{stage.name} takes {len(stage.parameters)} arguments, got {len(arguments)}")
    first = arguments[0].type
    if not isinstance(first, Record):
        raise w.broken(node, f"the first argument of the stage {stage.name} is a record, got {first.description}")
    for a in arguments:
        _refuse_seeded(w, node, a.type)
    operands = [a if isinstance(a.type, Record) else w.convert(a, INT, node) for a in arguments]
    for name, layout in stage.records.items():
        given = arguments[stage.parameters.index(name)].type
        if not isinstance(given, Record) or given.prefix or not given.layout.serves(layout):
            raise w.broken(node, f"{stage.name}: {name} must be a record that begins with the fields of {layout.name}")
    name = symbol(stage, BASES[first.base], first.width, first.checked)
    w.declared.add(f"declare i32 @{name}({', '.join(a.type.operands[0] for a in operands)})")
    w.register(f"call i32 @{name}({', '.join(f'{a.type.operands[0]} {a.operand}' for a in operands)})")
    return Thing(NOTHING, ())
