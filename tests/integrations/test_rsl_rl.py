"""The adapter to rsl_rl, with the library itself."""

from __future__ import annotations

import numpy as np
import pytest

import featherlane as fl
from featherlane.environments import TaskEnv
from scenes.counting import Count, TwoSided

torch = pytest.importorskip("torch")
pytest.importorskip("rsl_rl")
from rsl_rl.env import VecEnv  # noqa: E402
from rsl_rl.runners import OnPolicyRunner  # noqa: E402

from featherlane.environments.adapters import rsl_rl as adapter  # noqa: E402

N = 3
ONES = torch.ones(N, 1)


def count(ends=(2, 3, 3), **settings):
    return adapter.make(Count(ends), N, nthread=1, **settings)


def test_it_has_the_interface_of_the_library():
    env = adapter.make("HalfCheetah-v5", N, seed=7, nthread=1)
    assert isinstance(env, VecEnv) and (env.num_envs, env.num_actions, env.max_episode_length) == (N, 6, 1000)
    assert env.device == torch.device("cpu") and env.cfg["task"] == "HalfCheetah"
    assert env.env.np_random_seed == (7, 8, 9)
    seen = env.get_observations()
    assert seen.batch_size == (N,) and seen["policy"].shape == (N, 17) and seen["policy"].dtype == torch.float32
    assert count().max_episode_length > 2**62


def test_termination_resets_the_world_and_reports_time_limits():
    env = count((2, 99, 3), max_episode_steps=3)
    for expected, ended, clock in (
        ([1, 1, 1], [False] * 3, [False] * 3),
        ([0, 2, 2], [True, False, False], [False] * 3),
        ([1, 0, 0], [False, True, True], [False, True, False]),
    ):
        seen, rewards, dones, extras = env.step(ONES)
        assert seen["policy"][:, 0].tolist() == expected and seen["policy"] is env.get_observations()["policy"]
        assert rewards.tolist() == [1, 1, 1] and rewards.dtype == torch.float32
        assert dones.tolist() == ended and extras["time_outs"].tolist() == clock
        assert extras["log"] == {"Reward/pay": 2.0, "Reward/tax": -1.0}
        assert env.episode_length_buf.tolist() == expected


def test_initial_episode_lengths_can_be_set():
    env = count(None, max_episode_steps=4)
    assert env.episode_length_buf.data_ptr() == env.env.elapsed.ctypes.data
    lengths = env.episode_length_buf
    env.episode_length_buf = torch.tensor([0, 3, 2])
    assert lengths.tolist() == [0, 3, 2], "it is the same memory still"
    assert env.step(ONES)[2].tolist() == [False, True, False]
    assert env.step(ONES)[2].tolist() == [False, False, True]


def test_float32_observations_are_the_buffers():
    env = count(dtype="float32")
    seen = [env.get_observations()["policy"]] + [env.step(ONES)[0]["policy"] for _ in range(5)]
    buffers = [env.env.reset()[0].ctypes.data, env.env.step(np.ones((N, 1)))[0].ctypes.data]
    addresses = [one.data_ptr() for one in seen]
    assert sorted(set(addresses)) == sorted(buffers) and all(np.diff(addresses) != 0)


@pytest.mark.parametrize("wrong", [torch.ones(N), torch.ones(N + 1, 1), torch.full((N, 1), torch.nan)])
def test_invalid_actions_are_refused_and_no_world_steps(wrong):
    env = count()
    with pytest.raises(fl.ModelError):
        env.step(wrong)
    assert env.env.batch.time.tolist() == [0.0] * N
    env.close()


def settings(steps, rate=0.01, groups=("policy", "policy")):
    net = {"class_name": "MLPModel", "hidden_dims": [32, 32], "activation": "elu"}
    normal = {"class_name": "GaussianDistribution", "init_std": 1.0}
    return {
        "num_steps_per_env": steps,
        "save_interval": 1000,
        "obs_groups": {"actor": [groups[0]], "critic": [groups[1]]},
        "actor": {**net, "obs_normalization": True, "distribution_cfg": normal},
        "critic": {**net, "obs_normalization": True},
        "algorithm": {
            "class_name": "PPO", "learning_rate": rate, "num_learning_epochs": 4, "num_mini_batches": 4, "gamma": 0.9,
            "schedule": "fixed", "entropy_coef": 0.0,
        },
    }  # fmt: skip


def pay(env, policy, steps=16):
    """Returns the mean reward of a policy without noise."""
    with torch.inference_mode():
        return float(np.mean([env.step(policy(env.get_observations()))[1].mean() for _ in range(steps)]))


def test_it_learns(tmp_path):
    torch.manual_seed(0)
    env = adapter.TaskVecEnv(
        TaskEnv(Count(), 16, max_episode_steps=8, autoreset_mode="SameStep", nthread=1, copy=False), seed=0
    )
    runner = OnPolicyRunner(env, settings(16), log_dir=str(tmp_path))
    before = pay(env, runner.get_inference_policy())
    runner.learn(15, init_at_random_ep_len=True)
    assert before < 0.5 < 1.5 < pay(env, runner.get_inference_policy())
    assert list(tmp_path.glob("model_*.pt")) and list(tmp_path.glob("events*"))


def test_groups_of_observations_are_those_of_the_library(tmp_path):
    """The critic has privileged observations: its network has two inputs, and the actor's has one."""
    torch.manual_seed(0)
    env = adapter.make(TwoSided(), 16, seed=0, max_episode_steps=8, nthread=1)
    seen = env.step(torch.ones(16, 1))[0]
    assert sorted(seen.keys()) == ["actor", "critic"] and seen["critic"].tolist() == [[1.0, 10.0]] * 16
    runner = OnPolicyRunner(env, settings(16, groups=("actor", "critic")), log_dir=str(tmp_path))
    runner.learn(15)
    assert pay(env, runner.get_inference_policy()) > 1.5
    inputs = [next(net.parameters()).shape[1] for net in (runner.alg.actor.mlp, runner.alg.critic.mlp)]
    assert inputs == [1, 2]


@pytest.mark.slow
def test_a_cheetah_learns_to_run():
    torch.manual_seed(0)
    env = adapter.make("HalfCheetah-v5", 256, seed=0, dtype="float32")
    runner = OnPolicyRunner(env, settings(24, 1e-3))
    before = pay(env, runner.get_inference_policy(), 200)
    runner.learn(100, init_at_random_ep_len=True)
    assert before < 0.3 < 1.0 < pay(env, runner.get_inference_policy(), 200)
