"""Speed of `integrations.mujoco_rollout` against `mujoco.rollout`, alternated in this process; a minute.

    python benchmarks/integrations_mujoco_rollout.py --write

Each case rolls out 50 steps from the first keyframe (or the default state) under random controls, with `Rollout` on all
cores; one rollout runs in the calling thread.  `--go1 FILE` adds Unitree's Go1 (unitree_go1/scene.xml of MuJoCo
Menagerie).
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import mujoco
import numpy as np
from mujoco import rollout as theirs
from report import arguments, markdown, origin, publish, source_of

from featherlane.apps.measure.speed_comparison import ratio
from featherlane.engine.lanes.cores import cores
from featherlane.integrations import mujoco_rollout as ours

NSTEP, SECONDS = 50, 0.3  # steps of a rollout; least duration of a measurement
MODELS = ("bundled/humanoid", "bundled/quadruped", "bundled/cartpole")
CASES = (1, 1024)  # rollouts of a call
COLUMNS = ("model", "rollouts", "MuJoCo [1000 steps/s]", "mujoco_rollout [1000 steps/s]", "ratio (min - max)")


def timed(call: Callable[[], object]) -> float:
    """Returns the seconds of one call, of as many as take SECONDS."""
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < SECONDS:
        call()
        count += 1
    return (time.perf_counter() - start) / count


def row(name: str, file: str, n: int, rounds: int) -> list[str]:
    """Returns the row of a model and a number of rollouts."""
    model = mujoco.MjModel.from_xml_path(file)
    nthread = 0 if n == 1 else cores()
    data = [mujoco.MjData(model) for _ in range(max(nthread, 1))]
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data[0], 0)
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    start = np.zeros(mujoco.mj_stateSize(model, full))
    mujoco.mj_getState(model, data[0], start, full)
    control = data[0].ctrl + np.random.default_rng(0).uniform(-0.1, 0.1, (n, NSTEP, model.nu))
    pools = [module.Rollout(nthread=nthread) for module in (theirs, ours)]
    calls = [lambda pool=pool: pool.rollout(model, data, start, control) for pool in pools]
    for call in calls:
        call()
    seconds = np.array([[timed(call) for call in calls] for _ in range(rounds)]).T
    pace = [f"{n * NSTEP / statistics.median(side) / 1000:.3g}" for side in seconds]
    return [name, str(n), *pace, str(ratio(*seconds))]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="measured rounds")
    parser.add_argument("--go1", default="", help="file of the Go1")
    asked, rows = parser.parse_args(), []
    files = {name: source_of(name) for name in MODELS} | ({"menagerie/go1": asked.go1} if asked.go1 else {})
    for name, file in files.items():
        for n in CASES:
            rows.append(row(name, file, n, asked.rounds))
            print(rows[-1], file=sys.stderr)
    note = f"{NSTEP} steps in each rollout, float64; 1024 rollouts on all cores, one rollout in the calling thread."
    publish("integrations-mujoco-rollout", f"{markdown(COLUMNS, rows)}\n\n{note}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
