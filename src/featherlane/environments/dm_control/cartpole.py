"""Cartpole: balance or swing up a pole on a cart."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from featherlane import Batch
from featherlane.environments.dm_control.suite_task import XZ, ZZ, SuiteTask
from featherlane.environments.random_streams import RandomStreams


class Cartpole(SuiteTask):
    """Rewards an upright pole, a centred cart, small control and small velocity of the pole."""

    file = "cartpole.xml"
    fields = ("xmat",)
    swing_up: ClassVar[bool]

    def prepare(self, worlds: Batch) -> None:
        self.pole = worlds.model.body("pole_1").id

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        axes = worlds.xmat[:, self.pole]
        return {"cart": worlds.qpos[:, :1], "pole": axes[:, [ZZ, XZ]], "velocity": worlds.qvel}

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> np.ndarray:
        upright = (worlds.xmat[:, self.pole, ZZ] + 1.0) / 2.0
        centered = (1.0 + self.tolerance(worlds.qpos[:, 0], margin=2.0)) / 2.0
        still = self.tolerance(worlds.ctrl[:, 0], margin=1.0, sigmoid="quadratic", value_at_margin=0.0)
        slow = (1.0 + self.tolerance(worlds.qvel[:, 1], margin=5.0)) / 2.0
        return upright * ((4.0 + still) / 5.0) * slow * centered

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        if self.swing_up:
            worlds.qpos[ids] = 0.01 * random.normal(ids, 2) + [0.0, np.pi]
        else:
            worlds.qpos[ids] = random.uniform(ids, [-0.1, -0.034], [0.1, 0.034], 2)
        worlds.qvel[ids] = 0.01 * random.normal(ids, 2)


class CartpoleSparse(Cartpole):
    """Rewards an upright pole on a centred cart."""

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> np.ndarray:
        centered = self.tolerance(worlds.qpos[:, 0], (-0.25, 0.25))
        return centered * self.tolerance(worlds.xmat[:, self.pole, ZZ], (0.995, 1.0))


class CartpoleBalance(Cartpole):
    """Starts with an upright pole; the reward is smooth, between 0 and 1."""

    name, swing_up = "dm_control.cartpole-balance", False


class CartpoleBalanceSparse(CartpoleSparse):
    """Starts with an upright pole; the reward is 0 or 1."""

    name, swing_up = "dm_control.cartpole-balance_sparse", False


class CartpoleSwingup(Cartpole):
    """Starts with a hanging pole; the reward is smooth, between 0 and 1."""

    name, swing_up = "dm_control.cartpole-swingup", True


class CartpoleSwingupSparse(CartpoleSparse):
    """Starts with a hanging pole; the reward is 0 or 1."""

    name, swing_up = "dm_control.cartpole-swingup_sparse", True
