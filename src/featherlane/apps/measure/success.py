"""Success of a policy in the tasks of a LIBERO suite, from their recorded initial states."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from featherlane.errors import ModelError
from featherlane.extension import whole_argument

Z = 1.959964  # 95 % of a normal distribution lie within this number of standard deviations
OPEN = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0])  # the action before an episode: no motion, the gripper opens
# (observation, instruction, worlds whose episode begins (n,) bool) -> actions (n, 7)
Policy = Callable[[Mapping[str, np.ndarray], str, np.ndarray], Any]


@dataclass
class Evaluation:
    """What to evaluate.

    Attributes:
        suite: name of the suite.
        episodes: episodes of each task; episode k starts from the recorded state k modulo their number.
        worlds: episodes at the same time.
        tasks: numbers of the tasks; None: all.
        horizon: actions after which an episode fails.
        settle: actions before the episode, in which objects come to rest.
        image_size: as of `LiberoTask`.
        seed: of the poses of fixtures.
        dtype, threads: of the batch.
    """

    suite: str
    episodes: int = 50
    worlds: int = 50
    tasks: tuple[int, ...] | None = None
    horizon: int = 600
    settle: int = 10
    image_size: int = 0
    seed: int = 0
    dtype: str = "float64"
    threads: int = 0


def wilson(successes: int, n: int) -> tuple[float, float]:
    """Returns the 95 % confidence interval of a rate of success.

    Source: Wilson (1927), Probable inference, the law of succession, and statistical inference.
    """
    rate, share = successes / n, Z * Z / n
    half = Z * math.sqrt(rate * (1.0 - rate) / n + share / (4.0 * n)) / (1.0 + share)
    middle = (rate + share / 2.0) / (1.0 + share)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def row(task: str, instruction: str, successes: int, episodes: int, actions: float | None) -> dict[str, Any]:
    """Returns a row of the table."""
    low, high = wilson(successes, episodes)
    rate = {"success": successes / episodes, "low": low, "high": high}
    return {"task": task, "episodes": episodes, "successes": successes, **rate, "actions": actions} | {
        "instruction": instruction
    }


def evaluate(given: Evaluation, policy: Policy, name: str) -> Iterator[dict[str, Any]]:
    """Yields a row of each task, and one of all tasks if there are several.

    Args:
        name: of the policy, for messages.

    Raises:
        ModelError: an unknown suite or task, numbers out of range, actions of another shape or with NaN.
        InstallationError: Gymnasium, LIBERO or its assets are missing.
    """
    from featherlane.environments import tasks
    from featherlane.environments.libero.suite import suite_tasks

    for number in ("episodes", "worlds", "horizon"):
        whole_argument(number, getattr(given, number), 1)
    whole_argument("settle", given.settle, 0)
    count = len(suite_tasks(given.suite))
    chosen = range(count) if given.tasks is None else given.tasks
    for number in chosen:
        whole_argument("tasks", number, 0, count - 1)
    rows = []
    for number in chosen:
        size = {"horizon": given.horizon + given.settle, "image_size": given.image_size, "seed": given.seed}
        task: Any = tasks()[given.suite](task_id=number, **size)  # pyright: ignore[reportCallIssue]
        lengths = run_task(given, task, policy, name)
        won = [length for length in lengths if length is not None]
        mean = float(np.mean(won)) if won else None
        rows.append(row(str(number), task.instruction, len(won), given.episodes, mean))
        yield rows[-1]
    if len(rows) > 1:
        won = sum(r["successes"] for r in rows)
        total = sum(r["successes"] * r["actions"] for r in rows if r["successes"])
        yield row("all", "", won, given.episodes * len(rows), total / won if won else None)


def run_task(given: Evaluation, task: Any, policy: Policy, name: str) -> list[int | None]:
    """Returns the number of actions until success of each episode, in the order in which they end; None: failure."""
    from featherlane.environments import TaskEnv

    n, recorded = min(given.worlds, given.episodes), len(task.states)
    env = TaskEnv(task, n, dtype=given.dtype, nthread=given.threads)
    task.order = (k % recorded for k in range(given.episodes))
    running, left = np.ones(n, bool), given.episodes - n
    observation, _ = env.reset(seed=given.seed)
    done, lengths = np.zeros(n, bool), []
    while running.any():
        actions = checked_actions(policy(observation, task.instruction, env.elapsed == given.settle), n, name)
        settling = env.elapsed < given.settle
        elapsed = env.elapsed.copy()
        observation, reward, terminated, truncated, _ = env.step(np.where(settling[:, None], OPEN, actions))
        restarted, done = done, terminated | truncated
        for world in np.flatnonzero(restarted):
            running[world], left = left > 0, left - 1
        for world in np.flatnonzero(done & running):
            lengths.append(int(elapsed[world]) + 1 - given.settle if reward[world] > 0.0 else None)
            running[world] = left > 0
    return lengths


def checked_actions(actions: Any, n: int, name: str) -> np.ndarray:
    """Returns the actions of a policy as an array.

    Raises:
        ModelError: another shape, other values than numbers, or a non-finite one.
    """
    try:
        values = np.asarray(actions, float)
    except (TypeError, ValueError):
        raise ModelError(f"policy {name}: got {type(actions).__name__}, allowed is an array ({n}, 7)") from None
    if values.shape != (n, len(OPEN)):
        raise ModelError(f"policy {name}: got actions of the shape {values.shape}, allowed is ({n}, {len(OPEN)})")
    if not np.isfinite(values).all():
        world, column = np.argwhere(~np.isfinite(values))[0]
        given = f"{values[world, column]} in column {column} of world {world}"
        raise ModelError(f"policy {name}: got {given}, allowed are finite numbers")
    return values
