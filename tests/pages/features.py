"""Lists the test of each kind of actuator, tendon, passive force and sensor: the table in docs/features.md.

A mark declares which groups of kinds a test compares, and in which models:

    @pytest.mark.covers("activation, gain, bias", lambda: [scene(name) for name in BRANCHES])

The kinds are read from the compiled models.  `python docs/features.py` writes the table, and raises an error for a kind
of MuJoCo's that is supported but has no test.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import mujoco
import numpy as np
import pytest

HERE = Path(__file__).parents[1]
FOLDERS = ("dynamics", "constraint", "sensor")
BEGIN, END = "<!-- features:begin -->", "<!-- features:end -->"

# group: the model's field, and the enumeration of its values
ENUMS = {
    "transmission": ("actuator_trntype", mujoco.mjtTrn),
    "activation": ("actuator_dyntype", mujoco.mjtDyn),
    "gain": ("actuator_gaintype", mujoco.mjtGain),
    "bias": ("actuator_biastype", mujoco.mjtBias),
    "sensor": ("sensor_type", mujoco.mjtSensor),
}
NO_KIND = {"undefined"}
TRAITS = {
    "control": {
        "ctrlrange": lambda mj: mj.actuator_ctrllimited,
        "forcerange": lambda mj: mj.actuator_forcelimited,
        "actrange": lambda mj: mj.actuator_actlimited,
        "actearly": lambda mj: mj.actuator_actearly,
        "delay": lambda mj: mj.actuator_delay,
        "disabled group": lambda mj: [mj.opt.disableactuator],
        "joint actuatorfrcrange": lambda mj: mj.jnt_actfrclimited,
        "tendon actuatorfrcrange": lambda mj: mj.tendon_actfrclimited,
    },
    "tendon": {
        "fixed": lambda mj: mj.wrap_type == mujoco.mjtWrap.mjWRAP_JOINT,
        "spatial": lambda mj: mj.wrap_type == mujoco.mjtWrap.mjWRAP_SITE,
        "pulley": lambda mj: mj.wrap_type == mujoco.mjtWrap.mjWRAP_PULLEY,
        "sphere": lambda mj: mj.wrap_type == mujoco.mjtWrap.mjWRAP_SPHERE,
        "cylinder": lambda mj: mj.wrap_type == mujoco.mjtWrap.mjWRAP_CYLINDER,
    },
    "tendon force": {
        "spring": lambda mj: mj.tendon_stiffness,
        "damping": lambda mj: mj.tendon_damping,
        "armature": lambda mj: mj.tendon_armature,
        "plastic spring": lambda mj: mj.tendon_plasticadr >= 0,
    },
    "tendon constraint": {
        "limit": lambda mj: mj.tendon_limited,
        "friction loss": lambda mj: mj.tendon_frictionloss,
        "equality": lambda mj: mj.eq_type == mujoco.mjtEq.mjEQ_TENDON,
    },
    "passive force": {
        "joint spring": lambda mj: mj.jnt_stiffness,
        "polynomial spring": lambda mj: mj.jnt_stiffnesspoly,
        "plastic spring": lambda mj: mj.jnt_plasticadr >= 0,
        "joint damper": lambda mj: mj.dof_damping,
        "polynomial damper": lambda mj: mj.dof_dampingpoly,
        "gravity compensation": lambda mj: mj.body_gravcomp,
        "fluid force, inertia box model": lambda mj: _has_fluid(mj) & (mj.geom_fluid[:, 0] == 0),
        "fluid force, ellipsoid model": lambda mj: _has_fluid(mj) & (mj.geom_fluid[:, 0] > 0),
        "wind": lambda mj: mj.opt.wind,
    },
}
GROUPS = (*ENUMS, *TRAITS)


def _has_fluid(mj: mujoco.MjModel) -> bool:
    return mj.opt.density > 0 or mj.opt.viscosity > 0


def _word(value) -> str:
    """Returns an enum's value as MJCF spells it."""
    return value.name.split("_", 1)[1].lower()


def kinds(group: str) -> list[str]:
    """Returns every kind of a group."""
    if group in TRAITS:
        return list(TRAITS[group])
    words = [_word(value) for value in ENUMS[group][1].__members__.values()]
    return [word for word in words if word not in NO_KIND]


def kinds_in(mj: mujoco.MjModel, group: str) -> set[str]:
    """Returns the kinds of a group that a model has."""
    if group in TRAITS:
        return {kind for kind, has in TRAITS[group].items() if np.any(has(mj))}
    field, enum = ENUMS[group]
    return {_word(enum(int(value))) for value in getattr(mj, field)}


def _compiled(scene: str | mujoco.MjModel) -> mujoco.MjModel:
    return scene if isinstance(scene, mujoco.MjModel) else mujoco.MjModel.from_xml_string(scene)


class Marks:
    """Collects the kinds that tests cover, as a pytest plugin: (group, kind) -> tests."""

    def __init__(self):
        self.tests: dict[tuple[str, str], list[str]] = {}

    def pytest_collection_finish(self, session):
        seen = set()
        for item in session.items:
            place = f"{Path(item.path).relative_to(HERE.parent)}::{getattr(item, 'originalname', item.name)}"
            if place not in seen:
                seen.add(place)
                for group, kind in self._covered(item):
                    self.tests.setdefault((group, kind), []).append(place)

    @staticmethod
    def _covered(item) -> Iterator[tuple[str, str]]:
        found = set()
        for mark in item.iter_markers("covers"):
            names, scenes = mark.args
            groups = [group for group in GROUPS if group in names.split(", ")]
            assert groups, f"{item.nodeid}: covers {names!r}, allowed are {', '.join(GROUPS)}"
            for mj in map(_compiled, scenes()):
                found |= {(group, kind) for group in groups for kind in kinds_in(mj, group)}
        yield from sorted(found)


def marks() -> dict[tuple[str, str], list[str]]:
    """Returns (group, kind) -> tests, collected in a separate process."""
    command = [sys.executable, "-m", "pages.features"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE, check=False, timeout=3600)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    lines = [line.split("\t") for line in done.stdout.splitlines() if line.startswith("covers\t")]
    return {(group, kind): tests for _, group, kind, *tests in lines}


def table(tests: dict[tuple[str, str], list[str]], refused: dict[str, set[str]]) -> str:
    """Returns the table of docs/features.md.

    Args:
        tests: `marks()`.
        refused: unsupported kinds by group, which raise an error.

    Raises:
        ValueError: kinds that are supported but have no test.
    """
    lines, bare = ["| group | kind | test |", "|---|---|---|"], []
    for group in GROUPS:
        for k, kind in enumerate(kinds(group)):
            places = tests.get((group, kind), [])
            if not places and kind not in refused.get(group, ()):
                bare.append(f"{group} {kind}")
            cell = "<br>".join(f"`{place.removeprefix('tests/')}`" for place in places)
            lines.append(f"| {group if k == 0 else ''} | {kind} | {cell or 'unsupported: an error'} |")
    if bare:
        raise ValueError(f"kinds with neither a test nor a refusal: {bare}")
    return "\n".join(lines)


def section(page: str) -> str:
    """Returns the part of the page between the table's markers."""
    return page.split(BEGIN)[1].split(END)[0].strip()


def main() -> int:
    """Collects tests and prints one covered kind per line."""
    plugin = Marks()
    folders = [str(HERE / name) for name in FOLDERS]
    code = pytest.main(["--collect-only", "-q", "-m", "", "-p", "no:cacheprovider", *folders], plugins=[plugin])
    for (group, kind), places in sorted(plugin.tests.items()):
        print("covers", group, kind, *places, sep="\t")
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
