"""Measures `Batch.set_const` of some worlds, as at randomized resets, against a step of a world; takes a minute.

    python benchmarks/set_const.py --write

Masses, inertias and armatures differ by world.  Both run alternately in one thread.  "By MuJoCo" are the same fields by
one call of mj_setConst for each world, as `set_variant` computes them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from report import arguments, markdown, origin, publish

import featherlane as fl
from featherlane.engine.simulation.batch.constants import dependent_worlds

MODELS, NWORLD, RESETS, NSTEP = ("quadruped", "humanoid", "hand"), 256, (16, 128), 20
FIELDS = ("body_mass", "body_inertia", "dof_armature")


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def measured(name: str, reset: int, rounds: int) -> list[object]:
    """Returns a row of the table: median times of one world [us], and steps that a world's `set_const` takes."""
    model, rng, ids = fl.bundled(name), np.random.default_rng(0), np.arange(reset)
    batch = fl.Batch(model, NWORLD, nthread=1)
    for field in FIELDS:
        batch.expand(field)[...] *= rng.uniform(0.9, 1.1, (NWORLD, *[1] * getattr(model, field).ndim))
    batch.set_const()
    values = {field: np.array(batch.expand(field)[ids]) for field in FIELDS}
    worlds, times = dependent_worlds(model), []
    worlds.compiled(values, reset)
    batch.step(NSTEP)
    for _ in range(rounds):
        step = seconds(lambda: batch.step(NSTEP)) / (NSTEP * NWORLD)
        own = seconds(lambda: batch.set_const(ids)) / reset
        mujoco = seconds(lambda: worlds.compiled(values, reset)) / reset
        times.append((step, own, mujoco))
    step, own, mujoco = 1e6 * np.median(times, axis=0)
    return [name, reset, f"{step:.1f}", f"{own:.1f}", f"{mujoco:.1f}", f"{own / step:.1f}"]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=31, help="turns of each")
    asked = parser.parse_args()
    rows = [measured(name, reset, asked.rounds) for name in MODELS for reset in RESETS]
    columns = ("model", "worlds", "step [us]", "set_const [us]", "by MuJoCo [us]", "steps per set_const")
    text = f"Time of one world: `set_const` of some of {NWORLD} worlds, and a step of all."
    publish("set_const", f"{text}\n\n{markdown(columns, rows)}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
