"""HalfCheetah-v5: a planar robot runs along x."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from featherlane import Batch
from featherlane.environments.gymnasium_v5.forward_task import ForwardTask
from featherlane.environments.random_streams import RandomStreams


@dataclass(kw_only=True)
class HalfCheetah(ForwardTask):
    """Rewards forward velocity and penalizes controls; it never terminates."""

    xml_file: str = "half_cheetah.xml"
    frame_skip: int = 5
    default_camera_config: Mapping[str, Any] | None = field(default_factory=lambda: {"distance": 4.0})

    name = "HalfCheetah-v5"
    reward_threshold = 4800.0

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        self.around_start(worlds, ids, random, self.reset_noise_scale, normal=True)

    def start_info(self, worlds: Batch) -> dict[str, np.ndarray]:
        return {"x_position": worlds.qpos[:, 0]}
