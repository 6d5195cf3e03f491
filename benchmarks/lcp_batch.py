"""Batches of LCPs against ODE: throughput of `fl.lcp.solve_batch` and of ODE's dxSolveLCP on one thread; two minutes.

    python benchmarks/lcp_batch.py --write

Towers of unit cubes with 4 contacts each, friction in pyramids, N problems of one structure: at rest (pushed by
0.2 m/s^2), pushed (2 m/s^2) and sliding (8 m/s^2).  `dantzig` solves ODE's problem, limits frozen, to rounding; `apgd`
and `pgs` the one with consistent limits, to the residual that stands beside.  Of ODE the solver's time alone counts, as
does ours; `call` is all of ours: checks, and copies into lanes and out of them.  Times are of the processor.
"""

from __future__ import annotations

import time
from unittest import mock

import numpy as np
from report import arguments, markdown, origin, publish

import featherlane as fl
from featherlane.lcp.tile import Tile
from lcp import Ode

# `dart`, by way of `lcp`, put the tests on the path
from lcp_problems import stack_problem

BOXES = (1, 2, 4)  # 12 rows each
PUSHES = {"at rest": 0.2, "pushed": 2.0, "sliding": 8.0}
SOFTNESS = 1e-5
METHODS = (
    ("dantzig", {}),
    ("apgd", {"tolerance": 1e-4}),
    ("pgs", {"iterations": 20, "order": "quickstep", "relaxation": 1.3, "tolerance": 0.0}),
)
COLUMNS = ("rows", "towers", "method", "ODE [us]", "ours [us]", "times the throughput", "call [us]", "times",
           "residual, median", "largest")  # fmt: skip


def stacked(problems):
    """Arguments of `solve_batch`."""
    fields = (np.stack([getattr(p, name) for p in problems]) for name in ("matrix", "b", "lo", "hi"))
    return *fields, problems[0].findex


def time_ode(ode: Ode, forms) -> float:
    """Seconds for one problem, the copies taken off."""
    clock = time.process_time
    start = clock()
    for form in forms:
        ode.load(form)
    middle = clock()
    for form in forms:
        ode.load(form)
        ode.run()
    return (clock() - middle - (middle - start)) / len(forms)


def time_ours(parts, method: str, options) -> tuple[float, float]:
    """Seconds for one problem: of the solver, and of the whole call."""
    clock, count = time.process_time, len(parts[1])
    start = clock()
    with mock.patch.object(Tile, "bind", lambda tile, stage: lambda *numbers: None):
        fl.lcp.solve_batch(*parts, method=method, **options)
    middle = clock()
    fl.lcp.solve_batch(*parts, method=method, **options)
    whole = clock() - middle
    return (whole - (middle - start)) / count, whole / count


def race(boxes: int, push: float, count: int, rounds: int):
    """Yield (method, seconds of ODE, our solver, our call; the ratios; median and largest residual) for each method."""
    rng = np.random.default_rng(boxes)
    problems = [stack_problem(boxes, SOFTNESS, push=push * rng.standard_normal(6 * boxes)) for _ in range(count)]
    ode, parts = Ode(12 * boxes), stacked(problems)
    forms = [ode.form(problem) for problem in problems]
    for method, options in METHODS:
        found = fl.lcp.solve_batch(*parts, method=method, **options)
        times = [(time_ode(ode, forms), *time_ours(parts, method, options)) for _ in range(rounds)]
        theirs, solver, call = np.array(times).T
        ratios = np.median(theirs / solver), np.median(theirs / call)
        yield method, np.median(times, 0), ratios, np.median(found.residual), found.residual.max()


def main() -> None:
    """Print the table, and put it into the README where that is asked for."""
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
