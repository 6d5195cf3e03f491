"""The benchmark tables: the median and least row below a table, and columns by processor."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# tables with such a column that compares no engines, or that has the compared engine as a row
NO_SUMMARY = {"contact_fclib", "integrate-smooth", "integrate-euler", "scans", "lcp-step", "unisim", "terrain-robots"}
NO_SUMMARY |= {"speed-in-brief", "frozen-wasm"}  # part of another table; a lower ratio is better
ORIGIN = (
    "`python benchmarks/x.py --write` wrote this table on 2026-11-27. Machine: {}, 2 cores, x86-64-v4. MuJoCo 4.0.1."
)
AMD, INTEL = ORIGIN.format("AMD EPYC"), ORIGIN.format("Intel(R) Xeon(R) Processor")
HEAD = "| model | worlds | ratio | dofs |\n| --- | ---: | ---: | ---: |\n"
SUMMARY = "Median and least of the 3 rows: `ratio` 4.00 and 2.00 (b)"


def table(a: str, b: str, c: str, origin: str) -> str:
    """Returns a section as a benchmark makes it."""
    return f"{HEAD}| a | 1 | {a} | 7 |\n| b | 1 | {b} | 8 |\n| c | 1 | {c} | 9 |\n\nA note.\n\n{origin}"


MEASURED = table("4.0 (1 - 5)", "2.0", "1,000 (9 - 10)", AMD)
ELSEWHERE = table("3.0 (1 - 5)", "1.5", "10", INTEL)


@pytest.fixture
def benchmark(monkeypatch):
    """Returns a function that imports a module of benchmarks/; the section `numbers` has one ratio."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.setitem(importlib.import_module("columns").RATIOS, "numbers", ("ratio",))
    return importlib.import_module


def test_the_pages_have_the_median_and_the_least_row_of_their_tables(benchmark, subtests):
    """If it fails, run `python benchmarks/report.py --write`."""
    columns, report = benchmark("columns"), benchmark("report")
    for name in columns.RATIOS.keys() - {"numbers"}:
        with subtests.test(table=name):
            text = report.section(name)
            assert columns.SUMMARY.search(text) and columns.summarized(name, text) == text


def test_every_table_of_ratios_is_listed(benchmark):
    columns, plots, report = benchmark("columns"), benchmark("plots"), benchmark("report")
    heads = {name: plots.tables(report.section(name))[0][0] for name in report.PAGES}
    found = {name for name, head in heads.items() if any(re.search(r"^ratio|speed-?up| / \w", each) for each in head)}
    rows = {"pile-solvers", "learning", "stages", "viewer", "environments", "silent"}  # ` / ` in names of other columns
    assert found - columns.RATIOS.keys() - rows <= NO_SUMMARY


def test_the_summary_stands_below_the_table_once(benchmark):
    columns = benchmark("columns")
    made = columns.summarized("numbers", MEASURED)
    assert f"| 9 |\n\n{SUMMARY}.\n\nA note.\n\n" in made
    assert columns.summarized("numbers", made) == made
    assert columns.summarized("accuracy", MEASURED) == MEASURED


def test_cells_without_a_number_are_left_out(benchmark):
    columns = benchmark("columns")
    made = columns.summarized("numbers", table("", "2.0", "-", AMD))
    assert "`ratio` 2.00 and 2.00 (b)." in made
    with pytest.raises(LookupError, match="numbers: no column 'ratio'; it has model, worlds, other"):
        columns.summarized("numbers", MEASURED.replace("| ratio |", "| other |"))


def test_rows_are_named_by_the_cells_that_distinguish_them(benchmark):
    columns = benchmark("columns")
    assert columns.names([["a", "1", "x"], ["b", "1", "x"]]) == ["a", "b"]
    assert columns.names([["a", "1", "x"], ["a", "2", "x"]]) == ["a, 1", "a, 2"]
    with pytest.raises(ValueError, match="two rows of the table are equal"):
        columns.names([["a", "1"], ["a", "1"]])


def test_a_processor_has_a_short_name(benchmark):
    columns = benchmark("columns")
    assert columns.processor(AMD) == "AMD EPYC x86-64-v4" and columns.processor(INTEL) == "Intel Xeon x86-64-v4"
    assert columns.processor(AMD.replace("v4", "v3")) != columns.processor(AMD)
    assert (
        columns.processor(ORIGIN.format("AMD Ryzen 9 7950X, 16-Core Processor"))
        == "AMD Ryzen 9 7950X 16-Core x86-64-v4"
    )
    with pytest.raises(LookupError, match="no line of origin"):
        columns.processor("a table")


def test_another_processor_is_a_column_with_its_origin(benchmark):
    columns, plots = benchmark("columns"), benchmark("plots")
    page = columns.summarized("numbers", MEASURED)
    made = columns.with_column("numbers", page, ELSEWHERE)
    head, rows = plots.tables(made)[0]
    assert head == ["model", "worlds", "ratio", "dofs", "ratio, Intel Xeon x86-64-v4"]
    assert [row[-1] for row in rows] == ["3.0 (1 - 5)", "1.5", "10"]
    assert f"{SUMMARY}; `ratio, Intel Xeon x86-64-v4` 3.00 and 1.50 (b).\n\nA note.\n\n" in made
    lines = made.splitlines()
    assert lines[-3].startswith("*Intel Xeon x86-64-v4*: `python") and "wrote these columns on" in lines[-3]
    assert lines[-1] == AMD
    again = columns.with_column("numbers", made, table("5", "6", "7", INTEL))
    head, rows = plots.tables(again)[0]
    assert (
        head.count("ratio, Intel Xeon x86-64-v4") == 1
        and rows[0][-1] == "5"
        and again.count("*Intel Xeon x86-64-v4*") == 1
    )


def test_a_new_measurement_keeps_the_columns_of_other_processors(benchmark):
    columns, plots = benchmark("columns"), benchmark("plots")
    page = columns.with_column("numbers", MEASURED, ELSEWHERE)
    made = columns.replaced("numbers", page, table("8", "9", "10", AMD))
    head, rows = plots.tables(made)[0]
    assert head[-1] == "ratio, Intel Xeon x86-64-v4" and rows[0] == ["a", "1", "8", "7", "3.0 (1 - 5)"]
    assert made.count("*Intel Xeon x86-64-v4*") == 1 and made.splitlines()[-1] == AMD
    with pytest.raises(LookupError, match="rows without a measurement on Intel Xeon x86-64-v4: d"):
        columns.replaced("numbers", page, table("8", "9", "10", AMD).replace("| c |", "| d |"))


def test_processors_are_not_mixed(benchmark):
    columns = benchmark("columns")
    with pytest.raises(columns.MixedProcessors, match=r"of AMD EPYC x86-64-v4, .* Intel Xeon x86-64-v4; --write-"):
        columns.replaced("numbers", MEASURED, ELSEWHERE)
    assert columns.replaced("numbers", MEASURED, ELSEWHERE, whole=True) == columns.summarized("numbers", ELSEWHERE)
    with pytest.raises(columns.MixedProcessors, match="--write measures it again"):
        columns.with_column("numbers", MEASURED, MEASURED)
    with pytest.raises(LookupError, match="rows without a measurement on Intel Xeon x86-64-v4: c"):
        columns.with_column("numbers", MEASURED, re.sub(r"\| c .*\n", "", ELSEWHERE))
    with pytest.raises(LookupError, match="accuracy: the table has no ratios"):
        columns.with_column("accuracy", MEASURED, ELSEWHERE)


def test_options_write_a_table_or_a_column(benchmark, monkeypatch, tmp_path):
    columns, report = benchmark("columns"), benchmark("report")
    parser = report.arguments("A benchmark.")
    written = [parser.parse_args(given).write for given in ([], ["--write"], ["--write-column"], ["--write-replace"])]
    assert written == [False, True, "column", "replace"]
    page = tmp_path / "page.md"
    monkeypatch.setitem(report.PAGES, "numbers", page)
    page.write_text(f"<!-- numbers:begin -->\n{MEASURED}\n<!-- numbers:end -->\n")
    with pytest.raises(columns.MixedProcessors):
        report.publish("numbers", ELSEWHERE, True)
    assert report.section("numbers") == MEASURED
    report.publish("numbers", ELSEWHERE, "column")
    assert report.section("numbers") == columns.with_column("numbers", MEASURED, ELSEWHERE)
    report.publish("numbers", ELSEWHERE, "replace")
    assert report.section("numbers") == columns.summarized("numbers", ELSEWHERE)


def test_the_origin_has_the_load_before_the_measurement(benchmark, monkeypatch):
    report = benchmark("report")
    monkeypatch.setattr(report, "LOAD", 0.25)
    monkeypatch.setattr(report.sys, "argv", ["speed.py", "--rounds", "3", "--write-replace"])
    line = report.origin()
    assert line.startswith("`python benchmarks/speed.py --rounds 3 --write` wrote this table on ")
    assert re.search(r" cores, [\w-]+, load 0\.2 before\. Kernels: ", line)
    assert benchmark("columns").processor(line)
    monkeypatch.setattr(report, "LOAD", None)  # on systems without a load average
    assert "load" not in report.origin()
