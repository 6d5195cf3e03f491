"""The regressor of inverse dynamics and inertial parameters: MuJoCo's inverse dynamics, and identified masses."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from scenes.joints import XML
from scenes.states import kicked

ROUNDING = 1e-12  # relative to the largest force
PASSIVE = (
    mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_SPRING | mujoco.mjtDisableBit.mjDSBL_DAMPER
)


@pytest.fixture(params=[XML, "humanoid", "arm"], ids=["every joint", "humanoid", "arm"])
def world(request, rng):
    """Returns a model, a `Data` in a random state, and accelerations."""
    model = fl.load(request.param)
    data = fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng)
    return model, data, rng.standard_normal(model.nv)


def forces(Y, parameters):
    """Returns Y parameters."""
    return np.einsum("...ibk,...bk->...i", Y, parameters)


def oracle(model, data, qacc):
    """Returns MuJoCo's inverse dynamics without constraints, passive forces and armature [N, N m]."""
    mj = model.to_mujoco()
    mj.opt.disableflags |= int(PASSIVE)
    found = mujoco.MjData(mj)
    found.qpos, found.qvel, found.qacc = data.qpos, data.qvel, qacc
    mujoco.mj_inverse(mj, found)
    return found.qfrc_inverse - mj.dof_armature * qacc


def test_times_the_parameters_it_is_inverse_dynamics(world):
    model, data, qacc = world
    Y = fl.query.torque_regressor(model, data, qacc)
    assert Y.shape == (model.nv, model.nbody, 10)
    expected = oracle(model, data, qacc)
    found = forces(Y, fl.query.inertial_parameters(model, data))
    np.testing.assert_allclose(found, expected, rtol=0, atol=ROUNDING * abs(expected).max())


def test_it_does_not_depend_on_the_parameters(world):
    model, data, qacc = world
    Y = fl.query.torque_regressor(model, data, qacc)
    changed, general = fl.load(model.mj_model), model.mj_model.body_simple == 0  # M of others is a constant
    changed.body_mass[general] *= 2.0
    changed.body_inertia[general] *= 3.0
    changed.body_ipos[general] += 0.1
    other = fl.Data(changed)
    other.qpos, other.qvel = data.qpos, data.qvel
    scale = abs(Y).max()
    np.testing.assert_allclose(fl.query.torque_regressor(changed, other, qacc), Y, rtol=0, atol=ROUNDING * scale)
    found = forces(Y, fl.query.inertial_parameters(changed, other))
    expected = oracle(changed, other, qacc)
    np.testing.assert_allclose(found, expected, rtol=0, atol=ROUNDING * abs(expected).max())


def test_parameters_are_those_of_a_displaced_box():
    model = fl.load("""<mujoco><worldbody><body pos="1 1 1" euler="10 20 30"><freejoint/>
      <inertial pos=".1 .2 .3" mass="2" diaginertia=".3 .4 .5"/></body></worldbody></mujoco>""")
    c, mass = np.array([0.1, 0.2, 0.3]), 2.0
    J = np.diag([0.3, 0.4, 0.5]) + mass * (c @ c * np.eye(3) - np.outer(c, c))
    expected = [*np.diag(J), J[0, 1], J[0, 2], J[1, 2], *(mass * c), mass]
    found = fl.query.inertial_parameters(model, fl.Data(model))
    np.testing.assert_allclose(found, [np.zeros(10), expected], atol=1e-15)


def test_masses_are_identified_from_forces(rng):
    model = fl.load("arm")
    batch = fl.Batch(model, 200)
    for world in range(200):
        batch.qpos[world], batch.qvel[world] = kicked(model, rng)
    qacc = 5.0 * rng.standard_normal((200, model.nv))
    Y = batch.torque_regressor(qacc)
    truth = fl.query.inertial_parameters(model, fl.Data(model))
    tau = forces(Y, truth)
    found = np.linalg.lstsq(Y.reshape(-1, 10 * model.nbody), tau.ravel())[0].reshape(-1, 10)
    other = fl.Batch(model, 50)
    for world in range(50):
        other.qpos[world], other.qvel[world] = kicked(model, rng)
    Y = other.torque_regressor(0.3)
    # only combinations of parameters are identifiable, and these predict all forces
    np.testing.assert_allclose(forces(Y, found), forces(Y, truth), rtol=0, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_each_world_of_a_batch_has_its_own(rng, dtype):
    model = fl.load(XML)
    batch = fl.Batch(model, 5, dtype=dtype)
    batch.expand("body_mass")[:, 1] *= np.linspace(1.0, 2.0, 5)
    for world in range(5):
        batch.qpos[world], batch.qvel[world] = kicked(model, rng)
    qacc = rng.standard_normal((5, model.nv)).astype(dtype)
    Y, parameters = batch.torque_regressor(qacc), batch.inertial_parameters()
    assert Y.shape == (5, model.nv, model.nbody, 10) and parameters.shape == (5, model.nbody, 10)
    np.testing.assert_array_equal(batch.torque_regressor(qacc[[3, 1]], ids=[3, 1]), Y[[3, 1]])
    np.testing.assert_array_equal(batch.inertial_parameters(ids=[4]), parameters[[4]])
    for world in range(5):
        data = batch.get_data(world)
        expected = fl.query.torque_regressor(data.model, data, qacc[world])
        atol = 1e-5 * abs(expected).max() if dtype == "float32" else 0.0
        np.testing.assert_allclose(Y[world], expected, rtol=0, atol=atol)
        own = fl.query.inertial_parameters(data.model, data)
        np.testing.assert_allclose(parameters[world], own, rtol=0, atol=1e-6 if dtype == "float32" else 0.0)


def test_wrong_accelerations_are_refused():
    model = fl.load("arm")
    with pytest.raises(fl.ModelError, match="qacc"):
        fl.query.torque_regressor(model, fl.Data(model), np.zeros(3))
    with pytest.raises(fl.ModelError, match="qacc"):
        fl.Batch(model, 2).torque_regressor(np.zeros((3, model.nv)))
