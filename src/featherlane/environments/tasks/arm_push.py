"""ArmPush-v0: the arm pushes a puck over the floor to a goal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from featherlane import Batch
from featherlane.environments.random_streams import RandomStreams
from featherlane.environments.tasks.arm import ARM, ArmTask, length
from featherlane.extension import bounded, interval

RADIUS, HALF_HEIGHT = 0.06, 0.04  # dimensions of the puck [m]
CLOSE = 0.06  # distance of puck and goal at which the reward term `close` is 1/e [m]
BEHIND = RADIUS + 0.02  # distance between the puck's centre and the pushing hand [m]
OVER = 0.12  # a hand on the goal's side of the puck aims up to this far above its pushing position, over the puck [m]
LOST = 0.85  # a puck farther than this from the arm's base counts as out of reach [m]


@dataclass(kw_only=True)
class ArmPush(ArmTask):
    """The arm pushes a puck of 0.5 kg to a goal on the floor.

    The hand can push the puck towards the goal from the puck's far side.  A reward term attracts the hand to that
    side, and over the puck if the hand is on the goal's side.

    Attributes:
        puck_range, goal_range: least and greatest initial distance from the arm's base, of the puck and of its
            goal [m].
        spread: greatest angle of both to the forward direction [rad].

    The other attributes are those of `ArmTask`.
    """

    puck_range: tuple[float, float] = (0.45, 0.6)
    goal_range: tuple[float, float] = (0.4, 0.7)
    spread: float = 0.6
    reached: float = 0.05

    name = "ArmPush-v0"
    limit = 250
    posture = (0.0, 0.1, 0.0, 1.9, 0.0, 1.0, 0.0)
    default_weights: ClassVar = {
        "behind": -1.0,
        "distance": -2.0,
        "close": 1.0,
        "motion": -0.003,
        "jerk": -0.01,
        "lost": -10.0,
    }

    def __post_init__(self) -> None:
        self.puck_range = interval("puck_range", self.puck_range, 0.25, LOST)
        self.goal_range = interval("goal_range", self.goal_range, 0.25, LOST)
        self.spread = bounded("spread", self.spread, 0.0, 3.0)
        super().__post_init__()

    def shape_model(self, spec: Any) -> None:
        import mujoco

        super().shape_model(spec)
        for thing in [geom for geom in spec.geoms if geom.name in ("globe", "stand")] + list(spec.keys):
            spec.delete(thing)
        puck = spec.worldbody.add_body(name="puck", pos=[0.5, 0.0, HALF_HEIGHT])
        puck.add_freejoint(name="puck")
        puck.add_geom(
            name="puck", type=mujoco.mjtGeom.mjGEOM_CYLINDER, size=[RADIUS, HALF_HEIGHT, 0], mass=0.5, material="amber",
            condim=3, friction=[0.4, 0.005, 0.0001], priority=1,
        )  # fmt: skip

    def puck(self, worlds: Batch) -> np.ndarray:
        """Returns the puck's position, (n, 3) [m]."""
        return worlds.qpos[:, ARM : ARM + 3]

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        puck = self.puck(worlds)
        return super().observation(worlds) | {
            "to_puck": puck - worlds.site_xpos[:, self.grip],
            "puck_to_goal": self.goal(worlds) - puck,
            "to_aim": self.aim(worlds) - worlds.site_xpos[:, self.grip],
            "puck_velocity": worlds.qvel[:, ARM : ARM + 3],
        }

    def place(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        super().place(worlds, ids, random)
        worlds.qpos[ids, ARM : ARM + 3] = self.on_floor(ids, self.puck_range, random)

    def draw_goals(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> np.ndarray:
        return self.on_floor(ids, self.goal_range, random)

    def on_floor(self, ids: np.ndarray, reach: tuple[float, float], random: RandomStreams) -> np.ndarray:
        """Samples puck positions, (len(ids), 3) [m]."""
        low, high = np.transpose([reach, (-self.spread, self.spread)])
        radius, angle = random.uniform(ids, low, high, 2).T
        return np.stack([radius * np.cos(angle), radius * np.sin(angle), np.full(len(ids), HALF_HEIGHT)], axis=1)

    def distance(self, worlds: Batch) -> np.ndarray:
        return length((self.goal(worlds) - self.puck(worlds))[:, :2])

    def behind(self, worlds: Batch) -> np.ndarray:
        """Returns the hand position for pushing the puck to its goal, (n, 3) [m]; closer to the puck near the goal."""
        puck = self.puck(worlds)
        way = puck - self.goal(worlds)
        return puck + BEHIND * way / (length(way)[:, None] + 0.02)

    def aim(self, worlds: Batch) -> np.ndarray:
        """Returns the hand's target, (n, 3) [m]: behind the puck, higher the further the hand is from that side."""
        aim, puck = self.behind(worlds), self.puck(worlds)
        back, hand = (aim - puck)[:, :2], (worlds.site_xpos[:, self.grip] - puck)[:, :2]
        cosine = (back * hand).sum(axis=1) / (length(back) * length(hand) + 1e-6)
        aim[:, 2] += OVER * 0.5 * (1.0 - cosine)
        return aim

    def terms(self, worlds: Batch) -> dict[str, np.ndarray]:
        distance, off = self.distance(worlds), length(self.aim(worlds) - worlds.site_xpos[:, self.grip])
        return {
            "behind": off * np.minimum(distance / self.reached, 1.0),  # zero at the goal
            "distance": distance,
            "close": np.exp(-np.square(distance / CLOSE)),
            "motion": np.square(worlds.qvel[:, :ARM]).sum(axis=1),
            "jerk": self.jerk(),
            "lost": self.failed.astype(float),
        }

    def terminated(self, worlds: Batch) -> np.ndarray:
        """Terminates if the puck is out of reach."""
        self.failed = length(self.puck(worlds)[:, :2]) > LOST
        return self.failed
