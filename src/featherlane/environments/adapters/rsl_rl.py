"""rsl_rl: n worlds of a task as a `VecEnv` on tensors.

Observations are a TensorDict of the task's groups, or with one group, "policy".  The step that ends an episode also
resets its world.  `extras["time_outs"]` marks truncations; `extras["log"]` holds the mean of each reward term.
Source: rsl_rl/env/vec_env.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from featherlane.environments.adapters.shared import open_environment, task_env
from featherlane.environments.task import Task
from featherlane.environments.vector_env import TaskEnv
from featherlane.extension import requiring

with requiring("rsl_rl", "the adapter to rsl_rl"):
    import torch  # pyright: ignore[reportMissingImports]
    from rsl_rl.env import VecEnv  # pyright: ignore[reportMissingImports]
    from tensordict import TensorDict  # pyright: ignore[reportMissingImports]

from featherlane.environments.adapters.tensors import TensorEnv

UNLIMITED = int(np.iinfo(np.int64).max)


class TaskVecEnv(VecEnv):
    """Wraps a `TaskEnv` as a `VecEnv` on tensors; the constructor resets all worlds.

    Args:
        env: an environment with `autoreset_mode="SameStep"`.
        device: device of the tensors.
        seed: seed of the first world.

    Attributes:
        env: the environment.
        num_envs, num_actions, max_episode_length, device, cfg: as rsl_rl defines them.

    Raises:
        ModelError: not a `TaskEnv`, or another autoreset mode.
    """

    def __init__(self, env: TaskEnv, device: torch.device | str = "cpu", seed: int | None = None):
        self.env = open_environment(env, (AutoresetMode.SAME_STEP,))
        self._tensors = TensorEnv(env, device)
        self.device, self.num_envs = self._tensors.device, env.num_envs
        self.num_actions = len(env.task.action_space(env.batch)[0])
        self.max_episode_length = env.max_episode_steps or UNLIMITED
        self.cfg = {"task": type(env.task).__name__, "num_envs": env.num_envs, "frame_skip": env.frame_skip}
        self._tensors.reset(seed)

    @property
    def episode_length_buf(self) -> torch.Tensor:
        """Actions since each world's reset, (n,) int64; on the CPU, it shares the environment's memory."""
        return torch.from_numpy(self.env.elapsed).to(self.device)

    @episode_length_buf.setter
    def episode_length_buf(self, lengths: torch.Tensor) -> None:
        self.env.elapsed[:] = lengths.cpu().numpy()

    def get_observations(self) -> TensorDict:
        """Returns the last observations, (n, k) of each group; {"policy": (n, k)} of a task without groups."""
        seen = self._tensors.observations
        return TensorDict(seen if isinstance(seen, dict) else {"policy": seen}, batch_size=[self.num_envs])

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Applies one action (n, num_actions) in every world.

        Returns:
            Observations as above, rewards (n,), dones (n,), and extras.

        Raises:
            ModelError: actions of another shape or type, or NaN; then no world has moved.
        """
        _, rewards, terminated, truncated, _ = self._tensors.step(actions)
        log = {f"Reward/{name}": value for name, value in self._tensors.mean_terms().items()}
        extras = {"time_outs": truncated & ~terminated, "log": log}
        return self.get_observations(), rewards, terminated | truncated, extras

    def close(self) -> None:
        """Frees the renderer."""
        self.env.close()


def make(
    task: Task | str, num_envs: int, device: torch.device | str = "cpu", seed: int | None = None, **settings: Any
) -> TaskVecEnv:
    """Creates a `VecEnv` of a task with two observation buffers; settings are those of the task and of `TaskEnv`."""
    env = task_env(task, num_envs, settings, autoreset_mode=AutoresetMode.SAME_STEP, copy=False)
    return TaskVecEnv(env, device, seed)
