"""Compares dm_control's tasks in a batch of 1024 worlds with EnvPool's, all cores, in turns; about 20 minutes.

    pip install -e '.[bench,dm-control]' && python benchmarks/integrations_dm_control.py --write

Both sides step with random actions in turns.  A round lasts about 0.6 s for both sides together and counts environment
steps (actions), not time steps.  `outside` is the share of our time that is not `Batch.step`.

EnvPool loads the model, with its textures of 11 MB, once for each environment: 1024 environments take 13 GiB and
minutes.  Its worlds step one after the other, so by default it has fewer of them (`--envpool-worlds`), which is no
disadvantage: their data stays in the caches.

With `--cpu` the benchmark measures processor time instead of wall time, for a machine that other programs use.
"""

from __future__ import annotations

import re
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from report import arguments, markdown, origin, publish

import featherlane.environments as environments
from environments import clocked
from featherlane.engine.lanes.cores import cores
from featherlane.environments.dm_control import TASKS

WORLDS, ROUNDS, ROUND_SECONDS = 1024, 7, 0.6
ENVPOOL_WORLDS = 64
COLUMNS = ("task", "EnvPool [steps/s]", "Featherlane [steps/s]", "ratio (min - max)", "outside `Batch.step`")
TARGET = 8.0  # of the geometric mean


def envpools(name: str, nworld: int, nthread: int):
    """Returns EnvPool's environments of a task."""
    import envpool  # pyright: ignore[reportMissingImports]

    words = re.split("[-_]", name)
    camel = "".join(word[:1].upper() + word[1:] for word in words)
    return envpool.make(f"{camel}-v1", env_type="gymnasium", num_envs=nworld, num_threads=nthread, seed=1)


def compare(name: str, other: int, nthread: int, clock: Callable[[], float]) -> tuple[float, float, np.ndarray, float]:
    """Returns environment steps per second of EnvPool and of Featherlane, the ratios of the rounds, and `outside`.

    Args:
        name: the task.
        other: EnvPool's number of worlds.
        nthread: threads of each side.
        clock: returns a time [s].
    """
    ours = environments.make_vec(f"dm_control.{name}", WORLDS, nthread=nthread)
    theirs = envpools(name, other, nthread)
    ours.reset(seed=1), theirs.reset()
    rng, space = np.random.default_rng(0), ours.single_action_space

    def sampled(n, count):
        return [rng.uniform(space.low, space.high, (n, *space.shape)) for _ in range(count)]

    def seconds(env, actions):
        start = clock()
        for action in actions:
            env.step(action)
        return clock() - start

    counts = {}
    for env, n in ((ours, WORLDS), (theirs, other)):
        seconds(env, sampled(n, 5))  # also lets worlds differ
        counts[n] = max(3, round(ROUND_SECONDS / 2 * 5 / seconds(env, sampled(n, 5))))
    rounds, outside = [], []
    for _ in range(ROUNDS):
        mine, them = sampled(WORLDS, counts[WORLDS]), sampled(other, counts[other])
        with clocked() as spent:
            start = time.perf_counter()
            taken = seconds(ours, mine)
            wall = time.perf_counter() - start
        rounds.append((other * counts[other] / seconds(theirs, them), WORLDS * counts[WORLDS] / taken))
        outside.append(1.0 - spent[0] / wall)
    theirs.close()
    speeds = np.array(rounds)
    ratios = speeds[:, 1] / speeds[:, 0]
    return float(np.median(speeds[:, 0])), float(np.median(speeds[:, 1])), ratios, float(np.median(outside))


def main() -> None:
    parser = arguments(__doc__ or "")
    names = [task.name.removeprefix("dm_control.") for task in TASKS]
    parser.add_argument("--tasks", nargs="+", default=names, choices=names, metavar="TASK")
    parser.add_argument("--envpool-worlds", type=int, default=ENVPOOL_WORLDS, help="EnvPool's environments")
    parser.add_argument("--cpu", action="store_true", help="measure processor time")
    parser.add_argument("--nthread", type=int, default=cores(), help="threads of both sides")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    rows, ratios, clock = [], [], time.process_time if chosen.cpu else time.perf_counter
    for name in chosen.tasks:
        other, own, each, outside = compare(name, chosen.envpool_worlds, chosen.nthread, clock)
        ratios.append(np.median(each))
        spread = f"{ratios[-1]:.1f} ({each.min():.1f} - {each.max():.1f})"
        rows.append((f"`{name}`", f"{other:,.0f}", f"{own:,.0f}", spread, f"{100 * outside:.0f}%"))
        print(*rows[-1], file=sys.stderr, flush=True)
    import envpool  # pyright: ignore[reportMissingImports]

    mean = np.exp(np.mean(np.log(ratios)))
    time_of = "processor" if chosen.cpu else "wall"
    note = (
        f"The geometric mean of the ratios is {mean:.1f} (target: {TARGET:g}), and the smallest ratio is "
        f"{min(ratios):.1f}. Featherlane has {WORLDS} worlds, and EnvPool {envpool.__version__} has "
        f"{chosen.envpool_worlds} worlds. Each has {chosen.nthread} thread{'s' * (chosen.nthread > 1)}. "
        "More worlds do not increase EnvPool's speed, and each world of EnvPool takes 13 MiB.\n"
        f"Speeds are steps per second of {time_of} time, in float64. "
        "EnvPool and Featherlane run alternately in several rounds.\n"
        "A ratio is the speed of Featherlane divided by that of EnvPool. The table has the median of the rounds' "
        "ratios, with their minimum and maximum in brackets.\n"
        "The last column is the share of Featherlane's wall time outside of `Batch.step`."
    )
    publish("integrations-dm-control", f"{markdown(COLUMNS, rows)}\n\n{note}\n\n{origin()}", chosen.write)


if __name__ == "__main__":
    main()
