"""Every tutorial runs as a script, prints output, asserts its claims, and consists of text and code cells."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pages import links
from sampling import every

TUTORIALS = Path(__file__).parents[1] / "docs" / "tutorials"
SCRIPTS = sorted(TUTORIALS.glob("*.py"))
CELL = re.compile(r"^# %%( \[markdown\])?\n", re.MULTILINE)
scripts = pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)


def cells(text: str) -> list[tuple[bool, str]]:
    """Returns, for each cell, whether it is text, and its content."""
    before, *parts = CELL.split(text)
    assert not before, "a tutorial begins with a cell"
    return [(bool(mark), body) for mark, body in zip(parts[::2], parts[1::2], strict=True)]


def prose(text: str) -> str:
    """Returns the text cells as Markdown."""
    return "\n".join(re.sub(r"^# ?", "", body, flags=re.MULTILINE) for is_text, body in cells(text) if is_text)


@pytest.mark.parametrize("path", every(7, SCRIPTS), ids=lambda path: path.stem)
def test_it_runs(path, tmp_path):
    command = [sys.executable, "-W", "error::DeprecationWarning:__main__", str(path)]
    quiet = {**os.environ, "MPLBACKEND": "agg", "MPLCONFIGDIR": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=quiet, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() and not re.search(r"\bnan\b", done.stdout)


@scripts
def test_it_is_cells_of_text_and_code(path):
    found = cells(path.read_text())
    is_text, first = found[0]
    assert is_text and first.startswith("# # "), "the first cell is a title"
    for is_text, body in found:
        lines = body.strip().splitlines()
        assert lines, "a cell is empty"
        assert all(line.startswith("#") for line in lines) == is_text, f"text and code in one cell: {lines[0]}"
    code = ast.parse(path.read_text())
    assert any(isinstance(node, ast.Assert) for node in ast.walk(code)), "it asserts nothing"


@scripts
def test_links_and_equations_are_valid(path):
    text = prose(path.read_text())
    for target in links.links(text):
        place, _, anchor = target.partition("#")
        assert (path.parent / place).exists(), f"{place} is not there"
        assert not anchor or anchor in links.anchors((path.parent / place).read_text()), f"no heading #{anchor}"
    assert re.sub(r"`[^`]*`", "", text).count("$") % 2 == 0


def test_the_quick_start_lists_every_tutorial():
    page = (TUTORIALS.parent / "start" / "index.md").read_text()
    assert {f"../tutorials/{path.name}" for path in SCRIPTS} <= set(links.links(page))
