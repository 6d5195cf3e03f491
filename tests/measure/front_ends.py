"""Prints the private names that front ends import, by front end.

    python tests/measure/front_ends.py [--names]

A private name comes from a module below `featherlane.engine` or `featherlane.tools`, or from a front end's own packages
if another front end imports it.  Imports for annotations only (`if TYPE_CHECKING`) count, too.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "featherlane"
FLOORS = ("engine", "tools")
FRONT_ENDS = ("apps/cli", "apps/doctor", "apps/measure", "apps/viewer", "distributed", "environments", "integrations")


def private_imports(path: Path) -> Iterator[str]:
    """Yields each name `module.name` that a file imports from below `featherlane.engine` and `featherlane.tools`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            parts = node.module.split(".")
            if parts[0] == "featherlane" and len(parts) > 1 and parts[1] in FLOORS:
                for alias in node.names:
                    yield f"{node.module.removeprefix('featherlane.')}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith(tuple(f"featherlane.{floor}" for floor in FLOORS)):
                    yield alias.name.removeprefix("featherlane.")


def found() -> dict[str, dict[str, list[str]]]:
    """Returns by front end: private name -> files that import it."""
    names: dict[str, dict[str, list[str]]] = {}
    for front_end in FRONT_ENDS:
        by_name = names.setdefault(front_end, defaultdict(list))
        for path in sorted((SOURCE / front_end).rglob("*.py")):
            for name in private_imports(path):
                by_name[name].append(path.relative_to(SOURCE).as_posix())
    return names


def main() -> None:
    names = found()
    for front_end, by_name in names.items():
        print(f"{front_end:20s} {len(by_name):4d} names, {sum(map(len, by_name.values())):4d} imports")
        if "--names" in sys.argv:
            for name, files in sorted(by_name.items()):
                print(f"    {name}: {', '.join(files)}")
    print(f"{'all':20s} {len(set().union(*names.values())):4d} names")


if __name__ == "__main__":
    main()
