"""Tables that benchmarks print and write into the README or another page, each between its own two markers.

Whoever imports this first measures against the tests' oracle, whatever MuJoCo is installed.
"""

from __future__ import annotations

import argparse
import datetime
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from featherlane.cli.bench import machine

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import oracle

oracle.use()
README = Path(__file__).parents[1] / "README.md"


def arguments(doc: str) -> argparse.ArgumentParser:
    """The options that all benchmarks have."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the table into the README")
    return parser


def markdown(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table, the first column to the left, the others to the right."""
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def origin() -> str:
    """The command, the machine, the versions and the date."""
    where = machine()
    command = shlex.join(["python", Path(sys.argv[0]).name, *sys.argv[1:]]).replace("python ", "python benchmarks/", 1)
    kernels, today = where["kernels"].partition(" (")[0], datetime.date.today().isoformat()
    return (
        f"`{command}`: {where['processor']}, {where['cores']} cores, {where['cpu_level']}; kernels {kernels}; "
        f"MuJoCo {where['mujoco']}, NumPy {where['numpy']}, Python {where['python']}; {today}."
    )


def publish(section: str, text: str, write: bool, page: Path = README) -> None:
    """Print a section, and put it between its markers in a page, the README, where that is asked for."""
    print(text)
    if not write:
        return
    begin, end = f"<!-- {section}:begin -->", f"<!-- {section}:end -->"
    before = page.read_text()
    if begin not in before or end not in before:
        sys.exit(f"{page} has no markers {begin} and {end}")
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    page.write_text(pattern.sub(lambda _: f"{begin}\n{text}\n{end}", before))
