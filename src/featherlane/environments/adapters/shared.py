"""Shared code of the adapters: creates or checks the `TaskEnv` that an adapter wraps."""

from __future__ import annotations

from typing import Any

from gymnasium.vector import AutoresetMode

from featherlane.environments.registry import make_vec
from featherlane.environments.task import Task
from featherlane.environments.vector_env import TaskEnv
from featherlane.errors import ModelError
from featherlane.extension import instance


def task_env(task: Task | str, num_envs: int, settings: dict[str, Any], **defaults: Any) -> TaskEnv:
    """Creates an environment of a task.

    Args:
        task: a task, or the name of a registered one.
        num_envs: worlds.
        settings: keyword arguments of `TaskEnv`, and of the task if it is given by name.
        defaults: defaults of the library for keyword arguments that are not in `settings`.

    Raises:
        ModelError: unknown task or keyword argument, or one out of range.
    """
    settings = {**defaults, **settings}
    if isinstance(task, Task):
        return TaskEnv(task, num_envs, **settings)
    return make_vec(task, num_envs, **settings)


def open_environment(
    env: TaskEnv,
    modes: tuple[AutoresetMode, ...] = tuple(AutoresetMode),
    copy: bool = False,
    images: bool = False,
) -> TaskEnv:
    """Returns the environment after checking that it suits a library.

    Args:
        env: the environment.
        modes: autoreset modes that the library supports.
        copy: whether the library keeps arrays for longer than a step.
        images: whether the adapter passes images.

    Raises:
        ModelError: not a `TaskEnv`, or one with unsuitable settings.
    """
    instance("env", env, TaskEnv, "a featherlane.environments.TaskEnv without wrappers")
    if env.autoreset_mode not in modes:
        allowed = " or ".join(f"autoreset_mode={mode.value!r}" for mode in modes)
        raise ModelError(
            f"env: got autoreset_mode={env.autoreset_mode.value!r}, allowed with this library is {allowed}"
        )
    if env.task.cameras and not images:
        raise ModelError("env: got a task with cameras, allowed with this adapter is a task without")
    if copy and not env.copy:
        raise ModelError(
            "env: got copy=False, allowed is copy=True: this library keeps observations for longer than a step"
        )
    return env
