"""Stable-Baselines3: n worlds of a task as its `VecEnv`.

A world that ends starts at once, as a `VecEnv`'s do; its last observation is `infos[i]["terminal_observation"]`, and
`infos[i]["TimeLimit.truncated"]` tells an end by the clock, after which the library counts on from the value.
Source: stable_baselines3/common/vec_env/base_vec_env.py and dummy_vec_env.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from featherlane.environments.adapters.opening import missing, opened, task_env
from featherlane.environments.task import Task
from featherlane.environments.vector_env import TaskEnv
from featherlane.errors import ModelError, UnknownAttributeError

try:
    from stable_baselines3.common.vec_env import VecEnv  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise missing("Stable-Baselines3", "sb3", error) from None


class TaskVecEnv(VecEnv):
    """A `TaskEnv` as a `VecEnv`.

    Args:
        env: an environment with `autoreset_mode="SameStep"`.

    Attributes:
        env: the environment.

    Attributes and methods that the library asks for are those of the environment, else of its task; all worlds share
    them, so what differs by world is a field that `env.batch.expand` gives each its own.

    Raises:
        ModelError: an environment that is none of ours, or starts worlds in another way.
    """

    def __init__(self, env: TaskEnv):
        self.env = opened(env, (AutoresetMode.SAME_STEP,))
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)
        self._actions: Any = None

    def reset(self) -> np.ndarray:
        """Start all worlds anew, from the seeds of `seed` if it was called.

        Returns:
            Observations (n, k).
        """
        seeds = self._seeds if any(seed is not None for seed in self._seeds) else None
        seen, infos = self.env.reset(seed=seeds, options=self._options[0])
        self.reset_infos = self._each(infos)
        self._reset_seeds()
        self._reset_options()
        return seen

    def step_async(self, actions: np.ndarray) -> None:
        """Take the actions (n, nu) of the step that `step_wait` does."""
        self._actions = actions

    def step_wait(self):
        """The step.

        Returns:
            observations (n, k), rewards (n,) float32, ends (n,), and a dict for each world.

        Raises:
            ModelError: actions of another shape or kind, or NaN; no world has moved then.
        """
        seen, rewards, terminated, truncated, infos = self.env.step(self._actions)
        ended = terminated | truncated
        final, last = infos.pop("final_info", {}), infos.pop("final_obs", None)
        each = self._each(infos)
        if last is not None:
            of_ended = self._each(final)
            for i in np.flatnonzero(ended):
                self.reset_infos[i], each[i] = each[i], of_ended[i]
                each[i]["terminal_observation"] = last[i]
                each[i]["TimeLimit.truncated"] = bool(truncated[i] and not terminated[i])
        return seen, rewards.astype(np.float32), ended, each

    def _each(self, infos: dict[str, Any]) -> list[dict[str, Any]]:
        """Infos as a dict for each world."""
        each: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for name, values in infos.items():
            if name[:1] != "_" and f"_{name}" in infos:
                for i in np.flatnonzero(infos[f"_{name}"]):
                    each[i][name] = values[i]
        return each

    def close(self) -> None:
        """Free what drew pictures."""
        self.env.close()

    def get_images(self):
        """A picture of each world, or None for each without a render mode."""
        return self.env.render() or [None] * self.num_envs

    def get_attr(self, attr_name: str, indices=None) -> list[Any]:
        """The value, once for each world asked for.

        Raises:
            AttributeError: neither the environment nor its task has it.
        """
        return [getattr(self._owner(attr_name), attr_name)] * len(self._some(indices))

    def set_attr(self, attr_name: str, value: Any, indices=None) -> None:
        """Set it for all worlds.

        Raises:
            AttributeError: neither the environment nor its task has it.
            ModelError: indices of some of the worlds.
        """
        self._all(indices, f"set {attr_name!r}")
        setattr(self._owner(attr_name), attr_name, value)

    def env_method(self, method_name: str, *method_args, indices=None, **method_kwargs) -> list[Any]:
        """Call it, once for all worlds.

        Returns:
            The result, once for each world.

        Raises:
            AttributeError: neither the environment nor its task has it.
            ModelError: indices of some of the worlds.
        """
        self._all(indices, f"call {method_name!r}")
        return [getattr(self._owner(method_name), method_name)(*method_args, **method_kwargs)] * self.num_envs

    def env_is_wrapped(self, wrapper_class, indices=None) -> list[bool]:
        """False for each world: nothing wraps one of them."""
        return [False] * len(self._some(indices))

    def _owner(self, name: str):
        for owner in (self.env, self.env.task):
            if hasattr(owner, name):
                return owner
        raise UnknownAttributeError(
            f"neither {type(self.env).__name__} nor {type(self.env.task).__name__} has {name!r}"
        )

    def _some(self, indices: int | Iterable[int] | None) -> list[int]:
        return list(self._get_indices(indices))

    def _all(self, indices, what: str) -> None:
        if sorted(self._some(indices)) != list(range(self.num_envs)):
            raise ModelError(f"indices: got {indices}, allowed is None, to {what} for all worlds, which share it")


def make(task: Task | str, num_envs: int, **settings: Any) -> TaskVecEnv:
    """A `VecEnv` of a task; settings are those of the task and of `TaskEnv`."""
    return TaskVecEnv(task_env(task, num_envs, settings, autoreset_mode=AutoresetMode.SAME_STEP))
