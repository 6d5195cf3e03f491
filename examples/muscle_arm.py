"""Moves an elbow by two muscles, and measures how their co-contraction stiffens it."""

import sys

import numpy as np

import featherlane as fl

ARM = """<mujoco>
  <option timestep="0.001" integrator="implicitfast"/>
  <worldbody>
    <body name="upper arm" pos="0 0 1">
      <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.03" mass="2"/>
      <site name="shoulder front" pos="0.035 0 -0.02"/> <site name="shoulder back" pos="-0.035 0 -0.05"/>
      <geom name="pulley" type="cylinder" pos="0 0 -0.3" euler="90 0 0" size="0.025 0.02" mass="0" group="3"/>
      <site name="behind" pos="-0.06 0 -0.3"/>
      <body name="forearm" pos="0 0 -0.3">
        <joint name="elbow" axis="0 -1 0" range="5 150" limited="true" damping="0.2"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.28" size="0.025" mass="1.5"/>
        <site name="radius" pos="0.02 0 -0.05"/> <site name="ulna" pos="-0.026 0 -0.02"/>
      </body>
    </body>
  </worldbody>
  <contact><exclude body1="upper arm" body2="forearm"/></contact>
  <tendon>
    <spatial name="biceps"> <site site="shoulder front"/> <site site="radius"/> </spatial>
    <spatial name="triceps">
      <site site="shoulder back"/> <geom geom="pulley" sidesite="behind"/> <site site="ulna"/>
    </spatial>
  </tendon>
  <actuator>
    <muscle name="biceps" tendon="biceps" force="900" lengthrange="0.1 0.36"/>
    <muscle name="triceps" tendon="triceps" force="900" lengthrange="0.2 0.36"/>
  </actuator>
</mujoco>"""


def settle(model, data, excitation, seconds, push=0.0):
    """Return the final angle [degrees] with constant excitations and a constant torque on the elbow [N m]."""
    data.ctrl[:], data.qfrc_applied[:] = excitation, push
    fl.step(model, data, round(seconds / model.opt.timestep))
    return np.rad2deg(data.qpos[0])


def main(seconds=4.0):
    model, yields = fl.load(ARM), []
    for excitation in ((0.1, 0.05), (0.5, 0.3)):
        data = fl.Data(model)
        data.qpos[:] = 1.0
        angle = settle(model, data, excitation, seconds)
        # muscles pull: their force along the tendon is negative
        forces = -data.actuator_force
        yields.append(angle - settle(model, data, excitation, seconds, push=-1.0))
        print(
            f"excitation {excitation}: {angle:.0f} degrees, forces {np.round(forces)} N, 1 N m moves {yields[-1]:.1f}"
        )
        assert np.allclose(data.act, excitation, atol=1e-3), (
            "activation follows excitation"
        )
    assert 0 < yields[1] < 0.3 * yields[0], (
        "muscles that pull against each other make a joint stiff"
    )


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
