"""`BatchEnv`: a task defined by functions of the batch, for short tasks that need no class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import DTypeLike

from featherlane import Batch, Camera
from featherlane.environments.random_streams import RandomStreams
from featherlane.environments.task import Groups, Parts, Task
from featherlane.environments.vector_env import TaskEnv
from featherlane.errors import ModelError
from featherlane.extension import instance


class Before(NamedTuple):
    """The state before the action: qpos (n, nq) and qvel (n, nv)."""

    qpos: np.ndarray
    qvel: np.ndarray


class BatchEnv(TaskEnv):
    """Creates a Gymnasium vector environment of n worlds from functions for observation, reward and termination.

    Args:
        model: a `Model`, a bundled name, or a source that `featherlane.load` takes.
        num_envs: worlds.
        observation: function of the batch to (n, k), to arrays (n, ...) by name, or to groups of such arrays.
        reward: function of (batch, before) to (n,), or to terms (n,) by name: `before` is the state before the
            action, `batch.ctrl` the action.
        terminated: function of the batch to (n,) bool; None: worlds terminate only on non-finite values.
        start: function of (batch, ids, rng) that sets the initial state of the worlds `ids`, which were just reset to
            the model's defaults; None keeps the defaults.  `rng` is the generator of the first of these worlds.  To
            sample from each world's generator, write a `Task`.
        frame_skip: time steps per action.
        cameras: cameras whose images are observed, as of `Task`.
        fields: derived fields of the batch (`xpos`, `sensordata`, ...) that the functions read.

    The other arguments and the errors are those of `TaskEnv`.

    Note:
        After a step, derived fields (`batch.xpos`, ...) belong to the state before the last time step, as in
        MuJoCo.  For current values, `observation` calls `batch.forward()` first and lists the fields in `fields`.
        After a reset they belong to the new state.
    """

    def __init__(
        self,
        model: Any,
        num_envs: int,
        *,
        observation: Callable[[Batch], Groups],
        reward: Callable[[Batch, Before], np.ndarray | dict[str, np.ndarray]],
        terminated: Callable[[Batch], np.ndarray] | None = None,
        start: Callable[[Batch, np.ndarray, np.random.Generator], None] | None = None,
        frame_skip: int = 1,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        nthread: int = 0,
        dtype: DTypeLike = "float64",
        record_failures: int = 0,
        info: bool = False,
        copy: bool = True,
        render_mode: str | None = None,
        render_worlds: int = 16,
        fields: Sequence[str] = (),
        cameras: Camera | Sequence[Camera] = (),
    ):
        functions = {"observation": observation, "reward": reward, "terminated": terminated, "start": start}
        for name, function in functions.items():
            if not callable(function) and not (function is None and name in ("terminated", "start")):
                raise ModelError(f"{name}: got {type(function).__name__}, allowed is a function f(batch)")
        task = Functions(model, frame_skip, functions, (fields,) if isinstance(fields, str) else fields)
        task.cameras = cameras
        super().__init__(
            task, num_envs, max_episode_steps=max_episode_steps, autoreset_mode=autoreset_mode, nthread=nthread,
            dtype=dtype, info=info, copy=copy, record_failures=record_failures, render_mode=render_mode,
            render_worlds=render_worlds,
        )  # fmt: skip


class Functions(Task):
    """A task defined by functions."""

    def __init__(self, model: Any, frame_skip: int, functions: dict[str, Any], fields: Sequence[str]):
        instance("fields", fields, Sequence, "a list of names of fields")
        self.model, self.frame_skip, self.fields = model, frame_skip, tuple(fields)
        self.observe, self.compute_reward = functions["observation"], functions["reward"]
        self.ended, self.started_by = functions["terminated"], functions["start"]

    def observation(self, worlds: Batch) -> Groups:
        return self.observe(worlds)

    def before(self, worlds: Batch) -> Before:
        return Before(worlds.qpos.copy(), worlds.qvel.copy())

    def reward(self, worlds: Batch, actions: np.ndarray, before: Before) -> Parts:
        return self.compute_reward(worlds, before)

    def terminated(self, worlds: Batch) -> np.ndarray | None:
        return None if self.ended is None else self.ended(worlds)

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        if self.started_by is not None:
            self.started_by(worlds, ids, random[ids[0]])
