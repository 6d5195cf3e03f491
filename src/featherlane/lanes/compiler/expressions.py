"""Expressions of a kernel: names, operators, comparisons, indices, calls.

`expression(w, node)` writes the code of a syntax tree and returns its result as a `Thing`.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Hashable
from types import ModuleType

from featherlane.errors import near
from featherlane.lanes.compiler import record_functions
from featherlane.lanes.compiler.functions import FUNCTIONS
from featherlane.lanes.compiler.table import refuse
from featherlane.lanes.compiler.types import (
    BOOL,
    INT,
    NOTHING,
    REAL,
    Mask,
    Number,
    Record,
    Tuple,
    Value,
    View,
    common_mask,
    common_type,
    common_value,
    literal,
    mask,
)
from featherlane.lanes.compiler.writer import NO_THING, Stored, Thing, Writer
from featherlane.lanes.kernel import Kernel, Stage, is_named_tuple, symbol
from featherlane.lanes.rows import ATTRIBUTES, OPERATORS, TypedRow, partwise_type

PYTHON = {  # operations on two constants
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: lambda a, b: a << min(b, 64),  # a longer result fits into no int either
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
OF_REALS = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
OF_INTS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor"}
OF_SHIFTS = {ast.LShift: "shl", ast.RShift: "ashr"}
OF_TRUTHS = {ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor"}
ORDERS = {  # (of reals, of ints, Python's)
    ast.Lt: ("olt", "slt", operator.lt),
    ast.LtE: ("ole", "sle", operator.le),
    ast.Gt: ("ogt", "sgt", operator.gt),
    ast.GtE: ("oge", "sge", operator.ge),
    ast.Eq: ("oeq", "eq", operator.eq),
    ast.NotEq: ("une", "ne", operator.ne),
}
SIGNS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.MatMult: "@",
}


def expression(w: Writer, node: ast.expr) -> Thing:
    """Writes an expression and returns its result.

    Raises:
        KernelLanguageError: a rule is broken.
        UnknownYetError: a name in it has no type yet.
    """
    return EXPRESSIONS[type(node)](w, node)


def _constant(w: Writer, node: ast.Constant) -> Thing:
    return w.constant(node.value, node)


def _tuple(w: Writer, node: ast.Tuple) -> Thing:
    return w.tuple([something(w, part) for part in node.elts])


def something(w: Writer, node: ast.expr) -> Thing:
    """Writes an expression that must have a result."""
    thing = expression(w, node)
    if thing.type is NOTHING:
        raise w.broken(node, "this has no value, because the called function returns none")
    return thing


# ---- names ---------------------------------------------------------------------------------------------------------
def _name(w: Writer, node: ast.Name) -> Thing:
    if hasattr(node, "web"):
        return w.read(node.id, node.web)
    return w.constant(_outside(w, node), node)


def _outside(w: Writer, node: ast.expr):
    """Returns the Python object of a name, or of a module's attribute, outside the kernel."""
    if isinstance(node, ast.Attribute):
        owner = _outside(w, node.value)
        if not isinstance(owner, ModuleType):
            raise w.broken(
                node, f"{ast.unparse(node.value)} is neither a record nor a module, so it has no fields in a kernel"
            )
        if not hasattr(owner, node.attr):
            raise w.broken(node, f"{owner.__name__} has no attribute {node.attr}{near(node.attr, dir(owner))}")
        return getattr(owner, node.attr)
    if not isinstance(node, ast.Name):
        raise w.broken(node, "only records and modules have attributes")
    try:
        return w.source.outside(node.id)
    except StopIteration:
        raise w.broken(node, f"{node.id} is not defined{near(node.id, w.source.names())}") from None


def _attribute(w: Writer, node: ast.Attribute) -> Thing:
    if not _is_local(node) and not _is_computed(node):
        return w.constant(_outside(w, node), node)
    whole = something(w, node.value)
    if isinstance(whole.type, Record):
        return record_functions.field(w, whole, node.attr, node)
    made = ATTRIBUTES.get((getattr(whole.type, "kind", None), node.attr))
    if made:
        return kernel_call(w, node, made, [whole])
    names = getattr(whole.type, "names", ())
    if node.attr in names:
        return w.parts(whole)[names.index(node.attr)]
    if getattr(whole.type, "row", None):
        names = *names, *(name for kind, name in ATTRIBUTES if kind is whole.type.row)
    rule = (
        f"it has no attribute {node.attr}{near(node.attr, names)}"
        if names
        else "only a record and a NamedTuple have fields"
    )
    raise w.broken(node, f"{ast.unparse(node.value)} is {whole.type.description}: {rule}")


def _is_computed(node: ast.expr) -> bool:
    """Returns whether a chain of attributes and indices begins with an expression, not with a name."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return not isinstance(node, ast.Name)


def _is_local(node: ast.expr) -> bool:
    """Returns whether a chain of attributes and indices begins with a name that the kernel binds."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return hasattr(node, "web")


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
    rows, index = _located(w, node.value), something(w, node.slice)
    if isinstance(rows, Stored):
        if isinstance(rows.type, Tuple) and index.type is INT and index.constant in range(len(rows.type.items)):
            return rows.part(index.constant)
        rows = w.loaded(rows)
    if isinstance(rows.type, View):
        return record_functions.load_row(w, rows, index, node.slice)
    if isinstance(rows.type, Tuple):
        return _part(w, node, rows, index)
    raise w.broken(node, f"{rows.type.description} cannot be indexed; fields of records and tuples can")


def _part(w: Writer, node: ast.Subscript, whole: Thing, index: Thing) -> Thing:
    """Writes one part of a tuple: a constant index, or an int index if all parts have one type."""
    parts = w.parts(whole)
    if index.constant is not None and index.type is INT:
        if not -len(parts) <= index.constant < len(parts):
            raise w.broken(node, f"part {index.constant} of {whole.type.description}")
        return parts[index.constant]
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


# ---- operators -----------------------------------------------------------------------------------------------------
def _unary(w: Writer, node: ast.UnaryOp) -> Thing:
    a = something(w, node.operand)
    if isinstance(node.op, ast.Not):
        if a.constant is not None and isinstance(a.type, Number):
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
    if a.type is REAL or isinstance(a.type, Value):
        if isinstance(node.op, ast.UAdd):
            return a
        if isinstance(node.op, ast.USub):
            return _negated(w, node, a)
    advice = "; negate a mask with not_(mask)" if isinstance(a.type, Mask) else ""
    raise w.broken(node, f"`{'~' if isinstance(node.op, ast.Invert) else '-'}` of {a.type.description}{advice}")


def _negated(w: Writer, node, a: Thing) -> Thing:
    """Writes -a of a real."""
    if a.constant is not None:
        return w.constant(-a.constant, node)
    return Thing(a.type, (w.register(f"fneg {a.type.llvm} {a.operand}"),))


def _binary(w: Writer, node: ast.BinOp) -> Thing:
    return binary(w, node, type(node.op), something(w, node.left), something(w, node.right))


def operand_kind(t):
    """Returns the row type of an operand, None of a number, and the type itself, which no operator has, of others."""
    return None if isinstance(t, (Number, Value)) else getattr(t, "row", None) or type(t)


def _of_rows(w: Writer, node, op: type, a: Thing, b: Thing) -> Thing:
    """Writes a op b with a row: a call of the operator's kernel, or part by part."""
    kinds = operand_kind(a.type), operand_kind(b.type)
    made = OPERATORS.get((SIGNS[op], *kinds))
    if made:
        return kernel_call(w, node, made, [a, b])
    kind = partwise_type(SIGNS[op], *kinds)
    if kind is None:
        raise w.broken(node, f"{a.type.description} {SIGNS[op]} {b.type.description}{_row_advice(node, op, a, b)}")
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
        f"{x.__name__} {sign} {y.__name__}" for sign, x, y in OPERATORS if sign == SIGNS[op] and kind in (x, y)
    )
    return f"; allowed are {', '.join(allowed)}" if allowed else ""


def binary(w: Writer, node, op: type, a: Thing, b: Thing) -> Thing:
    """Writes a op b."""
    s, t = a.type, b.type
    if getattr(s, "row", None) or getattr(t, "row", None):
        return _of_rows(w, node, op, a, b)
    if op is ast.MatMult:
        raise w.broken(node, f"{s.description} @ {t.description}; `@` is a product of typed rows, such as Mat3 @ Vec3")
    numbers = isinstance(s, Number) and isinstance(t, Number)
    if numbers and a.constant is not None and b.constant is not None:
        return w.constant(_known(w, node, PYTHON[op], a.constant, b.constant), node)
    if op in OF_TRUTHS and (common_mask((s, t)) or (s is BOOL and t is BOOL)):
        c = common_mask((s, t)) or BOOL
        a, b = w.convert(a, c, node), w.convert(b, c, node)
        return Thing(c, (w.register(f"{OF_TRUTHS[op]} {c.llvm} {a.operand}, {b.operand}"),))
    if numbers and REAL not in (s, t) and op is not ast.Div:
        return _of_ints(w, op, w.convert(a, INT, node), w.convert(b, INT, node))
    c = common_value((s, t)) or (REAL if numbers else None)
    if c is None or op not in OF_REALS:
        raise w.broken(node, f"{s.description} {SIGNS[op]} {t.description}{_advice(op, s, t)}")
    a, b = w.convert(a, c, node), w.convert(b, c, node)
    return Thing(c, (w.register(f"{OF_REALS[op]} {c.llvm} {a.operand}, {b.operand}"),))


def _known(w: Writer, node, function, *numbers):
    """Computes an operation on constants."""
    try:
        return function(*numbers)
    except (ArithmeticError, ValueError, TypeError) as error:
        raise w.broken(node, f"this cannot be evaluated: {error}") from None


def _advice(op: type, s, t) -> str:
    if isinstance(s, (Mask, Number)) and isinstance(t, (Mask, Number)) and (isinstance(s, Mask) or isinstance(t, Mask)):
        return "; combine masks with & and |; where(mask, 1.0, 0.0) converts a mask to a value"
    if isinstance(s, Value) and isinstance(t, Value) and s.base != t.base:
        return ": two precisions; real(d, x) converts x to the precision of d"
    if isinstance(s, Tuple) and isinstance(t, Tuple) and op is ast.Add:
        return "; join(a, b) concatenates them, tuple(a[i] + b[i] for i in range(3)) adds them"
    if op in (ast.FloorDiv, ast.Mod):
        return "; for reals, write floor(x / y)"
    if op in (ast.LShift, ast.RShift, *OF_TRUTHS):
        return ": bit operations are for ints; combine masks with & and |"
    return ""


def _of_ints(w: Writer, op: type, a: Thing, b: Thing) -> Thing:
    if op in OF_SHIFTS:
        return Thing(INT, (_shifted(w, OF_SHIFTS[op], a, b),))
    if (a.constant == 0 and op is ast.Add) or (a.constant == 1 and op is ast.Mult):
        return b
    if (b.constant == 0 and op in (ast.Add, ast.Sub)) or (b.constant == 1 and op is ast.Mult):
        return a
    if op is ast.Mult and 0 in (a.constant, b.constant):
        return a if a.constant == 0 else b
    if op in OF_INTS:
        return Thing(INT, (w.register(f"{OF_INTS[op]} i64 {a.operand}, {b.operand}"),))
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
    numbers = isinstance(a.type, Number) and isinstance(b.type, Number)
    if numbers and a.constant is not None and b.constant is not None:
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


# ---- choices -------------------------------------------------------------------------------------------------------
def _bool_op(w: Writer, node: ast.BoolOp) -> Thing:
    """Writes `and`, `or`; a later condition is computed only if the earlier ones do not decide; returns a bool."""
    stop = isinstance(node.op, ast.Or)
    open_ = []
    for k, e in enumerate(node.values):  # constants that decide at compile time
        a = something(w, e)
        if a.constant is None or not isinstance(a.type, Number):
            open_ = node.values[k:]
            break
        if bool(a.constant) == stop or k == len(node.values) - 1:
            return w.constant(bool(a.constant), node)
    ((pointer, _),) = w.slot("bool", BOOL)
    end = w.label()
    for k, e in enumerate(open_):
        condition = w.truth(a if k == 0 else something(w, e), e)
        w.write(f"store i1 {condition}, ptr {pointer}")
        if k < len(open_) - 1:
            more = w.label()
            w.branch(condition, end if stop else more, more if stop else end)
            w.place(more)
    w.place(end)
    return Thing(BOOL, (w.register(f"load i1, ptr {pointer}"),))


def _if_else(w: Writer, node: ast.IfExp) -> Thing:
    test = something(w, node.test)
    if test.constant is not None and isinstance(test.type, Number):
        return something(w, node.body if test.constant else node.orelse)
    condition = w.truth(test, node.test)
    yes, no, end, web = w.label(), w.label(), w.label(), ("either", node)
    w.branch(condition, yes, no)
    for label, e in ((yes, node.body), (no, node.orelse)):
        w.place(label)
        w.bind("the conditional expression", web, something(w, e), e)
        w.jump(end)
    w.place(end)
    return w.read("the conditional expression", web)


# ---- calls ---------------------------------------------------------------------------------------------------------
def _call(w: Writer, node: ast.Call) -> Thing:
    called = _callable(w, node.func)
    arguments = _arguments(w, node, called)
    if isinstance(called, Stage):
        return record_functions.stage_call(w, node, called, symbol, arguments)
    if isinstance(called, Kernel):
        return kernel_call(w, node, called, arguments)
    if is_named_tuple(called):
        if issubclass(called, TypedRow) and len(arguments) == 1 and isinstance(arguments[0].type, Tuple):
            arguments = w.parts(arguments[0])
        if len(arguments) != len(called._fields):
            raise w.broken(node, f"{called.__name__} takes {called._fields}, got {len(arguments)} arguments")
        return w.tuple(arguments, kind=called)
    f = FUNCTIONS[called]
    if len(arguments) != f.arity and (f.arity is not None or len(arguments) < 2):
        raise w.broken(node, f"{f.name} takes {f.arity or 'two or more'} arguments, got {len(arguments)}")
    return f.write(w, node, arguments)


def _arguments(w: Writer, node: ast.Call, called) -> list[Thing]:
    """Writes the arguments as the source orders them and returns them as the parameters are ordered."""
    placed = [something(w, a) for a in node.args]
    if not node.keywords:
        return placed
    name = ast.unparse(node.func)
    parameters = called._fields if is_named_tuple(called) else getattr(called, "arguments", None)
    if parameters is None:
        raise w.broken(node, f"{name} takes positional arguments only; kernels and stages also take keyword arguments")
    given = {k.arg: something(w, k.value) for k in node.keywords}
    rest = parameters[len(placed) :]
    for k in node.keywords:
        if k.arg not in parameters:
            raise w.broken(k, f"{name} has no parameter {k.arg}{near(k.arg, parameters)}")
        if k.arg not in rest:
            raise w.broken(k, f"{name} got {k.arg} twice, by position and by keyword")
    if len(given) < len(rest):
        raise w.broken(node, f"{name} is called without {', '.join(p for p in rest if p not in given)}")
    return placed + [given[p] for p in rest]


def _callable(w: Writer, node: ast.expr):
    name = ast.unparse(node)
    if isinstance(node, ast.Attribute) and _is_local(node):
        raise w.broken(
            node, f"{name} is a method; a kernel can call kernels, stages and functions of featherlane.lanes"
        )
    if _is_local(node):
        raise w.broken(node, f"{name} is a local variable; a called function must be known when the kernel is compiled")
    called = _outside(w, node)
    known = isinstance(called, Kernel) or is_named_tuple(called)
    if not known and not (isinstance(called, Hashable) and called in FUNCTIONS):
        names = [f.name for f in FUNCTIONS.values()] + ["exp", "log", "pow_", "sincos", "asin", "acos", "atan2"]
        if called is range:
            raise w.broken(node, "range(...) is allowed only in a `for` loop or a comprehension")
        raise w.broken(
            node,
            f"{name} cannot be called in a kernel{near(name.split('.')[-1], names)}; allowed are "
            f"kernels (functions with the decorator `kernel`), stages, min, max, abs and functions "
            f"of featherlane.lanes",
        )
    return called


def kernel_call(w: Writer, node: ast.Call, called: Kernel, arguments: list[Thing]) -> Thing:
    f = w.program.function(called, arguments, w, node)
    w.called[f.symbol] = f
    operands = ", ".join(f"{llvm} {x}" for a in arguments for llvm, x in zip(a.type.operands, a.operands, strict=True))
    code = f"call {f.result} @{f.symbol}({operands})"
    if f.returns is NOTHING:
        w.write(code)
        return NO_THING
    x, parts = w.register(code), f.returns.operands
    if len(parts) == 1:
        return Thing(f.returns, (x,))
    return Thing(f.returns, [w.register(f"extractvalue {f.result} {x}, {k}") for k in range(len(parts))])


@FUNCTIONS.function("dot", 2)
def _dot(w: Writer, node, arguments) -> Thing:
    made = OPERATORS.get(("dot", *(operand_kind(a.type) for a in arguments)))
    if not made:
        raise refuse(w, node, "dot", arguments, "two vectors, or a motion and a force")
    return kernel_call(w, node, made, arguments)


EXPRESSIONS = {
    ast.Constant: _constant,
    ast.Tuple: _tuple,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.Compare: _compare,
    ast.BoolOp: _bool_op,
    ast.IfExp: _if_else,
    ast.Call: _call,
}
