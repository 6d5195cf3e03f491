"""Latency of single calls for control at 1 kHz, next to MuJoCo: a step, and forward dynamics; a minute.

    python benchmarks/latency.py --rounds 9 --write

Both engines control the same robot on a floor with the same random controls, new in each step.  The calls of both sides
take turns in one process, and each call is timed alone.  The garbage collector runs as in any program.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from report import arguments, markdown, origin, publish, source_of

import mujoco  # isort: skip  (the tests' oracle)
import numpy as np

import featherlane as fl
from featherlane.apps.measure.speed_comparison import Ratio

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from robots.wheels import Unreachable

# model: the body whose Jacobian a controller needs
ROBOTS = {
    "robosuite/robots/panda/robot": "right_hand",
    "robosuite_models/robots/g1/robot": "left_hand_eef",
}
SMALL = ("bundled/cartpole", "gymnasium/inverted_pendulum", "gymnasium/reacher")
CALLS, EPISODE, WARM = 1000, 250, 50  # of a round; between resets; before the first round
AMPLITUDE = 0.1  # of the controls, in parts of their range
STIFFNESS, DAMPING, ARMATURE = 200.0, 5.0, 0.02  # of the robots' hinges [N m/rad, N m s/rad, kg m^2]
PARTS = (50, 99)


class Pair:
    """A robot in both engines.

    Args:
        name: of the model.
        body: the body of the Jacobian; None: the last one.
    """

    def __init__(self, name: str, body: str | None = None):
        spec = mujoco.MjSpec.from_file(source_of(name))
        if name in ROBOTS and not any(geom.type == mujoco.mjtGeom.mjGEOM_PLANE for geom in spec.geoms):
            spec.worldbody.add_geom(
                type=mujoco.mjtGeom.mjGEOM_PLANE, size=(0, 0, 1), pos=(0, 0, lowest(spec.compile()))
            )
        self.mj = spec.compile()
        if name in ROBOTS:  # holds the posture, in place of a controller
            hinges = np.flatnonzero(self.mj.jnt_type == mujoco.mjtJoint.mjJNT_HINGE)
            dofs = self.mj.jnt_dofadr[hinges]
            self.mj.jnt_stiffness[hinges], self.mj.dof_damping[dofs] = STIFFNESS, DAMPING
            self.mj.dof_armature[dofs] = ARMATURE
            mujoco.mj_setConst(self.mj, mujoco.MjData(self.mj))
        self.theirs = mujoco.MjData(self.mj)
        self.model = fl.load(self.mj)
        self.ours = fl.Data(self.model)
        nv = self.mj.nv
        self.body = self.mj.nbody - 1 if body is None else self.mj.body(body).id
        self.jacp, self.jacr, self.inertia = np.zeros((3, nv)), np.zeros((3, nv)), np.zeros((nv, nv))
        self.random = np.random.default_rng(0)
        limited = self.mj.actuator_ctrllimited.astype(bool)[:, None]
        low, high = np.where(limited, self.mj.actuator_ctrlrange, (-1.0, 1.0)).T
        self.middle, self.half = np.clip(0.0, low, high), AMPLITUDE * 0.5 * (high - low)

    def start(self) -> None:
        """Sets both to the initial state."""
        mujoco.mj_resetData(self.mj, self.theirs)
        self.ours.reset()

    def control(self) -> None:
        """Gives both the next controls."""
        self.theirs.ctrl[:] = self.middle + self.half * self.random.uniform(-1.0, 1.0, self.mj.nu)
        self.ours.ctrl[:] = self.theirs.ctrl

    def step(self) -> None:
        mujoco.mj_step(self.mj, self.theirs)

    def own_step(self) -> None:
        fl.step(self.model, self.ours)

    def dynamics(self) -> None:
        """Forward dynamics, a Jacobian and the inertia matrix, as for operational-space control."""
        mujoco.mj_forward(self.mj, self.theirs)
        mujoco.mj_jacBody(self.mj, self.theirs, self.jacp, self.jacr, self.body)
        mujoco.mj_fullM(self.mj, self.theirs, self.inertia)

    def own_dynamics(self) -> None:
        fl.forward(self.model, self.ours)
        fl.query.jac_body(self.model, self.ours, self.body)
        fl.query.full_m(self.model, self.ours)


def lowest(mj: mujoco.MjModel) -> float:
    """Returns the height of the lowest point of the bounding spheres of a model's geoms in its initial state [m]."""
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    points = [data.geom_xpos[g, 2] - mj.geom_rbound[g] for g in range(mj.ngeom) if mj.geom_contype[g]]
    return float(min(points, default=0.0))


def timed(call: Callable[[], None]) -> float:
    """Time of one call [us]."""
    start = time.perf_counter_ns()
    call()
    return 1e-3 * (time.perf_counter_ns() - start)


def round_of(pair: Pair, calls: tuple[Callable[[], None], Callable[[], None]], count: int) -> np.ndarray:
    """Returns times (2, count) [us] of both sides, which take turns; steps follow calls that do not step."""
    times, steps = np.empty((2, count)), calls == (pair.step, pair.own_step)
    for k in range(count):
        if k % EPISODE == 0:
            pair.start()
        pair.control()
        for side in (0, 1) if k % 2 else (1, 0):
            times[side, k] = timed(calls[side])
        if not steps:
            pair.step(), pair.own_step()
    return times


def row(name: str, body: str | None, call: str, rounds: int) -> list[object]:
    """Percentiles of one call of one model, and ratios of MuJoCo's to ours."""
    pair = Pair(name, body)
    calls = (pair.step, pair.own_step) if call == "step" else (pair.dynamics, pair.own_dynamics)
    round_of(pair, calls, WARM)
    found = np.array([np.percentile(round_of(pair, calls, CALLS), PARTS, axis=1).T for _ in range(rounds)])
    theirs, ours = np.median(found, axis=0)
    parts = found[:, 0] / found[:, 1]
    ratios = [Ratio(float(np.median(part)), float(part.min()), float(part.max())) for part in parts.T]
    return [name, call, *(f"{t:.1f}" for pair in zip(theirs, ours, strict=True) for t in pair), *ratios]


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--rounds", type=int, default=9, help="measured rounds of each row")
    asked = parser.parse_args()
    cases = [(name, body, call) for name, body in ROBOTS.items() for call in ("step", "dynamics")]
    cases += [(name, None, "step") for name in SMALL]
    rows = []
    for case in cases:
        print(*case, file=sys.stderr)
        try:
            rows.append(row(*case, asked.rounds))
        except Unreachable as error:
            sys.exit(str(error))
    columns = ["model", "call"]
    columns += [f"{side} p{part} [us]" for part in PARTS for side in ("MuJoCo", "ours")]
    columns += [f"ratio p{part}" for part in PARTS]
    median = statistics.median(line[-2].median for line in rows)
    note = (
        "`step` is `fl.step` and `mj_step`. `dynamics` is forward dynamics, the Jacobian of the hand and the dense "
        f"inertia matrix. Each of the {asked.rounds} rounds has {CALLS} calls. p50 and p99 are percentiles of the "
        "calls of a round, and the table has their medians over the rounds. A ratio above 1 means that Featherlane is "
        "faster than MuJoCo. The brackets have the least and the greatest of the rounds' ratios. "
        f"The median ratio at p50 is {median:.2f}."
    )
    publish("latency", f"{markdown(columns, rows)}\n\n{note}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
