"""The syntax of kernels: which of Python's constructs a kernel may use, and the rule behind each that it may not."""

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
EXPRESSIONS |= {ast.BoolOp, ast.Compare, ast.IfExp}
SIGNS = {
    sign
    for kind in (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
    for sign in kind.__subclasses__()
}
LOOP = "write a `for` loop over range(...)"
NO_EXCEPTION = "a kernel raises and catches nothing: write a status, or check at the boundary"
RULES = {
    ast.ListComp: f"no comprehension: {LOOP}",
    ast.SetComp: f"no comprehension: {LOOP}",
    ast.DictComp: f"no comprehension: {LOOP}",
    ast.GeneratorExp: f"no generator: {LOOP}",
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
    ast.keyword: "pass every argument by its place: calls of kernels know no keywords",
}
ALLOWED = STATEMENTS | EXPRESSIONS | SIGNS


def check(source, tree: ast.AST) -> None:
    """Walk a tree and refuse what no kernel may say.

    Raises:
        KernelLanguageError: with the rule that is broken.
    """
    for node, place in _nodes(tree, tree):
        rule = RULES.get(type(node))
        if rule is None and type(node) not in ALLOWED:
            rule = f"{type(node).__name__} is not part of the kernel language"
        if isinstance(node, (ast.For, ast.While)) and node.orelse:
            rule = "a loop has no `else`"
        if rule:
            raise broken(source, place, rule)


def _nodes(node: ast.AST, place: ast.AST):
    """Every node, and the nearest one around it that has a line."""
    place = node if hasattr(node, "lineno") else place
    yield node, place
    for child in ast.iter_child_nodes(node):
        yield from _nodes(child, place)
