"""Ball in cup: catch a ball on a string with a cup that moves in a plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from featherlane import Batch
from featherlane.environments.dm_control.suite_task import SuiteTask, joint_columns
from featherlane.environments.random_streams import RandomStreams

PLANE = [0, 2]  # x and z


@dataclass(kw_only=True)
class BallInCupCatch(SuiteTask):
    """Rewards a ball in the cup."""

    frame_skip: int = 10

    name = "dm_control.ball_in_cup-catch"
    file = "ball_in_cup.xml"
    fields = ("site_xpos", "xpos")

    def prepare(self, worlds: Batch) -> None:
        model = worlds.model
        self.target, self.ball = model.site("target").id, model.body("ball").id
        self.reach = model.site_size[self.target][PLANE] - model.geom_size[model.geom("ball").id, 0]
        self.columns = joint_columns(worlds, "ball_x", "ball_z")[0]

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        return {"position": worlds.qpos, "velocity": worlds.qvel}

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> np.ndarray:
        offset = worlds.site_xpos[:, self.target] - worlds.xpos[:, self.ball]
        return (np.abs(offset[:, PLANE]) < self.reach).all(axis=1).astype(float)

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        def sample(some: np.ndarray) -> None:
            worlds.qpos[some[:, None], self.columns] = random.uniform(some, [-0.2, 0.2], [0.2, 0.5], 2)

        self.sample_without_contact(worlds, ids, sample)
