"""Base class of Gymnasium's MuJoCo tasks: model files, noise of the initial state, costs, cameras."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np

from featherlane import Batch
from featherlane.environments.random_streams import RandomStreams
from featherlane.environments.task import Task
from featherlane.errors import MissingMethodError
from featherlane.extension import bounded, interval

FEW, MANY = 3, 64  # columns and rows whose columns are added in less time than by a sum over rows
ASSETS = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"


@dataclass(kw_only=True)
class MujocoTask(Task):
    """A Gymnasium task; its fields are the keyword arguments of Gymnasium's environment.

    Attributes:
        xml_file: the model: a file of Gymnasium's assets, or a path that begins with ".", "/" or "~".
        frame_skip: time steps per action.
        default_camera_config, camera_id, camera_name, width, height, max_geom, visual_options: rendering options.
        derived: "gymnasium": derived fields lag as in Gymnasium; "fresh": one more forward pass removes the lag.
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

    # attributes of the task, not keyword arguments
    name: ClassVar[str]
    limit: ClassVar[int] = 1000
    reward_threshold: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        given = str(self.xml_file)
        own = given[:1] in (".", "/", "~")
        self.model = str(Path(given).expanduser() if own else ASSETS / given)
        self._ignored_warning = "" if own else "MuJoCo: compiler attribute 'settotalmass'"  # Gymnasium's file has it
        self.max_episode_steps = self.limit
        for option in fields(self):
            value = getattr(self, option.name)
            if option.type == "float":
                bounded(option.name, value)
            elif option.type == "tuple[float, float]":
                interval(option.name, value, -np.inf)

    def prepare(self, worlds: Batch) -> None:
        self.init_qpos = np.array(worlds.model.qpos0, np.float64)
        self.velocity: Any = None  # set by `reward`, if it computes a velocity

    def contact_forces(self, worlds: Batch) -> np.ndarray:
        """Returns `cfrc_ext` as rows (n, 6 nbody); zero after a reset, because Gymnasium computes it only in steps."""
        forces = worlds.cfrc_ext.reshape(worlds.nworld, -1)
        unmoved = None if self.derived != "gymnasium" else at_start(worlds)
        return forces if unmoved is None else np.where(unmoved[:, None], 0.0, forces)

    def info(self, worlds: Batch, terms: Mapping[str, np.ndarray], before: Any) -> dict[str, np.ndarray]:
        """Returns each world's position, its velocity if `reward` computed it (along x or (n, 2)), and the terms."""
        found, velocity = self.start_info(worlds), self.velocity
        if velocity is not None:
            along = (velocity,) if velocity.ndim == 1 else velocity.T
            found |= zip(("x_velocity", "y_velocity"), along, strict=False)
        return found | super().info(worlds, terms, before)

    def around_start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams, scale: float, normal: bool) -> None:
        """Samples positions near the model's and velocities near zero, from a uniform or a normal distribution."""
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
    """A task that rewards healthy worlds and by default terminates unhealthy ones."""

    healthy_reward: float = 1.0
    terminate_when_unhealthy: bool = True

    def healthy(self, worlds: Batch) -> np.ndarray:
        """Returns which worlds are healthy, (n,) bool."""
        raise MissingMethodError(f"{type(self).__name__} does not define healthy()")

    def terminated(self, worlds: Batch) -> np.ndarray | None:
        self.is_healthy = self.healthy(worlds)
        return ~self.is_healthy if self.terminate_when_unhealthy else None

    def survival(self) -> np.ndarray:
        """Returns the reward of the worlds that `terminated` found healthy, (n,)."""
        return self.is_healthy * self.healthy_reward


def at_start(worlds: Batch) -> np.ndarray | None:
    """Returns which worlds have taken no time step since their reset, (n,) bool; None: all have."""
    return None if np.count_nonzero(worlds.time) == worlds.nworld else worlds.time == 0.0


def root_position(worlds: Batch) -> dict[str, np.ndarray]:
    """Returns the root's horizontal position for infos [m]."""
    x, y = worlds.qpos[:, 0], worlds.qpos[:, 1]
    return {"x_position": x, "y_position": y, "distance_from_origin": norms(worlds.qpos[:, :2])}


def squares(values: np.ndarray) -> np.ndarray:
    """Returns the sum of squares of each world's values, (n,)."""
    rows = values.reshape(len(values), -1)
    rows = rows * rows
    if len(rows) < MANY or not 0 < rows.shape[1] <= FEW:
        return np.add.reduce(rows, axis=1)
    total, *others = rows.T  # the same order of additions as NumPy's
    for column in others:
        total = total + column
    return total


def norms(values: np.ndarray) -> np.ndarray:
    """Returns the Euclidean norms of vectors (n, k), (n,)."""
    return np.sqrt(squares(values))
