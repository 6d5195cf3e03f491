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
# time [s], where the cup is to be [m], how much it sucks, and what that means
PLAN = (
    (0.6, 0.0, -0.18, 0.0, "the cup goes down"),
    (0.8, 0.0, -0.18, 1.0, "it sucks"),
    (1.6, 0.0, 0.1, 1.0, "it lifts the parcel"),
    (3.2, 0.8, 0.1, 1.0, "it carries it over"),
    (4.2, 0.8, -0.18, 1.0, "it sets it down"),
    (4.4, 0.8, -0.18, 0.0, "it lets go"),
    (5.0, 0.8, 0.1, 0.0, "and leaves"),
)


def main(mass=2.0):
    model = fl.load(SCENE.replace('mass="2"', f'mass="{mass}"'))
    data, start, highest = fl.Data(model), (0.0, 0.0, 0.0), 0.0
    for until, across, up, suction, said in PLAN:
        while data.time < until:
            way = (data.time - start[0]) / (until - start[0])
            data.ctrl = [
                start[1] + way * (across - start[1]),
                start[2] + way * (up - start[2]),
                suction,
            ]
            fl.step(model, data)
            highest = max(highest, data.body("parcel").xpos[2])
        start = until, across, up
        print(
            f"{data.time:3.1f} s  {said:20} parcel at {np.round(data.body('parcel').xpos, 3)}, {data.ncon} contacts"
        )

    x, y, z = data.body("parcel").xpos
    assert highest > 0.3, "the parcel was lifted"
    assert abs(x - 0.8) < 0.02 and abs(y) < 0.02 and abs(z - 0.1) < 0.005, (
        "and stands where it was carried to"
    )


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
