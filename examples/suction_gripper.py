"""Moves a parcel by a suction gripper: an adhesion actuator lifts, carries and releases it."""

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
# until [s], target of the cup [m], suction, printed phase
PLAN = (
    (0.6, 0.0, -0.18, 0.0, "cup moves down"),
    (0.8, 0.0, -0.18, 1.0, "suction on"),
    (1.6, 0.0, 0.1, 1.0, "lifts the parcel"),
    (3.2, 0.8, 0.1, 1.0, "carries it sideways"),
    (4.2, 0.8, -0.18, 1.0, "sets it down"),
    (4.4, 0.8, -0.18, 0.0, "suction off"),
    (5.0, 0.8, 0.1, 0.0, "cup moves up"),
)


def main(mass=2.0):
    model = fl.load(SCENE.replace('mass="2"', f'mass="{mass}"'))
    data, start, highest = fl.Data(model), (0.0, 0.0, 0.0), 0.0
    for until, across, up, suction, phase in PLAN:
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
            f"{data.time:3.1f} s  {phase:20} parcel at {np.round(data.body('parcel').xpos, 3)}, {data.ncon} contacts"
        )

    x, y, z = data.body("parcel").xpos
    assert highest > 0.3, "the parcel was lifted"
    assert abs(x - 0.8) < 0.02 and abs(y) < 0.02 and abs(z - 0.1) < 0.005, (
        "and stands where it was carried to"
    )


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
