"""The README's code and commands run as written; it is short, and its numbers match the benchmark tables."""

import importlib
import re
import statistics
from pathlib import Path

import pytest

from pages import links

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
EXAMPLE = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
MOST_BYTES, MOST_LINKS = 6400, 24  # links, including the image, the speed table and the pages of integrations
ROWS = 5
COMMANDS = "pip install . && featherlane simulate humanoid", "pip install '.[test]' && pytest"


@pytest.fixture
def report(monkeypatch):
    """Returns the module benchmarks/report.py."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("report")


def test_the_example_runs(capsys):
    exec(compile(EXAMPLE, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip()


def test_the_example_is_about_ten_lines():
    assert len(EXAMPLE.strip().splitlines()) <= 12


def test_it_is_short():
    assert len(README.encode()) <= MOST_BYTES
    assert len(links.links(README)) <= MOST_LINKS


def test_its_speeds_equal_those_of_the_full_table(report):
    """If it fails, run `python benchmarks/speed.py --write`."""
    speed = importlib.import_module("speed")
    full = report.section("speed")
    shown = report.section("speed-in-brief")
    assert shown == speed.brief(links.rows(full), full.splitlines()[-1])
    assert len(links.rows(shown)) == ROWS


def test_its_median_ratios_equal_those_of_the_tables(report):
    """A changed table changes the README's second paragraph."""
    speed = importlib.import_module("speed")
    rows = links.rows(report.section("speed"))
    ratios = [float(row[speed.COLUMNS.index("ratio")].split()[0]) for row in rows]
    robots = re.search(r"of the (\d+) rows: `ratio` ([\d.]+) and", report.section("robots"))
    found = re.search(
        r"batch is ([\d.]+) for the (\d+) models of .*?\s([\d.]+) for\s(\d+) published", README, re.DOTALL
    )
    assert found.groups() == (f"{statistics.median(ratios):.2f}", str(len(rows)), robots[2], robots[1])


@pytest.mark.parametrize("command", COMMANDS)
def test_it_shows_the_two_commands(command):
    assert f"```sh\n{command}\n```" in README
