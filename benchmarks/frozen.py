"""Latency of a frozen robot stepped from C, next to `fl.step` from Python and `mj_step` from C; a minute.

    python benchmarks/frozen.py --rounds 15 --write

All three control the same robot on a floor with the same random controls, new in each step.  They take turns in one
process: each runs episodes of 250 steps in a loop of its language, and each step is timed alone.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from latency import EPISODE, PARTS, ROBOTS, Pair
from report import arguments, markdown, origin, publish

import mujoco  # isort: skip  (the tests' oracle)
import numpy as np

import featherlane as fl
from featherlane.apps.measure.speed_comparison import Ratio
from featherlane.engine.lanes.link import compiler
from featherlane.engine.simulation.frozen.loader import loader

EPISODES = 4  # of a round
SIDES = ("mj_step from C", "fl.step from Python", "fl_step from C")
GOALS = (2.5, 1.3)  # of the last side over each of the others
LOOP = """
#include <stdint.h>
#include <string.h>
#include <time.h>

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

void episode(void (*step)(void *, intptr_t), void *a, intptr_t b, double *ctrl, const double *given, int64_t nu,
             int64_t n, int64_t *times) {
    for (int64_t k = 0; k < n; k++) {
        memcpy(ctrl, given + k * nu, (size_t)nu * sizeof *ctrl);
        int64_t start = now();
        step(a, b);
        times[k] = now() - start;
    }
}
"""
Side = Callable[[np.ndarray], np.ndarray]  # the times [ns] of an episode with these controls (n, nu)


def loop(folder: Path) -> Callable:
    """Returns the function `episode`, compiled."""
    (folder / "loop.c").write_text(LOOP)
    subprocess.run([*compiler(), "-O2", "-shared", "-fPIC", "-o", folder / "loop.so", folder / "loop.c"], check=True)
    return ctypes.CDLL(str(folder / "loop.so")).episode


def mj_step() -> int:
    """Returns the address of mj_step in the oracle's library, which this process has loaded."""
    maps = Path("/proc/self/maps").read_text().splitlines()
    path = next(line.split()[-1] for line in maps if "/libmujoco" in line)
    return address(ctypes.CDLL(path).mj_step)


def address(function) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def sides(name: str, folder: Path) -> tuple[Side, Side, Side]:
    """Returns the three sides of a robot, in the order of SIDES."""
    pair, episode = Pair(name, ROBOTS[name]), loop(folder)
    fl.freeze(pair.model, folder / "robot.flz")
    world, theirs = fl.thaw(folder / "robot.flz"), pair.theirs

    def from_c(step: int, a: int, b: int, ctrl: np.ndarray, reset: Callable[[], None]) -> Side:
        def run(controls: np.ndarray) -> np.ndarray:
            reset()
            times, word = np.zeros(len(controls), np.int64), ctypes.c_void_p
            pointers = [word(each.ctypes.data) for each in (ctrl, controls)]
            counts = [ctypes.c_int64(n) for n in controls.T.shape]
            episode(word(step), word(a), word(b), *pointers, *counts, word(times.ctypes.data))
            return times

        return run

    def from_python(controls: np.ndarray) -> np.ndarray:
        pair.ours.reset()
        model, data, times, now = pair.model, pair.ours, np.zeros(len(controls), np.int64), time.perf_counter_ns
        for k, row in enumerate(controls):
            data.ctrl[:] = row
            start = now()
            fl.step(model, data)
            times[k] = now() - start
        return times

    reset = lambda: mujoco.mj_resetData(pair.mj, theirs)  # noqa: E731
    mujoco_side = from_c(mj_step(), pair.mj._address, theirs._address, theirs.ctrl, reset)
    return mujoco_side, from_python, from_c(address(loader().fl_step), world._handle, 1, world.ctrl, world.reset)


def row(name: str, rounds: int) -> list[object]:
    """Returns percentiles of the sides [us], and ratios of the last side at the median."""
    with tempfile.TemporaryDirectory() as folder:
        every = sides(name, Path(folder))
        pair, random, found = Pair(name, ROBOTS[name]), np.random.default_rng(0), []
        for k in range(rounds + 1):
            times: list[list[np.ndarray]] = [[], [], []]
            for i in range(EPISODES):
                noise = random.uniform(-1.0, 1.0, (EPISODE, pair.mj.nu))
                controls = np.ascontiguousarray(pair.middle + pair.half * noise)
                for side in [(k + i + j) % 3 for j in range(3)]:
                    times[side].append(every[side](controls))
            found.append([np.percentile(np.concatenate(t), PARTS) / 1e3 for t in times])
    values = np.array(found[1:])  # the first round warms up
    median = np.median(values, axis=0)
    parts = [values[:, side, 0] / values[:, 2, 0] for side in (0, 1)]
    ratios: Sequence[Ratio] = [Ratio(float(np.median(p)), float(p.min()), float(p.max())) for p in parts]
    return [name, *(f"{t:.2f}" for t in median.T.ravel()), *ratios]


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--rounds", type=int, default=15, help="measured rounds of each row")
    asked = parser.parse_args()
    rows = [row(name, asked.rounds) for name in ROBOTS]
    columns = ["model", *(f"{side} p{part} [us]" for part in PARTS for side in SIDES)]
    columns += [f"speed over {side}" for side in SIDES[:2]]
    note = (
        f"Each of the {asked.rounds} rounds has {EPISODES * EPISODE} steps of each side. p50 and p99 are percentiles "
        "of the steps of a round, and the table has their medians over the rounds. The last two columns are ratios of "
        "the medians of a round: how many times as fast a frozen robot is from C. The brackets have the least and the "
        f"greatest of the rounds' ratios. The goals for the Panda are {GOALS[0]} and {GOALS[1]}."
    )
    publish("frozen", f"{markdown(columns, rows)}\n\n{note}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    sys.exit(main())
