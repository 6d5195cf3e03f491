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

    def observation(self, worlds):
        return np.rint(worlds.time / worlds.model.opt.timestep)[:, None]

    def reward(self, worlds, actions, before):
        return {"pay": 2.0 * actions[:, 0], "tax": -actions[:, 0]}

    def terminated(self, worlds):
        return self.observation(worlds)[:, 0] >= self.ends

    def info(self, worlds, terms, before):
        return {"count": self.observation(worlds)[:, 0]}

    def start_info(self, worlds):
        return {"count": self.observation(worlds)[:, 0]}
