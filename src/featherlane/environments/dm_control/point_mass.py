"""Point mass: a mass in a plane moves to a target."""

from __future__ import annotations

from typing import Any

import numpy as np

from featherlane import Batch
from featherlane.environments.dm_control.sampling import JointSampler
from featherlane.environments.dm_control.suite_task import SuiteTask, lengths
from featherlane.environments.random_streams import RandomStreams


class PointMassEasy(SuiteTask):
    """Rewards a mass near the target, and small controls."""

    name = "dm_control.point_mass-easy"
    file = "point_mass.xml"
    fields = ("geom_xpos",)

    def prepare(self, worlds: Batch) -> None:
        self.joints, model = JointSampler(worlds), worlds.model
        self.mass, self.target = model.geom("pointmass").id, model.geom("target").id
        self.radius = float(model.geom_size[self.target, 0])

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        return {"position": worlds.qpos, "velocity": worlds.qvel}

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> np.ndarray:
        distance = lengths(worlds.geom_xpos[:, self.target] - worlds.geom_xpos[:, self.mass])
        return self.tolerance(distance, (0.0, self.radius), self.radius) * self.small_control(worlds.ctrl)

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        self.joints.set(worlds, ids, random)
