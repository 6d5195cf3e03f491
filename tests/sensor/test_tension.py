"""Forces of spatial tendons on the bodies along their paths, measured by force and torque sensors: MuJoCo's."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl

PARITY = 1e-11  # of the largest force: both engines solve to rounding
LIMITS = '<tendonlimitpos tendon="x"/><tendonlimitvel tendon="x"/><tendonlimitfrc tendon="x"/>'
STRAIGHT = '<site site="w"/><site site="s"/><site site="t"/>'
AROUND = """<site site="w"/><geom geom="roll"/><site site="s"/><pulley divisor="2"/>
<site site="s"/><geom geom="ball"/><site site="t"/>"""
MOTOR = '<actuator><motor tendon="x" gear="2"/></actuator>'
SERVO = '<actuator><position tendon="x" kp="20" kv="2"/></actuator>'
EQUAL = '<equality><tendon tendon1="x" tendon2="y" polycoef=".1 .5 .2 0 0"/></equality>'
SECOND = '<equality><tendon tendon1="y" tendon2="x"/></equality>'
EVERYTHING = 'stiffness="10" damping="3" armature=".5" range="0 1" limited="true" frictionloss="2"'


def scene(tendon="", tail="", path=STRAIGHT):
    limits = LIMITS if "limited" in tendon else ""
    return f"""<mujoco><option timestep=".002" tolerance="0" iterations="50"/><worldbody><site name="w" pos="0 0 1"/>
<body><joint axis="0 1 0"/><geom size=".1" mass="1"/>
  <body pos=".1 0 0"><geom size=".05" mass=".1" contype="0"/><site name="s" pos=".1 0 0"/></body></body>
<body pos=".5 0 .2"><joint type="slide" axis="0 0 1"/>
  <geom name="roll" type="cylinder" size=".1 .2" euler="90 0 0" mass="1" contype="0"/>
  <geom name="ball" size=".12" mass="1" contype="0"/></body>
<body pos="1 0 .3"><freejoint/><geom size=".1" mass="1"/><site name="t" pos="0 .1 0"/></body></worldbody>
<tendon><spatial name="x" {tendon}>{path}</spatial><spatial name="y"><site site="w"/><site site="t"/></spatial></tendon>
{tail}<sensor><force site="s"/><torque site="s"/><force site="t"/><accelerometer site="t"/>{limits}</sensor></mujoco>"""


SCENES = {
    "spring": scene('stiffness="10" springlength="1"'),
    "damper": scene('damping="10"'),
    "motor": scene("", MOTOR),
    "upper limit": scene('range="0 1" limited="true"'),
    "lower limit": scene('range="3 4" limited="true"'),
    "friction": scene('frictionloss="3"'),
    "armature": scene('armature="3"'),
    "first of an equality": scene("", EQUAL),
    "second of an equality": scene("", SECOND),
    "everything": scene(EVERYTHING, SERVO + SECOND),
    "around geoms": scene('stiffness="10" springlength=".5" range="0 1" limited="true"', "", AROUND),
}


@pytest.mark.parametrize("name", SCENES)
def test_forces_of_tendons_on_bodies_equal_mujoco(name, rng):
    model = fl.load(SCENES[name])
    mj = model.to_mujoco()
    data, expected = fl.Data(model), mujoco.MjData(mj)
    for _ in range(3):
        expected.qpos[:] = mj.qpos0
        expected.qpos[:5] += 0.1 * rng.standard_normal(5)
        expected.qvel[:], expected.ctrl[:] = rng.standard_normal(mj.nv), 1.0
        data.qpos, data.qvel, data.ctrl = expected.qpos, expected.qvel, expected.ctrl
        mujoco.mj_forward(mj, expected)
        fl.forward(model, data)
        scale = np.abs(expected.cfrc_ext).max()
        assert scale > 0.1
        for field in ("cfrc_ext", "cfrc_int", "sensordata"):
            ours, theirs = getattr(data, field).copy(), getattr(expected, field)
            assert np.abs(ours - theirs).max() < PARITY * max(scale, np.abs(theirs).max()), field
        again = data.cfrc_ext.copy()
        fl.stages.rne_post_constraint(model, data)
        assert np.array_equal(data.cfrc_ext, again)


def test_a_force_sensor_measures_the_weight_on_a_tendon():
    model = fl.load("""<mujoco><worldbody><body pos="0 0 2"><site name="hook"/><geom size=".1" mass="1"/></body>
<body pos="0 0 1"><joint type="slide" axis="0 0 1" damping="5"/><geom size=".1" mass="3"/><site name="load"/></body>
</worldbody><tendon><spatial stiffness="500" springlength="1"><site site="hook"/><site site="load"/></spatial></tendon>
<sensor><force site="hook"/></sensor></mujoco>""")
    data = fl.Data(model)
    fl.step(model, data, 10000)
    np.testing.assert_allclose(data.sensordata, [0, 0, 4 * 9.81], atol=1e-6)
