"""`diagnose`: runs all checks on a model and sorts the findings by severity."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from featherlane import Model
from featherlane.apps.doctor.examined_model import ExaminedModel
from featherlane.apps.doctor.finding import SEVERITIES, Finding, Sign
from featherlane.apps.doctor.registry import CHECKS, Check
from featherlane.errors import ModelError, UnsupportedFeatureError, near
from featherlane.extension import load_unchecked

NAMES = "are names of checks"


def diagnose(source: Any, checks: Iterable[str] = ()) -> list[Finding]:
    """Checks a model in qpos0 and in each keyframe, and returns the findings.

    The model is not changed.  The checks include a trial simulation of a second, or 500 steps, from each start.

    Args:
        source: a Model, with its edits, or a source that `load` takes.
        checks: names of checks; empty for all checks of docs/diagnostics.md.

    Returns:
        Findings: errors first, then warnings, then notes.  A rejected model has only errors, which give the reasons.

    Raises:
        ModelError: the source cannot be found, read or compiled, or a check does not exist.
    """
    wanted = _wanted(checks)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # elements that the URDF reader drops become findings
            model = source if isinstance(source, Model) else load_unchecked(source)
    except UnsupportedFeatureError as error:
        return [_refused(feature) for feature in error.features]
    try:
        model.check_edits()
    except ModelError as error:
        return [_impossible(str(error))]
    missing = [_missing(line) for line in model.missing_functions()]
    if missing:
        return missing
    examined = ExaminedModel(model)
    found = [finding for each in wanted for finding in _examine(examined, each)]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))


def all_checks() -> dict[str, Check]:
    """Returns every check by name, in list order."""
    from featherlane.apps.doctor import (
        actuators,
        contacts,
        cost,
        differences,
        edits,
        inertia,
        motion,
        precision,
        rest,
        rows,
        sensors,
        springs,
        starts,
        trial,
        unused,
    )

    first, last = (differences, edits, unused, trial, motion, rest, starts), (sensors, contacts, precision, cost)
    order = (*first, inertia, springs, rows, actuators, *last)
    rank = {module.__name__.rpartition(".")[2]: k for k, module in enumerate(order)}
    return {each.name: each for each in sorted(CHECKS.values(), key=lambda each: rank[each.subject])}


def _wanted(names: Iterable[str]) -> list[Check]:
    known = all_checks()
    chosen = set()
    if not isinstance(names, Iterable):
        raise ModelError(f"checks: got {type(names).__name__}, allowed {NAMES}")
    for name in (names,) if isinstance(names, str) else names:
        if not isinstance(name, str):
            raise ModelError(f"checks: got {name!r}, allowed are names of checks")
        if name not in known:
            raise ModelError(f"checks: unknown check {name!r}{near(name, known)}")
        chosen.add(name)
    return [each for each in known.values() if not chosen or each.name in chosen]


def _examine(examined: ExaminedModel, each: Check) -> Iterator[Finding]:
    """Yields the findings of one check."""
    signs: list[Sign] = []
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # overflow becomes a finding
            signs.extend(each.look(examined))
    except (np.linalg.LinAlgError, OverflowError) as error:
        advice = "use SI units and values far below 1e300"
        yield CHECKS["numbers-overflow"].finding(Sign("model", -1, f"{each.name}: {error}", advice), "the model")
    for sign in signs:
        yield each.finding(sign, examined.label(sign.kind, sign.id))


def _missing(line: str) -> Finding:
    """Returns the finding for an unregistered function, `actuator 'a': gain`."""
    element, _, what = line.partition(": ")
    seen = f"{what} is of type user, but no function is registered"
    advice = "register a function with featherlane.set_user_actuator"
    return CHECKS["function-missing"].finding(Sign("actuator", -1, seen, advice), element)


def _refused(feature: str) -> Finding:
    """Returns the finding for an unsupported feature, `equality 'pull': flex`."""
    element, _, what = feature.partition(": ")
    seen, advice = f"{what or 'used'}: not supported", "remove the element, or simulate this model with MuJoCo"
    return CHECKS["not-computed"].finding(Sign(element.split()[0], -1, seen, advice), element)


def _impossible(message: str) -> Finding:
    """Returns the finding for an out-of-range value of an edited model, `body_mass of body 'a': got -1, ...`."""
    element, _, what = message.partition(": ")
    return CHECKS["impossible-number"].finding(Sign("model", -1, what, "set an allowed value"), element)
