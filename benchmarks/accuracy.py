"""Accuracy: worst differences from MuJoCo over states of every supported model; about four minutes.

python benchmarks/accuracy.py --write
"""

from __future__ import annotations

import sys
from pathlib import Path

from report import arguments, origin, publish

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import parity
from wheels import Unreachable


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--states", type=int, default=504, help=f"states of each model, a multiple of {parity.WIDTH}")
    asked = parser.parse_args()
    if asked.states < 1 or asked.states % parity.WIDTH:
        parser.error(f"--states: got {asked.states}, allowed are multiples of {parity.WIDTH}")
    results = {}
    for name in parity.MODELS:
        print(name, file=sys.stderr)
        try:
            results[name] = parity.compare(name, asked.states)
        except Unreachable as error:
            sys.exit(str(error))
    note = (
        f"{asked.states} states of each model, a third of them of the pyramid; both sides solve to tolerance 0.  M of "
        "the rope has a condition number of 3e6, which bounds what its accelerations can agree to.  In the hand and "
        "the pyramid faces lie flat on faces: which points stand for a contact goes by rounding there, and its rows "
        "with them, but not the motion."
    )
    publish("accuracy", f"{parity.table(results)}\n\n{note}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
