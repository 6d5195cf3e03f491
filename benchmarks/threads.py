"""What a second thread gives, beside what a second core of this machine gives; a minute.

    python benchmarks/threads.py --write

A batch on two threads over one, and two batches of half the worlds at once over one after the other.  The second pair
shares no work, no lock and no call: what it falls short of 2 the machine takes.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

from report import arguments, markdown, origin, publish, source_of

from featherlane.measure.speed_comparison import Course, Lineup, race_cores, race_threads
from featherlane.simulation.batch.batch import Batch

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


if __name__ == "__main__":
    main()
