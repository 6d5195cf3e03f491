"""Write the README's table of accuracy: worst differences from MuJoCo over states of every supported model.

python benchmarks/accuracy.py [--states 504] [--print]
"""

from __future__ import annotations

import argparse
import datetime
import platform
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- accuracy:begin -->", "<!-- accuracy:end -->"

sys.path.insert(0, str(ROOT / "tests"))

import mujoco  # noqa: E402

import parity  # noqa: E402
from featherlane.lanes import processor  # noqa: E402


def between_markers(text: str, table: str) -> str:
    """The text with the table between the accuracy markers."""
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}\n{table}\n{END}{rest.split(END)[1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--states", type=int, default=504, help="states of each model, a multiple of 8")
    parser.add_argument("--print", action="store_true", help="print the table and leave the README alone")
    arguments = parser.parse_args()
    if arguments.states < 1 or arguments.states % parity.WIDTH:
        parser.error(f"--states: got {arguments.states}, allowed are multiples of {parity.WIDTH}")

    results = {}
    for name in parity.MODELS:
        print(f"{name} ...", file=sys.stderr, flush=True)
        results[name] = parity.compare(name, arguments.states)
    origin = (
        f"{arguments.states} states of each model, MuJoCo {mujoco.__version__}, {processor.cpu_level()}, "
        f"Python {platform.python_version()}, {datetime.date.today()}; `python benchmarks/accuracy.py`."
    )
    table = f"{parity.table(results)}\n\n{origin}"
    if arguments.print:
        print(table)
    else:
        readme = ROOT / "README.md"
        readme.write_text(between_markers(readme.read_text(), table))


if __name__ == "__main__":
    main()
