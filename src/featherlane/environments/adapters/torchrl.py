"""TorchRL: n worlds of a task as an `EnvBase` of batch size [n].

TorchRL resets worlds itself with a mask `_reset`, so the wrapped environment has no autoreset.  TorchRL also keeps the
tensors of a rollout until its end, so each observation is a new array, and the tensor shares its memory.
Source: torchrl/envs/common.py.
"""

from __future__ import annotations

from typing import Any

from gymnasium.spaces import Dict
from gymnasium.vector import AutoresetMode

from featherlane.environments.adapters.shared import open_environment, task_env
from featherlane.environments.task import Task
from featherlane.environments.vector_env import TaskEnv
from featherlane.extension import requiring

with requiring("torchrl", "the adapter to TorchRL"):
    import torch  # pyright: ignore[reportMissingImports]
    from tensordict import TensorDict  # pyright: ignore[reportMissingImports]
    from torchrl.data import Binary, Bounded, Composite, Unbounded  # pyright: ignore[reportMissingImports]
    from torchrl.envs import EnvBase  # pyright: ignore[reportMissingImports]

from featherlane.environments.adapters.tensors import TensorEnv

ENDS = "done", "terminated", "truncated"


class TaskEnvBase(EnvBase):
    """Wraps a `TaskEnv`: keys "observation" (n, k), "action" (n, nu), "reward" (n, 1) and the done flags (n, 1).

    If the task has groups of observations, their names are keys in place of "observation".

    Args:
        env: an environment with `autoreset_mode="Disabled"` and `copy=True`.
        device: device of the tensors.
        dtype: dtype of observations and rewards.

    Attributes:
        env: the environment.

    A world that is done continues until it is reset; rollouts that stop when all worlds are done need this.

    Raises:
        ModelError: not a `TaskEnv`, or one with autoreset or with `copy=False`.
    """

    def __init__(self, env: TaskEnv, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32):
        open_environment(env, (AutoresetMode.DISABLED,), copy=True)
        n = env.num_envs
        super().__init__(device=device, batch_size=[n])
        self.env, self._tensors, self._seed = env, TensorEnv(env, device, dtype), None
        space: Any = env.action_space
        low, high = torch.from_numpy(space.low), torch.from_numpy(space.high)
        kind = {"shape": low.shape, "dtype": low.dtype, "device": device}
        limited = bool(low.isfinite().all() and high.isfinite().all())
        self.action_spec = Bounded(low=low, high=high, **kind) if limited else Unbounded(**kind)
        spaces = _by_key(env.observation_space)
        specs = {key: Unbounded(each.shape, dtype=dtype, device=device) for key, each in spaces.items()}
        self.observation_spec = Composite(specs, shape=[n], device=device)
        self.reward_spec = Unbounded((n, 1), dtype=dtype, device=device)
        ends = {end: Binary(1, (n, 1), dtype=torch.bool, device=device) for end in ENDS}
        self.done_spec = Composite(ends, shape=[n], device=device)

    def _reset(self, tensordict: TensorDict | None = None, **kwargs: Any) -> TensorDict:
        mask = None if tensordict is None else tensordict.get("_reset", None)
        options = {} if mask is None else {"reset_mask": mask.reshape(-1).cpu().numpy()}
        observations, _ = self._tensors.reset(self._seed, options)
        self._seed = None
        return self._as_tensordict(**_by_key(observations))

    def _step(self, tensordict: TensorDict) -> TensorDict:
        self.env.revive()
        observations, rewards, terminated, truncated, _ = self._tensors.step(tensordict["action"])
        ends = {"terminated": terminated, "truncated": truncated, "done": terminated | truncated}
        return self._as_tensordict(
            **_by_key(observations), reward=rewards[:, None], **{end: v[:, None] for end, v in ends.items()}
        )

    def _set_seed(self, seed: int | None) -> None:
        self._seed = seed

    def _as_tensordict(self, **values: torch.Tensor) -> TensorDict:
        return TensorDict(values, batch_size=self.batch_size, device=self.device)

    def close(self, *, raise_if_closed: bool = True) -> None:
        """Frees the renderer."""
        self.env.close()
        super().close(raise_if_closed=raise_if_closed)


def _by_key(groups: Any) -> Any:
    """Returns observations or spaces by key; the key of a task without groups is "observation"."""
    return groups if isinstance(groups, dict | Dict) else {"observation": groups}


def make(task: Task | str, num_envs: int, device: torch.device | str = "cpu", **settings: Any) -> TaskEnvBase:
    """Creates an `EnvBase` of a task in float32; settings are those of the task and of `TaskEnv`."""
    return TaskEnvBase(task_env(task, num_envs, settings, autoreset_mode=AutoresetMode.DISABLED), device)
