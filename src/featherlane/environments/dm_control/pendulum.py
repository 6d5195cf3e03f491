"""Pendulum: swing up a pendulum with a weak motor."""

from __future__ import annotations

from typing import Any

import numpy as np

from featherlane import Batch
from featherlane.environments.dm_control.suite_task import XZ, ZZ, SuiteTask
from featherlane.environments.random_streams import RandomStreams

UPRIGHT = float(np.cos(np.deg2rad(8.0)))  # least cosine of the pole's angle that is rewarded


class PendulumSwingup(SuiteTask):
    """Rewards a pole within 8 degrees of the vertical."""

    name = "dm_control.pendulum-swingup"
    file = "pendulum.xml"
    fields = ("xmat",)

    def prepare(self, worlds: Batch) -> None:
        self.pole = worlds.model.body("pole").id

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        return {"orientation": worlds.xmat[:, self.pole][:, [ZZ, XZ]], "velocity": worlds.qvel}

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> np.ndarray:
        return self.tolerance(worlds.xmat[:, self.pole, ZZ], (UPRIGHT, 1.0))

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        worlds.qpos[ids] = random.uniform(ids, -np.pi, np.pi, 1)
