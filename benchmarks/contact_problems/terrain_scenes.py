"""Measures contact on height fields and deep contacts of one engine, as a program that every version can run.

    python benchmarks/contact_problems/terrain_scenes.py featherlane    or MuJoCo: prints the scenes of EXPECTED
    python benchmarks/contact_problems/terrain_scenes.py FILE WORLDS    prints speeds of a robot on its ground

Each line of the output is a JSON object.  For a robot, there is one for each line of the standard input.  The program
calls only functions that earlier versions have.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator

import mujoco
import numpy as np

CONTACT_MODELS = ("convex", "coulomb", "lcp")
FIELD = """
<mujoco><option timestep=".002"/>
  <asset><hfield name="ground" nrow="{n}" ncol="{n}" size="2 2 .1 .1"/></asset>
  <worldbody><geom {ground} condim="{condim}"/>
    <body><freejoint/><geom {shape} mass="{mass}" condim="{condim}"/></body>
  </worldbody></mujoco>
"""
PAIR = """
<mujoco><option timestep=".002"/><worldbody>
  {first}
  <body><freejoint/><geom {second}/></body>
</worldbody></mujoco>
"""
STACK = """
<mujoco><option timestep=".002"/><worldbody><geom type="plane" size="9 9 1"/>
  <body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1" mass="1"/></body>
  <body pos="0 0 .3"><freejoint/><geom type="box" size=".1 .1 .1" mass="{mass}"/></body>
</worldbody></mujoco>
"""
BOX, CYLINDER = 'type="box" size=".12 .06 .02"', 'type="cylinder" size=".05 .1" euler="0 90 0"'
BALLS = 200
# scenes and the values of exact geometry and rigid bodies
EXPECTED = {
    "box at rest, cells of 1 m: contacts": "4",
    "box at rest, cells of 1 m: angular speed [rad/s]": "0",
    "box at rest, cells of 1 m: force [N]": "490.5",
    "box at rest, cells of 2 cm: contacts": "4",
    "box at rest, cells of 2 cm: angular speed [rad/s]": "0",
    "box at rest, cells of 2 cm: force [N]": "490.5",
    "crate of 1 m at rest, cells of 10 cm: angular speed [rad/s]": "0",
    **{f"sliding box without friction, {model}: v / v0 after 1 s": "1" for model in CONTACT_MODELS},
    **{f"sliding cylinder without friction, {model}: v / v0 after 1 s": "1" for model in CONTACT_MODELS},
    "landing ball, cells of 10 cm: share thrown sideways": "0 %",
    "landing ball, cells of 2 m: share thrown sideways": "0 %",
    **{f"plate of 2 mm at 10 m/s, {model}: height after 2 s [mm]": "1" for model in CONTACT_MODELS[:2]},
    **{f"capsule through a plate, z = {z}: depth [m]": f"{0.15 - z:.2f}" for z in (0.0, 0.06, 0.09)},
    "sphere with its centre on an ellipsoid: largest error of the depth [m]": "0",
    **{f"1,000 kg on 1 kg, {model}: sinks by [mm]": "0" for model in CONTACT_MODELS},
    "cylinder on a box, lcp, float32: creep in 30 s [mm]": "0",
}


class World:
    """One world of a model in an engine: MuJoCo, or the importable version of Featherlane.

    Args:
        text: MJCF text.
        engine: "MuJoCo" or "featherlane".
        contact_model: contact model of Featherlane.
        dtype: precision of Featherlane.
    """

    def __init__(self, text: str, engine: str, contact_model: str = "convex", dtype: str = "float64"):
        mj = mujoco.MjModel.from_xml_string(text)
        mj.hfield_data[:] = 0.0
        if engine == "MuJoCo":
            self.model, self.data = mj, mujoco.MjData(mj)
            return
        import featherlane as fl

        self.model = fl.load(mj)
        self.model.opt.contact_model = contact_model
        self.data = fl.Batch(self.model, 1, 1, dtype=dtype) if dtype != "float64" else fl.Data(self.model)

    @property
    def qpos(self) -> np.ndarray:
        """Positions (nq,)."""
        return self.data.qpos.reshape(-1)

    @property
    def qvel(self) -> np.ndarray:
        """Velocities (nv,)."""
        return self.data.qvel.reshape(-1)

    def step(self, n: int = 1) -> None:
        """Advances by n steps."""
        if isinstance(self.model, mujoco.MjModel):
            mujoco.mj_step(self.model, self.data, n)
        elif hasattr(self.data, "nworld"):
            self.data.step(nstep=n)
        else:
            import featherlane as fl

            fl.step(self.model, self.data, n)

    def forward(self) -> None:
        """Computes the contacts of the state."""
        if isinstance(self.model, mujoco.MjModel):
            mujoco.mj_forward(self.model, self.data)
        else:
            import featherlane as fl

            fl.forward(self.model, self.data)

    def force(self) -> float:
        """Returns the sum of the normal forces of all contacts [N]."""
        if isinstance(self.model, mujoco.MjModel):
            found = np.zeros((self.data.ncon, 6))
            for i in range(self.data.ncon):
                mujoco.mj_contactForce(self.model, self.data, i, found[i])
            return float(found[:, 0].sum())
        import featherlane as fl

        return sum(float(fl.query.contact_force(self.model, self.data, i)[0]) for i in range(self.data.ncon))


def on_field(
    engine: str, shape: str, n: int, contact_model: str = "convex", condim: int = 3, mass: float = 1.0
) -> World:
    """Returns a body over a flat field of n x n samples."""
    ground = 'type="hfield" hfield="ground"'
    text = FIELD.format(n=n, ground=ground, shape=shape, condim=condim, mass=mass)
    return World(text, engine, contact_model)


def span(values: list[float]) -> str:
    """Returns the least and the greatest value, or one if they are equal to four digits."""
    low, high = f"{min(values):.4g}", f"{max(values):.4g}"
    return low if low == high else f"{low} to {high}"


def resting(engine: str, shape: str, height: float, n: int, mass: float) -> tuple[str, str, str]:
    """Returns (contacts, angular speed, force) in the third second of a body that is placed on the field."""
    world = on_field(engine, shape, n, mass=mass)
    world.qpos[:3] = 0.013, 0.317, height
    world.step(1000)
    speeds, forces, contacts = [], [], []
    for _ in range(500):
        world.step()
        speeds.append(float(np.abs(world.qvel[3:]).max()))
        forces.append(world.force())
        contacts.append(int(world.data.ncon))
    return span(contacts), f"{max(speeds):.2g}", span(forces)


def sliding(engine: str, shape: str, height: float, contact_model: str) -> str:
    """Returns the speed after one second, relative to the initial 1 m/s, on fields with cells of 2 m and 4 cm."""
    found = []
    for n in (3, 101):
        world = on_field(engine, shape, n, contact_model, condim=1)
        world.qpos[:3], world.qvel[0] = (-0.513, 0.027, height), 1.0
        world.step(500)
        found.append(float(world.qvel[0]))
    return span(found)


def landing(engine: str, n: int) -> str:
    """Returns the share of balls that move sideways faster than 0.3 m/s after landing at 2 to 3 m/s."""
    random, world, thrown = np.random.default_rng(1), on_field(engine, 'size=".03"', n), 0
    for _ in range(BALLS):
        world.qpos[:] = [*random.uniform(-0.8, 0.8, 2), 0.031, 1, 0, 0, 0]
        world.qvel[:] = 0, 0, -random.uniform(2, 3), 0, 0, 0
        world.step(30)
        thrown += float(np.hypot(*world.qvel[:2])) > 0.3
    return f"{100 * thrown / BALLS:.0f} %"


def plate(engine: str, contact_model: str) -> str:
    """Returns the heights [mm] of a plate that falls on fields with cells of 2 m and 2 cm at 10 m/s."""
    found = []
    for n in (3, 201):
        world = on_field(engine, 'type="box" size=".1 .1 .001"', n, contact_model)
        world.qpos[:3], world.qvel[2] = (0.013, 0.027, 0.011), -10.0
        world.step(1000)
        found.append(1000 * float(world.qpos[2]))
    return span(found)


def depth(world: World, pos) -> float:
    """Returns the depth of the deepest contact with the body at a position, 0 without a contact [m]."""
    world.qpos[:3] = pos
    world.forward()
    return 0.0 - min((float(x) for x in world.data.contact.dist), default=0.0)


def on_ellipsoid(engine: str) -> str:
    """Returns the largest error of the depth of spheres of 0.1 m whose centres are on an ellipsoid [m]."""
    size = np.array([0.3, 0.2, 0.4])
    first = '<geom type="ellipsoid" size=".3 .2 .4"/>'
    world, random, worst = World(PAIR.format(first=first, second='size=".1"'), engine), np.random.default_rng(1), 0.0
    for k in range(60):
        u = random.standard_normal(3) if k > 5 else np.eye(3)[k % 3] * (1 if k > 2 else -1)
        p = size * size * u / np.linalg.norm(size * u)
        worst = max(worst, abs(depth(world, p * (1 + (k % 3 - 1) * 2.0**-52)) - 0.1))
    return f"{worst:.2g}"


def stack(engine: str, contact_model: str) -> str:
    """Returns by how much a box of 1,000 kg sinks into one of 1 kg in two seconds [mm]."""
    world = World(STACK.format(mass=1000), engine, contact_model)
    world.step(1000)
    return f"{1000 * (0.2 - float(world.qpos[9] - world.qpos[2])):.3g}"


def creep() -> str:
    """Returns how far a cylinder that lies on a box moves in 30 s under lcp in float32 [mm]."""
    first = '<geom type="box" size=".5 .5 .1" pos="0 0 -.1"/>'
    world = World(PAIR.format(first=first, second=CYLINDER), "featherlane", "lcp", "float32")
    world.qpos[:3] = 0.013, 0.027, 0.05
    world.step(500)
    start = world.qpos[:2].astype(float)
    world.step(15000)
    return f"{1000 * float(np.abs(world.qpos[:2] - start).max()):.2g}"


def scenes(engine: str) -> dict[str, str]:
    """Returns what an engine computes for the scenes of EXPECTED; scenes that it cannot run are left out."""
    found = {}
    for cells, n in (("1 m", 5), ("2 cm", 201)):
        values = resting(engine, BOX, 0.0199, n, 50.0)
        for name, value in zip(("contacts", "angular speed [rad/s]", "force [N]"), values, strict=True):
            found[f"box at rest, cells of {cells}: {name}"] = value
    crate = resting(engine, 'type="box" size=".5 .5 .5"', 0.4999, 41, 100.0)
    found["crate of 1 m at rest, cells of 10 cm: angular speed [rad/s]"] = crate[1]
    models = CONTACT_MODELS if engine != "MuJoCo" else ("convex",)
    for model in models:
        after = f"without friction, {model}: v / v0 after 1 s"
        found[f"sliding box {after}"] = sliding(engine, BOX, 0.0199, model)
        found[f"sliding cylinder {after}"] = sliding(engine, CYLINDER, 0.0499, model)
        found[f"plate of 2 mm at 10 m/s, {model}: height after 2 s [mm]"] = plate(engine, model)
        found[f"1,000 kg on 1 kg, {model}: sinks by [mm]"] = stack(engine, model)
    found["landing ball, cells of 10 cm: share thrown sideways"] = landing(engine, 41)
    found["landing ball, cells of 2 m: share thrown sideways"] = landing(engine, 3)
    through = PAIR.format(first='<geom type="box" size=".3 .3 .02"/>', second='type="capsule" size=".03 .1"')
    world = World(through, engine)
    for z in (0.0, 0.06, 0.09):
        found[f"capsule through a plate, z = {z}: depth [m]"] = f"{depth(world, (0.013, 0.027, z)):.3g}"
    found["sphere with its centre on an ellipsoid: largest error of the depth [m]"] = on_ellipsoid(engine)
    if engine != "MuJoCo":
        found["cylinder on a box, lcp, float32: creep in 30 s [mm]"] = creep()
    return found


def speeds(file: str, worlds: int) -> Iterator[dict[str, float]]:
    """Yields steps per second of one core and contacts per world of a robot with random controls, at many places."""
    import featherlane as fl

    mj = mujoco.MjModel.from_binary_path(file)
    batch, home = fl.Batch(fl.load(mj), worlds, 1), mj.key_qpos[0].copy()
    random = np.random.default_rng(0)
    while True:
        elapsed, steps, contacts = 0.0, 0, []
        batch.qpos[:], batch.qvel[:] = home, 0.0
        batch.qpos[:, :2] = random.uniform(-3.5, 3.5, (worlds, 2))
        batch.qpos[:, 2] += 0.06
        for k in range(25):
            batch.ctrl[:] = home[7:] + 0.2 * random.standard_normal((worlds, mj.nu))
            start = time.process_time()
            batch.step(nstep=4)
            if k >= 5:  # the robots have landed
                elapsed += time.process_time() - start
                steps += 4 * worlds
                contacts.append(float(np.mean(batch.ncon)))
        yield {"speed": steps / elapsed, "contacts": float(np.mean(contacts))}


def main() -> None:
    """Prints the scenes of an engine, or one measurement of a robot for each line of the standard input."""
    if len(sys.argv) == 2:
        print(json.dumps(scenes(sys.argv[1])))
        return
    for _, found in zip(sys.stdin, speeds(sys.argv[1], int(sys.argv[2])), strict=False):
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
