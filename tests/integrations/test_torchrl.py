"""The adapter to TorchRL, with the library itself."""

from __future__ import annotations

import numpy as np
import pytest

import featherlane as fl
from featherlane.environments import TaskEnv
from scenes.counting import Count, TwoSided

torch = pytest.importorskip("torch")
pytest.importorskip("torchrl")
from tensordict import TensorDict  # noqa: E402
from tensordict.nn import TensorDictModule  # noqa: E402
from torchrl.collectors import Collector  # noqa: E402
from torchrl.data import Bounded, Unbounded  # noqa: E402
from torchrl.envs import GymWrapper, RewardSum, StepCounter, TransformedEnv  # noqa: E402
from torchrl.envs.utils import check_env_specs  # noqa: E402
from torchrl.modules import NormalParamExtractor, ProbabilisticActor, TanhNormal, ValueOperator  # noqa: E402
from torchrl.objectives import ClipPPOLoss  # noqa: E402
from torchrl.objectives.value import GAE  # noqa: E402

from featherlane.environments.adapters import torchrl as adapter  # noqa: E402

N = 3


def count(ends=(2, 3, 3), **settings):
    return adapter.make(Count(ends), N, nthread=1, **settings)


def ones(td):
    return td.set("action", torch.ones(N, 1))


@pytest.mark.parametrize("name", ["HalfCheetah-v5", "Humanoid-v5"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_specs_match_the_results_of_steps(name, dtype):
    env = adapter.make(name, N, dtype=dtype, nthread=1)
    check_env_specs(env)
    assert env.batch_size == (N,) and isinstance(env.action_spec, Bounded)
    assert env.action_spec.space.high.unique() == env.env.single_action_space.high[0]
    assert env.observation_spec["observation"].dtype == torch.float32


def test_groups_of_observations_are_keys():
    env = adapter.make(TwoSided([2, 9, 9]), N, nthread=1)
    check_env_specs(env)
    data = env.rollout(4, ones, break_when_any_done=False)
    assert data["critic"][0].tolist() == [[0, 0], [1, 10], [0, 0], [1, 10]]
    assert data["next", "critic"][0, 1].tolist() == [2, 20] and data["actor"].shape == (N, 4, 1)
    assert set(env.observation_spec.keys()) == {"actor", "critic"}


def test_actions_without_bounds_have_a_spec_without():
    free = Count()
    free.action_space = lambda worlds: (np.full(1, -np.inf), np.full(1, np.inf))
    assert isinstance(adapter.make(free, N).action_spec, Unbounded)


def test_terminated_worlds_are_reset_by_a_mask_and_keep_the_final_observation():
    data = count((2, 99, 3), max_episode_steps=3).rollout(6, ones, break_when_any_done=False)
    assert data["observation"][..., 0].tolist() == [[0, 1, 0, 1, 0, 1], [0, 1, 2, 0, 1, 2], [0, 1, 2, 0, 1, 2]]
    assert data["next", "observation"][..., 0].tolist() == [[1, 2] * 3, [1, 2, 3] * 2, [1, 2, 3] * 2]
    assert data["next", "terminated"][..., 0].int().tolist() == [[0, 1] * 3, [0] * 6, [0, 0, 1] * 2]
    assert data["next", "truncated"][..., 0].int().tolist() == [[0] * 6, [0, 0, 1] * 2, [0, 0, 1] * 2]
    assert data["next", "done"][..., 0].int().tolist() == [[0, 1] * 3, [0, 0, 1] * 2, [0, 0, 1] * 2]
    assert (data["next", "reward"] == 1.0).all()


def test_a_rollout_stops_at_the_first_termination_or_runs_to_the_end():
    assert count().rollout(9, ones).shape == (N, 2)
    data = count().rollout(9, ones, break_when_any_done=False, break_when_all_done=True)
    assert data.shape == (N, 3) and data["next", "observation"][..., -1, 0].tolist() == [2, 3, 3]


def test_rollouts_equal_the_librarys_wrapper():
    env = count((2, 99, 3), max_episode_steps=3)
    theirs = GymWrapper(TaskEnv(Count([2, 99, 3]), N, max_episode_steps=3, autoreset_mode="Disabled", nthread=1))
    ours, expected = (one.rollout(7, ones, break_when_any_done=False) for one in (env, theirs))
    assert set(ours.keys(True, True)) == set(expected.keys(True, True))
    for key in ours.keys(True, True):
        torch.testing.assert_close(ours[key], expected[key], check_dtype=False, rtol=0, atol=0)


def test_a_reset_can_select_worlds():
    env = count(None)
    env.reset()
    td = env.step(ones(env.reset()))["next"]
    td["_reset"] = torch.tensor([[True], [False], [True]])
    assert env.reset(td)["observation"][:, 0].tolist() == [0, 1, 0]


def test_seeds_give_the_initial_states_of_the_environment():
    env = adapter.make("HalfCheetah-v5", N, nthread=1)
    env.set_seed(5)
    first = env.reset()["observation"]
    assert env.env.np_random_seed == (5, 6, 7) and not torch.equal(env.reset()["observation"], first)
    env.set_seed(5)
    assert torch.equal(env.reset()["observation"], first)


def test_reused_observation_buffers_are_refused():
    """A rollout stores all of its observations until it ends."""
    with pytest.raises(fl.ModelError, match="copy"):
        count(copy=False)


def test_transforms_and_collectors_can_be_applied():
    env = TransformedEnv(count(None, max_episode_steps=4), RewardSum())
    env.append_transform(StepCounter())
    collector = Collector(env, env.rand_action, frames_per_batch=8 * N, total_frames=16 * N)
    for data in collector:
        assert data.shape == (N, 8)
        ends = data["next", "done"][..., 0]
        assert ends[:, [3, 7]].all() and ends.sum() == 2 * N
        paid = data["next", "reward"].reshape(N, 2, 4).sum(-1)
        torch.testing.assert_close(data["next", "episode_reward"][..., 0][:, [3, 7]], paid)
    collector.shutdown()


@pytest.mark.parametrize("wrong", [torch.ones(N), torch.full((N, 1), torch.nan), torch.ones(N, 2)])
def test_invalid_actions_are_refused_and_no_world_steps(wrong):
    env = count()
    env.reset()
    with pytest.raises(fl.ModelError):
        env.step(TensorDict({"action": wrong}, batch_size=[N]))
    assert env.env.batch.time.tolist() == [0.0] * N
    env.close()


def learn(env, rollouts, steps=16, rate=0.01):
    """Trains PPO from TorchRL's parts; the policy's network returns its mean."""
    k, nu = env.observation_spec["observation"].shape[-1], env.action_spec.shape[-1]
    space = env.action_spec_unbatched.space
    net = torch.nn.Sequential(torch.nn.Linear(k, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2 * nu))
    module = TensorDictModule(
        torch.nn.Sequential(net, NormalParamExtractor()), in_keys=["observation"], out_keys=["loc", "scale"]
    )
    actor = ProbabilisticActor(
        module, in_keys=["loc", "scale"], spec=env.action_spec_unbatched, distribution_class=TanhNormal,
        distribution_kwargs={"low": space.low, "high": space.high}, return_log_prob=True,
    )  # fmt: skip
    critic = ValueOperator(torch.nn.Sequential(torch.nn.Linear(k, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)))
    advantage, loss = GAE(gamma=0.9, lmbda=0.95, value_network=critic), ClipPPOLoss(actor, critic)
    descent = torch.optim.Adam(loss.parameters(), rate)
    n, paid = env.batch_size[0], []
    collector = Collector(env, actor, frames_per_batch=n * steps, total_frames=n * steps * rollouts)
    for data in collector:
        paid.append(float(data["next", "reward"].mean()))
        for _ in range(4):
            advantage(data)
            terms = loss(data.reshape(-1))
            descent.zero_grad()
            sum(value for name, value in terms.items() if name.startswith("loss_")).backward()
            descent.step()
    collector.shutdown()
    return paid


def test_it_learns():
    torch.manual_seed(0)
    paid = learn(adapter.make(Count(), 16, max_episode_steps=8, nthread=1), 25)
    assert paid[0] < 0.7 < 1.5 < paid[-1]
