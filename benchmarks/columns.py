"""Ratio columns of the benchmark tables: their median and least row, and columns for further processors.

A table is measured on one processor, which the last line of its section names.  `--write-column` adds the ratios of
another processor as separate columns, named after it (`ratio, Intel Xeon x86-64-v4`), with a line of origin.  The level
of the instruction set belongs to the name: virtual machines call different processors `AMD EPYC`.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence

import plots

# columns of the first table of a section that compare speeds; a higher number is better
RATIOS = {
    "speed": ("ratio", "float32", "2 threads / 1", "one world", "smooth only"),
    "robots": ("ratio", "float32", "float32 / float64", "one world"),
    "held-out-robots": ("ratio", "float32", "float32 / float64", "one world"),
    "second-held-out-robots": ("ratio", "float32", "float32 / float64", "one world"),
    "muscle-robots": ("ratio", "float32", "float32 / float64", "one world"),
    "threads": ("2 threads / 1", "2 cores / 1"),
    "latency": ("ratio p50", "ratio p99"),
    "accessors": ("ratio",),
    "derivatives": ("ratio, least - most",),
    "exact_derivatives": ("speed-up, min - max", "speed-up, batch"),
    "dm_control_derivatives": ("speed-up, batch",),
    "smooth_derivatives": ("RNEA: speed-up", "ABA: speed-up"),
    "collision": ("ratio, one world", "ratio, batch"),
    "sdf": ("ratio, one world", "ratio, batch"),
    "cameras": ("ratio float64", "ratio float32"),
    "lcp": ("speed-up",),
    "lcp-batch": ("speed-up", "speed-up, whole call"),
    "ik": ("speed-up over the loop",),
    "environments": ("ratio (min - max)",),
    "single-environments": ("ratio (min - max)",),
    "rollouts": ("ratio (min - max)",),
    "integrations-mujoco-rollout": ("ratio (min - max)",),
    "integrations-mujoco-batch": ("ratio", "native ratio"),
    "integrations-gymnasium": ("ratio (min - max)",),
    "integrations-dm-control": ("ratio (min - max)",),
    "integrations-mjbatch": ("ratio",),
    "integrations-mjlab": ("float64 / mjbatch", "float32 / mjbatch"),
    "integrations-robosuite": ("ratio, float64 (min - max)", "ratio, float32"),
    "integrations-libero": ("ratio, float64", "ratio, float32"),
    "distributed": ("workers / local",),
    "mixed": ("time, separate / mixed",),
    "hessian": ("alternative / method",),
    "sweep": ("CPU time, plain batches / sweep",),
    "published": ("ratio",),
}
TABLE = re.compile(r"(?:^\|.*(?:\n|\Z))+", re.MULTILINE)
SUMMARY = re.compile(r"\n\nMedian and least of the \d+ rows: .*")
RANGE = re.compile(r" \(min - max\)|, (?:least - most|min - max)$")
MACHINE = re.compile(r"Machine: (.*?), \d+ cores, ([\w-]+)")


class MixedProcessors(ValueError):
    """Reports that measurements of two processors would stand in one column."""


def markdown(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table, the first column to the left, the others to the right."""
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def processor(text: str) -> str:
    """Returns the processor of a table, or of a line of origin, and its level, without marks and `Processor`.

    Raises:
        LookupError: the text names no machine.
    """
    found = MACHINE.findall(text)
    if not found:
        raise LookupError("no line of origin with `Machine: ..., N cores, LEVEL`")
    return " ".join(re.sub(r"\((?:R|TM|tm)\)|,|\b(?:Processor|CPU)\b", "", " ".join(found[-1])).split())


def names(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns a name of each row: as many of its first cells as distinguish it from the others."""
    for count in range(1, max(map(len, rows), default=1) + 1):
        found = [", ".join(row[:count]) for row in rows]
        if len(set(found)) == len(rows):
            return found
    raise ValueError("two rows of the table are equal")


def added(section: str, columns: Sequence[str]) -> list[str]:
    """Returns the columns of further processors."""
    own = RATIOS[section]
    return [name for name in columns if name not in own and any(name.startswith(f"{ratio}, ") for ratio in own)]


def summary(section: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns the median and the least row of each ratio, the columns of further processors included.

    Raises:
        LookupError: the table has no such column.
    """
    parts = []
    for name in (*RATIOS[section], *added(section, columns)):
        if name not in columns:
            raise LookupError(f"{section}: no column {name!r}; it has {', '.join(columns)}")
        at, labels = columns.index(name), names(rows)
        found = {k: plots.number(row[at])[0] for k, row in zip(labels, rows, strict=True) if re.match(r"\d", row[at])}
        if found:
            least = min(found, key=found.__getitem__)
            middle = statistics.median(found.values())
            parts.append(f"`{RANGE.sub('', name)}` {middle:.2f} and {found[least]:.2f} ({least})")
    return f"Median and least of the {len(rows)} rows: {'; '.join(parts)}."


def summarized(section: str, text: str) -> str:
    """Returns a section with the summary of its first table below it; other sections as they are."""
    if section not in RATIOS:
        return text
    text = SUMMARY.sub("", text, count=1)
    columns, rows = plots.tables(text)[0]
    end = TABLE.search(text).end()  # pyright: ignore[reportOptionalMemberAccess]
    return f"{text[:end].rstrip()}\n\n{summary(section, columns, rows)}\n{text[end:]}"


def replaced(section: str, old: str, new: str, whole: bool = False) -> str:
    """Returns the text of a newly measured section; it keeps the columns of further processors.

    Args:
        old: what stands in the page.
        new: the section as measured.
        whole: whether a table of another processor is replaced, with its columns of further processors.

    Raises:
        MixedProcessors: the table of the page is of another processor.
    """
    if section not in RATIOS or whole or not plots.tables(old):
        return summarized(section, new)
    if processor(old) != processor(new):
        raise MixedProcessors(
            f"{section}: the table is of {processor(old)}, and this machine is {processor(new)}; --write-column adds "
            f"its ratios as columns, --write-replace replaces the whole table"
        )
    columns, rows = plots.tables(old)[0]
    for label in dict.fromkeys(name.rpartition(", ")[2] for name in added(section, columns)):
        cells = {name: [row[columns.index(f"{name}, {label}")] for row in rows] for name in RATIOS[section]}
        (line,) = [line for line in old.splitlines() if line.startswith(f"*{label}*: ")]
        new = _with_cells(
            section, new, label, dict(zip(names(rows), zip(*cells.values(), strict=True), strict=True)), line
        )
    return summarized(section, new)


def with_column(section: str, old: str, new: str) -> str:
    """Returns the section of the page with the ratios of another processor as columns.

    Raises:
        LookupError: the section has no ratios, or a row of the page was not measured.
        MixedProcessors: the table of the page is of the same processor.
    """
    if section not in RATIOS:
        raise LookupError(f"{section}: the table has no ratios; only tables with ratios have columns by processor")
    label = processor(new)
    if processor(old) == label:
        raise MixedProcessors(f"{section}: the table is of {label}, as this machine; --write measures it again")
    columns, rows = plots.tables(new)[0]
    cells = {
        name: tuple(row[columns.index(ratio)] for ratio in RATIOS[section])
        for name, row in zip(names(rows), rows, strict=True)
    }
    line = f"*{label}*: {new.rstrip().splitlines()[-1].replace('this table', 'these columns', 1)}"
    return summarized(section, _with_cells(section, old, label, cells, line))


def _with_cells(section: str, text: str, label: str, cells: dict[str, tuple[str, ...]], line: str) -> str:
    """Adds columns of a processor to a section, or replaces them.

    Args:
        cells: of the ratios in their order, by the name of a row.
        line: origin of the columns, which stands above that of the table.
    """
    columns, rows = plots.tables(text)[0]
    missing = [name for name in names(rows) if name not in cells]
    if missing:
        raise LookupError(f"{section}: rows without a measurement on {label}: {', '.join(missing)}")
    own = [f"{name}, {label}" for name in RATIOS[section]]
    kept = [k for k, name in enumerate(columns) if name not in own]
    lines = [[*(row[k] for k in kept), *cells[name]] for name, row in zip(names(rows), rows, strict=True)]
    table = markdown([*(columns[k] for k in kept), *own], lines)
    text = TABLE.sub(lambda _: f"{table}\n", text, count=1).rstrip()
    above, last = text.rsplit("\n", 1)
    above = re.sub(rf"^\*{re.escape(label)}\*: .*\n\n?", "", f"{above}\n", flags=re.MULTILINE)
    return f"{above}{line}\n\n{last}"
