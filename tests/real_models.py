"""Every model of a wheel: does it load, if not why, and does it step without a bad world?

As a program, `python tests/real_models.py [wheel ...]` prints one line for each model, with the reasons of those left
out.
"""

from __future__ import annotations

import re
import sys
import time
from dataclasses import dataclass, field

import mujoco
import numpy as np

import featherlane as fl
import wheels

ROBOTS = ("gymnasium_robotics", "robosuite", "mjx", "metaworld")  # wheels whose models are looked for
NWORLD = 8


@dataclass
class Survey:
    """What became of a wheel's models, by name.

    Attributes:
        unreadable: those that MuJoCo does not load by themselves, with its message: parts of other models.
        left_out: those that are refused, with the kinds of features that are the reasons.
        bad: those that load, in which a world's numbers turned bad, with what was met.
        good: all others, with the most contacts of a world.
    """

    unreadable: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, set[str]] = field(default_factory=dict)
    bad: dict[str, str] = field(default_factory=dict)
    good: dict[str, int] = field(default_factory=dict)


def kind(feature: str) -> str:
    """The kind of a feature that an error names, without its element: `equality weld`, `collision of mesh with sdf`."""
    head, _, tail = feature.partition(": ")
    if head.startswith("option"):
        number = re.match(r"[-\d.]", tail)
        return head if number else f"{head} {tail.split(';')[0]}"
    return tail if tail.startswith("collision of") else f"{head.split()[0]} {tail}"


def survey(names, nstep: int, report=lambda line: None) -> Survey:
    """Load each model and step it nstep times in 8 worlds under random controls."""
    found = Survey()
    for name in names:
        start = time.perf_counter()
        try:
            mj = mujoco.MjModel.from_xml_path(str(wheels.model_path(name)))
        except ValueError as error:
            found.unreadable[name] = str(error).strip().replace("\n", " ")
            continue
        try:
            model = fl.load(mj)
        except fl.UnsupportedFeatureError as error:
            found.left_out[name] = {kind(feature) for feature in error.features}
            report(f"left out  {name}: {', '.join(sorted(found.left_out[name]))}")
            continue
        ncon, trouble = run(model, nstep)
        if trouble:
            found.bad[name] = trouble
        else:
            found.good[name] = ncon
        size = f"nv {mj.nv}, {model.ncand} pairs, {ncon} contacts, {time.perf_counter() - start:.1f} s"
        report(f"{'BAD' if trouble else 'good':<9} {name}: {size} {trouble}")
    return found


def run(model, nstep: int) -> tuple[int, str]:
    """Steps under random controls that change every 20th step: most contacts of a world, and what went wrong."""
    rng = np.random.default_rng(0)
    limited = np.asarray(model.actuator_ctrllimited, bool)
    low, high = (np.where(limited, model.actuator_ctrlrange[:, k], (-1.0, 1.0)[k]) for k in (0, 1))
    batch, ncon = fl.Batch(model, NWORLD, nthread=1), 0
    for _ in range(0, nstep, 20):
        batch.ctrl = rng.uniform(low, high, batch.ctrl.shape)
        batch.step(min(20, nstep))
        ncon = max(ncon, int(batch.ncon.max()))
    troubles = [f"{n}: {int(count.sum())}" for n, count in batch.status.items() if n != "not_converged" and count.any()]
    if not (np.isfinite(batch.qpos).all() and np.isfinite(batch.qvel).all()):
        troubles.append("a state that is not finite")
    return ncon, ", ".join(troubles)


if __name__ == "__main__":
    for wheel in sys.argv[1:] or ROBOTS:
        result = survey(wheels.models_in(wheel), 1000, lambda line: print(line, flush=True))
        counts = {part: len(getattr(result, part)) for part in ("good", "bad", "left_out", "unreadable")}
        print(f"{wheel}: {counts}\n")
