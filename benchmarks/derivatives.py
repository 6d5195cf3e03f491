"""Derivatives of a step by state and controls: MuJoCo's mjd_transitionFD, our differences, and the exact ones.

    python benchmarks/derivatives.py --write
    python benchmarks/derivatives.py --dm-control --write    the models of dm_control alone

All in one process, by turns, one thread each, at the same settled state; microseconds of processor time and ratios are
medians of the rounds.  MuJoCo's call fills arrays that are there, ours makes new ones.  Errors are those of A, over its
largest entry, from Richardson's extrapolation of differences of steps that are solved to rounding.
"""

from __future__ import annotations

import copy
import importlib.util
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from report import arguments, markdown, origin, publish

import featherlane as fl
from featherlane.apps.measure.speed_comparison import alternate, ratio

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from robots.wheels import DM_CONTROL_MODELS, model_path

MODELS = {
    "cartpole": 3,
    "arm": 3,
    "quadruped": 150,
    "quadruped_elliptic": 150,
    "humanoid": 300,
    "hand": 50,
}  # steps before
SMOOTH = ("arm", "humanoid")  # also compared with Pinocchio, if it is installed
PIECE = 0.05  # s, of each side in a round
WORLDS = 64
EPS = 1e-6
AWAY = 1e-2  # from switches: there differences from the two sides are one


def repeated(call: Callable[[], object]) -> Callable[[], float]:
    """Returns a timer: mean processor seconds of one call, over the calls that fit into PIECE."""
    call()
    start = time.thread_time()
    call()
    number = max(1, round(PIECE / (time.thread_time() - start)))

    def side() -> float:
        start = time.thread_time()
        for _ in range(number):
            call()
        return (time.thread_time() - start) / number

    return side


def settled(model: fl.Model, steps: int) -> fl.Data:
    """A world after its steps, the first from there on that is away from switches."""
    data = fl.Data(model)
    fl.step(model, data, steps)
    for _ in range(100):
        if fl.linearize(model, data).switching > AWAY:
            break
        fl.step(model, data)
    return data


def sides(model: fl.Model, data: fl.Data) -> tuple[dict[str, Callable[[], float]], np.ndarray]:
    """The calls that race, and MuJoCo's A."""
    import mujoco

    mj, batch = model.to_mujoco(), fl.Batch(model, WORLDS, nthread=1)
    rival, state = mujoco.MjData(mj), fl.State.INTEGRATION
    mujoco.mj_setState(mj, rival, fl.get_state(model, data, state), int(state))
    fl.set_state(model, batch, fl.get_state(model, data, state), state)
    n = 2 * model.nv + model.na
    A, B = np.zeros((n, n)), np.zeros((n, model.nu))
    mover = fl.Batch(model, WORLDS, nthread=1)

    def steps() -> None:
        fl.set_state(model, mover, fl.get_state(model, data, state), state)
        mover.step(10)

    calls = {
        "theirs": lambda: mujoco.mjd_transitionFD(mj, rival, EPS, True, A, B, None, None),
        "differences": lambda: fl.linearize(model, data, eps=EPS, nthread=1, method="finite_difference"),
        "one": lambda: fl.linearize(model, data, nthread=1),
        "differences batch": lambda: fl.linearize(model, batch, eps=EPS, nthread=1, method="finite_difference"),
        "batch": lambda: fl.linearize(model, batch, nthread=1),
        "step": steps,
    }
    return {name: repeated(call) for name, call in calls.items()}, A


def errors(model: fl.Model, data: fl.Data, theirs: np.ndarray) -> list[str]:
    """Of MuJoCo's A, of our differences and of the exact A, in parts of the largest entry; none near a switch."""
    model = copy.deepcopy(model)
    copied = fl.Data(model)
    fl.set_state(model, copied, fl.get_state(data.model, data, fl.State.INTEGRATION), fl.State.INTEGRATION)
    found = [theirs, fl.linearize(model, copied, eps=EPS, method="finite_difference").A, fl.linearize(model, copied).A]
    model.opt.tolerance, model.opt.iterations, model.opt.ls_iterations = 0.0, 100, 100
    coarse, fine = (fl.linearize(model, copied, eps=eps, method="finite_difference").A for eps in (2 * EPS, EPS))
    if fl.linearize(model, copied).switching <= AWAY or np.abs(fine - coarse).max() > AWAY * np.abs(fine).max():
        return ["near a switch"] * 3
    exact = (4.0 * fine - coarse) / 3.0
    return [f"{np.abs(A - exact).max() / np.abs(exact).max():.0e}" for A in found]


def beside_pinocchio(name: str, rounds: int) -> list[str]:
    """A row: microseconds of Pinocchio's derivatives of smooth dynamics, of ours in a batch, and ratios."""
    import pinocchio as pin

    theirs = pin.buildModelFromMJCF(str(Path(fl.__file__).parent / "engine" / "model" / "bundled" / f"{name}.xml"))
    known, model = theirs.createData(), fl.bundled(name)
    model.opt.disableflags = "constraint, actuation, spring, damper"
    batch, v = fl.Batch(model, WORLDS, nthread=1), np.full(theirs.nv, 0.1)
    q, qacc = pin.neutral(theirs), np.full((WORLDS, model.nv), 0.1)
    calls = {
        "rnea": lambda: pin.computeRNEADerivatives(theirs, known, q, v, v),
        "ours": lambda: fl.rnea_derivatives(model, batch, qacc, nthread=1),
        "aba": lambda: pin.computeABADerivatives(theirs, known, q, v, v),
        "accelerations": lambda: fl.acceleration_derivatives(model, batch, nthread=1),
    }
    seconds = alternate({key: repeated(call) for key, call in calls.items()}, rounds, lambda: None)
    row = [name, str(model.nv)]
    for mine, other in (("ours", "rnea"), ("accelerations", "aba")):
        a, b = (1e6 * float(np.median(seconds[key])) for key in (other, mine))
        row += [f"{a:.1f}", f"{b / WORLDS:.2f}", f"{a * WORLDS / b:.1f}"]
    return row


def of_dm_control(rounds: int) -> list[list]:
    """Rows of the models of dm_control, each with its integrator; RK4, which MuJoCo refuses, becomes implicitfast."""
    rows = []
    for name in DM_CONTROL_MODELS:
        model = fl.load(str(model_path(name)))
        if model.nv == 0:
            continue
        if model.opt.integrator.name == "RK4":
            model.opt.integrator = "implicitfast"
        data = settled(model, 100)
        calls, _ = sides(model, data)
        calls = {side: calls[side] for side in ("theirs", "one", "batch")}
        micro = {side: 1e6 * float(np.median(t)) for side, t in alternate(calls, rounds, lambda: None).items()}
        each = micro["batch"] / WORLDS
        row = [name.split("/")[1], model.nv, model.opt.integrator.name.lower(), data.ncon, f"{micro['theirs']:.0f}"]
        rows.append([*row, f"{micro['one']:.0f}", f"{each:.1f}", f"{micro['theirs'] / each:.0f}"])
    return rows


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="measured rounds")
    parser.add_argument("--dm-control", action="store_true", help="measure only the models of dm_control")
    asked = parser.parse_args()
    columns = ("model", "DoFs", "integrator", "contacts", "MuJoCo [us]", "one world [us]")
    columns += (f"per world, batch of {WORLDS} [us]", "speed-up, batch")
    publish("dm_control_derivatives", f"{markdown(columns, of_dm_control(asked.rounds))}\n\n{origin()}", asked.write)
    if asked.dm_control:
        return
    rows, exact = [], []
    for name in MODELS:
        model = fl.bundled(name)
        model.opt.integrator = "implicitfast"  # MuJoCo has no derivatives of RK4
        data = settled(model, MODELS[name])
        race, theirs = sides(model, data)
        seconds = alternate(race, asked.rounds, lambda: None)
        micro = {side: 1e6 * float(np.median(t)) for side, t in seconds.items()}
        one = ratio(seconds["theirs"], seconds["differences"])
        rows.append(
            [
                name,
                model.nv,
                2 * (2 * model.nv + model.na + model.nu),
                f"{micro['theirs']:.0f}",
                f"{micro['differences']:.0f}",
                one,
                f"{micro['differences batch'] / WORLDS:.1f}",
            ]
        )
        each = micro["batch"] / WORLDS
        exact.append(
            [
                name,
                model.nv,
                f"{micro['theirs']:.0f}",
                f"{micro['one']:.0f}",
                ratio(seconds["theirs"], seconds["one"]),
                f"{each:.1f}",
                f"{micro['theirs'] / each:.0f}",
                f"{each / (micro['step'] / WORLDS / 10):.1f}",
                *errors(model, data, theirs),
            ]
        )
    columns = (
        "model",
        "dofs",
        "points",
        "MuJoCo [us]",
        "ours [us]",
        "ratio, least - most",
        f"a world of {WORLDS} [us]",
    )
    publish("derivatives", f"{markdown(columns, rows)}\n\n{origin()}", asked.write)
    columns = ("model", "DoFs", "MuJoCo [us]", "one world [us]", "speed-up, min - max")
    columns += (f"per world, batch of {WORLDS} [us]", "speed-up, batch", "batch: derivatives / step")
    columns += ("error of MuJoCo", "error of finite differences", "error of `fl.linearize`")
    # Pinocchio is not a dependency: `pip install pin`
    if importlib.util.find_spec("pinocchio"):
        columns_beside = ("model", "DoFs", "RNEA: Pinocchio [us]", f"RNEA: per world, batch of {WORLDS} [us]")
        columns_beside += ("RNEA: speed-up", "ABA: Pinocchio [us]", f"ABA: per world, batch of {WORLDS} [us]")
        columns_beside += ("ABA: speed-up",)
        smooth = [beside_pinocchio(name, asked.rounds) for name in SMOOTH]
        publish("smooth_derivatives", f"{markdown(columns_beside, smooth)}\n\n{origin()}", asked.write)
    publish("exact_derivatives", f"{markdown(columns, exact)}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
