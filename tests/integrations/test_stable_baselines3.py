"""The adapter to Stable-Baselines3, with the library itself."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import featherlane as fl
from scenes.counting import Count, TwoSided

sb3 = pytest.importorskip("stable_baselines3")
from stable_baselines3.common.evaluation import evaluate_policy  # noqa: E402
from stable_baselines3.common.monitor import Monitor  # noqa: E402
from stable_baselines3.common.policies import MultiInputActorCriticPolicy  # noqa: E402
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecFrameStack, VecMonitor, VecNormalize  # noqa: E402
from torch import nn  # noqa: E402

from featherlane.environments.adapters import stable_baselines3 as adapter  # noqa: E402

N, LIMIT = 3, 7


def count(ends=(2, 3, 3), **settings):
    return adapter.make(Count(ends), N, nthread=1, **settings)


@pytest.mark.parametrize("name", ["Hopper-v5", "InvertedPendulum-v5"])
def test_steps_equal_the_librarys_vector(name):
    """Results equal single worlds to the bit, including infos with last observations and truncations."""
    env = adapter.make(name, N, max_episode_steps=LIMIT, info=True, nthread=1)
    theirs = DummyVecEnv([lambda: gym.make(f"featherlane/{name}", max_episode_steps=LIMIT)] * N)
    assert isinstance(env, VecEnv) and env.num_envs == theirs.num_envs
    assert env.observation_space == theirs.observation_space and env.action_space == theirs.action_space
    assert env.seed(4) == theirs.seed(4)
    np.testing.assert_array_equal(env.reset(), theirs.reset())
    assert env.reset_infos == theirs.reset_infos
    rng = np.random.default_rng(0)
    for _ in range(3 * LIMIT):
        actions = rng.uniform(-1, 1, (N, *env.action_space.shape)).astype(np.float32)
        (*results, infos), (*expected, told) = env.step(actions), theirs.step(actions)
        for ours, other in zip(results, expected, strict=True):
            np.testing.assert_array_equal(ours, other)
            assert ours.dtype == other.dtype
        assert env.reset_infos == theirs.reset_infos
        for ours, other in zip(infos, told, strict=True):
            np.testing.assert_equal({"TimeLimit.truncated": False, **ours}, other)


def test_termination_reports_the_final_observation_and_time_limits():
    env = count((2, 99, 3), max_episode_steps=3)
    assert env.reset().tolist() == [[0]] * N
    ones = np.ones((N, 1), np.float32)
    assert env.step(ones)[3] == [{}, {}, {}]
    seen, rewards, ends, infos = env.step(ones)
    assert seen.tolist() == [[0], [2], [2]] and ends.tolist() == [True, False, False] and rewards.dtype == np.float32
    assert infos == [{"terminal_observation": np.array([2.0]), "TimeLimit.truncated": False}, {}, {}]
    seen, _, ends, infos = env.step(ones)
    assert seen.tolist() == [[1], [0], [0]] and ends.tolist() == [False, True, True]
    assert [info.get("TimeLimit.truncated") for info in infos] == [None, True, False]


def test_final_infos_and_reset_infos_are_separate():
    env = count(info=True)
    env.reset()
    assert env.reset_infos == [{"count": 0.0}] * N
    for counts in ([1, 1, 1], [2, 2, 2], [1, 3, 3]):
        infos = env.step(np.ones((N, 1), np.float32))[3]
        assert [info["count"] for info in infos] == counts
    assert env.reset_infos == [{"count": 0.0}] * N


def test_a_non_finite_world_is_reported():
    env = count()
    env.reset()
    with pytest.warns(fl.NonFiniteWarning):
        env.env.batch.qpos[1] = np.nan
        _, rewards, ends, infos = env.step(np.ones((N, 1), np.float32))
    assert ends.tolist() == [False, True, False] and rewards[1] == 0.0 and infos[1]["bad_world"]
    assert not infos[1]["TimeLimit.truncated"] and infos[0] == {}


def test_attributes_and_methods_apply_to_all_worlds():
    env = adapter.make("Hopper-v5", N, nthread=1)
    assert env.get_attr("frame_skip") == [4] * N and env.get_attr("frame_skip", 1) == [4]
    assert env.get_attr("ctrl_cost_weight", [0, 2]) == [1e-3] * 2, "the task's"
    assert env.get_attr("info") == [False] * N, "the environment's, not the task's method"
    env.set_attr("ctrl_cost_weight", 0.5)
    assert env.env.task.ctrl_cost_weight == 0.5 and not hasattr(env.env, "ctrl_cost_weight")
    assert env.env_method("render") == [None] * N
    assert env.has_attr("batch") and not env.has_attr("no_such_thing")
    for call in (lambda: env.set_attr("weight", 1), lambda: env.env_method("fly")):
        with pytest.raises(AttributeError, match=r"neither TaskEnv nor Hopper has the attribute '"):
            call()
    for call in (lambda: env.set_attr("frame_skip", 1, [0]), lambda: env.env_method("close", indices=2)):
        with pytest.raises(fl.ModelError):
            call()
    assert env.env_is_wrapped(Monitor) == [False] * N and env.env_is_wrapped(Monitor, [1]) == [False]


def test_without_a_render_mode_nothing_is_rendered():
    env = count()
    assert env.render_mode is None and env.get_images() == [None] * N
    env.close()


def test_a_seed_applies_to_the_next_reset_only():
    env = adapter.make("Hopper-v5", N, nthread=1)
    env.seed(3)
    first, second = env.reset(), env.reset()
    env.seed(3)
    np.testing.assert_array_equal(env.reset(), first)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("wrong", [np.ones(N), np.ones((N + 1, 1)), np.full((N, 1), np.nan), None])
def test_invalid_actions_are_refused_and_no_world_steps(wrong):
    env = count()
    env.reset()
    with pytest.raises(fl.ModelError):
        env.step(wrong)
    assert env.env.batch.time.tolist() == [0.0] * N


def test_wrappers_of_the_library_can_be_applied():
    env = VecFrameStack(VecNormalize(VecMonitor(count())), 2)
    env.reset()
    for _ in range(3):
        seen, _, _, infos = env.step(np.ones((N, 1), np.float32))
    assert seen.shape == (N, 2) and infos[1]["episode"]["l"] == 3 and infos[1]["episode"]["r"] == 3


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("algorithm", ["PPO", pytest.param("SAC", marks=pytest.mark.slow)])
def test_it_learns(algorithm, copy):
    """The reward of a push is the action: random actions average 0, the maximum is 4 x 8."""
    env = VecMonitor(adapter.make(Count(), 16, max_episode_steps=8, copy=copy, nthread=1))
    settings = {"n_steps": 16, "batch_size": 64, "learning_rate": 0.01} if algorithm == "PPO" else {
        "learning_starts": 64, "learning_rate": 0.01, "gradient_steps": 2
    }  # fmt: skip
    agent = getattr(sb3, algorithm)("MlpPolicy", env, device="cpu", seed=0, gamma=0.5, **settings)
    before, _ = evaluate_policy(agent, env, 16)
    agent.learn(4096 if algorithm == "PPO" else 2048)
    after, _ = evaluate_policy(agent, env, 16)
    assert before < 10 < 20 < after


class Groups(BaseFeaturesExtractor):
    """Passes the groups on."""

    def __init__(self, space):
        super().__init__(space, 1)

    def forward(self, groups):
        return groups


class ActorAndCritic(nn.Module):
    """Networks of the groups "actor" and "critic"."""

    latent_dim_pi = latent_dim_vf = 64

    def __init__(self, space):
        super().__init__()
        network = lambda group: nn.Sequential(nn.Linear(space[group].shape[0], 64), nn.Tanh())  # noqa: E731
        self.actor, self.critic = network("actor"), network("critic")

    def forward_actor(self, groups):
        return self.actor(groups["actor"])

    def forward_critic(self, groups):
        return self.critic(groups["critic"])

    def forward(self, groups):
        return self.forward_actor(groups), self.forward_critic(groups)


class Asymmetric(MultiInputActorCriticPolicy):
    """A policy whose critic has privileged observations, which the actor does not have."""

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **{**settings, "features_extractor_class": Groups})

    def _build_mlp_extractor(self):
        self.mlp_extractor = ActorAndCritic(self.observation_space)


@pytest.mark.parametrize("policy", ["MultiInputPolicy", Asymmetric])
def test_groups_of_observations_are_a_dict(policy):
    env = VecMonitor(adapter.make(TwoSided(), 16, max_episode_steps=8, nthread=1))
    agent = sb3.PPO(policy, env, n_steps=16, batch_size=64, learning_rate=0.01, device="cpu", seed=0, gamma=0.5)
    agent.learn(4096)
    assert evaluate_policy(agent, env, 16)[0] > 20
    env.reset()
    for _ in range(8):
        seen, _, _, infos = env.step(np.ones((16, 1), np.float32))
    assert seen["critic"].tolist() == [[0, 0]] * 16 and infos[3]["terminal_observation"]["critic"].tolist() == [8, 80]


@pytest.mark.slow
def test_it_learns_to_balance_a_pole():
    """InvertedPendulum-v5 is solved at 950 of 1000 steps."""
    env = VecMonitor(adapter.make("InvertedPendulum-v5", 32))
    agent = sb3.PPO("MlpPolicy", env, n_steps=64, batch_size=256, learning_rate=1e-3, device="cpu", seed=1)
    before, _ = evaluate_policy(agent, env, 32)
    agent.learn(200_000)
    after, _ = evaluate_policy(agent, env, 32)
    assert before < 100 < 800 < after
