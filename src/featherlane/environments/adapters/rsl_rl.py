"""rsl_rl: n worlds of a task as its `VecEnv` on tensors.

Observations are a TensorDict with one group, "policy".  A world that ends starts at once; `extras["time_outs"]` tells
ends by the clock, `extras["log"]` the means of the reward's terms.
Source: rsl_rl/env/vec_env.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from featherlane.environments.adapters.opening import missing, opened, task_env
from featherlane.environments.task import Task
from featherlane.environments.vector_env import TaskEnv

try:
    import torch  # pyright: ignore[reportMissingImports]
    from rsl_rl.env import VecEnv  # pyright: ignore[reportMissingImports]
    from tensordict import TensorDict  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise missing("rsl-rl-lib", "rsl-rl", error) from None

from featherlane.environments.adapters.tensors import TensorEnv

UNLIMITED = int(np.iinfo(np.int64).max)


class TaskVecEnv(VecEnv):
    """A `TaskEnv` as a `VecEnv` on tensors; it starts its worlds when it is made.

    Args:
        env: an environment with `autoreset_mode="SameStep"`.
        device: where tensors lie.
        seed: of the first world.

    Attributes:
        env: the environment.
        num_envs, num_actions, max_episode_length, device, cfg: as the library wants them.

    Raises:
        ModelError: an environment that is none of ours, or starts worlds in another way.
    """

    def __init__(self, env: TaskEnv, device="cpu", seed: int | None = None):
        self.env = opened(env, (AutoresetMode.SAME_STEP,))
        self._tensors = TensorEnv(env, device)
        self.device, self.num_envs = self._tensors.device, env.num_envs
        self.num_actions = len(env.task.action_space(env.batch)[0])
        self.max_episode_length = env.max_episode_steps or UNLIMITED
        self.cfg = {"task": type(env.task).__name__, "num_envs": env.num_envs, "frame_skip": env.frame_skip}
        self._tensors.reset(seed)

    @property
    def episode_length_buf(self):
        """Actions since each world's start, (n,) int64: the environment's own memory on the CPU."""
        return torch.from_numpy(self.env.elapsed).to(self.device)

    @episode_length_buf.setter
    def episode_length_buf(self, lengths) -> None:
        self.env.elapsed[:] = lengths.cpu().numpy()

    def get_observations(self):
        """The last observations, {"policy": (n, k)}."""
        return TensorDict({"policy": self._tensors.observations}, batch_size=[self.num_envs])

    def step(self, actions):
        """One action (n, num_actions) in every world.

        Returns:
            Observations as above, rewards (n,), ends (n,), and extras.

        Raises:
            ModelError: actions of another shape or kind, or NaN; no world has moved then.
        """
        _, rewards, terminated, truncated, _ = self._tensors.step(actions)
        log = {f"Reward/{name}": value for name, value in self._tensors.mean_terms().items()}
        extras = {"time_outs": truncated & ~terminated, "log": log}
        return self.get_observations(), rewards, terminated | truncated, extras

    def close(self) -> None:
        """Free what drew pictures."""
        self.env.close()


def make(task: Task | str, num_envs: int, device="cpu", seed: int | None = None, **settings: Any) -> TaskVecEnv:
    """A `VecEnv` of a task with two buffers; settings are those of the task and of `TaskEnv`."""
    env = task_env(task, num_envs, settings, autoreset_mode=AutoresetMode.SAME_STEP, copy=False)
    return TaskVecEnv(env, device, seed)
