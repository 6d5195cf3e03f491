"""Environments in runners of RLlib, in this process and in separate ones."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

from featherlane.environments import TaskEnv
from scenes.counting import Count

pytest.importorskip("ray.rllib", exc_type=ImportError)  # Ray may be installed without it
pytest.importorskip("torch")
import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.tune import register_env

N = 4
REGISTERED = "featherlane.environments:featherlane/InvertedPendulum-v5"
pytestmark = pytest.mark.filterwarnings("ignore")


def config(env, n=N, runners=0, **env_config):
    return (
        PPOConfig()
        .environment(env, env_config=env_config)
        .env_runners(gym_env_vectorize_mode="vector_entry_point", num_envs_per_env_runner=n, num_env_runners=runners)
        .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[32]))
        .debugging(seed=0)
    )


@pytest.fixture(scope="module")
def cluster():
    path = {"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}}  # runners import the tasks of the tests through it
    ray.shutdown()  # a separate runner joins any cluster that it finds
    quiet = {"include_dashboard": False, "configure_logging": False, "log_to_driver": False}
    ray.init("local", num_cpus=2, **quiet, runtime_env=path)
    yield
    ray.shutdown()


def test_a_runner_splits_episodes_at_termination():
    """Each has its world's length, the last observation, and no step between an end and the next reset."""
    register_env("count", lambda settings: TaskEnv(Count([2, 99, 3, 4]), max_episode_steps=3, nthread=1, **settings))
    runner = SingleAgentEnvRunner(config=config("count"))
    episodes = runner.sample(num_timesteps=40, random_actions=True)
    done = [episode for episode in episodes if episode.is_done]
    assert {len(episode) for episode in done} == {2, 3}
    for episode in done:
        assert np.asarray(episode.get_observations())[:, 0].tolist() == list(range(len(episode) + 1))
        np.testing.assert_allclose(episode.get_rewards(), np.asarray(episode.get_actions())[:, 0], rtol=1e-6)
        assert episode.is_terminated != episode.is_truncated or len(episode) == 3
    runner.stop()


@pytest.mark.slow
@pytest.mark.parametrize("runners", [0, 1])
def test_it_learns(cluster, runners):
    register_env("paid", lambda settings: TaskEnv(Count(), max_episode_steps=8, nthread=1, **settings))
    algorithm = (
        config("paid", 16, runners)
        .training(train_batch_size=512, minibatch_size=128, num_epochs=4, lr=0.01, gamma=0.9)
        .build_algo()
    )
    returns = [algorithm.train()["env_runners"]["episode_return_mean"] for _ in range(12)]
    algorithm.stop()
    assert returns[0] < 4 < 12 < returns[-1]


@pytest.mark.slow
def test_a_registered_task_is_found_by_name(cluster):
    algorithm = config(REGISTERED, 8, 1, nthread=1).training(train_batch_size=512, num_epochs=2).build_algo()
    told = algorithm.train()["env_runners"]
    algorithm.stop()
    assert 1 <= told["episode_len_mean"] <= 1000 and told["episode_return_mean"] > 0
