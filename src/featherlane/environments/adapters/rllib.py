"""RLlib: n worlds of a task in each of its environment runners, through Gymnasium's vector entry point.

A registered task needs no adapter: `config.environment("featherlane.environments:featherlane/Ant-v5")`.  Importing the
module before the colon registers the task in every process.  `register` registers another task, or a task with
settings, under a name.  Both cases require
`config.env_runners(gym_env_vectorize_mode="vector_entry_point", num_envs_per_env_runner=256)`.
Source: ray/rllib/env/single_agent_env_runner.py, `make_env`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from gymnasium.vector import AutoresetMode

from featherlane.environments.adapters.shared import open_environment, task_env
from featherlane.environments.task import Task
from featherlane.environments.vector_env import TaskEnv
from featherlane.errors import ModelError
from featherlane.extension import requiring

with requiring("ray.rllib", "the adapter to RLlib"):
    from ray.tune.registry import register_env  # pyright: ignore[reportMissingImports]


class Creator:
    """Creates the environment of an RLlib runner; it can be pickled if its task can.

    Args:
        task: a task, or the name of a registered one.
        settings: keyword arguments of `TaskEnv`, and of the task if it is given by name.
    """

    def __init__(self, task: Task | str, **settings: Any):
        self.task, self.settings = task, settings

    def __call__(self, context: Mapping[str, Any]) -> TaskEnv:
        """Creates an environment of `context["num_envs"]` worlds; the other items of `context` are settings.

        Raises:
            ModelError: no `num_envs` (RLlib is not set to vector environments), or invalid settings.
        """
        settings = {**self.settings, **context}
        if "num_envs" not in settings:
            raise ModelError(
                'gym_env_vectorize_mode: RLlib requested a single environment, allowed is "vector_entry_point"'
            )
        # a runner keeps observations until its episodes are cut, and uses the step after a termination as a reset
        env = task_env(copy.deepcopy(self.task), settings.pop("num_envs"), settings)
        return open_environment(env, (AutoresetMode.NEXT_STEP,), copy=True)


def register(name: str, task: Task | str, **settings: Any) -> None:
    """Registers a task under a name, for `config.environment(name)`.

    Args:
        name: any name.
        task: a task, or the name of a registered one.
        settings: keyword arguments of `TaskEnv`, and of the task if it is given by name; `env_config` adds to them.
    """
    register_env(name, Creator(task, **settings))
