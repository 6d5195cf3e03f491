"""`TensorEnv`: worlds of a task in PyTorch tensors that share the environment's memory.

With `copy=False` an environment alternates between two observation buffers, so an observation stays valid until the
second step after it.  A CPU tensor of the buffer's dtype shares the buffer's memory without a copy; other dtypes and
devices are converted in one pass.  For libraries other than PyTorch, arrays have `__dlpack__`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from featherlane.environments.adapters.shared import open_environment, task_env
from featherlane.environments.task import Task
from featherlane.environments.vector_env import TaskEnv
from featherlane.extension import requiring

with requiring("torch", "the adapter to PyTorch"):
    import torch  # pyright: ignore[reportMissingImports]


class TensorEnv:
    """Wraps a `TaskEnv`: `reset` and `step` take and return tensors; infos are unchanged.

    Args:
        env: the environment, in any autoreset mode.
        device: device of the tensors.
        dtype: dtype of observations and rewards; None: that of the environment.

    Attributes:
        env: the environment.
        num_envs, device, dtype: as above.
        observations: observations of the last reset or step, (n, k), or a dict of them by group.

    Raises:
        ModelError: not a `TaskEnv`.
    """

    def __init__(self, env: TaskEnv, device: torch.device | str = "cpu", dtype: torch.dtype | None = torch.float32):
        self.env = open_environment(env)
        self.num_envs, self.device, self.dtype = env.num_envs, torch.device(device), dtype
        self.observations: Any = torch.empty(0)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets worlds as `TaskEnv.reset` does.

        Returns:
            Observations (n, k), or a dict of them by group, and infos.
        """
        observations, infos = self.env.reset(seed=seed, options=options)
        self.observations = self._observed(observations)
        return self.observations, infos

    def step(self, actions: Any) -> tuple[Any, torch.Tensor, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Applies one action (n, nu) in every world.

        Returns:
            Tensors: observations as of `reset`, rewards (n,), terminations (n,), truncations (n,); and infos.

        Raises:
            ModelError: actions of another shape or type, or NaN; then no world has moved.
        """
        observations, rewards, terminated, truncated, infos = self.env.step(array(actions))
        self.observations = self._observed(observations)
        terminated, truncated = (torch.from_numpy(ended).to(self.device) for ended in (terminated, truncated))
        return self.observations, self.tensor(rewards), terminated, truncated, infos

    def _observed(self, observations: Any) -> Any:
        """Returns observations as tensors, by group if the task has groups."""
        if isinstance(observations, dict):
            return {group: self.tensor(rows) for group, rows in observations.items()}
        return self.tensor(observations)

    def tensor(self, values: np.ndarray) -> torch.Tensor:
        """Returns an array as a tensor, without a copy if dtype and device match."""
        return torch.from_numpy(values).to(self.device, self.dtype)

    def mean_terms(self) -> dict[str, float]:
        """Returns the mean over all worlds of each term of the last rewards, by name."""
        return {name: float(np.mean(values)) for name, values in self.env.terms.items()}

    def close(self) -> None:
        """Frees the renderer."""
        self.env.close()


def array(actions: Any) -> Any:
    """Returns actions as an array; a CPU tensor is not copied."""
    if not isinstance(actions, torch.Tensor):
        return actions
    actions = actions.detach().cpu()
    return (actions.float() if actions.dtype is torch.bfloat16 else actions).numpy()


def make(task: Task | str, num_envs: int, device: torch.device | str = "cpu", **settings: Any) -> TensorEnv:
    """Creates a `TensorEnv` in float32 with two buffers; settings are those of the task and of `TaskEnv`."""
    return TensorEnv(task_env(task, num_envs, settings, copy=False), device)
