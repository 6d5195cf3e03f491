"""Scenes of fast geoms with the flag `speculative`: three examples and random ones.

MuJoCo's folder `model/speculative` has a Newton's cradle of thin plates, an interlocking chain, and a ball that a
hinged flipper strikes.  MuJoCo's packages do not contain its files; the examples are rebuilt from this description.
"""

from __future__ import annotations

import numpy as np

INTEGRATORS = ("Euler", "implicitfast", "implicit", "RK4", "discrete")
SOLREF = ("0.02 1", "0.005 0.7", "-3000 -50", "0 -400", "0.01 1.2")
EXACT = 'tolerance="0" iterations="100" ls_iterations="100"'


def cradle(plates: int = 5) -> str:
    """Returns a Newton's cradle of hanging plates, 2 mm thick, without contact stiffness."""
    bodies = "".join(
        f'<body pos="{0.03 * i:g} 0 1"><joint axis="0 1 0"/>'
        f'<geom type="box" size=".001 .05 .05" pos="0 0 -.8" mass="1"/></body>'
        for i in range(plates)
    )
    return f"""<mujoco><option timestep="0.004" cone="elliptic" {EXACT}><flag speculative="enable"/></option>
      <default><geom solref="0 -499" solimp="0.995 0.995 0.001" friction="0" condim="1"/></default>
      <worldbody>{bodies}</worldbody></mujoco>"""


def chain(links: int = 5) -> str:
    """Returns a chain of rings of four capsules; each ring passes through the next, and the first one is fixed."""
    ring = "".join(
        f'<geom type="capsule" size=".004" fromto="{a}"/>'
        for a in ("-.02 0 .03 .02 0 .03", ".02 0 .03 .02 0 -.03", ".02 0 -.03 -.02 0 -.03", "-.02 0 -.03 -.02 0 .03")
    )
    bodies = "".join(
        f'<body pos="0 0 {1 - 0.045 * i:g}" euler="0 0 {90 * (i % 2)}">{"<freejoint/>" if i else ""}{ring}</body>'
        for i in range(links)
    )
    return f"""<mujoco><option timestep="0.004" {EXACT}><flag speculative="enable"/></option>
      <worldbody>{bodies}</worldbody></mujoco>"""


def flipper() -> str:
    """Returns a ball on a plane next to a thin hinged bar that turns fast."""
    return f"""<mujoco><option timestep="0.005" {EXACT}><flag speculative="enable"/></option><worldbody>
      <geom type="plane" size="2 2 .1"/>
      <body pos="0 0 .1"><joint name="hinge" axis="0 0 1"/>
        <geom type="box" size=".15 .003 .03" pos=".15 0 0" mass=".5"/></body>
      <body pos=".2 .12 .1"><freejoint/><geom type="sphere" size=".02" mass=".1"/></body>
      </worldbody></mujoco>"""


def example(name: str) -> tuple[str, np.ndarray]:
    """Returns an example's MJCF and its initial velocity."""
    if name == "cradle":
        velocity = np.zeros(5)
        velocity[0] = -12.0
        return cradle(), velocity
    if name == "chain":
        velocity = np.zeros((4, 6))
        velocity[:, :3] = [[0.5, 0.2, -10], [0, 1, 12], [0, -1, -15], [1, 0, 20]]
        velocity[2, 3:] = [5, 20, -10]
        return chain(), velocity.ravel()
    return flipper(), np.concatenate([[40.0], np.zeros(6)])


def random_scene(seed: int, kinds=("sphere", "capsule", "box")) -> tuple[str, np.ndarray]:
    """Returns the MJCF of two to four fast bodies above a thin plate and a plane, and their initial velocity.

    Sizes, speeds up to 200 m/s, spins, time steps, integrators, cones, solref, margins and flags are sampled.
    """
    rng = np.random.default_rng(seed)
    option = f'timestep="{rng.choice([0.001, 0.002, 0.005])}" integrator="{rng.choice(INTEGRATORS)}" '
    option += f'cone="{rng.choice(["pyramidal", "elliptic"])}" ccd_tolerance="1e-12" ccd_iterations="500" {EXACT}'
    flags = 'speculative="enable"'
    for flag in ('override="enable"', 'refsafe="disable"'):
        flags += f" {flag}" * int(rng.random() < 0.2)
    geom = f'solref="{rng.choice(SOLREF)}" margin="{rng.choice([0, 0, 0.003])}" gap="{rng.choice([0, 0, 0.002])}"'
    bodies, velocity = "", []
    for i in range(rng.integers(2, 5)):
        kind, size = str(rng.choice(kinds)), rng.uniform(0.02, 0.06, 3)
        if rng.random() < 0.4:
            size[rng.integers(3)] = 0.002
        size = size[: {"sphere": 1, "capsule": 2, "cylinder": 2}.get(kind, 3)]
        place, turn = rng.uniform(-0.15, 0.15, 3) + [0, 0, 0.35 + 0.25 * i], rng.normal(size=4)
        bodies += f"""<body pos="{" ".join(map(str, place))}" quat="{" ".join(map(str, turn))}"><freejoint/>
          <geom type="{kind}" size="{" ".join(map(str, size))}" mass="{rng.uniform(0.2, 1)}"
          condim="{rng.choice([1, 3, 4, 6])}"/></body>"""
        linear = rng.normal(size=3) * [2, 2, 5] - [0, 0, rng.choice([5, 20, 60, 150])]
        spin = rng.normal(size=3) * rng.choice([5, 30, 100]) * (rng.random() < 0.6)
        velocity += [*linear, *spin]
    xml = f"""<mujoco><option {option}><flag {flags}/></option><default><geom {geom}/></default><worldbody>
      <geom type="plane" size="3 3 1"/><geom type="box" size=".6 .6 .001" pos="0 0 .1"/>{bodies}</worldbody></mujoco>"""
    return xml, np.array(velocity)
