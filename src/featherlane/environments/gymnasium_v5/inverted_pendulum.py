"""InvertedPendulum-v5: a cart balances a pole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from featherlane import Batch
from featherlane.environments.gymnasium_v5.compiled import state_observer, survive
from featherlane.environments.gymnasium_v5.mujoco_task import MujocoTask
from featherlane.environments.random_streams import RandomStreams
from featherlane.lanes import fabs, kernel
from featherlane.policies import LaneFunctions

STEEPEST = 0.2  # greatest angle of the pole [rad]


@dataclass(kw_only=True)
class InvertedPendulum(MujocoTask):
    """Rewards each step with the pole up."""

    xml_file: str = "inverted_pendulum.xml"
    frame_skip: int = 2
    default_camera_config: Mapping[str, Any] | None = field(
        default_factory=lambda: {"trackbodyid": 0, "distance": 2.04}
    )
    reset_noise_scale: float = 0.01

    name = "InvertedPendulum-v5"
    reward_threshold = 950.0

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        return {"qpos": worlds.qpos, "qvel": worlds.qvel}

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> dict[str, np.ndarray]:
        return {"survive": self.is_up.astype(int)}

    def terminated(self, worlds: Batch) -> np.ndarray:
        self.is_up = np.abs(worlds.qpos[:, 1]) <= STEEPEST
        return ~self.is_up

    def compiled(self, worlds: Batch) -> LaneFunctions:
        @kernel
        def score(d, p, at_start):
            """reward += 1 in worlds whose pole is up; the others terminate."""
            survive(p, fabs(d.qpos[1]) <= STEEPEST, reward=1.0, terminates=1)

        return LaneFunctions(state_observer(worlds, hidden=0), score)

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        self.around_start(worlds, ids, random, self.reset_noise_scale, normal=False)
