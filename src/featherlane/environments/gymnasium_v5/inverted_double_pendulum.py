"""InvertedDoublePendulum-v5: a cart balances a double pendulum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from featherlane import Batch
from featherlane.environments.gymnasium_v5.compiled import add_reward, is_between, survive
from featherlane.environments.gymnasium_v5.mujoco_task import MujocoTask
from featherlane.environments.random_streams import RandomStreams
from featherlane.lanes import clip, kernel, sincos
from featherlane.policies import LaneFunctions

MOST = 10.0  # observed velocities and constraint forces are clipped to this
LOWEST = 1.0  # least height of the tip [m]


@kernel
def penalties(x, height, v1, v2):
    """Returns the rewards of the tip's position and of both angular velocities, which are not positive."""
    return -(0.01 * (x * x) + (height - 2.0) * (height - 2.0)), -(1e-3 * (v1 * v1) + 5e-3 * (v2 * v2))


@dataclass(kw_only=True)
class InvertedDoublePendulum(MujocoTask):
    """Rewards each step with the tip up; penalizes distance from the middle and velocities."""

    xml_file: str = "inverted_double_pendulum.xml"
    frame_skip: int = 5
    healthy_reward: float = 10.0
    reset_noise_scale: float = 0.1

    name = "InvertedDoublePendulum-v5"
    reward_threshold = 9100.0
    fields = ("site_xpos", "qfrc_constraint")
    forward_at_start = False  # `started` computes the derived fields that are observed

    def prepare(self, worlds: Batch) -> None:
        super().prepare(worlds)
        model = worlds.model
        self.only_limits = not (model.ncand or model.neq or model.ntendon or model.dof_frictionloss.any())
        low, high = model.jnt_range[:, 0] + model.jnt_margin, model.jnt_range[:, 1] - model.jnt_margin
        limited = model.jnt_limited.astype(bool)
        self.reach = np.where(limited, low, -np.inf), np.where(limited, high, np.inf)

    def started(self, worlds: Batch, ids: np.ndarray) -> None:
        """Computes the constraint forces of the initial state; without a joint at its limit they are zero."""
        if self.only_limits and is_between(self.reach[0], worlds.qpos[ids], self.reach[1]).all():
            worlds.writable("qfrc_constraint")[ids] = 0.0
        else:
            worlds.forward(ids)

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        angles = worlds.qpos[:, 1:]
        return {
            "qpos": worlds.qpos[:, :1],
            "sin": np.sin(angles),
            "cos": np.cos(angles),
            "qvel": np.clip(worlds.qvel, -MOST, MOST),
            "qfrc_constraint": np.clip(worlds.qfrc_constraint[:, :1], -MOST, MOST),
        }

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> dict[str, np.ndarray]:
        tip, qvel = worlds.site_xpos[:, 0], worlds.qvel
        distance, velocity = penalties(tip[:, 0], tip[:, 2], qvel[:, 1], qvel[:, 2])
        self.penalties = {"distance_penalty": distance, "velocity_penalty": velocity}
        return {"survive": self.healthy_reward * self.is_up, **self.penalties}

    def terminated(self, worlds: Batch) -> np.ndarray:
        down = worlds.site_xpos[:, 0, 2] <= LOWEST
        self.is_up = ~down
        return down

    def compiled(self, worlds: Batch) -> LaneFunctions:
        alive, (low, high) = float(self.healthy_reward), self.reach
        free = (low < self.init_qpos - self.reset_noise_scale) & (self.init_qpos + self.reset_noise_scale < high)
        unforced = int(self.only_limits and free.all())  # initial states have no constraint forces

        @kernel
        def observe(d, p, at_start):
            """obs <- the cart's place, sin and cos of both angles, velocities, the cart's constraint force.

            unforced: 1 if initial states have no constraint forces.
            """
            p.obs[0] = d.qpos[0]
            for k in range(2):
                p.obs[1 + k], p.obs[3 + k] = sincos(d.qpos[1 + k])
            for k in range(3):
                p.obs[5 + k] = clip(d.qvel[k], -MOST, MOST)
            p.obs[8] = 0.0 if at_start * unforced else clip(d.qfrc_constraint[0], -MOST, MOST)

        @kernel
        def score(d, p, at_start):
            """Adds the reward of worlds whose tip, site 0, is above LOWEST, and the penalties; the others terminate."""
            x, height = d.site_xpos[0][0], d.site_xpos[0][2]
            distance, velocity = penalties(x, height, d.qvel[1], d.qvel[2])
            survive(p, height > LOWEST, alive, terminates=1)
            add_reward(p, distance)
            add_reward(p, velocity)

        return LaneFunctions(observe, score, start_stage="none" if unforced else "acceleration")

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        self.around_start(worlds, ids, random, self.reset_noise_scale, normal=True)

    def info(self, worlds: Batch, terms: Mapping[str, np.ndarray], before: Any) -> dict[str, np.ndarray]:
        return {"reward_survive": terms["survive"], **self.penalties}
