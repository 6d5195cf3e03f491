"""`BatchEnv`: a task from functions of the batch, for what is written in a minute and needs no class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import AutoresetMode

from featherlane.environments.random_streams import RandomStreams
from featherlane.environments.task import Task
from featherlane.environments.vector_env import TaskEnv
from featherlane.errors import ModelError
from featherlane.simulation.batch.batch import Batch
from featherlane.simulation.world.recordings import field_names


class Before(NamedTuple):
    """The state that an action met: qpos (n, nq) and qvel (n, nv)."""

    qpos: np.ndarray
    qvel: np.ndarray


class BatchEnv(TaskEnv):
    """n worlds of one model as a Gymnasium vector environment, told what they do by functions.

    Args:
        model: a `Model`, or whatever `featherlane.load` takes.
        num_envs: worlds.
        observation: function of the batch to (n, k), or to arrays (n, ...) by name.
        reward: function of (batch, before) to (n,), or to terms (n,) by name: `Before` is the state that the action
            met, `batch.ctrl` the action.
        terminated: function of the batch to (n,) bool; None: worlds end by their numbers turning bad only.
        start: function of (batch, ids, rng) that sets the state of the worlds `ids`, which were just reset to the
            model's defaults; None leaves them there.  `rng` is the generator of the first of them: what is to start
            each world from a generator of its own is a `Task`.
        frame_skip: time steps for each action.
        fields: derived fields of the batch (`xpos`, `sensordata`, ...) that `reward`, `terminated` and `start` read;
            those of `observation` need not be named.

    The other arguments, and what it raises, are those of `TaskEnv`.

    Note:
        After a step, derived fields (`batch.xpos`, ...) are those of the state before the last time step, as in MuJoCo;
        an observation that needs current ones calls `batch.forward()` first, and names them in `fields`.  After a reset
        they are those of the new state.
    """

    def __init__(
        self,
        model,
        num_envs: int,
        observation: Callable[[Batch], np.ndarray],
        reward: Callable[[Batch, Before], np.ndarray],
        terminated: Callable[[Batch], np.ndarray] | None = None,
        start: Callable[[Batch, np.ndarray, np.random.Generator], None] | None = None,
        frame_skip: int = 1,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        nthread: int = 0,
        dtype="float64",
        record_bad: int = 0,
        info: bool = False,
        copy: bool = True,
        render_mode: str | None = None,
        render_worlds: int = 16,
        fields: Sequence[str] = (),
    ):
        functions = {"observation": observation, "reward": reward, "terminated": terminated, "start": start}
        for name, function in functions.items():
            if not callable(function) and not (function is None and name in ("terminated", "start")):
                raise ModelError(f"{name}: got {type(function).__name__}, allowed is a function of the batch")
        task = Functions(model, frame_skip, functions, field_names("fields", fields))
        super().__init__(
            task, num_envs, max_episode_steps, autoreset_mode, nthread, dtype, info, copy, record_bad,
            render_mode, render_worlds,
        )  # fmt: skip


class Functions(Task):
    """A task from functions."""

    def __init__(self, model, frame_skip: int, functions: dict[str, Any], fields: Sequence[str]):
        self.model, self.frame_skip, self.fields = model, frame_skip, tuple(fields)
        self.seen, self.paid = functions["observation"], functions["reward"]
        self.ended, self.started_by = functions["terminated"], functions["start"]

    def observation(self, worlds: Batch):
        return self.seen(worlds)

    def before(self, worlds: Batch) -> Before:
        return Before(worlds.qpos.copy(), worlds.qvel.copy())

    def reward(self, worlds: Batch, actions: np.ndarray, before: Before):
        return self.paid(worlds, before)

    def terminated(self, worlds: Batch):
        return None if self.ended is None else self.ended(worlds)

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        if self.started_by is not None:
            self.started_by(worlds, ids, random[ids[0]])
