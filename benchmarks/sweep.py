"""Measures the overhead of a sweep of 10,000 rollouts against plain batches, also with Ray; takes five minutes.

    python benchmarks/sweep.py --write

Plain batches draw the same kind of numbers for all worlds at once, roll out 1024 worlds at a time with two threads, and
reduce them in the same way.  A sweep does it with two threads, too; the two take turns, and what is compared is the
time of the processor, which does not show what else the machine does.  By Ray, with two workers of one thread that are
there when the clock starts, it is how long the workers have chunks to compute, of the whole time of the call.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from report import arguments, markdown, origin, publish

import featherlane as fl
from featherlane import distributed as fd
from featherlane.distributed.sweeps import run
from featherlane.distributed.sweeps.workers import Workers

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
    fd.sweep(model, PARAMETERS, nstep, reduce={"height": "final qpos[2]"}, nsample=total, progress=False, **where)


def processor_seconds(run: Callable[[], None]) -> float:
    """What all threads of this process take together."""
    start = time.process_time()
    run()
    return time.process_time() - start


class Watched(Workers):
    """Workers that report their total computing time."""

    seconds = 0.0

    def _got(self, reference, what):
        columns, seconds = super()._got(reference, what)
        Watched.seconds += seconds
        return columns, seconds


def share_at_work(model: fl.Model, total: int, nstep: int) -> float:
    """How much of a call's time its two workers compute."""
    Watched.seconds, start = 0.0, time.perf_counter()
    swept(model, total, nstep, nodes=2, nthread=1)
    return Watched.seconds / (2.0 * (time.perf_counter() - start))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="turns of each")
    parser.add_argument("--rollouts", type=int, default=10_000, help="of each")
    asked = parser.parse_args()
    model, total, rows = fl.bundled(MODEL), asked.rollouts, []
    run.Workers = Watched
    with fd.connect(cores=2):
        swept(model, 100, 1, nthread=THREADS)
        swept(model, 100, 1, nodes=2, nthread=1)  # kernels are loaded, workers know their part
        for nstep in (50, 200, 500):
            ratios, shares = [], []
            for _ in range(asked.rounds):
                by_hand = processor_seconds(lambda n=nstep: plain(model, total, n))
                ratios.append(by_hand / processor_seconds(lambda n=nstep: swept(model, total, n, nthread=THREADS)))
                shares.append(100.0 * share_at_work(model, total, nstep))
            shown = f"{np.median(ratios):.2f} ({min(ratios):.2f} - {max(ratios):.2f})"
            rows.append([nstep, shown, f"{np.median(shares):.1f} % ({min(shares):.1f} - {max(shares):.1f})"])
    columns = ("steps per rollout", "CPU time, plain batches / sweep", "Ray workers computing")
    publish("sweep", f"{total:,} rollouts of a {MODEL}.\n\n{markdown(columns, rows)}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
