"""Pusher-v5: an arm pushes a cylinder to a goal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from featherlane import Batch
from featherlane.environments.gymnasium_v5.compiled import add_reward, controls_squared
from featherlane.environments.gymnasium_v5.mujoco_task import MujocoTask, norms, squares
from featherlane.environments.random_streams import RandomStreams
from featherlane.lanes import join, kernel, sqrt
from featherlane.policies import LaneFunctions

ARM = 7  # number of the arm's joints
CLEAR = 0.17  # least initial distance of the cylinder from the goal [m]


@dataclass(kw_only=True)
class Pusher(MujocoTask):
    """Penalizes the distances from tip to cylinder and from cylinder to goal, and controls."""

    xml_file: str = "pusher_v5.xml"
    frame_skip: int = 5
    default_camera_config: Mapping[str, Any] | None = field(
        default_factory=lambda: {"trackbodyid": -1, "distance": 4.0}
    )
    reward_near_weight: float = 0.5
    reward_dist_weight: float = 1.0
    reward_control_weight: float = 0.1

    name = "Pusher-v5"
    limit = 100
    reward_threshold = 0.0
    fields = ("xpos",)

    def prepare(self, worlds: Batch) -> None:
        super().prepare(worlds)
        self.tip, self.object, self.goal = (worlds.model.body(name).id for name in ("tips_arm", "object", "goal"))

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        return {
            "qpos": worlds.qpos[:, :ARM],
            "qvel": worlds.qvel[:, :ARM],
            "tip": worlds.xpos[:, self.tip],
            "object": worlds.xpos[:, self.object],
            "goal": worlds.xpos[:, self.goal],
        }

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> dict[str, np.ndarray]:
        at = worlds.xpos[:, self.object]
        return {
            "dist": -norms(at - worlds.xpos[:, self.goal]) * self.reward_dist_weight,
            "ctrl": -squares(actions) * self.reward_control_weight,
            "near": -norms(at - worlds.xpos[:, self.tip]) * self.reward_near_weight,
        }

    def compiled(self, worlds: Batch) -> LaneFunctions:
        weights = self.reward_near_weight, self.reward_dist_weight, self.reward_control_weight
        near, dist, cost = (float(x) for x in weights)
        tip, thing, goal, nu = int(self.tip), int(self.object), int(self.goal), worlds.model.nu

        @kernel
        def distance(d, a, b):
            """Returns the distance between the frames of bodies a and b [m]."""
            x, y, z = tuple(d.xpos[a][k] - d.xpos[b][k] for k in range(3))
            return sqrt(x * x + y * y + z * z)

        @kernel
        def observe(d, p, at_start):
            """obs <- positions and velocities of the arm's joints, positions of tip, object and goal."""
            for k in range(ARM):
                p.obs[k], p.obs[ARM + k] = d.qpos[k], d.qvel[k]
            first = 2 * ARM
            p.obs[first : first + 9] = join(d.xpos[tip], d.xpos[thing], d.xpos[goal])

        @kernel
        def score(d, p, at_start):
            """Adds the terms of `reward`, with the weights dist, cost and near."""
            add_reward(p, -distance(d, thing, goal) * dist)
            add_reward(p, -controls_squared(d, p, nu) * cost)
            add_reward(p, -distance(d, thing, tip) * near)

        return LaneFunctions(observe, score, start_stage="position")

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        worlds.qpos[ids] = self.init_qpos
        missing, goal = ids, np.zeros(2)
        while len(missing):
            x, y = random.uniform(missing, -0.3, 0.0, 1), random.uniform(missing, -0.2, 0.2, 1)
            at = np.concatenate([x, y], axis=1)
            worlds.qpos[missing, -4:-2] = at
            missing = missing[norms(at - goal) <= CLEAR]
        worlds.qpos[ids, -2:] = goal
        worlds.qvel[ids] = random.uniform(ids, -0.005, 0.005, worlds.model.nv)
        worlds.qvel[ids, -4:] = 0.0
