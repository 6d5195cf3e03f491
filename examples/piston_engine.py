"""Simulates a piston engine by a slider-crank transmission, without bodies for piston and rod."""

import sys

import numpy as np

import featherlane as fl

CRANK, ROD, FORCE = 0.05, 0.18, 400.0  # [m, m, N]
ENGINE = f"""
<mujoco>
  <option timestep=".0005" integrator="RK4"/>
  <worldbody>
    <site name="cylinder" euler="0 90 0"/>
    <body><joint name="shaft" axis="0 1 0"/>
      <geom type="cylinder" size=".12 .02" euler="90 0 0" mass="4" contype="0" conaffinity="0"/>
      <site name="pin" pos="{CRANK} 0 0"/></body>
  </worldbody>
  <actuator><motor name="gas" cranksite="pin" slidersite="cylinder" cranklength="{ROD}"/></actuator>
</mujoco>
"""


def piston(angle):
    """Return the position of the rod's end on the cylinder's axis."""
    return CRANK * np.cos(angle) - np.sqrt(ROD**2 - (CRANK * np.sin(angle)) ** 2)


def main(turns=5.0):
    model = fl.load(ENGINE)
    data = fl.Data(model)
    data.qpos[0], data.qvel[0] = 0.1, 1.0
    energy = lambda: 0.5 * model.dof_M0[0] * data.qvel[0] ** 2  # noqa: E731
    start, work, strokes = energy(), 0.0, 0
    while data.qpos[0] < 2 * np.pi * turns:
        # two strokes: the gas pushes the piston inwards, and is released on the way back
        inwards = np.sin(data.qpos[0]) > 0
        data.ctrl = -FORCE if inwards else 0.0
        before = piston(data.qpos[0])
        fl.step(model, data)
        work += data.ctrl[0] * (piston(data.qpos[0]) - before)
        if np.sin(data.qpos[0]) > 0 and not inwards:
            strokes += 1
            print(f"turn {strokes}: {data.qvel[0] * 30 / np.pi:6.0f} rpm")

    fl.forward(model, data)
    assert abs(data.actuator_length[0] - piston(data.qpos[0])) < 1e-12
    assert abs(energy() - start - work) < 1e-6 * work, (
        "the flywheel has what the gas has given"
    )
    print(
        f"work of the gas {work:.1f} J, energy of the flywheel {energy() - start:.1f} J"
    )


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
