"""MotrixSim's grasp benchmark: a Franka Panda lifts a cube, by a schedule of servo targets.

Experiment 1 compares the vertical friction on the cube in the hold with its weight: the mean error, and the standard
deviation of its change from step to step.  Experiment 2 puts the friction of fingers and cube near the critical value
m g / N, where N is the sum of both fingers' normal forces in the hold, and measures how far the cube sinks in 5 s.  The
scene is that of the commit below; the meshes, which only draw, are left out.

m g / N is critical only if the cube's weight acts in the centre of the normal forces.  Otherwise the friction balances
a moment, too, and must be higher.  `limit` computes the factor that Coulomb's law requires for the contact points and
normal forces of the hold.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import mujoco
import numpy as np
from report import markdown

from contact_problems.engines import ENGINES, MUJOCO, Run
from contact_problems.primitive_scene import primitive_scene

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
import repositories

REPOSITORY, COMMIT = "Motphys/motrixsim-docs", "10122de725cd02507373b0941427c32755030ca0"
FOLDER = "examples/assets/franka_emika_panda"
FILES = ("mjx_panda.xml", "sensors.xml", "scene_pick_cube.xml")
FINGERS = ("grasp contact 1", "grasp contact 2")
SLOT = 17  # numbers of a contact of the sensors: found, force (3), torque (3), distance, position, normal, tangent (3)
OPEN, CLOSED = 0.04, 0.0
LIFTED, HELD = 4.0, 4.4  # end of the lift and of the settling [s]
HOLD = 5.6  # [s]
WARM, SAMPLED = 0.6, 0.2  # hold before the test of friction, and its end in which N is averaged [s]
TEST = 5.0  # [s]
DROPPED, LOWEST = 0.005, 0.03  # the cube is dropped if it sinks this far, or below this height [m]
FACTORS = (0.90, 0.98, 1.00, 1.02, 1.10, 1.15)  # the last one is not published
# engine and integrator by name; the scene has Euler, and the LCP contact models refuse another
VARIANTS = {
    f"{name}, {kind}": (name, kind)
    for name in ENGINES
    for kind in ("Euler", "implicitfast")
    if not (name.startswith("lcp") and kind == "implicitfast")
}
# sink [mm] by factor; MotrixSim documentation of 2026-08-14, machine not stated
PUBLISHED = {
    "MotrixSim (published)": (154.2, 150.0, 0.0, 0.0, 0.0),
    "MuJoCo, Euler (published)": (153.5, 153.2, 151.2, 152.0, 150.5),
    "MuJoCo, implicitfast (published)": (152.5, 150.9, 151.7, 149.7, 11.3),
}


@cache
def scene() -> str:
    """Returns the MJCF text of the scene.

    Raises:
        Unreachable: a file is not in the cache and cannot be downloaded.
    """
    paths = [repositories.file(REPOSITORY, COMMIT, f"{FOLDER}/{name}") for name in FILES]
    spec = primitive_scene(paths[-1])
    spec.compile()
    return spec.to_xml()


@dataclass
class Hold:
    """A state in the hold, with what was measured there.

    Attributes:
        qpos: positions.
        normal: sum of the normal forces of both fingers [N].
        weight: weight of the cube [N].
        limit: factor of m g / N below which Coulomb's law lets the cube slip.
    """

    qpos: np.ndarray
    normal: float
    weight: float
    limit: float


def begin(variant: str) -> Run:
    """Returns a run at the keyframe `home`."""
    engine, integrator = VARIANTS[variant]
    run = Run(scene(), engine)
    if integrator == "implicitfast":
        implicit = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        run.model.opt.integrator = implicit if engine == MUJOCO else integrator
    home = run.mj.key("home")
    run.data.qpos[:], run.data.ctrl[:] = home.qpos, home.ctrl
    return run


def targets(mj: mujoco.MjModel, time: float) -> np.ndarray:
    """Returns the controls of the arm and the gripper at a time of the schedule."""
    home, low, high = (mj.key(name).ctrl.copy() for name in ("home", "grasp", "lift"))
    high[-1] = OPEN  # the gripper closes between the arm's motions
    legs = ((home, high), (high, low), (low, low), (low, high))
    if time >= LIFTED:
        made = high.copy()
        made[-1] = CLOSED
        return made
    leg, share = int(time), time - int(time)
    made = (1.0 - share) * legs[leg][0] + share * legs[leg][1]
    made[-1] = (OPEN, OPEN, OPEN * (1.0 - share), CLOSED)[leg]
    return made


def contacts(run: Run) -> np.ndarray:
    """Returns the numbers of each contact of the fingers with the cube (n, SLOT)."""
    found = []
    for name in FINGERS:
        sensor = run.mj.sensor(name)
        slots = np.array(run.data.sensordata).ravel()[sensor.adr[0] : sensor.adr[0] + sensor.dim[0]]
        found += [slot for slot in slots.reshape(-1, SLOT) if slot[0]]
    return np.array(found).reshape(-1, SLOT)


def forces(run: Run) -> tuple[float, float]:
    """Returns the sum of the normal forces of both fingers and the vertical friction on the cube [N]."""
    found = contacts(run)
    across = np.cross(found[:, 11:14], found[:, 14:17])
    return float(found[:, 1].sum()), float(found[:, 2] @ found[:, 16] + found[:, 3] @ across[:, 2])


def limit(points: np.ndarray, normal: np.ndarray) -> float:
    """Returns the least mu N / (m g) with which a body between two parallel pads does not slip.

    mu sum n_i |v_i| >= m g |v_z| holds for every motion in the plane of the pads: rotations about any centre c, where
    |v_i| = |p_i - c| and |v_z| = |c_x|.  Centres are searched on a grid that is refined around the best one.
    Source: the upper bound theorem of limit analysis, for a limit surface of Coulomb friction.

    Args:
        points: contact points, horizontal and vertical, from the centre of mass (n, 2) [m].
        normal: normal forces (n,) [N].
    """
    size = max(float(np.abs(points).max()), 1e-9)
    best, at, span = 1.0, np.zeros(2), np.array([20.0 * size, 4.0 * size])  # 1: translation
    for _ in range(12):
        x, y = (np.linspace(c - s, c + s, 201) for c, s in zip(at, span, strict=True))
        centres = np.stack(np.meshgrid(x, y), -1).reshape(-1, 2)
        resisted = np.linalg.norm(centres[:, None] - points, axis=2) @ normal
        factors = np.abs(centres[:, 0]) * normal.sum() / np.maximum(resisted, 1e-300)
        k = int(factors.argmax())
        best, at, span = max(best, float(factors[k])), centres[k], span / 4.0
    return best


def limit_of(run: Run) -> float:
    """Returns `limit` for the contacts of a hold."""
    found = contacts(run)
    centre = np.asarray(run.measure().body("obj").xipos)
    axis = found[0, 11:14] / np.linalg.norm(found[0, 11:14])
    up = np.array([0.0, 0.0, 1.0]) - axis * axis[2]
    up /= np.linalg.norm(up)
    plane = np.stack([np.cross(up, axis), up], 1)
    return limit((found[:, 8:11] - centre) @ plane, found[:, 1])


def lift(variant: str, hold: float) -> tuple[Run, np.ndarray]:
    """Runs the schedule and the hold, and returns the forces of each step of the hold (n, 2)."""
    run, measured = begin(variant), []
    h = run.timestep
    for k in range(round((HELD + hold) / h)):
        run.data.ctrl[:] = targets(run.mj, k * h)
        run.step()
        if k * h >= HELD:
            measured.append(forces(run))
    return run, np.array(measured)


def weight(run: Run) -> float:
    """Returns the weight of the cube [N]."""
    return float(run.mj.body("obj").mass[0] * np.linalg.norm(run.mj.opt.gravity))


def balance(variant: str, hold: float = HOLD) -> tuple[float, float, float]:
    """Experiment 1: mean error of the vertical friction, its jitter, and that of the normal forces [N]."""
    run, measured = lift(variant, hold)
    normal, vertical = measured.T
    error = float(np.mean(np.abs(vertical - weight(run))))
    return error, float(np.std(np.diff(vertical))), float(np.std(np.diff(normal)))


def held(variant: str) -> Hold:
    """Returns the state in which experiment 2 begins."""
    run, measured = lift(variant, WARM)
    last = measured[-round(SAMPLED / run.timestep) :, 0]
    return Hold(np.array(run.data.qpos).ravel(), float(last[last > 1e-8].mean()), weight(run), limit_of(run))


def sink(variant: str, start: Hold, factor: float, seconds: float = TEST) -> float:
    """Experiment 2: how far the cube sinks with this factor of the critical friction [mm]."""
    run = begin(variant)
    for name in ("left_finger", "right_finger", "obj"):
        body = run.mj.body(name)
        geoms = slice(body.geomadr[0], body.geomadr[0] + body.geomnum[0])
        run.model.geom_friction[geoms, 0] = factor * start.weight / start.normal
    run.data.qpos[:], run.data.qvel[:] = start.qpos, 0.0
    run.data.ctrl[:] = targets(run.mj, LIFTED)
    height = run.mj.jnt_qposadr[run.mj.body("obj").jntadr[0]] + 2
    first = lowest = float(start.qpos[height])
    for _ in range(round(seconds / run.timestep)):
        run.step()
        lowest = min(lowest, float(np.asarray(run.data.qpos).ravel()[height]))
    return 1000.0 * (first - lowest)


def shown(sunk: float) -> str:
    """Returns a sink with what it means."""
    return f"{sunk:.3g}, {'dropped' if sunk > 1000 * DROPPED else 'held'}"


def text() -> str:
    """Both tables."""
    errors = [[name, *(f"{value:.2g}" for value in balance(name))] for name in VARIANTS]
    columns = ("engine", "error of the vertical friction [N]", "its jitter [N]", "jitter of the normal forces [N]")
    sunk = [[name, "", "", *map(shown, values), ""] for name, values in PUBLISHED.items()]
    for name in VARIANTS:
        start = held(name)
        sunk.append(
            [
                name,
                f"{start.normal:.3f}",
                f"{start.limit:.3f}",
                *(shown(sink(name, start, factor)) for factor in FACTORS),
            ]
        )
    heads = (
        "sink of the cube [mm]",
        "N [N]",
        "limit by Coulomb's law",
        *(f"{factor:.2f} m g / N" for factor in FACTORS),
    )
    return f"{markdown(columns, errors)}\n\n{markdown(heads, sunk)}"
