"""Policies that solve our own tasks: trained with the example, measured, drawn; about an hour of one core.

    python benchmarks/solved.py --write
    python benchmarks/solved.py --tasks ArmPush-v0      # one of them
    python benchmarks/solved.py --as-is --draw          # only what is in the folder; pictures too

Runs that are in the folder already are not done again, and one that was stopped goes on.  Measured is the mean of the
policy's actions, in worlds that it has not seen.  Needs the extras `gym` and `torch`, and for pictures `view`.
"""

from __future__ import annotations

import csv
import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from report import ROOT, arguments, markdown, origin, publish

import featherlane.environments as environments
from featherlane.engine.spatial.rotation import heading

EXAMPLE, IMAGES = ROOT / "examples" / "ppo.py", ROOT / "docs" / "images"
WORLDS, SEED = 256, 1_000_000  # worlds that no run has seen
SECONDS = 30.0  # of each walker
FRAMES, SIDE = 5, 300  # of a strip: how many, pixels


# ---- what policies do ------------------------------------------------------------------------------------------------
def walks(env, policy) -> str:
    """Falls, errors of the velocity, and what feet do while the command is to move."""
    task, worlds, seen = env.task, env.batch, env.reset(seed=SEED)[0]
    falls, landings, moving, errors, rises = 0, 0, 0.0, [], []
    peak, stood = np.zeros((WORLDS, len(task.feet))), np.ones((WORLDS, len(task.feet)), bool)
    for _ in range(round(SECONDS / env.dt)):
        seen, _, fell, _, _ = env.step(policy(seen))
        falls += int(fell.sum())
        c, s = heading(worlds.qpos[:, 3:7])
        vx, vy = worlds.qvel[:, 0], worlds.qvel[:, 1]
        errors.append(np.abs(np.stack([c * vx + s * vy, c * vy - s * vx], axis=1) - task.command[:, :2]).mean(axis=0))
        soles = worlds.site_xpos[:, task.soles]
        moves = task.command.any(axis=1) & ~fell
        landed = task.stands & ~stood & moves[:, None]
        landings, moving = landings + int(landed.sum()), moving + env.dt * float(moves.sum())
        rises.append(peak[landed])
        height = soles[:, :, 2] - task.height_at(soles[:, :, 0], soles[:, :, 1])
        peak, stood = np.where(task.stands, 0.0, np.maximum(peak, height)), task.stands.copy()
    ahead, aside = np.mean(errors, axis=0)
    cadence, rise = landings / (moving * len(task.feet)), 100 * np.median(np.concatenate(rises))
    return (
        f"{falls / (WORLDS * SECONDS / 60):.2f} falls per minute; mean velocity error {ahead:.2f} m/s forward, "
        f"{aside:.2f} m/s sideways; {cadence:.1f} steps per second and foot; foot lift {rise:.0f} cm"
    )


def brings(env, policy) -> str:
    """How far things are from their goals at the end of an episode."""
    task, seen, lost = env.task, env.reset(seed=SEED)[0], np.zeros(WORLDS, bool)
    for _ in range(task.limit):
        seen, _, ended, _, _ = env.step(policy(seen))
        lost |= ended
        env.revive()
    distance = np.where(lost, np.inf, task.distance(env.batch))
    within = 100 * (distance < task.reached).mean()
    return (
        f"after {task.limit * env.dt:g} s, {within:.0f} % within {100 * task.reached:g} cm of the goal; "
        f"median distance {1000 * np.median(distance):.0f} mm"
    )


class Asked(NamedTuple):
    """How a task is trained, and what is measured."""

    steps: int
    settings: str  # of the example
    measure: Callable
    policy: str = ""  # the task from whose policy the run starts


COMMON = (
    "--num-envs 1024 --rollout 24 --minibatch 4096 --epochs 4 --hidden 96 --gae-lambda 0.95 --kl 0.01 "
    "--entropy 0.002 --log-std -0.7"
)
TASKS = {
    "HumanoidWalk-v0": Asked(12_000_000, f"--gamma 0.99 {COMMON}", walks),
    "HumanoidRough-v0": Asked(6_389_760, f"--gamma 0.99 {COMMON}", walks, "HumanoidWalk-v0"),
    "ArmPush-v0": Asked(12_000_000, f"--gamma 0.98 {COMMON}", brings),
}


# ---- runs ------------------------------------------------------------------------------------------------------------
def command(name: str, runs: str = "runs") -> list[str]:
    """The example's command line for a task."""
    asked = TASKS[name]
    words = ["--task", name, "--steps", f"{asked.steps}", *asked.settings.split()]
    words += ["--options", '{"dtype": "float32", "nthread": 1}']
    return words + (["--policy", f"{runs}/{asked.policy}"] if asked.policy else [])


def progress(folder: Path) -> list[dict[str, str]]:
    if not (folder / "progress.csv").exists():
        return []
    with (folder / "progress.csv").open() as file:
        return list(csv.DictReader(file))


def train(runs: Path, name: str) -> None:
    """One run, where it is not done yet."""
    folder = runs / name
    if (rows := progress(folder)) and int(rows[-1]["steps"]) >= TASKS[name].steps:
        return
    resume = (folder / "checkpoint.pt").exists()
    words = ["--resume", str(folder)] if resume else [*command(name, str(runs)), "--out", str(folder)]
    print(name, flush=True)
    subprocess.run([sys.executable, str(EXAMPLE), *words, "--video", "0"], check=True)


class Policy:
    """What a run has learned: the mean of its actions."""

    def __init__(self, folder: Path):
        import torch

        spec = importlib.util.spec_from_file_location("ppo", EXAMPLE)
        ppo = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(ppo)
        saved, self.torch, self.clip = torch.load(folder / "checkpoint.pt", weights_only=False), torch, ppo.CLIP
        weights, self.steps = saved["modules"]["agent"], saved["steps"]
        self.agent = ppo.Agent(len(saved["seen"]["mean"]), len(weights["log_std"]), ppo.Settings(**saved["settings"]))
        self.agent.load_state_dict(weights)
        self.seen = ppo.Moments(len(saved["seen"]["mean"]))
        vars(self.seen).update(saved["seen"])

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        rows = np.clip((observations - self.seen.mean) / self.seen.std, -self.clip, self.clip)
        with self.torch.no_grad():
            return np.clip(self.agent.actor(self.torch.from_numpy(rows.astype(np.float32))).numpy(), -1.0, 1.0)


def row(runs: Path, name: str) -> list[str]:
    """A line of the table."""
    policy, asked = Policy(runs / name), TASKS[name]
    limit = {"max_episode_steps": None, "autoreset_mode": "Disabled"} if asked.measure is brings else {}
    env = environments.make_vec(name, WORLDS, **{"dtype": "float32", "autoreset_mode": "SameStep"} | limit)
    seconds = [float(r["seconds"]) for r in progress(runs / name) if int(r["steps"]) <= policy.steps]
    start = f", starting from the policy of `{asked.policy}`" if asked.policy else ""
    shown = f"{policy.steps / 1e6:.1f} M{start}"
    return [f"`{name}`", shown, f"{seconds[-1] / 60:.0f} min", asked.measure(env, policy)]


# ---- pictures --------------------------------------------------------------------------------------------------------
def strip(runs: Path, name: str) -> np.ndarray:
    """Pictures of one world side by side; walkers go ahead, and are seen from the side."""
    policy, looked = Policy(runs / name), LOOKED[name]
    settings = {"dtype": "float32", **looked.options}
    starts = environments.make_vec(name, WORLDS, **settings)
    starts.reset(seed=SEED)
    seed = SEED + int(np.argmin(looked.badness(starts)))
    env = environments.make_vec(name, 1, render_mode="rgb_array", width=SIDE, height=SIDE, **settings)
    seen, pictures = env.reset(seed=seed)[0], []
    for k in range(looked.first + FRAMES * looked.apart):
        if k >= looked.first and (k - looked.first) % looked.apart == 0:
            pictures.append(env.render()[0])
        seen = env.step(policy(seen))[0]
    env.close()
    return np.concatenate(pictures, axis=1)


class Looked(NamedTuple):
    """Which world is drawn, with which options, and when."""

    options: dict
    badness: Callable  # of each start; the least is drawn
    first: int  # action
    apart: int  # actions from picture to picture


def off_side(env) -> np.ndarray:
    """Angles of headings from that in which the camera sees a walker from its side [rad]."""
    c, s = heading(env.batch.qpos[:, 3:7])
    return np.abs(np.arctan2(s, c) - np.arctan2(0.447, 0.894))


def off_way(env) -> np.ndarray:
    """By how much the way of a puck differs from 0.3 m [m]."""
    return np.abs(env.task.distance(env.batch) - 0.3)


AHEAD = {"standing": 0.0, "forward": (0.8, 0.8), "sideways": (0.0, 0.0), "turn": (0.0, 0.0)}
LOOKED = {
    "HumanoidWalk-v0": Looked(AHEAD, off_side, 200, 7),
    "HumanoidRough-v0": Looked(AHEAD | {"terrain": "rough"}, off_side, 200, 7),
    "ArmPush-v0": Looked({}, off_way, 10, 40),
}


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "solved", help="folder of the runs")
    parser.add_argument("--as-is", action="store_true", help="only what is in the folder, no run")
    parser.add_argument("--draw", action="store_true", help="pictures of what the policies do, into docs/images")
    asked = parser.parse_args()
    for name in () if asked.as_is else asked.tasks:
        train(asked.runs, name)
    rows = [row(asked.runs, name) for name in asked.tasks]
    table = markdown(["task", "actions", "wall time", "performance"], rows)
    commands = "\n".join(f"python examples/ppo.py {' '.join(quoted(name))}" for name in asked.tasks)
    publish("solved", f"{table}\n\n```sh\n{commands}\n```\n\n{origin()}", asked.write)
    if asked.draw:
        from PIL import Image

        for name in asked.tasks:
            picture = IMAGES / f"solved_{name.partition('-')[0].lower()}.png"
            Image.fromarray(strip(asked.runs, name)).save(picture, optimize=True)


def quoted(name: str) -> list[str]:
    """The command as a shell wants it."""
    return [f"'{word}'" if word.startswith("{") else word for word in command(name)]


if __name__ == "__main__":
    main()
