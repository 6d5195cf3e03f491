"""Finger: a planar finger spins or turns a body on a hinge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from featherlane import Batch
from featherlane.environments.dm_control.sampling import JointSampler
from featherlane.environments.dm_control.suite_task import SuiteTask, joint_columns, lengths, sensor_columns
from featherlane.environments.random_streams import RandomStreams

SPIN_VELOCITY = 15.0  # [rad/s]
SPIN_DAMPING = 0.03  # of the hinge [N m s/rad]


@dataclass(kw_only=True)
class Finger(SuiteTask):
    """Observes the finger's joints, the tip of the body relative to its hinge, and touch sensors."""

    frame_skip: int = 2

    file = "finger.xml"
    fields = ("sensordata",)

    def prepare(self, worlds: Batch) -> None:
        super().prepare(worlds)
        self.joints = JointSampler(worlds)
        columns = lambda *names: sensor_columns(worlds, *names)  # noqa: E731
        self.angles = columns("proximal", "distal")
        self.velocities = columns("proximal_velocity", "distal_velocity", "hinge_velocity")
        self.touch = columns("touchtop", "touchbottom")
        self.tip, self.hinge = columns("tip")[[0, 2]], columns("spinner")[[0, 2]]
        self.target = columns("target")[[0, 2]]

    def tip_position(self, worlds: Batch) -> np.ndarray:
        """Returns x and z of the tip relative to the hinge, (n, 2) [m]."""
        return self.sensordata[:, self.tip] - self.sensordata[:, self.hinge]

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        values = self.sensordata
        return {
            "angles": values[:, self.angles],
            "tip": self.tip_position(worlds),
            "velocity": values[:, self.velocities],
            "touch": np.log1p(values[:, self.touch]),
        }

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        self.sample_without_contact(worlds, ids, lambda some: self.joints.set(worlds, some, random))


class FingerSpin(Finger):
    """Rewards an angular velocity of the body of at least 15 rad/s."""

    name = "dm_control.finger-spin"

    def prepare(self, worlds: Batch) -> None:
        super().prepare(worlds)
        worlds.model.dof_damping[joint_columns(worlds, "hinge")[1]] = SPIN_DAMPING

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> np.ndarray:
        return (self.sensordata[:, self.velocities[2]] <= -SPIN_VELOCITY).astype(float)


class FingerTurn(Finger):
    """Rewards a tip of the body within the target."""

    radius: ClassVar[float]  # of the target [m]

    def prepare(self, worlds: Batch) -> None:
        super().prepare(worlds)
        model = worlds.model
        self.site = model.site("target").id
        model.site_size[self.site, 0] = self.radius
        body = model.jnt_bodyid[model.joint("hinge").id]
        self.center = np.array(model.body_pos[body])[[0, 2]]  # the hinge is in the origin of a child of the world
        self.reach = float(model.geom_size[model.geom("cap1").id].sum())
        self.position = worlds.expand("site_pos")

    def to_surface(self, worlds: Batch) -> np.ndarray:
        """Returns the distance of the tip from the target's surface, negative inside, (n,) [m]."""
        return lengths(self.sensordata[:, self.target] - self.sensordata[:, self.tip]) - self.radius

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        return super().observation(worlds) | {
            "target_position": self.sensordata[:, self.target] - self.sensordata[:, self.hinge],
            "dist_to_target": self.to_surface(worlds)[:, None],
        }

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> np.ndarray:
        return (self.to_surface(worlds) <= 0.0).astype(float)

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        angle = random.uniform(ids, -np.pi, np.pi, 1)[:, 0]
        self.position[ids, self.site, 0] = self.center[0] + self.reach * np.sin(angle)
        self.position[ids, self.site, 2] = self.center[1] + self.reach * np.cos(angle)
        super().start(worlds, ids, random)


class FingerTurnEasy(FingerTurn):
    """Turns the tip to a target with a radius of 7 cm."""

    name, radius = "dm_control.finger-turn_easy", 0.07


class FingerTurnHard(FingerTurn):
    """Turns the tip to a target with a radius of 3 cm."""

    name, radius = "dm_control.finger-turn_hard", 0.03
