"""Crossed features against MuJoCo: each case combines trees, forces, constraints, settings, sensors and edits.

A case is a list of features.  Each adds elements, settings, states or edits to a model by a separate random generator,
so features can be dropped one by one while a finding persists.  Some steps are compared with those of MuJoCo, all
fields at tolerance 0, and a world in a batch with the same world alone, bit by bit.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import warnings
import xml.etree.ElementTree as ET
import zlib
from collections import Counter

import mujoco
import numpy as np

import featherlane as fl
from fuzz import models
from fuzz.crossed import bits, constraints, forces, judge, settings, trees
from fuzz.crossed.comparison import Different, Skip
from fuzz.crossed.scene import Random, Scene
from fuzz.report import Report, numbered
from fuzz.workers import outcomes

NAME = "crossed"
TIMEOUT = 120.0  # s
# groups in the order in which their features are added, and how many of each a case has
GROUPS = (
    (trees.TREES, (1, 1, 1, 2)),
    (constraints.CONTACTS, (0, 0, 1, 1, 2)),
    (constraints.RARE, (0,) * 300 + (1,)),
    (forces.TENDONS, (0, 0, 1, 1, 2)),
    (forces.OF_TENDONS, (0, 1, 2)),
    (constraints.OF_TENDONS, (0, 0, 1, 1)),
    (forces.FORCES, (0, 1, 1, 2, 3)),
    (constraints.EQUALITIES, (0, 0, 0, 1, 1, 2)),
    (constraints.LIMITS, (0, 0, 1, 1, 2)),
    (constraints.OF_CONTACTS, (0, 1, 2)),
    (forces.ACTUATION, (0, 0, 1, 1, 2)),
    (settings.SETTINGS, (1,)),
    (settings.SOLVING, (0, 0, 0, 1)),
    (settings.FLAGS, (0, 0, 1, 2)),
    ({"sensors": settings.sensors}, (0, 1)),
    (settings.STATES, (0, 0, 0, 1)),
    (settings.EDITS, (0, 0, 0, 1, 2)),
)
# groups of which a case has one if it has one of the other group
NEEDS = (
    (forces.TENDONS, forces.OF_TENDONS | constraints.OF_TENDONS),
    (constraints.CONTACTS, constraints.OF_CONTACTS),
)
FEATURES = {name: function for group, _ in GROUPS for name, function in group.items()}
LEAVING = 0.5  # part of the groups that a case omits
LEAST = 0.6  # share of the cases that a run compares
HOWS = ("loaded", "edited", "expanded")


def features(seed: int, case: int) -> list[tuple[str, int]]:
    """Returns the features of a case, with the seed of each."""
    rng, found = np.random.default_rng([seed, case]), []
    for k, (group, counts) in enumerate(GROUPS):
        if k and rng.random() < LEAVING:
            continue
        names = sorted(group)
        count = min(int(rng.choice(counts)), len(names))
        found += [(str(name), int(rng.integers(1 << 31))) for name in rng.choice(names, count, replace=False)]
    names = {name for name, _ in found}
    for needed, by in NEEDS:
        if names & by.keys() and not names & needed.keys():
            found.insert(1, (str(rng.choice(sorted(needed))), int(rng.integers(1 << 31))))
    return found


def build(chosen: list[tuple[str, int]]) -> Scene:
    """Returns the model with these features."""
    scene = Scene()
    for name, seed in chosen:
        FEATURES[name](scene, Random([seed, zlib.crc32(name.encode())]))
    return scene


def examine(seed: int, case: int, chosen: list[tuple[str, int]], text: str = "") -> tuple[str, Exception | None]:
    """Runs a case with these features, or a smaller text of them; returns a verdict and the finding."""
    rng = np.random.default_rng([seed, case, 1])
    how = HOWS[int(rng.integers(3))]
    try:
        scene = build(chosen)
        mj, model = judge.compiled(scene, text or scene.text(), how)
        if not mj.nv:
            raise Skip("no dofs")
        state = judge.start(mj, scene, rng)
        verdict = judge.check_steps(mj, model, scene, state)
        bits.check_bits(mj, model, scene, state, rng)
        return verdict, None
    except Skip as skip:
        return str(skip), None
    except models.Finding as finding:
        return "finding", finding
    except fl.ModelError as error:
        return "refused", error
    except mujoco.FatalError:
        return "unstable in MuJoCo", None
    except Exception as error:
        return "finding", Different(f"{type(error).__name__}", f"{error} at {models.place(error)}")


def check(seed: int, case: int) -> tuple[str, str]:
    """Runs a case; returns a verdict and a text, for a finding with the features that it needs."""
    warnings.simplefilter("ignore")
    chosen = features(seed, case)
    verdict, finding = examine(seed, case, chosen)
    if verdict == "refused":
        return verdict, models.shape(str(finding))
    if verdict != "finding":
        return verdict, ""
    least = minimized(seed, case, chosen, finding)
    return verdict, f"{finding} [{' '.join(name for name, _ in least)}]"


def minimized(seed: int, case: int, chosen, finding) -> list[tuple[str, int]]:
    """Drops features one by one, while a finding of the same kind persists."""
    kind, k = kind_of(finding), len(chosen) - 1
    while k >= 0:
        fewer = chosen[:k] + chosen[k + 1 :]
        verdict, other = examine(seed, case, fewer)
        if verdict == "finding" and kind_of(other) == kind:
            chosen = fewer
        k -= 1
    return chosen


def shrunk(seed: int, case: int, chosen, finding) -> str:
    """Returns the text of a finding after elements and attributes are dropped while it persists."""
    root = ET.fromstring(build(chosen).text())

    def persists() -> bool:
        try:
            verdict, other = examine(seed, case, chosen, ET.tostring(root, encoding="unicode"))
        except Exception:
            return False
        return verdict == "finding" and kind_of(other) == kind_of(finding)

    for parent in list(root.iter()):
        for child in list(parent):
            at = list(parent).index(child)
            parent.remove(child)
            if not persists():
                parent.insert(at, child)
    for element in root.iter():
        for name, value in list(element.attrib.items()):
            del element.attrib[name]
            if not persists():
                element.set(name, value)
    ET.indent(root, "  ")
    return ET.tostring(root, encoding="unicode")


def kind_of(finding: Exception) -> str:
    """Returns what identifies a finding while its model is made smaller."""
    return getattr(finding, "kind", re.sub(r"[\d.e+-]+", "", str(finding)))


def run(limit: str, seed: int = 0, first: int = 0, count: int | None = None) -> Report:
    """Runs cases until the budget is spent, in separate processes."""
    report = Report(NAME, seed)
    models.warm()
    keys = {} if count is None else {"count": count}
    with contextlib.suppress(KeyboardInterrupt):
        for case, verdict, text in outcomes(lambda case: check(seed, case), numbered(limit, first), TIMEOUT, **keys):
            report.meet(case, verdict, text)
    return report


def share(report: Report) -> float:
    """Returns the part of the cases that were compared without an excuse."""
    compared = sum(n for verdict, n in report.counts.items() if verdict.startswith(("equal", "finding")))
    return compared / max(sum(report.counts.values()), 1)


def excused(report: Report) -> Counter:
    """Returns the number of cases by excuse: one case can have several."""
    counts = Counter()
    for verdict, number in report.counts.items():
        if verdict.startswith("excused: "):
            counts.update(dict.fromkeys(verdict.removeprefix("excused: ").split(", "), number))
    return counts


def main(arguments) -> int:
    parser = argparse.ArgumentParser(prog=f"python tests/fuzz {NAME}", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="one case, in this process")
    parser.add_argument("--budget", default="1000", help="cases, or seconds as in 60s")
    parser.add_argument("--first", type=int, default=0, help="the first case's number")
    parser.add_argument("--processes", type=int, help="number of processes")
    parser.add_argument("--show", action="store_true", help="print the model, with the features that a finding needs")
    given = parser.parse_args(arguments)
    if given.case is None:
        report = run(given.budget, given.seed, given.first, given.processes)
        print(report)
        print(f"compared: {share(report):.0%}, at least {LEAST:.0%}")
        print("excused: " + (", ".join(f"{n} {reason}" for reason, n in excused(report).most_common()) or "none"))
        return len(report.findings) > 0 or share(report) < LEAST
    if given.show:
        chosen = features(given.seed, given.case)
        verdict, finding = examine(given.seed, given.case, chosen)
        if verdict == "finding":
            chosen = minimized(given.seed, given.case, chosen, finding)
            print(shrunk(given.seed, given.case, chosen, finding))
        else:
            print(build(chosen).text())
    print(*check(given.seed, given.case))
    return 0
