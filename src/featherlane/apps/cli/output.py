"""Output of the commands: tables, JSON, progress."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column, Table

from featherlane.errors import ModelError

JSON_INDENT = 2
FILE_WIDTH = 120  # columns of output to a file or a pipe, if COLUMNS is not set
NARROWEST = 40  # columns; narrower output is unreadable
SUFFIXES = (".xml", ".urdf", ".mjcf")
GENERIC = ("scene", "robot", "model", "main", "world", "index", "mjcf", "urdf", "mjx")  # uninformative names


class Screen(Console):
    """A console that raises BrokenPipeError; rich's would end the process with code 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """Returns the console for results: the present stdout, as wide as the terminal or COLUMNS."""
    columns = os.environ.get("COLUMNS", "")
    known = sys.stdout.isatty() or (columns.isdigit() and int(columns) > 0)
    screen = Screen(highlight=False, width=None if known else FILE_WIDTH)
    if screen.width < NARROWEST:
        screen.width = NARROWEST
    return screen


class Bar(Progress):
    """A progress bar that prints nothing if it is disabled; rich 13 prints an empty line."""

    def stop(self) -> None:
        if not self.disable:
            super().stop()


def progress(quiet: bool) -> Progress:
    """Returns a transient progress bar on stderr; it is disabled if `quiet`, or if stderr is not a terminal."""
    screen = Console(stderr=True)
    about = Column(no_wrap=True, overflow="ellipsis", max_width=max(8, screen.width // 3))
    return Bar(
        TextColumn("{task.description}", markup=False, table_column=about),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=screen,
        transient=True,
        disable=quiet or not screen.is_terminal,
    )


def model_label(source: str) -> str:
    """Returns a model's label in tables: the name of its file, with its folder's if the file's is uninformative."""
    path = Path(source)
    if path.suffix.lower() not in SUFFIXES:
        return source
    folder = path.absolute().parent.name
    if path.stem.lower() in GENERIC:
        return folder or path.stem
    return f"{folder}/{path.stem}" if path.stem.lower().startswith("scene") else path.stem


def add_model_label(result: dict[str, Any]) -> dict[str, Any]:
    """Adds the model's label to the results of a model."""
    return {"model": result["model"], "name": model_label(result["model"]), **result}


class Fitted:
    """A table without truncation: cells wrap at spaces, and if words do not fit, each row becomes a list.

    Args:
        columns: headings; the first column is left-aligned, numbers are right-aligned.
    """

    def __init__(self, title: str, columns: list[str], rows: list[list[Any]]):
        self.title, self.columns, self.rows = title, columns, [[str(cell) for cell in row] for row in rows]

    def __rich_console__(self, screen, options) -> Iterator[Table]:
        texts = list(zip(self.columns, *self.rows, strict=True))
        least = [max(max(map(len, text.split()), default=0) for text in column) for column in texts]
        most = [max(map(len, column)) for column in texts]
        width = options.max_width - 3 * len(self.columns) - 1 - sum(least)  # borders and padding
        yield self._list() if width < 0 else self._table(_widened(least, most, width))

    def _table(self, widths: list[int]) -> Table:
        result = Table(title=escape(self.title), title_justify="left", title_style="bold", header_style="dim")
        for k, (name, width) in enumerate(zip(self.columns, widths, strict=True)):
            result.add_column(escape(name), justify="left" if k == 0 else "right", width=width, overflow="fold")
        for row in self.rows:
            result.add_row(*map(escape, row))
        return result

    def _list(self) -> Table:
        result = name_value_table(self.title, {})
        for row in self.rows:
            for name, cell in zip(self.columns, row, strict=True):
                result.add_row(escape(name), escape(cell))
            result.add_section()
        return result


def _widened(least: list[int], most: list[int], width: int) -> list[int]:
    """Computes column widths between the least and the most; narrow columns are filled first."""
    widths = list(least)
    order = sorted(range(len(least)), key=lambda k: most[k] - least[k])
    for done, k in enumerate(order):
        more = min(most[k] - least[k], width // (len(order) - done))
        widths[k] += more
        width -= more
    return widths


def table(title: str, columns: list[str], rows: list[list[Any]]) -> Fitted:
    """Returns a table with a left-aligned first column and right-aligned numbers."""
    return Fitted(title, columns, rows)


def name_value_table(title: str, rows: dict[str, str]) -> Table:
    """Returns a table of names and values."""
    result = Table(title=escape(title), title_justify="left", title_style="bold", show_header=False)
    result.add_column(style="dim", overflow="fold")
    result.add_column(overflow="fold")
    for name, value in rows.items():
        result.add_row(escape(name), escape(str(value)))
    return result


def print_json(value: Any) -> None:
    """Prints a value, which may contain arrays, as one JSON document; NaN and infinities become null."""
    plain = json.loads(json.dumps(value, default=lambda array: array.tolist()), parse_constant=lambda name: None)
    print(json.dumps(plain, indent=JSON_INDENT, allow_nan=False))


def check_target(path: Path, suffix: str) -> Path:
    """Checks the path of an output file before a long computation.

    Raises:
        ModelError: the suffix is different, or the folder does not exist or is not writable.
    """
    if path.suffix.lower() != suffix:
        raise ModelError(f"{path}: got {path.suffix or 'no suffix'}, allowed is {suffix}")
    if path.is_dir():
        raise ModelError(f"{path}: this is a folder, allowed is a file")
    if not path.parent.is_dir():
        raise ModelError(f"{path}: the folder {path.parent} does not exist")
    if not os.access(path.parent, os.W_OK):
        raise ModelError(f"{path}: the folder {path.parent} is not writable")
    return path
