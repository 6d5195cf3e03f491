"""Prints the size of the source by package, counts of repeated mechanisms, and their changes since a commit.

    python tests/measure/size.py [COMMIT]

Code lines are lines with code: without blank lines, comments, docstrings and imports.  Lines are all lines of a file.
A mechanism is counted by the rule that its function states: by names of fields, decorators, functions and methods.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tarfile
import tokenize
from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
SOURCE = "src/featherlane"
FLOORS = ("engine", "tools", "apps")  # folders of packages
# packages below the front ends (tests/test_layers.py), and the public modules of LCPs and trees
ENGINE = (
    *"lanes spatial model dynamics collision constraint solver sensor simulation".split(),
    *"inverse_kinematics integration policy sensitivity lcp tree".split(),
)
# the count that bounds a loop over rows, and the kind of these rows; `nrow` from `ndofrow` on: general rows
ROW_KINDS = {"nfrictionrow": "dof", "ndofrow": "dof", "ngenrow": "general", "nrow": "scalar"}
ROW_KINDS |= {"ncon_slot": "contact", "nslot": "contact"}
NOT_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
    tokenize.ENDMARKER,
}  # fmt: skip


def code_lines(text: str) -> int:
    """Returns the number of lines with code that is neither a docstring nor an import."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NOT_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            lines.difference_update(range(node.lineno, node.end_lineno + 1))
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                lines.difference_update(range(first.lineno, first.end_lineno + 1))
    return len(lines)


def package(path: str) -> str:
    """Returns the package of a file below SOURCE or one of its FLOORS, or the file itself if it is in no package."""
    return next(part for part in PurePosixPath(path).relative_to(SOURCE).parts if part not in FLOORS)


def sizes(files: Iterable[tuple[str, str]]) -> tuple[Counter, Counter]:
    """Returns code lines and lines by package, of pairs (path, text)."""
    code, every = Counter(), Counter()
    for path, text in files:
        code[package(path)] += code_lines(text)
        every[package(path)] += text.count("\n")
    return code, every


def working_tree() -> list[tuple[str, str]]:
    return [(p.relative_to(ROOT).as_posix(), p.read_text()) for p in sorted((ROOT / SOURCE).rglob("*.py"))]


def of_commit(commit: str) -> list[tuple[str, str]]:
    """Returns the files of a commit.

    Raises:
        SystemExit: Git does not have the commit.
    """
    done = subprocess.run(["git", "archive", commit, SOURCE], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"commit {commit}: {done.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        members = [member for member in archive.getmembers() if member.name.endswith(".py")]
        return [(member.name, archive.extractfile(member).read().decode()) for member in members]


def table(new: tuple[Counter, Counter], old: tuple[Counter, Counter] | None) -> list[str]:
    """Returns the lines of the report: code lines and lines, with their changes, packages of the engine first."""
    (code, every), names = new, set(new[0]) | set(old[0] if old else ())
    groups = {name: [name] for name in sorted(names, key=lambda name: (name not in ENGINE, name))}
    groups |= {"engine": [name for name in names if name in ENGINE], "all": list(names)}
    lines = [f"{'':24s}{'code lines':>12s}{'change':>9s}{'lines':>10s}{'change':>9s}"]
    for title, members in groups.items():
        cells = []
        for now, before in zip((code, every), old or (code, every), strict=True):
            total, earlier = (sum(each[name] for name in members) for each in (now, before))
            cells.append(f"{total:>{12 if not cells else 10},d}{(total - earlier if old else 0):>+9,d}")
        lines.append(f"{title:24s}" + "".join(cells))
    return lines


# ---- mechanisms ----------------------------------------------------------------------------------------------------
def functions(tree: ast.Module) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def decorators(function: ast.FunctionDef) -> set[str]:
    """Returns the names of a function's decorators."""
    calls = [d.func if isinstance(d, ast.Call) else d for d in function.decorator_list]
    return {d.id for d in calls if isinstance(d, ast.Name)}


def row_kinds(function: ast.FunctionDef) -> set[str]:
    """Returns the kinds of rows over which a function loops."""
    kinds: set[str] = set()
    for node in ast.walk(function):
        bounds = node.iter.args if isinstance(node, ast.For) and isinstance(node.iter, ast.Call) else []
        names = {a.attr for bound in bounds for a in ast.walk(bound) if isinstance(a, ast.Attribute)}
        found = {ROW_KINDS[name] for name in names & ROW_KINDS.keys()}
        if {"ndofrow", "nrow"} <= names:
            found = {"general"}
        elif {"nfrictionrow", "ndofrow"} <= names:
            found = {"dof"}
        # a loop over rows and contacts together has one kind, blocks
        kinds |= found if len(found) == 1 else set()
    return kinds


def row_enumerations(trees: Iterable[ast.Module]) -> int:
    """Returns the number of functions that loop over several kinds of rows."""
    # a kernel within a function is counted, its function is not
    whole = (f for tree in trees for f in functions(tree) if not any(isinstance(n, ast.FunctionDef) for n in f.body))
    return sum(len(row_kinds(function)) > 1 for function in whole)


def statement_lines(function: ast.FunctionDef) -> int:
    """Returns the lines of a function's body without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return sum(statement.end_lineno - statement.lineno + 1 for statement in body)


def repeated_methods(trees: Iterable[ast.Module]) -> list[tuple[str, int]]:
    """Returns (name, lines of its docstrings) of public methods with docstrings in three or more classes."""
    documented: dict[str, list[int]] = {}
    for tree in trees:
        for node in ast.walk(tree):
            for method in functions(ast.Module(node.body, [])) if isinstance(node, ast.ClassDef) else ():
                text = ast.get_docstring(method, clean=False)
                if text and not method.name.startswith("_"):
                    documented.setdefault(method.name, []).append(text.count("\n") + 1)
    return [(name, sum(lines)) for name, lines in documented.items() if len(lines) >= 3]


def repeated_lines(trees: Iterable[ast.Module]) -> int:
    """Returns the number of lines that docstrings of public methods repeat from methods of the same name.

    A first line, and a line of at most three words, is not counted.
    """
    known: dict[str, set[str]] = {}
    repeated = 0
    for tree in trees:
        for node in ast.walk(tree):
            for method in functions(ast.Module(node.body, [])) if isinstance(node, ast.ClassDef) else ():
                rest = (ast.get_docstring(method) or "").splitlines()[1:]
                lines = {line.strip() for line in rest if len(line.split()) > 3}
                if not method.name.startswith("_"):
                    earlier = known.setdefault(method.name, set())
                    repeated += len(lines & earlier)
                    earlier |= lines
    return repeated


def mechanisms(files: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Returns counts of mechanisms by title, of pairs (path, text) of the engine."""
    trees = [ast.parse(text) for path, text in files if package(path) in ENGINE]
    kernels = [f for tree in trees for f in functions(tree) if decorators(f) & {"kernel", "stage", "operator"}]
    used = Counter(node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name))
    called = Counter(
        node.func.id
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    )
    methods = repeated_methods(trees)

    def named(pattern: str) -> int:
        return sum(re.search(pattern, f.name) is not None for f in kernels)

    return {
        "functions with loops over several kinds of rows": row_enumerations(trees),
        "kernels that factor or eliminate": named("^_?(factor|eliminate|ltdl)"),
        "kernels that whiten": named("whiten|half_solve"),
        "kernels of at most three lines, called once": sum(
            used[f.name] == called[f.name] == 1 and statement_lines(f) <= 3 for f in kernels
        ),
        "methods documented in three classes or more": len(methods),
        "lines of these docstrings": sum(lines for _, lines in methods),
        "lines that docstrings of one name repeat": repeated_lines(trees),
    }


def mechanism_table(new: dict[str, int], old: dict[str, int] | None) -> list[str]:
    """Returns the lines of the report of mechanisms, with their changes."""
    return [f"{title:46s}{count:>7,d}{(count - old[title] if old else 0):>+9,d}" for title, count in new.items()]


if __name__ == "__main__":
    if len(sys.argv) > 2 or sys.argv[1:2] in (["-h"], ["--help"]):
        sys.exit("usage: python tests/measure/size.py [COMMIT]")
    now = working_tree()
    before = of_commit(sys.argv[1]) if len(sys.argv) == 2 else None
    print("\n".join(table(sizes(now), sizes(before) if before else None)), end="\n\n")
    print("\n".join(mechanism_table(mechanisms(now), mechanisms(before) if before else None)))
