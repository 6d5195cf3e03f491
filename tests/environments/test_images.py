"""Observations with images: spaces, episodes, and what is refused."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import featherlane as fl
from featherlane.environments import BatchEnv, SingleEnv, Task, TaskEnv
from featherlane.environments.adapters.shared import open_environment

EYE = fl.Camera("front", width=8, height=6, output=("depth", "segmentation", "normal", "rgb"))


class Falling(Task):
    """Humanoids that fall from different heights."""

    model, frame_skip, max_episode_steps = "humanoid", 2, 3

    def __init__(self, cameras=(EYE,), state=True):
        self.cameras, self.state = cameras, state

    def observation(self, worlds):
        return worlds.qpos[:, :3] if self.state else {}

    def reward(self, worlds, actions, before):
        return worlds.qpos[:, 2]

    def start(self, worlds, ids, random):
        worlds.qpos[ids, 2] += random.uniform(ids, 0.0, 0.5, 1)[:, 0]


@pytest.mark.parametrize("state", [True, False])
@pytest.mark.parametrize("copy", [True, False])
def test_observations_are_those_of_the_space_and_of_the_camera(state, copy):
    env = TaskEnv(Falling(state=state), 3, copy=copy)
    observations, _ = env.reset(seed=0)
    for _ in range(5):
        assert env.observation_space.contains(observations) and ("state" in observations) == state
        images = env.batch.render(EYE)
        for output in EYE.names:
            assert (observations[f"front/{output}"] == getattr(images, output)).all()
        observations = env.step(env.action_space.sample())[0]


@pytest.mark.parametrize("copy", [True, False])
def test_a_reset_within_a_step_returns_new_images_and_keeps_the_final_ones(copy):
    env = TaskEnv(Falling(), 3, autoreset_mode=AutoresetMode.SAME_STEP, copy=copy)
    other = TaskEnv(Falling(), 3, max_episode_steps=None)
    env.reset(seed=0), other.reset(seed=0)
    env.elapsed[1] = 1  # ends one step earlier
    for _ in range(2):
        observations, _, _, truncated, infos = env.step(np.zeros(env.action_space.shape, np.float32))
        plain = other.step(np.zeros(env.action_space.shape, np.float32))[0]
    assert truncated.tolist() == [False, True, False]
    final, now = infos["final_obs"][1], env.batch.render(EYE)
    for name, rows in plain.items():
        assert (final[name] == rows[1]).all() and (observations[name][[0, 2]] == rows[[0, 2]]).all()
    assert (observations["front/depth"] == now.depth).all() and (final["front/depth"] != now.depth[1]).any()


def test_a_single_world_observes_images():
    env = SingleEnv(Falling())
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation) and observation["front/rgb"].shape == (6, 8, 3)
    assert env.observation_space.contains(env.step(env.action_space.sample())[0])
    gym.vector.SyncVectorEnv([lambda: SingleEnv(Falling())] * 2).reset(seed=0)


def test_worlds_of_several_models_observe_images():
    task = Falling((fl.Camera("eye", width=8, height=6, output=("depth", "segmentation")),))
    text = """<mujoco><worldbody><geom type="plane" size="5 5 1"/><camera name="eye" pos="0 -2 1" euler="70 0 0"/>
        <body pos="0 0 1"><freejoint/>{}</body></worldbody></mujoco>"""
    task.model = [(fl.load(text.format(n * '<geom size=".1"/>')), n) for n in (1, 2)]
    env = TaskEnv(task, 3)
    observations, _ = env.reset(seed=0)
    assert env.observation_space.contains(observations)
    observations = env.step(np.zeros(env.action_space.shape, np.float32))[0]
    assert (observations["eye/depth"] == env.batch.render("eye", width=8, height=6).depth).all()


def test_functions_of_a_batch_observe_images():
    env = BatchEnv(
        "humanoid",
        2,
        observation=lambda b: b.qpos,
        reward=lambda b, before: b.qpos[:, 2],
        cameras=fl.Camera(0, width=8, height=6),
    )
    observations, _ = env.reset(seed=0)
    assert env.observation_space.contains(observations) and list(observations) == ["state", "0/depth"]


@pytest.mark.parametrize(
    "cameras, error, message",
    [
        ("front", fl.ModelError, "cameras: got 'front', allowed are featherlane.Camera"),
        ((EYE, fl.Camera("front", width=4, height=4)), fl.ModelError, "cameras: got the images front/depth"),
        ((fl.Camera("nose", width=4, height=4),), fl.UnknownNameError, "unknown camera 'nose'"),
    ],
)
def test_wrong_cameras_are_refused(cameras, error, message):
    with pytest.raises(error, match=message):
        TaskEnv(Falling(cameras), 2)


def test_an_adapter_without_images_refuses_them():
    env = TaskEnv(Falling(), 2)
    with pytest.raises(fl.ModelError, match="env: got a task with cameras"):
        open_environment(env)
    assert open_environment(env, images=True) is env
