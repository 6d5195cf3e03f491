"""Mutation operators: each changes one expression or statement of a Python source.

Source: DeMillo, Lipton, Sayward, "Hints on test data selection", 1978; Offutt et al., "An experimental determination of
sufficient mutant operators", 1996.  `index`, `swap` and `extreme` are additions for kernels.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("dynamics", "constraint", "collision", "solver", "simulation", "sensitivity")
COMPARISONS = "Lt LtE Gt, LtE Lt GtE, Gt GtE Lt, GtE Gt LtE, Eq NotEq, NotEq Eq, Is IsNot, IsNot Is, In NotIn, NotIn In"
OPERATIONS = "Add Sub, Sub Add, Mult Div, Div Mult, BitAnd BitOr, BitOr BitAnd, And Or, Or And"
CHANGED = {  # class of an operator -> classes of its replacements
    getattr(ast, first): [getattr(ast, name) for name in others]
    for first, *others in (group.split() for group in f"{COMPARISONS}, {OPERATIONS}".split(","))
}
EXTREMES = {"fmax": "fmin", "fmin": "fmax", "max": "min", "min": "max"}
UNVISITED = (ast.Raise, ast.Assert, ast.JoinedStr)  # messages and checks
DECLARED = {"annotation", "returns"}  # fields of a node that hold types
Change = tuple[str, ast.AST, ast.AST]  # operator, node, replacement


@dataclass(frozen=True)
class Mutant:
    """Describes one change of one file.

    Attributes:
        path: the file, relative to the package `featherlane`.
        line: line number, from 1.
        column: offset in the line [bytes].
        change: the operator, and the code before and after.
        edits: (start, end, text) of each replacement in the file [bytes].
    """

    path: str
    line: int
    column: int
    change: str
    edits: tuple[tuple[int, int, str], ...]

    @property
    def key(self) -> str:
        """Identifies the mutant among those of the same sources."""
        return f"{self.path}:{self.line}:{self.column} {self.change}"

    def apply(self, source: str) -> str:
        """Return the mutated source; the line numbers of the other statements are unchanged."""
        data = source.encode()
        for start, end, text in sorted(self.edits, reverse=True):
            data = data[:start] + text.encode() + data[end:]
        return data.decode()


def mutants(source: str, path: str = "") -> list[Mutant]:
    """List every mutant of a source, sorted as in its syntax tree."""
    tree, starts, found = ast.parse(source), [0], []
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for operator, node, changed in _changes(tree, False):
        after = ast.unparse(changed)
        padding = "\n" * (node.end_lineno - node.lineno)
        text = f"({after}{padding})" if isinstance(node, ast.expr) else after + padding
        start, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        edits = [(start, end, text)]
        if operator == "extreme":
            edits += _import(tree, starts, node.id, after)
        change = f"{operator}: {ast.unparse(node)} -> {after}"
        found.append(Mutant(path, node.lineno, node.col_offset, change, tuple(edits)))
    return found


def sample(package: Path, number: int, seed: int) -> list[Mutant]:
    """Sample mutants of the package `featherlane`: uniform over the sites of each subpackage, equal numbers of each.

    The sample depends on the seed and the sources alone.
    """
    chosen = []
    for rank, name in enumerate(PACKAGES):
        paths = sorted(path.relative_to(package).as_posix() for path in (package / name).rglob("*.py"))
        every = [mutant for path in paths for mutant in mutants((package / path).read_text(), path)]
        random.Random(f"{seed} {name}").shuffle(every)
        chosen += every[: (number + len(PACKAGES) - 1 - rank) // len(PACKAGES)]
    return chosen


def _changes(node: ast.AST, kernel: bool) -> Iterator[Change]:
    """Yield the changes of a node and of all nodes below it; `kernel`: inside of a kernel."""
    if isinstance(node, UNVISITED) or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"):
        return
    if isinstance(node, ast.FunctionDef):
        kernel = kernel or any(ast.unparse(d) in ("kernel", "stage") for d in node.decorator_list)
    typing = isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
    if not typing:
        yield from _of_node(node, kernel)
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and name not in DECLARED and (name == "orelse" or not typing):
                yield from _changes(child, kernel)


def _of_node(node: ast.AST, kernel: bool) -> Iterator[Change]:
    match node:
        case ast.Assign(targets=targets) if all(map(_is_stored, targets)):
            yield "delete", node, ast.Pass()
        case ast.AugAssign():
            yield "delete", node, ast.Pass()
            yield from (("arithmetic", node, _with(node, op=other())) for other in CHANGED.get(type(node.op), ()))
        case ast.If(test=test) | ast.IfExp(test=test):
            yield "negate", test, ast.UnaryOp(ast.Not(), test)
        case ast.Compare(ops=ops):
            for i, op in enumerate(ops):
                for other in CHANGED[type(op)]:
                    yield "comparison", node, _with(node, ops=[*ops[:i], other(), *ops[i + 1 :]])
        case ast.BinOp() if not (kernel and _is_index(node)):
            yield from (("arithmetic", node, _with(node, op=other())) for other in CHANGED.get(type(node.op), ()))
        case ast.BoolOp():
            yield "boolean", node, _with(node, op=CHANGED[type(node.op)][0]())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not", node, operand
        case ast.Constant(value=value) if type(value) in (int, float):
            yield "constant", node, ast.Constant(2 * value if type(value) is float and value else value + 1)
        case ast.Call(func=ast.Name(id="where"), args=[mask, a, b]):
            yield "swap", node, _with(node, args=[mask, b, a])
        case ast.Call(func=ast.Name(id=name) as function) if name in EXTREMES:
            yield "extreme", function, ast.Name(EXTREMES[name])
        case ast.Subscript(slice=index) if kernel and isinstance(index, (ast.Name, ast.BinOp)):
            yield "index", index, ast.BinOp(index, ast.Sub(), ast.Constant(1))


def _is_stored(target: ast.expr) -> bool:
    """Return whether every part of an assignment's target is an element of an array."""
    return all(map(_is_stored, target.elts)) if isinstance(target, ast.Tuple) else isinstance(target, ast.Subscript)


def _is_index(node: ast.BinOp) -> bool:
    """Return whether a node is a multiple of an integer, as `3 * i`: kernels have no integer `/`, its mutant fails."""
    parts = (node.left, node.right)
    return isinstance(node.op, ast.Mult) and any(isinstance(p, ast.Constant) and type(p.value) is int for p in parts)


def _with(node: ast.AST, **changes) -> ast.AST:
    return type(node)(**{**dict(ast.iter_fields(node)), **changes})


def _import(tree: ast.Module, starts: list[int], used: str, wanted: str) -> list[tuple[int, int, str]]:
    """Return the edit that imports `wanted` from the module of `used`, if there is one."""
    for node in tree.body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []
        if used in names and wanted not in names:
            start = starts[node.lineno - 1] + node.col_offset
            return [(start, start, f"from {node.module} import {wanted}; ")]
    return []
