"""Which test checks each kind of actuator, tendon, passive force and sensor: the README's table, from the tests' marks.

A test says what it compares with an oracle or a law by `@pytest.mark.covers("sensor touch", ...)`, a case of a
parametrised test by the same mark on its `pytest.param`.  `python docs/features.py` writes the table.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import mujoco
import pytest

HERE = Path(__file__).parent
BEGIN, END = "<!-- features:begin -->", "<!-- features:end -->"

# enumerations of MuJoCo, and their last name that is no kind
ENUMS = {
    "transmission": (mujoco.mjtTrn, {"undefined"}),
    "activation": (mujoco.mjtDyn, set()),
    "gain": (mujoco.mjtGain, set()),
    "bias": (mujoco.mjtBias, set()),
    "sensor": (mujoco.mjtSensor, set()),
}
OTHERS = {
    "tendon": "fixed spatial pulley sphere cylinder spring damping armature frictionloss limit equality springyield",
    "passive": "inertiabox ellipsoid wind gravcomp stiffnesspoly dampingpoly springyield",
    "control": "ctrlrange forcerange actrange actearly delay group jointforcerange tendonforcerange damping armature",
}


def kinds() -> dict[str, list[str]]:
    """Every kind by group, as MJCF spells it."""
    found = {}
    for group, (enum, without) in ENUMS.items():
        words = [name.split("_", 1)[1].lower() for name in enum.__members__]
        found[group] = [word for word in words if word not in without]
    return found | {group: words.split() for group, words in OTHERS.items()}


class Marks:
    """A pytest plugin that gathers the marks of collected tests."""

    def __init__(self):
        self.tests: dict[str, list[str]] = {}

    def pytest_collection_finish(self, session):
        for item in session.items:
            place = f"{Path(item.path).relative_to(HERE.parent)}::{getattr(item, 'originalname', item.name)}"
            for mark in item.iter_markers("covers"):
                for kind in mark.args:
                    tests = self.tests.setdefault(kind, [])
                    if place not in tests:
                        tests.append(place)


def marks() -> dict[str, list[str]]:
    """Tests by kind (`sensor touch`), from a collection in a process of its own."""
    command = [sys.executable, str(HERE / "feature_table.py")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parent, check=False)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    pairs = [line.split("\t") for line in done.stdout.splitlines() if line.startswith("covers\t")]
    return {kind: tests for _, kind, *tests in pairs}


def table(tests: dict[str, list[str]], refused: set[str]) -> str:
    """The README's table.

    Args:
        tests: `marks()`.
        refused: kinds that are an error with names.

    Raises:
        ValueError: a mark names no kind; a kind has neither a test nor a refusal.
    """
    every = kinds()
    unknown = sorted(set(tests) - {f"{group} {kind}" for group, names in every.items() for kind in names})
    open_kinds = [
        f"{group} {kind}"
        for group, names in every.items()
        for kind in names
        if f"{group} {kind}" not in tests and f"{group} {kind}" not in refused
    ]
    if unknown or open_kinds:
        raise ValueError(f"marks that name no kind: {unknown}; kinds without a test: {open_kinds}")
    lines = ["| | kind | checked by |", "|---|---|---|"]
    for group, names in every.items():
        for k, kind in enumerate(names):
            label = f"{group} {kind}"
            where = "<br>".join(f"`{test}`" for test in tests.get(label, ())) or "not computed: an error with names"
            lines.append(f"| {group if k == 0 else ''} | {kind} | {where} |")
    return "\n".join(lines)


def main() -> int:
    """Collect, and print the marks one per line."""
    plugin = Marks()
    folders = [str(HERE / name) for name in ("dynamics", "constraint", "sensor", "simulation") if (HERE / name).exists()]
    code = pytest.main(["--collect-only", "-q", "-m", "", "-p", "no:cacheprovider", *folders], plugins=[plugin])
    for kind, tests in sorted(plugin.tests.items()):
        print("covers", kind, *sorted(tests), sep="\t")
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
