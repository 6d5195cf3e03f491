"""Derivatives of a step by state and controls, one call of one world at a time: MuJoCo's mjd_transitionFD and ours.

    python benchmarks/derivatives.py --write

Both in one process, by turns, centered differences at the same settled state; microseconds and ratios are medians of
the rounds.  MuJoCo's call fills arrays that are there, ours makes new ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from report import arguments, markdown, origin, publish

import featherlane as fl
from featherlane.measure.race import alternate, ratio

MODELS = {
    "cartpole": 3,
    "arm": 3,
    "quadruped": 150,
    "quadruped_elliptic": 150,
    "humanoid": 300,
    "hand": 50,
}  # steps before
PIECE = 0.05  # s, of each side in a round
WORLDS = 64
EPS = 1e-6


def repeated(call: Callable[[], object]) -> Callable[[], float]:
    """A side of a race: seconds of one call, in the mean of as many as fit into a piece."""
    call()
    start = time.perf_counter()
    call()
    number = max(1, round(PIECE / (time.perf_counter() - start)))

    def side() -> float:
        start = time.perf_counter()
        for _ in range(number):
            call()
        return (time.perf_counter() - start) / number

    return side


def sides(name: str) -> tuple[fl.Model, dict[str, Callable[[], float]]]:
    """The model and the calls that race."""
    import mujoco

    model = fl.load(name)
    model.opt.integrator = "implicitfast"  # MuJoCo has no derivatives of RK4
    data, batch = fl.Data(model), fl.Batch(model, WORLDS)
    fl.step(model, data, MODELS[name])
    mj = model.to_mujoco()
    rival, state = mujoco.MjData(mj), fl.State.INTEGRATION
    mujoco.mj_setState(mj, rival, fl.get_state(model, data, state), int(state))
    fl.set_state(model, batch, fl.get_state(model, data, state), state)
    n = 2 * model.nv + model.na
    A, B = np.zeros((n, n)), np.zeros((n, model.nu))
    calls = {
        "theirs": lambda: mujoco.mjd_transitionFD(mj, rival, EPS, True, A, B, None, None),
        "ours": lambda: fl.transition_fd(model, data, EPS),
        "single": lambda: fl.transition_fd(model, data, EPS, nthread=1),
        "batch": lambda: fl.transition_fd(model, batch, EPS, nthread=1),
    }
    return model, {name: repeated(call) for name, call in calls.items()}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="measured rounds")
    asked = parser.parse_args()
    rows = []
    for name in MODELS:
        model, race = sides(name)
        seconds = alternate(race, asked.rounds, lambda: None)
        micro = {side: 1e6 * float(np.median(t)) for side, t in seconds.items()}
        faster = {side: ratio(seconds["theirs"], t) for side, t in seconds.items()}
        rows.append(
            [
                name,
                model.nv,
                2 * (2 * model.nv + model.na + model.nu),
                f"{micro['theirs']:.0f}",
                f"{micro['single']:.0f}",
                faster["single"],
                faster["ours"],
                f"{micro['batch'] / WORLDS:.1f}",
            ]
        )
    columns = ("model", "dofs", "points", "MuJoCo [us]", "ours [us]", "ratio, least - most", "threads by the work")
    table = markdown((*columns, f"a world of {WORLDS} [us]"), rows)
    publish("derivatives", f"{table}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
