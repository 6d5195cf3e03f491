"""Tasks of robosuite in batches, against robosuite; robosuite 1.5.2 needs MuJoCo 3.9 or older.

`test_other_mujoco.py` runs this file in a separate process.
"""

from __future__ import annotations

import copy
import logging

import numpy as np
import pytest
import robosuite
from robosuite.controllers import load_composite_controller_config

import featherlane as fl
from featherlane.environments import TaskEnv
from featherlane.environments import robosuite as ours

N, STEPS = 2, 4
SAME = 1e-9  # of one action, from equal states with converged solvers
SINGLE = 2e-6  # of observables that robosuite computes in float32
FLOAT32 = ("_quat_site", "eef_quat", "_to_robot0_eef_pos", "_to_robot0_eef_quat", "-state")
logging.disable(logging.WARNING)


def converged(option):
    option.tolerance, option.iterations = 0.0, 100


class Pairs:
    """Worlds of a task, each next to a live environment of robosuite with the same state."""

    def __init__(self, name, n=N, robots=None, **settings):
        robots = robots or (["Panda", "Panda"] if name.startswith("TwoArm") else "Panda")
        given = {key: settings[key] for key in settings if key != "options"} | settings.get("options", {})
        self.env = TaskEnv(getattr(ours, name)(robots=robots, pool=n, **settings), n, nthread=1)
        self.live = [
            robosuite.make(name, robots=robots, seed=0, **ours.source.FIXED, **copy.deepcopy(given)) for _ in range(n)
        ]
        for w, live in enumerate(self.live):
            for _ in range(w):
                live.reset()  # other initial states of the same model
        self.env.reset(seed=0)
        converged(self.env.batch.model.opt)
        self.start()

    def start(self):
        """Gives the worlds the initial states of the live environments; returns both observations."""
        task, batch = self.env.task, self.env.batch
        expected = []
        for w, live in enumerate(self.live):
            expected.append(live.reset())
            converged(live.sim.model._model.opt)
            for robot in live.robots:
                for part in robot.part_controllers.values():
                    part.update(force=True)  # robosuite's first torques use the inertia of an open gripper
            for name, rows in task.edited.items():
                rows[w] = getattr(live.sim.model._model, name).reshape(rows[w].shape)
            task.source.goal.touch[w] = task.source.contacts.present(live)
            task.used[w] = getattr(live, "nut_id", getattr(live, "object_id", 0))
        self.copy()
        ids = np.arange(len(self.live))
        task.parts.reset(ids)
        batch.forward()
        task.started(batch, ids)
        return self.env._observations.observe(), expected

    def copy(self):
        """Copies the states of the live environments."""
        for w, live in enumerate(self.live):
            for name in ("qpos", "qvel", "qacc_warmstart"):
                getattr(self.env.batch, name)[w] = getattr(live.sim.data._data, name)

    def step(self, actions):
        """Returns observations, rewards and successes of both."""
        found = self.env.step(actions)
        results = [live.step(action) for live, action in zip(self.live, actions, strict=True)]
        return found[0], found[1], self.env.task.success, results

    def actions(self, count, seed=0):
        low, high = self.live[0].action_spec
        rng = np.random.default_rng(seed)
        return rng.uniform(low, high, (count, len(self.live), len(low)))


def same_observations(found, expected, tolerance=SAME):
    """Compares observations by name; scalars of robosuite have one column."""
    for w, one in enumerate(expected):
        for name, values in one.items():
            close = SINGLE if any(part in name for part in FLOAT32) else tolerance
            np.testing.assert_allclose(found[name][w], np.atleast_1d(values), rtol=close, atol=close, err_msg=name)


def compare(name, steps=STEPS, tolerance=SAME, **settings):
    pairs = Pairs(name, **settings)
    same_observations(*pairs.start())
    for action in pairs.actions(steps):
        found, rewards, success, results = pairs.step(action)
        for w, live in enumerate(pairs.live):
            qpos, qvel = live.sim.data.qpos, live.sim.data.qvel
            np.testing.assert_allclose(pairs.env.batch.qpos[w], qpos, rtol=0, atol=tolerance)
            np.testing.assert_allclose(pairs.env.batch.qvel[w], qvel, rtol=0, atol=100 * tolerance)
            assert rewards[w] == pytest.approx(results[w][1], rel=tolerance, abs=tolerance)
            assert success[w] == bool(live._check_success())
        same_observations(found, [result[0] for result in results], 1e4 * tolerance)
        pairs.copy()
    return pairs


NAMES = [task.name.removeprefix("robosuite.") for task in ours.TASKS]


@pytest.mark.parametrize("shaping", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_actions_from_equal_states_have_equal_results(name, shaping):
    compare(name, reward_shaping=shaping)
