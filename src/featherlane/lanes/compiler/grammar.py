"""The syntax of kernels: the Python constructs that a kernel may use, and the rule that excludes each other one."""

from __future__ import annotations

import ast

from featherlane.lanes.compiler.rules import broken

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
PARTS = {ast.keyword, ast.comprehension}
SIGNS = {
    sign
    for kind in (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
    for sign in kind.__subclasses__()
}
COMPREHENSION = "write a tuple, as in tuple(x[i] for i in range(3)), or a `for` loop over range(...)"
NO_EXCEPTION = "a kernel raises and catches nothing: write a status, or check at the boundary"
RULES = {
    ast.ListComp: f"no comprehension of a list: {COMPREHENSION}",
    ast.SetComp: f"no comprehension of a set: {COMPREHENSION}",
    ast.DictComp: f"no comprehension of a dict: {COMPREHENSION}",
    ast.List: "no list: a tuple has a length that is known, a field of the record has room",
    ast.Set: "no set: compare with `in` a tuple",
    ast.Dict: "no dict: a kernel knows numbers, tuples of numbers, records and their fields",
    ast.Lambda: "no function within a kernel: decorate one with `kernel` outside",
    ast.FunctionDef: "no function within a kernel: decorate one with `kernel` outside",
    ast.AsyncFunctionDef: "no function within a kernel: decorate one with `kernel` outside",
    ast.ClassDef: "no class within a kernel",
    ast.Import: "no import within a kernel: import above it",
    ast.ImportFrom: "no import within a kernel: import above it",
    ast.Raise: NO_EXCEPTION,
    ast.Try: NO_EXCEPTION,
    ast.Assert: NO_EXCEPTION,
    ast.With: "no `with` in a kernel",
    ast.Global: "a kernel binds no global name: write to a field of the record",
    ast.Nonlocal: "a kernel binds no outer name: write to a field of the record",
    ast.Delete: "nothing is deleted in a kernel",
    ast.NamedExpr: "no `:=`: bind the name on a line of its own",
    ast.AnnAssign: "no annotation: types follow from the arguments",
    ast.Slice: "no slice: an index gives one row; loop over rows",
    ast.Starred: "no `*`: join tuples with +",
    ast.JoinedStr: "no text in a kernel",
    ast.Yield: "a kernel returns, and yields nothing",
    ast.YieldFrom: "a kernel returns, and yields nothing",
    ast.Await: "a kernel waits for nothing",
    ast.Match: "no `match`: write `if` and `elif` over ints",
    ast.Is: "compare numbers with ==",
    ast.IsNot: "compare numbers with !=",
    ast.MatMult: "no `@`: write the sums as loops",
    ast.Pow: "no `**`: write products, or pow_(x, y) from featherlane.lanes",
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
            rule = "a loop has no `else`"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "tuple":
            tuples.update(node.args)
        if isinstance(node, ast.GeneratorExp):
            rule = _comprehension_rule(node, node in tuples)
        if isinstance(node, ast.keyword) and node.arg is None:
            rule = "no `**`: name each argument"
        if rule:
            raise broken(source, place, rule)


def _comprehension_rule(node: ast.GeneratorExp, in_tuple: bool) -> str | None:
    if not in_tuple:
        return f"no generator: {COMPREHENSION}"
    if any(g.ifs or g.is_async for g in node.generators):
        return "a comprehension has no `if`: choose with where(mask, a, b), or by the bounds of its range"
    return None


def _nodes(node: ast.AST, place: ast.AST):
    """Yields every node with the nearest enclosing node that has a line."""
    place = node if hasattr(node, "lineno") else place
    yield node, place
    for child in ast.iter_child_nodes(node):
        yield from _nodes(child, place)
