"""Resident memory of many humanoids that step, and the memory traffic of steps; two minutes.

    python benchmarks/memory.py --write

Every row of the first table is a fresh process; its greatest resident memory counts, with Python, MuJoCo and the model
in it.  The second table counts the bytes that a call of one step loads and stores for each world.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time

from report import arguments, markdown, origin, publish

import featherlane as fl

WORLDS = (1, 1_000, 10_000, 100_000, 1_000_000)
STEPS = 4
MODELS, MANY, ROUNDS, CORES = ("cartpole", "arm", "quadruped", "humanoid"), 8192, 9, 96
CHILD = """
import json, resource, sys, time
import numpy as np
import featherlane as fl
nworld, nstep, dtype = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
batch = fl.Batch(fl.bundled("humanoid"), nworld, dtype=dtype)
batch.ctrl = np.random.default_rng(0).uniform(-1, 1, batch.ctrl.shape).astype(dtype)
start = time.perf_counter()
batch.step(nstep)
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"mib": peak, "contacts": float(batch.ncon.mean()), "rate": nworld * nstep / seconds}))
"""


def measure(nworld: int, dtype: str) -> dict[str, float]:
    """Peak memory [MiB], mean number of contacts and world-steps per second of one process."""
    command = [sys.executable, "-c", CHILD, str(nworld), str(STEPS), dtype]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def traffic(name: str, dtype: str) -> list[str]:
    """Persistent memory of a world [bytes], bytes that a step moves, its time, and the bandwidth of cores."""
    batch = fl.Batch(fl.bundled(name), MANY, nthread=1, dtype=dtype)
    batch.step(10)
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        batch.step()
        times.append((time.process_time() - start) / MANY)
    [plan] = [plan for (forward, _, _), plan in batch.runner.plans.plain.items() if not forward]
    moved = sum(t.array.nbytes for kind in ("load", "store") for t in plan.transfers[kind]) // MANY
    moved += 2 * batch.pair_memory.nbytes // MANY  # read and written by each step with such pairs
    held = sum(a.nbytes for a in (*batch.rows.values(), batch.pair_memory)) // MANY
    seconds = statistics.median(times)
    each = moved / seconds * 1e-9
    return [f"{name}, {dtype}", f"{held:,}", f"{moved:,}", f"{1e6 * seconds:.2f}", f"{each:.2f}", f"{CORES * each:.0f}"]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--worlds", type=int, nargs="*", default=WORLDS, help="numbers of worlds")
    asked = parser.parse_args()
    rows, base = [], {dtype: measure(1, dtype)["mib"] for dtype in ("float64", "float32")}
    for nworld in asked.worlds:
        found = {dtype: measure(nworld, dtype) for dtype in base}
        each = (found["float64"]["mib"] - base["float64"]) * 1024 / nworld
        cells = [f"{found[dtype]['mib']:.0f}" for dtype in base]
        rows.append([f"{nworld:,}", f"{found['float64']['contacts']:.1f}", *cells, f"{each:.1f}" if nworld > 1 else ""])
    columns = ("humanoids", "contacts per world", "float64 [MiB]", "float32 [MiB]", "per world, float64 [KiB]")
    publish("memory", f"{markdown(columns, rows)}\n\n{origin()}", asked.write)
    lines = [traffic(name, dtype) for name in MODELS for dtype in base]
    columns = ("model", "memory per world [bytes]", "moved per step [bytes]", "step [us]", "a core [GB/s]")
    columns += (f"{CORES} cores [GB/s]",)
    note = (
        f"A batch of {MANY} worlds runs on one thread, with one step per call and without outputs. The table has the "
        "processor time of the first steps, which have few contacts and are therefore the fastest."
    )
    publish("traffic", f"{markdown(columns, lines)}\n\n{note}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
