"""Swimmer-v5: a planar three-link robot swims in a viscous fluid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from featherlane import Batch
from featherlane.environments.gymnasium_v5.compiled import forward_motion, state_observer
from featherlane.environments.gymnasium_v5.mujoco_task import MujocoTask, root_position, squares
from featherlane.environments.random_streams import RandomStreams
from featherlane.policies import LaneFunctions


@dataclass(kw_only=True)
class Swimmer(MujocoTask):
    """Rewards swimming along x and penalizes controls; it never terminates."""

    xml_file: str = "swimmer.xml"
    frame_skip: int = 4
    forward_reward_weight: float = 1.0
    ctrl_cost_weight: float = 1e-4
    reset_noise_scale: float = 0.1
    exclude_current_positions_from_observation: bool = True

    name = "Swimmer-v5"
    reward_threshold = 360.0

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        hidden = 2 if self.exclude_current_positions_from_observation else 0
        return {"qpos": worlds.qpos[:, hidden:], "qvel": worlds.qvel}

    def before(self, worlds: Batch) -> np.ndarray:
        return worlds.qpos[:, :2].copy()

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> dict[str, np.ndarray]:
        self.velocity = (worlds.qpos[:, :2] - before) / self.dt
        return {
            "forward": self.forward_reward_weight * self.velocity[:, 0],
            "ctrl": -(self.ctrl_cost_weight * squares(actions)),
        }

    def compiled(self, worlds: Batch) -> LaneFunctions:
        hidden = 2 if self.exclude_current_positions_from_observation else 0
        remember, score = forward_motion(self, worlds.model.nu, 2)
        return LaneFunctions(state_observer(worlds, hidden), score, remember, 2)

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        self.around_start(worlds, ids, random, self.reset_noise_scale, normal=False)

    def start_info(self, worlds: Batch) -> dict[str, np.ndarray]:
        return root_position(worlds)
