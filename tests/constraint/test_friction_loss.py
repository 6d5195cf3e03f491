"""Dry friction of joints and tendons under Coulomb's law is rigid: below its limit nothing moves."""

import numpy as np
import pytest

import featherlane as fl

LIFTED = """<mujoco><worldbody><body pos="0 0 1"><joint axis="0 1 0" frictionloss="{joint}"/>
<geom type="capsule" fromto="0 0 0 .5 0 0" size=".02" mass="1"/><site name="tip" pos=".5 0 0"/></body>
<site name="hook" pos=".5 0 2"/></worldbody><tendon>
<spatial name="rope" frictionloss="{rope}"><site site="hook"/><site site="tip"/></spatial></tendon></mujoco>"""
WEIGHT = 9.81  # N
TORQUE, PULL = 0.25 * WEIGHT, 0.5 * WEIGHT  # of gravity at the joint and at the rope [N m, N]
SECOND = 500  # steps
CREEP = 1e-5  # rad in a second; MuJoCo's rows creep by 0.03
EXACT = 1e-7  # derivatives against differences, relative


def arm(joint=0.0, rope=0.0, contact_model="coulomb"):
    model = fl.load(LIFTED.format(joint=joint, rope=rope))
    model.opt.contact_model = contact_model
    return model


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("loss", [{"joint": 2 * TORQUE}, {"rope": 2 * PULL}], ids=["joint", "tendon"])
def test_half_of_the_holding_force_does_not_move_the_arm(loss, dtype):
    batch = fl.Batch(arm(**loss), 3, dtype=dtype)
    batch.step(SECOND)
    assert np.abs(batch.qpos).max() < CREEP and not batch.status["not_converged"].any()


@pytest.mark.parametrize("loss", [{"joint": 0.9 * TORQUE}, {"rope": 0.9 * PULL}], ids=["joint", "tendon"])
def test_less_than_the_holding_force_accelerates_by_the_difference(loss):
    data = fl.Data(arm(**loss))
    data.step()
    data.forward()
    (inertia,) = fl.query.full_m(data.model, data).ravel()
    assert data.qacc[0] == pytest.approx(0.1 * TORQUE / inertia, rel=1e-4)


def test_a_sliding_joint_stops_and_stays():
    data = fl.Data(arm(joint=2 * TORQUE))
    data.qvel[0] = -1.0
    data.step(SECOND)
    stopped = data.qpos[0]
    data.step(SECOND)
    assert abs(data.qpos[0] - stopped) < CREEP and stopped < -0.004


def test_friction_opposes_motion_with_its_limit():
    data = fl.Data(arm(joint=0.5))
    data.qvel[0] = 1.0
    data.forward()
    assert data.qfrc_constraint[0] == pytest.approx(-0.5, rel=1e-12)


@pytest.mark.parametrize("loss", [{"joint": 2 * TORQUE}, {"rope": 2 * PULL}, {"joint": 0.3, "rope": 0.2}])
@pytest.mark.parametrize("speed", [0.0, 0.5])
def test_derivatives_equal_differences(loss, speed):
    model = arm(**loss)
    model.opt.tolerance = 0.0
    data = fl.Data(model)
    data.qpos[0], data.qvel[0] = 0.3, speed
    A = fl.linearize(model, data).A
    expected = fl.linearize(model, data, method="finite_difference", eps=1e-6).A
    np.testing.assert_allclose(A, expected, atol=EXACT * np.abs(expected).max())


def test_rows_report_their_rigid_reference():
    data = fl.Data(arm(joint=1.0))
    data.qvel[0] = 0.1
    data.forward()
    assert data.efc_aref[0] == pytest.approx(-0.1 / data.model.opt.timestep)
    assert data.efc_KBIP[0, 1] == pytest.approx(1 / data.model.opt.timestep)


def test_joints_with_friction_and_feet_on_the_floor_converge():
    model = fl.bundled("quadruped")
    model.opt.contact_model = "coulomb"
    model.dof_frictionloss[6:] = 0.5
    batch = fl.Batch(model, 16)
    batch.ctrl[:] = np.random.default_rng(0).uniform(-1, 1, batch.ctrl.shape)
    batch.step(200)
    assert batch.status["not_converged"].sum() <= 3  # of 3,200; 1 in 130 without softened losses in the first problem
