"""How long a user waits: from the start of a process to an import, a first step, a first batch; half a minute.

    python benchmarks/startup.py --write

Every number is the median over fresh processes, files in the system's cache.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from report import arguments, markdown, origin, publish

LOAD = "import featherlane as fl; model = fl.bundled('humanoid'); "
CASES = {
    "Python itself": "pass",
    "`import mujoco`": "import mujoco",
    "`import featherlane`": "import featherlane",
    "first step of a humanoid": LOAD + "fl.step(model, fl.Data(model))",
    "first step of 4096 humanoids": LOAD + "fl.Batch(model, 4096).step()",
    "first step of 4096 humanoids in float32": LOAD + "fl.Batch(model, 4096, dtype='float32').step()",
}


def seconds(code: str) -> float:
    """Wall time of one process."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="processes of each case")
    asked = parser.parse_args()
    for code in CASES.values():
        seconds(code)
    times = {name: [] for name in CASES}
    for _ in range(asked.rounds):
        for name, code in CASES.items():
            times[name].append(seconds(code))
    rows = [[name, f"{statistics.median(t):.2f}", f"{min(t):.2f} - {max(t):.2f}"] for name, t in times.items()]
    table = markdown(("from process start to the end of", "median [s]", "least - most [s]"), rows)
    publish("startup", f"{table}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
