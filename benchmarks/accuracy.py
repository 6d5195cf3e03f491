"""Accuracy: worst differences from MuJoCo over states of every supported model; about nine minutes.

python benchmarks/accuracy.py --write
"""

from __future__ import annotations

import sys
from pathlib import Path

from report import arguments, origin, publish

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from oracles import parity
from robots.models import ROBOTS
from robots.wheels import Unreachable

NOTE = """\
Both engines use the model's friction cone, and Newton's method with tolerance 0. The row of a PyPI package has the
largest differences of its models. Below a difference is the name of the model with this difference.

*Contacts met* is the number of MuJoCo's contacts in all states. *Other points* counts the states in which Featherlane's
convex collision algorithm finds other contact points than MuJoCo. A typical cause is coplanar faces, for which rounding
selects the contact points. In these states, *depth* is the error [m] of the depth of the deepest point. For these
states, the benchmark computes Featherlane's rows and motion from MuJoCo's contacts.

The mass matrices of rope, chain and mjx/sensor/model have condition numbers of 2e6, 7e6 and 1e10. A large condition
number amplifies the rounding errors of the accelerations. The accelerations of these three models therefore agree less
closely."""


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--states", type=int, default=504, help=f"states of each model, a multiple of {parity.WIDTH}")
    parser.add_argument("--robot-states", type=int, default=48, help="the same for models of robots' wheels")
    asked = parser.parse_args()
    for name, count in (("states", asked.states), ("robot-states", asked.robot_states)):
        if count < 1 or count % parity.WIDTH:
            parser.error(f"--{name}: got {count}, allowed are multiples of {parity.WIDTH}")
    try:
        results, left_out = measured(asked.states, asked.robot_states)
    except Unreachable as error:
        sys.exit(str(error))
    note = "\n\n".join(part.replace("\n", " ") for part in NOTE.split("\n\n"))
    publish("accuracy", "\n\n".join((parity.table(results), note, lacking(left_out), origin())), asked.write)


def measured(states: int, robot_states: int):
    """Worst errors of each model and each wheel, and what is left out, with the kinds of features."""
    results, left_out = {}, {}
    for name in parity.MODELS:
        print(name, file=sys.stderr)
        results[name] = parity.compare(name, states)
    for wheel in ROBOTS:
        found, without = parity.compare_wheel(wheel, robot_states, report=lambda name: print(name, file=sys.stderr))
        results[f"{wheel}: {len(found)} models"] = parity.together(found, wheel)
        left_out |= without
    return results, left_out


def lacking(left_out: dict[str, set[str]]) -> str:
    """The models that do not load, by the features that they need."""
    if not left_out:
        return "Every model that MuJoCo loads is loaded."
    names = {}
    for name, kinds in left_out.items():
        names.setdefault(", ".join(sorted(kinds)), []).append(name)
    return "Not loaded: " + "; ".join(f"for *{kinds}*: {', '.join(found)}" for kinds, found in names.items()) + "."


if __name__ == "__main__":
    main()
