"""Shares of the stages in a batch's step, by `featherlane bench`; two minutes.

    python benchmarks/stages.py --write
    python benchmarks/stages.py --before FOLDER --write

With `--before`, each model has a second row for the source of an earlier version, for example `src` of a worktree.
The models are those of `benchmarks/instructions.py` without the pile, whose worlds take minutes to settle.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from instructions import MODELS
from report import ROOT, arguments, markdown, origin, publish, source_of

CONSTRAINTS = {"collision": "collision", "make_constraint": "rows", "solve_constraint": "solver"}
COLUMNS = (
    "model",
    "version",
    "step [us]",
    *CONSTRAINTS.values(),
    "other",
    "iterations of a world, of a tile",
    "active lanes",
)
WORLDS, ROUNDS = 256, 3


def profiles(sources: list[str], folder: Path) -> list[dict]:
    """Returns what `featherlane bench` of the version in a folder prints for each model.

    Raises:
        CalledProcessError: a benchmark fails.
    """
    command = [sys.executable, "-m", "featherlane", "bench", *sources, "--json"]
    command += ["--worlds", str(WORLDS), "--rounds", str(ROUNDS)]
    found = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(folder)}, stdout=subprocess.PIPE, check=True)
    return json.loads(found.stdout)["models"]


def row(name: str, version: str, profile: dict) -> list[str]:
    """Returns the cells of `COLUMNS`."""
    times, lanes = dict(profile["stage_microseconds"]), profile["solver_lanes"]
    step = times.pop("step")
    shares = [times.pop(stage, 0.0) / step for stage in CONSTRAINTS]
    shares.append(sum(times.values()) / step)
    iterations = f"{lanes['world']:.1f}, {lanes['tile']:.1f}"
    cells = [name, version, f"{step:.2f}", *(f"{max(100 * share, 0):.0f} %" for share in shares)]
    return [*cells, iterations, f"{100 * lanes['lanes_active']:.0f} %"]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--before", type=Path, metavar="FOLDER", help="source of an earlier version")
    asked = parser.parse_args()
    if asked.before and not (asked.before / "featherlane").is_dir():
        parser.error(f"--before: {asked.before} has no package featherlane; give the folder src of a version")
    names = [name for name in MODELS if name != "bundled/pile"]
    versions = {"now": ROOT / "src"} | ({"before": asked.before} if asked.before else {})
    sources = [source_of(name) for name in names]
    found = {version: profiles(sources, folder) for version, folder in versions.items()}
    rows = [row(name, v, found[v][k]) for k, name in enumerate(names) for v in reversed(versions)]
    sizes = f"{WORLDS} worlds, one thread, float64, sensors off."
    where = origin().replace(str(asked.before), "FOLDER")
    publish("stages", f"{markdown(COLUMNS, rows)}\n\n{sizes}\n\n{where}", asked.write)


if __name__ == "__main__":
    main()
