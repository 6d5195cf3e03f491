"""HalfCheetah-v5: a planar robot runs along x."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from featherlane import Batch
from featherlane.environments.gymnasium_v5.compiled import forward_motion, state_observer
from featherlane.environments.gymnasium_v5.mujoco_task import MujocoTask, squares
from featherlane.environments.random_streams import RandomStreams
from featherlane.policies import LaneFunctions


@dataclass(kw_only=True)
class HalfCheetah(MujocoTask):
    """Rewards forward velocity and penalizes controls; it never terminates."""

    xml_file: str = "half_cheetah.xml"
    frame_skip: int = 5
    default_camera_config: Mapping[str, Any] | None = field(default_factory=lambda: {"distance": 4.0})
    forward_reward_weight: float = 1.0
    ctrl_cost_weight: float = 0.1
    reset_noise_scale: float = 0.1
    exclude_current_positions_from_observation: bool = True

    name = "HalfCheetah-v5"
    reward_threshold = 4800.0

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        hidden = 1 if self.exclude_current_positions_from_observation else 0
        return {"qpos": worlds.qpos[:, hidden:], "qvel": worlds.qvel}

    def before(self, worlds: Batch) -> np.ndarray:
        return worlds.qpos[:, 0].copy()

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> dict[str, np.ndarray]:
        self.velocity = (worlds.qpos[:, 0] - before) / self.dt
        return {
            "forward": self.forward_reward_weight * self.velocity,
            "ctrl": -(self.ctrl_cost_weight * squares(actions)),
        }

    def compiled(self, worlds: Batch) -> LaneFunctions:
        hidden = 1 if self.exclude_current_positions_from_observation else 0
        remember, score = forward_motion(self, worlds.model.nu, 1)
        return LaneFunctions(state_observer(worlds, hidden), score, remember, 1)

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        self.around_start(worlds, ids, random, self.reset_noise_scale, normal=True)

    def start_info(self, worlds: Batch) -> dict[str, np.ndarray]:
        return {"x_position": worlds.qpos[:, 0]}
