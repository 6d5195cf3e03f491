"""Resident memory of many humanoids that step; half a minute.

    python benchmarks/memory.py --write

Every row is a fresh process; its greatest resident memory counts, with Python, MuJoCo and the model in it.
"""

from __future__ import annotations

import json
import subprocess
import sys

from report import arguments, markdown, origin, publish

WORLDS = (1, 1_000, 10_000, 100_000)
STEPS = 4
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


if __name__ == "__main__":
    main()
