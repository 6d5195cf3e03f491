"""Hopper-v5: one leg in a plane that hops without falling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from featherlane.environments.gymnasium_v5.mujoco_task import MujocoTask, between, squares

FASTEST = 10.0  # velocities are seen clipped to this [m/s, rad/s]


def side_view() -> dict[str, Any]:
    """The camera of the planar walkers."""
    return {"trackbodyid": 2, "distance": 3.0, "lookat": np.array((0.0, 0.0, 1.15)), "elevation": -20.0}


@dataclass(kw_only=True)
class Hopper(MujocoTask):
    """Hop forward; being upright is paid, controls cost."""

    xml_file: str = "hopper.xml"
    frame_skip: int = 4
    default_camera_config: Mapping[str, Any] | None = field(default_factory=side_view)
    forward_reward_weight: float = 1.0
    ctrl_cost_weight: float = 1e-3
    healthy_reward: float = 1.0
    terminate_when_unhealthy: bool = True
    healthy_state_range: tuple[float, float] = (-100.0, 100.0)
    healthy_z_range: tuple[float, float] = (0.7, float("inf"))
    healthy_angle_range: tuple[float, float] = (-0.2, 0.2)
    reset_noise_scale: float = 5e-3
    exclude_current_positions_from_observation: bool = True

    name = "Hopper-v5"
    reward_threshold = 3800.0

    def observation(self, worlds):
        hidden = 1 if self.exclude_current_positions_from_observation else 0
        return {"qpos": worlds.qpos[:, hidden:], "qvel": np.clip(worlds.qvel, -FASTEST, FASTEST)}

    def before(self, worlds):
        return worlds.qpos[:, 0].copy()

    def healthy(self, worlds) -> np.ndarray:
        """Upright, high enough, and no number out of range, (n,) bool."""
        low, high = self.healthy_state_range
        return (
            between(self.healthy_z_range[0], worlds.qpos[:, 1], self.healthy_z_range[1])
            & between(self.healthy_angle_range[0], worlds.qpos[:, 2], self.healthy_angle_range[1])
            & between(low, worlds.qpos[:, 2:], high).all(axis=1)
            & between(low, worlds.qvel, high).all(axis=1)
        )

    def reward(self, worlds, actions, before):
        self.x_velocity = (worlds.qpos[:, 0] - before) / self.dt
        return {
            "forward": self.forward_reward_weight * self.x_velocity,
            "ctrl": -(self.ctrl_cost_weight * squares(actions)),
            "survive": self.healthy(worlds) * self.healthy_reward,
        }

    def terminated(self, worlds):
        return ~self.healthy(worlds) if self.terminate_when_unhealthy else None

    def start(self, worlds, ids, random):
        self.around_start(worlds, ids, random, self.reset_noise_scale, normal=False)

    def info(self, worlds, terms, before):
        return {**self.start_info(worlds), "x_velocity": self.x_velocity, **super().info(worlds, terms, before)}

    def start_info(self, worlds):
        height = worlds.qpos[:, 1] - self.init_qpos[1]
        return {"x_position": worlds.qpos[:, 0], "z_distance_from_origin": height}
