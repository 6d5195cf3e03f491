"""Tests an installation in seconds: closed forms, MuJoCo, precision, batches and threads.

    featherlane diagnose --self-test

Each test simulates a bundled or a small model and states what it found.  It shows that the kernels which were compiled
for this processor compute correct, reproducible results with the installed MuJoCo and NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import featherlane as fl

BALL = '<mujoco><worldbody><body pos="0 0 9"><freejoint/><geom size=".1" mass="2"/></body></worldbody></mujoco>'
BOX = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 .1"><freejoint/>
<geom type="box" size=".1 .1 .1" mass="2"/></body></worldbody></mujoco>"""
STEPS = 100
ROUNDING = 1e-12  # relative to the distance; 100 sums of doubles round by less
CONVERGED = 1e-9  # relative difference of two solvers that both have converged
SINGLE = 1e-5  # relative difference of float32 after 100 steps without contact


@dataclass(frozen=True)
class Outcome:
    """Holds the result of one test: its name, whether it passed, and the measured value."""

    test: str
    passed: bool
    seen: str


def self_test() -> Iterator[Outcome]:
    """Yields the outcome of each test; a test that raises has failed, with the error as its value."""
    for test, run in TESTS.items():
        try:
            passed, seen = run()
        except Exception as error:  # every failure is reported, and the next test runs
            passed, seen = False, f"{type(error).__name__}: {error}"
        yield Outcome(test, passed, seen)


def _free_fall() -> tuple[bool, str]:
    """Compares a falling ball with semi-implicit Euler's sum: z0 - z = g h^2 n (n + 1) / 2."""
    model = fl.load(BALL)
    data = fl.Data(model)
    data.step(STEPS)
    exact = 9.81 * float(model.opt.timestep) ** 2 * STEPS * (STEPS + 1) / 2
    return _below(abs(9.0 - data.qpos[2] - exact) / exact, ROUNDING)


def _resting_force() -> tuple[bool, str]:
    """Compares the contact force of a resting box with its weight."""
    data = fl.Data(fl.load(BOX))
    data.step(1000)
    weight = 2.0 * 9.81
    return _below(abs(data.qfrc_constraint[2] - weight) / weight, 1e-6)


def _arm_against_mujoco() -> tuple[bool, str]:
    """Compares positions of the arm after 100 steps with those of the installed MuJoCo."""
    import mujoco

    model = fl.bundled("arm")
    model.opt.tolerance = 0.0
    compiled, data = model.to_mujoco(), fl.Data(model)
    theirs = mujoco.MjData(compiled)
    theirs.qvel[:] = data.qvel[:] = np.linspace(-0.5, 0.5, model.nv)
    for _ in range(STEPS):
        mujoco.mj_step(compiled, theirs)
    data.step(STEPS)
    return _below(np.abs(data.qpos - theirs.qpos).max() / np.abs(theirs.qpos).max(), CONVERGED)


def _alone_and_in_a_batch() -> tuple[bool, str]:
    """Compares the bits of a humanoid alone with the same humanoid among 11 others, on one and on two threads."""
    model = fl.bundled("humanoid")
    control = np.random.default_rng(0).uniform(-1, 1, (12, STEPS, model.nu))
    data = fl.Data(model)
    alone = np.asarray(data.rollout(STEPS, control=control[7], record=("qpos",))["qpos"])
    differ = 0
    for threads in (1, 2):
        batch = fl.Batch(model, nworld=12, nthread=threads)
        differ += int((np.asarray(batch.rollout(STEPS, control=control, record=("qpos",))["qpos"])[7] != alone).sum())
    return differ == 0, f"{differ} of {2 * alone.size} values differ"


def _single_precision() -> tuple[bool, str]:
    """Compares a falling double pendulum in float32 with float64."""
    ends = []
    for dtype in ("float64", "float32"):
        batch = fl.Batch(fl.bundled("double_pendulum"), nworld=3, dtype=dtype)
        batch.qpos[:] = np.array([[1.0], [0.5], [-1.0]])
        batch.step(STEPS)
        ends.append(np.asarray(batch.qpos, dtype=np.float64))
    return _below(np.abs(ends[0] - ends[1]).max() / np.abs(ends[0]).max(), SINGLE)


def _below(error: float, limit: float) -> tuple[bool, str]:
    return bool(error <= limit), f"relative error {error:.1e}, allowed {limit:.0e}"


TESTS: dict[str, Callable[[], tuple[bool, str]]] = {
    "free fall against the exact sum": _free_fall,
    "contact force of a resting box": _resting_force,
    "arm against the installed MuJoCo": _arm_against_mujoco,
    "bits of one world, a batch and two threads": _alone_and_in_a_batch,
    "float32 against float64": _single_precision,
}
