"""`run_policy`: rollouts of an environment with a policy in the loop, without Python between the steps.

Initial states come from `Task.start` and the worlds' random number generators.  They are sampled before a piece of the
rollout, because the number of episodes that end in it is unknown; afterwards each generator has the state after the
episodes that were started.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import ArrayLike

from featherlane import Batch
from featherlane.environments.random_streams import RandomStreams
from featherlane.environments.task import Task
from featherlane.errors import ModelError
from featherlane.extension import PolicyLoop
from featherlane.policies import MLP

FAULTS = ("non_finite", "bad_control")  # statuses that end a world's episode
FREE = ("start", "start_info", "info", "prepare", "action_space")  # methods that need no compiled counterpart


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
        ninput: length of an observation.
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
    observe: Callable[[], np.ndarray]
    elapsed: np.ndarray
    done: np.ndarray
    bad: np.ndarray
    history: History = field(default_factory=History)


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
    loop = _loop(env)
    loop.observations[:], loop.done[:] = _observed(env), env.done
    if loop.before.size:
        loop.before[:] = np.reshape(env.task.before(env.batch), loop.before.shape)
    loop.elapsed[:], loop.faults[:], loop.most_started = env.elapsed, env.bad, env.history.most_started
    result = Rollout(*loop.run(nstep, policy, lambda k: _Starts(env, k), noise))
    env.history.most_started = loop.most_started
    env.elapsed[:], env.done, env.bad = loop.elapsed, loop.done > 0, env.batch.count_of(*FAULTS)
    _settle(env, result.started[:, -1], policy.clipped(result.actions[:, -1]))
    env.history.observed = env.observe(), loop.observations
    loop.warn(level=3)
    wrong = np.argwhere(~np.isfinite(result.rewards))
    if len(wrong):
        world, step = wrong[0]
        raise ModelError(
            f"reward: got {result.rewards[world, step]} in world {world}, step {step}, allowed are finite numbers"
        )
    return result


def _observed(env: Episodes) -> np.ndarray:
    """Returns the present observations; those of the last rollout, whose bits may differ, if they are still valid."""
    seen = env.observe()
    if env.history.observed is not None:
        plain, compiled = env.history.observed
        seen = np.where((seen == plain).all(axis=1, keepdims=True), compiled, seen)
    return seen


def _settle(env: Episodes, started: np.ndarray, actions: np.ndarray) -> None:
    """Leaves the task as after the last step: worlds that started in it are reset as `step` does.

    Args:
        env: the environments.
        started: (n,) bool, which worlds started an episode in the last step.
        actions: (n, nu) clipped actions of the last step.

    Raises:
        ModelError: `Task.act` was overridden and sets other controls.
    """
    task, batch = env.task, env.batch
    if not started.all():
        controls, moved = batch.ctrl.copy(), ~started
        task.act(batch, actions[moved], np.flatnonzero(moved))
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


def _loop(env: Episodes) -> PolicyLoop:
    """Returns the loop of the environment's compiled task.

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
    model = env.batch.model
    if past := np.flatnonzero(model.sensor_history[:, 0] > 0).tolist():
        sensor = model.names("sensor")[past[0]] or past[0]
        raise ModelError(f"rollout: got the sensor {sensor!r} with a history, allowed are sensors without `nsample`")
    return PolicyLoop(
        env.batch, functions, label=name, ninput=env.ninput, fields=task.fields, frame_skip=env.frame_skip,
        limit=env.limit, forward_at_start=task.forward_at_start,
    )  # fmt: skip


def _check_overrides(task: Task) -> None:
    """Raises an error if a subclass changes functions of the task, but not their compiled form."""
    for kind in type(task).__mro__:
        if any(name.startswith("compiled") for name in vars(kind)):
            return
        changed = [name for name, f in vars(kind).items() if callable(f) and name not in FREE and name[:2] != "__"]
        if changed:
            names = f"{kind.__name__} overrides {', '.join(changed)}"
            raise ModelError(f"rollout: {names}, allowed is to override compiled(), too")
