"""Screws a nut onto a bolt: a motor turns it down the thread until it is tight on the head.

Both are signed distance fields (plugins of MuJoCo).  Only contact couples the rotation of the nut with its height.
"""

import sys

import numpy as np

import featherlane as fl

PITCH = 1 / 12  # pitch of the plugins' thread [m]
# heights of the bolt's head, and of the nut's lower face initially [m]
HEAD, START = (0.5, 0.83)
SPEED, TORQUE = 6.0, 400.0  # velocity and largest torque of the motor [rad/s, N m]
SCENE = f"""
<mujoco>
  <extension>
    <plugin plugin="mujoco.sdf.bolt"><instance name="bolt"><config key="radius" value=".255"/></instance></plugin>
    <plugin plugin="mujoco.sdf.nut"><instance name="nut"><config key="radius" value=".26"/></instance></plugin>
  </extension>
  <asset>
    <mesh name="bolt"><plugin instance="bolt"/></mesh>
    <mesh name="nut"><plugin instance="nut"/></mesh>
  </asset>
  <option timestep=".002" sdf_initpoints="24" sdf_iterations="10"/>
  <default><geom solref=".01 1" solimp=".95 .99 .0001" friction=".1"/></default>
  <worldbody>
    <geom name="bolt" type="sdf" mesh="bolt" quat="0 1 0 0" rgba=".6 .6 .62 1"><plugin instance="bolt"/></geom>
    <body name="nut" pos="0 0 {START}">
      <joint name="height" type="slide" axis="0 0 1"/>
      <joint name="turn" axis="0 0 -1" damping="5"/>
      <geom name="nut" type="sdf" mesh="nut" quat="0 1 0 0" density="1000" rgba=".83 .68 .4 1">
        <plugin instance="nut"/></geom>
    </body>
  </worldbody>
  <actuator>
    <velocity name="motor" joint="turn" kv="500" forcerange="-{TORQUE} {TORQUE}"/>
  </actuator>
</mujoco>
"""


def main(turns=10.0):
    model = fl.load(SCENE)
    data = fl.Data(model)
    data.ctrl = SPEED
    lower = lambda: START + data.qpos[0]  # noqa: E731
    heights, done, tight = [], 0, False
    while done <= turns and not tight:
        fl.step(model, data, 5)
        if data.qpos[1] >= 2 * np.pi * done:
            print(
                f"turn {done}: nut at {lower():.4f} m, motor torque {data.actuator_force[0]:5.1f} N m"
            )
            heights.append(lower())
            done += 1
        tight = data.time > 2 and abs(data.qvel[1]) < 1e-2

    # the first turn takes up the clearance, the last one ends at the head
    drops = -np.diff([h for h in heights[1:] if h > HEAD + 0.01])
    print(f"a turn lowers the nut by {drops.mean():.4f} m, the pitch is {PITCH:.4f} m")
    assert np.abs(drops / PITCH - 1).max() < 0.02, "the nut follows the thread"
    if tight:
        print(
            f"tight after {data.qpos[1] / 2 / np.pi:.2f} turns, {abs(lower() - HEAD):.4f} m from the head"
        )
        assert abs(lower() - HEAD) < 0.005 and data.actuator_force[0] > 0.99 * TORQUE, (
            "the motor stalls on the head"
        )


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
