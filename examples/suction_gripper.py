"""A suction gripper: an adhesion actuator lifts a parcel, carries it over and lets go."""

import sys

import numpy as np

import featherlane as fl

SCENE = """
<mujoco>
  <option timestep=".002" cone="elliptic"/>
  <worldbody>
    <geom type="plane" size="2 2 .1"/>
    <body name="parcel" pos="0 0 .1"><freejoint/><geom type="box" size=".15 .1 .1" mass="2"/></body>
    <body name="cup" pos="0 0 .4" gravcomp="1">
      <joint name="across" type="slide" axis="1 0 0" damping="20"/><joint name="up" type="slide" axis="0 0 1"/>
      <geom type="cylinder" size=".05 .02" mass=".5" gap=".005"/></body>
  </worldbody>
  <actuator>
    <position joint="across" kp="200" kv="40"/>
    <position joint="up" kp="2000" kv="60"/>
    <adhesion name="suction" body="cup" gain="60" ctrlrange="0 1"/>
  </actuator>
</mujoco>
"""
#        until  across    up  suction
PLAN = ((0.6, 0.0, -0.185, 0.0, "the cup goes down"),
        (0.9, 0.0, -0.185, 1.0, "it sucks"),
        (1.8, 0.0, 0.2, 1.0, "it lifts the parcel"),
        (3.4, 0.8, 0.2, 1.0, "it carries it over"),
        (4.2, 0.8, -0.175, 1.0, "it sets it down"),
        (5.0, 0.8, 0.0, 0.0, "it lets go"))  # fmt: skip


def main(weight=2.0):
    model = fl.load(SCENE)
    model.body("parcel").mass *= weight / 2
    data, highest = fl.Data(model), 0.0
    for until, across, up, suction, said in PLAN:
        while data.time < until:
            data.ctrl = [across, up, suction]
            fl.step(model, data)
            highest = max(highest, data.body("parcel").xpos[2])
        place = np.round(data.body("parcel").xpos, 3)
        print(f"{data.time:3.1f} s  {said:20} parcel at {place}, {data.ncon} contacts")

    x, y, z = data.body("parcel").xpos
    assert highest > 0.25, "the parcel was lifted"
    assert abs(x - 0.8) < 0.02 and abs(y) < 0.02 and abs(z - 0.1) < 0.005, "and stands where it was carried to"


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
