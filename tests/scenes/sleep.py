"""Defines scenes whose trees fall asleep and wake, with the user's actions in step i; compares them with MuJoCo."""

from __future__ import annotations

import mujoco
import numpy as np

import featherlane as fl

BOX = '<freejoint/><geom type="box" size=".1 .1 .1"/>'
ROD = '<geom type="capsule" fromto="0 0 0 0 0 -.3" size=".03"/>'


def scene(bodies: str, extra: str = "", option: str = "", flags: str = "") -> str:
    """Returns XML of bodies on a floor, with the flag `sleep`; the solver converges to rounding, so engines agree."""
    return f"""
<mujoco>
  <option tolerance="0" iterations="200" {option}><flag sleep="enable" {flags}/></option>
  <worldbody><geom type="plane" size="5 5 1"/>{bodies}</worldbody>
  {extra}
</mujoco>"""


# boxes start at rest, 0.2 mm deep
STACK = f'<body pos="0 0 .0998">{BOX}</body><body pos="0 0 .2996">{BOX}</body><body pos="1 0 .0998">{BOX}</body>'
TWO = f'<body name="a" pos="0 0 .0998">{BOX}</body><body name="b" pos="1 0 .0998">{BOX}</body>'
BALL = '<body pos="-.35 0 .1"><freejoint/><geom size=".1"/></body>'
WELD = '<equality><weld body1="a" body2="b" active="{}"/></equality>'


def roll(i, world):
    """Rolls the ball into the sleeping stack."""
    if i == 60:
        world.qvel[18:24] = 3, 0, 0, 0, 30, 0


def touch(i, world):
    """Sets forces, positions and velocities."""
    if i in (60, 62):
        world.xfrc_applied[1, 2] = 3.0 if i == 60 else 0.0
    if i in (90, 92):
        world.qfrc_applied[0] = 0.5 if i == 90 else 0.0
    if i == 120:
        world.qpos[0] += 1e-3
    if i == 150:
        world.qvel[6] = 0.05


def fasten(i, world):
    """Welds two sleeping boxes, separates them, and welds them while one of them slides."""
    if i in (50, 120, 141):
        world.eq_active[0] = i != 120
    if i == 140:
        world.qvel[6] = 0.3


def leave(i, world):
    """Pushes one of two sleeping boxes away, which drags the other by a string."""
    if i == 50:
        world.qvel[6] = 1.5


def drag(i, world):
    """Pushes a mocap sphere, which carries a pendulum, into a sleeping box and back, before the rod is in the box."""
    if i >= 50:
        world.mocap_pos[0, 0] = -1 + 0.02 * max(0, 42 - abs(i - 92))


def drive(i, world):
    """Sets a control, which does not wake, and a velocity, which does."""
    if i == 20:
        world.ctrl[0] = 0.5
    if i == 40:
        world.qvel[0] = 1e-9


MOCAP = f'<body mocap="true" pos="-1 0 .1"><geom size=".1"/><body><joint axis="0 1 0" damping="3"/>{ROD}</body></body>'
POLICIES = f"""
<body pos="0 0 .0998" sleep="never">{BOX}</body><body pos="1 0 .0998" sleep="allowed">{BOX}</body>
<body pos="2 0 .5" sleep="init">{BOX}</body>
<body pos="3 0 .1" sleep="init">{BOX}</body><body pos="3 0 .3" sleep="init">{BOX}</body>"""
JOINTS = f"""
<body pos="0 0 2"><joint name="p" axis="0 1 0" damping="2" frictionloss=".1" limited="true" range="-20 20"/>{ROD}
  <body pos=".3 0 -.3"><joint type="ball" damping=".5" limited="true" range="0 30"/>{ROD}</body></body>
<body pos="1 0 2"><joint name="q" type="slide" axis="0 0 1" damping="40" stiffness="200"/><geom size=".1"/></body>"""
MOTORS = f"""
<body pos="0 0 1" sleep="allowed"><joint name="p" axis="0 1 0" damping="2"/>{ROD}</body>
<body pos="0 1 1"><joint name="q" axis="0 1 0" damping="2"/>{ROD}</body>"""

TIED = TWO.replace("/></body>", '/><site name="{}"/></body>').format("p", "q")
STRING = """<tendon><spatial limited="true" range="0 1.05"><site site="p"/><site site="q"/></spatial></tendon>"""

# xml, steps, user's actions
SCENES = {
    "stack": (scene(STACK), 60, None),
    "ball into a stack": (scene(STACK + BALL), 110, roll),
    "perturbed": (scene(TWO), 190, touch),
    "welded while asleep": (scene(TWO, WELD.format("false")), 240, fasten),
    "tied": (scene(TIED, STRING), 160, leave),
    "mocap": (scene(TWO + MOCAP), 200, drag),
    "policies": (scene(POLICIES), 45, None),
    "joints": (scene(JOINTS, '<equality><joint joint1="q" polycoef="-.05 0 0 0 0"/></equality>'), 140, None),
    "actuators": (scene(MOTORS, '<actuator><motor joint="p"/><motor joint="q"/></actuator>'), 60, drive),
    "never in an island": (scene(STACK.replace("<body", '<body sleep="never"', 1)), 50, None),
    "without islands": (scene(TWO + MOTORS, flags='island="disable"'), 40, None),
    "tolerance zero": (scene(TWO + MOTORS, option='sleep_tolerance="0"'), 40, None),
    "implicit": (scene(TWO, WELD.format("true"), 'integrator="implicit"'), 60, None),
    "implicitfast": (scene(TWO, WELD.format("true"), 'integrator="implicitfast"'), 60, None),
    "discrete": (scene(TWO, WELD.format("true"), 'integrator="discrete"'), 60, None),
    "pgs": (scene(STACK, option='solver="PGS" iterations="2000"').replace('iterations="200"', ""), 50, None),
    "elliptic": (scene(STACK + BALL, option='cone="elliptic"'), 100, roll),
}


def worst_difference(name: str) -> tuple[float, int, int]:
    """Returns, for both engines in a scene: largest difference of qpos, counts of trees that fell asleep and woke.

    Every step's tree_asleep is asserted to be equal.
    """
    xml, steps, user = SCENES[name]
    model = fl.load(xml)
    ours, theirs = fl.Data(model), mujoco.MjData(model.mj_model)
    worst, fell, woke = 0.0, 0, 0
    for i in range(steps):
        if user:
            user(i, theirs)
            user(i, ours)
        before = theirs.tree_asleep.copy()
        mujoco.mj_step(model.mj_model, theirs)
        fl.step(model, ours)
        np.testing.assert_array_equal(ours.tree_asleep, theirs.tree_asleep, f"step {i}")
        assert ours.ncon == theirs.ncon and ours.nefc == theirs.nefc, f"step {i}"
        worst = max(worst, float(abs(ours.qpos - theirs.qpos).max()))
        fell += int(((before < 0) & (theirs.tree_asleep >= 0)).sum())
        woke += int(((before >= 0) & (theirs.tree_asleep < 0)).sum())
    return worst, fell, woke
