"""Defines a task with predictable results: worlds observe their step count, and the reward is their action."""

from __future__ import annotations

import numpy as np

from featherlane.environments import Task

SLIDER = """<mujoco><worldbody><body><joint name="x" type="slide"/><geom size="0.1"/></body></worldbody>
<actuator><motor joint="x" ctrllimited="true" ctrlrange="-4 4"/></actuator></mujoco>"""


class Count(Task):
    """Terminates world i after `ends[i]` steps, if given."""

    model = SLIDER

    def __init__(self, ends=None):
        self.ends = np.inf if ends is None else np.array(ends)

    def count(self, worlds):
        return np.rint(worlds.time / worlds.model.opt.timestep)[:, None]

    def observation(self, worlds):
        return self.count(worlds)

    def reward(self, worlds, actions, before):
        return {"pay": 2.0 * actions[:, 0], "tax": -actions[:, 0]}

    def terminated(self, worlds):
        return self.count(worlds)[:, 0] >= self.ends

    def info(self, worlds, terms, before):
        return {"count": self.count(worlds)[:, 0]}

    def start_info(self, worlds):
        return {"count": self.count(worlds)[:, 0]}


class TwoSided(Count):
    """Worlds observe their step count: the actor with noise, the critic without noise, and ten times as well."""

    deviation = 0.5

    def observation(self, worlds):
        count = self.count(worlds)
        return {"actor": {"count": count}, "critic": {"count": count, "tens": 10.0 * count}}

    def observation_noise(self, worlds, ids, random):
        return {"actor": {"count": self.deviation * random.normal(ids, 1)}}
