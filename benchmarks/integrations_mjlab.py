"""Velocity tasks of mjlab on Featherlane against mjlab's CPU device and against mjbatch; about five minutes.

    pip install 'featherlane[mjlab]' mjbatch-uni==0.2.5 && python benchmarks/integrations_mjlab.py --write

All sides run in one process and step in turns, with equal random actions; a round is a few environment steps of each.
mjbatch (C MuJoCo in threads) runs behind Featherlane's simulation class, so that mjlab's work is the same.  mjlab's CPU
device steps fewer environments, because its time is proportional to their number.  Physics uses all cores, PyTorch one
thread.

`--train FOLDER` trains with mjlab's command `train` in float32 and in float64, with five seeds each (an hour on two
cores).  A training whose log is in the folder is not repeated.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import mjbatch  # pyright: ignore[reportMissingImports]
import numpy as np
import torch
from mjlab.envs import ManagerBasedRlEnv
from mjlab.tasks.registry import load_env_cfg
from report import arguments, markdown, origin, publish

from featherlane.engine.simulation.query.ray import Hits
from featherlane.integrations import mjlab as integration
from featherlane.integrations.mjlab.simulation import Simulation

TASKS = ("Mjlab-Velocity-Flat-Unitree-Go1", "Mjlab-Velocity-Flat-Unitree-G1")
FEW = 16  # environments of mjlab's CPU device
TRAININGS = {"Mjlab-Cartpole-Swingup": 100, "Mjlab-Velocity-Flat-Unitree-Go1": 200}  # iterations
ENVS, SEEDS = 256, range(1, 6)  # of a training
LAST = 10  # iterations of which the mean return counts
TRAINED = ("task", "iterations", *(f"{p}: return (least - greatest)" for p in ("float64", "float32")))


class MjbatchBatch:
    """What `Simulation` calls of a `featherlane.Batch`, on a `mjbatch.Batch`, with float32 arrays."""

    def __init__(self, mj_model, nworld: int):
        self.batch, self.nworld = mjbatch.Batch(mj_model, nworld), nworld
        self.rows, self.bound, self.expanded_fields = {}, {}, {}
        self.nreset = np.zeros(nworld)

    def mute(self):
        pass

    def row_memory(self, name):
        if name not in self.rows:
            self.rows[name] = self.batch.bind(name, np.float32)
        return self.rows[name].reshape(self.nworld, 1) if name == "time" else self.rows[name]

    def bind(self, name):
        if name not in self.bound:
            self.bound[name] = self.batch.bind(name, np.float32)
        return self.bound[name]

    def expand(self, name):
        if name not in self.expanded_fields:
            self.expanded_fields[name] = self.batch.expand(name)
        return self.expanded_fields[name]

    expanded = expand

    def step(self):
        self.batch.step()

    def forward(self):
        self.batch.forward()

    def reset(self, ids, forward):
        if len(ids):
            self.batch.reset(ids)

    def ray(self, point, direction, geomgroup, flg_static, bodyexclude, ids):
        n, nray = point.shape[:2]
        distance, geom = np.empty((n, nray), np.float32), np.empty((n, nray), np.int32)
        normal, group = np.empty((n, nray, 3), np.float32), np.array(geomgroup, np.uint8)
        exclude = np.ascontiguousarray(bodyexclude[0], np.int32)
        self.batch.rays(point, direction, distance, geom, normal, group, flg_static, exclude)
        return Hits(distance, geom, normal)


class MjbatchSimulation(Simulation):
    """mjlab's simulation on C MuJoCo in threads."""

    def new_batch(self, model):
        return MjbatchBatch(model.mj_model, self.num_envs)

    def set_constants(self, worlds, inputs):
        self.batch.batch.set_const(worlds)


def made(task: str, side: str, num_envs: int) -> ManagerBasedRlEnv:
    """Returns a reset environment of one side."""
    integration.stop()
    if side != "mjlab":
        integration.use("float64" if side == "float64" else "float32")
    if side == "mjbatch":
        integration.replace_simulation(MjbatchSimulation)
    cfg = load_env_cfg(task)
    cfg.scene.num_envs, cfg.seed = num_envs, 0
    env = ManagerBasedRlEnv(cfg, device="cpu")
    integration.stop()
    env.reset()
    return env


def rates(envs: dict[str, ManagerBasedRlEnv], rounds: int, steps: int) -> dict[str, list[float]]:
    """Returns environment steps per second of each side in each round."""
    found = {side: [] for side in envs}
    random, one = torch.Generator().manual_seed(0), envs["mjbatch"]
    shape = steps, one.num_envs, one.single_action_space.shape[0]
    for k in range(rounds + 1):
        action = 2.0 * torch.rand(shape, generator=random) - 1.0
        for side, env in envs.items():
            n = 1 if side == "mjlab" else steps
            torch.manual_seed(k)  # equal commands and noise on all sides
            start = time.perf_counter()
            for each in action[:n, : env.num_envs]:
                env.step(each)
            found[side].append(n * env.num_envs / (time.perf_counter() - start))
        if k == 0:
            check_equal(envs)
    return {side: each[1:] for side, each in found.items()}  # the first round compiles


def check_equal(envs: dict[str, ManagerBasedRlEnv]) -> None:
    """Raises an error unless the sides simulate the same motion, after a few steps: contacts amplify roundings."""
    expected = envs["mjbatch"].sim.data.qpos.clone()
    for side in ("float64", "float32"):
        difference = (envs[side].sim.data.qpos - expected).abs().amax(1)
        if difference.median() > 1e-4:
            raise RuntimeError(f"{side}: half of the worlds differ from mjbatch by more than {difference.median():.2g}")


def ratio(found: dict[str, list[float]], side: str, other: str) -> str:
    """Returns the median of the rounds' ratios, with the smallest and the largest."""
    each = sorted(a / b for a, b in zip(found[side], found[other], strict=True))
    return f"{statistics.median(each):.3g} ({each[0]:.3g} - {each[-1]:.3g})"


def train(task: str, precision: str, seed: int, folder: Path) -> list[float]:
    """Returns the mean return of each iteration of a training."""
    log, iterations = folder / f"{task}_{precision}_{seed}.log", TRAININGS[task]
    if not log.exists():
        command = [str(Path(sys.executable).with_name("train")), task, "--gpu-ids", "None", "--log-root", str(folder)]
        given = {"env.scene.num-envs": ENVS, "agent.max-iterations": iterations, "agent.seed": seed}
        given |= {"agent.logger": "tensorboard", "agent.save-interval": iterations, "agent.run-name": log.stem}
        command += [word for name, value in given.items() for word in (f"--{name}", str(value))]
        variables = {**os.environ, "FEATHERLANE_MJLAB": precision, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, cwd=folder, env=variables, stdout=subprocess.PIPE, check=True, text=True)
        log.write_text(done.stdout)
    return [float(x) for x in re.findall(r"Mean reward: +([-\d.]+)", log.read_text())]


def trainings(folder: Path) -> list[tuple[str, ...]]:
    """Returns the rows of `TRAINED`; as many trainings run at a time as there are cores."""
    folder = folder.resolve()
    folder.mkdir(exist_ok=True)
    rows = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for task, iterations in TRAININGS.items():
            runs = [[pool.submit(train, task, p, seed, folder) for seed in SEEDS] for p in ("float64", "float32")]
            rows.append((task, str(iterations)))
            for each in runs:
                ends = sorted(statistics.mean(run.result()[-LAST:]) for run in each)
                rows[-1] += (f"{statistics.median(ends):.3g} ({ends[0]:.3g} - {ends[-1]:.3g})",)
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--train", type=Path, metavar="FOLDER", help="train in both precisions")
    parser.add_argument("--envs", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=5)
    given = parser.parse_args()
    if given.train:
        sizes = f"{ENVS} environments, {len(SEEDS)} seeds, means of {LAST} iterations, mjlab {version('mjlab')}."
        where = origin().replace(str(given.train), "FOLDER")
        text = f"{markdown(TRAINED, trainings(given.train))}\n\n{sizes}\n\n{where}"
        publish("mjlab-training", text, given.write)
        return
    torch.set_num_threads(1)
    columns = ("task", "mjlab's CPU device [steps/s]", "mjbatch [steps/s]", "float64 [steps/s]", "float32 [steps/s]")
    columns += ("float64 / mjbatch", "float32 / mjbatch")
    rows = []
    for task in TASKS:
        sizes = {"mjlab": FEW, "mjbatch": given.envs, "float64": given.envs, "float32": given.envs}
        found = rates({side: made(task, side, n) for side, n in sizes.items()}, given.rounds, given.steps)
        speeds = [f"{statistics.median(found[side]):,.0f}" for side in sizes]
        rows.append([task, *speeds, ratio(found, "float64", "mjbatch"), ratio(found, "float32", "mjbatch")])
        print(rows[-1], flush=True)
    versions = ", ".join(f"{name} {version(name)}" for name in ("mjlab", "mjbatch-uni", "torch"))
    sizes = f"{given.envs} environments ({FEW} on mjlab's CPU device), {versions}."
    publish("integrations-mjlab", f"{markdown(columns, rows)}\n\n{sizes}\n\n{origin()}", given.write)


if __name__ == "__main__":
    main()
