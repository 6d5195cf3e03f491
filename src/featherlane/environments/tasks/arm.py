"""Base class of the arm tasks: seven servos whose targets move at a bounded rate, and a goal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from featherlane import Batch
from featherlane.environments.random_streams import RandomStreams
from featherlane.environments.tasks.robot import RobotTask
from featherlane.errors import MissingMethodError
from featherlane.extension import bounded

ARM = 7  # number of joints
SHOULDER = np.array([0.0, 0.0, 0.34])  # position of the arm's shoulder [m]


@dataclass(kw_only=True)
class ArmTask(RobotTask):
    """Base class of tasks of the bundled arm, with a goal: an action of 1 moves a servo's target at the greatest rate.

    A subclass sets the class attributes, and defines `draw_goals`, `distance` and `terms`.

    Attributes:
        rate: greatest angular velocity of the targets [rad/s].
        start_noise: greatest deviation of joints from the initial posture [rad].
        reached: distance from the goal within which the goal counts as reached [m].
        posture: class attribute: initial joint angles [rad].

    The other attributes are those of `RobotTask`.
    """

    rate: float = 3.0
    start_noise: float = 0.1
    reached: float = 0.03
    camera_name: str | None = "near"

    # attributes of the task, not keyword arguments
    posture: ClassVar[tuple[float, ...]]
    fields = ("site_xpos",)
    robot = "arm"

    def __post_init__(self) -> None:
        self.rate = bounded("rate", self.rate, 0.0, 100.0)
        self.start_noise = bounded("start_noise", self.start_noise, 0.0, 1.0)
        self.reached = bounded("reached", self.reached, 0.0, 1.0)
        super().__post_init__()

    def shape_model(self, spec: Any) -> None:
        import mujoco

        spec.worldbody.add_camera(name="near", pos=[0.3, -1.5, 0.85], xyaxes=[1, 0, 0, 0, 0.3, 1])
        mark = spec.worldbody.add_body(name="goal", mocap=True)
        mark.add_geom(
            type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.03, 0, 0], rgba=[0.2, 0.7, 0.3, 0.6], contype=0, conaffinity=0
        )

    def prepare(self, worlds: Batch) -> None:
        super().prepare(worlds)
        self.grip = worlds.model.site("grip").id

    def targets(self, worlds: Batch, ids: np.ndarray) -> np.ndarray:
        return worlds.ctrl[ids] + self.rate * self.dt * self.action[ids]

    def goal(self, worlds: Batch) -> np.ndarray:
        """Returns the goal's position, (n, 3) [m]: that of the mocap body."""
        return worlds.mocap_pos[:, 0]

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        joints, grip = worlds.qpos[:, :ARM], worlds.site_xpos[:, self.grip]
        return {
            "joints": joints,
            "joint_velocity": worlds.qvel[:, :ARM],
            "lag": worlds.ctrl - joints,
            "grip": grip,
            "to_goal": self.goal(worlds) - grip,
            "action": self.action,
        }

    def place(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        noise = random.uniform(ids, -self.start_noise, self.start_noise, ARM)
        worlds.qpos[ids, :ARM] = worlds.ctrl[ids] = np.clip(np.array(self.posture) + noise, self.low, self.high)
        worlds.mocap_pos[ids, 0] = self.draw_goals(worlds, ids, random)

    def draw_goals(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> np.ndarray:
        """Returns goals for the worlds `ids`, (len(ids), 3) [m]."""
        raise MissingMethodError(f"{type(self).__name__} does not define draw_goals()")

    def distance(self, worlds: Batch) -> np.ndarray:
        """Returns the distance from the goal, (n,) [m]."""
        raise MissingMethodError(f"{type(self).__name__} does not define distance()")

    def info(self, worlds: Batch, terms: Mapping[str, np.ndarray], before: Any) -> dict[str, np.ndarray]:
        distance = self.distance(worlds)
        return {"distance": distance, "success": distance < self.reached, **super().info(worlds, terms, before)}


def length(vector: np.ndarray) -> np.ndarray:
    """Returns the Euclidean length of each row, (n,)."""
    return np.sqrt(np.square(vector).sum(axis=1))
