"""Checks pages generated from the code, the places of generated tables, and links."""

import ast
import importlib
import importlib.util
import re
from pathlib import Path

import pytest

from featherlane.engine.model.features import refused_kinds
from pages import features, links

ROOT = Path(__file__).parents[1]
DOCS, BENCHMARKS = ROOT / "docs", ROOT / "benchmarks"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
SECTION = re.compile(r"<!-- ([\w-]+):begin -->\n(.*?)\n<!-- \1:end -->", re.DOTALL)
ORIGIN = re.compile(r"`python benchmarks/(\w+)\.py\b.* --write` wrote this table on \d{4}-\d\d-\d\d\. .* MuJoCo .*\.")
FLOORS = ("engine/", "tools/", "apps/")
SOURCES = (
    "",
    "src/featherlane/",
    *(f"src/featherlane/{floor}" for floor in FLOORS),
    "tests/",
)  # folders of the files that guides for contributors name
GUIDES = (ROOT / "CONTRIBUTING.md", DOCS / "extending.md", DOCS / "building.md")
NAMED = sorted({name for page in GUIDES for name in re.findall(r"`([\w/]+\.py)\b", page.read_text())})
MOST_WORDS = 2000  # of CONTRIBUTING.md
LINKS = [(page, target) for page in PAGES for target in dict.fromkeys(links.links(page.read_text()))]


@pytest.fixture
def report(monkeypatch):
    """Returns the module benchmarks/report.py."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("report")


def published(path: Path) -> set[str]:
    """Returns the sections that a benchmark writes."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return {node.args[0].value for node in calls if isinstance(node.func, ast.Name) and node.func.id == "publish"}


def test_the_guide_for_contributors_is_short():
    assert len((ROOT / "CONTRIBUTING.md").read_text().split()) <= MOST_WORDS


@pytest.mark.parametrize("name", ["fields", "stages", "doctor"])
def test_generated_pages_match_their_declarations(name):
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text() == module.page(), f"run: python docs/{name}.py"


def test_every_kind_has_a_test_or_a_refusal():
    """If it fails, `python docs/features.py` rewrites the table."""
    page = (DOCS / "features.md").read_text()
    assert features.section(page) == features.table(features.marks(), refused_kinds())


def test_every_table_is_in_the_page_of_its_benchmark(report):
    written = {name for path in BENCHMARKS.glob("*.py") for name in published(path)}
    found = [(name, page) for page in PAGES for name, _ in SECTION.findall(page.read_text())]
    assert written == set(report.PAGES)
    assert sorted(found) == sorted(
        [
            *report.PAGES.items(),
            ("features", DOCS / "features.md"),
            ("tasks", DOCS / "tasks.md"),
            ("doctor", DOCS / "diagnostics.md"),
        ]
    )


def test_a_table_names_its_benchmark_machine_and_date(subtests, report):
    for path in sorted(BENCHMARKS.glob("*.py")):
        with subtests.test(path=str(path)):
            for name in published(path):
                origin = ORIGIN.fullmatch(report.section(name).splitlines()[-1])
                assert origin and origin[1] == path.stem


def test_a_plot_shows_the_numbers_of_its_table(subtests, report):
    """If it fails, run `python benchmarks/plots.py NAME`."""
    plots = importlib.import_module("plots")
    for name in plots.PLOTS:
        with subtests.test(name=name):
            assert f"numbers {plots.digest(report.section(name))}" in plots.path(name).read_text()
            assert re.search(
                rf"!\[[^]]{{40,}}\]\([./]*images/{plots.path(name).name}\)", report.PAGES[name].read_text()
            )


def test_a_plot_reads_values_and_ranges(report):
    plots = importlib.import_module("plots")
    assert plots.number("6.04 (5.27 - 6.37)") == (6.04, 5.27, 6.37)
    assert plots.number("1.5 ± 0.5") == (1.5, 1.0, 2.0)
    assert plots.number("1,000") == (1000.0, 1000.0, 1000.0)
    assert plots.number("7e-12<br>ur5e/robot2") == (7e-12, 7e-12, 7e-12)


def test_goals_are_compared_with_the_present_tables(report, monkeypatch):
    """If it fails, run `python benchmarks/targets.py --write`."""
    targets = importlib.import_module("targets")
    assert targets.rows() == links.rows(report.section("targets"))
    table = "| model | part | ratio |\n| --- | --- | --- |\n| a | x | 3.0 (1 - 4) |\n| b | x | 2.0 |\n| c | y | 1.0 |\n"
    origin = "`python x.py` wrote {} on {}. Machine: {}, 1 cores, x86-64-v4. Kernels."
    text = f"{table}\n{origin.format('this table', '2026-11-26', 'AMD')}"
    monkeypatch.setattr(targets, "section", lambda name: text)
    goal = targets.Goal("q", "robots", "ratio", 2.0, rows=". x")
    assert goal.row()[5:] == ["2026-11-26", "AMD x86-64-v4"]
    assert goal.row()[1:4] == ["at least 2", "2 (b)", "yes"]
    assert goal._replace(of=max, most=True).row()[1:4] == ["at most 2", "3 (a)", "no"]
    assert goal._replace(of=targets.MEDIAN, rows="", bound=None).row()[1:4] == ["", "2", ""]
    with pytest.raises(LookupError, match="no row of robots matches 'd'"):
        goal._replace(rows="d").row()
    # columns of another processor, measured later; a quotient; a table that is not measured yet
    table = table.replace(" |\n", " | 5.0 |\n").replace("ratio | 5.0", "ratio | ratio, B x86-64-v4")
    text = f"{table}\n*B x86-64-v4*: {origin.format('these columns', '2026-12-01', 'B')}\n\n{text.splitlines()[-1]}"
    assert goal.row()[1:4] + goal.row()[5:] == ["at least 2", "5 (a)", "yes", "2026-12-01", "B x86-64-v4"]
    assert goal._replace(over="ratio").row()[2] == "1.6667 (a)"
    text = ""
    assert goal.row()[1:4] == ["at least 2", "", "no"]


def test_a_section_is_replaced_and_nothing_else(report, monkeypatch, tmp_path):
    page = tmp_path / "page.md"
    monkeypatch.setitem(report.PAGES, "numbers", page)
    page.write_text("before\n<!-- numbers:begin -->\n<!-- numbers:end -->\nafter\n")
    for text in (r"| 1 \1 |", "| 2 |"):
        report.publish("numbers", text, True)
        assert page.read_text() == f"before\n<!-- numbers:begin -->\n{text}\n<!-- numbers:end -->\nafter\n"
    report.publish("numbers", "| 3 |", False)
    assert report.section("numbers") == "| 2 |"


def test_a_page_without_the_markers_is_an_error(report, monkeypatch, tmp_path):
    monkeypatch.setitem(report.PAGES, "numbers", tmp_path / "page.md")
    report.PAGES["numbers"].write_text("a page\n")
    with pytest.raises(LookupError, match="numbers:begin"):
        report.publish("numbers", "| 1 |", True)
    assert report.PAGES["numbers"].read_text() == "a page\n"


def test_links_lead_to_files_and_headings(subtests):
    for page, target in LINKS:
        with subtests.test(page=str(page), target=target):
            path, _, anchor = target.partition("#")
            place = page.parent / path if path else page
            assert place.exists(), f"{page.name} links to {path}, which is not there"
            if anchor:
                assert anchor in links.anchors(place.read_text()), f"{place.name} has no heading #{anchor}"


def test_the_readme_links_pages_of_integrations():
    """A library of the table has a link to its page."""
    table = (ROOT / "README.md").read_text().partition("\n## Integrations\n")[2].partition("\n## ")[0]
    rows = links.rows(table)
    assert len(rows) > 5 and all("](docs/integrations/" in row[0] for row in rows)


def test_contributing_names_existing_files(subtests):
    """Checks paths of files; a bare name is looked up in the folders named before it."""
    for name in NAMED:
        with subtests.test(name=name):
            paths = [ROOT / source / name for source in SOURCES]
            alone = "/" not in name and [path for folder in ("src", "tests") for path in (ROOT / folder).rglob(name)]
            assert alone or any(path.exists() for path in paths)


def test_anchors_equal_github():
    page = "# From `mujoco.batch.Batch`\n\n```sh\n# no heading\n```\n## A, b & c-d\n## A, b & c-d\n## [x](y.md) z\n"
    assert links.anchors(page) == {"from-mujocobatchbatch", "a-b--c-d", "a-b--c-d-1", "x-z"}
