"""Collision against MuJoCo's: the stage alone, in states of a random motion; and crowds of free spheres; two minutes.

    python benchmarks/collision.py --write

Every ratio is measured side by side in this process, the two sides in turns, the median of the rounds.  The stage runs
in tiles as a batch does, on states drawn at random from many motions, so that worlds of a tile have little in common.
"""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path

import numpy as np
from report import arguments, markdown, origin, publish, source_of

import featherlane as fl
from featherlane.engine.collision.collision import collision
from featherlane.engine.lanes.processor import tile_width
from featherlane.engine.simulation.step.forward import forward_position, step
from featherlane.engine.simulation.tile.workspace import Workspace

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import mujoco  # the oracle, for `report` came first

from robots.wheels import Unreachable

MODELS = (
    "dm_control/humanoid",
    "bundled/hand",
    "robosuite/robots/panda/robot",
    "robosuite/robots/spot/robot",
    "robosuite/robots/tiago/robot",
    "robosuite/grippers/inspire_left_hand",
    "metaworld/objects/hammer",
)
CROWDS = (100, 300, 1000, 3000)
STATES, APART = 256, 20  # states of a model, steps between them


def clocked(call) -> float:
    """Processor time of one call [s]."""
    start = time.process_time()
    call()
    return time.process_time() - start


def states(mj: mujoco.MjModel, rng) -> np.ndarray:
    """(STATES, nq): positions along a motion under random controls, shuffled."""
    data, out = mujoco.MjData(mj), []
    limited = np.asarray(mj.actuator_ctrllimited, bool)
    low, high = (np.where(limited, mj.actuator_ctrlrange[:, k], (-1.0, 1.0)[k]) for k in (0, 1))
    for _ in range(STATES):
        for _ in range(APART):
            data.ctrl[:] = rng.uniform(low, high)
            mujoco.mj_step(mj, data)
        out.append(data.qpos.copy())
    return rng.permutation(np.array(out))


def placed(mj, qpos):
    """MuJoCo's data in a position, all that collision reads up to date."""
    data = mujoco.MjData(mj)
    data.qpos[:] = qpos
    mujoco.mj_kinematics(mj, data)
    mujoco.mj_comPos(mj, data)
    return data


def tiles(model, positions, width: int) -> list[Workspace]:
    """The positions in tiles of a width."""
    out: list[Workspace] = []
    for first in range(0, len(positions), width):
        ws = Workspace(model, width, rows=out[0].rows if out else None)
        ws.arrays["qpos"][: model.nq] = positions[first : first + width].T
        ws.run(forward_position)
        out.append(ws)
    return out


def stage_row(name: str, rounds: int) -> list[str]:
    """One model: MuJoCo, one world at a time, and tiles as wide as a batch's."""
    model = fl.load(source_of(name))
    mj = model.to_mujoco()
    positions = states(mj, np.random.default_rng(0))
    theirs = [placed(mj, q) for q in positions]
    wide = tile_width(np.dtype(np.float64))
    ours = {w: [ws.bound(collision) for ws in tiles(model, positions, w)] for w in (1, wide)}

    def run_theirs():
        for data in theirs:
            mujoco.mj_collision(mj, data)

    def run_ours(width):
        for call in ours[width]:
            call()

    times = {"theirs": [], 1: [], wide: []}
    for _ in range(rounds):
        times["theirs"].append(clocked(run_theirs))
        for width in (1, wide):
            times[width].append(clocked(lambda width=width: run_ours(width)))
    mean = {side: 1e6 * float(np.median(t)) / STATES for side, t in times.items()}
    ratio = {w: float(np.median(np.divide(times["theirs"], times[w]))) for w in (1, wide)}
    ncon = np.mean([data.ncon for data in theirs])
    return [
        name,
        str(model.ncand),
        f"{ncon:.1f}",
        *(f"{mean[side]:.1f}" for side in ("theirs", 1, wide)),
        f"{ratio[1]:.2f}",
        f"{ratio[wide]:.2f}",
    ]


def crowd(n: int, rng) -> str:
    """n free spheres that lie on the floor, a quarter of their neighbours in touch."""
    side = math.ceil(math.sqrt(n))
    places = rng.uniform((-0.05, -0.05, 0.095), (0.05, 0.05, 0.11), (n, 3))
    places[:, 0] += 0.25 * (np.arange(n) % side)
    places[:, 1] += 0.25 * (np.arange(n) // side)
    bodies = "".join(f'<body pos="{x:.4f} {y:.4f} {z:.4f}"><freejoint/><geom size="0.1"/></body>' for x, y, z in places)
    return f'<mujoco><worldbody><geom type="plane" size="1 1 1"/>{bodies}</worldbody></mujoco>'


def crowd_row(n: int, rounds: int) -> list[str]:
    """One crowd in one world: collision and the whole step of both sides, and what a sphere costs."""
    mj = mujoco.MjModel.from_xml_string(crowd(n, np.random.default_rng(0)))
    data, ws = mujoco.MjData(mj), Workspace(fl.load(mj), 1)
    mujoco.mj_step(mj, data)
    ws.run(step)
    calls = {
        "their collision": lambda: mujoco.mj_collision(mj, data),
        "collision": ws.bound(collision),
        "their step": lambda: mujoco.mj_step(mj, data),
        "step": ws.bound(step),
    }
    times = {label: [] for label in calls}
    for _ in range(rounds):
        for label, call in calls.items():
            times[label].append(clocked(call))
    us = {label: 1e6 * float(np.median(t)) for label, t in times.items()}
    scale = n * math.log2(n) / 1000
    return [
        f"{n:,}",
        str(data.ncon),
        f"{us['their collision']:.0f}",
        f"{us['collision']:.0f}",
        f"{us['their step']:.0f}",
        f"{us['step']:.0f}",
        f"{us['collision'] / scale:.0f}",
        f"{us['step'] / scale:.0f}",
    ]


STAGE_COLUMNS = (
    "model",
    "pairs",
    "contacts",
    "MuJoCo [us]",
    "one world [us]",
    "batch [us]",
    "ratio, one world",
    "ratio, batch",
)
CROWD_COLUMNS = (
    "spheres",
    "contacts",
    "MuJoCo's collision [us]",
    "collision [us]",
    "MuJoCo's step [us]",
    "step [us]",
    "collision / n log2 n [ns]",
    "step / n log2 n [ns]",
)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=31, help="measured rounds of each race")
    parser.add_argument("--models", nargs="*", default=MODELS, help="wheel/model or bundled/model")
    asked = parser.parse_args()
    try:
        rows = [stage_row(name, asked.rounds) for name in asked.models]
    except Unreachable as error:
        sys.exit(str(error))
    crowds = [crowd_row(n, asked.rounds) for n in CROWDS]
    note = (
        "Each time is that of the collision stage of one world on one thread: broad phase, narrow phase and contact "
        f"parameters. It is measured in {STATES} states of a simulation with random controls. `ratio` is MuJoCo's time "
        "divided by Featherlane's."
    )
    lone = "Free spheres on a floor, one world, one thread:"
    text = f"{markdown(STAGE_COLUMNS, rows)}\n\n{note}\n\n{lone}\n\n{markdown(CROWD_COLUMNS, crowds)}\n\n{origin()}"
    publish("collision", text, asked.write)


if __name__ == "__main__":
    main()
