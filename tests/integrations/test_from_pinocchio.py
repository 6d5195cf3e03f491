"""docs/migration-pinocchio.md: its names exist, and Pinocchio's results equal ours if it is installed."""

import re
from pathlib import Path

import numpy as np
import pytest

import featherlane as fl
from pages import blocks

PAGE = Path(__file__).parents[2] / "docs" / "migration-pinocchio.md"
ROUNDING = 1e-12  # of values of the order of ten
ORDER = [9, 6, 7, 8, 0, 3, 1, 4, 5, 2]  # of our inertial parameters in Pinocchio
ROBOT = """
<mujoco>
  <worldbody>
    <body name="trunk" pos="0 0 1">
      <freejoint name="root"/>
      <inertial pos="0.02 0.01 0.03" mass="5" diaginertia="0.1 0.08 0.06"/>
      <body name="leg" pos="0.1 0.05 -0.1">
        <joint name="hip" axis="0 1 0" armature="0.01"/>
        <inertial pos="0 0 -0.1" mass="1" diaginertia="0.01 0.012 0.004"/>
        <body name="foot" pos="0 0 -0.2">
          <joint name="knee" axis="1 0 0"/>
          <inertial pos="0 0.02 -0.1" mass="0.5" diaginertia="0.004 0.005 0.001"/>
          <site name="sole" pos="0 0 -0.2"/>
        </body>
      </body>
      <body name="slider" pos="-0.1 0 0.1">
        <joint name="rail" type="slide" axis="0 0 1"/>
        <inertial pos="0 0 0.05" mass="0.7" diaginertia="0.002 0.002 0.002"/>
      </body>
    </body>
  </worldbody>
</mujoco>"""


@pytest.fixture
def pin():
    return pytest.importorskip("pinocchio")


@pytest.fixture
def page(tmp_path):
    """Returns the names that the page's blocks define."""
    return blocks.run(PAGE.read_text(), tmp_path)[0]


@pytest.fixture
def state():
    """Returns a robot in a random state: model, data, and an acceleration."""
    model, random = fl.load(ROBOT), np.random.default_rng(1)
    data = fl.Data(model)
    data.qpos = fl.integrate_pos(model, model.qpos0, random.standard_normal(model.nv), 1.0)
    data.qvel = random.standard_normal(model.nv)
    fl.forward(model, data)
    return model, data, random.standard_normal(model.nv)


def close(ours, theirs):
    assert np.allclose(ours, theirs, rtol=ROUNDING, atol=ROUNDING)


def test_documented_state_conversions_are_correct(page, state):
    """The velocity of a point of the trunk, in its frame, by both conventions; and the fields left unchanged."""
    model, data, qacc = state
    q, v, a, T = page["to_pinocchio"](model, data.qpos, data.qvel, qacc)
    R = data.body("trunk").xmat.reshape(3, 3)
    close(v[:3], R.T @ data.qvel[:3])
    close(q[[6, 3, 4, 5]], data.qpos[3:7])
    close(T @ data.qvel, v)
    h = 1e-7  # a is the rate of v in rotating axes
    later = fl.integrate_pos(model, data.qpos, data.qvel, h)
    _, after, _, _ = page["to_pinocchio"](model, later, data.qvel + h * qacc, qacc)
    assert np.allclose((after - v) / h, a, atol=1e-5)


def test_documented_results_equal_pinocchio(pin, page, state, tmp_path):
    model, data, qacc = state
    path = tmp_path / "robot.xml"
    path.write_text(ROBOT)
    theirs = pin.buildModelFromMJCF(str(path))
    room = theirs.createData()
    assert list(theirs.names[1:]) == [model.joint(j).name for j in range(model.njnt)]
    q, v, a, T = page["to_pinocchio"](model, data.qpos, data.qvel, qacc)
    M = pin.crba(theirs, room, q)
    M = np.triu(M) + np.triu(M, 1).T
    close(fl.query.full_m(model, data), T.T @ M @ T)
    turning = np.r_[-np.cross(v[3:6], v[:3]), np.zeros(model.nv - 3)]  # dT/dt qvel
    close(data.qfrc_bias, T.T @ (pin.nonLinearEffects(theirs, room, q, v) + M @ turning))
    close(data.qacc_smooth, np.linalg.solve(T, pin.aba(theirs, room, q, v, np.zeros(model.nv)) - turning))
    data.qacc = qacc
    close(fl.stages.inverse_smooth(model, data), T.T @ pin.rnea(theirs, room, q, v, a))
    rate = np.zeros((model.nv, model.nv))  # dT/dt
    rate[:3] = -np.cross(v[3:6], T[:3], axisb=0).T
    C = pin.computeCoriolisMatrix(theirs, room, q, v)
    close(fl.query.coriolis_matrix(model, data), T.T @ (C @ T + M @ rate))
    parameters = fl.query.inertial_parameters(model, data)[1:, ORDER]
    close(parameters, [body.toDynamicParameters() for body in theirs.inertias.tolist()[1:]])
    Y = fl.query.torque_regressor(model, data, qacc)[:, 1:, ORDER].reshape(model.nv, -1)
    close(Y, T.T @ pin.computeJointTorqueRegressor(theirs, room, q, v, a))
    close(data.subtree_com[0], pin.centerOfMass(theirs, room, q))
    close(fl.query.jac_subtree_com(model, data, "trunk"), pin.jacobianCenterOfMass(theirs, room, q) @ T)
    sole = theirs.getFrameId("sole")
    J = pin.computeFrameJacobian(theirs, room, q, sole, pin.LOCAL_WORLD_ALIGNED)
    close(np.vstack(fl.query.jac_site(model, data, "sole")), J @ T)
    pin.framesForwardKinematics(theirs, room, q)
    close(data.site("sole").xpos, room.oMf[sole].translation)
    fl.stages.energy(model, data)
    close(data.energy, [pin.computePotentialEnergy(theirs, room, q), pin.computeKineticEnergy(theirs, room, q, v)])
    fl.stages.subtree_vel(model, data)
    momentum = np.r_[model.body_mass.sum() * data.subtree_linvel[1], data.subtree_angmom[1]]
    close(momentum, pin.computeCentroidalMomentum(theirs, room, q, v).vector)
    for name in re.findall(r"`pin\.(\w+)", PAGE.read_text()):
        assert hasattr(pin, name), name
