"""What the README shows runs as written, and it stays short."""

import importlib
import re
from pathlib import Path

import pytest

from pages import links

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
EXAMPLE = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
MOST_BYTES, MOST_WORDS = 9000, 500  # what can be read aloud in three minutes, beside its tables
ROWS = 5
COMMANDS = "pip install . && featherlane simulate humanoid", "pip install '.[test]' && pytest"


def test_the_example_runs(capsys):
    exec(compile(EXAMPLE, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip()


def test_the_example_is_about_ten_lines():
    assert len(EXAMPLE.strip().splitlines()) <= 12


def test_it_is_short():
    assert len(README.encode()) <= MOST_BYTES
    prose = [line for line in links.text(README).splitlines() if not line.startswith(("|", "<!--"))]
    assert len(re.sub(r"\]\([^)]*\)", "", "\n".join(prose)).split()) <= MOST_WORDS


def test_its_speeds_are_those_of_the_full_table(monkeypatch):
    """Else `python benchmarks/speed.py --write` writes both."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    speed, report = map(importlib.import_module, ("speed", "report"))
    full = report.section("speed")
    shown = report.section("speed-in-brief")
    assert shown == speed.brief(links.rows(full), full.splitlines()[-1])
    assert len(links.rows(shown)) == ROWS


@pytest.mark.parametrize("command", COMMANDS)
def test_it_shows_the_two_commands(command):
    assert f"```sh\n{command}\n```" in README
