"""Speed-ups by a second thread and by a second core of this machine, and the serial time of calls; two minutes.

    python benchmarks/threads.py --write

The first table compares a batch on two threads with one on one thread, and two batches of half the worlds at the same
time with the same two in turns.  The two batches share no work, no lock and no call, so the machine alone keeps their
speed-up below 2.

The second table has the time of a call outside of the work of threads.  It limits the speed-up with many cores.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from races import race_cores, race_threads
from report import arguments, markdown, origin, publish, source_of

from featherlane.apps.measure.speed_comparison import Course, Lineup
from featherlane.engine.simulation.batch import runner
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.tile.team import Team

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from robots.wheels import Unreachable

# model, worlds, steps of a call: calls of one millisecond and of ten
CASES = (
    ("bundled/humanoid", 512, 1),
    ("bundled/humanoid", 1024, 4),
    ("bundled/quadruped", 4096, 4),
    ("bundled/arm", 4096, 4),
    ("bundled/hand", 1024, 4),
    ("bundled/chain", 32, 1),
    ("bundled/pile", 32, 1),
    ("dm_control/humanoid", 512, 4),
    ("gymnasium/half_cheetah", 4096, 4),
    ("mjx/shadow_hand/scene_right", 512, 4),
    ("robosuite/robots/spot/robot", 512, 4),
    ("robosuite/robots/jaco/robot", 256, 4),
    ("myosuite/simhive/myo_sim/leg/myolegs", 256, 4),
)
LARGE = (
    ("bundled/cartpole", 65536, 1),
    ("bundled/arm", 65536, 1),
    ("bundled/quadruped", 16384, 1),
    ("bundled/humanoid", 8192, 1),
    ("bundled/humanoid", 8192, 4),
)
CORES = 96
COLUMNS = ("model", "worlds", "steps per call", "call on one thread [ms]", "2 threads / 1", "2 cores / 1")


def milliseconds(lineup: Lineup) -> float:
    """Of a call on one thread, from the settled states."""
    course, batch, seconds = lineup.course, Batch(lineup.model, lineup.course.worlds, nthread=1), []
    for _ in range(course.rounds):
        lineup.put(batch)
        start = time.perf_counter()
        batch.step(course.nstep)
        seconds.append(time.perf_counter() - start)
    return 1e3 * statistics.median(seconds)


def row(name: str, course: Course) -> list[object]:
    """Both ratios of one model."""
    lineup = Lineup(source_of(name), course)
    took, threads, cores = milliseconds(lineup), race_threads(lineup), race_cores(lineup)
    return [name, course.worlds, course.nstep, f"{took:.1f}", threads, cores]


def serial_seconds(lineup: Lineup) -> tuple[float, float]:
    """Returns the time of a call on one thread, and the part of it outside of work that threads share."""
    course, batch, shared, times = lineup.course, Batch(lineup.model, lineup.course.worlds, nthread=1), 0.0, []

    def timed(function: Callable) -> Callable:
        def run(*arguments):
            nonlocal shared
            start = time.perf_counter()
            function(*arguments)
            shared += time.perf_counter() - start

        return run

    with patch.object(runner, "work", timed(runner.work)), patch.object(Team, "run", timed(Team.run)):
        lineup.put(batch)
        for _ in range(course.rounds):
            shared, start = 0.0, time.perf_counter()
            batch.step(course.nstep)
            whole = time.perf_counter() - start
            times.append((whole, whole - shared))
    return statistics.median(t for t, _ in times), statistics.median(t for _, t in times)


def large_row(name: str, course: Course) -> list[object]:
    """The serial time of one model, and the bound that it sets on the speed-up."""
    whole, serial = serial_seconds(Lineup(source_of(name), course))
    most = whole / ((whole - serial) / CORES + serial)
    return [name, course.worlds, course.nstep, f"{1e3 * whole:.1f}", f"{1e6 * serial:.0f}", f"{most:.0f}"]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=25, help="measured rounds of each race")
    asked = parser.parse_args()
    rows = []
    for name, worlds, nstep in CASES:
        print(name, file=sys.stderr)
        try:
            rows.append(row(name, Course(worlds=worlds, nstep=nstep, rounds=asked.rounds)))
        except Unreachable as error:
            sys.exit(str(error))
    note = "Median (least - most) of the rounds; float64, sensors off."
    publish("threads", f"{markdown(COLUMNS, rows)}\n\n{note}\n\n{origin()}", asked.write)
    columns = (*COLUMNS[:4], "outside of threads [us]", f"most with {CORES} cores")
    large = [large_row(name, Course(worlds=n, nstep=k, rounds=asked.rounds)) for name, n, k in LARGE]
    publish("serial", f"{markdown(columns, large)}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
