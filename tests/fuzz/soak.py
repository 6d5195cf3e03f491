"""Soak: batches, rollouts, environments and single worlds for a long time: constant memory, no leaked threads or files.

A round runs every program for some steps.  Memory of the process, Python's blocks, threads, open files and memory
maps are counted after the warm-up and again at the end.  Growth with the number of rounds is a finding; caches of
Python and NumPy are a constant, SLACK.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import gc
import os
import pickle
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import featherlane as fl
from fuzz.report import Report
from scenes import sleep

NAME = "soak"
CHUNK = 25  # steps of a program in a round
WARM = 6  # rounds before the first count
NWORLD = 12
# allowed growth: bytes, blocks, and counts (a pool starts a thread only if none of its threads is idle)
SLACK = {"memory": 24 << 20, "blocks": 3000, "threads": 10, "files": 0, "maps": 40}
USER = """
<mujoco><worldbody><geom type="plane" size="5 5 1"/>
  <body pos="0 0 .5"><joint name="j" axis="0 1 0"/><geom type="capsule" size=".05" fromto="0 0 0 .3 0 0"/>
    <body pos=".3 0 0"><joint name="k" axis="0 1 0" damping=".1"/><geom size=".1"/></body></body></worldbody>
<actuator><general name="plain" joint="j" gaintype="user"/><general name="kernel" joint="k" gaintype="user"/></actuator>
<sensor><user name="own" dim="1"/></sensor></mujoco>
"""


@fl.kernel
def gain(m, d, i):
    """Returns a user's gain."""
    return 0.3 - d.qvel[0]


@fl.kernel
def control(m, d):
    """Computes a user's control."""
    for i in range(m.nu):
        d.ctrl[i] = 0.1 - 0.5 * d.qpos[i]


# ---- programs: each creates its objects, and returns a function that runs so many steps ------------------------------
def driven(name: str, contact_model: str, dtype: str) -> Callable[[int], None]:
    """Steps with random controls, resets of some worlds, sometimes a non-finite value."""
    model, rng = fl.bundled(name), np.random.default_rng(0)
    model.opt.contact_model = contact_model
    batch = fl.Batch(model, NWORLD, nthread=2, dtype=dtype)
    batch.bind("xpos")

    def run(nstep):
        batch.ctrl[:] = rng.uniform(-1, 1, batch.ctrl.shape)
        batch.step(nstep)
        batch.reset(np.flatnonzero(rng.random(NWORLD) < 0.2))
        batch.qvel[rng.integers(NWORLD), 0] = np.nan

    return run


def sleeping() -> Callable[[int], None]:
    """Steps a stack that falls asleep and is woken."""
    batch = fl.Batch(fl.load(sleep.SCENES["stack"][0]), NWORLD, nthread=2)

    def run(nstep):
        batch.step(nstep)
        batch.qvel[::5, 0] = 0.5

    return run


def user_functions() -> Callable[[int], None]:
    """Registers kernels and plain functions within steps, again and again."""
    model = fl.load(USER)

    def register():
        fl.set_user_actuator(model, "plain", gain=lambda m, d, i: 0.2)
        fl.set_user_actuator(model, "kernel", gain=gain)
        fl.set_user_sensor(model, "own", lambda model, ctrl: ctrl[..., :1], reads=("ctrl",))

    register()
    batch, data = fl.Batch(model, 3, nthread=1), fl.Data(model)

    def run(nstep):
        register()
        batch.rollout(nstep, control=control, record=("qpos", "sensordata"))
        fl.step(model, data, nstep)

    return run


def rollouts() -> Callable[[int], None]:
    """Runs rollouts into new arrays and given ones, checkpoints, expanded fields, queries."""
    model, rng = fl.bundled("quadruped"), np.random.default_rng(0)
    batch, out = fl.Batch(model, NWORLD, nthread=2), {"qpos": np.zeros((NWORLD, CHUNK, model.nq))}

    def run(nstep):
        batch.expand("body_mass")[:] = model.body_mass * rng.uniform(0.8, 1.2, (NWORLD, 1))
        batch.set_const([0])
        kept = batch.checkpoint()
        batch.rollout(nstep, rng.uniform(-1, 1, (nstep, model.nu)), out=out if nstep == CHUNK else None)
        batch.rollout(1, lambda batch, k: batch.ctrl * 0.5, record=("xpos", "qvel"))
        batch.restore(kept)
        batch.step(nstep)
        batch.ray((0, 0, 3), (0, 0, -1))
        batch.geom_distance(0, [1, 2])
        batch.inverse()
        batch.get_data(1).step()

    return run


def environments() -> Callable[[int], None]:
    """Steps a vector environment whose worlds terminate and reset."""
    from featherlane.environments import BatchEnv

    environment = BatchEnv(
        "cartpole", NWORLD, observation=lambda b: b.qpos, reward=lambda b, before: b.qpos[:, 0], max_episode_steps=7
    )
    environment.reset(seed=0)

    def run(nstep):
        for _ in range(nstep):
            environment.step(environment.action_space.sample())

    return run


def one_world() -> Callable[[int], None]:
    """Steps one `Data`, its copies, its derivatives."""
    model = fl.bundled("hand")
    data = fl.Data(model, given_contacts=2)

    def run(nstep):
        fl.step(model, data, nstep)
        fl.step(model, copy.copy(data))
        again = pickle.loads(pickle.dumps(data))
        fl.step(again.model, again)
        fl.linearize(model, data, method="finite_difference")
        data.give_contacts([-0.001], [[0.0, 0.0, 0.1]], [[0.0, 0.0, 1.0]], body=[[0, 1]])
        fl.forward(model, data)
        data.contact, data.efc_J, data.reset()

    return run


def made_anew() -> Callable[[int], None]:
    """Creates, uses and drops objects of all kinds."""

    def run(nstep):
        for contact_model in ("convex", "lcp"):
            model = fl.bundled("box_stack")
            model.opt.contact_model = contact_model
            fl.step(model, fl.Data(model))
            fl.Batch(model, NWORLD, nthread=2).step(nstep)

    return run


def refused() -> Callable[[int], None]:
    """Raises errors, whose tracebacks hold frames."""
    model = fl.bundled("arm")
    data, batch = fl.Data(model), fl.Batch(model, 3, nthread=1)

    def run(nstep):
        for call in (
            lambda: fl.load("<mujoco><worldbody><geom/></worldbody></mujoco>"),
            lambda: fl.step(model, data, 0),
            lambda: batch.rollout(2, control=np.zeros(1)),
            lambda: setattr(data, "qpos", "x"),
        ):
            with contextlib.suppress(fl.ModelError):
                call()
        batch.step(nstep)

    return run


PROGRAMS: dict[str, Callable[[], Callable[[int], None]]] = {
    "convex": lambda: driven("humanoid", "convex", "float64"),
    "convex, float32": lambda: driven("quadruped_elliptic", "convex", "float32"),
    "lcp": lambda: driven("box_stack", "lcp", "float64"),
    "sleeping": sleeping,
    "user functions": user_functions,
    "rollouts": rollouts,
    "environments": environments,
    "one world": one_world,
    "made anew": made_anew,
    "refused": refused,
}


def look() -> dict[str, int]:
    """Returns the resources that the process holds."""
    gc.collect()
    found = {"blocks": sys.getallocatedblocks(), "threads": len(sys._current_frames())}
    if sys.platform == "linux":
        status = Path("/proc/self/status").read_text()
        found["memory"] = 1024 * int(status.partition("VmRSS:")[2].split()[0])
        found["files"] = len(os.listdir("/proc/self/fd"))
        found["maps"] = Path("/proc/self/maps").read_text().count("\n")
    return found


def run(limit: str, names=tuple(PROGRAMS)) -> Report:
    """Runs rounds until so many steps (`1000000`), or for so many seconds (`60s`).

    Args:
        limit: the budget.
        names: programs; those whose packages are missing are left out.
    """
    warnings.simplefilter("ignore")
    report, programs = Report(NAME), {}
    for name in names:
        try:
            programs[name] = PROGRAMS[name]()
        except ImportError as error:
            report.notes[f"{name} left out: {error}"] += 1
            report.firsts[f"{name} left out: {error}"] = 0
    end = time.monotonic() + float(limit[:-1]) if limit.endswith("s") else None
    first, rounds, steps = {}, 0, 0
    while rounds <= WARM or (time.monotonic() < end if end else steps < int(limit)):
        if rounds == WARM:
            first = look()
        for name, program in programs.items():
            program(CHUNK)
            steps += CHUNK
            report.counts[f"steps, {name}"] += CHUNK
        rounds += 1
    last = look()
    for what, number in last.items():
        report.notes[f"{what}: {first[what]} after the warm-up, {number} at the end"] += 1
        report.firsts[f"{what}: {first[what]} after the warm-up, {number} at the end"] = rounds
        if number > first[what] + SLACK[what]:
            report.findings[len(report.findings)] = f"{what} grew from {first[what]} to {number} in {rounds} rounds"
    return report


def main(arguments) -> int:
    parser = argparse.ArgumentParser(prog=f"python tests/fuzz {NAME}", description=__doc__.splitlines()[0])
    parser.add_argument("--budget", default="20000", help="steps, or seconds as in 60s")
    parser.add_argument("programs", nargs="*", help=", ".join(PROGRAMS))
    asked = parser.parse_args(arguments)
    report = run(asked.budget, asked.programs or tuple(PROGRAMS))
    print(report)
    return len(report.findings) > 0
