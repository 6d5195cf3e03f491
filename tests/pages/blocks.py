"""Runs the blocks of code in a page: in their order, in one namespace, each as a separate file.

The output of a block may follow it, as a block of text, and is then compared:

    ```python
    model = fl.bundled("humanoid")
    print(model.nv)
    ```

    ```text
    27
    ```

`PYTHONPATH=tests python -m pages.blocks PAGE...` writes the output into pages.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
import re
import sys
import tempfile
from pathlib import Path

PYTHON = re.compile(
    r"^```python\n(?P<shown>.*?)^```$(?:\n\n```text\n(?P<printed>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def python(page: str) -> list[str]:
    """Returns the Python blocks."""
    return [block["shown"] for block in PYTHON.finditer(page)]


def _stored(node: ast.AST) -> set[str]:
    """Returns the names that a statement defines, those of its arguments and comprehensions included."""
    found = set()
    for inner in ast.walk(node):
        match inner:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.alias():
                found.add((inner.asname or inner.name).partition(".")[0])
    return found


def missing(code: str) -> set[str]:
    """Returns the names that a block reads and that no statement before defines; functions may read later ones."""
    body = ast.parse(code).body
    defined, everything = set(dir(builtins)), set().union(*map(_stored, body))
    found = set()
    for statement in body:
        later = isinstance(statement, ast.FunctionDef | ast.ClassDef)
        assigned = isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign)
        inner = set() if assigned else _stored(statement)
        if assigned:  # the names of its lambdas and comprehensions
            inner = _stored(ast.Expr(statement.value)) if statement.value else set()
        read = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        found |= read - defined - inner - (everything if later else set())
        defined |= _stored(statement)
    return found


def run(page: str, folder: Path, compare: bool = True) -> tuple[dict, str]:
    """Runs all blocks of a page; returns their namespace, and the page with their output.

    Kernels are read from their source, so a block is a file.  With `compare`, an output that differs from the block
    after it is an AssertionError.
    """
    left: dict = {"__name__": "page"}
    parts, last = [], 0
    for k, block in enumerate(PYTHON.finditer(page)):
        code = block["shown"]
        path = folder / f"block_{k}.py"
        path.write_text(code)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(code, str(path), "exec"), left)
        if block["printed"] is not None:
            told = "\n".join(line.rstrip() for line in said.getvalue().splitlines()) + "\n"
            if compare:
                assert told == block["printed"], f"the block\n{code}prints\n{told}and the page says\n{block['printed']}"
            parts += [page[last : block.start("printed")], told]
            last = block.end("printed")
    return left, "".join(parts) + page[last:]


def commands(page: str) -> list[str]:
    """Returns the lines that call `featherlane`, without comments."""
    lines = [line.split("  #")[0] for block in SHELL.findall(page) for line in block.splitlines()]
    parts = [part.strip() for line in lines for part in line.split("&&")]
    return [part for part in parts if part.startswith("featherlane ")]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as made:
            Path(name).write_text(run(Path(name).read_text(), Path(made), compare=False)[1])
