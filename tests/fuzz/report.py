"""Reports a fuzzer's run: counts, findings with the command that repeats each, time; and sets its budget.

The slow tests take their budget from `FEATHERLANE_FUZZ`: a number of cases (`100000`) or seconds (`600s`); the default
is per test.  The seed is `FEATHERLANE_FUZZ_SEED`, by default 0.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

SHOWN = 20  # printed findings per kind


def seed() -> int:
    """Returns the seed of this run."""
    return int(os.environ.get("FEATHERLANE_FUZZ_SEED", "0"))


def budget(cases: int) -> str:
    """Returns the budget of a slow test: the environment's, or so many cases."""
    return os.environ.get("FEATHERLANE_FUZZ") or str(cases)


def numbered(limit: str, first: int = 0) -> Iterator[int]:
    """Yields numbers of cases, until the budget is spent.

    Args:
        limit: so many (`1000`), or for so many seconds (`60s`).
        first: the first number.
    """
    end = time.monotonic() + float(limit[:-1]) if limit.endswith("s") else None
    last = None if end else first + int(limit)
    case = first
    while (last is None or case < last) and (end is None or time.monotonic() < end):
        yield case
        case += 1


@dataclass
class Report:
    """Holds counts and findings of a run.

    Attributes:
        name: name of the fuzzer, as an argument of `python tests/fuzz`.
        seed: seed of the run.
        counts: number of cases by outcome.
        notes: number of remarkable events that are not findings, by text.
        firsts: the first case of each of these.
        findings: case -> violation.
        started: [s] of the monotonic clock.
    """

    name: str
    seed: int = 0
    counts: Counter = field(default_factory=Counter)
    notes: Counter = field(default_factory=Counter)
    firsts: dict[str, int] = field(default_factory=dict)
    findings: dict[int, str] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)

    def meet(self, case: int, verdict: str, text: str = "") -> None:
        """Counts a case; `finding` is a verdict with a violation, which is printed immediately."""
        self.counts[verdict] += 1
        if verdict == "finding":
            self.findings[case] = text
            print(f"{self.command(case)}\n    {text}", flush=True)
        elif text:
            self.notes[text] += 1
            self.firsts.setdefault(text, case)

    def equal(self) -> int:
        """Returns the number of cases whose verdict is equal."""
        return sum(number for verdict, number in self.counts.items() if verdict.startswith("equal"))

    def command(self, case: int) -> str:
        """Returns the command that repeats a case."""
        return f"python tests/fuzz {self.name} --seed {self.seed} --case {case}"

    def __str__(self) -> str:
        total, spent = sum(self.counts.values()), time.monotonic() - self.started
        lines = [f"{self.name}: {total} cases in {spent:.0f} s, {len(self.findings)} findings"]
        lines += [f"  {number:>8} {verdict}" for verdict, number in self.counts.most_common()]
        lines += [
            f"  {number:>8} x {text} (case {self.firsts[text]})" for text, number in self.notes.most_common(SHOWN)
        ]
        for case, text in list(self.findings.items())[:SHOWN]:
            lines += [f"  {self.command(case)}", f"      {text}"]
        return "\n".join(lines)
