"""Figures in the text equal those of the sections that they link, and captions of plots those of the plotted tables."""

import re
from pathlib import Path
from statistics import median

import pytest

from pages import links

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
UNITS = (1.0, 1e3, 1e-3, 1e6, 1e-6, 100.0, 0.01)  # a table in thousands, in micrometres or in per cent


def digits(figure: str) -> int:
    """Returns the significant digits of a figure; zeros at the end of an integer are none."""
    mantissa = figure.replace(",", "").partition("e")[0]
    shown = mantissa.replace(".", "").lstrip("0")
    return max(len(shown if "." in mantissa else shown.rstrip("0")), 1)


def stated(figure: str, section: str) -> bool:
    """Returns whether a section has a number that rounds to a figure, in the same or another unit."""
    n, value = digits(figure), float(figure.replace(",", ""))
    found = (float(each.replace(",", "")) * unit for each in NUMBER.findall(section) for unit in UNITS)
    return any(f"{x:.{n - 1}e}" == f"{value:.{n - 1}e}" for x in found)


def section(page: Path, anchor: str) -> str:
    """Returns the text below a heading, up to the next one of its level."""
    found: list[str] = []
    level = 0
    for line in page.read_text().splitlines():
        heading = re.match(r"(#+) ", line)
        if heading and level and len(heading[1]) <= level:
            break
        if heading and not level and anchor in links.anchors(line):
            level = len(heading[1])
        if level:
            found.append(line)
    return "\n".join(found)


def linked_figures(page: Path) -> list[tuple[str, Path, str]]:
    """Returns the links of a page whose text has a number: text, page and anchor of their target."""
    found = re.findall(r"(?<!!)\[([^]`]*\d[^]`]*)\]\(([^)#:]*)#([^)]+)\)", page.read_text())
    named = [(text, (page.parent / target).resolve() if target else page, anchor) for text, target, anchor in found]
    return [each for each in named if each[1].suffix == ".md"]


def test_figures_stand_in_the_sections_that_they_link(subtests):
    count = 0
    for page in PAGES:
        for text, target, anchor in linked_figures(page):
            with subtests.test(page=page.name, text=text):
                for figure in NUMBER.findall(text):
                    count += 1
                    assert stated(figure, section(target, anchor)), f"{figure} is not in {target.name}#{anchor}"
    assert count >= 15


def test_reasons_of_the_decision_guide_stand_in_the_sections_that_they_link(subtests):
    guide = DOCS / "decision-guide.md"
    rows = links.rows(section(guide, "settings-by-task"))
    for task, *_, reason in rows:
        linked = re.findall(r"\]\(([^)#]*)#([^)]+)\)", reason)
        found = "".join(section((DOCS / page).resolve() if page else guide, anchor) for page, anchor in linked)
        shown = re.sub(r"\]\([^)]*\)", "]", reason)
        for figure in NUMBER.findall(shown):
            with subtests.test(task=task, figure=figure):
                assert stated(figure, found)
    assert len(rows) > 15


@pytest.mark.parametrize(
    ("figure", "text", "expected"),
    [
        ("388,000", "| 388 |", True),
        ("361,000", "| 388 |", False),
        ("0.13 mm".split()[0], "0.1296", True),
        ("1660", "creep 1.66e+03 um/s", True),
        ("2.2", "2.19 (2.1 - 2.3)", True),
        ("2.2", "2.29", False),
        ("7", "6.7", True),
        ("7", "| 6.4 | 8 |", False),
    ],
)
def test_a_figure_agrees_with_a_number_that_rounds_to_it(figure, text, expected):
    assert stated(figure, text) == expected


# ---- captions of plots, and medians ----------------------------------------------------------------------------------
HELD_OUT = ("robosuite_models/", "gym_aloha/")


def column(page: str, table: str, name: str) -> dict[str, float]:
    """Returns a column of a table between its markers: first number of each cell by the row's first cells."""
    text = (DOCS / page).read_text().partition(f"<!-- {table}:begin -->")[2].partition(f"<!-- {table}:end -->")[0]
    head = next(line for line in text.splitlines() if f"| {name} |" in line)
    at = [cell.strip() for cell in head.strip("|").split("|")].index(name)
    rows = links.rows(text[text.index(head) :])
    numbers = {" ".join(row[:2]): NUMBER.search(row[at]) for row in rows}
    return {label: float(found[0].replace(",", "")) for label, found in numbers.items() if found}


def caption(page: str, pattern: str) -> list[float]:
    """Returns the numbers of a sentence or of the alternative text of a plot."""
    found = re.search(pattern, (DOCS / page).read_text())
    assert found, f"{page}: no text {pattern!r}"
    return [float(number) for number in found.groups()]


@pytest.mark.parametrize(
    ("page", "table", "name", "pattern"),
    [
        ("robots.md", "robots", "ratio", r"Bars of the speed of (\d+) robots.*?: (\S+) to (\S+) in float64"),
        ("speed.md", "speed", "ratio", r"Bars of the speed of (\d+) models.*?: (\S+) to (\S+) in float64"),
    ],
)
def test_captions_state_the_range_of_the_plotted_table(page, table, name, pattern):
    found = column(page, table, name).values()
    assert caption(page, pattern) == [len(found), float(f"{min(found):.2g}"), float(f"{max(found):.3g}")]


def test_medians_of_held_out_robots_are_those_of_the_table():
    ratio = column("robots.md", "robots", "ratio")
    held = [x for label, x in ratio.items() if label.startswith(HELD_OUT)]
    others = [x for label, x in ratio.items() if not label.startswith(HELD_OUT)]
    pattern = r"The (\d+) robots of robosuite-models and gym-aloha[^.]*\. Their\s+median ratio in this table is (\S+); "
    pattern += r"the median of the other (\d+) is (\S+)\."
    assert caption("robots.md", pattern) == [
        len(held),
        float(f"{median(held):.2g}"),
        len(others),
        float(f"{median(others):.2g}"),
    ]
