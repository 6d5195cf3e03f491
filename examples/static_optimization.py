"""Finds muscle activations of a reaching motion by static optimization: inverse dynamics, moment arms, and bounds."""

import sys

import numpy as np

import featherlane as fl

ARM = """<mujoco>
  <compiler autolimits="true"/>
  <option timestep="0.002" integrator="implicitfast"/>
  <default>
    <geom contype="0" conaffinity="0"/> <muscle force="500"/>
    <default class="pulley"> <geom type="cylinder" euler="90 0 0" mass="0" group="3"/> </default>
  </default>
  <worldbody>
    <site name="chest" pos="0.06 0 1.5"/> <site name="socket" pos="0.03 0 1.44"/>
    <site name="blade" pos="-0.09 0 1.38"/> <site name="rim" pos="-0.05 0 1.37"/>
    <geom name="shoulder" class="pulley" pos="0 0 1.4" size="0.035 0.02"/> <site name="below" pos="-0.05 0 1.34"/>
    <body name="upper arm" pos="0 0 1.4">
      <joint name="shoulder" axis="0 -1 0" range="-30 110" damping="0.3"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.03" mass="2"/>
      <site name="deltoid front" pos="0.025 0 -0.14"/> <site name="deltoid back" pos="-0.025 0 -0.14"/>
      <site name="shaft front" pos="0.025 0 -0.16"/> <site name="shaft back" pos="-0.03 0 -0.1"/>
      <geom name="elbow" class="pulley" pos="0 0 -0.3" size="0.025 0.02"/> <site name="behind" pos="-0.06 0 -0.3"/>
      <body name="forearm" pos="0 0 -0.3">
        <joint name="elbow" axis="0 -1 0" range="5 140" damping="0.3"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.28" size="0.025" mass="1.5"/>
        <site name="radius" pos="0.02 0 -0.05"/> <site name="ulna" pos="-0.026 0 -0.02"/>
      </body>
    </body>
  </worldbody>
  <tendon>
    <spatial name="shoulder flexor"> <site site="chest"/> <site site="deltoid front"/> </spatial>
    <spatial name="shoulder extensor">
      <site site="blade"/> <geom geom="shoulder" sidesite="below"/> <site site="deltoid back"/>
    </spatial>
    <spatial name="elbow flexor"> <site site="shaft front"/> <site site="radius"/> </spatial>
    <spatial name="elbow extensor">
      <site site="shaft back"/> <geom geom="elbow" sidesite="behind"/> <site site="ulna"/>
    </spatial>
    <spatial name="biceps"> <site site="socket"/> <site site="radius"/> </spatial>
    <spatial name="triceps">
      <site site="rim"/> <geom geom="elbow" sidesite="behind"/> <site site="ulna"/>
    </spatial>
  </tendon>
  <actuator>
    <muscle name="shoulder flexor" tendon="shoulder flexor" lengthrange=".07 .26"/>
    <muscle name="shoulder extensor" tendon="shoulder extensor" lengthrange=".09 .245"/>
    <muscle name="elbow flexor" tendon="elbow flexor" lengthrange=".085 .19"/>
    <muscle name="elbow extensor" tendon="elbow extensor" lengthrange=".22 .285"/>
    <muscle name="biceps" tendon="biceps" lengthrange=".2 .4"/>
    <muscle name="triceps" tendon="triceps" lengthrange=".265 .445"/>
  </actuator>
</mujoco>"""
RESERVE = 0.01  # torque that costs as much as a full activation [N m]


def forces(batch, activation):
    """Return the muscle forces (n, nu) [N] of the present states at an activation."""
    batch.act[:] = batch.ctrl[:] = activation
    force = batch.bind("actuator_force")
    batch.forward()
    return force.copy()


def activations(batch, qacc):
    """Return the activations (n, nu) that accelerate the worlds by qacc with the least sum of squares.

    Minimizes |a|^2 + |(torque - J^T a) / RESERVE|^2 over 0 <= a <= 1: a boxed LCP for each world.
    """
    batch.inverse(qacc)
    torque = batch.qfrc_inverse.copy()
    arms, passive = batch.moment_arms(), forces(batch, 0.0)
    torque -= np.einsum("nij,ni->nj", arms, passive)
    J = arms * (forces(batch, 1.0) - passive)[..., None]  # joint torque by activation
    A = np.eye(J.shape[1]) + J @ np.swapaxes(J, 1, 2) / RESERVE**2
    found = fl.lcp.solve_batch(
        A, np.einsum("nij,nj->ni", J, torque) / RESERVE**2, hi=1.0
    )
    assert found.solved.all()
    return found.x


def reach(times, start, end):
    """Return positions, velocities and accelerations of a minimum-jerk motion."""
    start, end, T = np.array(start), np.array(end), times[-1]
    s = (times / T)[:, None]
    return (
        start + (end - start) * (10 * s**3 - 15 * s**4 + 6 * s**5),
        (end - start) * (30 * s**2 - 60 * s**3 + 30 * s**4) / T,
        (end - start) * (60 * s - 180 * s**2 + 120 * s**3) / T**2,
    )


def main(frames=51):
    model, times = fl.load(ARM), np.linspace(0, 0.4, frames)
    batch = fl.Batch(model, frames)  # one world per frame of the motion
    batch.qpos, batch.qvel, qacc = reach(times, (0.0, 0.3), (0.9, 1.6))
    found = activations(batch, qacc)
    acceleration = batch.bind("qacc")
    force = -forces(batch, found)  # [N]; muscles pull
    for i, a in enumerate(found.T):
        print(
            f"{model.actuator(i).name:17s} activation {a.min():.2f} to {a.max():.2f}, "
            f"force {force[:, i].min():3.0f} to {force[:, i].max():3.0f} N"
        )
    error = np.abs(acceleration - qacc).max()
    print(f"largest error of the accelerations: {error:.1e} rad/s^2")
    assert error < 0.05, "the muscles produce the motion"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
