"""Defines a user actuator: a wire that contracts when it is heated, and lifts an arm in many worlds."""

import sys

import numpy as np

import featherlane as fl
from featherlane.lanes import exp

ARM = """<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <body name="arm"> <joint name="elbow" axis="0 -1 0" damping="0.5"/>
      <geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0" mass="0.5"/>
    </body>
  </worldbody>
  <actuator>  <!-- heating and cooling rates; force; stiffness parameters -->
    <general name="wire" joint="elbow" gear="0.05" ctrlrange="0 1" dyntype="user" dynprm="2 1.5" actdim="1"
             gaintype="user" gainprm="40" biastype="user" biasprm="25 60"/>
  </actuator>
</mujoco>"""


@fl.kernel
def heat(m, d, i):
    """Rate of the temperature: heating by power, cooling by air, w' = a u - b w."""
    power, w = d.actuator_input[m.actuator_ctrladr[i]], d.act[m.actuator_actadr[i]]
    return m.actuator_dynprm[i][0] * power - m.actuator_dynprm[i][1] * w


@fl.kernel
def pull(m, d, i):
    """Force of the warm wire; it decreases with contraction."""
    return m.actuator_gainprm[i][0] * exp(
        -10.0 * d.actuator_length[m.actuator_outadr[i]]
    )


@fl.kernel
def stretch(m, d, i):
    """Force of the cold wire, a nonlinear spring: f = k (exp(-c l) - 1)."""
    k, c = m.actuator_biasprm[i][0], m.actuator_biasprm[i][1]
    return k * (exp(-c * d.actuator_length[m.actuator_outadr[i]]) - 1.0)


@fl.kernel
def thermostat(m, d):
    """Control in each step, compiled: power proportional to the distance of the arm below the level."""
    d.ctrl[0] = -4.0 * d.qpos[0]


def main(seconds=4.0):
    model = fl.load(ARM)
    fl.set_user_actuator(model, "wire", activation=heat, gain=pull, bias=stretch)
    batch, steps = fl.Batch(model, 8), round(seconds / model.opt.timestep)
    batch.ctrl = np.linspace(0, 0.7, 8)[:, None]
    force = batch.rollout(steps, record="actuator_force")["actuator_force"][:, -1, 0]
    weight = 9.81 * 0.5 * 0.15 * np.cos(batch.qpos[:, 0])
    for power, angle, f in zip(
        batch.ctrl[:, 0], np.rad2deg(batch.qpos[:, 0]), force, strict=True
    ):
        print(f"power {power:.1f}: {angle:6.1f} degrees, {f:5.2f} N")
    assert np.allclose(batch.act[:, 0], batch.ctrl[:, 0] * 2 / 1.5, atol=0.01), (
        "as warm as power and air make it"
    )
    assert np.allclose(0.05 * force, weight, atol=0.02), "the wire bears the arm"
    assert np.all(np.diff(batch.qpos[:, 0]) > 0), "the warmer, the higher"

    batch.rollout(steps, control=thermostat)
    print(f"with feedback, mean angle {np.rad2deg(batch.qpos.mean()):.1f} degrees")
    assert np.ptp(batch.qpos) < 0.01, "wherever they start"


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
