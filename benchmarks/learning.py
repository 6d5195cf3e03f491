"""Learning: the example's PPO on our worlds and on Gymnasium's own, with the same settings; hours.

    python benchmarks/learning.py --write
    python benchmarks/learning.py --tasks Hopper-v5 --seeds 1     # one run of each
    python benchmarks/learning.py --rollouts --write              # worlds and policy without learning, a minute
    python benchmarks/learning.py --goals --seeds 5 --write       # our worlds alone, time to the goals; half an hour

Runs that are in the folder already are not done again, and one that was stopped goes on.  What a step costs is measured
apart, alternately, in the processor's time of all threads, which other programs on the machine change least.  Whether
half of the worlds stepping while the policy thinks about the others pays is measured, too.  Needs torch, matplotlib and
Gymnasium's extra `mujoco`.
"""

from __future__ import annotations

import csv
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from report import ROOT, arguments, markdown, origin, publish

EXAMPLE = ROOT / "examples" / "ppo.py"
PICTURE = ROOT / "docs" / "images" / "learning.png"
OURS, THEIRS = "featherlane", "gymnasium"
COLORS = {OURS: "#c0392b", THEIRS: "#34495e"}
QUICK = 0.05  # the quantile of calls that counts as undisturbed
POINTS = 80  # of a curve, about


class Asked(NamedTuple):
    """Defines the goal of a task."""

    goal: float  # return
    steps: int  # ours, and those of the schedule of both
    compared: int  # as many of them are done on Gymnasium's worlds
    settings: Mapping[str, float] = MappingProxyType({})  # of the example, where they are not its own


# a jump is learned in many small steps: with the settings of the others it stands or falls
HOPPING = {"gamma": 0.99, "gae_lambda": 0.95, "log_std": -0.5}
HOPPING |= {"rollout": 32, "minibatch": 128, "epochs": 8, "learning_rate": 3e-4}
TASKS = {
    "HalfCheetah-v5": Asked(4000, 1_000_000, 1_000_000),
    "Ant-v5": Asked(3000, 2_000_000, 400_000),
    "Hopper-v5": Asked(2500, 1_000_000, 1_000_000, HOPPING),
}

ROLLOUTS = ("HalfCheetah-v5", "Ant-v5", "Humanoid-v5")  # tasks whose rollouts are measured without learning


# ---- runs ------------------------------------------------------------------------------------------------------------
def folder(runs: Path, task: str, env: str, seed: int) -> Path:
    return runs / f"{task}-{env}-{seed}"


def learn(runs: Path, task: str, env: str, seed: int) -> None:
    """One run, where it is not done yet."""
    asked, out = TASKS[task], folder(runs, task, env, seed)
    stop = asked.steps if env == OURS else asked.compared
    done = curve(out)
    if len(done) and done[-1][0] >= stop:
        return
    options = ["--task", task, "--env", env, "--seed", seed, "--steps", asked.steps, "--out", out]
    options += [part for name, value in asked.settings.items() for part in (f"--{name.replace('_', '-')}", value)]
    options = ["--resume", out] if (out / "checkpoint.pt").exists() else options
    command = [sys.executable, EXAMPLE, *options, "--stop-at", stop, "--video", 0]
    print(f"{task} on {env}'s worlds, seed {seed}", flush=True)
    subprocess.run([str(part) for part in command], check=True)


def curve(out: Path) -> np.ndarray:
    """Steps, seconds and returns of a run, (k, 3)."""
    if not (out / "progress.csv").exists():
        return np.zeros((0, 3))
    with (out / "progress.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["return"]]
    return np.array([[float(row[name]) for name in ("steps", "seconds", "return")] for row in rows]).reshape(-1, 3)


def curves(runs: Path, task: str, env: str, seeds: range) -> list[np.ndarray]:
    found = [curve(folder(runs, task, env, seed)) for seed in seeds]
    return [rows for rows in found if len(rows)]


def returns(found: list[np.ndarray], steps: float) -> np.ndarray:
    """What each run that got so far had reached."""
    return np.array([np.interp(steps, rows[:, 0], rows[:, 2]) for rows in found if rows[-1, 0] >= steps])


def reached(found: list[np.ndarray], goal: float) -> list[float]:
    """After how many steps each run reached a return; infinite where it did not."""
    return [min(rows[rows[:, 2] >= goal, 0], default=np.inf) for rows in found]


# ---- what a step costs -----------------------------------------------------------------------------------------------
class Cost:
    """Microseconds of the processor for a world's step, by part, of a run of the example."""

    def __init__(self, ppo, settings):
        self.run, self.calls = ppo.Run(settings), []
        for name in ("step", "rollout"):
            if hasattr(self.run.env, name):
                setattr(self.run.env, name, self.timed(getattr(self.run.env, name)))
        self.physics, self.policy, self.learning, self.clock = [], [], [], []

    def timed(self, function):
        def run(*given):
            start = time.process_time()
            result = function(*given)
            self.calls.append(time.process_time() - start)
            return result

        return run

    def update(self) -> None:
        """One update, as the example does it."""
        clock, before, start = time.perf_counter(), len(self.calls), time.process_time()
        parts = self.run.collect()
        between = time.process_time()
        self.run.learn(*parts)
        self.physics.append(sum(self.calls[before:]))
        self.policy.append(between - start - self.physics[-1])
        self.learning.append(time.process_time() - between)
        self.clock.append(time.perf_counter() - clock)

    def parts(self) -> np.ndarray:
        """Worlds, policy, learning, and all of them on the clock; of compiled rollouts the worlds have the policy."""
        n, steps = self.run.settings.num_envs, self.run.settings.rollout
        parts = self.physics, self.policy, self.learning, self.clock
        return 1e6 / (n * steps) * np.array([min(times) for times in parts])


def costs(ppo, task: str, rounds: int) -> dict[str, np.ndarray]:
    """What a step costs on either's worlds, measured alternately."""
    given = {"task": task, "steps": TASKS[task].steps, **TASKS[task].settings}
    found = {env: Cost(ppo, ppo.Settings(env=env, **given)) for env in (OURS, THEIRS)}
    for _ in range(rounds):
        for cost in found.values():
            cost.update()
    return {env: cost.parts() for env, cost in found.items()}


# ---- the policy compiled with the worlds -----------------------------------------------------------------------------
def rollouts(ppo, task: str, rounds: int) -> list:
    """A line of the table: microseconds of worlds, policy and rest of a rollout, without learning, in turns."""
    runs = [ppo.Run(ppo.Settings(task=task, compiled=k)) for k in (0, 1)]
    taken = [[], []]
    for _ in range(rounds + 1):
        for run, times in zip(runs, taken, strict=True):
            start = time.process_time()
            run.collect()
            times.append(time.process_time() - start)
    scale = 1e6 / (runs[0].settings.num_envs * runs[0].settings.rollout)
    torch, compiled = scale * np.array(taken)[:, 1:]  # the first round compiles
    ratios = torch / compiled
    shown = f"{np.median(ratios):.2f} ({ratios.min():.2f} - {ratios.max():.2f})"
    return [task, f"{np.median(torch):.1f}", f"{np.median(compiled):.1f}", shown]


# ---- time to the goal ------------------------------------------------------------------------------------------------
def time_to_goal(runs: Path, task: str, seeds: range) -> list[str]:
    """A line of the table: seeds that reached the goal, and after how many steps and seconds; median, least, most."""
    goal, found = TASKS[task].goal, curves(runs, task, OURS, seeds)
    first = [rows[rows[:, 2] >= goal][0, :2] for rows in found if rows[:, 2].max() >= goal]
    parts = zip(*first, strict=True) if first else ()
    cells = [f"{np.median(part):,.0f} ({min(part):,.0f} - {max(part):,.0f})" for part in parts] or ["-", "-"]
    return [task, f"{goal:g}", f"{len(first)} of {len(found)}", *cells]


# ---- half of the worlds while the policy thinks about the others -----------------------------------------------------
def halves(ppo, task: str, n: int, cycles: int) -> list[float]:
    """Microseconds on the clock of a world's step and thought: all at once, two halves in turn, each half by itself."""
    settings = ppo.Settings(task=task, num_envs=n // 2)
    whole = ppo.environments(ppo.Settings(task=task, num_envs=n))
    turns = [ppo.environments(settings) for _ in range(2)]
    alone = [ppo.environments(settings, nthread=1) for _ in range(2)]
    agent = ppo.Agent(whole.single_observation_space.shape[0], whole.single_action_space.shape[0], settings)

    def think(seen):
        with ppo.torch.no_grad():
            return np.clip(agent.actor(ppo.torch.from_numpy(seen.astype(np.float32))).numpy(), -1.0, 1.0)

    def at_once():
        seen["whole"] = whole.step(think(seen["whole"]))[0]

    def in_turn():
        # one half steps in the pool while this thread thinks about the other
        stepping = pool.submit(turns[0].step, seen["actions"])
        actions = think(seen["turns"])
        first = stepping.result()[0]
        stepping = pool.submit(turns[1].step, actions)
        seen["actions"] = think(first)
        seen["turns"] = stepping.result()[0]

    def own_way(k):
        seen[k] = alone[k].step(think(seen[k]))[0]

    def apart():
        list(pool.map(own_way, (0, 1)))

    times = {at_once: [], in_turn: [], apart: []}
    with ThreadPoolExecutor(2) as pool:
        seen = {"whole": whole.reset(seed=0)[0], "turns": turns[1].reset(seed=1)[0]}
        seen["actions"] = think(turns[0].reset(seed=0)[0])
        seen |= {k: env.reset(seed=k)[0] for k, env in enumerate(alone)}
        for _ in range(cycles):
            for way, taken in times.items():
                start = time.perf_counter()
                way()
                taken.append(time.perf_counter() - start)
    return [1e6 * np.quantile(taken, QUICK) / n for taken in times.values()]


# ---- the page --------------------------------------------------------------------------------------------------------
def spread(values) -> str:
    """Mean, least and most of the seeds."""
    values = [value for value in values if np.isfinite(value)]
    return f"{np.mean(values):,.0f} ({min(values):,.0f} - {max(values):,.0f})" if values else "-"


def row(runs: Path, task: str, seeds: range, cost: dict[str, np.ndarray]) -> tuple[list, list]:
    """Lines of the two tables: what was learned, what a step cost."""
    asked, (ours, theirs) = TASKS[task], (curves(runs, task, env, seeds) for env in (OURS, THEIRS))
    common = min((rows[-1, 0] for rows in theirs), default=0.0)
    whole = [rows for rows in ours if rows[-1, 0] >= asked.steps]
    got = [step / 1e6 for step in reached(whole, asked.goal)]
    within = [step for step in got if np.isfinite(step)]
    goal = f"{np.mean(within):.2f} M ({len(within)} of {len(got)})" if within else "-"
    after = [f"{common / 1e6:.2f} M", spread(returns(ours, common)), spread(returns(theirs, common))]
    end = [f"{asked.steps / 1e6:g} M", spread([rows[-1, 2] for rows in whole]), f"{asked.goal:g}", goal]
    (*us, wall), (*them, their_wall) = cost[OURS], cost[THEIRS]
    spent = [shown(us), shown(them), f"{sum(them) / sum(us):.1f}"]
    spent += [f"{wall:.1f}", f"{their_wall:.1f}", f"{their_wall / wall:.1f}"]
    return [task, *after, *end], [task, *spent]


def shown(parts) -> str:
    return f"{sum(parts):.1f} = {' + '.join(f'{part:.1f}' for part in parts)}"


RETURNS = "task; steps; Featherlane; Gymnasium; all steps; Featherlane; goal; steps to goal (seeds)"
GOALS = "task; goal (return); seeds that reach it; steps to the goal; wall time to the goal [s]"
STEPS = "task; policy in PyTorch [us]; compiled policy [us]; ratio (min - max)"
COSTS = "task; CPU time, Featherlane [us]; Gymnasium; ratio; wall time, Featherlane [us]; Gymnasium; ratio"


def draw(runs: Path, seeds: range, cost: dict[str, dict[str, np.ndarray]]) -> None:
    """Returns against steps and against time: every seed thin, their mean thick."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, len(cost), figsize=(3.6 * len(cost), 5.4), layout="constrained", squeeze=False)
    for column, task in enumerate(cost):
        for env in (THEIRS, OURS):
            found, color = curves(runs, task, env, seeds), COLORS[env]
            if not found:
                continue
            end = min(rows[-1, 0] for rows in found)
            steps = np.linspace(max(rows[0, 0] for rows in found), end, POINTS)
            mean = np.mean([np.interp(steps, rows[:, 0], rows[:, 2]) for rows in found], axis=0)
            for upper, scale in ((0, 1e-6), (1, cost[task][env][-1] * 1e-6)):
                for rows in found:
                    thin = rows[:: max(len(rows) // POINTS, 1)]
                    axes[upper, column].plot(thin[:, 0] * scale, thin[:, 2], color=color, lw=0.5, alpha=0.5)
                label = "Featherlane" if env == OURS else "Gymnasium"
                axes[upper, column].plot(steps * scale, mean, color=color, lw=2, label=label)
        axes[0, column].set_title(task)
        axes[0, column].set_xlabel("steps [million]")
        axes[1, column].set_xlabel("time on the clock [s]")
        for axis in axes[:, column]:
            axis.axhline(TASKS[task].goal, color="#999999", lw=0.8, ls=":")
            axis.grid(alpha=0.2)
    axes[0, 0].legend(frameon=False)
    for axis in axes[:, 0]:
        axis.set_ylabel("return")
    figure.savefig(PICTURE, dpi=100)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--seeds", type=int, default=3, help="runs of each")
    parser.add_argument("--rounds", type=int, default=6, help="updates by which the cost of a step is measured")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "learning", help="folder of the runs")
    parser.add_argument("--rollouts", action="store_true", help="only the time of rollouts, without learning")
    parser.add_argument("--goals", action="store_true", help="only our worlds, and the time to the goal")
    parser.add_argument("--as-is", action="store_true", help="only what is in the folder, no run")
    asked = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    seeds = range(1, asked.seeds + 1)
    for seed in () if asked.as_is or asked.rollouts else seeds:
        for task in asked.tasks:
            for env in (OURS,) if asked.goals else (OURS, THEIRS):
                learn(asked.runs, task, env, seed)
    if asked.goals:
        lines = [time_to_goal(asked.runs, task, seeds) for task in asked.tasks]
        publish("learning-goals", f"{markdown(GOALS.split('; '), lines)}\n\n{origin()}", asked.write)
        return
    spec = importlib.util.spec_from_file_location("ppo", EXAMPLE)
    ppo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(ppo)
    lines = [rollouts(ppo, task, 2 * asked.rounds) for task in ROLLOUTS]
    publish("rollouts", f"{markdown(STEPS.split('; '), lines)}\n\n{origin()}", asked.write)
    if asked.rollouts:
        return
    cost = {task: costs(ppo, task, asked.rounds) for task in asked.tasks}
    rows = zip(*(row(asked.runs, task, seeds, cost[task]) for task in asked.tasks), strict=True)
    tables = [markdown(names.split("; "), lines) for names, lines in zip((RETURNS, COSTS), rows, strict=True)]
    publish("learning", "\n\n".join([*tables, origin()]), asked.write)
    ways = "worlds of Ant-v5; one batch [us]; alternating halves [us]; independent halves [us]".split("; ")
    lines = [[n, *(f"{us:.2f}" for us in halves(ppo, "Ant-v5", n, 300))] for n in (64, 256, 1024)]
    publish("asynchronous", f"{markdown(ways, lines)}\n\n{origin()}", asked.write)
    if asked.write:
        draw(asked.runs, seeds, cost)


if __name__ == "__main__":
    main()
