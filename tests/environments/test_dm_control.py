"""Tasks of dm_control's suite: options, errors, episodes.  tests/integrations compares them with dm_control."""

from __future__ import annotations

import copy
import importlib.util
import pickle
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import featherlane as fl
import featherlane.environments as environments
from featherlane.environments.dm_control import TASKS
from robots import wheels

NAMES = [task.name for task in TASKS]
pytestmark = pytest.mark.filterwarnings("ignore:.*settotalmass:UserWarning", "ignore:.*bound precision.*:UserWarning")


@pytest.fixture
def models(monkeypatch):
    """Makes models and rewards of dm_control available, from its wheel in the cache unless it is installed."""
    if importlib.util.find_spec("dm_control") is None:
        monkeypatch.setattr(sys, "path", [*sys.path, str(wheels.dm_control_suite())])


def ours(name, n, **settings):
    return gym.make_vec(f"featherlane/{name}", num_envs=n, nthread=1, **settings)


def actions(env, count, seed=0):
    space = env.single_action_space
    return np.random.default_rng(seed).uniform(space.low, space.high, (count, env.num_envs, *space.shape))


def test_worlds_are_reproducible_in_any_batch(models):
    for name in ("dm_control.hopper-hop", "dm_control.manipulator-bring_ball"):
        few, many = ours(name, 2), ours(name, 9)
        np.testing.assert_array_equal(few.reset(seed=3)[0], many.reset(seed=3)[0][:2])
        for action in actions(many, 10):
            one, other = few.step(action[:2]), many.step(action)
            np.testing.assert_array_equal(one[0], other[0][:2])
            np.testing.assert_array_equal(one[1], other[1][:2])


def test_episodes_are_truncated_and_never_terminate(models):
    env = ours("dm_control.pendulum-swingup", 3, max_episode_steps=5)
    env.reset(seed=0)
    for _ in range(5):
        *_, terminated, truncated, _ = env.step(actions(env, 1)[0])
    assert truncated.all() and not terminated.any()


def test_without_dm_control_an_error_names_the_extra(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("dm_control")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "dm_control", None)
    with pytest.raises(fl.InstallationError, match=r"featherlane\[dm-control\]"):
        environments.make_vec("dm_control.walker-walk")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore:.*A Box observation space")
def test_a_task_is_a_correct_environment(name, models):
    check_env(gym.make(f"featherlane/{name}").unwrapped, skip_render_check=True)


@pytest.mark.parametrize("name", NAMES)
def test_rewards_lie_between_0_and_1_in_float32(name, models):
    env = ours(name, 8, dtype="float32")
    env.reset(seed=0)
    for action in actions(env, 5):
        seen, rewards, *_ = env.step(action)
        assert seen.dtype == np.float32 and ((rewards >= 0.0) & (rewards <= 1.0)).all()


def test_targets_differ_by_world_and_episode(models):
    env = ours("dm_control.reacher-easy", 3, max_episode_steps=1)
    env.reset(seed=0)
    first = env.task.position.copy()
    for action in actions(env, 2):
        env.step(action)
    target = env.task.target
    assert len(np.unique(np.concatenate((first, env.task.position))[:, target], axis=0)) == 6


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_of_an_environment_continues_alone(copied, models):
    env = ours("dm_control.finger-turn_hard", 3)
    env.reset(seed=0)
    other = copied(env)
    for action in actions(env, 3):
        one, two = env.step(action), other.step(action)
        np.testing.assert_array_equal(one[0], two[0])
    env.reset()
    assert (env.task.position != other.task.position).any()
    assert np.shares_memory(other.task.position, other.batch.expanded("site_pos"))
