"""What a sweep costs beside its rollouts: 10,000 of them, against plain batches; five minutes.

    python benchmarks/sweep.py --write

Plain batches draw the same kind of numbers for all worlds at once, roll out 1024 worlds at a time with two threads, and reduce them
in the same way.  A sweep does it here with two threads, or by two workers of Ray with a thread each, which are there
when the clock starts.  All take turns; a ratio above 1 says that the sweep is quicker.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from report import arguments, markdown, origin, publish

import featherlane as fl
from featherlane import distributed as fd

MODEL, WORLDS, THREADS = "humanoid", 1024, 2
PARAMETERS = {
    "body_mass + body_inertia": fd.uniform(0.8, 1.2, apply="scale"),
    "geom_friction[:, 0]": fd.uniform(0.5, 1.5),
}


def plain(model: fl.Model, total: int, nstep: int) -> None:
    """The same rollouts by hand."""
    rng, batch = np.random.default_rng(0), fl.Batch(model, WORLDS, nthread=THREADS)
    height = np.empty(total)
    for start in range(0, total, WORLDS):
        ids = np.arange(min(WORLDS, total - start))
        scale = rng.uniform(0.8, 1.2, len(ids))
        batch.expand("body_mass")[ids] = model.body_mass * scale[:, None]
        batch.expand("body_inertia")[ids] = model.body_inertia * scale[:, None, None]
        batch.expand("geom_friction")[ids, :, 0] = rng.uniform(0.5, 1.5, (len(ids), 1))
        batch.set_const(ids)
        batch.reset(ids)
        recorded = batch.rollout(nstep, record=("qpos",), ids=ids)["qpos"]
        height[start : start + len(ids)] = recorded[:, -1, 2]


def swept(model: fl.Model, total: int, nstep: int, **where) -> None:
    """The same as a sweep."""
    fd.sweep(model, PARAMETERS, nstep, {"height": "final qpos[2]"}, nsample=total, progress=False, **where)


def seconds(run: Callable[[], None]) -> float:
    """How long it takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def race(total: int, nstep: int, rounds: int) -> list[str]:
    """Rollouts in a second by hand, and how much of that the two sweeps reach."""
    model = fl.load(MODEL)
    ways: list[Callable[[], None]] = [
        lambda: plain(model, total, nstep),
        lambda: swept(model, total, nstep, nthread=THREADS),
        lambda: swept(model, total, nstep, nodes=2, nthread=1),
    ]
    for way in ways[1:]:
        way()  # kernels are loaded, workers know their part
    taken = np.array([[seconds(way) for way in ways] for _ in range(rounds)])
    shown = [f"{total / np.median(taken[:, 0]):.0f}"]
    for ratio in (taken[:, 0] / taken[:, 1], taken[:, 0] / taken[:, 2]):
        low, middle, high = np.quantile(ratio, (0.25, 0.5, 0.75))
        shown.append(f"{middle:.2f} ± {(high - low) / 2:.2f}")
    return shown


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="turns of each")
    parser.add_argument("--rollouts", type=int, default=10_000, help="of each")
    asked = parser.parse_args()
    with fd.connect(cores=2):
        rows = [[steps, *race(asked.rollouts, steps, asked.rounds)] for steps in (25, 100, 400)]
    columns = ("steps of a rollout", "rollouts/s by hand", "sweep / by hand", "sweep by Ray / by hand")
    title = f"{asked.rollouts:,} rollouts of a {MODEL}."
    publish("sweep", f"{title}\n\n{markdown(columns, rows)}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
