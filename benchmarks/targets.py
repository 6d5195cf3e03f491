"""Goals for speed, and whether the tables of the other benchmarks reach them; it measures nothing itself.

    python benchmarks/targets.py --write

Run it after another benchmark has written its table: it reads the tables from their pages.  Of a table with columns for
several processors it reads the newest ones.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

import plots
from columns import processor
from report import PAGES, arguments, markdown, origin, publish, section

COLUMNS = ("quantity", "goal", "measured", "reached", "table", "date", "processor")
HELD_OUT, SECOND = "ten robots named before the first timing", "ten further robots"
ROBOTS, G1 = "robots with meshes", "robosuite_models/robots/g1/"
DATE = re.compile(r"\d{4}-\d\d-\d\d")
PENDULUMS = r"Inverted(Double)?Pendulum-v5 256|Reacher-v5 256"


class Goal(NamedTuple):
    """A goal for a value of a table.

    Attributes:
        quantity: description of the value.
        section: section of the table, a key of `PAGES`.
        column: column of the value; each cell counts by its first number.
        bound: the goal; None: the value is only reported.
        of: combines the values of the rows.
        rows: regular expression that the first two cells of a row match, joined by a space.
        most: whether the goal is at most the bound, not at least.
        table: number of the table in the section.
        over: column by which the value is divided; none if empty.
    """

    quantity: str
    section: str
    column: str
    bound: float | None
    of: Callable[[Sequence[float]], float] = min
    rows: str = ""
    most: bool = False
    table: int = 0
    over: str = ""

    def row(self) -> list[str]:
        """Returns the cells of `COLUMNS`.

        Raises:
            LookupError: no row matches, or the section does not exist.
        """
        page, text, bound = PAGES[self.section].name, section(self.section), self.bound
        goal = "" if bound is None else f"{'at most' if self.most else 'at least'} {bound:g}"
        if not text:  # named, but not yet measured
            return [self.quantity, goal, "", "no" if goal else "", f"[{page}]({page})", "", ""]
        columns, rows = plots.tables(text)[self.table]
        name, line = newest(text, columns, self.column)
        found = {" ".join(row[:2]): plots.number(row[columns.index(name)])[0] for row in rows}
        if self.over:
            parts = (plots.number(row[columns.index(self.over)])[0] for row in rows)
            found = {row: value / part for (row, value), part in zip(found.items(), parts, strict=True)}
        found = {row: value for row, value in found.items() if re.match(self.rows, row)}
        if not found:
            raise LookupError(f"no row of {self.section} matches {self.rows!r}")
        value = self.of(list(found.values()))
        measured = f"{value:.5g}"
        if self.of in (min, max) and len(found) > 1:
            measured += f" ({self.of(found, key=found.__getitem__).split()[0]})"
        reached = ""
        if bound is not None:
            reached = "yes" if (value <= bound if self.most else value >= bound) else "no"
        return [self.quantity, goal, measured, reached, f"[{page}]({page})", DATE.findall(line)[-1], processor(line)]


def newest(text: str, columns: Sequence[str], name: str) -> tuple[str, str]:
    """Returns the column of the processor that was measured last, and the line of its origin.

    Args:
        text: the section.
        columns: names of its columns, of which those of further processors end with the processor.
        name: the column of the table's own processor.
    """
    further = re.findall(r"^\*(.*?)\*: (.* wrote these columns on .*)$", text, re.MULTILINE)
    measured = [(name, text.splitlines()[-1]), *((f"{name}, {label}", line) for label, line in further)]
    return max((each for each in measured if each[0] in columns), key=lambda each: DATE.findall(each[1])[-1])


MEDIAN = statistics.median
GOALS = (
    Goal(f"{ROBOTS}, batch, median ratio", "robots", "ratio", 8.0, MEDIAN),
    Goal("G1 with meshes, batch, ratio", "robots", "ratio", 4.5, rows=G1),
    Goal(f"other {ROBOTS}, batch, least ratio", "robots", "ratio", 4.5, rows=f"(?!{G1})"),
    Goal("shadow_hand/scene_right with meshes, batch, ratio", "robots", "ratio", 4.5, rows="mjx/shadow_hand"),
    Goal(f"{HELD_OUT}, batch, median ratio", "held-out-robots", "ratio", 6.0, MEDIAN),
    Goal(f"{HELD_OUT}, batch, least ratio", "held-out-robots", "ratio", 4.0),
    Goal(f"{SECOND}, batch, median ratio", "second-held-out-robots", "ratio", 7.0, MEDIAN),
    Goal(f"{SECOND}, batch, least ratio", "second-held-out-robots", "ratio", 4.0),
    Goal(f"{ROBOTS}, one world, median ratio", "robots", "one world", 2.2, MEDIAN),
    Goal(f"{ROBOTS}, float32 / float64, median", "robots", "float32 / float64", 1.6, MEDIAN),
    *(
        Goal(f"{model}, batch, ratio", "speed", "ratio", bound, rows=f"{model} ")
        for model, bound in {
            "dm_control/humanoid": 7.5,
            "dm_control/dog": 5.5,
            "dm_control/quadruped": 9.5,
            "bundled/pile": 4.5,
            # not slower than the slowest round of the table of 2026-11-22
            "bundled/chain": 208.0,
            "bundled/arm": 11.0,
        }.items()
    ),
    Goal("Panda and G1, one call, least ratio of p50", "latency", "ratio p50", 2.0, rows="robosuite"),
    Goal("Panda and G1, one call, least ratio of p99", "latency", "ratio p99", 1.0, rows="robosuite"),
    Goal(
        "step of 3,000 spheres in one world, ratio",
        "collision",
        "MuJoCo's step [us]",
        1.0,
        rows="3,000",
        table=1,
        over="step [us]",
    ),
    Goal(
        "`set_const` of a randomized world, most steps of a world",
        "set_const",
        "steps per set_const",
        2.0,
        max,
        most=True,
    ),
    Goal("derivatives of dm_control's models, least speed-up", "dm_control_derivatives", "speed-up, batch", 50.0),
    Goal(
        "pendulums and Reacher, 256 worlds, largest share of time outside `Batch.step` [%]",
        "environments",
        "outside `Batch.step`",
        20.0,
        max,
        PENDULUMS,
        most=True,
    ),
    # half of the times before policies were compiled, 8.9 us and 24.2 us
    *(
        Goal(
            f"{task}, worlds and policy, per step [us]", "rollouts", "compiled policy [us]", bound, min, task, most=True
        )
        for task, bound in {"HalfCheetah": 4.45, "Ant": 12.1, "Humanoid": None}.items()
    ),
    Goal(
        "Humanoid, worlds and policy in PyTorch, per step [us]",
        "rollouts",
        "policy in PyTorch [us]",
        None,
        rows="Humanoid",
    ),
)


def rows() -> list[list[str]]:
    """Returns the rows of the table: the goals, and the times to the returns of `learning.py --goals`."""
    (columns, learned), *_ = plots.tables(section("learning-goals"))
    times = [
        Goal(
            f"{row[0]}, wall time to a return of {row[1]}, median [s]", "learning-goals", columns[-1], None, rows=row[0]
        )
        for row in learned
        if row[-1] != "-"
    ]
    return [goal.row() for goal in (*GOALS, *times)]


def main() -> None:
    asked = arguments(__doc__ or "").parse_args()
    found = rows()
    count = [row[COLUMNS.index("reached")] for row in found]
    note = (
        f"{count.count('yes')} of {len(count) - count.count('')} goals are reached. Rows without a goal have a "
        "measurement only."
    )
    publish("targets", f"{markdown(COLUMNS, found)}\n\n{note}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
