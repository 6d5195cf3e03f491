"""Compares the joints of a robot that Featherlane loaded with those that Pinocchio read from the same file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

TOLERANCE = 1e-6  # relative to the size of the robot, its mass, and both
NAMED = re.compile(r"(link|joint) ('[^']*'|\"[^\"]*\")")


def differences(ours: dict[str, Any], reference: dict[str, Any]) -> list[str]:
    """Returns lines that describe the differences, without those that were reported.

    Args:
        ours: an answer of `featherlane_loader.py`.
        reference: an answer of `pinocchio_reader.py` for the same file.
    """
    reported = _reported(ours)
    found: dict[str, dict] = {}
    for joint in ours["joints"]:
        found.setdefault(joint["name"], joint)  # the first of a planar joint
    expected = {joint["name"]: joint for joint in reference["joints"]}
    lines = [f"joint {name!r} is missing" for name in expected if name not in found]
    planar = {name for name, joint in expected.items() if len(joint["columns"]) == 3}
    others = (name for name in found if name not in expected and not any(name.startswith(each) for each in planar))
    lines += [f"joint {name!r} is no moving joint of the file" for name in others]
    points = [place for joint in expected.values() for place in (joint["anchor"], joint["com"])]
    size = max(float(np.ptp(points, axis=0).max()), 1e-3) if points else 1.0
    for name in [name for name in expected if name in found]:
        lines += _differences(found[name], expected[name], size, reported)
    return lines


def _reported(ours: dict[str, Any]) -> dict[str, set[str]]:
    """Returns the names of links and joints whose inertia or limits were reported as changed or not read."""
    names: dict[str, set[str]] = {"link": set(), "joint": set()}
    lost = [line for line in ours["dropped"] if "<inertia" in line or "no limits" in line]
    for kind, name in NAMED.findall("\n".join([*ours["repairs"], *lost])):
        names[kind].add(name[1:-1])
    return names


def _differences(mine: dict, joint: dict, size: float, reported: dict[str, set[str]]) -> Iterator[str]:
    label = f"joint {joint['name']!r}"
    if not np.allclose(mine["anchor"], joint["anchor"], rtol=0, atol=TOLERANCE * size):
        yield f"{label}: position {mine['anchor']}, Pinocchio {joint['anchor']}"
    if len(joint["columns"]) == 1:
        linear, angular = np.split(np.array(joint["columns"][0]), 2)
        kind, axis = ("hinge", angular) if angular.any() else ("slide", linear)
        if mine["kind"] != kind or not np.allclose(mine["axis"], axis, rtol=0, atol=TOLERANCE):
            yield f"{label}: {mine['kind']} about {mine['axis']}, Pinocchio {kind} about {axis.tolist()}"
        if joint["name"] not in reported["joint"]:
            yield from _limits(label, mine, joint)
    if not reported["link"].intersection(joint["links"]):
        yield from _inertias(label, mine, joint, size)


def _limits(label: str, mine: dict, joint: dict) -> Iterator[str]:
    given = joint["limits"]
    limits = given if given is not None and np.isfinite(given).all() and given[0] < given[1] else None
    if (mine["limits"] is None) != (limits is None) or (limits is not None and not np.allclose(mine["limits"], limits)):
        yield f"{label}: limits {mine['limits']}, Pinocchio {given}"
    if not np.isclose(mine["damping"], joint["damping"], rtol=TOLERANCE):
        yield f"{label}: damping {mine['damping']}, Pinocchio {joint['damping']}"


def _inertias(label: str, mine: dict, joint: dict, size: float) -> Iterator[str]:
    if not np.isclose(mine["mass"], joint["mass"], rtol=TOLERANCE, atol=1e-12):
        yield f"{label}: mass {mine['mass']}, Pinocchio {joint['mass']}"
    elif joint["mass"] > 0:
        if not np.allclose(mine["com"], joint["com"], rtol=0, atol=TOLERANCE * size):
            yield f"{label}: centre of mass {mine['com']}, Pinocchio {joint['com']}"
        largest = np.abs(joint["inertia"]).max()
        if not np.allclose(mine["inertia"], joint["inertia"], rtol=0, atol=10 * TOLERANCE * largest):
            yield f"{label}: inertia {mine['inertia']}, Pinocchio {joint['inertia']}"
