"""Workers of Ray's against a local batch: throughput, and what a call costs; three minutes.

    python benchmarks/distributed.py --write

Both have as many threads in all, and take the same steps from the same states, alternately.  A ratio of 1 means
that the distribution costs nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from report import arguments, markdown, origin, publish

import featherlane as fl
from featherlane.distributed import Batch, connect

SETTLED = 50  # steps before it counts
CALLS = {
    "step()": lambda b, control: b.step(),
    "step(), ctrl set": lambda b, control: (setattr(b, "ctrl", control), b.step()),
    "step(), qpos read": lambda b, control: (b.step(), b.qpos),
    "rollout(10), recorded": lambda b, control: b.rollout(10, record="qpos"),
}


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def ready(batch, rng: np.random.Generator) -> None:
    """Controls, and worlds that lie on the ground in part."""
    batch.ctrl = rng.uniform(-0.5, 0.5, (batch.nworld, batch.model.nu))
    batch.step(SETTLED)


def race(model, nworld: int, nstep: int, workers: int, rounds: int) -> list[object]:
    """A row: thousands of world-steps a second of both, and their ratio."""
    local = fl.Batch(model, nworld, nthread=workers)
    with Batch(model, nworld, workers, nthread=1) as spread:
        for batch in (local, spread):
            ready(batch, np.random.default_rng(0))
            batch.step(nstep)
        taken = []
        for k in range(rounds):
            both = [seconds(lambda b=b: b.step(nstep)) for b in (local, spread)[:: 1 if k % 2 else -1]]
            taken.append(both if k % 2 else both[::-1])
    here, there = np.median(taken, axis=0)
    return [nworld, nstep, *(f"{nworld * nstep / t / 1e3:.3g}" for t in (here, there)), ratio(taken)]


def ratio(taken: list[list[float]]) -> str:
    """Of a local batch's time and that of workers: the middle one, and half of what lies between the quartiles."""
    here, there = np.transpose(taken)
    low, middle, high = np.quantile(here / there, (0.25, 0.5, 0.75))
    return f"{middle:.3f} ± {(high - low) / 2:.3f}"


def overheads(model, nworld: int, workers: int, rounds: int) -> list[list[object]]:
    """Rows: milliseconds of a call of workers, less what the local batch takes for the same."""
    local = fl.Batch(model, nworld, nthread=workers)
    rows = []
    with Batch(model, nworld, workers, nthread=1) as spread:
        control = np.random.default_rng(1).uniform(-0.5, 0.5, (nworld, model.nu))
        for batch in (local, spread):
            ready(batch, np.random.default_rng(0))
        moved = {
            "step()": 0,
            "step(), ctrl set": control.nbytes,
            "step(), qpos read": local.qpos.nbytes,
            "rollout(10), recorded": 10 * local.qpos.nbytes,
        }
        for name, call in CALLS.items():
            for batch in (local, spread):
                call(batch, control)
            taken = [[seconds(lambda b=b, call=call: call(b, control)) for b in (local, spread)] for _ in range(rounds)]
            here, there = 1e3 * np.median(taken, axis=0)
            extra = 1e3 * float(np.median([b - a for a, b in taken]))
            rows.append([name, nworld, f"{moved[name] / 1e6:.3g}", f"{here:.2f}", f"{there:.2f}", f"{extra:.2f}"])
    return rows


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=31, help="turns of each")
    parser.add_argument("--workers", type=int, default=2, help="workers of one thread each")
    asked = parser.parse_args()
    model = fl.bundled("humanoid")
    with connect(cores=asked.workers, options={"log_to_driver": False}):
        races = [
            race(model, n, k, asked.workers, asked.rounds) for n, k in ((4096, 100), (4096, 10), (4096, 1), (256, 10))
        ]
        costs = [row for n in (16, 256, 4096) for row in overheads(model, n, asked.workers, asked.rounds)]
    columns = (
        "worlds",
        "steps per call",
        "local [1000 steps/s]",
        "workers [1000 steps/s]",
        "workers / local",
    )
    costly = ("call", "worlds", "transferred [MB]", "local [ms]", "workers [ms]", "overhead [ms]")
    publish("distributed", f"{markdown(columns, races)}\n\n{markdown(costly, costs)}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
