"""Compares robosuite's tasks with batches of them: speed, memory and images.

    pip install 'featherlane[gym,jit]' 'mujoco==3.9.0'    # and robosuite: see docs/integrations/robosuite.md
    MUJOCO_GL=egl python benchmarks/manipulation.py --cpu --write    # three minutes

Both simulators run in one process with random actions; rounds of both alternate.  Episodes have HORIZON actions, and
resets are part of the time.  robosuite has one environment with soft resets, and observes and rewards as by default.
The worlds begin at different times of their episodes, so that each step resets some of them.

With `--cpu` the benchmark measures processor time, for a machine that other programs use; the batch then has one
thread.  `--no-images` leaves out the rows with images, for a machine without EGL.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import mujoco  # noqa: F401  before `report`: that of robosuite
import numpy as np
import robosuite
from report import ROOT, arguments, markdown, origin, publish

from featherlane.engine.lanes.cores import cores
from featherlane.environments import make_vec
from featherlane.environments.robosuite.task import RobosuiteTask

WORLDS, ROUNDS, ROUND_SECONDS, HORIZON, POOL = 256, 5, 0.5, 200, 32
CAMERAS, SIZE, STATES = ("agentview", "robot0_eye_in_hand"), 128, 16
# the task, worlds, whether with images, the goal of the ratio
ROWS = (
    ("Lift", WORLDS, False, 90),
    ("Door", WORLDS, False, 90),
    ("NutAssembly", WORLDS, False, 50),
    ("PickPlace", WORLDS, False, 40),
    ("Lift", WORLDS, True, 15),
    ("Lift", 1, False, 1),
)
COLUMNS = ("task", "worlds", "robosuite [steps/s]", "float64 [steps/s]", "float32 [steps/s]")
COLUMNS += ("ratio, float64 (min - max)", "ratio, float32", "goal", "memory [GiB]")
CHILD = """
import resource, sys
import numpy as np
from manipulation import batch_of
env = batch_of(sys.argv[1], int(sys.argv[2]), sys.argv[3] == "True", 0)
for _ in range(3):
    env.step(np.zeros(env.action_space.shape))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


def batch_of(name: str, worlds: int, images: bool, nthread: int, dtype: str = "float64") -> Any:
    """Returns a batch of a task, after a reset; the worlds are at different times of their episodes."""
    seen = {"camera_names": CAMERAS, "camera_heights": SIZE, "camera_widths": SIZE} if images else {}
    settings = {"robots": "Panda", "pool": POOL, "horizon": HORIZON, "nthread": nthread, "dtype": dtype}
    env = make_vec(f"robosuite.{name}", worlds, **settings, **seen)
    env.reset(seed=0)
    env.elapsed[:] = np.random.default_rng(1).integers(0, HORIZON, worlds)
    return env


def live_of(name: str, images: bool) -> Any:
    """Returns robosuite's environment of a task, after a reset."""
    seen = {"camera_names": list(CAMERAS), "camera_heights": SIZE, "camera_widths": SIZE} if images else {}
    settings = {"has_renderer": False, "has_offscreen_renderer": images, "use_camera_obs": images}
    env = robosuite.make(name, robots="Panda", horizon=HORIZON, hard_reset=False, seed=0, **settings, **seen)
    env.reset()
    return env


def speeds(name: str, worlds: int, images: bool, clock: Callable[[], float], nthread: int) -> np.ndarray:
    """Returns environment steps per second in each round, (ROUNDS, 3): of robosuite, in float64, in float32."""
    live, rng = live_of(name, images), np.random.default_rng(0)
    low, high = live.action_spec

    def theirs() -> None:
        if live.step(rng.uniform(low, high))[2]:
            live.reset()

    steps, sizes = [theirs], (1, worlds, worlds)
    for dtype in ("float64", "float32"):
        env = batch_of(name, worlds, images, nthread, dtype)
        steps.append(lambda env=env: env.step(rng.uniform(low, high, (worlds, len(low)))))

    def seconds(step: Callable[[], Any], count: int) -> float:
        start = clock()
        for _ in range(count):
            step()
        return clock() - start

    counts = []
    for step in steps:
        seconds(step, 2 if images else HORIZON // 10)  # compiles the kernels
        counts.append(max(2, round(ROUND_SECONDS / (seconds(step, 2) / 2))))
    each = list(zip(steps, counts, sizes, strict=True))
    return np.array([[n * count / seconds(step, count) for step, count, n in each] for _ in range(ROUNDS)])


def memory(name: str, worlds: int, images: bool) -> float:
    """Returns the greatest resident memory of a process with a batch [GiB]."""
    command = [sys.executable, "-c", CHILD, name, str(worlds), str(images)]
    paths = os.pathsep.join([str(ROOT / "benchmarks"), *sys.path])
    found = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths})
    return float(found.stdout.split()[-1])


def differences(name: str) -> dict[str, np.ndarray]:
    """Returns the differences of images of equal states by camera, (STATES, SIZE, SIZE, 3), of 255."""
    env, live, rng = batch_of(name, STATES, True, 1), live_of(name, True), np.random.default_rng(0)
    for _ in range(10):
        observed = env.step(rng.uniform(-1.0, 1.0, env.action_space.shape))[0]
    task: RobosuiteTask = env.task
    model, data = live.sim.model._model, live.sim.data._data
    found: dict[str, list[np.ndarray]] = {camera: [] for camera in CAMERAS}
    for w in range(STATES):
        for field, rows in task.edited.items():
            getattr(model, field)[:] = rows[w].reshape(getattr(model, field).shape)
        data.qpos[:] = env.batch.qpos[w]
        live.sim.forward()
        for camera in CAMERAS:
            image = live.sim.render(camera_name=camera, width=SIZE, height=SIZE)
            found[camera].append(np.abs(observed[f"{camera}_image"][w].astype(int) - image))
    return {camera: np.array(each) for camera, each in found.items()}


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--cpu", action="store_true", help="measure processor time")
    parser.add_argument("--no-images", action="store_true", help="leave out the rows with images")
    parser.add_argument("--tasks", nargs="+", metavar="TASK", help="robosuite's, such as Lift")
    chosen = parser.parse_args()
    logging.disable(logging.WARNING)
    clock, nthread = (time.process_time, 1) if chosen.cpu else (time.perf_counter, cores())
    rows, used = [], [row for row in ROWS if row[0] in (chosen.tasks or [row[0]]) and not (row[2] and chosen.no_images)]
    sizes = [memory(*row[:3]) for row in used]  # first: a child's peak begins with the memory of its parent
    for (name, worlds, images, goal), size in zip(used, sizes, strict=True):
        found = speeds(name, worlds, images, clock, nthread)
        ratios = found[:, 1:] / found[:, :1]
        spread = [f"{np.median(each):.3g} ({each.min():.3g} - {each.max():.3g})" for each in ratios.T]
        rates = [f"{rate:,.0f}" for rate in np.median(found, axis=0)]
        title = f"{name}, two images {SIZE} x {SIZE}" if images else name
        rows.append((title, worlds, *rates, *spread, goal, f"{size:.2f}"))
        print(*rows[-1], file=sys.stderr, flush=True)
    kind, many = "processor" if chosen.cpu else "wall", f"{nthread} thread{'s' * (nthread > 1)}"
    load = " Other programs used the machine at the same time." if chosen.cpu else ""
    notes = [
        f"Steps are actions at 20 Hz, {kind} time. The batch has {many}; robosuite has one environment. "
        f"Random actions, episodes of {HORIZON} actions, resets included. Medians of {ROUNDS} rounds that alternate."
        f"{load} `memory` is the greatest resident memory of a process with robosuite and the batch in float64."
    ]
    if not chosen.no_images:
        lines = [
            (camera, f"{each.mean():.1f}", f"{np.median(each):.0f}", f"{100 * (each > 8).mean():.0f} %", each.max())
            for camera, each in differences("Lift").items()
        ]
        columns = ("camera of Lift", "mean difference", "median", "above 8", "largest")
        notes += [
            f"Differences of images of {STATES} equal states in both simulators, of 255:",
            markdown(columns, lines),
        ]
    text = "\n\n".join([markdown(COLUMNS, rows), *notes, f"{origin()} robosuite {robosuite.__version__}."])
    publish("integrations-robosuite", text, chosen.write)


if __name__ == "__main__":
    main()
