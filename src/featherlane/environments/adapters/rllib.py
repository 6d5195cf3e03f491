"""RLlib: n worlds of a task in each of its environment runners, through Gymnasium's vector entry point.

A registered task needs no door: `config.environment("featherlane.environments:featherlane/Ant-v5")`; what stands before
the colon makes the name known in every process.  `register` gives a name to tasks that have none, or to settings.  Both
need `config.env_runners(gym_env_vectorize_mode="vector_entry_point", num_envs_per_env_runner=256)`.
Source: ray/rllib/env/single_agent_env_runner.py, `make_env`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from gymnasium.vector import AutoresetMode

from featherlane.environments.adapters.opening import missing, opened, task_env
from featherlane.environments.task import Task
from featherlane.environments.vector_env import TaskEnv
from featherlane.errors import ModelError

try:
    from ray.tune.registry import register_env  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise missing("RLlib", "rllib", error) from None


class Creator:
    """What RLlib calls for the environment of a runner; it can be pickled where its task can.

    Args:
        task: a task, or the name of a registered one.
        settings: keyword arguments of `TaskEnv`, and those of the task where it has a name.
    """

    def __init__(self, task: Task | str, **settings: Any):
        self.task, self.settings = task, settings

    def __call__(self, context: Mapping[str, Any]) -> TaskEnv:
        """An environment of `context["num_envs"]` worlds; what else is in it are settings.

        Raises:
            ModelError: no `num_envs`, for RLlib is not told that environments are vectors; settings that are none.
        """
        settings = {**self.settings, **context}
        if "num_envs" not in settings:
            raise ModelError('gym_env_vectorize_mode: RLlib asks for one world, allowed is "vector_entry_point"')
        # a runner keeps observations until its episodes are cut, and takes the step after an end for a start
        env = task_env(copy.deepcopy(self.task), settings.pop("num_envs"), settings)
        return opened(env, (AutoresetMode.NEXT_STEP,), copy=True)


def register(name: str, task: Task | str, **settings: Any) -> None:
    """Let RLlib know a task by a name, for `config.environment(name)`.

    Args:
        name: any.
        task: a task, or the name of a registered one.
        settings: keyword arguments of `TaskEnv`, and those of the task where it has a name; `env_config` has the rest.
    """
    register_env(name, Creator(task, **settings))
