"""Compares the whole engine with MuJoCo, step by step from the same states of random motion with contact.

Both sides solve by Newton to tolerance 0 with 100 iterations, by default in the model's friction cone.
The error of a quantity is the largest absolute difference over the larger of 1 and its largest magnitude in
MuJoCo.

If the general method for convex shapes finds other contact points than MuJoCo's, their depth is compared (see
contact_parity.py), and rows and motion are compared with MuJoCo's contacts.
"""

from __future__ import annotations

import copy
import re

import mujoco
import numpy as np

import featherlane as fl
from featherlane.engine.model.features import sensor_support
from featherlane.engine.simulation.step.forward import forward, step
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.tile.workspace import Workspace
from oracles.contact_parity import axis_meets_box, depth_error, given, split, touching
from robots import wheels
from robots.models import NO_TRUTH, control_range

WIDTH = 8
ITERATIONS = 100
CCD = 1e-12, 500  # tolerance and iterations of the general method for convex shapes
BUNDLED_MODELS = tuple(f"bundled/{name}" for name in fl.bundled_names())
MODELS = wheels.GYMNASIUM_MODELS + wheels.DM_CONTROL_MODELS + BUNDLED_MODELS


# bounds on the errors, from: rounding of sums, then of a solve with M, then of an optimum
SMOOTH = ("M", "qfrc_bias", "qacc_smooth")
# lengths are sums along paths, forces are products of the quantities above
FORCES = tuple(
    "ten_length ten_J ten_velocity actuator_length actuator_moment actuator_velocity actuator_force qfrc_actuator "
    "qfrc_passive".split()
)
ACTIVATION = ("act_dot", "next act")
SENSORS = ("sensordata",)
CONTACT = ("contact.pos", "contact.dist", "contact.frame")
DEPTH = "depth"
ROWS = ("efc_J", "efc_D", "efc_aref")
MOTION = ("qacc", "next qpos", "next qvel")
BOUNDS = dict.fromkeys(SMOOTH, 1e-12) | dict.fromkeys(CONTACT, 1e-10) | dict.fromkeys(ROWS, 1e-9)
BOUNDS |= dict.fromkeys(FORCES, 1e-11) | dict.fromkeys(ACTIVATION, 1e-12) | dict.fromkeys(SENSORS, 1e-9)
BOUNDS |= dict.fromkeys(MOTION, 1e-8) | {DEPTH: 1e-6}  # [m] if contact points differ: MuJoCo's ccd_tolerance
# M of the rope has a condition number of 2e6, that of the chain 7e6: each engine is 5e-11 and more from the exact
# solution with its own M
EXCEPTIONS = {(f"bundled/{name}", "qacc_smooth"): 1e-9 for name in ("rope", "chain")}
# the three hinges of its bodies are nearly parallel: M's condition number is up to 1e10
EXCEPTIONS |= {("mjx/sensor/model", "qacc_smooth"): 1e-9}
# of the stacker 1e6: in long doubles MuJoCo's is up to 1.3e-12 from the solution, ours 4e-16
EXCEPTIONS |= {("dm_control/stacker", "qacc_smooth"): 1e-11}
# of these arms 2e5: in long doubles ours is 6e-13, MuJoCo's 2e-12 from the solution with its own M and forces
ARMS = ("envs/myo/assets/arm/myoarm_relocate", "simhive/myo_sim/arm/myoarm")
EXCEPTIONS |= {(f"myosuite/{name}", "qacc_smooth"): 1e-11 for name in ARMS}
# antagonists of 600 N oppose each other, and a tendon's length changes such a force by 2e4 N/m: four rounding errors
# of lengths (2e-16 m) and of forces are 5e-13 N m of the sum, which is divided by an inertia of 0.08 kg m^2
ELBOWS = ("envs/myo/assets/elbow/myoelbow_1dof6muscles",)
ELBOWS += tuple(f"simhive/myo_sim/elbow/myoelbow_{n}dof6muscles" for n in (1, 2))
EXCEPTIONS |= {(f"myosuite/{name}", "qacc_smooth"): 1e-11 for name in ELBOWS}
# coplanar faces: rounding decides which points represent them, in closed forms too
TIES = {"bundled/hand", "bundled/pyramid", "dm_control/stacker"}
# upright cylinders: rounding decides the lowest point of the rim, because the part of the plane's normal
# across the axis cancels; at tilts of 1e-5 MuJoCo's distances are up to 1.4e-11 m, ours 2e-12 m from the exact ones
TIES |= {"myosuite/simhive/YCB_sim/ycb_objects"}
# palm and fingers without inverse weight touch: rows of D = 5e14, with which MuJoCo does not converge in 100 iterations
SINGULAR = NO_TRUTH | {"robosuite/grippers/jaco_three_finger_gripper"}
SAME = 1e-12  # contacts of the general method that differ by more are different contacts
SAME_TIED = 1e-13  # the same in TIES, where all sizes of differences occur: at 3e3 /s^2 below the bound of rows
# that fraction of the states: nv 300 to 384 and up to 400 contacts, dense in the oracle
COSTLY = {"bundled/pyramid": 3} | dict.fromkeys(("bundled/chain", "bundled/stacks", "bundled/pile"), 20)
INPUTS = ("time", "qpos", "qvel", "act", "history", "plastic", "ctrl", "qacc_warmstart")


def oracle(name: str, path=wheels.model_path, cone: int | None = None) -> mujoco.MjModel:
    """Returns MuJoCo's model, set to Newton with tolerance 0.

    Args:
        name: `bundled/...` or a model of a wheel.
        path: function from the name of a real model to its file.
        cone: friction cone; None for the model's own.
    """
    wheel, model = name.split("/", 1)
    mj = fl.bundled(model).to_mujoco() if wheel == "bundled" else mujoco.MjModel.from_xml_path(str(path(name)))
    return exact(mj, name, cone)


def exact(mj: mujoco.MjModel, name: str, cone: int | None = None) -> mujoco.MjModel:
    """Returns a model, modified in place, with the settings that `oracle` describes."""
    mj.opt.solver, mj.opt.jacobian = mujoco.mjtSolver.mjSOL_NEWTON, mujoco.mjtJacobian.mjJAC_DENSE
    if cone is not None:
        mj.opt.cone = cone
    if name in ("gymnasium/point", "gymnasium_robotics/mujoco/assets/point"):
        # the sphere touches the floor at distance zero: rounding decides whether the contact exists
        mj.geom_pos[1, 2] -= 0.001
    mj.opt.tolerance, mj.opt.iterations, mj.opt.ls_iterations = 0.0, ITERATIONS, ITERATIONS
    mj.opt.noslip_tolerance = 0.0  # else rounding decides which sweep of the no-slip solver is the last
    if mj.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC and (mj.geom_condim == 6).any():
        # there MuJoCo takes 20 steps for a contact's friction, and if they are too few keeps the previous friction
        mj.opt.noslip_iterations = 0
    mj.opt.ccd_tolerance, mj.opt.ccd_iterations = CCD
    # else MuJoCo uses the inertial frame as a geom's frame if they differ by up to 1e-6 (dm_control/dog: 3e-7 m, 2e-6)
    mj.geom_sameframe[:] = mj.site_sameframe[:] = mujoco.mjtSameFrame.mjSAMEFRAME_NONE
    return mj


def reasons(error: fl.UnsupportedFeatureError) -> set[str]:
    """Returns the kinds of features that an error names, without their elements."""
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
    """Returns states every 40 ms of a motion under random controls, which change each step; non-finite ones reset."""
    mj, found = copy.copy(mj), []
    mj.opt.tolerance, mj.opt.jacobian = 1e-8, mujoco.mjtJacobian.mjJAC_AUTO  # accuracy in between is not needed
    data = mujoco.MjData(mj)
    low, high = control_range(mj)
    for _ in range(count):
        for _ in range(max(1, round(0.04 / mj.opt.timestep))):
            data.ctrl[:] = rng.uniform(low, high)
            mujoco.mj_step(mj, data)
        found.append(inputs(data))
    return found


def inputs(data: mujoco.MjData) -> dict[str, np.ndarray]:
    """Returns a copy of the state, the controls and the start of the solver."""
    return {name: np.array(getattr(data, name))[()] for name in INPUTS}


def relative(given, expected) -> float:
    """Returns max |given - expected| / max(1, max |expected|); infinite if the shapes differ."""
    given, expected = np.ravel(given), np.ravel(expected)
    if given.shape != expected.shape:
        return np.inf
    if not given.size:
        return 0.0
    error = np.abs(given - expected).max() / max(1.0, np.abs(expected).max())
    return float(error) if np.isfinite(error) else np.inf


class Worst(dict):
    """Holds the worst error of each quantity, and the state where it occurred.

    Attributes:
        nstate, apart: states, and those in which contact points differ.
        ncon, nefc: numbers of contacts and rows.
        where: quantity -> state, or model if several are combined.
    """

    def __init__(self, model: str):
        super().__init__(dict.fromkeys(BOUNDS, 0.0))
        self.model, self.bounds = model, {q: EXCEPTIONS.get((model, q), bound) for q, bound in BOUNDS.items()}
        self.nstate, self.apart, self.ncon, self.nefc, self.where = 0, 0, 0, 0, {}

    def meet(self, quantity: str, place: int | str, error: float) -> None:
        if not error <= self[quantity]:
            self[quantity], self.where[quantity] = error, place

    def compare(self, quantity: str, state: int, ours, theirs) -> None:
        self.meet(quantity, state, relative(ours, theirs))

    def beyond(self) -> dict[str, str]:
        """Returns the quantities beyond their bound."""
        return {q: f"{e:.1e} at state {self.where[q]}" for q, e in self.items() if not e <= self.bounds[q]}


def compare(name: str, count: int, path=wheels.model_path, cone: int | None = None) -> Worst:
    """Returns worst errors over a model's states: of motion in tiles of 8 worlds, of contacts and rows in one world.

    Args:
        name: the model, as for `oracle`.
        count: states, a multiple of 8; fewer for COSTLY models.
        path, cone: as for `oracle`.
    """
    return compare_model(oracle(name, path, cone), name, count)


def compare_model(mj: mujoco.MjModel, name: str, count: int, met: list | None = None) -> Worst:
    """Returns the same for a model that `oracle` has set, from the states `met` if they are given."""
    model, worst, count = fl.load(mj), Worst(name), max(WIDTH, count // COSTLY.get(name, 1) // WIDTH * WIDTH)
    met = states(mj, count, np.random.default_rng(0)) if met is None else met
    tile, alone, expected = Workspace(model, WIDTH), fl.Data(model), mujoco.MjData(mj)
    for first in range(0, count, WIDTH):
        part = met[first : first + WIDTH]
        worlds = [_compare_world(mj, alone, worst, expected, first + k, state) for k, state in enumerate(part)]
        _compare_motion(mj, worst, with_given(model, tile, worlds), expected, first, part)
    return worst


def compare_wheel(wheel: str, count: int, cone: int | None = None, report=lambda name: None):
    """Compares every model of a wheel that MuJoCo loads by itself and that has dofs.

    Returns:
        results: name -> Worst.
        left_out: name -> kinds of features that the engine lacks.
    """
    results, left_out = {}, {}
    for name in wheels.models_in(wheel):
        try:
            mj = oracle(name, cone=cone)
        except ValueError:  # part of other models
            continue
        report(name)
        try:
            if mj.nv and name not in SINGULAR:
                results[name] = compare_model(mj, name, count)
        except fl.UnsupportedFeatureError as error:
            left_out[name] = reasons(error)
    return results, left_out


def forward_both(mj, data, expected, state):
    """Runs both engines' forward dynamics of one world from a state."""
    for one in (expected, data):
        enter(one, state)
    mujoco.mj_forward(mj, expected)
    fl.forward(data.model, data)


def under_given(model, state, expected) -> fl.Data:
    """Returns one world's forward dynamics from a state with MuJoCo's contacts."""
    data = fl.Data(model, given_contacts=max(expected.ncon, 1))
    enter(data, state)
    data.give_contacts(**given(expected), replace=True)
    fl.forward(model, data)
    return data


def _compare_world(mj, data, worst, expected, k, state) -> fl.Data:
    """Compares one world alone: contacts, rows and motion, with MuJoCo's contacts if they differ from ours."""
    model = data.model
    forward_both(mj, data, expected, state)
    if not _same_contacts(mj, worst, data, expected, k):
        data = under_given(model, state, expected)
    for field in (*SMOOTH, *FORCES, "act_dot", "qacc"):
        worst.compare(field, k, _dense(model, data, field), _dense(mj, expected, field))
    computed = np.repeat(sensor_support(mj), mj.sensor_dim)
    if computed.any():
        worst.compare("sensordata", k, data.sensordata[computed], expected.sensordata[computed])
    rows = {field: getattr(expected, field) for field in ROWS}
    # MuJoCo reserves rows that it does not use: those of some limits whose distance is 0
    rows["efc_J"] = np.ravel(rows["efc_J"])[: expected.nefc * mj.nv]
    for field, value in rows.items():
        worst.compare(field, k, getattr(data, field), value)
    worst.nstate, worst.ncon, worst.nefc = worst.nstate + 1, worst.ncon + expected.ncon, worst.nefc + expected.nefc
    return data


def _dense(model, data, field: str) -> np.ndarray:
    """Returns a field; for sparse rows, whose patterns differ between the engines, the whole matrix."""
    if field == "actuator_moment":
        owner = data if isinstance(data, mujoco.MjData) else model
        nnz, adr, dof = (getattr(owner, f"moment_{name}") for name in ("rownnz", "rowadr", "colind"))
        rows = np.zeros((model.nout, model.nv))
        for o in range(model.nout):
            at = slice(adr[o], adr[o] + nnz[o])
            rows[o, dof[at]] = data.actuator_moment[at]
        return rows
    return getattr(data, field)


def same_contacts(mj, name: str, data, expected) -> bool:
    """Returns whether a model's contacts are the same in both engines, one by one, and none is at its margin's edge."""
    apart, grazing = _differences(mj, name, data, expected)[:2]
    return not (apart or grazing)


def _same_contacts(mj, worst, data, expected, k) -> bool:
    """Compares contacts; returns whether they are the same, as `same_contacts` defines it."""
    apart, grazing, every, closed, general = _differences(mj, worst.model, data, expected)
    for quantity, error in _contact_errors(*(closed if apart else every)).items():
        worst.meet(quantity, k, error)
    if apart:
        worst.apart += 1
        worst.meet(DEPTH, k, depth_error(mj, expected, *general, axis_meets_box(mj, expected)))
    return not (apart or grazing)


def _differences(mj, name: str, data, expected):
    """Returns (contact points differ?, one at its margin's edge?, all contacts, of closed forms, of general pairs).

    Contacts are pairs: ours, MuJoCo's.
    """
    every = ours, theirs = touching(data.contact), touching(expected.contact)
    grazing = len(ours["dist"]) < data.ncon or len(theirs["dist"]) < expected.ncon
    wrong = axis_meets_box(mj, expected)
    parts = [split(mj, contacts, name in TIES, wrong) for contacts in every]
    closed, general = zip(*parts, strict=True)
    apart = not max(_contact_errors(*general).values()) <= (SAME_TIED if name in TIES else SAME)
    return apart, grazing, every, closed, general


def _contact_errors(ours, theirs) -> dict[str, float]:
    return {q: relative(ours[name], theirs[name]) for q, name in zip(CONTACT, ("pos", "dist", "frame"), strict=True)}


def with_given(model, tile, worlds):
    """Returns the tile, or one that holds the contacts given to its worlds."""
    room = max(data.ngiven for data in worlds)
    if not room:
        return tile
    tile = Workspace(model, WIDTH, given=room)
    for lane, data in enumerate(worlds):
        if data.ngiven:
            for name in DATA.of("given"):
                rows = data.workspace.view(name).ravel()
                tile.arrays[name][: rows.size, lane] = rows
    return tile


def _compare_motion(mj, worst, tile, expected, first, met):
    """Compares eight worlds in a tile: the smooth dynamics, the acceleration, the next state."""
    for lane, state in enumerate(met):
        for field, value in state.items():
            tile.arrays[field][: value.size, lane] = value
    tile.run(forward)
    computed = {field: tile.arrays[field].copy() for field in (*SMOOTH, "qacc")}
    tile.run(step)
    for lane, state in enumerate(met):
        enter(expected, state)
        mujoco.mj_forward(mj, expected)
        for field, rows in computed.items():
            truth = np.ravel(getattr(expected, field))
            worst.compare(field, first + lane, rows[: truth.size, lane], truth)
        enter(expected, state)
        mujoco.mj_step(mj, expected)
        for field in ("qpos", "qvel", "act"):
            truth = getattr(expected, field)
            worst.compare(f"next {field}", first + lane, tile.arrays[field][: truth.size, lane], truth)


def enter(data, state):
    for field, value in state.items():
        setattr(data, field, value)


# ---- tables ---------------------------------------------------------------------------------------------------------
COLUMNS = {
    "M, bias, qacc_smooth": SMOOTH,
    "actuators, tendons, passive": FORCES,
    "act": ACTIVATION,
    "contacts": CONTACT,
    "depth": (DEPTH,),
    "rows": ROWS,
    "qacc": MOTION[:1],
    "next state": MOTION[1:],
    "sensors": SENSORS,
}


def table(results: dict[str, Worst]) -> str:
    """Returns worst errors as a Markdown table, a line for each model, or for several together."""
    head = ["model", "states", "contacts met", "other points", *COLUMNS]
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    for name, worst in results.items():
        errors = " | ".join(_cell(worst, quantities) for quantities in COLUMNS.values())
        lines.append(f"| {name} | {worst.nstate} | {worst.ncon} | {worst.apart} | {errors} |")
    bounds = " | ".join(f"{BOUNDS[quantities[0]]:.0e}" for quantities in COLUMNS.values())
    return "\n".join([*lines, f"| **bound** | | | | {bounds} |"])


def _cell(worst: Worst, quantities) -> str:
    """Returns the largest error, and for several models the name of the worst."""
    quantity = max(quantities, key=worst.get)
    text, place = f"{worst[quantity]:.0e}" if worst[quantity] else "0", worst.where.get(quantity)
    return f"{text}<br>{'/'.join(place.split('/')[-2:])}" if isinstance(place, str) else text


def together(results: dict[str, Worst], wheel: str) -> Worst:
    """Combines the models of a wheel: the worst of each quantity, and total counts."""
    worst = Worst(wheel)
    for name, result in results.items():
        for quantity, error in result.items():
            worst.meet(quantity, name, error)
        for count in ("nstate", "apart", "ncon", "nefc"):
            setattr(worst, count, getattr(worst, count) + getattr(result, count))
    return worst
