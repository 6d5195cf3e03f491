"""Speed against MuJoCo, measured side by side: the same states, alternated in one process, ratios round by round.

The course: many different states, reached under random control; then each side starts again and again from these
states.  Sensors are off on both sides, cone and tolerance are the model's own; the solver is set to Newton where a
model asks otherwise.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from featherlane.errors import InstallationError
from featherlane.measure.controls import Random
from featherlane.model.arguments import LARGEST, bounded, counts
from featherlane.model.load import load, read
from featherlane.model.reader import mujoco_module
from featherlane.simulation.batch.batch import Batch
from featherlane.simulation.world.data import Data, step

STATE = ("qpos", "qvel", "act", "qacc_warmstart", "ctrl")
WARM_ROUNDS = 2  # not measured: memory, threads and kernels come up
ONE_WORLD_STATES = 64
START_SPEED = 0.02  # m/s, rad/s: deviation of the velocities that undriven worlds start with


@dataclass(frozen=True)
class Course:
    """How a race is run.

    Attributes:
        dtype: of our side; MuJoCo has float64.
        worlds: states, one to a world.
        threads: of both sides; 0 for all cores.
        nstep: steps of a call.
        rounds: measured rounds.
        settle: simulated time under random control before [s].
        seed: of the random controls.
        smooth: without contacts and constraints on both sides.
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
        """Raise ModelError for numbers out of range."""
        counts(self, {"worlds": 1, "threads": 0, "nstep": 1, "rounds": 1, "seed": 0})
        bounded("seconds", self.settle, 0.0, LARGEST)


@dataclass(frozen=True)
class Ratio:
    """How many times as fast as the rival: median, least and greatest of the rounds."""

    median: float
    least: float
    greatest: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.least:.2f} - {self.greatest:.2f})"


@dataclass(frozen=True)
class Pace:
    """Two sides over the same work: microseconds per step of a world, and the ratio."""

    ours: float
    theirs: float
    ratio: Ratio

    def plain(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


class Lineup:
    """A model on both sides, and the settled states that the races start from.

    Args:
        source: what `load` takes.
        course: how to settle.

    Attributes:
        model: ours.
        mj_model: MuJoCo's.
        states: (worlds, n) arrays by name.
        changed: what had to be set in the model, and what was switched off.
        load_seconds: time to load our model.

    Raises:
        ModelError: the model cannot be loaded.
        UnsupportedFeatureError: it has features that are not computed.
    """

    def __init__(self, source: str, course: Course):
        mujoco, start = mujoco_module(), time.perf_counter()
        mj, self.source, _ = read(source)
        self.changed = _make_comparable(mujoco, mj, course.smooth)
        self.model, self.mj_model, self.course = load(mj), mj, course
        self.load_seconds = time.perf_counter() - start
        self.states = self._settled()

    def _settled(self) -> dict[str, np.ndarray]:
        """States after some time under random control, by our batch on all cores.

        Where nothing is driven, worlds differ by the velocities that they start with.
        """
        batch = Batch(self.model, self.course.worlds)
        if not self.model.nu:
            batch.qvel += START_SPEED * np.random.default_rng(self.course.seed).standard_normal(batch.qvel.shape)
        nstep = round(self.course.settle / self.model.opt.timestep)
        Random(self.model, self.course.seed, self.model.opt.timestep).advance(batch, 0, nstep)
        return {name: np.array(getattr(batch, name)) for name in STATE}

    def on(self, **changes) -> Lineup:
        """The same states on another course; `smooth` is for a lineup of its own."""
        other = copy.copy(self)
        other.course = replace(self.course, **changes)
        return other

    def put(self, batch, worlds: int | slice = slice(None)) -> None:
        """A batch of either side back to the states, or a world or a smaller batch to those of some worlds."""
        for name, value in self.states.items():
            getattr(batch, name)[:] = value[worlds]


def _make_comparable(mujoco, mj, smooth: bool) -> list[str]:
    """Set in a MjModel what the race needs; says what was changed."""
    opt, changed = mj.opt, []
    if opt.solver != mujoco.mjtSolver.mjSOL_NEWTON:
        opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
        changed.append("solver set to Newton")
    off = {"sensor": mujoco.mjtDisableBit.mjDSBL_SENSOR}
    if smooth:
        off |= {"contact": mujoco.mjtDisableBit.mjDSBL_CONTACT, "constraint": mujoco.mjtDisableBit.mjDSBL_CONSTRAINT}
    for name, bit in off.items():
        opt.disableflags |= bit
        changed.append(f"{name} off")
    return changed


def alternate(sides: dict[str, Callable[[], float]], rounds: int, told: Callable[[], None]) -> dict[str, np.ndarray]:
    """Seconds of each side in each round; each round turns the order around.

    Args:
        sides: by name, a function that runs once and returns its seconds.
        rounds: measured rounds, after `WARM_ROUNDS`.
        told: called after each round.
    """
    seconds = {name: [] for name in sides}
    for k in range(WARM_ROUNDS + rounds):
        order = list(sides) if k % 2 == 0 else list(reversed(sides))
        for name in order:
            seconds[name].append(sides[name]())
        told()
    return {name: np.array(times[WARM_ROUNDS:]) for name, times in seconds.items()}


def ratio(theirs: np.ndarray, ours: np.ndarray) -> Ratio:
    """Of the seconds of the same rounds."""
    each = theirs / ours
    return Ratio(float(np.median(each)), float(each.min()), float(each.max()))


def _pace(seconds: dict[str, np.ndarray], steps: int) -> Pace:
    micro = {name: float(np.median(s)) / steps * 1e6 for name, s in seconds.items()}
    return Pace(micro["ours"], micro["theirs"], ratio(seconds["theirs"], seconds["ours"]))


def _ready() -> None:
    """Nothing to tell."""


def their_batch():
    """The class `mujoco.batch.Batch`.

    Raises:
        InstallationError: this MuJoCo has none.
    """
    version = mujoco_module().__version__
    try:
        from mujoco.batch import Batch as Theirs
    except ImportError:
        raise InstallationError(
            f"MuJoCo {version} has no batches to measure against, 3.17 or newer has; install with:\n"
            "  pip install 'mujoco>=3.17'"
        ) from None
    return Theirs


def race_batches(lineup: Lineup, told: Callable[[], None] = _ready) -> tuple[Pace, dict[str, Any]]:
    """Our batch against `mujoco.batch.Batch`.

    Returns:
        The pace, and what the worlds went through: contacts, iterations, and how far the two sides are apart in qvel
        after the call's steps from the same states.

    Raises:
        InstallationError: this MuJoCo has no batches.
    """
    Theirs, course = their_batch(), lineup.course
    ours = Batch(lineup.model, course.worlds, nthread=course.threads, dtype=course.dtype)
    theirs = Theirs(lineup.mj_model, course.worlds, nthread=course.threads)
    sides = {
        "ours": _timed(lambda: lineup.put(ours), lambda: ours.step(course.nstep)),
        "theirs": _timed(lambda: lineup.put(theirs), lambda: theirs.step(nstep=course.nstep)),
    }
    first = sides["ours"]()
    pace = _pace(alternate(sides, course.rounds, told), course.worlds * course.nstep)
    apart = np.abs(ours.qvel - np.array(theirs.bind("qvel")).reshape(ours.qvel.shape))
    return pace, {
        "first_call_seconds": first,
        "contacts": {"mean": float(ours.ncon.mean()), "max": int(ours.ncon.max())},
        "solver_iterations": {"mean": float(ours.solver_niter.mean()), "max": int(ours.solver_niter.max())},
        "not_converged": int(ours.status["not_converged"].sum()),
        "qvel_apart": {"median": float(np.median(apart.max(axis=1))), "max": float(apart.max())} if apart.size else {},
    }


def race_one_world(lineup: Lineup, told: Callable[[], None] = _ready) -> Pace:
    """One world of ours against `mj_step`, over some of the settled states; float64 on both sides."""
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
    return _pace(alternate(sides, lineup.course.rounds, told), len(chosen) * nstep)


def race_threads(lineup: Lineup, threads: tuple[int, int] = (1, 2), told: Callable[[], None] = _ready) -> Ratio:
    """Our batch on the second number of threads over the first."""
    first, second = (Batch(lineup.model, lineup.course.worlds, nthread=n, dtype=lineup.course.dtype) for n in threads)
    return _race_ours(lineup, first, second, told)


def race_cores(lineup: Lineup, told: Callable[[], None] = _ready) -> Ratio:
    """What two cores of the machine give: two batches of half the worlds at once, over one after the other.

    They share no work, so it bounds what `race_threads` can show: cores that share a cache, memory, or time with other
    machines give less than 2.  Of one world each has a copy.
    """
    course, middle = lineup.course, lineup.course.worlds // 2
    halves = [slice(0, max(middle, 1)), slice(middle, course.worlds)]
    batches = [Batch(lineup.model, h.stop - h.start, nthread=1, dtype=course.dtype) for h in halves]

    def prepare() -> None:
        for batch, half in zip(batches, halves, strict=True):
            lineup.put(batch, half)

    def one_by_one() -> None:
        for batch in batches:
            batch.step(course.nstep)

    with ThreadPoolExecutor(1) as other:

        def at_once() -> None:
            second = other.submit(batches[1].step, course.nstep)
            batches[0].step(course.nstep)
            second.result()

        seconds = alternate({"one": _timed(prepare, one_by_one), "both": _timed(prepare, at_once)}, course.rounds, told)
    return ratio(seconds["one"], seconds["both"])


def race_precisions(lineup: Lineup, told: Callable[[], None] = _ready) -> Ratio:
    """Our batch in float32 over float64."""
    course = lineup.course
    double, single = (
        Batch(lineup.model, course.worlds, nthread=course.threads, dtype=dtype) for dtype in ("float64", "float32")
    )
    return _race_ours(lineup, double, single, told)


def _race_ours(lineup: Lineup, first: Batch, second: Batch, told: Callable[[], None]) -> Ratio:
    """How many times as fast the second is."""
    sides = {
        name: _timed(lambda b=b: lineup.put(b), lambda b=b: b.step(lineup.course.nstep))
        for name, b in (("first", first), ("second", second))
    }
    seconds = alternate(sides, lineup.course.rounds, told)
    return ratio(seconds["first"], seconds["second"])


def _timed(prepare: Callable[[], None], run: Callable[[], None]) -> Callable[[], float]:
    def once() -> float:
        prepare()
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    return once
