"""Reacher-v5: a planar arm whose tip goes to a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from featherlane import Batch
from featherlane.environments.gymnasium_v5.compiled import add_reward, controls_squared
from featherlane.environments.gymnasium_v5.mujoco_task import MujocoTask, norms, squares
from featherlane.environments.random_streams import RandomStreams
from featherlane.lanes import kernel, sincos, sqrt
from featherlane.policies import LaneFunctions

RADIUS = 0.2  # radius around the origin that contains the target [m]


@dataclass(kw_only=True)
class Reacher(MujocoTask):
    """Penalizes the distance from the target and controls."""

    xml_file: str = "reacher.xml"
    frame_skip: int = 2
    default_camera_config: Mapping[str, Any] | None = field(default_factory=lambda: {"trackbodyid": 0})
    reward_dist_weight: float = 1.0
    reward_control_weight: float = 1.0

    name = "Reacher-v5"
    limit = 50
    reward_threshold = -3.75
    fields = ("xpos",)

    def prepare(self, worlds: Batch) -> None:
        super().prepare(worlds)
        self.tip, self.target = (worlds.model.body(name).id for name in ("fingertip", "target"))

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        angles, xpos = worlds.qpos[:, :2], worlds.xpos
        return {
            "cos": np.cos(angles),
            "sin": np.sin(angles),
            "qpos": worlds.qpos[:, 2:],
            "qvel": worlds.qvel[:, :2],
            "to_target": (xpos[:, self.tip] - xpos[:, self.target])[:, :2],
        }

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> dict[str, np.ndarray]:
        xpos = worlds.xpos
        return {
            "dist": -norms(xpos[:, self.tip] - xpos[:, self.target]) * self.reward_dist_weight,
            "ctrl": -squares(actions) * self.reward_control_weight,
        }

    def compiled(self, worlds: Batch) -> LaneFunctions:
        dist, cost = float(self.reward_dist_weight), float(self.reward_control_weight)
        tip, target, nu = int(self.tip), int(self.target), worlds.model.nu

        @kernel
        def observe(d, p, at_start):
            """obs <- cos and sin of both angles, the target, both velocities, tip - target: two values each."""
            for k in range(2):
                p.obs[2 + k], p.obs[k] = sincos(d.qpos[k])
                p.obs[4 + k], p.obs[6 + k] = d.qpos[2 + k], d.qvel[k]
                p.obs[8 + k] = d.xpos[tip][k] - d.xpos[target][k]

        @kernel
        def score(d, p, at_start):
            """reward -= dist |tip - target| + cost |controls|^2; dist, cost: weights."""
            x, y, z = tuple(d.xpos[tip][k] - d.xpos[target][k] for k in range(3))
            add_reward(p, -sqrt(x * x + y * y + z * z) * dist)
            add_reward(p, -controls_squared(d, p, nu) * cost)

        return LaneFunctions(observe, score, start_stage="position")

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        nq, nv = worlds.model.nq, worlds.model.nv
        worlds.qpos[ids] = random.uniform(ids, -0.1, 0.1, nq) + self.init_qpos
        missing = ids
        while len(missing):
            goal = random.uniform(missing, -RADIUS, RADIUS, 2)
            worlds.qpos[missing, -2:] = goal
            missing = missing[norms(goal) >= RADIUS]
        worlds.qvel[ids] = random.uniform(ids, -0.005, 0.005, nv)
        worlds.qvel[ids, -2:] = 0.0
