"""Ant-v5: a four-legged robot runs along x."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from featherlane import Batch
from featherlane.environments.gymnasium_v5.compiled import (
    add_reward,
    controls_squared,
    observe_state,
    sum_of_squares,
    survive,
)
from featherlane.environments.gymnasium_v5.mujoco_task import HealthyTask, root_position, squares
from featherlane.environments.random_streams import RandomStreams
from featherlane.lanes import clip, flat, kernel
from featherlane.policies import LaneFunctions


@dataclass(kw_only=True)
class Ant(HealthyTask):
    """Rewards forward velocity and a healthy height; penalizes controls and clipped contact forces."""

    xml_file: str = "ant.xml"
    frame_skip: int = 5
    default_camera_config: Mapping[str, Any] | None = field(default_factory=lambda: {"distance": 4.0})
    forward_reward_weight: float = 1.0
    ctrl_cost_weight: float = 0.5
    contact_cost_weight: float = 5e-4
    main_body: int | str = 1
    healthy_z_range: tuple[float, float] = (0.2, 1.0)
    contact_force_range: tuple[float, float] = (-1.0, 1.0)
    reset_noise_scale: float = 0.1
    exclude_current_positions_from_observation: bool = True
    include_cfrc_ext_in_observation: bool = True

    name = "Ant-v5"
    reward_threshold = 6000.0
    fields = ("xpos", "cfrc_ext")

    def prepare(self, worlds: Batch) -> None:
        super().prepare(worlds)
        self.main = worlds.model.body(self.main_body).id

    def forces(self, worlds: Batch) -> np.ndarray:
        """Returns the clipped contact forces on each body except the world, (n, 6 (nbody - 1))."""
        return np.clip(self.contact_forces(worlds)[:, 6:], *self.contact_force_range)

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        hidden = 2 if self.exclude_current_positions_from_observation else 0
        parts = {"qpos": worlds.qpos[:, hidden:], "qvel": worlds.qvel}
        return parts | {"cfrc_ext": self.forces(worlds)} if self.include_cfrc_ext_in_observation else parts

    def before(self, worlds: Batch) -> np.ndarray:
        return worlds.xpos[:, self.main, :2].copy()

    def healthy(self, worlds: Batch) -> np.ndarray:
        """Returns which worlds have a torso height within range, (n,) bool."""
        low, high = self.healthy_z_range
        height = worlds.qpos[:, 2]
        return (low <= height) & (height <= high)

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> dict[str, np.ndarray]:
        self.velocity = (worlds.xpos[:, self.main, :2] - before) / self.dt
        return {
            "forward": self.velocity[:, 0] * self.forward_reward_weight,
            "ctrl": -(self.ctrl_cost_weight * squares(actions)),
            "contact": -(self.contact_cost_weight * squares(self.forces(worlds))),
            "survive": self.survival(),
        }

    def compiled(self, worlds: Batch) -> LaneFunctions:
        # hidden: first positions that are not observed; ends: 1 if unhealthy worlds terminate; weight, ...: of rewards
        hidden = 2 if self.exclude_current_positions_from_observation else 0
        weights = self.forward_reward_weight, self.ctrl_cost_weight, self.contact_cost_weight, self.healthy_reward
        weight, cost, contact, reward = (float(x) for x in weights)
        (low, high), (least, most), main, dt = self.healthy_z_range, self.contact_force_range, int(self.main), self.dt
        ends, shown = int(self.terminate_when_unhealthy), int(self.include_cfrc_ext_in_observation)
        nq, nv, nu, nforce = worlds.model.nq, worlds.model.nv, worlds.model.nu, 6 * (worlds.model.nbody - 1)

        @kernel
        def force(d, p, k):
            """Returns entry k of the clipped contact forces on all bodies but the world body."""
            return clip(flat(d.cfrc_ext)[6 + k], least, most)

        forces_squared = sum_of_squares(force)

        @kernel
        def observe(d, p, at_start):
            """obs <- positions from number `hidden` on, velocities and, if `shown`, contact forces; 0 N at a start."""
            n = observe_state(d, p, hidden, nq, nv)
            if shown:
                for k in range(nforce):
                    p.obs[n + k] = clip(0.0, least, most) if at_start else force(d, p, k)

        @kernel
        def remember(d, p, at_start):
            """p.next <- the horizontal position of the main body."""
            for k in range(2):
                p.next[k] = d.xpos[main][k]

        @kernel
        def score(d, p, at_start):
            """reward += weight (velocity along x) - costs of controls and contact forces + that of healthy worlds."""
            add_reward(p, ((d.xpos[main][0] - p.before[0]) / dt) * weight)
            add_reward(p, -(cost * controls_squared(d, p, nu)))
            add_reward(p, -(contact * forces_squared(d, p, nforce)))
            height = d.qpos[2]
            survive(p, (low <= height) & (height <= high), reward, terminates=ends)

        return LaneFunctions(observe, score, remember, 2, start_stage="position")

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        self.around_start(worlds, ids, random, self.reset_noise_scale, normal=True)

    def start_info(self, worlds: Batch) -> dict[str, np.ndarray]:
        return root_position(worlds)
