"""What doors have in common: the environment behind them, made as a library wants it or checked."""

from __future__ import annotations

from typing import Any

from gymnasium.vector import AutoresetMode

from featherlane.environments.registry import make_vec
from featherlane.environments.task import Task
from featherlane.environments.vector_env import TaskEnv
from featherlane.errors import InstallationError, ModelError
from featherlane.model.arguments import instance


def missing(library: str, extra: str, error: ImportError) -> InstallationError:
    """What is raised where a library is not installed."""
    return InstallationError(f"this door needs {library}: pip install 'featherlane[{extra}]' ({error})")


def task_env(task: Task | str, num_envs: int, settings: dict[str, Any], **wanted: Any) -> TaskEnv:
    """An environment of a task.

    Args:
        task: a task, or the name of a registered one.
        num_envs: worlds.
        settings: keyword arguments of `TaskEnv`, and those of the task where it has a name.
        wanted: what a library wants where `settings` do not say it.

    Raises:
        ModelError: no such task or keyword argument, or one out of range.
    """
    settings = {**wanted, **settings}
    if isinstance(task, Task):
        return TaskEnv(task, num_envs, **settings)
    return make_vec(task, num_envs, **settings)


def opened(env: TaskEnv, modes: tuple[AutoresetMode, ...] = tuple(AutoresetMode), copy: bool = False) -> TaskEnv:
    """The environment itself, where it suits a library.

    Args:
        env: the environment.
        modes: which ways to start worlds anew the library knows.
        copy: whether it keeps arrays for longer than a step.

    Raises:
        ModelError: it is none of ours, or made for others.
    """
    instance("env", env, TaskEnv, "a featherlane.environments.TaskEnv, not wrapped")
    if env.autoreset_mode not in modes:
        allowed = " or ".join(f"autoreset_mode={mode.value!r}" for mode in modes)
        raise ModelError(f"env: got autoreset_mode={env.autoreset_mode.value!r}, this library takes {allowed}")
    if copy and not env.copy:
        raise ModelError("env: got copy=False, this library keeps observations for longer than a step: copy=True")
    return env
