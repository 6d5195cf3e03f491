"""`SingleEnv`: one world of a task as a Gymnasium environment."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import DTypeLike

from featherlane.environments.task import Task
from featherlane.environments.vector_env import TaskEnv, non_finite_reward
from featherlane.extension import regular


class SingleEnv(gym.Env):
    """One world of a task; arguments, attributes and errors are those of `TaskEnv`, with `info=True` by default.

    Episodes are not truncated here: `gymnasium.make` adds `TimeLimit`.
    """

    def __init__(
        self,
        task: Task,
        *,
        dtype: DTypeLike = "float64",
        info: bool = True,
        record_failures: int = 0,
        render_mode: str | None = None,
    ):
        self.vector = _OneWorld(
            task, max_episode_steps=None, autoreset_mode=AutoresetMode.DISABLED, nthread=1, dtype=dtype, info=info,
            record_failures=record_failures, render_mode=render_mode,
        )  # fmt: skip
        self.task, self.batch, self.render_mode = task, self.vector.batch, render_mode
        self.metadata = {k: v for k, v in self.vector.metadata.items() if k != "autoreset_mode"}
        self.dt = self.vector.dt
        self.observation_space = self.vector.single_observation_space
        self.action_space = self.vector.single_action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets the world.

        Returns:
            The observation (k,), a dict if the task has groups of observations or cameras, and infos.
        """
        if seed is not None:
            self._np_random_seed = seed
        observations, infos = self.vector.reset(seed=seed)
        self._np_random = self.vector.random[0]
        return _first_row(observations), _first(infos)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Applies one action (nu,).

        Returns:
            observation (k,), reward, terminated, False for truncated, infos.
        """
        return self.vector.step_one(action)

    def render(self) -> np.ndarray | None:
        """Returns a picture of the world, (height, width, 3) uint8, with `render_mode="rgb_array"`; else None."""
        frames = self.vector.render()
        return None if frames is None else frames[0]

    def close(self) -> None:
        """Frees the renderer."""
        self.vector.close()


class _OneWorld(TaskEnv):
    """A `TaskEnv` of one world, whose `step_one` has neither episodes nor arrays over worlds."""

    def step_one(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Steps as `TaskEnv.step`, also after the end of an episode; returns what `SingleEnv.step` returns."""
        self._check_open("step")
        action = action if type(action) is np.ndarray else regular("action", action)
        actions = self._actions(action[None] if action.ndim else action)
        before, (terminated, reward), bad = self._advance(actions, None, self._outcome_of_one)
        self.elapsed[0] += 1
        if bad is not None:
            terminated, reward = True, 0.0
        if not math.isfinite(reward):
            raise non_finite_reward(reward, 0)
        infos = {} if bad is None else {"bad_world": bad[0]}
        if self.info:
            for name, values in self.task.info(self.batch, self.terms, before).items():
                rows = np.asarray(values)
                infos[name] = rows[0] if rows.ndim == 1 else rows[0].copy()
        return _first_row(self._observations.observe(lost=bad)), reward, terminated, False, infos

    def _outcome_of_one(self, actions: Any, before: Any) -> tuple[bool, float]:
        """Returns whether the episode terminates, and the sum of the reward terms."""
        ended, reward = self._ended(), 0.0
        for values in self._reward_terms(actions, before):
            reward += float(values[0])
        return ended is not None and bool(ended[0]), reward


def _first_row(observations: Any) -> Any:
    """Returns the observation of the only world, of new arrays."""
    if isinstance(observations, dict):
        return {name: rows[0] for name, rows in observations.items()}
    return observations[0]


def _first(infos: dict[str, Any]) -> dict[str, Any]:
    """Returns the infos of the only world."""
    return {name: value[0] for name, value in infos.items() if name[:1] != "_"}
