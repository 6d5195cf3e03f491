"""Swimmer-v5: a planar three-link robot swims in a viscous fluid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from featherlane import Batch
from featherlane.environments.gymnasium_v5.forward_task import ForwardTask
from featherlane.environments.gymnasium_v5.mujoco_task import root_position
from featherlane.environments.random_streams import RandomStreams


@dataclass(kw_only=True)
class Swimmer(ForwardTask):
    """Rewards swimming along x and penalizes controls; it never terminates."""

    xml_file: str = "swimmer.xml"
    frame_skip: int = 4
    ctrl_cost_weight: float = 1e-4

    name = "Swimmer-v5"
    reward_threshold = 360.0
    nroot = 2

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        self.around_start(worlds, ids, random, self.reset_noise_scale, normal=False)

    def start_info(self, worlds: Batch) -> dict[str, np.ndarray]:
        return root_position(worlds)
