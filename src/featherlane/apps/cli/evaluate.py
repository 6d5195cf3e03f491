"""`featherlane evaluate`: success of a policy in the tasks of a suite, as a table, JSON, CSV or Markdown."""

from __future__ import annotations

import csv
import importlib
from pathlib import Path
from typing import Any

import numpy as np

from featherlane.apps.cli.output import check_target, console, print_json, progress, table
from featherlane.apps.cli.user_file import failure, function_in, with_model_errors
from featherlane.apps.measure.success import OPEN, Evaluation, Policy, evaluate
from featherlane.errors import ModelError, near

COLUMNS = ("task", "episodes", "successes", "success", "low", "high", "actions", "instruction")
FORMATS = (".csv", ".md")


def evaluate_policy(given: Evaluation, policy: str, out: Path | None, as_json: bool) -> None:
    """Evaluates a policy, prints the table, and writes it to a file.

    Raises:
        ModelError: an unknown suite, task or policy, numbers out of range, wrong actions, another suffix of the file.
        InstallationError: Gymnasium, LIBERO or its assets are missing.
    """
    if out is not None:
        if out.suffix.lower() not in FORMATS:
            raise ModelError(f"{out}: got {out.suffix or 'no suffix'}, allowed are {' and '.join(FORMATS)}")
        check_target(out, out.suffix.lower())
    function, rows = policy_named(policy, given.seed), []
    with progress(as_json) as bar:
        rows = list(bar.track(evaluate(given, function, policy), description="tasks", total=None))
    if out is not None:
        write(out, rows)
    if as_json:
        print_json({"suite": given.suite, "policy": policy, "tasks": rows})
    else:
        title = f"{given.suite}: policy {policy}, at most {given.horizon} actions"
        console().print(table(title, ["task", "successes", "rate", "95 % interval", "actions"], list(map(cells, rows))))


def cells(row: dict[str, Any]) -> list[str]:
    """Returns the cells of a row: rates in percent."""
    interval = f"{100.0 * row['low']:.1f} - {100.0 * row['high']:.1f} %"
    actions = "" if row["actions"] is None else f"{row['actions']:.0f}"
    task = f"{row['task']} {row['instruction']}".strip()
    return [task, f"{row['successes']}/{row['episodes']}", f"{100.0 * row['success']:.1f} %", interval, actions]


def write(out: Path, rows: list[dict[str, Any]]) -> None:
    """Writes the table as CSV, with rates from 0 to 1, or as Markdown."""
    if out.suffix.lower() == ".csv":
        with open(out, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list[Any](COLUMNS))
            writer.writeheader()
            writer.writerows(rows)
        return
    lines = [["task", "successes", "rate", "95 % interval", "actions"], ["---", *["---:"] * 4], *map(cells, rows)]
    out.write_text("".join(f"| {' | '.join(line)} |\n" for line in lines), encoding="utf-8")


def policy_named(given: str, seed: int) -> Policy:
    """Returns a policy: `random`, `still`, or a function in a file or module.

    Raises:
        ModelError: an unknown word; a file or module that does not exist, fails or has no such function.
    """
    if given == "still":
        return lambda observation, instruction, started: np.tile(OPEN, (len(started), 1))
    if given == "random":
        rng = np.random.default_rng(seed)
        return lambda observation, instruction, started: rng.uniform(-1.0, 1.0, (len(started), len(OPEN)))
    place, colon, name = given.rpartition(":")
    if not colon or not place or not name:
        raise ModelError(f"policy: got {given!r}, allowed are random, still, FILE.py:FUNCTION and MODULE:FUNCTION")
    if place.endswith(".py"):
        function = function_in(Path(place).expanduser(), name, f"function {name}(observation, instruction, started)")
        return with_model_errors(function, given)
    try:
        module = importlib.import_module(place)
    except Exception as error:
        raise ModelError(f"policy: the module {place!r} cannot be imported: {failure(error)}") from error
    if not callable(getattr(module, name, None)):
        known = [each for each in vars(module) if callable(getattr(module, each))]
        raise ModelError(f"policy: the module {place!r} has no function {name!r}{near(name, known)}")
    return with_model_errors(getattr(module, name), given)
