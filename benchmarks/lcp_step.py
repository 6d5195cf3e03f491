"""A humanoid of boxes under the LCP: our batch against DART's `World.step`; two minutes.

    python benchmarks/lcp_step.py --write

One XML text on both sides: 12 bodies of boxes, 27 dofs in ball joints and hinges with damping, dropped onto a box, each
world with a different speed, 2 s at h = 5 ms.  DART solves by Dantzig's pivoting, we by each solver; one thread, in
turns, processor time.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
from dart import dartpy
from report import arguments, markdown, origin, publish

import featherlane as fl

WORLDS, THEIRS, STEPS, TIMESTEP = 256, 8, 400, 0.005
SIDEWAYS = 0.5  # m/s: standard deviation of the speed at the start
COLUMNS = ("engine", "step of a world [us]", "mean contacts", "speed-up")
SOLVERS = ("dantzig", "pgs", "apgd")


def link(name: str, pos: str, half, mass: float, joint: str, children: str = "") -> str:
    """Returns the XML of a separate body: a box with its inertia."""
    a, b, c = (2.0 * side for side in half)
    inertia = (mass * (b * b + c * c) / 12, mass * (a * a + c * c) / 12, mass * (a * a + b * b) / 12)
    return (
        f'<body name="{name}" pos="{pos}">{joint}'
        f'<inertial pos="0 0 0" mass="{mass}" diaginertia="{" ".join(map(repr, inertia))}"/>'
        f'<geom type="box" size="{" ".join(map(str, half))}"/>{children}</body>'
    )


def ball(name: str, pos: str) -> str:
    """A ball joint with damping."""
    return f'<joint name="{name}" type="ball" pos="{pos}" damping="1"/>'


def hinge(name: str, pos: str) -> str:
    """A hinge about y with damping."""
    return f'<joint name="{name}" type="hinge" axis="0 1 0" pos="{pos}" damping="1"/>'


def humanoid() -> str:
    """The scene."""

    def leg(side: str, y: float) -> str:
        foot = link(f"foot_{side}", "0.05 0 -0.25", (0.12, 0.05, 0.03), 1.2, hinge(f"ankle_{side}", "-0.05 0 0.05"))
        shin = link(f"shin_{side}", "0 0 -0.4", (0.045, 0.045, 0.17), 2.5, hinge(f"knee_{side}", "0 0 0.2"), foot)
        return link(f"thigh_{side}", f"0 {y} -0.3", (0.06, 0.06, 0.17), 4.5, ball(f"hip_{side}", "0 0 0.2"), shin)

    def arm(side: str, y: float) -> str:
        fore = link(f"forearm_{side}", "0 0 -0.3", (0.03, 0.03, 0.13), 1.2, hinge(f"elbow_{side}", "0 0 0.15"))
        return link(f"arm_{side}", f"0 {y} 0.05", (0.04, 0.04, 0.13), 1.8, ball(f"shoulder_{side}", "0 0 0.15"), fore)

    torso = link(
        "torso", "0 0 0.35", (0.1, 0.15, 0.2), 12, ball("abdomen", "0 0 -0.22"), arm("l", 0.23) + arm("r", -0.23)
    )
    root = '<joint name="root" type="free"/>'
    pelvis = link("pelvis", "0 0 1.2", (0.1, 0.13, 0.08), 6, root, torso + leg("l", 0.12) + leg("r", -0.12))
    floor = '<geom name="floor" type="box" size="5 5 0.5" pos="0 0 -0.5"/>'
    return f'<mujoco><option timestep="{TIMESTEP}"/><worldbody>{floor}{pelvis}</worldbody></mujoco>'


def their_side(speeds: np.ndarray):
    """A function that runs DART's worlds: (seconds, mean number of contacts)."""
    dart = dartpy()
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "humanoid.xml"
        file.write_text(humanoid())
        worlds = [dart.utils.MjcfParser.readWorld(str(file)) for _ in speeds]
    for world in worlds:
        world.setTimeStep(TIMESTEP)
        world.getConstraintSolver().setCollisionDetector(dart.collision.BulletCollisionDetector())
        world.getSkeleton(0).enableSelfCollisionCheck()  # as ours: all pairs of bodies but parent and child

    def run() -> tuple[float, float]:
        contacts, start = 0, time.process_time()
        for world, speed in zip(worlds, speeds, strict=True):
            body = world.getSkeleton(0)
            body.setPositions(np.zeros(body.getNumDofs()))
            body.setVelocities(np.r_[np.zeros(3), speed, np.zeros(body.getNumDofs() - 6)])
            for _ in range(STEPS):
                world.step()
                contacts += world.getLastCollisionResult().getNumContacts()
        return time.process_time() - start, contacts / (STEPS * len(speeds))

    return run


def our_side(speeds: np.ndarray, solver: str):
    """A function that runs our batch: (seconds, mean number of contacts)."""
    model = fl.load(humanoid())
    model.opt.contact_model, model.opt.lcp_solver, model.opt.gyroscopic = "lcp", solver, "explicit"
    batch = fl.Batch(model, len(speeds), nthread=1)
    ncon = batch.bind("ncon")

    def run() -> tuple[float, float]:
        batch.reset()
        batch.qvel[:, :3] = speeds
        contacts, start = 0.0, time.process_time()
        for _ in range(STEPS // 10):
            batch.step(10)
            contacts += float(np.mean(ncon))
        return time.process_time() - start, contacts / (STEPS // 10)

    return run


def main() -> None:
    """Prints the table; `--write` also writes it into its page."""
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    speeds = SIDEWAYS * np.random.default_rng(0).standard_normal((WORLDS, 3))
    sides = {"DART `World.step`": (their_side(speeds[:THEIRS]), THEIRS)}
    sides |= {f"Featherlane, {solver}": (our_side(speeds, solver), WORLDS) for solver in SOLVERS}
    times, contacts = {name: [] for name in sides}, {}
    for k in range(asked.rounds + 1):
        for name, (run, worlds) in sides.items():
            seconds, contacts[name] = run()
            if k:
                times[name].append(1e6 * seconds / (STEPS * worlds))
    theirs = np.array(times["DART `World.step`"])
    rows = []
    for name, micro in times.items():
        factor = np.median(theirs / np.array(micro))
        rows.append([name, f"{np.median(micro):.1f}", f"{contacts[name]:.1f}", f"{factor:.1f}"])
    publish("lcp-step", f"{markdown(COLUMNS, rows)}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
