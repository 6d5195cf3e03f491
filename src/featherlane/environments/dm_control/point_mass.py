"""Point mass: a mass in a plane moves to a target."""

from __future__ import annotations

from featherlane.environments.dm_control.sampling import JointSampler
from featherlane.environments.dm_control.suite_task import SuiteTask, lengths


class PointMassEasy(SuiteTask):
    """Rewards a mass near the target, and small controls."""

    name = "dm_control.point_mass-easy"
    file = "point_mass.xml"
    fields = ("geom_xpos",)

    def prepare(self, worlds):
        self.joints, model = JointSampler(worlds), worlds.model
        self.mass, self.target = model.geom("pointmass").id, model.geom("target").id
        self.radius = float(model.geom_size[self.target, 0])

    def observation(self, worlds):
        return {"position": worlds.qpos, "velocity": worlds.qvel}

    def reward(self, worlds, actions, before):
        distance = lengths(worlds.geom_xpos[:, self.target] - worlds.geom_xpos[:, self.mass])
        return self.tolerance(distance, (0.0, self.radius), self.radius) * self.small_control(worlds.ctrl)

    def start(self, worlds, ids, random):
        self.joints.set(worlds, ids, random)
