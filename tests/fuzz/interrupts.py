"""Interrupts: calls of every kind, each ended by an interrupt (Ctrl-C) after a random time.

After each interrupt the object is compared with another one that took the same steps undisturbed: bitwise identical.
Findings are: a call that raises an error, a world at another step than its neighbours, and a call that never ends.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import signal
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

import featherlane as fl
from fuzz.report import Report

NAME = "interrupts"
NUMBER = 20_000
SHORTEST, LONGEST = 20e-6, 600e-6  # s from the start of a call
PATIENCE = 120  # s, timeout of a call
NWORLD = 16


class Program(NamedTuple):
    """Describes calls that are interrupted.

    Attributes:
        call: the interrupted function; it is called until the interrupt comes.
        check: compares the state with the correct one; raises AssertionError.
        longest: the interrupt comes after at most so many seconds.
    """

    call: Callable[[], object]
    check: Callable[[], None]
    longest: float = LONGEST


def same_bits(batch, twin, names=("time", "qpos", "qvel", "qacc_warmstart", "ctrl")) -> None:
    for name in names:
        assert getattr(batch, name).tobytes() == getattr(twin, name).tobytes(), name


def follow(batch, twin, timestep: float, advance: Callable[[int], object]) -> Callable[[], None]:
    """Returns a check: the twin takes the steps that the batch has taken."""

    def check():
        steps = np.rint(batch.time / timestep).astype(int)
        assert (steps == steps[0]).all(), f"worlds are at steps {np.unique(steps)}"
        if missing := int(steps[0] - np.rint(twin.time[0] / timestep)):
            advance(missing)
        same_bits(batch, twin)
        if steps[0] > 2000:
            batch.reset()
            twin.reset()

    return check


def stepped(made: Callable[[], fl.Batch | fl.MixedBatch], timestep: float) -> Program:
    batch, twin = made(), made()
    return Program(lambda: batch.step(3), follow(batch, twin, timestep, twin.step))


def batch_step() -> Program:
    model = fl.bundled("humanoid")
    return stepped(lambda: fl.Batch(model, NWORLD, nthread=2), model.opt.timestep)


def mixed_step() -> Program:
    models = [(fl.bundled("cartpole"), 5), (fl.bundled("pendulum"), 11)]
    return stepped(lambda: fl.MixedBatch(models, nthread=2), models[0][0].opt.timestep)


def rollout() -> Program:
    model = fl.bundled("cartpole")
    batch, twin = (fl.Batch(model, NWORLD, nthread=2) for _ in range(2))
    control = np.array([[0.1], [0.2], [0.3]])

    def advance(missing):
        for _ in range(missing // 3):
            twin.rollout(3, control, ())

    return Program(lambda: batch.rollout(3, control, ()), follow(batch, twin, model.opt.timestep, advance))


def reset() -> Program:
    model = fl.bundled("humanoid")
    batch, fresh, moved = (fl.Batch(model, NWORLD, nthread=2) for _ in range(3))
    moved.ctrl[:] = 0.3
    moved.step(5)
    start = moved.checkpoint()

    batch.restore(start)

    def check():
        same_bits(batch, fresh if batch.time[0] == 0 else moved)
        batch.restore(start)

    return Program(batch.reset, check)


def questions() -> Program:
    model = fl.bundled("humanoid")
    batch, twin = (fl.Batch(model, NWORLD, nthread=2) for _ in range(2))
    batch.inverse()
    force = batch.qfrc_inverse.copy()

    def call():
        batch.ray([0.0, 0.0, 3.0], [0.0, 0.0, -1.0])
        batch.inverse()

    def check():
        same_bits(batch, twin)
        batch.inverse()
        assert np.array_equal(batch.qfrc_inverse, force)

    return Program(call, check)


def data_step() -> Program:
    model = fl.bundled("humanoid")
    data, twin = fl.Data(model), fl.Data(model)

    def check():
        while twin.time < data.time:
            fl.step(model, twin)
        same_bits(data, twin, ("qpos", "qvel", "qacc_warmstart"))
        if data.time > 5.0:
            data.reset()
            twin.reset()

    return Program(lambda: fl.step(model, data, 2), check)


def data_calls() -> Program:
    model = fl.bundled("cartpole")
    data = fl.Data(model)

    def call():
        fl.forward(model, data)
        fl.inverse(model, data)
        fl.stages.runge_kutta(model, data)
        fl.query.mul_m(model, data, data.qvel)
        data.reset()

    return Program(call, lambda: fl.step(model, data))


def environment() -> Program:
    from featherlane.environments import BatchEnv

    made = BatchEnv(
        "cartpole", NWORLD, observation=lambda b: b.qpos, reward=lambda b, before: b.qpos[:, 0], max_episode_steps=50
    )
    made.reset(seed=0)
    action = np.zeros(made.action_space.shape, np.float32)

    def check():
        steps = np.rint(made.batch.time / made.batch.model.opt.timestep)
        assert (steps == steps[0]).all()
        made.reset(seed=1)
        assert not made.batch.time.any()

    return Program(lambda: made.step(action), check)


def distributed(nodes: int | None = None) -> Program:
    model = fl.bundled("cartpole")
    batch, twin = fl.distributed.Batch(model, NWORLD, nodes, nthread=1), fl.Batch(model, NWORLD, 1)
    follows = follow(batch, twin, model.opt.timestep, twin.step)
    return Program(lambda: batch.step(2), follows, LONGEST if nodes is None else 10 * LONGEST)


PROGRAMS: dict[str, Callable[[], Program]] = {
    "step": batch_step,
    "mixed": mixed_step,
    "rollout": rollout,
    "reset": reset,
    "questions": questions,
    "data": data_step,
    "data calls": data_calls,
    "environment": environment,
    "distributed": distributed,
    "ray": lambda: distributed(2),
}


class Interrupts:
    """Sends SIGINT from a timer, as Ctrl-C does, while it is armed."""

    def __init__(self):
        self.armed = False

    def handle(self, number, frame) -> None:
        if self.armed:
            self.armed = False
            signal.raise_signal(signal.SIGINT)

    @contextlib.contextmanager
    def handled(self) -> Iterator[None]:
        before = signal.signal(signal.SIGALRM, self.handle)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, before)

    def during(self, call: Callable[[], object], seconds: float) -> None:
        """Repeats the call until the interrupt comes."""
        try:
            self.armed = True
            signal.setitimer(signal.ITIMER_REAL, seconds)
            while self.armed:
                call()
        except KeyboardInterrupt:
            return


def run(number: int = NUMBER, names=tuple(PROGRAMS), seed: int = 0) -> Report:
    """Sends so many interrupts to each program."""
    report, rng, interrupts = Report(NAME), np.random.default_rng(seed), Interrupts()
    for name in names:
        try:
            program = PROGRAMS[name]()
        except ImportError as error:
            report.notes[f"{name} left out: {error}"] += 1
            continue
        for _ in range(3):
            program.call()
        program.check()
        with interrupts.handled():
            for k in range(number):
                faulthandler.dump_traceback_later(PATIENCE, exit=True)
                interrupts.during(program.call, rng.uniform(SHORTEST, program.longest))
                report.counts[f"interrupts, {name}"] += 1
                try:
                    program.check()
                except Exception as error:
                    report.findings[len(report.findings)] = f"{name}, interrupt {k}: {type(error).__name__}: {error}"
                    break
        faulthandler.cancel_dump_traceback_later()
    return report


def main(arguments) -> int:
    parser = argparse.ArgumentParser(prog=f"python tests/fuzz {NAME}", description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=NUMBER, help="interrupts in each program")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("programs", nargs="*", help=", ".join(PROGRAMS))
    asked = parser.parse_args(arguments)
    report = run(asked.number, asked.programs or tuple(PROGRAMS), asked.seed)
    print(report)
    return len(report.findings) > 0
