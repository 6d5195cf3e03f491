"""HumanoidStandup-v5: a humanoid that lies on its back stands up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from featherlane import Batch
from featherlane.environments.gymnasium_v5.compiled import add_reward, controls_squared
from featherlane.environments.gymnasium_v5.humanoid import HumanoidTask, from_the_side
from featherlane.environments.gymnasium_v5.mujoco_task import squares
from featherlane.lanes import kernel
from featherlane.policies import LaneFunctions


@dataclass(kw_only=True)
class HumanoidStandup(HumanoidTask):
    """Rewards the torso's height; penalizes controls and impacts.

    Note:
        `uph_cost_weight` has no effect, in Gymnasium as here.
    """

    xml_file: str = "humanoidstandup.xml"
    default_camera_config: Mapping[str, Any] | None = field(default_factory=lambda: from_the_side(0.8925))
    uph_cost_weight: float = 1.0
    impact_cost_weight: float = 5e-7
    impact_cost_range: tuple[float, float] = (-np.inf, 10.0)

    name = "HumanoidStandup-v5"

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> dict[str, np.ndarray]:
        return {
            "linup": worlds.qpos[:, 2] / float(worlds.model.opt.timestep),
            "quadctrl": -(self.ctrl_cost_weight * squares(worlds.ctrl)),
            "impact": -self.contact_cost(worlds, self.impact_cost_weight, self.impact_cost_range),
            "alive": np.ones(worlds.nworld),
        }

    def compiled(self, worlds: Batch) -> LaneFunctions:
        cost, nu, timestep = float(self.ctrl_cost_weight), worlds.model.nu, float(worlds.model.opt.timestep)
        impact = self.compiled_contact_cost(worlds, self.impact_cost_weight, self.impact_cost_range)

        @kernel
        def score(d, p, at_start):
            """reward += height / timestep - cost |controls|^2 - cost of contact forces + 1."""
            add_reward(p, d.qpos[2] / timestep)
            add_reward(p, -(cost * controls_squared(d, p, nu)))
            add_reward(p, -impact(d, p))
            add_reward(p, 1.0)

        return LaneFunctions(self.compiled_observation(worlds), score, start_stage=self.start_stage(worlds))

    def info(self, worlds: Batch, terms: Mapping[str, np.ndarray], before: Any) -> dict[str, np.ndarray]:
        shown = {name: values for name, values in terms.items() if name != "alive"}  # Gymnasium's info omits it
        return super().info(worlds, shown, before)

    def start_info(self, worlds: Batch) -> dict[str, np.ndarray]:
        return {
            "x_position": worlds.qpos[:, 0],
            "y_position": worlds.qpos[:, 1],
            "z_distance_from_origin": worlds.qpos[:, 2] - self.init_qpos[2],
            "tendon_length": worlds.ten_length,
            "tendon_velocity": worlds.ten_velocity,
        }
