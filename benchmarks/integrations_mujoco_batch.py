"""Speed of `integrations.mujoco_batch.Batch` against `mujoco.batch.Batch` and the native batch; half a minute.

    python benchmarks/integrations_mujoco_batch.py --write

All three step the same states with contact in this process, alternated, on all cores; the medians of the rounds.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from report import arguments, markdown, origin, publish, source_of
from speed import LARGE, MODELS

from featherlane.apps.measure.speed_comparison import Course, Lineup, alternate, ratio, their_batch
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.integrations import mujoco_batch

COLUMNS = ("model", "dofs", "MuJoCo [1000/s]", "mujoco_batch [1000/s]", "ratio", "native ratio", "ratio / native")


def timed(lineup: Lineup, batch: Any) -> Callable[[], float]:
    """Returns a function that sets the states, and returns the seconds of the call's steps one by one."""

    def run() -> float:
        lineup.put(batch)
        start = time.perf_counter()
        for _ in range(lineup.course.nstep):
            batch.step()
        return time.perf_counter() - start

    return run


def row(name: str, course: Course) -> list[str]:
    """Returns the row of a model."""
    lineup = Lineup(source_of(name), course)
    ours = mujoco_batch.Batch(lineup.mj_model, course.worlds, course.threads)
    theirs = their_batch()(lineup.mj_model, course.worlds, course.threads)
    native = Batch(lineup.model, course.worlds, course.threads)
    sides = {"theirs": timed(lineup, theirs), "ours": timed(lineup, ours), "native": timed(lineup, native)}
    seconds = alternate(sides, course.rounds, lambda: None)
    steps = course.worlds * course.nstep
    pace = {side: f"{steps / statistics.median(times) / 1000:.3g}" for side, times in seconds.items()}
    ratios = [ratio(seconds["theirs"], seconds[side]).median for side in ("ours", "native")]
    quotient = ratio(seconds["native"], seconds["ours"])
    return [name, str(lineup.model.nv), pace["theirs"], pace["ours"], *(f"{r:.2f}" for r in ratios), str(quotient)]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="measured rounds")
    parser.add_argument("--models", nargs="*", default=MODELS + LARGE, help="wheel/model or bundled/model")
    asked, rows = parser.parse_args(), []
    for name in asked.models:
        print(name, file=sys.stderr)
        large = {"worlds": 64, "settle": 2.0, "nstep": 1} if name in LARGE else {"worlds": 4096, "nstep": 2}
        rows.append(row(name, Course(rounds=asked.rounds, threads=0, **large)))
        print(rows[-1], file=sys.stderr)
    note = (
        "The batches have 4096 worlds (64 for the models chain, stacks and pile) in float64, and use all cores. Each "
        "call takes one step, without sensors. `ratio` is the speed-up of `mujoco_batch` over MuJoCo, and `native "
        "ratio` is the speed-up of `featherlane.Batch` over MuJoCo. Each ratio is the median of several measurements."
        " In the last column, the smallest and the largest ratio of the measurements are in brackets."
    )
    publish("integrations-mujoco-batch", f"{markdown(COLUMNS, rows)}\n\n{note}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
