"""Fish: a swimming fish turns upright, or reaches a target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from featherlane import Batch
from featherlane.environments.dm_control.suite_task import ZZ, SuiteTask, in_frame, joint_columns, lengths
from featherlane.environments.random_streams import RandomStreams

JOINTS = ("tail1", "tail_twist", "tail2", "finright_roll", "finright_pitch", "finleft_roll", "finleft_pitch")


@dataclass(kw_only=True)
class FishUpright(SuiteTask):
    """Rewards an upright torso."""

    frame_skip: int = 10

    name = "dm_control.fish-upright"
    file = "fish.xml"
    fields = ("xmat",)

    def prepare(self, worlds: Batch) -> None:
        self.torso = worlds.model.body("torso").id
        self.joints = joint_columns(worlds, *JOINTS)[0]

    def upright(self, worlds: Batch) -> np.ndarray:
        """Returns the cosine of the angle between the torso's z axis and the vertical, (n,)."""
        return worlds.xmat[:, self.torso, ZZ]

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        return {
            "joint_angles": worlds.qpos[:, self.joints],
            "upright": self.upright(worlds)[:, None],
            "velocity": worlds.qvel,
        }

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> np.ndarray:
        return self.tolerance(self.upright(worlds), (1.0, 1.0), margin=1.0)

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        quaternions = random.normal(ids, 4)
        worlds.qpos[ids, 3:7] = quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)
        worlds.qpos[ids[:, None], self.joints] = random.uniform(ids, -0.2, 0.2, len(JOINTS))


class FishSwim(FishUpright):
    """Rewards a mouth near the target and an upright torso."""

    name = "dm_control.fish-swim"
    fields = ("xmat", "geom_xpos", "geom_xmat")

    def prepare(self, worlds: Batch) -> None:
        super().prepare(worlds)
        model = worlds.model
        self.mouth, self.target = model.geom("mouth").id, model.geom("target").id
        self.reach = float(model.geom_size[[self.mouth, self.target], 0].sum())
        self.position = worlds.expand("geom_pos")

    def to_target(self, worlds: Batch) -> np.ndarray:
        """Returns the target's position in the frame of the mouth, (n, 3) [m]."""
        offset = worlds.geom_xpos[:, self.target] - worlds.geom_xpos[:, self.mouth]
        return in_frame(offset[:, None], worlds.geom_xmat[:, self.mouth])[:, 0]

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        seen = super().observation(worlds)
        return {
            "joint_angles": seen["joint_angles"],
            "upright": seen["upright"],
            "target": self.to_target(worlds),
            "velocity": seen["velocity"],
        }

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> np.ndarray:
        near = self.tolerance(lengths(self.to_target(worlds)), (0.0, self.reach), margin=2.0 * self.reach)
        return (7.0 * near + 0.5 * (self.upright(worlds) + 1.0)) / 8.0

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        super().start(worlds, ids, random)
        self.position[ids, self.target] = random.uniform(ids, [-0.4, -0.4, 0.1], [0.4, 0.4, 0.3], 3)
