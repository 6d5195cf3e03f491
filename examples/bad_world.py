"""One world of a thousand diverges: the program replays the failed step bitwise, and tests a repair."""

import sys
import warnings

import numpy as np

import featherlane as fl

# the explicit damping of the servo is unstable for a light cart
SCENE = """
<mujoco>
  <option timestep=".01" integrator="Euler"><flag eulerdamp="disable"/></option>
  <worldbody>
    <body name="cart"><joint name="rail" type="slide" axis="1 0 0"/><geom size=".1" mass="1"/></body>
  </worldbody>
  <actuator><position name="servo" joint="rail" kp="900" kv="60"/></actuator>
</mujoco>
"""


def main(nworld=1000):
    rng = np.random.default_rng(0)
    batch = fl.Batch(fl.load(SCENE), nworld, record_failures=8)
    batch.expand("body_mass")[:, 1] = rng.uniform(0.7, 2.0, nworld)
    batch.expand("body_mass")[nworld // 3, 1] = 0.2  # too light for the servo
    batch.set_const()
    warnings.simplefilter("ignore", fl.NonFiniteWarning)
    for _ in range(20):
        batch.ctrl = rng.uniform(-1, 1, (nworld, 1))
        batch.step(10)

    (failure,) = batch.failures
    print(f"{nworld} worlds, {failure}")
    for k, (x, v) in enumerate(
        zip(failure.states["qpos"], failure.states["qvel"], strict=True)
    ):
        print(f"  {k - failure.nstep + 1:3d}  x = {x[0]:9.2e} m  v = {v[0]:9.2e} m/s")

    # the failed step: its state and inputs, and the accelerations
    data = failure.replay(-1)
    data.forward()
    print(
        f"servo force {data.actuator_force[0]:.1e} N on a cart of {failure.model.body('cart').mass[0]:.2g} kg"
    )
    assert abs(data.qacc[0]) > 1e10 and failure.cause == "non_finite"
    assert failure.replay().status["non_finite"] == 1

    # the same initial state with implicit damping
    failure.model.opt.integrator = "implicitfast"
    data = failure.replay(0)
    speed = abs(data.qvel[0])
    data = failure.replay()
    print(
        f"implicitfast: the speed falls from {speed:.1e} m/s to {abs(data.qvel[0]):.1e} m/s in {failure.nstep} steps"
    )
    assert data.status["non_finite"] == 0 and abs(data.qvel[0]) < 0.1 * speed


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
