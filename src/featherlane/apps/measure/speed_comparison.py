"""Benchmarks speed against MuJoCo: the same states, alternated in one process, with ratios round by round.

Both sides start repeatedly from the same set of different states, which are reached under random control.  Sensors are
off on both sides; cone and tolerance are the model's.  The solver is set to Newton if the model selects another.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from featherlane import Batch, Data, load, step
from featherlane.apps.measure.controls import Random
from featherlane.errors import InstallationError
from featherlane.extension import bounded, check_counts, compile_source, mujoco_module

STATE = ("qpos", "qvel", "act", "qacc_warmstart", "ctrl")
WARM_ROUNDS = 2  # not measured, to warm up memory, threads and kernels
ONE_WORLD_STATES = 64
START_SPEED = 0.02  # m/s, rad/s: standard deviation of the initial velocities of undriven worlds


@dataclass(frozen=True)
class Course:
    """Settings of a benchmark.

    Attributes:
        dtype: dtype of Featherlane; MuJoCo uses float64.
        worlds: number of states, one per world.
        threads: number of threads of both sides; 0 for all cores.
        nstep: steps per call.
        settle: simulated time under random control before the measurement [s].
        smooth: whether to disable contacts and constraints on both sides.
    """

    dtype: str = "float64"
    worlds: int = 512
    threads: int = 1
    nstep: int = 4
    rounds: int = 9
    settle: float = 1.5
    seed: int = 0
    smooth: bool = False

    def check(self) -> None:
        """Raises ModelError for numbers out of range."""
        check_counts(self, {"worlds": 1, "threads": 0, "nstep": 1, "rounds": 1, "seed": 0})
        bounded("seconds", self.settle, 0.0)


@dataclass(frozen=True)
class Ratio:
    """The speedup over the other side: median, minimum and maximum of the rounds."""

    median: float
    least: float
    greatest: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.least:.2f} - {self.greatest:.2f})"


@dataclass(frozen=True)
class Pace:
    """Times of two sides for the same work: microseconds per step of a world, and the ratio."""

    ours: float
    theirs: float
    ratio: Ratio

    def plain(self) -> dict[str, Any]:
        """Returns plain values."""
        return asdict(self)


class Lineup:
    """A model on both sides, and the settled states from which benchmarks start.

    Args:
        source: a bundled name, or a source that `load` takes.

    Attributes:
        states: arrays (worlds, n) by name.
        changed: options that were set in the model, and features that were switched off.
        load_seconds: time to load Featherlane's model [s].

    Raises:
        ModelError: the model cannot be loaded.
        UnsupportedFeatureError: the model has unsupported features.
    """

    def __init__(self, source: str, course: Course):
        mujoco, start = mujoco_module(), time.perf_counter()
        mj, self.source = compile_source(source)[:2]
        self.changed = _make_comparable(mujoco, mj, course.smooth)
        self.model, self.mj_model, self.course = load(mj), mj, course
        self.load_seconds = time.perf_counter() - start
        self.states = self._settled()

    def _settled(self) -> dict[str, np.ndarray]:
        """Computes states after some time under random control, with Featherlane's batch on all cores.

        Without actuators, worlds differ by their initial velocities.
        """
        batch = Batch(self.model, self.course.worlds)
        if not self.model.nu:
            batch.qvel += START_SPEED * np.random.default_rng(self.course.seed).standard_normal(batch.qvel.shape)
        nstep = round(self.course.settle / self.model.opt.timestep)
        Random(self.model, self.course.seed, self.model.opt.timestep).advance(batch, 0, nstep)
        return {name: np.array(getattr(batch, name)) for name in STATE}

    def on(self, **changes) -> Lineup:
        """Returns the same states with other settings; `smooth` requires a separate lineup."""
        other = copy.copy(self)
        other.course = replace(self.course, **changes)
        return other

    def controls(self, call: int) -> np.ndarray:
        """Returns random controls of the n-th call, (worlds, nu)."""
        return Random(self.model, self.course.seed + 1, self.model.opt.timestep).draw(call, self.course.worlds)

    def put(self, batch, worlds: int | slice = slice(None)) -> None:
        """Sets a batch of either side to the states; or one world or a smaller batch to the states of some worlds."""
        for name, value in self.states.items():
            getattr(batch, name)[:] = value[worlds]


def _make_comparable(mujoco, mj, smooth: bool) -> list[str]:
    """Sets the options of a MjModel for the benchmark and returns the changes."""
    opt, changed = mj.opt, []
    if opt.solver != mujoco.mjtSolver.mjSOL_NEWTON:
        opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
        changed.append("solver set to Newton")
    off = {"sensor": mujoco.mjtDisableBit.mjDSBL_SENSOR}
    if smooth:
        off |= {"contact": mujoco.mjtDisableBit.mjDSBL_CONTACT, "constraint": mujoco.mjtDisableBit.mjDSBL_CONSTRAINT}
    for name, bit in off.items():
        opt.disableflags |= bit
        changed.append(f"{name} disabled")
    return changed


def alternate(
    sides: dict[str, Callable[[], float]], rounds: int, on_progress: Callable[[], None]
) -> dict[str, np.ndarray]:
    """Measures the seconds of each side in each round; the order alternates between rounds.

    Args:
        sides: functions by name, each of which runs once and returns its seconds.
        rounds: measured rounds, after `WARM_ROUNDS`.
        on_progress: called after each round, to report progress.
    """
    seconds = {name: [] for name in sides}
    for k in range(WARM_ROUNDS + rounds):
        order = list(sides) if k % 2 == 0 else list(reversed(sides))
        for name in order:
            seconds[name].append(sides[name]())
        on_progress()
    return {name: np.array(times[WARM_ROUNDS:]) for name, times in seconds.items()}


def ratio(theirs: np.ndarray, ours: np.ndarray) -> Ratio:
    """Computes the speedup from the seconds of the same rounds."""
    each = theirs / ours
    return Ratio(float(np.median(each)), float(each.min()), float(each.max()))


def _pace(seconds: dict[str, np.ndarray], steps: int) -> Pace:
    micro = {name: float(np.median(s)) / steps * 1e6 for name, s in seconds.items()}
    return Pace(micro["ours"], micro["theirs"], ratio(seconds["theirs"], seconds["ours"]))


def no_progress() -> None:
    """Reports no progress."""


def their_batch():
    """Returns the class `mujoco.batch.Batch`.

    Raises:
        InstallationError: this MuJoCo does not have it.
    """
    version = mujoco_module().__version__
    try:
        from mujoco.batch import Batch as Theirs
    except ImportError:
        raise InstallationError(
            f"MuJoCo {version} has no mujoco.batch, which 3.17 and newer have; install with:\n"
            "  pip install 'mujoco>=3.17'"
        ) from None
    return Theirs


def race_batches(lineup: Lineup, on_progress: Callable[[], None] = no_progress) -> tuple[Pace, dict[str, Any]]:
    """Compares Featherlane's batch with `mujoco.batch.Batch`.

    Returns:
        The pace, and statistics of the worlds: contacts, iterations, and the difference in qvel between the sides
        after the call's steps from the same states.

    Raises:
        InstallationError: this MuJoCo has no `mujoco.batch`.
    """
    Theirs, course = their_batch(), lineup.course
    ours = Batch(lineup.model, course.worlds, nthread=course.threads, dtype=course.dtype)
    theirs = Theirs(lineup.mj_model, course.worlds, nthread=course.threads)
    sides = {
        "ours": timed(lambda: lineup.put(ours), lambda: ours.step(course.nstep)),
        "theirs": timed(lambda: lineup.put(theirs), lambda: theirs.step(nstep=course.nstep)),
    }
    first = sides["ours"]()
    pace = _pace(alternate(sides, course.rounds, on_progress), course.worlds * course.nstep)
    apart = np.abs(ours.qvel - np.array(theirs.bind("qvel")).reshape(ours.qvel.shape))
    return pace, {
        "first_call_seconds": first,
        "contacts": {"mean": float(ours.ncon.mean()), "max": int(ours.ncon.max())},
        "solver_iterations": {"mean": float(ours.solver_niter.mean()), "max": int(ours.solver_niter.max())},
        "not_converged": int(ours.status["not_converged"].sum()),
        "qvel_apart": {"median": float(np.median(apart.max(axis=1))), "max": float(apart.max())} if apart.size else {},
    }


def race_one_world(lineup: Lineup, on_progress: Callable[[], None] = no_progress) -> Pace:
    """Compares one world with `mj_step`, over some of the settled states; float64 on both sides."""
    mujoco = mujoco_module()
    nstep, chosen = lineup.course.nstep, np.linspace(0, lineup.course.worlds - 1, ONE_WORLD_STATES).astype(int)
    data, mj_data = Data(lineup.model), mujoco.MjData(lineup.mj_model)

    def over_states(world, run) -> Callable[[], float]:
        def total() -> float:
            seconds = 0.0
            for w in chosen:
                lineup.put(world, w)
                start = time.perf_counter()
                run()
                seconds += time.perf_counter() - start
            return seconds

        return total

    sides = {
        "ours": over_states(data, lambda: step(lineup.model, data, nstep)),
        "theirs": over_states(mj_data, lambda: mujoco.mj_step(lineup.mj_model, mj_data, nstep)),
    }
    return _pace(alternate(sides, lineup.course.rounds, on_progress), len(chosen) * nstep)


def timed(prepare: Callable[[], None], run: Callable[[], None]) -> Callable[[], float]:
    """Returns a function that prepares, runs, and returns the seconds of the run."""

    def once() -> float:
        prepare()
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    return once
