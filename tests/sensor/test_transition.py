"""Derivatives of sensors by state and controls: exact if the exact values are known, MuJoCo's otherwise."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from scenes.sensors import GROUPS, scene
from scenes.states import kicked

LINEAR = 1e-8  # rounding of sensors of order 10 over eps = 1e-6
PARITY = 1e-6  # relative to the largest entry of a sensor's rows: rounding of solves in both engines
CART = """<mujoco><option timestep="0.01" gravity="0 0 0"/><worldbody><body><joint name="x" type="slide" stiffness="8"/>
<geom size=".1" mass="2"/><site name="s"/></body></worldbody><actuator><motor name="x" joint="x" gear="3"/></actuator>
<sensor><jointpos joint="x"/><jointvel joint="x"/><accelerometer site="s"/><actuatorfrc actuator="x"/></sensor>
</mujoco>"""
# without kinetic energy, whose velocity derivatives MuJoCo omits
SMOOTH = "framepos framequat framelinvel framelinacc gyro force subtrees joints actuators".split()


def test_a_linear_systems_sensors_have_their_matrices():
    model = fl.load(CART)
    data = fl.Data(model)
    data.qpos, data.qvel, data.ctrl = 0.2, 0.3, 0.4
    found = fl.linearize(model, data, sensors=True, method="finite_difference")
    np.testing.assert_allclose(found.C, [[1, 0], [0, 1], [0, 0], [0, 0], [-4, 0], [0, 0]], atol=LINEAR)
    np.testing.assert_allclose(found.D[:, 0], [0, 0, 0, 0, 1.5, 1], atol=LINEAR)
    plain = fl.linearize(model, data, method="finite_difference")
    assert np.array_equal(found.A, plain.A) and np.array_equal(found.B, plain.B)


@pytest.mark.parametrize("centered", [True, False])
def test_derivatives_of_sensors_equal_mujoco(centered, rng):
    model = fl.load(scene("".join(GROUPS[name].split("/>")[k] + "/>" for name in SMOOTH for k in range(2))))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT  # its contribution is stiff: rounding over eps
    mj = model.to_mujoco()
    expected, data = mujoco.MjData(mj), fl.Data(model)
    expected.qpos[:], expected.qvel[:] = kicked(mj, rng, 0.01, 0.3)
    data.qpos, data.qvel = expected.qpos, expected.qvel
    nx = 2 * model.nv + model.na
    C, D = np.zeros((model.nsensordata, nx)), np.zeros((model.nsensordata, model.nu))
    mujoco.mjd_transitionFD(mj, expected, 1e-6, centered, None, None, C, D)
    found = fl.linearize(model, data, centered=centered, sensors=True, method="finite_difference")
    scale = np.maximum(1.0, np.abs(np.concatenate([C, D], 1)).max(1, keepdims=True))
    assert (np.abs(found.C - C) < PARITY * scale).all()
    assert (np.abs(found.D - D) < PARITY * scale).all()


def test_a_batch_has_the_derivatives_of_its_worlds(rng):
    model = fl.load(CART)
    batch = fl.Batch(model, 3)
    batch.qpos, batch.qvel = rng.standard_normal((2, 3, 1))
    found = fl.linearize(model, batch, sensors=True, method="finite_difference")
    assert found.C.shape == (3, 6, 2)
    for w in range(3):
        alone = fl.linearize(model, batch.get_data(w), sensors=True, method="finite_difference")
        assert np.array_equal(found.C[w], alone.C) and np.array_equal(found.D[w], alone.D)
