"""HandTurn-v0: four fingers rotate a ball that they hold, without dropping it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from featherlane import Batch
from featherlane.environments.random_streams import RandomStreams
from featherlane.environments.tasks.robot import RobotTask
from featherlane.extension import bounded, rotation

FINGERS = 8  # number of joints; the ball's free joint follows, 7 values in qpos and 6 in qvel
HELD = np.array([0.0, 0.0, 0.251])  # initial position of the ball in the hand [m]
AXIS = 1  # the ball rotates about y: fingers in front of it and behind it roll it, those at its sides are bearings


@dataclass(kw_only=True)
class HandTurn(RobotTask):
    """The hand rotates a ball about a horizontal axis.

    Attributes:
        speed: angular velocity with the full reward; a faster ball gets no more [rad/s].
        dropped: distance of the ball from its initial position at which it counts as dropped [m].
        start_noise: greatest deviation of the fingers' joints from the initial grip [rad].

    The other attributes are those of `RobotTask`.
    """

    frame_skip: int = 10
    speed: float = 1.0
    dropped: float = 0.03
    start_noise: float = 0.02
    camera_name: str | None = "front"

    name = "HandTurn-v0"
    robot = "hand"
    limit = 250
    default_weights: ClassVar = {"turn": 1.0, "wobble": -0.1, "drift": -10.0, "jerk": -0.01, "drop": -20.0}

    def __post_init__(self) -> None:
        self.speed = bounded("speed", self.speed, 1e-3, 100.0)
        self.dropped = bounded("dropped", self.dropped, 1e-3, 1.0)
        self.start_noise = bounded("start_noise", self.start_noise, 0.0, 0.2)
        super().__post_init__()

    def targets(self, worlds: Batch, ids: np.ndarray) -> np.ndarray:
        """Returns servo targets: an action of 0 holds; 1 and -1 are the ends of the servos' ranges."""
        action = self.action[ids]
        return np.where(action > 0.0, self.high, -self.low) * action

    def ball(self, worlds: Batch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the ball's offset from HELD [m], quaternion, and angular velocity in the world frame [rad/s]."""
        place, quaternion = worlds.qpos[:, FINGERS : FINGERS + 3] - HELD, worlds.qpos[:, FINGERS + 3 :]
        return place, quaternion, rotation.to_world(quaternion, worlds.qvel[:, FINGERS + 3 :])

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        place, quaternion, spin = self.ball(worlds)
        return {
            "joints": worlds.qpos[:, :FINGERS],
            "joint_velocity": worlds.qvel[:, :FINGERS],
            "place": place,
            "quaternion": quaternion,
            "velocity": worlds.qvel[:, FINGERS : FINGERS + 3],
            "spin": spin,
            "action": self.action,
        }

    def terms(self, worlds: Batch) -> dict[str, np.ndarray]:
        place, _, spin = self.ball(worlds)
        other = np.delete(spin, AXIS, axis=1)
        return {
            "turn": np.clip(spin[:, AXIS] / self.speed, -1.0, 1.0),
            "wobble": np.minimum(np.square(other).sum(axis=1), 10.0),
            "drift": np.sqrt(np.square(place).sum(axis=1)),
            "jerk": self.jerk(),
            "drop": self.failed.astype(float),
        }

    def terminated(self, worlds: Batch) -> np.ndarray:
        """Terminates if the ball has left the hand."""
        self.failed = np.square(self.ball(worlds)[0]).sum(axis=1) > self.dropped**2
        return self.failed

    def place(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        worlds.qpos[ids, :FINGERS] += random.uniform(ids, -self.start_noise, self.start_noise, FINGERS)
        worlds.ctrl[ids] = 0.0
