"""Trains any registered task by proximal policy optimization (PPO), and prints how the time is spent.

    pip install 'featherlane[gym,torch,plot,view]'
    python examples/ppo.py --task HalfCheetah-v5
    python examples/ppo.py --task HalfCheetah-v5 --env gymnasium     # the same on Gymnasium's own environments
    python examples/ppo.py --resume runs/HalfCheetah-v5              # resume a stopped run

A run writes progress.csv, curve.png, result.mp4 and checkpoint.pt into its folder.  A checkpoint is a pickle: resume
only trusted files.  It includes the worlds, so a resumed run is bitwise identical to an uninterrupted one.  Gymnasium's
own environments cannot be saved: they start new episodes.

Source: Schulman et al., Proximal Policy Optimization Algorithms, 2017; Huang et al., The 37 Implementation Details of
Proximal Policy Optimization, 2022, of which it includes those for continuous actions.  Observations and rewards are
normalized over all worlds, observations by the moments before a rollout.  Truncated episodes are bootstrapped by the
critic.  With `--compiled 1` a rollout is one call, in which the policy runs in the lanes of the
worlds; its time counts as physics.
"""

import argparse
import csv
import dataclasses
import json
import os
import time
from collections import deque
from pathlib import Path

# PyTorch's threads sleep while the threads of the worlds run
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import gymnasium as gym
import numpy as np
import torch
from torch import nn

import featherlane

COLUMNS = "steps seconds return length policy_loss value_loss entropy kl steps_per_second physics policy learning"
CLIP = 10.0  # bound of normalized observations and rewards
# location of the worlds
EPISODES = "observations resting returns lengths discounted".split()
KEPT = [*EPISODES, "steps", "times", "ended"]
AGAIN = "steps", "stop_at", "video"  # options allowed with --resume


@dataclasses.dataclass
class Settings:
    """Defines the settings of a run; each field is an option of the command line."""

    task: str = "HalfCheetah-v5"
    env: str = "featherlane"  # or gymnasium (one process), gymnasium-async (one for each environment)
    num_envs: int = 64
    steps: int = 1_000_000  # of all worlds
    seed: int = 1
    out: str = ""  # folder of the run, by default runs/TASK
    options: str = "{}"  # keyword arguments of the environment, as JSON
    policy: str = ""  # folder of a run whose policy is the initial one; unknown inputs get weights of zero
    threads: int = 1  # threads of PyTorch
    compiled: int = 1  # 1: the policy runs in the lanes of the worlds if the task supports it; 0: in PyTorch
    stop_at: int = 0  # stop after so many steps, as if interrupted
    save_every: int = 20  # updates between checkpoints
    video: int = 500  # steps of the video of the result
    rollout: int = 64  # steps of each world between updates
    minibatch: int = 1024
    epochs: int = 5
    learning_rate: float = 1e-3  # decreases to zero over the steps
    kl: float = 0.0  # if not 0: the learning rate is adapted to this divergence of an epoch's policies
    gamma: float = 0.98
    gae_lambda: float = 0.92
    clip: float = 0.2
    entropy: float = 0.0
    value: float = 0.5
    max_grad_norm: float = 0.5
    hidden: int = 64
    log_std: float = -1.0  # of actions, initially


class Moments:
    """Running mean and variance of rows, merged batch by batch.

    Source: Chan, Golub, LeVeque, Updating formulae and a pairwise algorithm for computing sample variances, 1979.
    """

    def __init__(self, *shape):
        self.mean, self.var, self.count = np.zeros(shape), np.ones(shape), 1e-4

    def add(self, rows):
        total = self.count + len(rows)
        mean = np.add.reduce(rows, axis=0) / len(rows)
        delta, rest = mean - self.mean, rows - mean
        squares = self.var * self.count + np.add.reduce(rest * rest, axis=0)
        squares += delta * delta * (self.count * len(rows) / total)
        self.mean, self.var, self.count = (
            self.mean + delta * len(rows) / total,
            squares / total,
            total,
        )

    @property
    def std(self):
        return np.sqrt(self.var + 1e-8)


class Network(nn.Sequential):
    """Two hidden layers with orthogonal weights; `last` is the gain of the output layer.

    Gradients are explicit: for networks of this size, autograd would take most of the time.
    """

    def __init__(self, inputs, hidden, outputs, last):
        layers = [
            nn.Linear(inputs, hidden),
            nn.Linear(hidden, hidden),
            nn.Linear(hidden, outputs),
        ]
        for layer, gain in zip(layers, (2**0.5, 2**0.5, last), strict=True):
            nn.init.orthogonal_(layer.weight, gain)
            nn.init.zeros_(layer.bias)
        super().__init__(layers[0], nn.Tanh(), layers[1], nn.Tanh(), layers[2])
        self.linear = tuple(layers)

    def forward(self, x):
        return self.forward_kept(x)[1]

    def forward_kept(self, x):
        """Return the inputs of each layer, and the output."""
        kept = [x]
        *hidden, last = self.linear
        for layer in hidden:
            # tanh x = 2 / (1 + exp(-2 x)) - 1, which is faster in PyTorch than its tanh
            kept.append(
                torch.addmm(layer.bias, kept[-1], layer.weight.T)
                .mul_(2.0)
                .sigmoid_()
                .mul_(2.0)
                .sub_(1.0)
            )
        return kept, torch.addmm(last.bias, kept[-1], last.weight.T)

    def backward(self, kept, slope):
        """Set the gradients of the weights from the loss's slope in the output: W' = slope^T x, b' = sum of slope.

        The layer before, whose output is x = tanh(.), has the slope (slope W) (1 - x^2).
        """
        for layer, x in zip(reversed(self.linear), reversed(kept), strict=True):
            torch.mm(slope.T, x, out=layer.weight.grad)
            torch.sum(slope, 0, out=layer.bias.grad)
            if x is not kept[0]:
                slope = slope @ layer.weight
                slope.addcmul_(slope * x, x, value=-1.0)


def as_one(module):
    """Return all parameters of a module as one tensor; parameters and gradients of the module are views of it."""
    one = nn.Parameter(nn.utils.parameters_to_vector(module.parameters()).detach())
    one.grad = torch.zeros_like(one)
    parts = [parameter.numel() for parameter in module.parameters()]
    for parameter, data, grad in zip(
        module.parameters(), one.data.split(parts), one.grad.split(parts), strict=True
    ):
        parameter.data, parameter.grad = (
            data.view_as(parameter),
            grad.view_as(parameter),
        )
    return one


class Agent(nn.Module):
    """A normal distribution of actions, and the value of a state."""

    def __init__(self, inputs, outputs, settings):
        super().__init__()
        self.actor = Network(inputs, settings.hidden, outputs, 0.01)
        self.critic = Network(inputs, settings.hidden, 1, 1.0)
        self.log_std = nn.Parameter(torch.full((outputs,), settings.log_std))

    def log_prob(self, mean, actions):
        z = (actions - mean) * torch.exp(-self.log_std)
        return -0.5 * (z * z + np.log(2 * np.pi)).sum(-1) - self.log_std.sum()

    def entropy(self):
        return (self.log_std + 0.5 * np.log(2 * np.pi * np.e)).sum()


def environments(settings, **more):
    """Return the worlds of a run, with the autoreset mode NEXT_STEP."""
    try:
        more = {**json.loads(settings.options), **more}
    except (TypeError, ValueError) as error:
        problem = f'--options: got {settings.options!r} ({error}), allowed is JSON such as {{"dtype": "float32"}}'
        raise SystemExit(problem) from None
    if settings.env == "featherlane":
        import featherlane.environments  # noqa: F401 - registers the tasks

        return gym.make_vec(f"featherlane/{settings.task}", settings.num_envs, **more)
    mode = {"gymnasium": "sync", "gymnasium-async": "async"}[settings.env]
    return gym.make_vec(
        settings.task, settings.num_envs, vectorization_mode=mode, **more
    )


def can_compile(env, settings):
    """Return whether the environment supports rollouts with a compiled policy."""
    given = json.loads(settings.options).keys() & {
        "record_failures",
        "derived",
        "autoreset_mode",
    }
    task = getattr(env.unwrapped, "task", None)
    return bool(task) and not given and task.compiled(env.unwrapped.batch) is not None


class Run:
    """The state of a run between updates."""

    def __init__(self, settings):
        self.settings, n = settings, settings.num_envs
        torch.set_num_threads(settings.threads)
        torch.manual_seed(settings.seed)
        self.noise = torch.Generator().manual_seed(settings.seed)
        self.env = environments(settings)
        assert self.env.metadata["autoreset_mode"] is gym.vector.AutoresetMode.NEXT_STEP
        self.sizes = (
            self.env.single_observation_space.shape[0],
            self.env.single_action_space.shape[0],
        )
        self.bounds = (
            self.env.single_action_space.low,
            self.env.single_action_space.high,
        )
        self.agent = Agent(*self.sizes, settings)
        self.parameters = as_one(self.agent)
        self.optimizer = torch.optim.Adam(
            [self.parameters], settings.learning_rate, eps=1e-5, fused=True
        )
        self.seen, self.paid, self.discounted = (
            Moments(self.sizes[0]),
            Moments(),
            np.zeros(n),
        )
        self.steps, self.times = (
            0,
            dict.fromkeys(("physics", "policy", "learning"), 0.0),
        )
        self.resting, self.returns, self.lengths = (
            np.zeros(n, bool),
            np.zeros(n),
            np.zeros(n, int),
        )
        self.ended = deque(maxlen=n)  # returns and lengths of the last episodes
        self.observations = self.env.reset(seed=settings.seed)[0]
        self.compiled = bool(settings.compiled) and can_compile(self.env, settings)
        self.seen.add(self.observations)
        if settings.policy:
            self.start_from(Path(settings.policy) / "checkpoint.pt")

    def start_from(self, path):
        """Copy the policy and moments of another run; inputs that it lacks get weights of zero."""
        if not path.exists():
            raise SystemExit(
                f"--policy: there is no {path}; allowed is the folder of a run"
            )
        saved, agent = torch.load(path, weights_only=False), self.agent.state_dict()
        for name, value in saved["modules"]["agent"].items():
            fresh = torch.zeros_like(agent[name])
            if (
                value.shape[:-1] != fresh.shape[:-1]
                or value.shape[-1] > fresh.shape[-1]
            ):
                sizes = f"{name} {tuple(value.shape)}, allowed is {tuple(fresh.shape)}, or fewer inputs"
                raise SystemExit(f"--policy: {path.parent} has {sizes}")
            fresh[..., : value.shape[-1]] = value
            agent[name] = fresh
        self.agent.load_state_dict(agent)
        seen = saved["seen"]
        known = len(seen["mean"])
        self.seen.count = np.full(self.sizes[0], self.seen.count)
        for name, values in seen.items():
            getattr(self.seen, name)[:known] = values
        vars(self.paid).update(saved["paid"])

    # ---- checkpoints -----------------------------------------------------------------------------------------------
    def save(self, path):
        """Save the run; an interrupted save leaves the previous file intact."""
        modules = {
            name: getattr(self, name).state_dict() for name in ("agent", "optimizer")
        }
        saved = {name: getattr(self, name) for name in KEPT}
        saved |= {
            "settings": vars(self.settings),
            "seen": vars(self.seen),
            "paid": vars(self.paid),
        }
        saved |= {"modules": modules, "noise": self.noise.get_state()}
        saved["worlds"] = (
            self.env.checkpoint() if self.settings.env == "featherlane" else None
        )
        torch.save(saved, path.with_suffix(".part"))
        path.with_suffix(".part").replace(path)

    @classmethod
    def load(cls, path):
        """Load a saved run."""
        saved = torch.load(path, weights_only=False)
        run = cls(Settings(**saved["settings"] | {"policy": ""}))
        for name, state in saved["modules"].items():
            getattr(run, name).load_state_dict(state)
        run.noise.set_state(saved["noise"])
        for name in ("seen", "paid"):
            vars(getattr(run, name)).update(saved[name])
        fresh = (
            {} if saved["worlds"] else {name: getattr(run, name) for name in EPISODES}
        )
        vars(run).update({name: saved[name] for name in KEPT} | fresh)
        if saved["worlds"]:
            run.env.restore(saved["worlds"])
        return run

    # ---- one update ------------------------------------------------------------------------------------------------
    def normalised(self, observations):
        rows = (observations - self.seen.mean) / self.seen.std
        return torch.from_numpy(rows.astype(np.float32)).clamp_(-CLIP, CLIP)

    def rollout(self):
        """Step with the compiled policy; return observations, means, actions, rewards, terminations, truncations."""
        start, (low, high) = time.perf_counter(), self.bounds
        moments = {"mean": self.seen.mean, "variance": self.seen.var, "clip": CLIP}
        std = torch.exp(self.agent.log_std.double()).numpy()
        policy = featherlane.policies.MLP.from_torch(
            self.agent.actor, std=std, low=low, high=high, **moments
        )
        noise = torch.randn(
            len(self.resting),
            self.settings.rollout,
            self.sizes[1],
            generator=self.noise,
        )
        out = self.env.rollout(self.settings.rollout, policy, noise.numpy())
        self.times["physics"] += time.perf_counter() - start
        means, actions = (
            torch.from_numpy(rows.swapaxes(0, 1).astype(np.float32))
            for rows in (out.means, out.actions)
        )
        observations = out.observations.swapaxes(0, 1).astype(np.float64)
        return (
            observations,
            means,
            actions,
            out.rewards.T,
            out.terminated.T,
            out.truncated.T,
        )

    def steps_one_by_one(self):
        """The same with the policy in PyTorch, between the steps of the worlds."""
        (k, m), T, n, clock = (
            self.sizes,
            self.settings.rollout,
            len(self.resting),
            time.perf_counter,
        )
        observations, means, actions = (
            np.empty((T + 1, n, k)),
            torch.empty(T, n, m),
            torch.empty(T, n, m),
        )
        paid, ends, cuts = (
            np.empty((T, n)),
            np.empty((T, n), bool),
            np.empty((T, n), bool),
        )
        low, high = (torch.from_numpy(end) for end in self.bounds)
        std, observations[0] = torch.exp(self.agent.log_std), self.observations
        for t in range(T):
            start = clock()
            means[t] = self.agent.actor(self.normalised(observations[t]))
            torch.addcmul(
                means[t], std, torch.randn(n, m, generator=self.noise), out=actions[t]
            )
            clipped = torch.clamp(actions[t], low, high).numpy()
            between = clock()
            observations[t + 1], paid[t], ends[t], cuts[t], _ = self.env.step(clipped)
            self.times["policy"] += between - start
            self.times["physics"] += clock() - between
        return observations, means, actions, paid, ends, cuts

    @torch.no_grad()
    def collect(self):
        """Run a rollout; return its samples with advantages."""
        s, k, T, n = (
            self.settings,
            self.sizes[0],
            self.settings.rollout,
            self.settings.num_envs,
        )
        found = self.rollout() if self.compiled else self.steps_one_by_one()
        start = time.perf_counter()
        observations, means, actions, paid, ends, cuts = found
        rewards, valid, done = (
            np.zeros((T, n), np.float32),
            np.zeros((T, n), bool),
            ends | cuts,
        )
        for t in range(T):
            # a world that was just reset ignored its action: the step is not a sample
            valid[t], rewards[t] = ~self.resting, self.scaled(paid[t], ends[t])
            self.count(paid[t], done[t])
        seen, self.observations = self.normalised(observations), observations[T]
        self.seen.add(observations[1:].reshape(T * n, k))
        values = self.agent.critic(seen.reshape(-1, k)).reshape(T + 1, n)
        goes_on, same = torch.from_numpy(~ends), torch.from_numpy(~done)
        # A_t = delta_t + gamma lambda A_{t+1} within an episode;  delta_t = r_t + gamma V_{t+1} - V_t
        delta = torch.from_numpy(rewards) + s.gamma * values[1:] * goes_on - values[:-1]
        advantages, last = torch.empty(T, n), torch.zeros(n)
        for t in reversed(range(T)):
            last = advantages[t] = delta[t] + s.gamma * s.gae_lambda * same[t] * last
        self.steps += T * n
        kept = torch.from_numpy(valid.reshape(-1))
        log_probs = self.agent.log_prob(means, actions)
        parts = (
            seen[:-1],
            actions,
            log_probs,
            advantages,
            advantages + values[:-1],
            values[:-1],
        )
        parts = [part.reshape(T * n, *part.shape[2:])[kept] for part in parts]
        self.times["policy"] += time.perf_counter() - start
        return parts

    def scaled(self, paid, ends):
        """Return rewards divided by the standard deviation of discounted returns."""
        self.discounted = self.discounted * self.settings.gamma + paid
        self.paid.add(self.discounted)
        self.discounted[ends] = 0.0
        return (paid / self.paid.std).clip(-CLIP, CLIP)

    def count(self, paid, done):
        """Record returns and lengths of episodes."""
        self.returns += paid
        self.lengths += ~self.resting
        self.ended.extend(zip(self.returns[done], self.lengths[done], strict=True))
        self.returns[done], self.lengths[done] = 0.0, 0
        self.resting = done.copy()

    def learn(self, *parts):
        """Train for the epochs of an update; return the mean losses."""
        s, start, losses = self.settings, time.perf_counter(), []
        if not s.kl:
            self.optimizer.param_groups[0]["lr"] = s.learning_rate * max(
                1.0 - self.steps / s.steps, 0.0
            )
        for _ in range(s.epochs):
            order = torch.randperm(len(parts[0]), generator=self.noise)
            for part in zip(
                *(values[order].split(s.minibatch) for values in parts), strict=True
            ):
                if len(part[0]) >= s.minibatch // 2:
                    losses.append(self.gradient(*part))
                    norm = self.parameters.grad.norm().item()
                    if norm > s.max_grad_norm:
                        self.parameters.grad *= s.max_grad_norm / norm
                    self.optimizer.step()
            if s.kl:
                self.follow(
                    torch.stack(losses[-len(parts[0]) // s.minibatch :])[:, -1]
                    .mean()
                    .item()
                )
        self.times["learning"] += time.perf_counter() - start
        return torch.stack(losses).mean(0).tolist()

    @torch.no_grad()
    def gradient(self, seen, actions, log_probs, advantages, targets, values):
        """Compute the gradient of a minibatch's loss; return the losses."""
        s, agent, n = self.settings, self.agent, len(seen)
        (acting, mean), (judging, value) = (
            agent.actor.forward_kept(seen),
            agent.critic.forward_kept(seen),
        )
        # policy loss = -mean of min(A ratio, A clip(ratio)); the gradient is zero if the clipped term is less
        log_ratio = agent.log_prob(mean, actions) - log_probs
        ratio, better = log_ratio.exp(), advantages
        better = (better - better.mean()) / (better.std() + 1e-8)
        gain, clipped = better * ratio, better * ratio.clamp(1 - s.clip, 1 + s.clip)
        # in the logarithm of the probability
        slope = ((gain <= clipped) * gain / -n)[:, None]
        # log p = -z^2 / 2 - log_std, z = (action - mean) / std
        inverse = torch.exp(-agent.log_std)
        z = (actions - mean) * inverse
        agent.actor.backward(acting, slope * z * inverse)
        torch.sum(slope * (z * z - 1.0), 0, out=agent.log_std.grad)
        agent.log_std.grad -= s.entropy
        # value loss = mean of max((V - target)^2, (clip(V) - target)^2) / 2; no gradient if the clipped term is greater
        value = value.squeeze(-1)
        move = value - values
        near = move.clamp(-s.clip, s.clip)
        error, other = value - targets, (values + near - targets).square()
        square = error * error
        slope = ((square >= other) | (near == move)) * error * (s.value / n)
        agent.critic.backward(judging, slope[:, None])
        lost, policy = (
            0.5 * torch.max(square, other).mean(),
            -torch.min(gain, clipped).mean(),
        )
        return torch.stack(
            [policy, lost, agent.entropy(), (ratio - 1 - log_ratio).mean()]
        )

    def follow(self, divergence):
        """Decrease the learning rate if the policies differ by too much, increase it if by too little."""
        group, asked = self.optimizer.param_groups[0], self.settings.kl
        factor = (
            1 / 1.5
            if divergence > 2 * asked
            else 1.5
            if divergence < asked / 2
            else 1.0
        )
        group["lr"] = min(max(group["lr"] * factor, 1e-5), 1e-2)

    def row(self, losses):
        """Return a line of the CSV file; the last three values are shares of the time."""
        seconds = sum(self.times.values())
        ended = np.mean(self.ended, axis=0) if self.ended else ("", "")
        return [
            self.steps,
            seconds,
            *ended,
            *losses,
            self.steps / seconds,
            *(v / seconds for v in self.times.values()),
        ]


def train(run, folder):
    """Train until the steps are done; print the progress, and write it to the CSV file."""
    s, table = run.settings, folder / "progress.csv"
    lines = table.read_text().splitlines() if run.steps else []
    with table.open("w", newline="") as file:
        # lines after the last checkpoint are written again
        file.writelines(
            f"{line}\n"
            for line in lines
            if line[0] == "s" or int(line.partition(",")[0]) <= run.steps
        )
        out = csv.writer(file, lineterminator="\n")
        if not lines:
            out.writerow(COLUMNS.split())
        stop, update = min(s.steps, s.stop_at or s.steps), 0
        run.save(folder / "checkpoint.pt")
        try:
            while run.steps < stop:
                losses = run.learn(*run.collect())
                row, update = run.row(losses), update + 1
                out.writerow(row)
                file.flush()
                rate = f"{run.steps:9,} steps {row[1]:6.0f} s {row[8]:8,.0f}/s"
                result = (
                    f"return {row[2]:7.0f}  length {row[3]:5.0f}"
                    if run.ended
                    else "no episode has ended"
                )
                shares = "  ".join(
                    f"{name} {100 * v:2.0f} %"
                    for name, v in zip(run.times, row[-3:], strict=True)
                )
                print(f"\r{rate}  {result}  {shares} ", end="", flush=True)
                if update % s.save_every == 0 or run.steps >= stop:
                    run.save(folder / "checkpoint.pt")
        except KeyboardInterrupt:
            print(
                f"\nstopped; resume from the last checkpoint: python examples/ppo.py --resume {folder}",
                end="",
            )
    print()


def plot(folder):
    """Plot the return against wall time and steps."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    with (folder / "progress.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["return"]]
    rows = [
        [float(row[name]) for name in ("seconds", "steps", "return")] for row in rows
    ]
    if not rows:
        return
    seconds, steps, returns = np.array(rows).T
    figure, axes = plt.subplots(
        1, 2, figsize=(9, 3.2), sharey=True, layout="constrained"
    )
    for axis, x, label in zip(
        axes, (seconds, steps), ("wall time [s]", "steps"), strict=True
    ):
        axis.plot(x, returns)
        axis.set_xlabel(label)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("return")
    figure.savefig(folder / "curve.png", dpi=120)
    plt.close(figure)


@torch.no_grad()
def film(run, folder):
    """Record a video of one world with the mean actions of the policy."""
    if not run.settings.video:
        return
    import imageio.v2 as imageio

    # its worlds can be rendered headless
    settings = dataclasses.replace(run.settings, env="featherlane", num_envs=1)
    env = environments(settings, render_mode="rgb_array")
    observations, space = env.reset(seed=run.settings.seed)[0], env.single_action_space
    with imageio.get_writer(
        folder / "result.mp4", fps=env.metadata["render_fps"]
    ) as video:
        for _ in range(run.settings.video):
            actions = run.agent.actor(run.normalised(observations)).numpy()
            observations = env.step(np.clip(actions, space.low, space.high))[0]
            video.append_data(env.render()[0])
    env.close()


def asked():
    """Return the settings from the command line, and the checkpoint to resume."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    more = ", ".join(f"--{name.replace('_', '-')}" for name in AGAIN)
    parser.add_argument(
        "--resume",
        metavar="FOLDER",
        help=f"resume the run of this folder; allowed options: {more}",
    )
    for field in dataclasses.fields(Settings):
        kind = {"str": str, "int": int, "float": float}.get(field.type, field.type)
        parser.add_argument(
            f"--{field.name.replace('_', '-')}",
            type=kind,
            help=f"{field.default!r} if not given",
        )
    given = {
        name: value
        for name, value in vars(parser.parse_args()).items()
        if value is not None
    }
    resume = given.pop("resume", None)
    if resume and set(given) - set(AGAIN):
        parser.error(f"--resume takes {more}, and no other option")
    return resume, given


def main():
    resume, given = asked()
    run = Run.load(Path(resume) / "checkpoint.pt") if resume else Run(Settings(**given))
    if resume:
        run.settings = dataclasses.replace(run.settings, **{"stop_at": 0} | given)
    folder = Path(resume or run.settings.out or f"runs/{run.settings.task}")
    folder.mkdir(parents=True, exist_ok=True)
    train(run, folder)
    try:
        plot(folder)
    except ImportError as error:
        print(f"no plot: pip install 'featherlane[plot]' ({error})")
    try:
        film(run, folder)
    except (ImportError, RuntimeError) as error:
        print(f"no video: pip install 'featherlane[view]' ({error})")
    run.env.close()
    print(f"{folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")


if __name__ == "__main__":
    main()
