"""The guides "A sensor" and "A contact solver" of docs/extending.md, followed in a copy of the source, uncompiled."""

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import oracle

ROOT = Path(__file__).parents[2]
COPIED = ("src", "tests", "docs", "pyproject.toml", "mkdocs.yml")
UNREAD = shutil.ignore_patterns("__pycache__", "images", "prebuilt", ".hypothesis")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

pytestmark = pytest.mark.ci


def guide(title: str) -> str:
    """Returns a section of the page."""
    page = (ROOT / "docs" / "extending.md").read_text()
    return page.split(f"\n## {title}\n")[1].split("\n## ")[0]


def blocks(title: str, language: str) -> list[str]:
    """Returns the code blocks of a section in a language."""
    return [text for name, text in BLOCK.findall(guide(title)) if name == language]


def changes(title: str) -> list[tuple[str, str, str]]:
    """Returns (file, lines before, lines after) of each change in a section's diff."""
    (diff,), found = blocks(title, "diff"), []
    for part in diff.split("+++ ")[1:]:
        file, *lines = part.splitlines(keepends=True)
        sides = ["".join(line[1:] or "\n" for line in lines if line[:1] in kept) for kept in (" -\n", " +\n")]
        found.append((file.strip(), *sides))
    return found


def replace(home: Path, file: str, old: str, new: str) -> None:
    """Replaces lines that occur once in a file."""
    text = (home / file).read_text()
    assert text.count(old) == 1, f"{file} has these lines {text.count(old)} times:\n{old}"
    (home / file).write_text(text.replace(old, new))


def copied(folder: Path) -> Path:
    """Returns a copy of the source tree without pictures."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=UNREAD)
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


def run(home: Path, command: str) -> subprocess.CompletedProcess:
    """Runs a command of a guide in the copy, with uncompiled kernels."""
    program, *arguments = shlex.split(command)
    if arguments[:2] == ["tests/bits", "record"]:  # uncompiled it takes minutes: checks the names of scenes
        arguments = ["-c", f"from bits.scenes import SCENES; assert SCENES.keys() >= {{*{arguments[2:]}}}"]
    if program == "pytest":
        arguments = ["-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *arguments]
    path = os.pathsep.join([str(oracle.folder()), str(home / "src"), str(home / "tests"), *filter(None, sys.path)])
    environment = {name: value for name, value in os.environ.items() if name != "FEATHERLANE_CI"}
    environment |= {"PYTHONPATH": path, "FEATHERLANE_MODE": "python", "PYTHONWARNINGS": "ignore"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=home, env=environment, capture_output=True, text=True, timeout=600
    )


def succeeds(home: Path, command: str) -> None:
    done = run(home, command)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


def test_each_part_of_a_sensor_is_needed_and_all_together_suffice(tmp_path):
    home = copied(tmp_path)
    parity, units, features, bits = blocks("A sensor", "sh")[0].splitlines()
    kernel, entry, unit, scene = changes("A sensor")
    before = {file: (home / file).read_text() for file, *_ in (kernel, entry, unit, scene)}
    for part, check in ((entry, parity), (unit, units), (scene, features)):
        file, old, new = part
        replace(home, file, new, old)
        assert run(home, check).returncode, f"without its part of {file} succeeds {check}"
        replace(home, file, old, new)
    for file, old, new in (kernel, entry, unit, scene):  # removed from the tree, then added as the guide describes
        replace(home, file, new, old)
    for file, old, new in (kernel, entry, unit, scene):
        replace(home, file, old, new)
    assert before == {file: (home / file).read_text() for file in before}
    for check in (parity, units, features, bits):
        succeeds(home, check)
    assert (home / "docs/features.md").read_text() == (ROOT / "docs/features.md").read_text()


def kernels_of_the_example() -> str:
    """Returns a file of the package with the imports and kernels of tests/howto/new_solver.py."""
    source = (ROOT / "tests/howto/new_solver.py").read_text()
    parts = ['"""Steepest descent."""', "from featherlane.engine.prelude import *"]
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("featherlane."):
            if node.module not in ("featherlane.engine.lanes", "featherlane.engine.model.solver"):
                parts.append(ast.get_source_segment(source, node))
        elif isinstance(node, ast.FunctionDef) and node.decorator_list:
            (mark,) = node.decorator_list
            parts.append(f"\n\n@{mark.id}\n{ast.get_source_segment(source, node)}")
    return "\n".join(parts) + "\n"


def test_a_contact_solver_is_added_and_passes_its_checks(tmp_path):
    home = copied(tmp_path)
    (home / "src/featherlane/engine/solver/primal/steepest.py").write_text(kernels_of_the_example())
    for file, old, new in changes("A contact solver"):
        replace(home, file, old, new)
    (test,) = blocks("A contact solver", "python")
    (home / "tests/solver/primal/test_steepest.py").write_text(test)
    for check in blocks("A contact solver", "sh")[0].splitlines():
        succeeds(home, check)
    assert "3 steepest" in (home / "docs/fields.md").read_text()
