"""`SingleEnv`: one world of a task as a Gymnasium environment."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import DTypeLike

from featherlane.environments.task import Task
from featherlane.environments.vector_env import TaskEnv, row_of
from featherlane.model.assignment import regular


class SingleEnv(gym.Env):
    """One world of a task; arguments, attributes and errors are those of `TaskEnv`, with `info=True` by default.

    Episodes are not truncated here: `gymnasium.make` adds `TimeLimit`.
    """

    def __init__(
        self,
        task: Task,
        dtype: DTypeLike = "float64",
        info: bool = True,
        record_failures: int = 0,
        render_mode: str | None = None,
    ):
        self.vector = TaskEnv(
            task, 1, None, AutoresetMode.DISABLED, nthread=1, dtype=dtype, info=info, record_failures=record_failures,
            render_mode=render_mode,
        )  # fmt: skip
        self.task, self.batch, self.render_mode = task, self.vector.batch, render_mode
        self.metadata = {k: v for k, v in self.vector.metadata.items() if k != "autoreset_mode"}
        self.dt = self.vector.dt
        self.observation_space = self.vector.single_observation_space
        self.action_space = self.vector.single_action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets the world.

        Returns:
            The observation (k,), a dict if the task has cameras, and infos.
        """
        if seed is not None:
            self._np_random_seed = seed
        observations, infos = self.vector.reset(seed=seed)
        self._np_random = self.vector.random[0]
        return row_of(observations, 0), _first(infos)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Applies one action (nu,).

        Returns:
            observation (k,), reward, terminated, False for truncated, infos.
        """
        self.vector.revive()
        action = regular("action", action)
        observations, rewards, terminated, _, infos = self.vector.step(action[None] if action.ndim else action)
        return row_of(observations, 0), float(rewards[0]), bool(terminated[0]), False, _first(infos)

    def render(self) -> np.ndarray | None:
        """Returns a picture of the world, (height, width, 3) uint8, with `render_mode="rgb_array"`; else None."""
        frames = self.vector.render()
        return None if frames is None else frames[0]

    def close(self) -> None:
        """Frees the renderer."""
        self.vector.close()


def _first(infos: dict[str, Any]) -> dict[str, Any]:
    """Returns the infos of the only world."""
    return {name: value[0] for name, value in infos.items() if name[:1] != "_"}
