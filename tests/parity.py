"""The whole engine against MuJoCo, step by step from the same states along randomly controlled motion with contact.

Both sides solve to tolerance 0 with 100 iterations.  The error of a quantity is the largest absolute difference over
the larger of 1 and its largest magnitude in MuJoCo.
"""

from __future__ import annotations

import copy
import re

import mujoco
import numpy as np

import featherlane as fl
import wheels
from featherlane.constraint.efc import efc
from featherlane.simulation.forward import forward, step
from featherlane.simulation.workspace import Workspace

WIDTH = 8
ITERATIONS = 100
BUNDLED_MODELS = tuple(f"bundled/{name}" for name in fl.bundled_names())
ALL_MODELS = wheels.GYMNASIUM_MODELS + wheels.DM_CONTROL_MODELS + BUNDLED_MODELS

# models that do not load, and the kinds of features that they have and the engine lacks
LEFT_OUT = {
    "gymnasium/swimmer": {"density", "viscosity"},
    "dm_control/ball_in_cup": {"tendon"},
    "dm_control/dog": {"trntype tendon", "dyntype filter"},
    "dm_control/fish": {"density", "tendon", "trntype tendon"},
    "dm_control/manipulator": {"equality", "trntype tendon"},
    "dm_control/point_mass": {"trntype tendon"},
    "dm_control/quadruped": {"equality", "dyntype filter", "trntype tendon"},
    "dm_control/stacker": {"equality", "trntype tendon"},
    "dm_control/swimmer": {"density"},
}
MODELS = tuple(name for name in ALL_MODELS if name not in LEFT_OUT)

# bounds on the errors; what is behind each: roundings of sums, then of a solve with M, then of an optimum
SMOOTH = ("M", "qfrc_bias", "qacc_smooth")
CONTACT = ("contact.pos", "contact.dist", "contact.frame")
ROWS = ("efc_J", "efc_D", "efc_aref")
MOTION = ("qacc", "next qpos", "next qvel")
BOUNDS = dict.fromkeys(SMOOTH, 1e-12) | dict.fromkeys(CONTACT, 1e-10) | dict.fromkeys(ROWS, 1e-9)
BOUNDS |= dict.fromkeys(MOTION, 1e-8)
# M of the rope has a condition number of 3e6: each engine is 5e-11 from the exact solution with its own M
EXCEPTIONS = {("bundled/rope", "qacc_smooth"): 1e-9}
# faces lie flat on faces: which points stand for them goes by rounding, what they do does not
EXCEPTIONS |= {(f"bundled/{name}", q): np.inf for name in ("hand", "pyramid") for q in CONTACT + ROWS}
# and where edges lie on edges, it goes by rounding where exactly they cross
EXCEPTIONS |= {("bundled/pyramid", q): 1e-6 for q in MOTION}
# that part of the states: nv 300 to 384 and up to 400 contacts, dense in the oracle
COSTLY = {"bundled/pyramid": 3} | dict.fromkeys(("bundled/chain", "bundled/stacks", "bundled/pile"), 20)
INPUTS = ("qpos", "qvel", "ctrl", "qacc_warmstart")


def oracle(name: str, path=wheels.model_path) -> mujoco.MjModel:
    """MuJoCo's model, set to Newton, pyramidal cones and the tightest solution.

    Args:
        name: `gymnasium/...`, `dm_control/...` or `bundled/...`.
        path: function from the name of a real model to its file.
    """
    wheel, model = name.split("/", 1)
    mj = fl.load(model).to_mujoco() if wheel == "bundled" else mujoco.MjModel.from_xml_path(str(path(name)))
    mj.opt.solver, mj.opt.cone = mujoco.mjtSolver.mjSOL_NEWTON, mujoco.mjtCone.mjCONE_PYRAMIDAL
    mj.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    if name == "gymnasium/point":
        # the sphere touches the floor at distance zero, where rounding decides whether there is a contact
        mj.geom_pos[1, 2] -= 0.001
    mj.opt.tolerance, mj.opt.iterations, mj.opt.ls_iterations = 0.0, ITERATIONS, ITERATIONS
    return mj


def reasons(error: fl.UnsupportedFeatureError) -> set[str]:
    """The kinds of features that an error names, without their elements."""
    kinds = set()
    for line in error.features:
        head, tail = line.split(": ", 1)
        if line.startswith("actuator"):
            kinds |= set(tail.split(", "))
        elif line.startswith(("equality", "tendon")):
            kinds.add(head.split()[0])
        else:
            collision = re.match(r"collision of (\w+)", tail)
            kinds.add(collision[1] if collision else head.removeprefix("option "))
    return kinds


def states(mj: mujoco.MjModel, count: int, rng: np.random.Generator) -> list[dict[str, np.ndarray]]:
    """States every 40 ms of a motion under random controls, which change with each step; bad ones end in a reset."""
    mj, found = copy.copy(mj), []
    mj.opt.tolerance, mj.opt.jacobian = 1e-8, mujoco.mjtJacobian.mjJAC_AUTO  # the way there need not be that exact
    data = mujoco.MjData(mj)
    limited = np.asarray(mj.actuator_ctrllimited, bool)
    low, high = (np.where(limited, mj.actuator_ctrlrange[:, k], (-1.0, 1.0)[k]) for k in (0, 1))
    for _ in range(count):
        for _ in range(max(1, round(0.04 / mj.opt.timestep))):
            data.ctrl[:] = rng.uniform(low, high)
            mujoco.mj_step(mj, data)
        found.append({name: getattr(data, name).copy() for name in INPUTS})
    return found


def relative(given, expected) -> float:
    """max |given - expected| / max(1, max |expected|); infinite where the shapes differ."""
    given, expected = np.ravel(given), np.ravel(expected)
    if given.shape != expected.shape:
        return np.inf
    if not given.size:
        return 0.0
    error = np.abs(given - expected).max() / max(1.0, np.abs(expected).max())
    return float(error) if np.isfinite(error) else np.inf


class Worst(dict):
    """The worst error of each quantity, and what it was met at."""

    def __init__(self, model: str):
        super().__init__(dict.fromkeys(BOUNDS, 0.0))
        self.bounds = {q: EXCEPTIONS.get((model, q), bound) for q, bound in BOUNDS.items()}
        self.ncon, self.nefc, self.where = 0, 0, {}

    def meet(self, quantity: str, state: int, given, expected) -> None:
        error = relative(given, expected)
        if error > self[quantity]:
            self[quantity], self.where[quantity] = error, state

    def beyond(self) -> dict[str, str]:
        """The quantities beyond their bound."""
        return {q: f"{e:.1e} at state {self.where[q]}" for q, e in self.items() if not e <= self.bounds[q]}


def compare(name: str, count: int, path=wheels.model_path) -> Worst:
    """Worst errors over a model's states: of motion in tiles of 8 worlds, of contacts and rows in one world.

    Args:
        name: the model, as for `oracle`.
        count: states, a multiple of 8; fewer of what is COSTLY.
        path: as for `oracle`.
    """
    mj = oracle(name, path)
    model, worst, count = fl.load(mj), Worst(name), max(WIDTH, count // COSTLY.get(name, 1))
    met = states(mj, count, np.random.default_rng(0))
    tile, data, expected = Workspace(model, WIDTH), fl.Data(model), mujoco.MjData(mj)
    for first in range(0, count, WIDTH):
        _compare_motion(mj, worst, tile, expected, first, met[first : first + WIDTH])
        for k in range(first, first + WIDTH):
            _compare_rows(mj, model, worst, data, expected, k, met[k])
    return worst


def _compare_motion(mj, worst, tile, expected, first, met):
    """Eight worlds side by side: the smooth dynamics, the acceleration, the next state."""
    for lane, state in enumerate(met):
        for field, value in state.items():
            tile.arrays[field][: value.size, lane] = value
    tile.run(forward)
    computed = {field: tile.arrays[field].copy() for field in (*SMOOTH, "qacc")}
    tile.run(step)
    for lane, state in enumerate(met):
        _enter(expected, state)
        mujoco.mj_forward(mj, expected)
        for field, rows in computed.items():
            truth = np.ravel(getattr(expected, field))
            worst.meet(field, first + lane, rows[: truth.size, lane], truth)
        _enter(expected, state)
        mujoco.mj_step(mj, expected)
        for field in ("qpos", "qvel"):
            truth = getattr(expected, field)
            worst.meet(f"next {field}", first + lane, tile.arrays[field][: truth.size, lane], truth)


def _compare_rows(mj, model, worst, data, expected, k, state):
    """One world alone: contacts and rows, and the motion once more."""
    for one in (expected, data):
        _enter(one, state)
    mujoco.mj_forward(mj, expected)
    fl.forward(model, data)
    for field in (*SMOOTH, "qacc"):
        worst.meet(field, k, getattr(data, field), getattr(expected, field))
    rows, contact = efc(model, data.workspace.arrays), data.contact
    for field in ROWS:
        worst.meet(field, k, getattr(rows, field.removeprefix("efc_")), getattr(expected, field))
    for field in CONTACT:
        name = field.removeprefix("contact.")
        worst.meet(field, k, getattr(contact, name), getattr(expected.contact, name))
    worst.ncon, worst.nefc = worst.ncon + expected.ncon, worst.nefc + expected.nefc


def _enter(data, state):
    for field, value in state.items():
        getattr(data, field)[...] = value


def table(results: dict[str, Worst]) -> str:
    """Worst errors as a Markdown table, a line for each model."""
    columns = {
        "M, bias, qacc_smooth": SMOOTH,
        "contacts": CONTACT,
        "rows": ROWS,
        "qacc": MOTION[:1],
        "next state": MOTION[1:],
    }
    lines = ["| model | contacts met | " + " | ".join(columns) + " |", "|---|---:|" + "---:|" * len(columns)]
    for name, worst in results.items():
        errors = " | ".join(f"{max(worst[q] for q in quantities):.0e}" for quantities in columns.values())
        lines.append(f"| {name} | {worst.ncon} | {errors} |")
    bounds = " | ".join(f"{BOUNDS[quantities[0]]:.0e}" for quantities in columns.values())
    return "\n".join([*lines, f"| **bound** | | {bounds} |"])
