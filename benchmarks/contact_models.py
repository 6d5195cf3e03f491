"""All contact models on scenes with known answers, and their time; five minutes.

    python benchmarks/contact_models.py --write

All numbers but the last rows are properties of the motion, not of the machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from report import arguments, markdown, origin, publish

import featherlane as fl
from featherlane.apps.measure.contact_models import loop_error

WORLDS, ROUNDS, STEPS = 256, 5, 50
VARIANTS = {
    "convex newton": {"contact_model": "convex", "solver": "newton"},
    "coulomb": {"contact_model": "coulomb"},
    "lcp dantzig": {"contact_model": "lcp", "lcp_solver": "dantzig"},
    "lcp pgs": {"contact_model": "lcp", "lcp_solver": "pgs"},
    "lcp apgd": {"contact_model": "lcp", "lcp_solver": "apgd"},
}
CUBE = '<body name="cube" pos="{pos}"><freejoint/><geom name="cube" type="box" size=".5 .5 .5" mass="1" {more}/></body>'
SLOPE, MU = np.radians(30.0), 0.5


def scene(bodies: str, timestep: float = 0.005, gravity: str = "0 0 -9.81", more: str = "") -> str:
    """A plane and what stands on it; elliptic cones for the convex model."""
    return (
        f'<mujoco><option timestep="{timestep}" gravity="{gravity}" cone="elliptic"/><worldbody>'
        f'<geom name="floor" type="plane" size="0 0 1" {more}/>{bodies}</worldbody></mujoco>'
    )


def prepared(text: str, options: dict[str, str]) -> tuple[fl.Model, fl.Batch]:
    """A model under a variant, and one world of it."""
    model = fl.load(text)
    for name, value in options.items():
        setattr(model.opt, name, value)
    return model, fl.Batch(model, 1)


def creep(options) -> float:
    """A cube of 1 kg, pressed to a wall by 20 N, mu 1: how far it sinks in 10 s [mm]."""
    _, batch = prepared(scene(CUBE.format(pos="0 0 .5", more='friction="1 .005 .0001"'), gravity="9.81 0 0"), options)
    batch.xfrc_applied[0, 1, 2] = -20.0
    batch.step(400)  # pressed flat
    start = batch.qpos[0, 0]
    batch.step(2000)
    return 1e3 * abs(batch.qpos[0, 0] - start)


def slide(options) -> float:
    """A cube on a slope of 30 degrees, mu .5: relative error of its acceleration."""
    gravity = f"{9.81 * np.sin(SLOPE)} 0 {-9.81 * np.cos(SLOPE)}"
    cube = CUBE.format(pos="0 0 .5", more=f'friction="{MU} 0 0"')
    model, batch = prepared(scene(cube, gravity=gravity, more=f'friction="{MU} 0 0"'), options)
    batch.step(200)
    start = batch.qvel[0, 0]
    batch.step(200)
    exact = 9.81 * (np.sin(SLOPE) - MU * np.cos(SLOPE))
    return abs((batch.qvel[0, 0] - start) / (200 * model.opt.timestep) / exact - 1.0)


def bounce(options) -> float:
    """A ball dropped from 1 m that ought to leave with .7 of its speed: the part that it leaves with."""
    ball = '<body pos="0 0 1.1"><freejoint/><geom name="ball" size=".1" mass="1"/></body>'
    model, batch = prepared(scene(ball, timestep=0.001), options)
    model.geom_restitution[:] = 0.7
    fastest = rebound = 0.0
    for _ in range(700):
        batch.step()
        v = float(batch.qvel[0, 2])
        fastest, rebound = min(fastest, v), max(rebound, v)
    return rebound / -fastest


def overlap(options) -> float:
    """A cube at rest: how deep it stands in the plane [mm]."""
    _, batch = prepared(scene(CUBE.format(pos="0 0 .5", more="")), options)
    batch.step(2000)
    return 1e3 * (0.5 - float(batch.qpos[0, 2]))


def tower(options) -> float:
    """Ten cubes that touch exactly, 20 s at h = 1/60: how much lower the top stands [mm]."""
    cubes = "".join(CUBE.format(pos=f"0 0 {k + 0.5}", more="").replace('name="cube"', "") for k in range(10))
    _, batch = prepared(scene(cubes, timestep=1.0 / 60.0), options)
    batch.step(1200)
    return 1e3 * (9.5 - float(batch.qpos[0, 9 * 7 + 2]))


def loop(options) -> float:
    """The bundled slider_crank, 2 s: largest error of its closed loop [mm]."""
    model = fl.bundled("slider_crank")
    for name, value in options.items():
        setattr(model.opt, name, value)
    data, worst = fl.Data(model), 0.0
    for _ in range(round(2.0 / model.opt.timestep)):
        fl.step(model, data)
        worst = max(worst, loop_error(data))
    return 1e3 * worst


def speed(name: str) -> Callable[[dict], float]:
    """Returns a function that measures a world's step in a batch on one thread, by the Euler integrator [us]."""

    def measure(options) -> float:
        model = fl.bundled(name)
        for option, value in ({"integrator": "euler"} | options).items():
            setattr(model.opt, option, value)
        batch, seconds = fl.Batch(model, WORLDS, nthread=1), []
        batch.qvel += 0.1 * np.random.default_rng(0).standard_normal(batch.qvel.shape)
        batch.step(round(0.5 / model.opt.timestep))
        for _ in range(ROUNDS):
            start = time.process_time()
            batch.step(STEPS)
            seconds.append(time.process_time() - start)
        return 1e6 * float(np.median(seconds)) / (STEPS * WORLDS)

    return measure


SCENES = {
    "creep of a gripped cube in 10 s [mm]": (creep, "0"),
    "acceleration of a sliding cube: relative error": (slide, "0"),
    "rebound speed of a ball / approach speed": (bounce, ".7"),
    "penetration of a cube at rest [mm]": (overlap, "0"),
    "drop of the top of a tower of ten cubes in 20 s [mm]": (tower, "0"),
    "error of the closed loop of slider_crank [mm]": (loop, "0"),
}
SCENES |= {
    f"time of a world-step, {name} in a batch [us]": (speed(name), "")
    for name in ("humanoid", "quadruped", "hand", "box_stack")
}


def main() -> None:
    """Prints the table; `--write` also writes it into its page."""
    asked = arguments(__doc__).parse_args()
    rows = []
    for what, (measure, ideal) in SCENES.items():
        rows.append([what, ideal, *(f"{measure(options):.3g}" for options in VARIANTS.values())])
    table = markdown(("", "ideal", *VARIANTS), rows)
    publish("contact-models", f"{table}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
