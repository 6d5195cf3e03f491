"""`featherlane sweep`: runs a parameter sweep from a TOML file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from featherlane.apps.cli.exit import BAD_WORLDS, INTERRUPTED, complain
from featherlane.apps.cli.nodes import parse_nodes
from featherlane.apps.cli.output import console, name_value_table, print_json, progress, table
from featherlane.apps.cli.sweep_file import read_sweep
from featherlane.distributed.sweeps.result import NAMED, Sweep
from featherlane.distributed.sweeps.run import SweepInterrupted, sweep
from featherlane.errors import ModelError, few


@dataclass
class Request:
    """Arguments of the command."""

    file: Path
    out: Path | None = None
    nodes: str | None = None
    resume: bool = False
    threads: int = 0
    chunk: int = 0
    as_json: bool = False


def run_sweep(request: Request) -> int:
    """Runs a sweep, writes the results, and prints a summary.

    Returns:
        The exit code: BAD_WORLDS if a sample became non-finite or out of range, INTERRUPTED after Ctrl-C.

    Raises:
        ModelError: the file or the folder is invalid; no file is written.
    """
    if request.resume and request.out is None:
        raise ModelError("resume: requires --out with the folder of the interrupted run")
    if request.out and not request.resume and (request.out / "run.json").exists():
        raise ModelError(f"{request.out}: contains a run; continue it with --resume")
    arguments = read_sweep(request.file)
    try:
        with progress(request.as_json) as bar:
            task = bar.add_task("samples", total=None)
            found = sweep(
                **arguments,
                out=request.out,
                chunk=request.chunk,
                nthread=request.threads,
                nodes=parse_nodes(request.nodes),
                progress=lambda done, total: bar.update(task, completed=done, total=total),
            )
    except SweepInterrupted as stop:
        again = f"; they are kept in {stop.path}, continue with --resume" if stop.path else ""
        return complain(f"interrupted after {stop.done:,} of {stop.nsample:,} samples{again}", INTERRUPTED)
    result = summary(found, arguments["model"].source, request)
    if request.as_json:
        print_json(result)
    else:
        _print(result)
    bad = found.bad()
    if len(bad):
        return complain(
            f"values became non-finite or out of range in {len(bad)} of {len(found)} samples: {few(bad, NAMED)}",
            BAD_WORLDS,
        )
    return 0


def summary(found: Sweep, source: str, request: Request) -> dict[str, Any]:
    """Returns a summary of a sweep."""
    results = {
        name: dict(zip(("mean", "std", "min", "max"), (v.mean(), v.std(), v.min(), v.max()), strict=True))
        for name, v in found.results.items()
    }
    files = sorted(str(path) for path in request.out.glob("result.*")) if request.out else []
    return {
        "model": source,
        "samples": len(found),
        "parameters": {name: _range(values) for name, values in found.parameters.items()},
        "results": results,
        "status": {name: int(counts.sum()) for name, counts in found.status.items()},
        "bad_samples": found.bad().tolist(),
        "files": files,
    }


def _range(values: np.ndarray) -> dict[str, Any]:
    """Returns the minimum and maximum of a parameter, or its names."""
    if values.dtype.kind == "U":
        return {"names": sorted(set(values.tolist()))}
    return {"min": values.min(), "max": values.max()}


def _print(result: dict[str, Any]) -> None:
    screen = console()
    rows = [[name, *(f"{value:.6g}" for value in numbers.values())] for name, numbers in result["results"].items()]
    screen.print(table(f"Results of {result['samples']:,} samples", ["name", "mean", "std", "min", "max"], rows))
    lines = {"model": result["model"]}
    for name, values in result["parameters"].items():
        shown = ", ".join(values["names"]) if "names" in values else f"{values['min']:.6g} to {values['max']:.6g}"
        lines[name] = shown
    status = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in result["status"].items() if count)
    lines["status"] = status or "no warnings"
    if result["files"]:
        lines["wrote"] = ", ".join(result["files"])
    screen.print(name_value_table("Sweep", lines))
