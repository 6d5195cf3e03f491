"""`run_policy`: rollouts of an environment with a policy in the loop, without Python between the steps.

Initial states come from `Task.start` and the worlds' random number generators.  They are sampled before a piece of the
rollout, because the number of episodes that end in it is unknown; afterwards each generator has the state after the
episodes that were started.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import ArrayLike

from featherlane.engine.model.arguments import instance, one_of, whole_argument
from featherlane.engine.model.assignment import as_real_array
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.batch.runner import PIECE_SECONDS, STAGES
from featherlane.environments.random_streams import RandomStreams
from featherlane.environments.task import Task
from featherlane.errors import ModelError
from featherlane.tools.policy.episodes import Program, kept_rows, play
from featherlane.tools.policy.functions import stages
from featherlane.tools.policy.mlp import MLP

FAULTS = ("non_finite", "bad_control")  # statuses that end a world's episode
FREE = ("start", "start_info", "info", "prepare", "action_space")  # methods that need no compiled counterpart
DECAY = 0.98  # of `most_started`; a repetition of a piece takes as long as the piece


class Rollout(NamedTuple):
    """Holds the recordings of a rollout of n worlds; step t of a world acts on `observations[:, t]`.

    Attributes:
        observations: (n, nstep + 1, k); the last are those after the last step.
        actions: (n, nstep, nu) before they are clipped to the policy's range.
        means: (n, nstep, nu) actions without noise.
        rewards: (n, nstep) float64.
        terminated, truncated: (n, nstep) bool.
        started: (n, nstep) bool, whether the step started an episode: its action was ignored, and its reward is 0.
    """

    observations: np.ndarray
    actions: np.ndarray
    means: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    started: np.ndarray


@dataclass
class History:
    """What a rollout needs of the one before.

    Attributes:
        most_started: the most episodes that a world started in a piece, per step; it decreases from piece to piece.
        observed: observations after it, of the task's NumPy functions and of its compiled ones, whose bits may differ.
    """

    most_started: float = 0.0
    observed: tuple[np.ndarray, np.ndarray] | None = None


@dataclass
class Episodes:
    """Describes the environments of a rollout, and the state of their episodes, which changes.

    Attributes:
        task, batch, random, frame_skip, limit, autoreset_mode: those of the environment.
        ninput, noutput: lengths of an observation and an action.
        observe: function that returns the present observations.
        elapsed: actions of each episode, (n,).
        done: which worlds start an episode in the next step, (n,) bool.
        bad: counts of FAULTS, (n,).
        history: of the rollout before.
    """

    task: Task
    batch: Any
    random: RandomStreams
    frame_skip: int
    limit: int | None
    autoreset_mode: AutoresetMode
    ninput: int
    noutput: int
    observe: Callable[[], np.ndarray]
    elapsed: np.ndarray
    done: np.ndarray
    bad: np.ndarray
    history: History = field(default_factory=History)


class _Starts:
    """Samples initial states ahead, and sets the generators back to those that were used."""

    def __init__(self, env: Episodes, k: int):
        self.task, self.random, batch = env.task, env.random, env.batch
        self.worlds: Any = SimpleNamespace(model=batch.model, nworld=batch.nworld)
        self.defaults = batch.expanded_fields.get("qpos0", batch.model.qpos0)
        self.rows = np.zeros((batch.nworld, max(k, 1), batch.model.nq + batch.model.nv), batch.dtype)
        self.k, every = k, np.arange(batch.nworld)
        self.states = [g.bit_generator.state for g in self.random.generators] if k else []
        for j in range(k):
            self.rows[:, j] = np.concatenate(self._sample(every), axis=1)

    def _sample(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        worlds, n = self.worlds, len(self.rows)
        worlds.qpos = np.array(np.broadcast_to(self.defaults, (n, worlds.model.nq)), self.rows.dtype)
        worlds.qvel = np.zeros((n, worlds.model.nv), self.rows.dtype)
        self.task.start(worlds, ids, self.random)
        return worlds.qpos, worlds.qvel

    def leave(self, used: np.ndarray) -> None:
        """Sets the generators to their states after `used` episodes of each world."""
        back = np.flatnonzero(used < self.k)
        for i in back:
            self.random.generators[i].bit_generator.state = self.states[i]
        for j in range(self.k):
            ids = back[used[back] > j]
            if len(ids):
                self._sample(ids)


def run_policy(env: Episodes, nstep: int, policy: MLP, noise: ArrayLike | None = None) -> Rollout:
    """Runs a rollout; see `TaskEnv.rollout`."""
    nstep, n, batch = whole_argument("nstep", nstep, 1), env.batch.nworld, env.batch
    program, width, nu = _program(env), env.ninput, env.noutput
    instance("policy", policy, MLP, "a featherlane.policies.MLP")
    if (policy.ninput, policy.noutput) != (width, nu):
        given = f"{policy.ninput} inputs and {policy.noutput} outputs"
        raise ModelError(f"policy: got {given}, allowed are {width} inputs and {nu} outputs")
    noise = _noise(noise, (n, nstep, nu), batch.dtype)
    kept = kept_rows(n, width, program.nbefore, batch.dtype)
    kept["obs"][...] = _observed(env)
    if program.nbefore:
        kept["before"][...] = np.reshape(env.task.before(batch), (n, -1))
    kept["done"][:, 0], kept["elapsed"][:, 0], kept["bad"][:, 0] = env.done, env.elapsed, env.bad
    widths = {"obs": width, "action": nu, "mean": nu}
    widths |= dict.fromkeys(("reward", "terminated", "truncated", "done", "non_finite"), 1)
    rows = {
        name: np.empty((n, nstep + (name in ("obs", "done")), k), np.float64 if name == "reward" else batch.dtype)
        for name, k in widths.items()
    }
    rows["obs"][:, 0], rows["done"][:, 0] = kept["obs"], kept["done"]
    taken = {name: a[:, 1:] if name in ("obs", "done") else a for name, a in rows.items()}
    done = 0
    while done < nstep:
        part = slice(done, min(nstep, done + max(1, batch.runner.at_once // (n * env.frame_skip))))
        begin, runner = time.perf_counter(), batch.runner
        _piece(env, policy, program, kept, None if noise is None else noise[:, part], taken, part)
        done, seconds = part.stop, max(time.perf_counter() - begin, 1e-9)
        runner.at_once = max(1, int((part.stop - part.start) * n * env.frame_skip * PIECE_SECONDS / seconds))
    _settle(env, policy, kept, rows)
    wrong = np.argwhere(~np.isfinite(rows["reward"][..., 0]))
    if len(wrong):
        world, step = wrong[0]
        raise ModelError(
            f"reward: got {rows['reward'][world, step, 0]} in world {world}, step {step}, allowed are finite numbers"
        )
    flags = {name: rows[name][..., 0] > 0 for name in ("terminated", "truncated", "done")}
    return Rollout(
        rows["obs"], rows["action"], rows["mean"], rows["reward"][..., 0], flags["terminated"], flags["truncated"],
        flags["done"][:, :-1],
    )  # fmt: skip


def _observed(env: Episodes) -> np.ndarray:
    """Returns the present observations; those of the last rollout, whose bits may differ, if they are still valid."""
    seen = env.observe()
    if env.history.observed is not None:
        plain, compiled = env.history.observed
        seen = np.where((seen == plain).all(axis=1, keepdims=True), compiled, seen)
    return seen


def _piece(env: Episodes, policy: MLP, program: Program, kept, noise, taken, part: slice) -> None:
    """Runs some steps of a rollout, with as many initial states as are needed."""
    n, nstep = env.batch.nworld, part.stop - part.start
    before = env.batch.checkpoint(), {name: rows.copy() for name, rows in kept.items()}
    ends = kept["done"].any() or (program.limit is not None and kept["elapsed"].max() + nstep >= program.limit)
    expected = int(np.ceil(env.history.most_started * nstep)) + (env.history.most_started > 0)
    k = min(max(expected, int(ends)), -(-nstep // 2) + 1)
    part_taken = {name: rows[:, part] for name, rows in taken.items()}
    while True:
        starts = _Starts(env, k)
        play(env.batch.runner, policy, program, nstep, kept, starts.rows, noise, part_taken)
        used = kept["used"][:, 0].astype(np.int64)
        starts.leave(np.minimum(used, k))
        most = int(used.max())
        if most <= k:
            break
        # an initial state was missing: repeat the piece from its beginning with more of them
        env.batch.restore(before[0])
        for name, rows in before[1].items():
            kept[name][...] = rows
        starts.leave(np.zeros(n, np.int64))
        k = most
    env.history.most_started = max(most / nstep, DECAY * env.history.most_started)
    kept["used"][...] = 0


def _settle(env: Episodes, policy: MLP, kept: dict[str, np.ndarray], rows: dict[str, np.ndarray]) -> None:
    """Leaves environment and task as after the last step: worlds that started in it are reset as `step` does."""
    task, batch = env.task, env.batch
    started, actions = rows["done"][:, -2, 0] > 0, policy.clipped(rows["action"][:, -1])
    env.elapsed[:], env.done = kept["elapsed"][:, 0], kept["done"][:, 0] > 0
    env.bad = env.batch.count_of(*FAULTS)
    if not started.all():
        controls, moved = batch.ctrl.copy(), ~started
        task.act(batch, actions, None if moved.all() else np.flatnonzero(moved))
        same = np.array_equal(batch.ctrl[moved], actions[moved], equal_nan=True)
        batch.ctrl[:] = controls
        if not same:
            raise ModelError(
                f"rollout: {type(task).__name__}.act sets other controls than the actions, allowed is Task.act"
            )
    if started.any():
        ids = np.flatnonzero(started)
        qpos, qvel = batch.qpos[ids], batch.qvel[ids]
        batch.reset(ids, forward=False)
        batch.qpos[ids], batch.qvel[ids] = qpos, qvel
        if task.forward_at_start:
            batch.forward_bound(ids)
        task.started(batch, ids)
    env.history.observed = env.observe(), kept["obs"]
    env.batch.runner.warn_of_found(found=rows["non_finite"].any(axis=(1, 2)), level=3)


def _program(env: Episodes) -> Program:
    """Returns the compiled form of the environment's task.

    Raises:
        ModelError: the task or the environment cannot be compiled.
    """
    task, name = env.task, type(env.task).__name__
    functions = task.compiled(env.batch)
    if functions is None:
        raise ModelError(f"rollout: the task {name} does not define compiled(), which rollouts with a policy need")
    _check_overrides(task)
    if env.autoreset_mode is not AutoresetMode.NEXT_STEP:
        raise ModelError(f"rollout: got the autoreset mode {env.autoreset_mode.value}, allowed is NextStep")
    if type(task).proceed is not Task.proceed:
        raise ModelError(f"rollout: {name} overrides proceed, allowed is Task.proceed")
    if not isinstance(env.batch, Batch) or task.cameras or task.kernels or task.derived != "gymnasium":
        raise ModelError(
            f"rollout: got the task {name} with several models, cameras, kernels or derived={task.derived!r}, allowed "
            f"is one model without cameras and kernels and derived='gymnasium'"
        )
    if env.batch.runner.recorder is not None:
        raise ModelError("rollout: got an environment with record_failures, allowed is 0")
    stage = one_of(f"{name}: start_stage", functions.start_stage, ("task", "none", *STAGES))
    if stage == "task":
        stage = "acceleration" if task.forward_at_start and env.batch.bound else "none"
    made = stages(name, functions, task.fields)
    return Program(name, made, functions.nbefore, env.frame_skip, env.limit, STAGES.get(stage, 0))


def _check_overrides(task: Task) -> None:
    """Raises an error if a subclass changes functions of the task, but not their compiled form."""
    for kind in type(task).__mro__:
        if any(name.startswith("compiled") for name in vars(kind)):
            return
        changed = [name for name, f in vars(kind).items() if callable(f) and name not in FREE and name[:2] != "__"]
        if changed:
            names = f"{kind.__name__} overrides {', '.join(changed)}"
            raise ModelError(f"rollout: {names}, allowed is to override compiled(), too")


def _noise(noise: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    if noise is None:
        return None
    rows = as_real_array("noise", noise, f"is an array {shape} of numbers")
    if rows.shape != shape or not np.isfinite(rows).all():
        what = f"shape {rows.shape}" if rows.shape != shape else "a non-finite number"
        raise ModelError(f"noise: got {what}, allowed are finite numbers {shape}")
    return np.ascontiguousarray(rows, dtype)
