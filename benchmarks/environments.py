"""Gymnasium's MuJoCo tasks in a batch against EnvPool, one thread each, side by side; five minutes.

    pip install -e '.[bench]' && python benchmarks/environments.py --write

Both sides take the same random actions in turns, from separate initial states; a round is some steps of all worlds, and
counts environment steps, not time steps.  `outside` is the share of our time that is not `Batch.step`: actions,
observations, rewards, ends, starts.  Construction and memory are those of 4096 environments, each in a process of its
own, from the call to the first observations.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager

import numpy as np
from report import arguments, markdown, origin, publish

import featherlane.environments as environments
from featherlane.engine.simulation.batch.batch import Batch

SIZES = (256, 4096)
ROUNDS = 7
ROUND_SECONDS = 0.6  # of both sides together, about
MOST = 4096
MEBI = 2**20
COLUMNS = (
    "task", "worlds", "EnvPool [steps/s]", "Featherlane [steps/s]", "ratio (min - max)", "outside `Batch.step`",
    "creation [s], EnvPool / Featherlane", "memory [MiB], EnvPool / Featherlane",
)  # fmt: skip


def envpools(name: str, n: int):
    """EnvPool's vector of n, one thread."""
    import envpool  # pyright: ignore[reportMissingImports]

    return envpool.make(name, env_type="gymnasium", num_envs=n, num_threads=1, seed=1)


def ours(name: str, n: int):
    """Ours."""
    return environments.make_vec(name, n, nthread=1)


SIDES = {"envpool": envpools, "ours": ours}


@contextmanager
def clocked():
    """Seconds that `Batch.step` takes, in a list of one."""
    spent, step = [0.0], Batch.step

    def timed(self, *given, **named):
        start = time.perf_counter()
        step(self, *given, **named)
        spent[0] += time.perf_counter() - start

    Batch.step = timed
    try:
        yield spent
    finally:
        Batch.step = step


def seconds(env, actions) -> float:
    """Of a step for each of the actions."""
    start = time.perf_counter()
    for action in actions:
        env.step(action)
    return time.perf_counter() - start


def race(name: str, n: int) -> dict[str, float]:
    """Both sides in turns."""
    mine, theirs = ours(name, n), envpools(name, n)
    mine.reset(seed=1), theirs.reset()
    rng = np.random.default_rng(0)
    space = mine.action_space

    def drawn(count):
        return [rng.uniform(space.low, space.high).astype(np.float32) for _ in range(count)]

    once = drawn(5)  # and worlds come apart
    taken = (seconds(mine, once) + seconds(theirs, once)) / len(once)
    count = max(3, round(ROUND_SECONDS / taken))
    rounds, outside = [], []
    for _ in range(ROUNDS):
        actions = drawn(count)
        with clocked() as spent:
            own = seconds(mine, actions)
        rounds.append((own, seconds(theirs, actions)))
        outside.append(1.0 - spent[0] / own)
    own, other = np.array(rounds).T
    ratios = other / own
    return {
        "theirs": n * count / np.median(other),
        "ours": n * count / np.median(own),
        "ratio": float(np.median(ratios)),
        "least": ratios.min(),
        "greatest": ratios.max(),
        "outside": float(np.median(outside)),
    }


def build(side: str, name: str) -> None:
    """Print seconds and bytes of 4096 environments of one side."""
    import psutil  # pyright: ignore[reportMissingModuleSource]

    SIDES[side](name, 1).reset()  # libraries and kernels are loaded
    before, start = psutil.Process().memory_info().rss, time.perf_counter()
    env = SIDES[side](name, MOST)
    env.reset()
    taken = time.perf_counter() - start
    print(json.dumps({"seconds": taken, "bytes": psutil.Process().memory_info().rss - before}))


def built(side: str, name: str) -> dict[str, float]:
    """Runs the same measurement in a separate process."""
    done = subprocess.run([sys.executable, __file__, "--build", side, name], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--tasks", nargs="+", default=[task.name for task in environments.gymnasium_v5.TASKS])
    parser.add_argument("--build", nargs=2, metavar=("SIDE", "TASK"), help="what a process of its own measures")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    if asked.build:
        build(*asked.build)
        return
    rows, found = [], {n: [] for n in SIZES}
    for name in asked.tasks:
        sides = {side: built(side, name) for side in SIDES}
        for n in SIZES:
            r = race(name, n)
            found[n].append(r["ratio"])
            last = n == MOST
            took = " / ".join(f"{sides[side]['seconds']:.2f}" for side in SIDES) if last else ""
            held = " / ".join(f"{sides[side]['bytes'] / MEBI:.0f}" for side in SIDES) if last else ""
            spread = f"{r['ratio']:.1f} ({r['least']:.1f} - {r['greatest']:.1f})"
            outside = f"{100 * r['outside']:.0f}%"
            rows.append((name, n, f"{r['theirs']:,.0f}", f"{r['ours']:,.0f}", spread, outside, took, held))
            print(*rows[-1], file=sys.stderr)
    means = " ".join(
        f"With {n} worlds, the geometric mean of the ratios is {np.exp(np.mean(np.log(ratios))):.1f}, and the least "
        f"ratio is {min(ratios):.1f}."
        for n, ratios in found.items()
    )
    import envpool  # pyright: ignore[reportMissingImports]

    versions = f"EnvPool {envpool.__version__}"
    note = (
        f"{means} Each engine runs on one thread, in float64. Each ratio is the median of several measurements, with "
        f"the smallest and the largest ratio in brackets. {versions} was measured."
    )
    publish("environments", f"{markdown(COLUMNS, rows)}\n\n{note}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
