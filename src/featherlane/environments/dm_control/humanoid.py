"""Humanoid: a humanoid with 21 joints stands, walks or runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from featherlane import Batch
from featherlane.environments.dm_control.sampling import JointSampler
from featherlane.environments.dm_control.suite_task import (
    ZX,
    ZY,
    ZZ,
    SuiteTask,
    in_frame,
    lengths,
    sensor_columns,
)
from featherlane.environments.random_streams import RandomStreams

STAND_HEIGHT = 1.4  # of the head [m]
LIMBS = ("left_hand", "left_foot", "right_hand", "right_foot")


@dataclass(kw_only=True)
class Humanoid(SuiteTask):
    """Rewards an upright torso, small controls and a horizontal speed."""

    frame_skip: int = 5

    file = "humanoid.xml"
    fields = ("xmat", "xpos", "sensordata")
    speed: ClassVar[float]  # [m/s]

    def prepare(self, worlds: Batch) -> None:
        super().prepare(worlds)
        self.joints, model = JointSampler(worlds), worlds.model
        self.torso, self.head = model.body("torso").id, model.body("head").id
        self.limbs = [model.body(name).id for name in LIMBS]
        self.velocity = sensor_columns(worlds, "torso_subtreelinvel")

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        torso, offsets = worlds.xmat[:, self.torso], worlds.xpos[:, self.limbs] - worlds.xpos[:, [self.torso]]
        return {
            "joint_angles": worlds.qpos[:, 7:],
            "head_height": worlds.xpos[:, [self.head], 2],
            "extremities": in_frame(offsets, torso),
            "torso_vertical": torso[:, [ZX, ZY, ZZ]],
            "com_velocity": self.sensordata[:, self.velocity],
            "velocity": worlds.qvel,
        }

    def moving(self, worlds: Batch) -> np.ndarray:
        """Returns the reward of the horizontal velocity of the centre of mass, (n,)."""
        speed = lengths(self.sensordata[:, self.velocity[:2]])
        return (5.0 * self.tolerance(speed, (self.speed, np.inf), self.speed, "linear", 0.0) + 1.0) / 6.0

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> np.ndarray:
        standing = self.tolerance(worlds.xpos[:, self.head, 2], (STAND_HEIGHT, np.inf), STAND_HEIGHT / 4)
        upright = self.tolerance(worlds.xmat[:, self.torso, ZZ], (0.9, np.inf), 1.9, "linear", 0.0)
        return self.small_control(worlds.ctrl) * (standing * upright) * self.moving(worlds)

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        self.sample_without_contact(worlds, ids, lambda some: self.joints.set(worlds, some, random))


class HumanoidStand(Humanoid):
    """Stands still."""

    name = "dm_control.humanoid-stand"

    def moving(self, worlds: Batch) -> np.ndarray:
        return self.tolerance(self.sensordata[:, self.velocity[:2]], margin=2.0).mean(axis=1)


class HumanoidWalk(Humanoid):
    """Walks at 1 m/s."""

    name, speed = "dm_control.humanoid-walk", 1.0


class HumanoidRun(Humanoid):
    """Runs at 10 m/s."""

    name, speed = "dm_control.humanoid-run", 10.0
