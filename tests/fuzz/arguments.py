"""Arguments of every public function, method and setter, sampled by hypothesis: a result, or one clear error.

A site is a callable with valid arguments; a call replaces one or two of them by invalid ones: another type,
shape, dtype or value, or almost the valid one.  Allowed are a result, and an error of the documented kinds whose text
names an argument, or its type, and the allowed or given value.  After an error every array and every setting is
unchanged; after a result a step of the world and of the batch ends with finite values or with a status.

sites.py finds the sites: the test fails for any public callable without valid arguments there.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import warnings
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import featherlane as fl
from fuzz.report import Report, numbered
from fuzz.sites import WORDS, Site, World, sites
from fuzz.values import Odd, wrong_value
from fuzz.workers import enter, outcomes

NAME = "arguments"
TIMEOUT = 120.0  # s
EXAMPLES = 40  # calls of a site in one case
MOST = {
    "nstep": 3,
    "nworld": 20,
    "num_envs": 20,
    "frame_skip": 5,
    "n": 50,
    "nthread": 4,
    "given_contacts": 20,
    "maxiter": 100,
    "iterations": 100,
}
try:
    from gymnasium.error import Error as gymnasium_error
except ImportError:
    gymnasium_error = ()
KINDS = (fl.FeatherlaneError, MemoryError)


# ---- a call ----------------------------------------------------------------------------------------------------------
class Finding(AssertionError):
    """Reports a call that violates the rules."""


def shown(value: Any) -> str:
    text = f"{type(value).__name__} {value!r}"
    if isinstance(value, np.ndarray):
        text = (
            f"array {value.dtype.str} {value.shape} {value.ravel()[:3]!r}"
            if value.size < 1e6
            else f"array {value.shape}"
        )
    return text.replace("\n", " ")[:160]


def is_clear(error: Exception, names, site: Site) -> bool:
    """Returns whether an error names what was wrong."""
    text = str(error)
    if isinstance(error, MemoryError):
        return "allocate" in text
    words = {word for name in (*names, *site.valid) for word in (name, *WORDS.get(name, ()))} | set(site.words)
    patterns = (rf"\b{re.escape(word)}\b" if len(word) < 3 else re.escape(word) for word in words)
    return text in Odd.TEXTS or any(re.search(pattern, text) for pattern in patterns)


def capped(name: str, value: Any) -> Any:
    """Limits counts that cost time or memory; huge ones stay, because they must raise an error."""
    if name in MOST and isinstance(value, int | np.integer) and not isinstance(value, bool):
        return min(int(value), MOST[name]) if name == "nstep" or value < 10**9 else value
    return value


def attempt(world: World, site: Site, wrong: dict[str, Any]) -> bool:
    """Calls a site with wrong arguments; returns whether the world may have changed.

    Raises:
        Finding: the outcome is not allowed.
    """
    arguments = {name: make(world) for name, make in site.valid.items()} | wrong
    if "out" in arguments and not {"out", "control"} & wrong.keys():
        arguments["out"] = None  # its shape follows from the others
    what = f"{site.name}({', '.join(f'{name}={shown(value)}' for name, value in wrong.items())})"
    enter(what)
    before = world.seen()
    try:
        site.call(world, **arguments)
    except KINDS as error:
        if not is_clear(error, wrong, site):
            raise Finding(f"{what}: {type(error).__name__} names no argument: {error}") from error
        after = world.seen()
        changed = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
        if changed:
            raise Finding(f"{what}: refused ({error}), but {sorted(changed)[:4]} changed") from error
        return False
    except gymnasium_error as error:
        if not is_clear(error, wrong, site) and "Seed" not in str(error):
            raise Finding(f"{what}: {type(error).__name__} names no argument: {error}") from error
        return True
    except ZeroDivisionError as error:
        if not any(callable(value) for value in wrong.values()):
            raise Finding(f"{what}: ZeroDivisionError: {error}") from error
        return True  # raised by the user's function
    except Exception as error:
        if str(error) in Odd.TEXTS and any(isinstance(value, Odd) for value in wrong.values()):
            return True  # raised by the object itself
        raise Finding(f"{what}: {type(error).__name__}: {error}") from error
    try:
        step(world, what)
    except Finding:
        raise
    except Exception as error:
        raise Finding(f"{what}, then a look at its status: {type(error).__name__}: {error}") from error
    return True


def step(world: World, what: str) -> None:
    """Steps an object after a wrong argument: finite values, a status, or a clear error are allowed."""
    m, d, b, s = world.m, world.d, world.b, world.s
    # twice: the result of a step is checked at the start of the next one
    for name, run in (
        ("fl.step", lambda: fl.step(m, d, 2)),
        ("batch.step", lambda: b.step(2)),
        ("spread.step", s.step),
    ):
        try:
            run()
        except fl.FeatherlaneError:
            return  # values in a live array are checked by the next call
        except Exception as error:
            raise Finding(f"{what}, then {name}: {type(error).__name__}: {error}") from error
    if not d.status["non_finite"]:
        for name in ("qpos", "qvel", "act", "qacc"):
            if not np.isfinite(getattr(d, name)).all():
                raise Finding(f"{what}, then fl.step: {name} is not finite, without a status")
    good = b.status["non_finite"] == 0
    for name in ("qpos", "qvel", "act"):
        if not np.isfinite(getattr(b, name)[good]).all():
            raise Finding(f"{what}, then batch.step: {name} is not finite, without a status")


def trial(site: Site, seed_of_case: int, examples: int) -> tuple[int, str]:
    """Calls sites; returns how often, and the finding, if any, minimized by hypothesis."""
    kept, calls = {"world": World()}, [0]
    names = list(site.valid)

    @seed(seed_of_case)
    @settings(
        max_examples=examples, database=None, deadline=None, print_blob=False, phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck), report_multiple_bugs=False,
    )  # fmt: skip
    @given(st.data())
    def one(data):
        world = kept["world"]
        calls[0] += 1
        count = 1 if len(names) < 2 else data.draw(st.sampled_from((1, 1, 1, 2)))
        chosen = data.draw(st.lists(st.sampled_from(names), min_size=count, max_size=count, unique=True))
        wrong = {name: capped(name, wrong_value(data.draw, world, site.valid[name](world))) for name in chosen}
        try:
            if attempt(world, site, wrong) and not world.put_back():
                kept["world"] = World()
        except Finding:
            kept["world"] = World()
            raise

    if not names:
        return 0, ""
    try:
        one()
    except Finding as finding:
        return calls[0], str(finding)
    return calls[0], ""


def check(number: int, case: int, found: dict[str, Site]) -> tuple[str, str]:
    """Runs a case: calls of one site."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    site = found[sorted(found)[case % len(found)]]
    _, text = trial(site, number * 1_000_003 + case, EXAMPLES)
    return ("finding", text) if text else ("good", "")


def refused(found: dict[str, Site]) -> list[str]:
    """Returns sites that raise an error for their valid arguments."""
    world, texts = World(), []
    for site in found.values():
        try:
            site.call(world, **{name: make(world) for name, make in site.valid.items()})
        except Exception as error:
            texts.append(f"{site.name} with valid arguments: {type(error).__name__}: {error}")
            world = World()
    return texts


def run(limit: str, number: int = 0, first: int = 0, count: int | None = None) -> Report:
    """Runs cases until the budget is spent, in separate processes."""
    report, found = Report(NAME, number), sites()
    for text in refused(found):
        report.meet(-1, "finding", text)
    keys = {} if count is None else {"count": count}
    with contextlib.suppress(KeyboardInterrupt):
        for case, verdict, text in outcomes(
            lambda case: check(number, case, found), numbered(limit, first), TIMEOUT, **keys
        ):
            report.meet(case, verdict, text)
    return report


def main(arguments) -> int:
    parser = argparse.ArgumentParser(prog=f"python tests/fuzz {NAME}", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="one case, in this process")
    parser.add_argument("--budget", default="1000", help=f"cases of {EXAMPLES} calls, or seconds as in 60s")
    parser.add_argument("--first", type=int, default=0, help="the first case's number")
    asked = parser.parse_args(arguments)
    if asked.case is None:
        report = run(asked.budget, asked.seed, asked.first)
        print(report)
        return len(report.findings) > 0
    print(*check(asked.seed, asked.case, sites()))
    return 0
