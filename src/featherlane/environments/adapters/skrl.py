"""skrl: n worlds of a task as a `Wrapper` for PyTorch.

The step that ends an episode also resets its world.  Trainers log `infos["episode"]`, the mean of each reward term.
If the task has groups of observations, the group "critic" is skrl's state, and the others are its observations.
Source: skrl/envs/wrappers/torch/base.py; skrl for Isaac Lab (the group "critic").

Note:
    Agents with `time_limit_bootstrap` use the value of the next observation.  By default this is the first observation
    of the new episode.  With `autoreset_mode="NextStep"` it is the last observation of the old episode; each episode
    then adds one transition without physics, from its last state to the next initial state.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from featherlane.environments.adapters.shared import open_environment, task_env
from featherlane.environments.task import Task
from featherlane.environments.vector_env import TaskEnv
from featherlane.extension import requiring

with requiring("skrl", "the adapter to skrl"):
    import torch  # pyright: ignore[reportMissingImports]
    from skrl import config  # pyright: ignore[reportMissingImports]
    from skrl.envs.wrappers.torch import Wrapper  # pyright: ignore[reportMissingImports]
    from skrl.utils.spaces.torch import flatten_tensorized_space  # pyright: ignore[reportMissingImports]

from featherlane.environments.adapters.tensors import TensorEnv

CRITIC = "critic"  # group of the state


class TaskWrapper(Wrapper):
    """Wraps a `TaskEnv` for skrl.

    Args:
        env: an environment with `autoreset_mode="SameStep"`, or "NextStep".
        device: device of the tensors.

    Attributes:
        env: the environment.

    The first `reset` resets all worlds, with the seed of `skrl.utils.set_seed` if it was called.  Later calls return
    the last observations, because worlds are reset automatically.

    Raises:
        ModelError: not a `TaskEnv`, or one without autoreset.
    """

    def __init__(self, env: TaskEnv, device: torch.device | str = "cpu"):
        self.env = open_environment(env, (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP))
        super().__init__(env)
        self._tensors = TensorEnv(env, device)
        self._device, self._started = self._tensors.device, False

    @property
    def observation_space(self) -> gym.Space:
        """The observation space of one world, without the group "critic"."""
        return _without_critic(self.env.single_observation_space)

    @property
    def state_space(self) -> gym.Space | None:
        """The space of the group "critic" of one world; None: there is no such group."""
        space = self.env.single_observation_space
        return space.get(CRITIC) if isinstance(space, gym.spaces.Dict) else None

    @property
    def action_space(self) -> gym.Space:
        """The action space of one world."""
        return self.env.single_action_space

    def reset(self) -> tuple[torch.Tensor, dict[str, Any]]:
        """Returns observations (n, k), and infos."""
        infos: dict[str, Any] = {}
        if not self._started:
            _, infos = self._tensors.reset(config.torch.key)
            self._started = True
        return self._observed(), infos

    def step(
        self, actions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Applies one action (n, nu) in every world.

        Returns:
            observations (n, k), rewards (n, 1), terminations (n, 1), truncations (n, 1), infos.

        Raises:
            ModelError: actions of another shape or type, or NaN; then no world has moved.
        """
        _, *results, infos = self._tensors.step(actions)
        terms = {f"Reward / {name}": torch.tensor(value) for name, value in self._tensors.mean_terms().items()}
        return self._observed(), *(result[:, None] for result in results), {**infos, "episode": terms}

    def state(self) -> torch.Tensor | None:
        """Returns the last observations of the group "critic", (n, k); None: there is no such group."""
        seen = self._tensors.observations
        return seen.get(CRITIC) if isinstance(seen, dict) else None

    def _observed(self) -> torch.Tensor:
        """Returns the last observations without the group "critic", (n, k), in skrl's order of the groups."""
        return flatten_tensorized_space(_without_critic(self._tensors.observations))

    def render(self, *args: Any, **kwargs: Any) -> tuple[np.ndarray, ...] | None:
        """Returns a picture of each world with `render_mode="rgb_array"`, else None."""
        return self.env.render()

    def close(self) -> None:
        """Frees the renderer."""
        self.env.close()


def _without_critic(groups: Any) -> Any:
    """Returns observations or spaces without the group "critic"; without a dict if one group remains."""
    if not isinstance(groups, dict | gym.spaces.Dict):
        return groups
    others = {name: group for name, group in groups.items() if name != CRITIC}
    if len(others) == 1:
        return next(iter(others.values()))
    return gym.spaces.Dict(others) if isinstance(groups, gym.spaces.Dict) else others


def make(task: Task | str, num_envs: int, device: torch.device | str = "cpu", **settings: Any) -> TaskWrapper:
    """Creates a `Wrapper` of a task with two observation buffers; settings are those of the task and of `TaskEnv`."""
    env = task_env(task, num_envs, settings, autoreset_mode=AutoresetMode.SAME_STEP, copy=False)
    return TaskWrapper(env, device)
