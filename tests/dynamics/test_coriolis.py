"""The Coriolis matrix: MuJoCo's bias forces, the rate of MuJoCo's mass matrix, and Christoffel symbols."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from scenes.joints import XML
from scenes.states import kicked

ROUNDING = 1e-12  # relative to the largest force
DIFFERENCE = 1e-7  # relative error of central differences over STEP
STEP = 1e-5
# a ball and a slide in one body, which moves the axes of neither, and a body with two hinges
BALL_SLIDE = """<mujoco><worldbody><body><joint type="ball" pos=".1 .2 0"/><joint type="slide" axis="1 2 3"/>
  <geom size=".1 .2 .3" type="box" pos=".2 0 .1"/>
  <body pos="0 0 .5"><joint axis="1 0 0"/><joint axis="0 1 1" pos=".1 0 0"/><geom size=".1" pos="0 .3 0"/>
  </body></body></worldbody></mujoco>"""
SOURCES = {"every joint": XML, "ball and slide": BALL_SLIDE, "humanoid": "humanoid", "arm": "arm"}


@pytest.fixture(params=SOURCES)
def world(request, rng):
    """Returns a model and a `Data` in a random state."""
    model = fl.load(SOURCES[request.param])
    data = fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng)
    return model, data


def oracle(model, qpos, qvel):
    """Returns MuJoCo's bias force [N, N m] and mass matrix."""
    mj = model.to_mujoco()
    data, M = mujoco.MjData(mj), np.zeros((mj.nv, mj.nv))
    data.qpos, data.qvel = qpos, qvel
    mujoco.mj_forward(mj, data)
    mujoco.mj_fullM(mj, data, M)
    return data.qfrc_bias, M


def moved(model, qpos, qvel, time):
    """Returns MuJoCo's position after moving with a velocity."""
    out = np.array(qpos)
    mujoco.mj_integratePos(model.to_mujoco(), out, np.array(qvel), time)
    return out


def rate_of_inertia(model, qpos, direction):
    """Returns the derivative of MuJoCo's mass matrix along a velocity."""
    after, before = (oracle(model, moved(model, qpos, direction, s * STEP), 0)[1] for s in (1, -1))
    return (after - before) / (2 * STEP)


def test_times_the_velocity_it_is_the_velocity_dependent_bias(world):
    model, data = world
    bias, at_rest = (oracle(model, data.qpos, v)[0] for v in (data.qvel, 0))
    C = fl.query.coriolis_matrix(model, data)
    np.testing.assert_allclose(C @ data.qvel, bias - at_rest, rtol=0, atol=ROUNDING * abs(bias).max())


def test_rate_of_inertia_minus_twice_it_is_skew_symmetric(world):
    model, data = world
    C = fl.query.coriolis_matrix(model, data)
    rate = rate_of_inertia(model, data.qpos, data.qvel)
    np.testing.assert_allclose(C + C.T, rate, rtol=0, atol=DIFFERENCE * max(1.0, abs(rate).max()))


def test_of_hinges_it_consists_of_christoffel_symbols(rng):
    model = fl.load("arm")
    data = fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng)
    dM = np.array([rate_of_inertia(model, data.qpos, axis) for axis in np.eye(model.nv)])  # [k, i, j]: dM_ij / dq_k
    symbols = 0.5 * (np.einsum("kij->ijk", dM) + np.einsum("jik->ijk", dM) - np.einsum("ijk->ijk", dM))
    np.testing.assert_allclose(fl.query.coriolis_matrix(model, data), symbols @ data.qvel, rtol=0, atol=DIFFERENCE)


def test_armature_does_not_change_it(rng):
    plain = fl.load("arm")
    heavy = fl.load("arm", edit=lambda spec: [setattr(joint, "armature", 3.0) for joint in spec.joints])
    qpos, qvel = kicked(plain, rng)
    found = []
    for model in (plain, heavy):
        data = fl.Data(model)
        data.qpos, data.qvel = qpos, qvel
        found.append(fl.query.coriolis_matrix(model, data))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_each_world_of_a_batch_has_its_own(rng, dtype):
    model = fl.load(XML)
    batch = fl.Batch(model, 5, dtype=dtype)
    batch.expand("body_mass")[:, 1] *= np.linspace(1.0, 2.0, 5)
    for world in range(5):
        batch.qpos[world], batch.qvel[world] = kicked(model, rng)
    found = batch.coriolis_matrix()
    np.testing.assert_array_equal(batch.coriolis_matrix(ids=[3, 1]), found[[3, 1]])
    for world in range(5):
        data = batch.get_data(world)
        expected = fl.query.coriolis_matrix(data.model, data)
        atol = 1e-5 * abs(expected).max() if dtype == "float32" else 0.0
        np.testing.assert_allclose(found[world], expected, rtol=0, atol=atol)
