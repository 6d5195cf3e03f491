"""Walker: a planar robot with two legs stands, walks or runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from featherlane import Batch
from featherlane.environments.dm_control.sampling import JointSampler
from featherlane.environments.dm_control.suite_task import XX, XZ, ZZ, SuiteTask, sensor_columns
from featherlane.environments.random_streams import RandomStreams

STAND_HEIGHT = 1.2  # of the torso [m]


@dataclass(kw_only=True)
class WalkerStand(SuiteTask):
    """Rewards a high and upright torso."""

    frame_skip: int = 10

    name = "dm_control.walker-stand"
    file = "walker.xml"
    fields = ("xmat", "xpos", "sensordata")

    def prepare(self, worlds: Batch) -> None:
        super().prepare(worlds)
        self.joints = JointSampler(worlds)
        self.torso = worlds.model.body("torso").id
        self.velocity = sensor_columns(worlds, "torso_subtreelinvel")[0]

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        return {
            "orientations": worlds.xmat[:, 1:, [XX, XZ]],
            "height": worlds.xpos[:, [self.torso], 2],
            "velocity": worlds.qvel,
        }

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> np.ndarray:
        standing = self.tolerance(worlds.xpos[:, self.torso, 2], (STAND_HEIGHT, np.inf), STAND_HEIGHT / 2)
        upright = (1.0 + worlds.xmat[:, self.torso, ZZ]) / 2.0
        return (3.0 * standing + upright) / 4.0

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        self.joints.set(worlds, ids, random)


class WalkerMove(WalkerStand):
    """Rewards a high and upright torso that moves forward."""

    speed: ClassVar[float]  # [m/s]

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> np.ndarray:
        velocity = self.sensordata[:, self.velocity]
        moving = self.tolerance(velocity, (self.speed, np.inf), self.speed / 2, "linear", 0.5)
        return super().reward(worlds, actions, before) * (5.0 * moving + 1.0) / 6.0


class WalkerWalk(WalkerMove):
    """Walks at 1 m/s."""

    name, speed = "dm_control.walker-walk", 1.0


class WalkerRun(WalkerMove):
    """Runs at 8 m/s."""

    name, speed = "dm_control.walker-run", 8.0
