"""Batches of LCPs against ODE: throughput of `fl.lcp.solve_batch` and of ODE's dxSolveLCP on one thread; two minutes.

    python benchmarks/lcp_batch.py --write

Towers of unit cubes with 4 contacts each, friction in pyramids, N problems of one structure: at rest (pushed by
0.2 m/s^2), pushed (2 m/s^2) and sliding (8 m/s^2).  `dantzig` solves ODE's problem, limits frozen, to rounding; `apgd`
and `pgs` solve the one with consistent limits, to the residual in the last columns.  Of ODE the solver's time
alone counts, as does ours; `call` is all of ours: checks, and copies into lanes and out of them.  Times are of the
processor.
"""

from __future__ import annotations

import time
from unittest import mock

import numpy as np
from report import arguments, markdown, origin, publish

import featherlane as fl
from featherlane.engine.solver.lcp.lane_memory import load_lanes, store_lanes
from featherlane.lcp.tile import Tile
from lcp import Ode

# `dart`, by way of `lcp`, put the tests on the path
from scenes.lcp_problems import stack_problem

BOXES = (1, 2, 4)  # 12 rows each
PUSHES = {"at rest": 0.2, "pushed": 2.0, "sliding": 8.0}
SOFTNESS = 1e-5
METHODS = (
    ("dantzig", {}),
    ("apgd", {"tolerance": 1e-4}),
    ("pgs", {"iterations": 20, "order": "quickstep", "relaxation": 1.3, "tolerance": 0.0}),
)
COLUMNS = ("rows", "towers", "method", "ODE [us]", "ours [us]", "speed-up", "whole call [us]", "speed-up, whole call",
           "residual, median", "largest")  # fmt: skip


def stacked(problems):
    """Arguments of `solve_batch`."""
    fields = (np.stack([getattr(p, name) for p in problems]) for name in ("matrix", "b", "lo", "hi"))
    return *fields, problems[0].findex


class Watch:
    """Processor time of the calls that it wraps, what looking at the clock takes taken off."""

    def __init__(self):
        looks = [time.process_time() for _ in range(1000)]
        self.look, self.spent = (looks[-1] - looks[0]) / 999, 0.0

    def wrap(self, function):
        """The function, its calls timed."""

        def timed(*arguments):
            start = time.process_time()
            function(*arguments)
            self.spent += time.process_time() - start - self.look

        return timed


def time_ode(ode: Ode, forms) -> float:
    """Seconds for one problem, without copies."""
    watch = Watch()
    run = watch.wrap(ode.run)
    for form in forms:
        ode.load(form)
        run()
    return watch.spent / len(forms)


def time_ours(parts, method: str, options) -> tuple[float, float]:
    """Seconds for one problem: of the solvers, and of the whole call."""
    watch, bind = Watch(), Tile.bind

    def timed(tile, stage):
        return bind(tile, stage) if stage in (load_lanes, store_lanes) else watch.wrap(bind(tile, stage))

    start = time.process_time()
    fl.lcp.solve_batch(**parts, method=method, **options)
    whole = time.process_time() - start
    with mock.patch.object(Tile, "bind", timed):
        fl.lcp.solve_batch(**parts, method=method, **options)
    return watch.spent / len(parts["b"]), whole / len(parts["b"])


def race(boxes: int, push: float, count: int, rounds: int):
    """Yield (method, seconds of ODE, our solver, our call; the ratios; median and largest residual) for each method."""
    rng = np.random.default_rng(boxes)
    problems = [stack_problem(boxes, SOFTNESS, push=push * rng.standard_normal(6 * boxes)) for _ in range(count)]
    ode, parts = Ode(12 * boxes), dict(zip(("A", "b", "lo", "hi", "findex", "add"), stacked(problems), strict=True))
    forms = [ode.form(problem) for problem in problems]
    for method, options in METHODS:
        found = fl.lcp.solve_batch(**parts, method=method, **options)
        times = [(time_ode(ode, forms), *time_ours(parts, method, options)) for _ in range(rounds)]
        theirs, solver, call = np.array(times).T
        ratios = np.median(theirs / solver), np.median(theirs / call)
        yield method, np.median(times, 0), ratios, np.median(found.residual), found.residual.max()


def main() -> None:
    """Prints the table; `--write` also writes it into its page."""
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="measured rounds of each race")
    parser.add_argument("--problems", type=int, default=1024, help="problems in a batch")
    asked = parser.parse_args()
    rows = []
    for boxes in BOXES:
        for name, push in PUSHES.items():
            for method, times, ratios, middle, most in race(boxes, push, asked.problems, asked.rounds):
                theirs, solver, call = (f"{1e6 * t:.3g}" for t in times)
                rows.append([str(12 * boxes), name, method, theirs, solver, f"{ratios[0]:.1f}", call,
                             f"{ratios[1]:.1f}", f"{middle:.0e}", f"{most:.0e}"])  # fmt: skip
    publish("lcp-batch", f"{markdown(COLUMNS, rows)}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
