"""Reacher: a planar arm with two links moves its finger to a target."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from featherlane import Batch
from featherlane.environments.dm_control.sampling import JointSampler
from featherlane.environments.dm_control.suite_task import SuiteTask, lengths
from featherlane.environments.random_streams import RandomStreams


class Reacher(SuiteTask):
    """Rewards a finger that touches the target."""

    file = "reacher.xml"
    fields = ("geom_xpos",)
    radius: ClassVar[float]  # of the target [m]

    def prepare(self, worlds: Batch) -> None:
        self.joints, model = JointSampler(worlds), worlds.model
        self.finger, self.target = model.geom("finger").id, model.geom("target").id
        model.geom_size[self.target, 0] = self.radius
        self.reach = float(model.geom_size[[self.finger, self.target], 0].sum())
        self.position = worlds.expand("geom_pos")

    def to_target(self, worlds: Batch) -> np.ndarray:
        """Returns the horizontal vector from the finger to the target, (n, 2) [m]."""
        return worlds.geom_xpos[:, self.target, :2] - worlds.geom_xpos[:, self.finger, :2]

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        return {"position": worlds.qpos, "to_target": self.to_target(worlds), "velocity": worlds.qvel}

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> np.ndarray:
        return self.tolerance(lengths(self.to_target(worlds)), (0.0, self.reach))

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        self.joints.set(worlds, ids, random)
        angle, radius = random.uniform(ids, [0.0, 0.05], [2.0 * np.pi, 0.2], 2).T
        self.position[ids, self.target, 0] = radius * np.sin(angle)
        self.position[ids, self.target, 1] = radius * np.cos(angle)


class ReacherEasy(Reacher):
    """Reaches a target with a radius of 5 cm."""

    name, radius = "dm_control.reacher-easy", 0.05


class ReacherHard(Reacher):
    """Reaches a target with a radius of 1.5 cm."""

    name, radius = "dm_control.reacher-hard", 0.015
