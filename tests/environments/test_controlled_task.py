"""`Task.control`: a controller runs within the time steps of an action, `act` sets its goals."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.environments import Task, TaskEnv
from featherlane.errors import ModelError
from featherlane.lanes import kernel

N, SKIP = 3, 4
XML = """
<mujoco>
  <worldbody>
    <body><joint name="slide" type="slide" axis="1 0 0" damping="4"/><geom size=".1" mass="1"/></body>
  </worldbody>
  <actuator><motor joint="slide" ctrlrange="-9 9"/></actuator>
</mujoco>
"""


@kernel
def hold(m, d, p):
    """Pulls the slide to the target, and counts the time steps."""
    d.ctrl[0] = 50.0 * (p.target[0] - d.qpos[0])
    p.steps[0] = p.steps[0] + 1.0


class Held(Task):
    """Holds a slide at the action."""

    model, frame_skip, max_episode_steps = XML, SKIP, 2

    def prepare(self, worlds):
        self.control = fl.Controller(worlds, hold, target=1, steps=1)

    def act(self, worlds, actions, ids):
        self.control.target[ids] = actions

    def observation(self, worlds):
        return worlds.qpos

    def reward(self, worlds, actions, before):
        return worlds.qpos[:, 0]

    def action_space(self, worlds):
        return np.array([-1.0]), np.array([1.0])


def test_a_controller_runs_in_each_time_step_of_the_worlds_that_move():
    env, batch = TaskEnv(Held(), N, nthread=1), fl.Batch(fl.load(XML), N)
    control, targets = fl.Controller(batch, hold, target=1, steps=1), np.array([[0.5], [-0.5], [0.1]])
    env.reset(seed=0)
    control.target = targets
    for k in range(2):
        observations, _, _, truncated, _ = env.step(targets)
        batch.rollout(SKIP, control)
        np.testing.assert_array_equal(observations, batch.qpos)
        assert truncated.all() == (k == 1)
    env.elapsed[:2] = 0
    env._done[:2] = False  # two worlds continue, one is reset
    env.step(targets)
    batch.rollout(SKIP, control)
    np.testing.assert_array_equal(env.batch.qpos[:2], batch.qpos[:2])
    np.testing.assert_array_equal(env.batch.qpos[2], 0.0)
    np.testing.assert_array_equal(env.task.control.steps[:, 0], [3 * SKIP, 3 * SKIP, 2 * SKIP])


def test_fields_after_velocities_need_steps_without_a_controller():
    class Fresh(Held):
        derived = "dm_control"

    with pytest.raises(ModelError, match="derived: got 'dm_control' with a controller"):
        TaskEnv(Fresh(), N)
