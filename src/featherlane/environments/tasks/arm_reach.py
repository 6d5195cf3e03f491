"""ArmReach-v0: the arm moves its grip to a point, around a globe that is an obstacle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from featherlane import Batch
from featherlane.environments.random_streams import RandomStreams
from featherlane.environments.tasks.arm import SHOULDER, ArmTask, length
from featherlane.extension import interval

GLOBE, CLEAR = np.array([0.55, 0.1, 0.42]), 0.25  # centre of the globe and least distance of goals from it [m]
LOWEST = 0.12  # least height of a goal [m]
CLOSE = 0.1  # distance of grip and goal at which the reward term `close` is 1/e [m]


@dataclass(kw_only=True)
class ArmReach(ArmTask):
    """The arm moves its grip to a goal.

    Attributes:
        goal_range: least and greatest distance of goals from the shoulder [m].

    The other attributes are those of `ArmTask`.
    """

    goal_range: tuple[float, float] = (0.4, 0.75)

    name = "ArmReach-v0"
    limit = 150
    posture = (0.0, -0.4, 0.0, 1.4, 0.0, 0.6, 0.0)
    default_weights: ClassVar = {"distance": -1.0, "close": 1.0, "motion": -0.003, "jerk": -0.01}

    def __post_init__(self) -> None:
        self.goal_range = interval("goal_range", self.goal_range, 0.3, 0.8)
        super().__post_init__()

    def draw_goals(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> np.ndarray:
        """Samples goals in a spherical shell around the shoulder, again until they are clear of floor and globe."""
        goals, missing = np.zeros((len(ids), 3)), np.arange(len(ids))
        while len(missing):
            direction = random.normal(ids[missing], 3)
            radius = random.uniform(ids[missing], *self.goal_range, 1)
            goals[missing] = at = SHOULDER + radius * direction / length(direction)[:, None]
            missing = missing[(at[:, 2] < LOWEST) | (length(at - GLOBE) < CLEAR)]
        return goals

    def distance(self, worlds: Batch) -> np.ndarray:
        return length(self.goal(worlds) - worlds.site_xpos[:, self.grip])

    def terms(self, worlds: Batch) -> dict[str, np.ndarray]:
        distance = self.distance(worlds)
        return {
            "distance": distance,
            "close": np.exp(-np.square(distance / CLOSE)),
            "motion": np.square(worlds.qvel).sum(axis=1),
            "jerk": self.jerk(),
        }
