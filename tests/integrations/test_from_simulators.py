"""Migration pages of PyBullet and Drake: states, conversions and results agree, if the library is installed."""

import re
from pathlib import Path

import numpy as np
import pytest

import featherlane as fl
from pages import blocks

DOCS = Path(__file__).parents[2] / "docs"
TIMESTEP, STEPS = 0.001, 1000
SAME = 1e-6  # of results that both compute from one state; inertias of a URDF are stored in float64
CLOSE = 2e-3  # of states after 1 s: the integrators differ


@pytest.fixture
def names(tmp_path, monkeypatch):
    """Returns a function that runs the blocks of a page; it returns their names."""
    monkeypatch.chdir(tmp_path)
    return lambda page: blocks.run((DOCS / f"{page}.md").read_text(), tmp_path)[0]


@pytest.fixture
def bullet():
    """Returns PyBullet, connected, with the gravity and the time step of the page."""
    p = pytest.importorskip("pybullet")
    client = p.connect(p.DIRECT)
    p.setGravity(0, 0, -9.81)
    p.setTimeStep(TIMESTEP)
    yield p
    p.disconnect(client)


@pytest.fixture
def state(names):
    """Returns the free robot of Drake's page in a random state, its data and its URDF."""
    found = names("migration-drake")
    model, random = fl.load(found["FLOATING"]), np.random.default_rng(3)
    data = fl.Data(model)
    data.qpos = fl.integrate_pos(model, model.qpos0, random.standard_normal(model.nv), 1.0)
    data.qvel = random.standard_normal(model.nv)
    data.forward()
    return model, data, found


def free(p, robot):
    """Removes the default motors and damping of PyBullet."""
    for joint in range(-1, p.getNumJoints(robot)):
        p.changeDynamics(robot, joint, linearDamping=0, angularDamping=0, jointDamping=0)
        if joint >= 0:
            p.setJointMotorControl2(robot, joint, p.VELOCITY_CONTROL, force=0)


def test_the_arm_of_pybullets_page(bullet, names):
    p, page = bullet, (DOCS / "migration-pybullet.md").read_text()
    names("migration-pybullet")  # writes arm.urdf
    arm = p.loadURDF("arm.urdf", useFixedBase=True, flags=p.URDF_USE_INERTIA_FROM_FILE)
    free(p, arm)
    p.resetJointState(arm, 0, 1.0)
    for _ in range(STEPS):
        p.stepSimulation()
    found = [round(state[0], 3) for state in p.getJointStates(arm, [0, 1])]
    assert f"# {found}\n" in page and f"[{found[0]} {found[1]}]" in page
    model = fl.load("arm.urdf")
    data = fl.Data(model)
    data.qpos, data.qvel = [0.3, -0.5], [1.0, 2.0]
    data.forward()
    np.testing.assert_allclose(p.calculateMassMatrix(arm, [0.3, -0.5]), fl.query.full_m(model, data), atol=SAME)
    data.qacc = [0.5, -0.5]
    fl.inverse(model, data)
    forces = p.calculateInverseDynamics(arm, [0.3, -0.5], [1.0, 2.0], [0.5, -0.5])
    np.testing.assert_allclose(forces, data.qfrc_inverse, atol=SAME)


def test_defaults_of_pybullet(bullet, names):
    """The table of differences: motors that hold, inertias of shapes, forces of one step, exact position control."""
    p = bullet
    names("migration-pybullet")
    p.resetSimulation()
    assert p.getPhysicsEngineParameters()["gravityAccelerationZ"] == 0.0
    p.setGravity(0, 0, -9.81)
    arm = p.loadURDF("arm.urdf", useFixedBase=True)
    assert p.getDynamicsInfo(arm, 0)[2][0] < 1e-3  # 0.02 in the file
    p.resetJointState(arm, 0, 1.0)
    for _ in range(STEPS):
        p.stepSimulation()
    assert p.getJointState(arm, 0)[0] == pytest.approx(1.0)
    for joint, target in ((0, 0.5), (1, -0.5)):
        p.setJointMotorControl2(arm, joint, p.POSITION_CONTROL, targetPosition=target)
    for _ in range(STEPS):
        p.stepSimulation()
    assert p.getJointState(arm, 0)[0] == pytest.approx(0.5, abs=1e-9)
    free(p, arm)
    p.setGravity(0, 0, 0)
    p.resetJointState(arm, 0, 0.0)
    p.resetJointState(arm, 1, 0.0)
    p.setJointMotorControl2(arm, 0, p.TORQUE_CONTROL, force=1.0)
    speeds = []
    for _ in range(2):
        p.stepSimulation()
        speeds.append(p.getJointState(arm, 0)[1])
    assert speeds[0] > 1e-3 and speeds[1] == pytest.approx(speeds[0], rel=1e-2)


def test_a_free_root_in_pybullet(bullet, names, state, tmp_path):
    p, convert, (model, data, found) = bullet, names("migration-pybullet")["to_pybullet"], state
    text = re.sub(r'  <link name="world"/>\n  <joint name="root".*?</joint>\n', "", found["FLOATING"], flags=re.DOTALL)
    (tmp_path / "free.urdf").write_text(text)
    robot = p.loadURDF(str(tmp_path / "free.urdf"), flags=p.URDF_USE_INERTIA_FROM_FILE)
    free(p, robot)
    position, quaternion, velocity, angular = convert(model, data, "upper")
    p.resetBasePositionAndOrientation(robot, position, quaternion)
    p.resetBaseVelocity(robot, velocity, angular)
    p.resetJointState(robot, 0, data.qpos[7], data.qvel[6])
    np.testing.assert_allclose(p.getLinkState(robot, 0, 1)[4], data.body("lower").xpos, atol=SAME)
    model.opt.timestep = TIMESTEP
    data.step(STEPS)
    for _ in range(STEPS):
        p.stepSimulation()
    data.forward()
    position, quaternion, *_ = convert(model, data, "upper")
    np.testing.assert_allclose(p.getBasePositionAndOrientation(robot)[0], position, atol=CLOSE)
    assert abs(np.dot(p.getBasePositionAndOrientation(robot)[1], quaternion)) > 1.0 - CLOSE


def in_drake(urdf: str, weld: bool):
    """Returns a finalized plant, a simulator and the plant's context."""
    pydrake = pytest.importorskip("pydrake.all")
    builder = pydrake.DiagramBuilder()
    plant, _ = pydrake.AddMultibodyPlantSceneGraph(builder, time_step=TIMESTEP)
    pydrake.Parser(plant).AddModelsFromString(urdf, "urdf")
    if weld:
        plant.WeldFrames(plant.world_frame(), plant.GetFrameByName("base"))
    plant.Finalize()
    simulator = pydrake.Simulator(builder.Build())
    return plant, simulator, plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())


def test_the_arm_of_drakes_page(names):
    found, page = names("migration-drake"), (DOCS / "migration-drake.md").read_text()
    plant, simulator, context = in_drake(found["ARM"], weld=True)
    plant.SetPositions(context, [1.0, 0.0])
    simulator.AdvanceTo(STEPS * TIMESTEP)
    assert page.count(str(plant.GetPositions(context).round(4))) == 2
    model = fl.load(found["ARM"])
    data = fl.Data(model)
    data.qpos, data.qvel = [0.3, -0.5], [1.0, 2.0]
    data.forward()
    plant.SetPositions(context, data.qpos)
    plant.SetVelocities(context, data.qvel)
    np.testing.assert_allclose(plant.CalcMassMatrix(context), fl.query.full_m(model, data), atol=SAME)
    bias = plant.CalcBiasTerm(context) - plant.CalcGravityGeneralizedForces(context)
    np.testing.assert_allclose(bias, data.qfrc_bias, atol=SAME)


def test_a_free_root_in_drake(state):
    model, data, found = state
    plant, simulator, context = in_drake(found["FLOATING"], weld=False)
    assert plant.GetStateNames()[:7] == [f"arm_upper_{k}" for k in ("qw", "qx", "qy", "qz", "x", "y", "z")]
    q, v = found["to_drake"](data.qpos, data.qvel)
    plant.SetPositions(context, q)
    plant.SetVelocities(context, v)
    energy = 0.5 * data.qvel @ fl.query.full_m(model, data) @ data.qvel
    assert plant.CalcKineticEnergy(context) == pytest.approx(energy, rel=1e-12)
    model.opt.timestep = TIMESTEP
    data.step(STEPS)
    simulator.AdvanceTo(STEPS * TIMESTEP)
    qpos, qvel = found["from_drake"](plant.GetPositions(context), plant.GetVelocities(context))
    np.testing.assert_allclose(qpos, data.qpos, atol=CLOSE)
    np.testing.assert_allclose(qvel, data.qvel, atol=CLOSE)
