"""Each file of the solver has a test of its name that imports it, so that a failure points at the file."""

import ast
from pathlib import Path

from featherlane.engine import solver

HERE, ROOM = Path(__file__).parent, Path(solver.__file__).parent
FILES = [path.relative_to(ROOM) for path in sorted(ROOM.rglob("*.py")) if path.stem not in ("__init__", "fields")]


def imported(path: Path) -> set[str]:
    """Returns names of modules, and of imports from them."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return found


def test_it_has_a_test_that_imports_it(subtests):
    for file in FILES:
        with subtests.test(file=str(file)):
            test = HERE / file.with_name(f"test_{file.name}")
            module = ".".join((solver.__name__, *file.with_suffix("").parts))
            assert test.exists(), f"{file} has no {test.relative_to(HERE)}"
            assert module in imported(test), f"{test.relative_to(HERE)} does not import {module}"
