"""The layers: imports run downward only, inside functions too."""

import ast
from pathlib import Path

import pytest

import featherlane

ROOT = Path(featherlane.__path__[0])
LAYERS = "errors lanes spatial model dynamics collision constraint solver sensor simulation".split()
EDGES = len(LAYERS)  # whatever is not listed: the command line, environments, registration, the package itself
RANK = {name: rank for rank, name in enumerate(LAYERS)} | {"tree": LAYERS.index("dynamics")}
FILES = [path.relative_to(ROOT) for path in sorted(ROOT.rglob("*.py")) if path != ROOT / "__init__.py"]


def imported(path):
    """Yield the line and the room (first name below `featherlane`) of every import of ours in the file `path`."""
    here = ["featherlane", *path.parts[:-1]]
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            names = [".".join([*base, *filter(None, [node.module]), alias.name]) for alias in node.names]
        else:
            continue
        ours = [name.split(".") for name in names if name.split(".")[0] == "featherlane"]
        yield from ((node.lineno, (name + ["the package itself"])[1]) for name in ours)


@pytest.mark.parametrize("path", FILES, ids=str)
def test_imports_run_downward_only(path):
    room = path.parts[0].removesuffix(".py")
    rank = RANK.get(room, EDGES)
    if rank == EDGES:
        return  # the edges may use everything, each other included
    upward = [(line, name) for line, name in imported(path) if name != room and RANK.get(name, EDGES) >= rank]
    assert not upward, f"{path} ({room}) imports from its own layer or above: {upward}"
