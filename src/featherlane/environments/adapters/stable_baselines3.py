"""Stable-Baselines3: n worlds of a task as a `VecEnv`.

Observations of a task with groups or cameras are dicts of arrays.
The step that ends an episode also resets its world; the last observation is `infos[i]["terminal_observation"]`.
`infos[i]["TimeLimit.truncated"]` marks a truncation; the library then bootstraps from the value function.
Source: stable_baselines3/common/vec_env/base_vec_env.py and dummy_vec_env.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from featherlane.environments.adapters.shared import open_environment, task_env
from featherlane.environments.task import Task
from featherlane.environments.vector_env import TaskEnv
from featherlane.errors import ModelError, UnknownAttributeError
from featherlane.extension import requiring

with requiring("stable_baselines3", "the adapter to Stable-Baselines3"):
    from stable_baselines3.common.vec_env import VecEnv  # pyright: ignore[reportMissingImports]

Indices = int | Iterable[int] | None  # numbers of worlds; None for all


class TaskVecEnv(VecEnv):
    """Wraps a `TaskEnv` as a `VecEnv`.

    Args:
        env: an environment with `autoreset_mode="SameStep"`.

    Attributes:
        env: the environment.

    The library's attribute and method calls go to the environment, else to its task.  All worlds share these; use
    `env.batch.expand` for a model field that differs by world.

    Raises:
        ModelError: not a `TaskEnv`, or another autoreset mode.
    """

    def __init__(self, env: TaskEnv):
        self.env = open_environment(env, (AutoresetMode.SAME_STEP,), images=True)
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)
        self._actions: Any = None

    def reset(self) -> np.ndarray | dict[str, np.ndarray]:
        """Resets all worlds, with the seeds of `seed` if it was called.

        Returns:
            Observations (n, k), or a dict of arrays by group and image.
        """
        seeds = self._seeds if any(seed is not None for seed in self._seeds) else None
        observations, infos = self.env.reset(seed=seeds, options=self._options[0])
        self.reset_infos = self._each(infos)
        self._reset_seeds()
        self._reset_options()
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        """Stores the actions (n, nu) for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Applies the stored actions.

        Returns:
            observations as of `reset`, rewards (n,) float32, dones (n,), and a dict for each world.

        Raises:
            ModelError: actions of another shape or type, or NaN; then no world has moved.
        """
        observations, rewards, terminated, truncated, infos = self.env.step(self._actions)
        ended = terminated | truncated
        final, last = infos.pop("final_info", {}), infos.pop("final_obs", None)
        each = self._each(infos)
        if last is not None:
            of_ended = self._each(final)
            for i in np.flatnonzero(ended):
                self.reset_infos[i], each[i] = each[i], of_ended[i]
                each[i]["terminal_observation"] = last[i]
                each[i]["TimeLimit.truncated"] = bool(truncated[i] and not terminated[i])
        return observations, rewards.astype(np.float32), ended, each

    def _each(self, infos: dict[str, Any]) -> list[dict[str, Any]]:
        """Converts infos to one dict for each world."""
        each: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for name, values in infos.items():
            if name[:1] != "_" and f"_{name}" in infos:
                for i in np.flatnonzero(infos[f"_{name}"]):
                    each[i][name] = values[i]
        return each

    def close(self) -> None:
        """Frees the renderer."""
        self.env.close()

    def get_images(self) -> Sequence[np.ndarray | None]:
        """Returns a picture of each world, or None for each without a render mode."""
        return self.env.render() or [None] * self.num_envs

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """Returns the attribute's value, once for each world in `indices`.

        Raises:
            AttributeError: neither the environment nor its task has it.
        """
        return [getattr(self._owner(attr_name), attr_name)] * len(self._some(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Sets the attribute for all worlds.

        Raises:
            AttributeError: neither the environment nor its task has it.
            ModelError: indices of some of the worlds.
        """
        self._all(indices, f"set {attr_name!r}")
        setattr(self._owner(attr_name), attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Calls the method once for all worlds.

        Returns:
            The result, once for each world.

        Raises:
            AttributeError: neither the environment nor its task has it.
            ModelError: indices of some of the worlds.
        """
        self._all(indices, f"call {method_name!r}")
        return [getattr(self._owner(method_name), method_name)(*method_args, **method_kwargs)] * self.num_envs

    def env_is_wrapped(self, wrapper_class: type, indices: Indices = None) -> list[bool]:
        """Returns False for each world: single worlds cannot be wrapped."""
        return [False] * len(self._some(indices))

    def _owner(self, name: str) -> Any:
        for owner in (self.env, self.env.task):
            if hasattr(owner, name):
                return owner
        raise UnknownAttributeError(
            f"neither {type(self.env).__name__} nor {type(self.env.task).__name__} has the attribute {name!r}"
        )

    def _some(self, indices: Indices) -> list[int]:
        return list(self._get_indices(indices))

    def _all(self, indices: Indices, what: str) -> None:
        if sorted(self._some(indices)) != list(range(self.num_envs)):
            raise ModelError(f"indices: got {indices}, allowed is None: all worlds share it, {what} applies to all")


def make(task: Task | str, num_envs: int, **settings: Any) -> TaskVecEnv:
    """Creates a `VecEnv` of a task; settings are those of the task and of `TaskEnv`."""
    return TaskVecEnv(task_env(task, num_envs, settings, autoreset_mode=AutoresetMode.SAME_STEP))
