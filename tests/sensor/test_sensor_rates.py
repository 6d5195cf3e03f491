"""Sensor derivatives by implicit differentiation: values and accelerations together, against whole steps."""

from __future__ import annotations

import numpy as np
import pytest

import featherlane as fl
from scenes.sensors import GROUPS, scene
from scenes.states import kicked
from sensor.test_transition import CART, LINEAR

CONTACT = 2e-6  # of the largest entry of a sensor: a force is stiff in the acceleration, which has an error of 1e-10
NOISE = 1e-6  # of constant sensors: forces over 2e-7
# contacts, limits, forces between bodies, accelerations, energies
STANDING = """<mujoco><option timestep="0.005" tolerance="0" iterations="100" integrator="{integrator}"/>
<worldbody><geom type="plane" size="3 3 1"/>
  <body name="box" pos="0 0 0.0995"><freejoint/><geom name="box" type="box" size="0.1 0.1 0.1" mass="1"/>
    <site name="felt" type="box" size="0.12 0.12 0.12"/>
    <body pos="0.12 0 0.1"><joint name="arm" axis="0 1 0" range="-10 20" damping="0.2"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02"/><site name="tip" pos="0.3 0 0"/></body></body>
</worldbody>
<actuator><motor name="motor" joint="arm"/>
  <general name="slow" joint="arm" dyntype="filter" dynprm="0.1" gainprm="0.3"/></actuator>
<sensor><touch site="felt"/><accelerometer site="tip"/><force site="tip"/><torque site="tip"/>
  <jointlimitfrc joint="arm"/><actuatorfrc actuator="motor"/><framelinacc objtype="site" objname="tip"/>
  <gyro site="tip"/><jointpos joint="arm"/><framequat objtype="body" objname="box"/><e_kinetic/>
  <jointactuatorfrc joint="arm"/></sensor></mujoco>"""
SLOW = '<general name="slow" joint="arm" dyntype="filter" dynprm="0.1" gainprm="0.3"/>'
ALLOWED = {"discrete": 2e-5}  # whose whole residual is differenced


def close(found, expected, tolerance) -> None:
    """Asserts small errors of C and D, sensor by sensor."""
    for ours, theirs in ((found.C, expected.C), (found.D, expected.D)):
        scale = np.abs(np.concatenate([expected.C, expected.D], -1)).max(-1, keepdims=True)
        assert (np.abs(ours - theirs) <= tolerance * scale + NOISE).all()


def test_a_linear_systems_sensors_have_their_matrices():
    model = fl.load(CART)
    data = fl.Data(model)
    data.qpos, data.qvel, data.ctrl = 0.2, 0.3, 0.4
    found = fl.linearize(model, data, sensors=True)
    np.testing.assert_allclose(found.C, [[1, 0], [0, 1], [0, 0], [0, 0], [-4, 0], [0, 0]], atol=LINEAR)
    np.testing.assert_allclose(found.D[:, 0], [0, 0, 0, 0, 1.5, 1], atol=LINEAR)


def test_derivatives_of_all_sensor_kinds_equal_those_of_steps(rng):
    """Without rows, C and D agree to the rounding of both differences."""
    model = fl.load(scene("".join(GROUPS.values())))
    model.opt.disableflags = "constraint"
    data = fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng, 0.01, 0.3)
    close(
        fl.linearize(model, data, sensors=True),
        fl.linearize(model, data, sensors=True, method="finite_difference"),
        1e-6,
    )


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "discrete", "RK4"])
def test_forces_and_accelerations_under_contact(integrator):
    # steps of rk4 with activations have no implicit differentiation
    model = fl.load(STANDING.format(integrator=integrator).replace(SLOW, "" if integrator == "RK4" else SLOW))
    data = fl.Data(model)
    data.ctrl, data.act, data.qvel[0] = 0.1, 0.2, 0.3
    fl.step(model, data, 100)
    found = fl.linearize(model, data, sensors=True)
    assert found.switching > 1e-4 and data.sensordata[0] > 1.0 and np.abs(found.C[10]).max() > 1.0
    coarse, fine = (
        fl.linearize(model, data, eps=eps, sensors=True, method="finite_difference") for eps in (2e-6, 1e-6)
    )
    expected = fine._replace(C=(4.0 * fine.C - coarse.C) / 3.0, D=(4.0 * fine.D - coarse.D) / 3.0)
    close(found, expected, ALLOWED.get(integrator, CONTACT))


def test_no_solver_runs_at_displaced_states():
    """With few iterations differences of steps are inaccurate; these are the derivatives at the step's acceleration."""
    model = fl.load(STANDING.format(integrator="Euler"))
    data = fl.Data(model)
    data.ctrl = 0.8
    fl.step(model, data, 60)
    exact = fl.linearize(model, data, sensors=True)
    model.opt.tolerance, model.opt.iterations = 1e-3, 2
    assert np.abs(fl.linearize(model, data, sensors=True).C - exact.C).max() < 1e-2 * np.abs(exact.C).max()


def test_a_batch_is_bitwise_equal_to_its_worlds(rng):
    model = fl.load(STANDING.format(integrator="Euler"))
    batch = fl.Batch(model, 9, nthread=1)
    batch.qvel[:] += 0.1 * rng.standard_normal(batch.qvel.shape)
    batch.step(30)
    found, many = (fl.linearize(model, batch, sensors=True, nthread=n) for n in (1, 2))
    assert found.C.shape == (9, model.nsensordata, 2 * model.nv + model.na)
    assert found.C.tobytes() == many.C.tobytes() and found.D.tobytes() == many.D.tobytes()
    for w in (0, 5, 8):
        alone = fl.linearize(model, batch.get_data(w), sensors=True)
        assert alone.C.tobytes() == found.C[w].tobytes() and alone.D.tobytes() == found.D[w].tobytes()


@pytest.mark.parametrize("contact_model", ["convex", "lcp"])
def test_both_contact_models_have_them(contact_model):
    model = fl.load(STANDING.format(integrator="Euler"))
    model.opt.contact_model = contact_model
    data = fl.Data(model)
    fl.step(model, data, 30)
    found = fl.linearize(model, data, sensors=True, frictionloss=False)
    assert np.isfinite(found.C).all() and found.D.shape == (model.nsensordata, model.nu)
