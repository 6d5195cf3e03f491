"""Writes the table of our tasks in docs/tasks.md, from the tasks themselves: run `python docs/tasks.py`."""

from __future__ import annotations

import inspect

import featherlane.environments as environments
from featherlane.environments.tasks import TASKS

BEGIN, END = "<!-- tasks:begin -->", "<!-- tasks:end -->"
HEAD = """| task | description | observation | reward | termination | episode |
| --- | --- | --- | --- | --- | --- |"""


def table() -> str:
    """Returns a row per task: its observation parts with their lengths, terms with weights, terminations, time."""
    return "\n".join([HEAD, *(_row(task.name) for task in TASKS)])


def _row(name: str) -> str:
    env = environments.make_vec(name, 1)
    env.reset(seed=0)
    task, worlds = env.task, env.batch
    seen = ", ".join(f"{part} {values.shape[1]}" for part, values in task.observation(worlds).items())
    paid = ", ".join(f"{weight:+g} {term}" for term, weight in task.weight.items())
    end = "none"
    if task.terminated(worlds) is not None:
        end = inspect.getdoc(task.terminated).rstrip(".")  # pyright: ignore[reportOptionalMemberAccess]
        end = end.removeprefix("Terminates ")
    seconds = task.limit * env.dt
    what = (inspect.getdoc(type(task)) or "").splitlines()[0].rstrip(".")
    return (
        f"| `{name}` | {what} | {seen}: {env.single_observation_space.shape[0]} | {paid} | {end} "
        f"| {task.limit} actions of {1000 * env.dt:g} ms, {seconds:g} s |"
    )
