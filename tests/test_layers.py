"""The floors and layers: imports go downward only and form no cycle; front ends use public names only."""

import ast
import functools
import subprocess
import sys
from collections import defaultdict, namedtuple
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

import featherlane

ROOT = Path(featherlane.__path__[0])
FLOORS = ("engine", "tools", "apps")  # folders of packages; front ends that users import stand next to them
ENGINE = "libraries lanes spatial model prelude dynamics collision constraint solver sensor simulation".split()
TOOLS = "renderer terrain policy sensitivity inverse_kinematics integration histories profile".split()
LAYERS = ["errors", *ENGINE, *TOOLS]
FRONT_ENDS = "cli viewer measure doctor distributed environments integrations".split()
EDGES = len(LAYERS)  # everything not listed: front ends, public modules, the package itself
RANK = {name: rank for rank, name in enumerate(LAYERS)} | {"tree": LAYERS.index("dynamics")}
FILES = [path.relative_to(ROOT) for path in sorted(ROOT.rglob("*.py"))]
INSIDE = [path for path in FILES if path != Path("__init__.py")]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def module(path):
    """Returns the name of the module in the file `path`."""
    parts = path.parts[:-1] if path.name == "__init__.py" else path.with_suffix("").parts
    return ".".join(["featherlane", *parts])


FILE_OF = {module(path): path for path in FILES}


def layer_of(parts):
    """Returns the first part of a path or of a module's name, after `featherlane`, that is no floor."""
    return next((part.removesuffix(".py") for part in parts if part not in FLOORS), parts[0])


def test_a_listing_shows_the_floors_and_the_public_modules():
    entries = {path.name.removesuffix(".py") for path in ROOT.iterdir()} - {"__pycache__", "py.typed"}
    assert entries <= {
        "__init__",
        "__main__",
        *FLOORS,
        *featherlane.__all__,
        "environments",
        "integrations",
        "distributed",
    }
    for floor in FLOORS:
        assert not hasattr(featherlane, floor), f"featherlane.{floor} is private"
    assert set(ENGINE) <= {path.name.removesuffix(".py") for path in (ROOT / "engine").iterdir()}
    assert set(TOOLS) <= {path.name.removesuffix(".py") for path in (ROOT / "tools").iterdir()}


@functools.cache
def imports(path):
    """Returns (node, whether it is inside a function, modules) of every import in the file `path`.

    `from a import b` imports the module a.b if it exists, else a.
    """
    tree = ast.parse((ROOT / path).read_text())
    late = {id(node) for f in ast.walk(tree) if isinstance(f, FUNCTIONS) for node in ast.walk(f)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.append((node, id(node) in late, [alias.name for alias in node.names]))
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            ours = str(node.module).split(".")[0] == "featherlane"
            found.append((node, id(node) in late, [n if n in FILE_OF or not ours else node.module for n in names]))
    return found


def room(path):
    """Returns the folder of a file; the file itself if the folder has packages next to it."""
    folder = ROOT / path.parent
    return path if any(list(inner.glob("*.py")) for inner in folder.iterdir() if inner.is_dir()) else path.parent


def test_imports_are_absolute(subtests):
    for path in FILES:
        with subtests.test(path=str(path)):
            relative = [node.lineno for node, _, _ in imports(path) if isinstance(node, ast.ImportFrom) and node.level]
            assert not relative, f"{path}: allowed is from featherlane.x.y import z, lines {relative}"


def test_imports_run_downward_only(subtests):
    for path in INSIDE:
        with subtests.test(path=str(path)):
            layer = layer_of(path.parts)
            rank = RANK.get(layer, EDGES)
            if rank == EDGES:
                continue  # front ends may import everything, including each other
            found = [(node.lineno, name.split(".")) for node, _, names in imports(path) for name in names]
            ours = [
                (line, layer_of([*parts[1:], "the package itself"]))
                for line, parts in found
                if parts[0] == "featherlane" and parts[1:] not in ([floor] for floor in FLOORS)
            ]
            upward = [(line, name) for line, name in ours if name != layer and RANK.get(name, EDGES) >= rank]
            assert not upward, f"{path} ({layer}) imports from its own layer or above: {upward}"


def test_packages_have_no_import_cycle():
    arrows, files = defaultdict(set), {}
    for path in INSIDE:
        for _, _, names in imports(path):
            for other in {FILE_OF[name] for name in names if name in FILE_OF} - {Path("__init__.py")}:
                if room(other) != room(path):
                    arrows[room(path)].add(room(other))
                    files[room(path), room(other)] = f"{path} imports {other}"
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        circle = error.args[1][::-1]
        pytest.fail("\n".join(files[pair] for pair in pairwise(circle)))


def test_files_import_in_no_cycle():
    """Counts type-only imports (`if TYPE_CHECKING`), too, but not a package's import by its own files."""
    arrows = {module(path): {n for _, _, names in imports(path) for n in names if n in FILE_OF} for path in INSIDE}
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(error.args[1][::-1]))


def is_private(name):
    return isinstance(name, str) and name.startswith("_") and not name.endswith("__") and name != "_"


@functools.cache
def defined(path):
    """Returns the private names that a file defines: functions, classes, variables, attributes of `self` (`own`)."""
    found = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        match node:
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                found.add(name)
            case ast.Name(name, ast.Store()) | ast.Attribute(ast.Name("self" | "cls"), name, ast.Store()):
                found.add(name)
            case ast.Subscript(ast.Name("own") | ast.Attribute(ast.Name("self"), "__dict__"), ast.Constant(name)):
                found.add(name)
    return {name for name in found if is_private(name)}


def names_read(path):
    """Returns (line, private name, owner) of each read: attributes, keys of `__dict__`, `getattr`, imports."""
    found = []
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        match node:
            case ast.Attribute(owner, name) | ast.Subscript(ast.Attribute(owner, "__dict__"), ast.Constant(name)):
                found.append((node.lineno, name, ast.unparse(owner)))
            case ast.Call(ast.Name("getattr" | "setattr" | "hasattr"), [owner, ast.Constant(name), *_]):
                found.append((node.lineno, name, ast.unparse(owner)))
            case ast.ImportFrom():
                found += [(node.lineno, alias.name, str(node.module)) for alias in node.names]
    return [read for read in found if is_private(read[1])]


def test_front_ends_read_no_private_name_of_others(subtests):
    """A file must not read a private name that it does not define and that the engine or another package defines."""
    of_tuples = set(dir(namedtuple("Empty", ())))  # `_replace`, `_fields`, ... of named tuples are public
    names = {
        part: set().union(*(defined(p) for p in INSIDE if layer_of(p.parts) == part)) for part in {*LAYERS, *FRONT_ENDS}
    }
    engine = set().union(*(names[part] for part in LAYERS))
    for path in INSIDE:
        package = layer_of(path.parts)
        if package not in FRONT_ENDS:
            continue
        others = set().union(*(names[part] for part in FRONT_ENDS if part != package)) - names[package]
        foreign = (engine - defined(path)) | others
        with subtests.test(path=str(path)):
            found = [read for read in names_read(path) if read[2] not in ("self", "cls")]
            wrong = [
                (line, f"{owner}.{name}")
                for line, name, owner in found
                if (name in foreign - of_tuples if owner not in FILE_OF else layer_of(owner.split(".")[1:]) != package)
            ]
            assert not wrong, f"{path} reads private names of others: {wrong}"


def test_functions_import_only_optional_modules():
    """Modules loaded by `import featherlane` are imported at the top; only slow or optional ones inside functions."""
    code = "import sys, featherlane; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=900)
    loaded = FILE_OF.keys() & set(done.stdout.split())
    for path in FILES:
        for node, late, names in imports(path):
            needless = loaded & set(names) if late else ()
            assert not needless, f"{path}, line {node.lineno}: {', '.join(needless)} is loaded already"
