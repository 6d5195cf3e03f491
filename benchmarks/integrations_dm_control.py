"""dm_control's tasks in a batch against EnvPool, 1024 worlds, all cores, alternated; about six minutes.

    pip install -e '.[bench,dm-control]' && python benchmarks/integrations_dm_control.py --write

Both sides step with the same random actions in turns.  A round lasts about 0.6 s for both sides together and counts
environment steps (actions), not time steps.  `outside` is the share of our time that is not `Batch.step`.
"""

from __future__ import annotations

import re
import sys
import warnings

import numpy as np
from report import arguments, markdown, origin, publish

import featherlane.environments as environments
from environments import clocked, seconds
from featherlane.environments.dm_control import TASKS
from featherlane.lanes.cores import cores

WORLDS, ROUNDS, ROUND_SECONDS = 1024, 7, 0.6
COLUMNS = ("task", "EnvPool [steps/s]", "Featherlane [steps/s]", "ratio (min - max)", "outside `Batch.step`")
TARGET = 8.0  # of the geometric mean


def envpools(name: str, nthread: int):
    """Returns EnvPool's environments of a task."""
    import envpool  # pyright: ignore[reportMissingImports]

    words = re.split("[-_]", name)
    camel = "".join(word[:1].upper() + word[1:] for word in words)
    return envpool.make(f"{camel}-v1", env_type="gymnasium", num_envs=WORLDS, num_threads=nthread, seed=1)


def race(name: str, nthread: int) -> tuple[float, float, np.ndarray, float]:
    """Returns environment steps per second of EnvPool and of Featherlane, the ratios of the rounds, and `outside`."""
    ours = environments.make_vec(f"dm_control.{name}", WORLDS, nthread=nthread)
    theirs = envpools(name, nthread)
    ours.reset(seed=1), theirs.reset()
    rng, space = np.random.default_rng(0), ours.action_space

    def sampled(count):
        return [rng.uniform(space.low, space.high) for _ in range(count)]

    first = sampled(5)
    taken = (seconds(ours, first) + seconds(theirs, first)) / len(first)
    count = max(3, round(ROUND_SECONDS / taken))
    rounds, outside = [], []
    for _ in range(ROUNDS):
        actions = sampled(count)
        with clocked() as spent:
            own = seconds(ours, actions)
        rounds.append((seconds(theirs, actions), own))
        outside.append(1.0 - spent[0] / own)
    speeds = WORLDS * count / np.median(rounds, axis=0)
    other, own = np.array(rounds).T
    return speeds[0], speeds[1], other / own, float(np.median(outside))


def main() -> None:
    parser = arguments(__doc__ or "")
    names = [task.name.removeprefix("dm_control.") for task in TASKS]
    parser.add_argument("--tasks", nargs="+", default=names, choices=names, metavar="TASK")
    parser.add_argument("--nthread", type=int, default=cores(), help="threads of both sides")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    rows, ratios = [], []
    for name in chosen.tasks:
        other, own, each, outside = race(name, chosen.nthread)
        ratios.append(np.median(each))
        spread = f"{ratios[-1]:.1f} ({each.min():.1f} - {each.max():.1f})"
        rows.append((f"`{name}`", f"{other:,.0f}", f"{own:,.0f}", spread, f"{100 * outside:.0f}%"))
        print(*rows[-1], file=sys.stderr, flush=True)
    import envpool  # pyright: ignore[reportMissingImports]

    mean = np.exp(np.mean(np.log(ratios)))
    note = (
        f"Geometric mean of the ratios: {mean:.1f} (target {TARGET:g}), minimum {min(ratios):.1f}. {WORLDS} worlds, "
        f"{chosen.nthread} threads each, float64, EnvPool {envpool.__version__}."
    )
    publish("integrations-dm-control", f"{markdown(COLUMNS, rows)}\n\n{note}\n\n{origin()}", chosen.write)


if __name__ == "__main__":
    main()
