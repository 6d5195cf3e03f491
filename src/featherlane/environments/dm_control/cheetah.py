"""Cheetah: a planar robot runs along x."""

from __future__ import annotations

from typing import Any

import numpy as np

from featherlane import Batch
from featherlane.environments.dm_control.suite_task import SuiteTask, sensor_columns
from featherlane.environments.random_streams import RandomStreams

RUN_SPEED = 10.0  # [m/s]
SETTLING = 200  # time steps from the sampled posture to the initial state


class CheetahRun(SuiteTask):
    """Rewards forward velocity up to 10 m/s."""

    name = "dm_control.cheetah-run"
    file = "cheetah.xml"
    fields = ("sensordata",)

    def prepare(self, worlds: Batch) -> None:
        super().prepare(worlds)
        model = worlds.model
        (self.limited,) = np.nonzero(model.jnt_limited)  # joints with one coordinate each
        self.low, self.high = model.jnt_range[self.limited].T.astype(float)
        self.default = np.array(model.qpos0)[self.limited]
        self.speed = sensor_columns(worlds, "torso_subtreelinvel")[0]

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        return {"position": worlds.qpos[:, 1:], "velocity": worlds.qvel}

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> np.ndarray:
        speed = self.sensordata[:, self.speed]
        return self.tolerance(speed, (RUN_SPEED, np.inf), RUN_SPEED, "linear", 0.0)

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        sampled = random.uniform(ids, self.low, self.high, len(self.limited))
        worlds.step(1, ids=ids)  # dm_control's first step has the acceleration of the default posture
        worlds.qpos[ids[:, None], self.limited] += sampled - self.default
        worlds.step(SETTLING - 1, ids=ids)
        worlds.time[ids] = 0.0
