"""mjbatch's example `go1_joystick` (PPO) on Featherlane and on mjbatch: speed, and time to the same reward; hours.

    pip install 'featherlane[mjbatch]' torch mujoco-menagerie
    python benchmarks/integrations_mjbatch.py --iterations 600 --log runs/go1.jsonl --write
    python benchmarks/integrations_mjbatch.py --table --log runs/go1.jsonl --write     # of a run, finished or not

Both sides train in one process from the same seed, in turns of one iteration (24 steps of 1024 environments and the
update).  Physics uses all cores, PyTorch one thread.  Only the import of `Batch` in the example differs.  The
processor's time of all threads is measured, too: other programs on the machine change it least.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import types
from pathlib import Path
from typing import Any, NamedTuple

import mjbatch  # pyright: ignore[reportMissingImports]
import numpy as np
import torch
from report import arguments, markdown, origin, publish

from featherlane.integrations import mjbatch as ours

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import repositories

SIDES = {"mjbatch": mjbatch.Batch, "Featherlane": ours.Batch}
WINDOW = 10  # iterations whose mean reward is compared
LEVELS = (0.25, 0.5, 0.75, 0.9, 1.0)  # from the first reward to the one that both sides reach


class Curve(NamedTuple):
    """Describes a training, all (iterations,).

    Attributes:
        reward: mean reward per step.
        rollout, update: seconds of the simulation and of the update of the networks.
        rollout_cpu, update_cpu: the same in the processor's time of all threads.
        batch_cpu: the part of `rollout_cpu` in calls of the batch; the rest is the policy and the example's NumPy code.
    """

    reward: np.ndarray
    rollout: np.ndarray
    update: np.ndarray
    rollout_cpu: np.ndarray
    update_cpu: np.ndarray
    batch_cpu: np.ndarray

    def seconds(self, iterations: int) -> tuple[float, float]:
        """Returns the time of the first iterations, and the processor's time."""
        total, cpu = self.rollout + self.update, self.rollout_cpu + self.update_cpu
        return float(total[:iterations].sum()), float(cpu[:iterations].sum())


# ---- the example -----------------------------------------------------------------------------------------------------
def example(batch: type) -> Any:
    """Returns the example as a module that uses a class `Batch`."""
    path = repositories.example("go1_joystick")
    sys.path.insert(0, str(path.parent))
    module = types.ModuleType(f"go1_{batch.__module__}")
    module.__file__ = str(path)
    exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    module.__dict__["Batch"] = batch
    return module


class Clocked:
    """A batch that adds up the processor's time of its calls in `spent` [s]."""

    def __init__(self, batch: Any):
        self._batch, self.spent = batch, 0.0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._batch, name)
        if name not in ("step", "reset", "forward"):
            return found

        def timed(*given: Any, **named: Any) -> None:
            start = time.process_time()
            found(*given, **named)
            self.spent += time.process_time() - start

        return timed


class Training:
    """Trains on one side as the example's `train`, by iterations, with a separate state of PyTorch's random numbers."""

    def __init__(self, batch: type, seed: int):
        self.go1 = go1 = example(batch)
        torch.manual_seed(seed)
        self.env = go1.Go1(go1.NUM_ENVS, seed=seed)
        self.env.batch = Clocked(self.env.batch)
        self.actor, self.learner = go1.ActorCritic(), go1.ActorCritic()
        self.actor.load_state_dict(self.learner.state_dict())
        self.optimizer = torch.optim.Adam(self.learner.parameters(), go1.LR, fused=True)
        self.done, self.random = 0, torch.get_rng_state()

    def iterate(self) -> dict[str, float]:
        """Runs one iteration; returns the entries of `Curve`."""
        go1 = self.go1
        torch.set_rng_state(self.random)
        rate = np.interp(self.done, (0, go1.LR_TO), (go1.LR, go1.LR_END))
        self.optimizer.param_groups[0]["lr"] = float(rate)
        spent, start = self.env.batch.spent, clocks()
        rollout, stats = go1.rollout(self.actor, self.env)
        middle = clocks()
        go1.update(self.learner, self.optimizer, rollout, *go1.gae(rollout))
        self.actor.load_state_dict(self.learner.state_dict())
        end = clocks()
        self.done, self.random = self.done + 1, torch.get_rng_state()
        reward = float(sum(go1.REWARD[k] * stats[k] for k in go1.REWARD))
        times = np.r_[middle - start, end - middle][[0, 2, 1, 3]]
        return dict(zip(Curve._fields, (reward, *times, self.env.batch.spent - spent), strict=True))


def clocks() -> np.ndarray:
    """Returns the time and the processor's time of all threads [s]."""
    return np.array([time.perf_counter(), time.process_time()])


def train(seed: int, iterations: int, log: Path) -> None:
    """Trains both sides in turns; appends each iteration to a file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sides = {name: Training(batch, seed) for name, batch in SIDES.items()}
    with log.open("w") as file:
        for k in range(iterations):
            for name in list(sides)[:: 1 if k % 2 else -1]:
                file.write(json.dumps({"side": name, "seed": seed, "iteration": k} | sides[name].iterate()) + "\n")
            file.flush()


def curves(log: Path) -> dict[str, Curve]:
    """Returns the trainings of a file, as long as the shorter one."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    both = min(sum(line["side"] == name for line in lines) for name in SIDES)
    found = {name: [line for line in lines if line["side"] == name][:both] for name in SIDES}
    return {
        name: Curve(*(np.array([line[key] for line in each]) for key in Curve._fields)) for name, each in found.items()
    }


# ---- speed -----------------------------------------------------------------------------------------------------------
def rates(rounds: int, steps: int) -> dict[str, dict[str, list[float]]]:
    """Returns steps per second of each round: of environments, and of the physics alone."""
    envs = {name: example(batch).Go1(1024) for name, batch in SIDES.items()}
    found = {name: {"environment": [], "physics": []} for name in envs}
    random = np.random.default_rng(0)
    for _ in range(rounds + 1):
        actions = random.normal(0.0, 0.3, (steps, 1024, 12)).astype(np.float32)
        for name, env in envs.items():
            start = time.perf_counter()
            for action in actions:
                done = env.step(action)[1]
                if done.any():
                    env.reset(np.flatnonzero(done))
            middle = time.perf_counter()
            for _ in range(steps):
                env.batch.step(nstep=5)
            end = time.perf_counter()
            found[name]["environment"].append(1024 * steps / (middle - start))
            found[name]["physics"].append(1024 * steps * 5 / (end - middle))
            env.reset(np.arange(1024))
    return {name: {what: each[1:] for what, each in by.items()} for name, by in found.items()}  # the first compiles


# ---- tables ----------------------------------------------------------------------------------------------------------
def speed_table(rounds: int, steps: int) -> str:
    """Returns the table of speeds without learning."""
    found, rows = rates(rounds, steps), []
    for what in ("environment", "physics"):
        peer, own = (found[name][what] for name in SIDES)
        ratio = sorted(b / a for a, b in zip(peer, own, strict=True))
        middle = f"{statistics.median(ratio):.2f} ({ratio[0]:.2f} - {ratio[-1]:.2f})"
        rows.append([f"{what} steps/s", *(f"{statistics.median(each):,.0f}" for each in (peer, own)), middle])
    return markdown(("1024 environments, no learning", *SIDES, "ratio"), rows)


def reached(curve: Curve, level: float) -> int:
    """Returns the first iteration after which the mean of the last rewards is at least a level."""
    mean = np.convolve(curve.reward, np.ones(WINDOW) / WINDOW, "valid")
    return int(np.argmax(mean >= level)) + WINDOW


def training_table(log: Path) -> str:
    """Returns the table of times to the same rewards, and a line with what was run."""
    found, rows = curves(log), []
    means = {name: np.convolve(curve.reward, np.ones(WINDOW) / WINDOW, "valid") for name, curve in found.items()}
    first, best = max(mean[0] for mean in means.values()), min(mean.max() for mean in means.values())
    for level in (first + share * (best - first) for share in LEVELS):
        ends = [reached(curve, level) for curve in found.values()]
        times = [curve.seconds(end) for curve, end in zip(found.values(), ends, strict=True)]
        shown = [f"{total:,.0f} / {cpu:,.0f} ({end})" for (total, cpu), end in zip(times, ends, strict=True)]
        rows.append([f"{level:.2f}", *shown, " / ".join(f"{a / b:.2f}" for a, b in zip(*times, strict=True))])
    columns = ("reward per step", *(f"{name} [s] / CPU [s] (iterations)" for name in SIDES), "ratio / CPU ratio")
    parts = "".join(
        f"- CPU time of an iteration with {n}: simulation {c.rollout_cpu.mean():.2f} s "
        f"(calls of the batch: {c.batch_cpu.mean():.2f} s), update {c.update_cpu.mean():.2f} s.\n"
        for n, c in found.items()
    )
    last = ", ".join(f"{name} {mean[-1]:.2f}" for name, mean in means.items())
    count, seed = len(means["mjbatch"]) + WINDOW - 1, json.loads(log.read_text().splitlines()[0])["seed"]
    return (
        f"{markdown(columns, rows)}\n\nThe second table has the training time until the reward per step reaches "
        f"the value in the first column. The reward is a mean over {WINDOW} iterations. Both trainings have {count} "
        f"iterations of 24,576 steps each (`--iterations {count}`, seed {seed}).\n\n"
        f"{parts}- Last reward: {last}."
    )


def main() -> None:
    parser: argparse.ArgumentParser = arguments(__doc__)
    parser.add_argument("--iterations", type=int, default=600, help="iterations of the training")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=7, help="measured rounds of the speeds")
    parser.add_argument("--steps", type=int, default=10, help="environment steps of a round")
    parser.add_argument("--log", type=Path, default=Path("runs/go1.jsonl"), help="file of the training")
    parser.add_argument("--table", action="store_true", help="no training: the table of the file")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if not given.table:
        train(given.seed, given.iterations, given.log)
    text = f"{speed_table(given.rounds, given.steps)}\n\n{training_table(given.log)}\n\n{origin()}"
    publish("integrations-mjbatch", text, given.write)


if __name__ == "__main__":
    main()
