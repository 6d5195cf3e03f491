"""Cartesian control: three servos move the hand of an arm along a circle, by forces between two sites."""

import sys

import numpy as np

import featherlane as fl

ARM = """
<mujoco>
  <option timestep=".002" integrator="implicitfast"/>
  <default><geom type="capsule" size=".03" contype="0" conaffinity="0"/><joint damping=".2"/></default>
  <worldbody>
    <site name="base" euler="0 0 30"/>
    <body gravcomp="1"><joint axis="0 0 1"/><joint axis="0 1 0"/><geom fromto="0 0 0 0 0 .5"/>
      <body pos="0 0 .5" gravcomp="1"><joint axis="0 1 0"/><geom fromto="0 0 0 .5 0 0"/>
        <site name="hand" pos=".5 0 0"/></body></body>
  </worldbody>
  <actuator>
    <position site="hand" refsite="base" gear="1 0 0 0 0 0" kp="4000" kv="150"/>
    <position site="hand" refsite="base" gear="0 1 0 0 0 0" kp="4000" kv="150"/>
    <position site="hand" refsite="base" gear="0 0 1 0 0 0" kp="4000" kv="150"/>
  </actuator>
</mujoco>
"""
# [m, m, s], in the frame of the base
CENTRE, RADIUS, PERIOD = (np.array([0.4, -0.2, 0.4]), 0.1, 4.0)


def main(seconds=4.0):
    model = fl.load(ARM)
    data = fl.Data(model)
    steps, worst = round(seconds / model.opt.timestep), 0.0
    for k in range(steps):
        angle = 2 * np.pi * data.time / PERIOD
        target = CENTRE + RADIUS * np.array([0, np.cos(angle), np.sin(angle)])
        data.ctrl = target
        fl.step(model, data)

        # the length of each servo is a coordinate of the hand in the frame of the base
        error = np.linalg.norm(data.actuator_length - target)
        if data.time > 1:
            worst = max(worst, error)
        if k % (steps // 8) == 0:
            print(
                f"{data.time:4.2f} s  hand {np.round(data.actuator_length, 3)}  {1000 * error:6.2f} mm error"
            )

    base, hand = data.site("base"), data.site("hand")
    seen = base.xmat.reshape(3, 3).T @ (hand.xpos - base.xpos)
    assert np.allclose(seen, data.actuator_length, atol=1e-12)
    assert worst < 0.01, f"{worst} m off the circle"
    print(f"largest error after the first second: {1000 * worst:.1f} mm")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
