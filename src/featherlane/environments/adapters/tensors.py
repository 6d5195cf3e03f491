"""`TensorEnv`: worlds of a task in PyTorch's tensors, on the memory that the environment writes.

With `copy=False` an environment has two buffers of observations in turn: what a policy acted on is there until the
action after that.  A tensor of the buffer's own kind on the CPU is the buffer, and nothing is copied; what is of
another kind, or on another device, is converted in one pass.  For libraries other than PyTorch, arrays have
`__dlpack__`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from featherlane.environments.adapters.opening import missing, opened, task_env
from featherlane.environments.task import Task
from featherlane.environments.vector_env import TaskEnv

try:
    import torch  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise missing("PyTorch", "torch", error) from None


class TensorEnv:
    """A `TaskEnv` whose `reset` and `step` take and return tensors; infos stay as they are.

    Args:
        env: the environment, in any of its modes.
        device: where tensors lie.
        dtype: of observations and rewards; None: as the environment has them.

    Attributes:
        env: the environment.
        num_envs, device, dtype: as above.
        observations: those of the last reset or step, (n, k).

    Raises:
        ModelError: an environment that is none of ours.
    """

    def __init__(self, env: TaskEnv, device="cpu", dtype=torch.float32):
        self.env = opened(env)
        self.num_envs, self.device, self.dtype = env.num_envs, torch.device(device), dtype
        self.observations = torch.empty(0)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None):
        """Start worlds anew, as `TaskEnv.reset` does.

        Returns:
            Observations (n, k), and infos.
        """
        seen, infos = self.env.reset(seed=seed, options=options)
        self.observations = self.tensor(seen)
        return self.observations, infos

    def step(self, actions):
        """One action (n, nu) in every world.

        Returns:
            Tensors: observations (n, k), rewards (n,), terminations (n,), truncations (n,); and infos.

        Raises:
            ModelError: actions of another shape or kind, or NaN; no world has moved then.
        """
        seen, rewards, terminated, truncated, infos = self.env.step(array(actions))
        self.observations = self.tensor(seen)
        terminated, truncated = (torch.from_numpy(ended).to(self.device) for ended in (terminated, truncated))
        return self.observations, self.tensor(rewards), terminated, truncated, infos

    def tensor(self, values: np.ndarray):
        """A tensor of numbers: their own memory where kind and device are theirs."""
        return torch.from_numpy(values).to(self.device, self.dtype)

    def mean_terms(self) -> dict[str, float]:
        """Means over all worlds of the terms of the last rewards, by name."""
        return {name: float(np.mean(values)) for name, values in self.env.terms.items()}

    def close(self) -> None:
        """Free what drew pictures."""
        self.env.close()


def array(actions):
    """Actions as an array; a tensor's own memory where it lies on the CPU."""
    if not isinstance(actions, torch.Tensor):
        return actions
    actions = actions.detach().cpu()
    return (actions.float() if actions.dtype is torch.bfloat16 else actions).numpy()


def make(task: Task | str, num_envs: int, device="cpu", **settings: Any) -> TensorEnv:
    """A `TensorEnv` of a task in float32, with two buffers; settings are those of the task and of `TaskEnv`."""
    return TensorEnv(task_env(task, num_envs, settings, copy=False), device)
