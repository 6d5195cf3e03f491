"""The learning example: its files, resuming, and masking of steps of resting worlds."""

import csv
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

torch = pytest.importorskip("torch")

EXAMPLE = Path(__file__).parents[2] / "examples" / "ppo.py"
SMALL = "--task Hopper-v5 --num-envs 4 --rollout 32 --minibatch 64 --epochs 2 --steps 512 --video 0".split()
MEASURED = ("seconds", "steps_per_second", "physics", "policy", "learning")  # columns that differ between runs
GAMMA, LAMBDA = 0.9, 0.8


def program(*options):
    """Runs the example as a program, without pictures of worlds, which need the machine's graphics."""
    command = [sys.executable, str(EXAMPLE), *map(str, options)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"MPLBACKEND": "Agg"}, timeout=3600
    )


def rows(folder):
    """Returns the lines of a run, without measured values."""
    with (folder / "progress.csv").open() as file:
        return [{k: v for k, v in row.items() if k not in MEASURED} for row in csv.DictReader(file)]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Returns a folder of a run of a few hundred steps."""
    folder = tmp_path_factory.mktemp("run")
    done = program(*SMALL, "--out", folder)
    assert done.returncode == 0, done.stderr
    assert "512 steps" in done.stdout and "learning" in done.stdout
    return folder


@pytest.fixture(scope="module")
def ppo():
    spec = importlib.util.spec_from_file_location("ppo", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_run_reports_returns_and_times(run):
    assert [int(row["steps"]) for row in rows(run)] == [128, 256, 384, 512]
    with (run / "progress.csv").open() as file:
        last = list(csv.DictReader(file))[-1]
    assert sum(float(last[name]) for name in ("physics", "policy", "learning")) == pytest.approx(1.0)
    assert float(last["return"]) > 0 and float(last["length"]) >= 1
    assert np.isfinite([float(value) for value in last.values()]).all()


def test_a_run_plots_its_learning_curve(run):
    pytest.importorskip("matplotlib")
    assert (run / "curve.png").stat().st_size > 1000


def test_a_resumed_training_run_is_bitwise_equal(run, tmp_path):
    for command in ([*SMALL, "--out", tmp_path, "--stop-at", 256], ["--resume", tmp_path]):
        done = program(*command)
        assert done.returncode == 0, done.stderr
    assert rows(tmp_path) == rows(run)
    one, other = (torch.load(folder / "checkpoint.pt", weights_only=False) for folder in (run, tmp_path))
    for name, weights in one["modules"]["agent"].items():
        assert torch.equal(weights, other["modules"]["agent"][name]), name
    assert np.array_equal(one["observations"], other["observations"])


def test_records_after_the_checkpoint_are_recomputed(run, tmp_path):
    for name in ("checkpoint.pt", "progress.csv"):
        (tmp_path / name).write_bytes((run / name).read_bytes())
    with (tmp_path / "progress.csv").open("a") as file:
        file.write("640" + ",0" * 11 + "\n")
    assert program("--resume", tmp_path).returncode == 0
    assert rows(tmp_path) == rows(run)


def test_resume_refuses_other_settings(run):
    done = program("--resume", run, "--seed", 2)
    assert done.returncode == 2 and "--resume takes --steps, --stop-at, --video" in done.stderr


@pytest.mark.parametrize("options", ["{", "3"])
def test_invalid_options_are_refused(ppo, options):
    with pytest.raises(SystemExit, match="JSON"):
        ppo.Run(ppo.Settings(options=options))


def test_a_missing_policy_is_refused(ppo, tmp_path, monkeypatch):
    monkeypatch.setattr(ppo, "environments", lambda settings: Counting())
    with pytest.raises(SystemExit, match="folder"):
        ppo.Run(ppo.Settings(num_envs=2, policy=str(tmp_path)))


def test_the_script_runs_on_gymnasiums_environments(tmp_path):
    done = program(*SMALL, "--out", tmp_path, "--env", "gymnasium", "--stop-at", 256)
    assert done.returncode == 0, done.stderr
    assert [int(row["steps"]) for row in rows(tmp_path)] == [128, 256]


class Counting(gym.vector.VectorEnv):
    """Counts steps as the observation; the first world terminates at three, the second is truncated at five."""

    metadata = {"autoreset_mode": gym.vector.AutoresetMode.NEXT_STEP}  # noqa: RUF012
    single_observation_space = gym.spaces.Box(-np.inf, np.inf, (1,))
    single_action_space = gym.spaces.Box(-1, 1, (1,))
    num_envs = 2

    def reset(self, *, seed=None, options=None):
        self.age, self.over = np.zeros(2), np.zeros(2, bool)
        return self.age[:, None].copy(), {}

    def step(self, actions):
        self.age = np.where(self.over, 0.0, self.age + 1)
        paid = np.where(self.over, 0.0, 1.0 + self.age**2)
        ends, cuts = self.age == (3, -1), self.age == (-1, 5)
        self.over = ends | cuts
        return self.age[:, None].copy(), paid, ends, cuts, {}


def advantages(values, rewards, after):
    """Returns those of one episode, by definition: discounted sums of the critic's errors; `after`: its end's value."""
    worth = [*values, after]
    errors = [r + GAMMA * worth[t + 1] - worth[t] for t, r in enumerate(rewards)]
    return [sum((GAMMA * LAMBDA) ** (j - t) * errors[j] for j in range(t, len(errors))) for t in range(len(errors))]


def test_steps_of_waiting_worlds_are_ignored_in_training(ppo, monkeypatch):
    """An episode's advantages depend on it only; a terminal state's value is 0, a truncated one's is the critic's."""
    monkeypatch.setattr(ppo, "environments", lambda settings: Counting())
    run = ppo.Run(ppo.Settings(num_envs=2, rollout=12, gamma=GAMMA, gae_lambda=LAMBDA))
    monkeypatch.setattr(run, "normalised", lambda seen: torch.from_numpy(seen.astype(np.float32)))
    monkeypatch.setattr(run, "scaled", lambda paid, ends: paid)
    seen, _, _, found, targets, values = run.collect()
    worth = lambda age: run.agent.critic(torch.tensor([[float(age)]])).item()  # noqa: E731
    want = {}
    for world, length, whole in ((0, 3, 0.0), (1, 5, worth(5))):
        ages = range(length)
        paid = [1.0 + (age + 1) ** 2 for age in ages]
        want[world] = dict(zip(ages, advantages([worth(age) for age in ages], paid, whole), strict=True))
    # four steps and one of rest make the first world's episode, six the second's
    assert len(seen) == 2 * 12 - 3 - 2
    order = [(world, t % length) for t in range(12) for world, length in ((0, 4), (1, 6)) if t % length < length - 1]
    assert [int(age) for age in seen[:, 0]] == [age for _, age in order]
    assert found.tolist() == pytest.approx([want[world][age] for world, age in order], rel=1e-5)
    assert torch.allclose(targets, found + values)
    assert {int(length) for _, length in run.ended} == {3, 5}


def losses(ppo, run, seen, actions, log_probs, advantages, targets, values):
    """Returns the loss of a minibatch as the papers define it, for autograd."""
    s, agent, linear = run.settings, run.agent, torch.nn.functional.linear

    def output(network, x):
        for layer in network.linear[:-1]:
            x = torch.tanh(linear(x, layer.weight, layer.bias))
        return linear(x, network.linear[-1].weight, network.linear[-1].bias)

    normal = torch.distributions.Normal(output(agent.actor, seen), agent.log_std.exp())
    log_ratio = normal.log_prob(actions).sum(-1) - log_probs
    better = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    ratio = log_ratio.exp()
    policy = -torch.min(better * ratio, better * ratio.clamp(1 - s.clip, 1 + s.clip)).mean()
    value = output(agent.critic, seen).squeeze(-1)
    near = values + (value - values).clamp(-s.clip, s.clip)
    lost = 0.5 * torch.max((value - targets) ** 2, (near - targets) ** 2).mean()
    entropy = normal.entropy().sum(-1).mean()
    divergence = (ratio - 1 - log_ratio).mean()
    return policy - s.entropy * entropy + s.value * lost, torch.stack([policy, lost, entropy, divergence])


@pytest.mark.parametrize("apart", [0.02, 1.0], ids=["near the old policy", "clipped"])
def test_gradients_equal_autograd(ppo, monkeypatch, apart):
    """Compares explicit gradients with autograd, for a policy and a critic after small and large changes."""
    monkeypatch.setattr(ppo, "environments", lambda settings: Counting())
    run = ppo.Run(ppo.Settings(entropy=0.01, hidden=16, num_envs=2))
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        run.parameters += 0.3 * torch.randn(len(run.parameters), generator=draw)
        seen, other = torch.randn(500, 1, generator=draw), torch.randn(2, 500, generator=draw)
        mean, value = run.agent.actor(seen), run.agent.critic(seen).squeeze(-1)
        actions = mean + run.agent.log_std.exp() * torch.randn(500, 1, generator=draw)
        old = run.agent.log_prob(mean, actions) + apart * torch.randn(500, generator=draw)
        part = seen, actions, old, other[0], value + other[1], value + apart * torch.randn(500, generator=draw)
    loss, told = losses(ppo, run, *part)
    want = torch.cat([slope.reshape(-1) for slope in torch.autograd.grad(loss, list(run.agent.parameters()))])
    assert torch.allclose(run.gradient(*part), told, rtol=1e-4, atol=1e-5)
    assert want.norm() > 0.01
    assert torch.allclose(run.parameters.grad, want, rtol=1e-4, atol=1e-5 * want.norm().item())


@pytest.mark.parametrize("compiled", [0, 1])
def test_actions_of_a_rollout_are_those_of_the_policy(ppo, compiled):
    run = ppo.Run(ppo.Settings(task="InvertedPendulum-v5", num_envs=6, rollout=24, compiled=compiled))
    assert run.compiled == bool(compiled)
    for _ in range(2):
        seen, actions, log_probs, *_ = run.collect()
        found = run.agent.log_prob(run.agent.actor(seen), actions)
        assert torch.allclose(found, log_probs, rtol=0, atol=1e-4) and log_probs.std() > 0.1
    assert np.array_equal(run.observations, np.hstack([run.env.batch.qpos, run.env.batch.qvel]))


def test_the_learning_rate_follows_the_kl_divergence(ppo, monkeypatch):
    """Below half of the target the rate increases, above twice the target it decreases; in between it stays."""
    monkeypatch.setattr(ppo, "environments", lambda settings: Counting())
    run = ppo.Run(ppo.Settings(num_envs=2, kl=0.01, learning_rate=1e-3))
    rate = lambda: run.optimizer.param_groups[0]["lr"]  # noqa: E731
    for divergence, after in ((0.01, 1e-3), (0.021, 1e-3 / 1.5), (0.004, 1e-3), (0.0, 1.5e-3)):
        run.follow(divergence)
        assert rate() == pytest.approx(after)


def test_a_run_starts_from_a_policy_with_fewer_observations(ppo, tmp_path):
    """Additional observations have zero weight: both policies act the same."""
    flat, rough = ("Quadruped-v0", "QuadrupedRough-v0")
    settings = {"num_envs": 4, "rollout": 8, "minibatch": 16, "options": '{"dtype": "float32", "nthread": 1}'}
    first = ppo.Run(ppo.Settings(task=flat, **settings))
    first.learn(*first.collect())
    first.save(tmp_path / "checkpoint.pt")
    run = ppo.Run(ppo.Settings(task=rough, policy=str(tmp_path), **settings))
    assert run.env.batch.dtype == np.float32
    less, more = first.sizes[0], run.sizes[0]
    assert less < more
    seen = np.random.default_rng(0).normal(size=(5, more))
    assert torch.allclose(run.agent.actor(run.normalised(seen)), first.agent.actor(first.normalised(seen[:, :less])))
    assert run.learn(*run.collect())
    with pytest.raises(SystemExit, match=r"allowed is \(8, 63\)"):
        ppo.Run(ppo.Settings(task=rough, hidden=8, policy=str(tmp_path), **settings))
