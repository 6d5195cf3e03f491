"""The syntax of kernels: the Python constructs that a kernel may use, and the rule that excludes each other one."""

from __future__ import annotations

import ast

from featherlane.engine.lanes.compiler.rules import broken
from featherlane.engine.lanes.rows import TypedRow

STATEMENTS = {
    ast.Assign,
    ast.AugAssign,
    ast.If,
    ast.For,
    ast.While,
    ast.Break,
    ast.Continue,
    ast.Return,
    ast.Pass,
    ast.Expr,
}
EXPRESSIONS = {ast.Name, ast.Constant, ast.Tuple, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp, ast.UnaryOp}
EXPRESSIONS |= {ast.BoolOp, ast.Compare, ast.IfExp, ast.GeneratorExp}
PARTS = {ast.keyword, ast.comprehension, ast.Slice}
SIGNS = {
    sign
    for kind in (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
    for sign in kind.__subclasses__()
}
COMPREHENSION = "write a tuple, for example tuple(x[i] for i in range(3)), or a `for` loop over range(...)"
NO_EXCEPTION = "exceptions are not allowed in a kernel: write a status, or check the arguments before the call"
RULES = {
    ast.ListComp: f"list comprehensions are not allowed in a kernel: {COMPREHENSION}",
    ast.SetComp: f"set comprehensions are not allowed in a kernel: {COMPREHENSION}",
    ast.DictComp: f"dict comprehensions are not allowed in a kernel: {COMPREHENSION}",
    ast.List: "lists are not allowed in a kernel: use a tuple of fixed length, or a field of the record",
    ast.Set: "sets are not allowed in a kernel: use `in` with a tuple",
    ast.Dict: "dicts are not allowed in a kernel: use numbers, tuples of numbers, records and their fields",
    ast.Lambda: "functions are not allowed inside a kernel: define one outside with the decorator `kernel`",
    ast.FunctionDef: "functions are not allowed inside a kernel: define one outside with the decorator `kernel`",
    ast.AsyncFunctionDef: "functions are not allowed inside a kernel: define one outside with the decorator `kernel`",
    ast.ClassDef: "classes are not allowed inside a kernel",
    ast.Import: "imports are not allowed inside a kernel: import at the top of the module",
    ast.ImportFrom: "imports are not allowed inside a kernel: import at the top of the module",
    ast.Raise: NO_EXCEPTION,
    ast.Try: NO_EXCEPTION,
    ast.Assert: NO_EXCEPTION,
    ast.With: "`with` is not allowed in a kernel",
    ast.Global: "`global` is not allowed in a kernel: write to a field of the record",
    ast.Nonlocal: "`nonlocal` is not allowed in a kernel: write to a field of the record",
    ast.Delete: "`del` is not allowed in a kernel",
    ast.NamedExpr: "`:=` is not allowed in a kernel: assign the name in a separate statement",
    ast.AnnAssign: "annotations are not allowed in a kernel: types follow from the arguments",
    ast.Starred: "`*` is not allowed in a kernel: join(a, b) concatenates tuples",
    ast.JoinedStr: "strings are not allowed in a kernel",
    ast.Yield: "`yield` is not allowed in a kernel: return a value",
    ast.YieldFrom: "`yield` is not allowed in a kernel: return a value",
    ast.Await: "`await` is not allowed in a kernel",
    ast.Match: "`match` is not allowed in a kernel: write `if` and `elif` over ints",
    ast.Is: "`is` is not allowed in a kernel: compare numbers with ==",
    ast.IsNot: "`is not` is not allowed in a kernel: compare numbers with !=",
    ast.Pow: "`**` is not allowed in a kernel: write products, or pow_(x, y) from featherlane.lanes",
}
ALLOWED = STATEMENTS | EXPRESSIONS | PARTS | SIGNS


def check_grammar(source, tree: ast.AST) -> None:
    """Walks a tree and rejects constructs that are not part of the kernel language.

    Raises:
        KernelLanguageError: a construct breaks a rule, which the error names.
    """
    tuples = set()  # comprehensions in tuple(...)
    for node, place in _nodes(tree, tree):
        rule = RULES.get(type(node))
        if rule is None and type(node) not in ALLOWED:
            rule = f"{type(node).__name__} is not part of the kernel language"
        if isinstance(node, (ast.For, ast.While)) and node.orelse:
            rule = "`else` is not allowed after a loop in a kernel"
        if isinstance(node, ast.Call) and _makes_tuple(node.func):
            tuples.update(node.args)
        if isinstance(node, ast.GeneratorExp):
            rule = _comprehension_rule(node, node in tuples)
        if isinstance(node, ast.keyword) and node.arg is None:
            rule = "`**` is not allowed in a call: name each argument"
        if rule:
            raise broken(source, place, rule)


def _makes_tuple(function: ast.expr) -> bool:
    """Returns whether a called expression is `tuple`, or a row type."""
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name == "tuple" or name in {kind.__name__ for kind in TypedRow.__subclasses__()}


def _comprehension_rule(node: ast.GeneratorExp, in_tuple: bool) -> str | None:
    if not in_tuple:
        return f"generators are not allowed in a kernel: {COMPREHENSION}"
    if any(g.ifs or g.is_async for g in node.generators):
        return (
            "`if` is not allowed in a comprehension: select with where(mask, a, b), or change the bounds of its range"
        )
    return None


def _nodes(node: ast.AST, place: ast.AST):
    """Yields every node with the nearest enclosing node that has a line."""
    place = node if hasattr(node, "lineno") else place
    yield node, place
    for child in ast.iter_child_nodes(node):
        yield from _nodes(child, place)
