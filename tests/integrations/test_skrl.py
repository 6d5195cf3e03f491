"""The adapter to skrl, with the library itself."""

from __future__ import annotations

import numpy as np
import pytest

import featherlane as fl
from featherlane.environments import TaskEnv
from scenes.counting import Count, TwoSided

torch = pytest.importorskip("torch")
skrl = pytest.importorskip("skrl")
from skrl.agents.torch.ppo import PPO, PPO_CFG  # noqa: E402
from skrl.envs.wrappers.torch import Wrapper, wrap_env  # noqa: E402
from skrl.memories.torch import RandomMemory  # noqa: E402
from skrl.models.torch import DeterministicMixin, GaussianMixin, Model  # noqa: E402
from skrl.trainers.torch import SequentialTrainer, SequentialTrainerCfg  # noqa: E402
from skrl.utils import set_seed  # noqa: E402

from featherlane.environments.adapters import skrl as adapter  # noqa: E402

N = 3
ONES = torch.ones(N, 1)


def count(ends=(2, 3, 3), **settings):
    return adapter.make(Count(ends), N, nthread=1, **settings)


def test_it_has_the_interface_of_the_library():
    env = adapter.make("HalfCheetah-v5", N, nthread=1)
    assert isinstance(env, Wrapper) and (env.num_envs, env.num_agents) == (N, 1)
    assert env.observation_space == env.env.single_observation_space
    assert env.action_space == env.env.single_action_space and env.state_space is None and env.state() is None
    assert env.device == torch.device("cpu") and env.batch is env.env.batch and env.render() is None


@pytest.mark.parametrize("mode", ["SameStep", "NextStep"])
def test_steps_equal_the_librarys_wrapper(mode):
    set_seed(3)
    env, theirs = (
        wrap(TaskEnv(Count([2, 99, 3]), N, max_episode_steps=3, autoreset_mode=mode, nthread=1, copy=True))
        for wrap in (adapter.TaskWrapper, lambda env: wrap_env(env, "gymnasium", verbose=False))
    )
    assert torch.equal(env.reset()[0], theirs.reset()[0].cpu()) and env.env.np_random_seed == (3, 4, 5)
    for _ in range(7):
        for ours, other in zip(env.step(ONES)[:4], theirs.step(ONES)[:4], strict=True):
            assert torch.equal(ours, other.cpu()) and ours.dtype == other.dtype
    assert torch.equal(env.reset()[0], theirs.reset()[0].cpu()), "a later reset starts nothing"


def test_terms_of_the_reward_are_reported_for_the_log():
    env = count(info=True)
    infos = env.reset()[1]
    assert infos["count"].tolist() == [0, 0, 0]
    infos = env.step(ONES)[4]
    assert infos["count"].tolist() == [1, 1, 1]
    assert {name: value.item() for name, value in infos["episode"].items()} == {"Reward / pay": 2, "Reward / tax": -1}


def test_float32_observations_are_the_buffers():
    env = count(dtype="float32")
    addresses = [env.reset()[0].data_ptr()] + [env.step(ONES)[0].data_ptr() for _ in range(5)]
    theirs = {env.env.reset()[0].ctypes.data, env.env.step(np.ones((N, 1)))[0].ctypes.data}
    assert set(addresses) == theirs and all(np.diff(addresses) != 0)


@pytest.mark.parametrize("wrong", [torch.ones(N), torch.ones(N + 1, 1), torch.full((N, 1), torch.nan)])
def test_invalid_actions_are_refused_and_no_world_steps(wrong):
    env = count()
    env.reset()
    with pytest.raises(fl.ModelError):
        env.step(wrong)
    assert env.env.batch.time.tolist() == [0.0] * N
    env.close()


class Net(Model):
    """Defines a small network."""

    def __init__(self, env, outputs, inputs=None):
        Model.__init__(
            self, observation_space=env.observation_space, state_space=env.state_space, action_space=env.action_space,
            device=env.device,
        )  # fmt: skip
        inputs = self.num_observations if inputs is None else inputs
        self.net = torch.nn.Sequential(torch.nn.Linear(inputs, 32), torch.nn.ELU(), torch.nn.Linear(32, outputs))


class Policy(GaussianMixin, Net):
    def __init__(self, env):
        Net.__init__(self, env, env.action_space.shape[0])
        GaussianMixin.__init__(self, clip_actions=False)
        self.log_std = torch.nn.Parameter(torch.zeros(self.num_actions))

    def compute(self, inputs, role=""):
        return self.net(inputs["observations"]), {"log_std": self.log_std}


class Value(DeterministicMixin, Net):
    """A critic of the state, if the environment has one."""

    def __init__(self, env):
        self.source = "observations" if env.state_space is None else "states"
        Net.__init__(self, env, 1, (env.state_space or env.observation_space).shape[0])
        DeterministicMixin.__init__(self)

    def compute(self, inputs, role=""):
        return self.net(inputs[self.source]), {}


def learn(env, steps, rollouts=16, rate=0.01):
    """Returns PPO's policy, before and after."""
    models = {"policy": Policy(env), "value": Value(env)}
    memory = RandomMemory(memory_size=rollouts, num_envs=env.num_envs, device=env.device)
    cfg = PPO_CFG(rollouts=rollouts, learning_epochs=4, mini_batches=4, learning_rate=rate, discount_factor=0.9)
    cfg.experiment.write_interval = cfg.experiment.checkpoint_interval = 0
    agent = PPO(
        models=models, memory=memory, cfg=cfg, observation_space=env.observation_space, state_space=env.state_space,
        action_space=env.action_space, device=env.device,
    )  # fmt: skip
    trainer = SequentialTrainer(
        env=env, agents=agent,
        cfg=SequentialTrainerCfg(timesteps=steps, headless=True, disable_progressbar=True,
                                 close_environment_at_exit=False),
    )  # fmt: skip
    before = pay(env, models["policy"])
    trainer.train()
    return before, pay(env, models["policy"])


def pay(env, policy, steps=16):
    """Returns the mean reward of a policy without noise."""
    seen, _ = env.reset()
    paid = []
    for _ in range(steps):
        with torch.no_grad():
            seen, rewards, *_ = env.step(policy.compute({"observations": seen})[0])
        paid.append(float(rewards.mean()))
    return np.mean(paid)


def test_it_learns():
    set_seed(0)
    before, after = learn(adapter.make(Count(), 16, max_episode_steps=8, nthread=1), 240)
    assert before < 0.5 < 1.5 < after


def test_the_group_critic_is_the_state():
    set_seed(0)
    env = adapter.make(TwoSided(), 16, max_episode_steps=8, nthread=1)
    assert env.observation_space.shape == (1,) and env.state_space.shape == (2,)
    seen, _ = env.reset()
    assert seen.shape == (16, 1) and seen.std() > 0.1 and env.state().tolist() == [[0.0, 0.0]] * 16
    assert env.step(torch.ones(16, 1))[0].shape == (16, 1) and env.state().tolist() == [[1.0, 10.0]] * 16
    assert learn(env, 240)[1] > 1.5


def test_other_groups_are_observed_in_the_order_of_the_library():
    task = TwoSided()
    task.observation = lambda worlds: {
        "wide": {"a": worlds.time[:, None] + np.arange(2)}, "bare": {"b": worlds.time[:, None] + 7}
    }  # fmt: skip
    task.observation_noise = lambda worlds, ids, random: {}
    env = adapter.make(task, N, nthread=1)
    assert list(env.observation_space) == ["bare", "wide"] and env.state_space is None and env.state() is None
    assert env.reset()[0].tolist() == [[7.0, 0.0, 1.0]] * N


@pytest.mark.slow
def test_a_pole_learns_to_stand():
    """InvertedPendulum-v5 rewards each step with 1: the reward grows with the time that it stands."""
    set_seed(0)
    env = adapter.make("InvertedPendulum-v5", 64)
    learn(env, 64 * 40, 64, 3e-3)
    assert np.mean(env.env.elapsed) > 50
