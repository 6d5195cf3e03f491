"""Hopper: a planar robot with one leg stands or hops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from featherlane import Batch
from featherlane.environments.dm_control.sampling import JointSampler
from featherlane.environments.dm_control.suite_task import SuiteTask, sensor_columns
from featherlane.environments.random_streams import RandomStreams

STAND_HEIGHT = 0.6  # of the torso above the foot [m]
HOP_SPEED = 2.0  # [m/s]


@dataclass(kw_only=True)
class HopperStand(SuiteTask):
    """Rewards a torso above the foot, and small controls."""

    frame_skip: int = 4

    name = "dm_control.hopper-stand"
    file = "hopper.xml"
    fields = ("xipos", "sensordata")

    def prepare(self, worlds: Batch) -> None:
        super().prepare(worlds)
        self.joints = JointSampler(worlds)
        self.torso, self.foot = (worlds.model.body(name).id for name in ("torso", "foot"))
        self.touch = sensor_columns(worlds, "touch_toe", "touch_heel")
        self.speed = sensor_columns(worlds, "torso_subtreelinvel")[0]

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        touch = np.log1p(self.sensordata[:, self.touch])
        return {"position": worlds.qpos[:, 1:], "velocity": worlds.qvel, "touch": touch}

    def standing(self, worlds: Batch) -> np.ndarray:
        """Returns 1 for a torso that is high enough above the foot, (n,)."""
        return self.tolerance(worlds.xipos[:, self.torso, 2] - worlds.xipos[:, self.foot, 2], (STAND_HEIGHT, 2.0))

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> np.ndarray:
        return self.standing(worlds) * self.small_control(worlds.ctrl)

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        self.joints.set(worlds, ids, random)


class HopperHop(HopperStand):
    """Rewards a torso above the foot that moves forward at 2 m/s."""

    name = "dm_control.hopper-hop"

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> np.ndarray:
        speed = self.sensordata[:, self.speed]
        return self.standing(worlds) * self.tolerance(speed, (HOP_SPEED, np.inf), HOP_SPEED / 2, "linear", 0.5)
