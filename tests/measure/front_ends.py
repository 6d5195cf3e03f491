"""Prints the names that front ends import and that are not public, by front end.

    python tests/measure/front_ends.py [--names | --write]

A name is public if it is in `__all__` of `featherlane` or of one of its public modules.  Names from below
`featherlane.engine` or `featherlane.tools` are private.  Imports for annotations only (`if TYPE_CHECKING`) count, too.
`--names` also prints the names and the files that import them.  `--write` writes the names to the list of exceptions,
tests/data/front_ends.txt.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "featherlane"
EXCEPTIONS = Path(__file__).parents[1] / "data" / "front_ends.txt"
PRIVATE = ("engine", "tools")
FRONT_ENDS = ("apps", "distributed", "environments", "integrations")
# packages that front ends import from each other; their own tests check what they export
THEIRS = ("apps", "distributed", "environments", "integrations")


def unlisted_imports(path: Path) -> Iterator[str]:
    """Yields each name `module.name` that a file imports from the package and that no public module lists."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name.rpartition(".")[::2] for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [(str(node.module), alias.name) for alias in node.names]
        else:
            continue
        for module, name in names:
            package, _, inner = module.partition(".")
            first = inner.partition(".")[0] or name
            if package == "featherlane" and first not in THEIRS and (first in PRIVATE or not is_listed(module, name)):
                yield f"{inner}.{name}".removeprefix(".")


def is_listed(module: str, name: str) -> bool:
    """Returns whether a public module lists the name."""
    return name in importlib.import_module(module).__all__


def used_of_extension() -> set[str]:
    """Returns the names of `featherlane.extension` that front ends import, or read as its attributes."""
    used = set()
    for front_end in FRONT_ENDS:
        for path in sorted((SOURCE / front_end).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and node.module == "featherlane.extension":
                    used |= {alias.name for alias in node.names}
                elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    used |= {node.attr} if node.value.id == "extension" else set()
    return used


def found() -> dict[str, dict[str, list[str]]]:
    """Returns by front end: name that is not public -> files that import it."""
    names: dict[str, dict[str, list[str]]] = {}
    for front_end in FRONT_ENDS:
        by_name = names.setdefault(front_end, defaultdict(list))
        for path in sorted((SOURCE / front_end).rglob("*.py")):
            for name in unlisted_imports(path):
                by_name[name].append(path.relative_to(SOURCE).as_posix())
    return names


def lines() -> list[str]:
    """Returns a line `front end: name` for each name that is not public."""
    return [f"{front_end}: {name}" for front_end, by_name in found().items() for name in sorted(by_name)]


def main() -> None:
    if "--write" in sys.argv:
        EXCEPTIONS.write_text("".join(f"{line}\n" for line in lines()))
        return
    names = found()
    for front_end, by_name in names.items():
        print(f"{front_end:20s} {len(by_name):4d} names, {sum(map(len, by_name.values())):4d} imports")
        if "--names" in sys.argv:
            for name, files in sorted(by_name.items()):
                print(f"    {name}: {', '.join(files)}")
    print(f"{'all':20s} {len(set().union(*names.values())):4d} names")


if __name__ == "__main__":
    main()
