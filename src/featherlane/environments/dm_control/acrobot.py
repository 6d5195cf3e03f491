"""Acrobot: swing up two links with a motor at the elbow."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from featherlane import Batch
from featherlane.environments.dm_control.suite_task import XZ, ZZ, SuiteTask, lengths
from featherlane.environments.random_streams import RandomStreams


class Acrobot(SuiteTask):
    """Rewards a small distance of the tip from a target above."""

    file = "acrobot.xml"
    fields = ("xmat", "site_xpos")
    margin: ClassVar[float]  # [m]

    def prepare(self, worlds: Batch) -> None:
        model = worlds.model
        self.links = [model.body(name).id for name in ("upper_arm", "lower_arm")]
        self.tip, self.target = (model.site(name).id for name in ("tip", "target"))
        self.radius = float(model.site_size[self.target, 0])

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        axes = worlds.xmat[:, self.links]
        return {"orientations": np.concatenate((axes[..., XZ], axes[..., ZZ]), axis=1), "velocity": worlds.qvel}

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> np.ndarray:
        distance = lengths(worlds.site_xpos[:, self.target] - worlds.site_xpos[:, self.tip])
        return self.tolerance(distance, (0.0, self.radius), self.margin)

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        worlds.qpos[ids] = random.uniform(ids, -np.pi, np.pi, 2)


class AcrobotSwingup(Acrobot):
    """Rewards a small distance of the tip from the target."""

    name, margin = "dm_control.acrobot-swingup", 1.0


class AcrobotSwingupSparse(Acrobot):
    """Rewards a tip within the target."""

    name, margin = "dm_control.acrobot-swingup_sparse", 0.0
