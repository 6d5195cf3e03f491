"""Speed against MuJoCo: batches, precisions, threads, one world, smooth dynamics; two minutes.

    python benchmarks/speed.py --write

Every ratio is measured side by side in this process: the same 512 different states with contact, the two sides in
turns, the median of the rounds.  The README shows five rows of the table, too.
"""

from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from races import race_threads
from report import arguments, markdown, origin, publish, source_of

from featherlane.apps.measure.speed_comparison import Course, Lineup, race_batches, race_one_world

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from robots.wheels import Unreachable

MODELS = (
    "dm_control/humanoid",
    "dm_control/quadruped",
    "dm_control/dog",
    "gymnasium/half_cheetah",
    "gymnasium/ant",
    "bundled/arm",
    "bundled/humanoid",
    "bundled/quadruped",
    "bundled/quadruped_elliptic",
    "bundled/hand",
    "bundled/box_stack",
    "gymnasium_robotics/assets/hand/reach",
    "gymnasium_robotics/assets/adroit_hand/adroit_hammer",
    "myosuite/simhive/myo_sim/leg/myolegs",
)
# 300 to 384 dofs: fewer worlds and rounds, for the oracle takes milliseconds a step
LARGE = ("bundled/chain", "bundled/stacks", "bundled/pile")
COLUMNS = (
    "model",
    "dofs",
    "contacts",
    "MuJoCo [1000/s]",
    "ours [1000/s]",
    "ratio",
    "float32",
    "2 threads / 1",
    "one world",
    "smooth only",
)

# the README's rows: published robots, from few DoFs to many, and the scene with the smallest ratio
BRIEF = {
    "gymnasium/ant": "Gymnasium's ant",
    "dm_control/humanoid": "dm_control's humanoid",
    "myosuite/simhive/myo_sim/leg/myolegs": "MyoSuite's legs, 80 muscles",
    "dm_control/dog": "dm_control's dog",
    "bundled/pile": "a pile of 64 balls",
}
BRIEF_COLUMNS = ("dofs", "contacts", "MuJoCo [1000/s]", "ours [1000/s]", "ratio", "one world")


def row(name: str, rounds: int) -> list[str]:
    """All ratios of one model."""
    course = Course(rounds=max(1, rounds // 3), worlds=32, settle=2.0) if name in LARGE else Course(rounds=rounds)
    source = source_of(name)
    lineup = Lineup(source, course)
    double, worlds = race_batches(lineup)
    single, _ = race_batches(lineup.on(dtype="float32"))
    smooth = Lineup(source, Course(rounds=course.rounds, worlds=course.worlds, settle=0.0, smooth=True))
    smooth.states = lineup.states
    free, _ = race_batches(smooth)
    return [
        name,
        str(lineup.model.nv),
        f"{worlds['contacts']['mean']:.1f}",
        f"{1000 / double.theirs:.3g}",
        f"{1000 / double.ours:.3g}",
        str(double.ratio),
        str(single.ratio),
        f"{race_threads(lineup).median:.2f}",
        f"{race_one_world(lineup).ratio.median:.2f}",
        f"{free.ratio.median:.1f}",
    ]


def brief(rows: Sequence[Sequence[str]], source: str) -> str | None:
    """Returns the README's five rows of the table and the median ratio of all; None if a row was not measured.

    Args:
        rows: of the table, as `COLUMNS` says.
        source: where the numbers are from.
    """
    source = re.sub(r", load [\d.]+ before", "", source)  # the README is short
    # without the rounds in brackets, and without columns of further processors
    short = [[cell.partition(" (")[0] for cell in line[: len(COLUMNS)]] for line in rows]
    lines = {line[0]: dict(zip(COLUMNS, line, strict=True)) for line in short}
    if not set(BRIEF) <= set(lines):
        return None
    five = [[label, *(lines[name][column] for column in BRIEF_COLUMNS)] for name, label in BRIEF.items()]
    ratios = [float(line["ratio"]) for line in lines.values()]
    middle, least, most = (f"{f(ratios):.3g}" for f in (statistics.median, min, max))
    every = f"All {len(rows)} models: median ratio {middle}, {least} to {most} ([Speed](docs/speed.md))."
    return f"{markdown(('model', *BRIEF_COLUMNS), five)}\n\n{every}\n\n{source}"


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="measured rounds of each race")
    parser.add_argument("--models", nargs="*", default=MODELS + LARGE, help="wheel/model or bundled/model")
    asked = parser.parse_args()
    rows = []
    for name in asked.models:
        print(name, file=sys.stderr)
        try:
            rows.append(row(name, asked.rounds))
        except Unreachable as error:
            sys.exit(str(error))
    note = (
        "The batches have 512 worlds on one thread (32 worlds for chain, stacks and pile). `ratio` is "
        "the speed of Featherlane in float64 divided by the speed of MuJoCo. `float32` is the speed of "
        "Featherlane in float32 divided by the speed of MuJoCo, which has only float64. The measurement is repeated in "
        "several rounds ([Timing method](#timing-method)). Each ratio is the median of the rounds, and the brackets "
        "have the least and the greatest of the rounds' ratios. "
        "`one world` is the speed of `fl.step` divided by the speed of `mj_step`. `smooth only` is the `ratio` with "
        "contacts and constraints disabled in both engines. Sensors are off. Both engines use Newton's method and the "
        "model's cone (elliptic for quadruped_elliptic, hand and box_stack)."
    )
    source = origin()
    publish("speed", f"{markdown(COLUMNS, rows)}\n\n{note}\n\n{source}", asked.write)
    if asked.write != "column" and (five := brief(rows, source)):
        publish("speed-in-brief", five, asked.write)


if __name__ == "__main__":
    main()
