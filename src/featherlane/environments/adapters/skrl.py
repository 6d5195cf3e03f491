"""skrl: n worlds of a task as its `Wrapper` for PyTorch.

A world that ends starts at once.  `infos["episode"]` holds the means of the reward's terms, which trainers log.
Source: skrl/envs/wrappers/torch/base.py.

Note:
    Agents with `time_limit_bootstrap` read the value of the next observation, which is that of the new episode here.
    An environment with `autoreset_mode="NextStep"` hands them the last one, at the price of one transition in each
    episode that no physics made: from its end to the next start.
"""

from __future__ import annotations

from typing import Any

from gymnasium.vector import AutoresetMode

from featherlane.environments.adapters.opening import missing, opened, task_env
from featherlane.environments.task import Task
from featherlane.environments.vector_env import TaskEnv

try:
    import torch  # pyright: ignore[reportMissingImports]
    from skrl import config  # pyright: ignore[reportMissingImports]
    from skrl.envs.wrappers.torch import Wrapper  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise missing("skrl", "skrl", error) from None

from featherlane.environments.adapters.tensors import TensorEnv


class TaskWrapper(Wrapper):
    """A `TaskEnv` as skrl wraps environments.

    Args:
        env: an environment with `autoreset_mode="SameStep"`, or "NextStep".
        device: where tensors lie.

    Attributes:
        env: the environment.

    The first `reset` starts all worlds, from the seed of `skrl.utils.set_seed` if it was called; later ones return what
    was seen last, for worlds start by themselves.

    Raises:
        ModelError: an environment that is none of ours, or one without autoreset.
    """

    def __init__(self, env: TaskEnv, device="cpu"):
        self.env = opened(env, (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP))
        super().__init__(env)
        self._tensors = TensorEnv(env, device)
        self._device, self._started = self._tensors.device, False

    @property
    def observation_space(self):
        """Of one world."""
        return self.env.single_observation_space

    @property
    def action_space(self):
        """Of one world."""
        return self.env.single_action_space

    def reset(self):
        """Observations (n, k), and infos."""
        infos: dict[str, Any] = {}
        if not self._started:
            _, infos = self._tensors.reset(config.torch.key)
            self._started = True
        return self._tensors.observations, infos

    def step(self, actions):
        """One action (n, nu) in every world.

        Returns:
            observations (n, k), rewards (n, 1), terminations (n, 1), truncations (n, 1), infos.

        Raises:
            ModelError: actions of another shape or kind, or NaN; no world has moved then.
        """
        seen, *results, infos = self._tensors.step(actions)
        terms = {f"Reward / {name}": torch.tensor(value) for name, value in self._tensors.mean_terms().items()}
        return seen, *(result[:, None] for result in results), {**infos, "episode": terms}

    def state(self) -> None:
        """None: agents see what there is to see."""

    def render(self, *args, **kwargs):
        """A picture of each world, with `render_mode="rgb_array"`; else None."""
        return self.env.render()

    def close(self) -> None:
        """Free what drew pictures."""
        self.env.close()


def make(task: Task | str, num_envs: int, device="cpu", **settings: Any) -> TaskWrapper:
    """A `Wrapper` of a task with two buffers; settings are those of the task and of `TaskEnv`."""
    env = task_env(task, num_envs, settings, autoreset_mode=AutoresetMode.SAME_STEP, copy=False)
    return TaskWrapper(env, device)
