"""Adds a task from outside the package, as docs/extending.md explains: swing the bundled cart's pole up.

`test_howto.py` runs this file in a separate process, in which no task is registered yet.
"""

from __future__ import annotations

from dataclasses import dataclass

import gymnasium as gym
import numpy as np

import featherlane as fl
from featherlane.environments import Task
from featherlane.environments.registry import register


@dataclass(kw_only=True)
class SwingUp(Task):
    """Swings a pole up, on a cart.

    Attributes:
        frame_skip: time steps for each action.
        speed: weight of the pole's squared angular velocity in the reward [s^2/rad^2].
    """

    frame_skip: int = 5
    speed: float = 0.01

    model = "cartpole"  # a bundled name, or a source that `fl.load` takes
    max_episode_steps = limit = 200  # of a vector environment, and for `gymnasium.make`

    def observation(self, worlds):
        angle = worlds.qpos[:, 1:]
        return {"cart": worlds.qpos[:, :1], "cos": np.cos(angle), "sin": np.sin(angle), "velocity": worlds.qvel}

    def reward(self, worlds, actions, before):
        return {"height": np.cos(worlds.qpos[:, 1]), "speed": -self.speed * worlds.qvel[:, 1] ** 2}

    def start(self, worlds, ids, random):
        worlds.qpos[ids, 1:] = np.pi + random.uniform(ids, -0.5, 0.5, 1)


if __name__ == "__main__":
    register("SwingUp-v0", SwingUp)
    env = gym.make_vec("featherlane/SwingUp-v0", num_envs=64, speed=0.1)
    seen, _ = env.reset(seed=0)
    assert seen.shape == (64, 5)
    assert len(np.unique(seen[:, 2])) == 64, "each world starts from its own generator"
    ends = 0
    for _ in range(200):
        seen, rewards, terminated, truncated, _ = env.step(env.action_space.sample())
        np.testing.assert_allclose(rewards, env.terms["height"] + env.terms["speed"])
        ends += truncated.sum()
    assert ends == 64
    alone = gym.make("featherlane/SwingUp-v0")
    np.testing.assert_array_equal(alone.reset(seed=3)[0], env.reset(seed=0)[0][3])
    try:
        gym.make_vec("featherlane/SwingUp-v0", num_envs=1, sped=0.1)
    except fl.ModelError as error:
        assert "sped" in str(error)
    else:
        raise AssertionError("a wrong option is an error with its name")
