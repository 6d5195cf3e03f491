"""Curls a finger of three joints by one tendon; the springs of the joints distribute its motion."""

import sys

import numpy as np

import featherlane as fl

FINGER = """<mujoco>
  <option timestep="0.002" integrator="implicitfast" gravity="0 0 0"/>
  <default>
    <joint axis="0 1 0" range="0 100" limited="true" damping="0.01" stiffness="0.2"/>
    <geom type="capsule" size="0.008" mass="0.03"/>
    <default class="roll"> <geom type="cylinder" size="0.009 0.008" euler="90 0 0" mass="0"/> </default>
  </default>
  <worldbody>
    <site name="palm" pos="-0.03 0 -0.012"/>
    <geom name="roll 1" class="roll"/> <site name="below 1" pos="0 0 -0.03"/>
    <body name="proximal">
      <joint name="knuckle"/>
      <geom fromto="0 0 0 0.045 0 0"/> <site name="proximal" pos="0.025 0 -0.011"/>
      <geom name="roll 2" class="roll" pos="0.045 0 0"/> <site name="below 2" pos="0.045 0 -0.03"/>
      <body name="middle" pos="0.045 0 0">
        <joint name="middle"/>
        <geom fromto="0 0 0 0.03 0 0"/> <site name="middle" pos="0.015 0 -0.011"/>
        <geom name="roll 3" class="roll" pos="0.03 0 0"/> <site name="below 3" pos="0.03 0 -0.03"/>
        <body name="tip" pos="0.03 0 0">
          <joint name="tip"/>
          <geom fromto="0 0 0 0.02 0 0"/> <site name="nail" pos="0.012 0 -0.010"/>
        </body>
      </body>
    </body>
  </worldbody>
  <contact>
    <exclude body1="world" body2="proximal"/> <exclude body1="world" body2="middle"/>
    <exclude body1="world" body2="tip"/> <exclude body1="proximal" body2="tip"/>
  </contact>
  <tendon>
    <spatial name="flexor">
      <site site="palm"/> <geom geom="roll 1" sidesite="below 1"/> <site site="proximal"/>
      <geom geom="roll 2" sidesite="below 2"/> <site site="middle"/> <geom geom="roll 3" sidesite="below 3"/>
      <site site="nail"/>
    </spatial>
  </tendon>
  <actuator> <position name="motor" tendon="flexor" kp="20000" kv="50" forcerange="-100 0"/> </actuator>
</mujoco>"""


def main(seconds=2.0):
    model = fl.load(FINGER)
    data = fl.Data(model)
    fl.forward(model, data)
    straight = data.ten_length[0]
    for pull in (0.01, 0.03, 0.05):
        data.ctrl[:] = straight - pull
        fl.step(model, data, round(seconds / model.opt.timestep))
        fl.forward(model, data)
        moments = data.actuator_force[0] * data.ten_J  # [N m] on the joints
        print(
            f"{1000 * pull:4.1f} mm: joints {np.round(np.rad2deg(data.qpos))} degrees, {-data.actuator_force[0]:.1f} N"
        )
        free = data.qpos < model.jnt_range[:, 1] - 1e-3
        springs = model.jnt_stiffness * data.qpos
        assert np.allclose(moments[free], springs[free], atol=1e-6), (
            "the springs balance the tendon"
        )
        assert abs(straight - data.ten_length[0] - pull) < 1e-3, (
            "the motor winds up the length of its control"
        )


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
