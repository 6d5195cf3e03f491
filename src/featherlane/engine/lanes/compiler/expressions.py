"""Expressions of a kernel: names, operators, comparisons, indices, calls.

`expression(w, node)` writes the code of a syntax tree and returns its result as a `Thing`.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable
from types import ModuleType

from featherlane.engine.lanes.choice import Choice
from featherlane.engine.lanes.compiler import record_functions, tangents
from featherlane.engine.lanes.compiler.functions import FUNCTIONS
from featherlane.engine.lanes.compiler.types import (
    BOOL,
    INT,
    NOTHING,
    Object,
    Record,
    Tuple,
    range_of,
)
from featherlane.engine.lanes.compiler.writer import NO_THING, Thing, Writer
from featherlane.engine.lanes.derivative import Derivative
from featherlane.engine.lanes.kernel import Kernel, Stage, is_named_tuple, symbol
from featherlane.engine.lanes.rows import ATTRIBUTES, TypedRow
from featherlane.errors import near


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
    if isinstance(whole.type, Object):
        return record_functions.load_member(w, whole, node.attr, node)
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


# ---- choices -------------------------------------------------------------------------------------------------------
def _bool_op(w: Writer, node: ast.BoolOp) -> Thing:
    """Writes `and`, `or`; a later condition is computed only if the earlier ones do not decide; returns a bool."""
    deciding = isinstance(node.op, ast.Or)  # the truth of a condition that decides the result
    first, conditions = something(w, node.values[0]), list(node.values)
    while first.is_known:
        if bool(first.constant) is deciding or len(conditions) == 1:
            return w.constant(bool(first.constant), node)
        del conditions[0]
        first = something(w, conditions[0])
    ((pointer, _),) = w.slot("bool", BOOL)
    end = w.label()
    for k, e in enumerate(conditions):
        condition = w.truth(something(w, e) if k else first, e)
        w.write(f"store i1 {condition}, ptr {pointer}")
        if e is not conditions[-1]:
            more = w.label()
            w.branch(condition, *((end, more) if deciding else (more, end)))
            w.place(more)
    w.place(end)
    return Thing(BOOL, (w.register(f"load i1, ptr {pointer}"),))


def _if_else(w: Writer, node: ast.IfExp) -> Thing:
    test = something(w, node.test)
    if test.is_known:
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
    if called is range:
        return _range(w, node)
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
    return f.write(w, node, *arguments)


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
    known = isinstance(called, Kernel) or is_named_tuple(called) or called is range
    if not known and not (isinstance(called, Hashable) and called in FUNCTIONS):
        names = [f.name for f in FUNCTIONS.values()] + ["exp", "log", "pow_", "sincos", "asin", "acos", "atan2"]
        raise w.broken(
            node,
            f"{name} cannot be called in a kernel{near(name.split('.')[-1], names)}; allowed are "
            f"kernels (functions with the decorator `kernel`), stages, min, max, abs and functions "
            f"of featherlane.lanes",
        )
    return called


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


def _range(w: Writer, node: ast.Call) -> Thing:
    """Returns a range as a result or a variable."""
    start, stop, step = range_bounds(w, node)
    if step.constant is None:
        raise w.broken(node, "the step of a range that is returned or assigned must be a number")
    return Thing(range_of(step.constant), (start.operand, stop.operand))


def kernel_call(w: Writer, node: ast.Call, called: Kernel, arguments: list[Thing]) -> Thing:
    if isinstance(called, Derivative):
        return tangents.derivative_call(w, node, called, arguments, kernel_call)
    if called.rule is not None and any(map(tangents.is_dual, arguments)):
        return tangents.ruled_call(w, node, called, arguments, kernel_call)
    if isinstance(called, Choice):
        return _choice(w, node, called, arguments)
    return _function_call(w, node, called, arguments)


def _choice(w: Writer, node: ast.Call, called: Choice, arguments: list[Thing]) -> Thing:
    """Writes a branch for each case of a dispatch table, and its default; only one of them for a constant number."""
    number, rest = called.selection(arguments, lambda kernel, given: kernel_call(w, node, kernel, given))
    number = w.convert(number, INT, node)

    def result(case) -> Thing:
        if isinstance(case, Stage):
            return record_functions.stage_call(w, node, case, symbol, rest)
        return kernel_call(w, node, case, rest) if isinstance(case, Kernel) else w.constant(case, node)

    def give(thing: Thing) -> None:
        if thing.type is not NOTHING:
            w.bind(called.__name__, variable, thing, node)
        w.jump(end)

    if number.constant is not None:
        known = [case for n, case in called.cases if n == number.constant]
        return result(known[0]) if known else _function_call(w, node, called, arguments)
    variable, end = ("choice", called, node), w.label()
    for n, case in called.cases:
        yes, no = w.label(), w.label()
        w.branch(w.register(f"icmp eq i64 {number.operand}, {n}"), yes, no)
        w.place(yes)
        give(result(case))
        w.place(no)
    give(_function_call(w, node, called, arguments))
    w.place(end)
    return w.read(called.__name__, variable) if variable in w.variables else NO_THING


def _function_call(w: Writer, node: ast.Call, called: Kernel, arguments: list[Thing]) -> Thing:
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


EXPRESSIONS = {  # `operators`, `indices` and `unrolled` enter theirs
    ast.Constant: _constant,
    ast.Tuple: _tuple,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.BoolOp: _bool_op,
    ast.IfExp: _if_else,
    ast.Call: _call,
}
