"""What Gymnasium's MuJoCo tasks have in common: where their models are, noise at the start, costs, cameras."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np

from featherlane.environments.random_streams import RandomStreams
from featherlane.environments.task import Task
from featherlane.errors import MissingMethodError
from featherlane.simulation.batch.batch import Batch

ASSETS = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"


@dataclass(kw_only=True)
class MujocoTask(Task):
    """A task of Gymnasium's; its fields are the keyword arguments there.

    Attributes:
        xml_file: the model: a file of Gymnasium's assets, or a path that begins with ".", "/" or "~".
        frame_skip: time steps for each action.
        default_camera_config, camera_id, camera_name, width, height, max_geom, visual_options: how it is drawn.
        derived: "gymnasium": as there; "fresh": after one more forward pass, which does away with the lag.
    """

    xml_file: str
    frame_skip: int
    default_camera_config: Mapping[str, Any] | None = None
    camera_id: int | None = None
    camera_name: str | None = None
    width: int = 480
    height: int = 480
    max_geom: int = 1000
    visual_options: Mapping[int, bool] | None = None
    derived: str = "gymnasium"

    # not keyword arguments of the task, but facts of it
    name: ClassVar[str]
    limit: ClassVar[int] = 1000
    reward_threshold: ClassVar[float | None] = None

    def __post_init__(self):
        given = str(self.xml_file)
        self.model = str(Path(given).expanduser() if given[:1] in (".", "/", "~") else ASSETS / given)
        self.max_episode_steps = self.limit

    def prepare(self, worlds: Batch) -> None:
        self.init_qpos = np.array(worlds.model.qpos0, np.float64)
        self.unmoved = np.ones(worlds.nworld, bool)
        self.velocity: Any = None  # what `reward` finds, where it does

    def act(self, worlds: Batch, actions: np.ndarray, ids: np.ndarray | None) -> None:
        super().act(worlds, actions, ids)
        self.unmoved[slice(None) if ids is None else ids] = False

    def started(self, worlds: Batch, ids: np.ndarray) -> None:
        self.unmoved[ids] = True

    def contact_forces(self, worlds: Batch) -> np.ndarray:
        """`cfrc_ext` as rows (n, 6 nbody); Gymnasium computes it in steps only, so that it is zero after a reset."""
        forces = worlds.cfrc_ext.reshape(worlds.nworld, -1)
        if self.derived == "gymnasium" and self.unmoved.any():
            return np.where(self.unmoved[:, None], 0.0, forces)
        return forces

    def info(self, worlds: Batch, terms: Mapping[str, np.ndarray], before: Any) -> dict[str, np.ndarray]:
        """Where each world is, how fast if `reward` has found that (`velocity`, along x or (n, 2)), and the terms."""
        along = () if self.velocity is None else np.atleast_2d(self.velocity.T)
        told = dict(zip(("x_velocity", "y_velocity"), along, strict=False))
        return {**self.start_info(worlds), **told, **super().info(worlds, terms, before)}

    def around_start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams, scale: float, normal: bool) -> None:
        """Positions near the model's, velocities near zero, of the uniform or the normal distribution."""
        nq, nv = worlds.qpos.shape[1], worlds.qvel.shape[1]
        if normal:
            moved, velocity = random.uniform(ids, -scale, scale, nq), scale * random.normal(ids, nv)
        else:
            drawn = random.uniform(ids, -scale, scale, nq + nv)
            moved, velocity = drawn[:, :nq], drawn[:, nq:]
        moved += self.init_qpos
        worlds.qpos[ids], worlds.qvel[ids] = moved, velocity


@dataclass(kw_only=True)
class HealthyTask(MujocoTask):
    """A task in which being healthy is paid, and being otherwise is an end."""

    healthy_reward: float = 1.0
    terminate_when_unhealthy: bool = True

    def healthy(self, worlds: Batch) -> np.ndarray:
        """Which worlds are, (n,) bool."""
        raise MissingMethodError(f"{type(self).__name__} has no healthy")

    def terminated(self, worlds: Batch) -> np.ndarray | None:
        self.is_healthy = self.healthy(worlds)
        return ~self.is_healthy if self.terminate_when_unhealthy else None

    def survival(self) -> np.ndarray:
        """What the worlds are paid that `terminated` has found healthy, (n,)."""
        return self.is_healthy * self.healthy_reward


def place(worlds: Batch) -> dict[str, np.ndarray]:
    """Where the root is on the floor, for infos [m]."""
    x, y = worlds.qpos[:, 0], worlds.qpos[:, 1]
    return {"x_position": x, "y_position": y, "distance_from_origin": norms(worlds.qpos[:, :2])}


def squares(values: np.ndarray) -> np.ndarray:
    """Sum of the squares of each world's numbers, (n,)."""
    rows = values.reshape(len(values), -1)
    return np.add.reduce(rows * rows, axis=1)


def norms(values: np.ndarray) -> np.ndarray:
    """Euclidean norms of vectors (n, k), (n,)."""
    return np.sqrt(squares(values))


def finite(worlds: Batch) -> np.ndarray | bool:
    """Which worlds have finite numbers only, (n,) bool; True for all, which their sum tells."""
    if math.isfinite(np.add.reduce(worlds.qpos, axis=None) + np.add.reduce(worlds.qvel, axis=None)):
        return True
    return np.isfinite(worlds.qpos).all(axis=1) & np.isfinite(worlds.qvel).all(axis=1)


def between(low: float, values: np.ndarray, high: float) -> np.ndarray:
    """Where low < values < high."""
    return (low < values) & (values < high)
