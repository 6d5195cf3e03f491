"""Plans forward hops of a hopper with a spring leg: iLQR through contact, starting from hops in place.

Contact times are not prescribed: the derivatives of each step include its contacts.
"""

import sys

import numpy as np
from swing_up import ilqr

import featherlane as fl

HOPPER = """<mujoco><option timestep="0.01" integrator="implicitfast"/>
  <default><joint axis="0 1 0"/><geom type="capsule" contype="0" conaffinity="0"/><motor ctrlrange="-1 1"/></default>
  <worldbody><geom name="floor" type="plane" size="20 1 0.1" contype="1"/>
    <body name="trunk" pos="0 0 1"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/><joint/>
      <geom fromto="-0.3 0 0.05 0.3 0 0.05" size="0.1" mass="8"/>
      <body><joint name="hip" damping="0.1" armature="0.05"/><geom fromto="0 0 0 0 0 -0.35" size="0.035" mass="1"/>
        <body pos="0 0 -0.3"><joint name="leg" type="slide" axis="0 0 1" stiffness="2500" damping="15"/>
          <geom fromto="0 0 0 0 0 -0.5" size="0.02" mass="0.3"/>
          <geom name="foot" type="sphere" pos="0 0 -0.5" size="0.04" mass="0.2" conaffinity="1"/></body></body></body>
  </worldbody><actuator><motor joint="hip" gear="50"/><motor joint="leg" gear="300"/></actuator></mujoco>"""
SPEED = 1.0  # m/s
# weights of x, height, pitch, hip, spring, and of their velocities
WEIGHT = np.array([0.0, 20.0, 10.0, 0.5, 5.0, 1.0, 0.1, 0.1, 0.01, 0.01])


def main(seconds=2.0):
    model = fl.load(HOPPER)
    T = round(seconds / model.opt.timestep)
    goal = np.array([0.0, -0.05, 0, 0, 0, SPEED, 0, 0, 0, 0])
    weight = np.vstack([np.tile(WEIGHT, (T, 1)), 10 * WEIGHT])
    x, _, _, costs = ilqr(
        model, np.zeros(10), np.zeros((T, 2)), goal, weight, effort=1.0
    )

    path = fl.Batch(model, T + 1)
    path.qpos[:], path.qvel[:] = x[:, :5], x[:, 5:]
    path.forward()
    touches = path.ncon > 0
    hops = np.count_nonzero(touches[1:] & ~touches[:-1])
    speed = (x[-1, 0] - x[T // 2, 0]) / (seconds / 2)
    print(f"{len(costs)} iterations: cost {costs[0]:.0f} to {costs[-1]:.1f}")
    print(
        f"{hops} hops, {np.mean(~touches):.0%} of the time in the air, {x[-1, 0]:.2f} m, final speed {speed:.2f} m/s"
    )
    assert hops >= 3 and speed > 0.8 * SPEED and abs(x[:, 2]).max() < 0.3
    return model, x, touches


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
