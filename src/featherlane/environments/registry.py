"""Registration of tasks for `gymnasium.make` and `gymnasium.make_vec`: "featherlane/Ant-v5"."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import gymnasium as gym

from featherlane.environments import dm_control, gymnasium_v5, libero, robosuite
from featherlane.environments import tasks as own_tasks
from featherlane.environments.single_env import SingleEnv
from featherlane.environments.task import Task
from featherlane.environments.vector_env import TaskEnv
from featherlane.errors import ModelError, near

NAMESPACE = "featherlane"
HERE = "featherlane.environments.registry"
_tasks: dict[str, type[Task]] = {}


def tasks() -> dict[str, type[Task]]:
    """Returns the classes of the registered tasks by name, without the namespace."""
    return dict(_tasks)


def register(name: str, task: type[Task], reward_threshold: float | None = None) -> None:
    """Registers a task with Gymnasium as "featherlane/NAME".

    Args:
        name: name with version: "Ant-v5".
        task: a dataclass of `Task`; its fields are the keyword arguments.
        reward_threshold: return at which the task counts as solved.
    """
    _tasks[name] = task
    gym.register(
        f"{NAMESPACE}/{name}",
        entry_point=f"{HERE}:make",
        vector_entry_point=f"{HERE}:make_vec",
        max_episode_steps=getattr(task, "limit", None),
        reward_threshold=reward_threshold,
        kwargs={"task": name},
    )


def register_tasks() -> None:
    """Registers all tasks of this package; importing `featherlane.environments` calls it."""
    for task in (*gymnasium_v5.TASKS, *own_tasks.TASKS, *dm_control.TASKS, *libero.TASKS, *robosuite.TASKS):
        if task.name not in _tasks:
            register(task.name, task, task.reward_threshold)


def make_vec(task: str, num_envs: int = 1, **settings: Any) -> TaskEnv:
    """Creates a vector environment of a task.

    Args:
        task: name: "Ant-v5", "featherlane/Ant-v5".
        num_envs: worlds.
        settings: keyword arguments of the task and of `TaskEnv`.

    Raises:
        ModelError: unknown task or keyword argument, or one out of range.
    """
    own, around = _settings(task, settings, TaskEnv)
    return TaskEnv(_made(task, own), num_envs, **around)


def make(task: str, **settings: Any) -> SingleEnv:
    """Creates one world of a task as a Gymnasium `Env`; arguments and errors are those of `make_vec`."""
    own, around = _settings(task, settings, SingleEnv)
    return SingleEnv(_made(task, own), **around)


def _class_of(name: str) -> type[Task]:
    short = name.removeprefix(f"{NAMESPACE}/") if isinstance(name, str) else name
    if not isinstance(name, str) or short not in _tasks:
        raise ModelError(f"task: got {name!r}, allowed are {', '.join(_tasks)}{near(str(short), list(_tasks))}")
    return _tasks[short]


def _made(name: str, own: dict[str, Any]) -> Task:
    return _class_of(name)(**own)


def _settings(name: str, settings: dict[str, Any], env: type) -> tuple[dict[str, Any], dict[str, Any]]:
    """Splits keyword arguments into those of the task and those of the environment."""
    of_task = [f.name for f in dataclasses.fields(_class_of(name)) if f.init]  # pyright: ignore[reportArgumentType]
    of_env = [key for key in inspect.signature(env).parameters if key not in ("task", "num_envs")]
    for key in settings:
        if key not in of_task and key not in of_env:
            allowed = sorted({*of_task, *of_env})
            listed = ", ".join(allowed)
            raise ModelError(f"{name}: unknown keyword argument {key!r}{near(key, allowed)}, allowed are {listed}")
    own = {key: value for key, value in settings.items() if key in of_task}
    return own, {key: value for key, value in settings.items() if key not in of_task}
