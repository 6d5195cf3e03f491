"""Base class of tasks that reward motion along x."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from featherlane import Batch
from featherlane.environments.gymnasium_v5.compiled import forward_motion, state_observer
from featherlane.environments.gymnasium_v5.mujoco_task import MujocoTask, squares
from featherlane.policies import LaneFunctions


@dataclass(kw_only=True)
class ForwardTask(MujocoTask):
    """Rewards forward velocity and penalizes controls.

    Attributes:
        nroot: the first positions, which are those of the root along the ground.
    """

    forward_reward_weight: float = 1.0
    ctrl_cost_weight: float = 0.1
    reset_noise_scale: float = 0.1
    exclude_current_positions_from_observation: bool = True

    nroot: ClassVar[int] = 1

    @property
    def hidden(self) -> int:
        """Returns the number of the first observed position."""
        return self.nroot if self.exclude_current_positions_from_observation else 0

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        return {"qpos": worlds.qpos[:, self.hidden :], "qvel": worlds.qvel}

    def before(self, worlds: Batch) -> np.ndarray:
        return worlds.qpos[:, : self.nroot].copy()

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> dict[str, np.ndarray]:
        self.velocity = (worlds.qpos[:, : self.nroot] - before) / self.dt
        return {
            "forward": self.forward_reward_weight * self.velocity[:, 0],
            "ctrl": -(self.ctrl_cost_weight * squares(actions)),
        }

    def compiled(self, worlds: Batch) -> LaneFunctions:
        remember, score = forward_motion(self, worlds.model.nu, self.nroot)
        return LaneFunctions(state_observer(worlds, self.hidden), score, remember, self.nroot)
