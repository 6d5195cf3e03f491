"""Compares Gymnasium's MuJoCo environments with ours, one world each: `use`, `featherlane/...`, and the porting page's.

    pip install -e '.[gym-mujoco]' && python benchmarks/integrations_gymnasium.py --write    # two minutes

Both environments step with the same random actions in turns; a round lasts about 0.6 s, resets are not counted.
`gymnasium.make` creates all of them, with its wrappers.  The table of `gymnasium.make("featherlane/...")` is in
docs/training.md, the others in docs/integrations/gymnasium.md, which also has the environments `Jump` and `JumpTask`;
the batch of 1024 worlds uses all cores.

With `--cpu` the benchmark measures processor time, for a machine that other programs use; the batch then has one
thread.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from report import ROOT, arguments, markdown, origin, publish

from featherlane.engine.lanes.cores import cores
from featherlane.environments import gymnasium_v5
from featherlane.integrations.gymnasium import use

WORLDS, ROUNDS, ROUND_SECONDS = 1024, 7, 0.6
PAGE = ROOT / "docs" / "integrations" / "gymnasium.md"
NAMES = [task.name.removesuffix("-v5") for task in gymnasium_v5.TASKS]
SWAPPED = ("Ant", "HalfCheetah", "Humanoid", "InvertedPendulum")  # tasks that are also compared with `use`
COLUMNS = ("environment", "MuJoCo [steps/s]", "Featherlane [steps/s]", "ratio (min - max)")


def seconds(env: Any, actions: list[np.ndarray], clock: Callable[[], float]) -> float:
    """Returns the time of steps; episodes that end are reset outside of it."""
    spent, vector = 0.0, hasattr(env, "num_envs")
    for action in actions:
        start = clock()
        ended = env.step(action)[2]
        spent += clock() - start
        if not vector and ended:
            env.reset()
    return spent


def compare(theirs: Any, ours: Any, clock: Callable[[], float]) -> np.ndarray:
    """Returns environment steps per second of both in each round, (ROUNDS, 2)."""
    rounds, counts = [], []
    for env in (theirs, ours):
        env.reset(seed=0)
        env.action_space.seed(0)
        seconds(env, [env.action_space.sample() for _ in range(10)], clock)
        trial = [env.action_space.sample() for _ in range(20)]
        counts.append(max(3, round(ROUND_SECONDS / 2 * 20 / max(seconds(env, trial, clock), 1e-6))))
    for _ in range(ROUNDS):
        speeds = []
        for env, count in zip((theirs, ours), counts, strict=True):
            actions = [env.action_space.sample() for _ in range(count)]
            speeds.append(count * getattr(env, "num_envs", 1) / seconds(env, actions, clock))
        rounds.append(speeds)
    return np.array(rounds)


def ported() -> dict[str, Any]:
    """Returns the names that the page's blocks define."""
    names: dict[str, Any] = {"__name__": "page"}
    with contextlib.redirect_stdout(io.StringIO()):
        exec("".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)), names)
    return names


def row(name: str, speeds: np.ndarray) -> tuple[str, ...]:
    ratios = speeds[:, 1] / speeds[:, 0]
    theirs, ours = np.median(speeds, axis=0)
    digits = 2 if ratios.max() < 10 else 0
    spread = " - ".join(f"{ratio:.{digits}f}" for ratio in (ratios.min(), ratios.max()))
    return name, f"{theirs:,.0f}", f"{ours:,.0f}", f"{np.median(ratios):.{digits}f} ({spread})"


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--tasks", nargs="+", default=NAMES, metavar="TASK", help="Gymnasium's, such as Ant")
    parser.add_argument("--cpu", action="store_true", help="measure processor time")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    clock = time.process_time if chosen.cpu else time.perf_counter
    nthread = 1 if chosen.cpu else cores()

    def row_of(name: str, make: Callable[[str], Any]) -> tuple[str, ...]:
        found = row(f"`{name}-v5`", compare(gym.make(f"{name}-v5"), make(f"{name}-v5"), clock))
        print(*found, file=sys.stderr, flush=True)
        return found

    single = [row_of(name, lambda name: gym.make(f"featherlane/{name}")) for name in NAMES if name in chosen.tasks]
    rows = [row_of(name, lambda name: use(gym.make(name))) for name in SWAPPED if name in chosen.tasks]
    page = ported()
    rows.append(row("`use(Jump())`", compare(page["Jump"](), use(page["Jump"]()), clock)))
    batch = page["environments"].TaskEnv(page["JumpTask"](), WORLDS, nthread=nthread)
    rows.append(row(f"`JumpTask`, {WORLDS} worlds", compare(page["Jump"](), batch, clock)))
    kind, many = "processor" if chosen.cpu else "wall", f"{nthread} thread{'s' * (nthread > 1)}"
    last = f"{kind} time, float64, Gymnasium {gym.__version__}.\n\n{origin()}"
    note = f"One world on one thread, the batch on {many}; {last}"
    publish("integrations-gymnasium", f"{markdown(COLUMNS, rows)}\n\n{note}", chosen.write)
    publish("single-environments", f"{markdown(COLUMNS, single)}\n\nOne world on one thread; {last}", chosen.write)


if __name__ == "__main__":
    main()
