"""Loads and steps every model of a wheel: reports errors, and non-finite worlds.

As a program, `python tests/robots models [wheel ...]` prints one line for each model, with the reasons of those
left out.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import NamedTuple

import mujoco
import numpy as np

import featherlane as fl
from robots import wheels

# wheels whose models are searched for
ROBOTS = ("gymnasium_robotics", "robosuite", "robosuite_models", "gym_aloha", "mjx", "metaworld", "myosuite")
# M is singular: four slides in three dimensions, where MuJoCo warns and divides by 1e-15
NO_TRUTH = {"mjx/actuator/general_dyntype"}
# palm and fingers touch without inverse weight, rows of D = 1e15: long doubles find two minima from two starts
NO_TRUTH |= {f"robosuite_models/grippers/schunk_svh_{side}_hand" for side in ("left", "right")}
NWORLD = 8
HOLD = 20  # steps with equal controls


@dataclass
class Survey:
    """Results for a wheel's models, by name.

    Attributes:
        unreadable: those that MuJoCo does not load by themselves, with its message: parts of other models.
        left_out: those that raise an error, with the kinds of unsupported features.
        bad: those that load but have a non-finite world, with the reason.
        good: all others, with the largest number of contacts of a world.
    """

    unreadable: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, set[str]] = field(default_factory=dict)
    bad: dict[str, str] = field(default_factory=dict)
    good: dict[str, int] = field(default_factory=dict)


def kind(feature: str) -> str:
    """Returns the kind of a feature that an error names, without its element: `collision of mesh with sdf`."""
    head, _, tail = feature.partition(": ")
    if head.startswith("option"):
        number = re.match(r"[-\d.]", tail)
        return head if number else f"{head} {tail.split(';')[0]}"
    return tail if tail.startswith("collision of") else f"{head.split()[0]} {tail}"


def survey(names, nstep: int, report=lambda line: None) -> Survey:
    """Loads each model and steps it nstep times in 8 worlds under random controls."""
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
        met = run(model, mj, nstep)
        if met.trouble:
            found.bad[name] = met.trouble
        else:
            found.good[name] = met.ncon
        size = f"nv {mj.nv}, {model.ncand} pairs, {met.ncon} contacts, {time.perf_counter() - start:.1f} s"
        report(f"{'BAD' if met.trouble else 'good':<9} {name}: {size} {met.trouble}")
    return found


class Run(NamedTuple):
    """Results of 8 worlds.

    Attributes:
        ncon: most contacts of a world.
        trouble: the failure, or nothing.
    """

    ncon: int
    trouble: str


def run(model, mj, nstep: int) -> Run:
    """Steps 8 worlds under random controls.

    Some arms are so light, and their motors so strong, that MuJoCo's own worlds diverge under full controls: then
    a small fraction of the controls must succeed.
    """
    met = Run(0, "")
    for part in (1.0, 1e-3, 1e-5):
        controls = random_controls(mj, nstep, part)
        batch, ncon = fl.Batch(model, NWORLD, nthread=1), 0
        for control in controls:
            batch.ctrl = control
            batch.step(HOLD)
            ncon = max(ncon, int(batch.ncon.max()))
        counts = {name: int(n.sum()) for name, n in batch.status.items() if name in ("non_finite", "contacts_full")}
        met = Run(ncon, ", ".join(f"{name}: {n}" for name, n in counts.items() if n))
        if not met.trouble or not counts["non_finite"] or not turns_bad(mj, controls):
            break
    return met


def control_range(mj: mujoco.MjModel) -> tuple[np.ndarray, np.ndarray]:
    """Returns the least and the greatest controls, -1 and 1 without a range."""
    limited = np.asarray(mj.actuator_ctrllimited, bool)
    low, high = (np.where(limited, mj.actuator_ctrlrange[:, k], (-1.0, 1.0)[k]) for k in (0, 1))
    return low, high


def random_controls(mj, nstep: int, part: float) -> np.ndarray:
    """Returns (nstep / HOLD, NWORLD, nu): controls about the middle of their range, or about 0 without a range."""
    low, high = control_range(mj)
    shape = (max(nstep // HOLD, 1), NWORLD, mj.nu)
    return (low + high) / 2 + part * (high - low) / 2 * np.random.default_rng(0).uniform(-1, 1, shape)


def turns_bad(mj, controls: np.ndarray) -> bool:
    """Returns whether one of MuJoCo's worlds diverges under these controls."""
    numbers = [getattr(mujoco.mjtWarning, f"mjWARN_BAD{name}") for name in ("QPOS", "QVEL", "QACC")]
    for w in range(NWORLD):
        data = mujoco.MjData(mj)
        for control in controls[:, w]:
            data.ctrl[:] = control
            mujoco.mj_step(mj, data, HOLD)
            if any(data.warning[number].number for number in numbers):
                return True
    return False


def main(arguments: list[str]) -> int:
    for wheel in arguments or ROBOTS:
        result = survey(wheels.models_in(wheel), 1000, lambda line: print(line, flush=True))
        counts = {part: len(getattr(result, part)) for part in ("good", "bad", "left_out", "unreadable")}
        print(f"{wheel}: {counts}\n")
    return 0
