"""What MuJoCo drops from a URDF is named, and what it reads is not."""

import mujoco
import pytest

from featherlane.model.urdf import dropped_elements

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
ROBOT = (
    """<?xml version="1.0" encoding="utf-8"?>
<robot name="r">
  <mujoco><option timestep="0.001"/>{section}</mujoco>
  <material name="grey"><color rgba="0.5 0.5 0.5 1"/></material>
  <link name="base"/>
  <link name="thigh">"""
    + INERTIAL
    + """{link}
    <visual><geometry><sphere radius="0.1"/></geometry><material name="grey"/></visual>
    <collision><geometry><capsule radius="0.1" length="0.2"/></geometry></collision></link>
  <link name="shank">"""
    + INERTIAL
    + """</link>
  <joint name="hip" type="{kind}"><parent link="base"/><child link="thigh"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="3"/><dynamics damping="1" friction="2"/></joint>
  <joint name="knee" type="{kind}"><parent link="thigh"/><child link="shank"/><origin xyz="0 0 1"/>{joint}</joint>
  {robot}
</robot>"""
)


def urdf(**parts):
    """The robot with one part filled in."""
    return ROBOT.format(**({"section": "", "link": "", "joint": "", "robot": "", "kind": "revolute"} | parts))


def test_what_mujoco_reads_is_not_listed():
    text = urdf(joint='<mimic joint="hip" multiplier="2"/>')
    assert dropped_elements(text) == []
    model = mujoco.MjModel.from_xml_string(text)
    assert model.opt.timestep == 0.001
    assert list(model.jnt_actfrcrange[0]) == [-3, 3]
    assert (model.dof_damping[0], model.dof_frictionloss[0]) == (1, 2)
    assert model.neq == 1  # the mimic: an equality, which the feature check names


LOSSES = {
    "joint 'knee': <calibration> is ignored": {"joint": '<calibration rising="0"/>'},
    "joint 'knee': <safety_controller> is ignored": {"joint": '<safety_controller k_velocity="1"/>'},
    "joint 'knee': <limit> velocity is ignored": {"joint": '<limit lower="0" upper="1" velocity="2"/>'},
    "joint 'knee': <dynamics> spring_stiffness is ignored": {"joint": '<dynamics spring_stiffness="2"/>'},
    "joint 'knee': <limit> with only one of lower and upper: the joint has no limits": {"joint": '<limit upper="1"/>'},
    "link 'thigh': <contact_coefficients> is ignored": {"link": '<contact_coefficients mu="0.1"/>'},
    "transmission 't': is ignored": {"robot": '<transmission name="t"/>'},
    "<gazebo>: is ignored": {"robot": '<gazebo reference="thigh"/>'},
    "ros2_control 'c': is ignored": {"robot": '<ros2_control name="c"/>'},
    "<mujoco>: <actuator> is ignored": {"section": "<actuator/>"},
}


@pytest.mark.parametrize("line", LOSSES)
def test_losses_are_named(line):
    text = urdf(**LOSSES[line])
    assert dropped_elements(text) == [line]
    mujoco.MjModel.from_xml_string(text)  # MuJoCo takes it without a word


def test_limit_with_one_end_is_no_limit_in_mujoco():
    model = mujoco.MjModel.from_xml_string(urdf(joint='<limit upper="1"/>'))
    assert list(model.jnt_limited) == [1, 0]


def test_mimic_of_a_joint_that_is_not_scalar_is_named():
    text = urdf(kind="planar", joint='<mimic joint="hip"/>')
    expected = "joint 'knee': <mimic> is ignored: it needs a revolute, continuous or prismatic joint"
    assert dropped_elements(text) == [expected]
    assert mujoco.MjModel.from_xml_string(text).neq == 0


def test_equal_losses_share_a_line():
    text = urdf(robot='<transmission name="t1"/><transmission name="t2"/>')
    assert dropped_elements(text) == ["transmission 't1', transmission 't2': is ignored"]


def test_prefixes_that_nothing_declares_are_read():
    assert dropped_elements(urdf(robot="<sensor:camera/>")) == ["<sensor:camera>: is ignored"]


@pytest.mark.parametrize("text", ["<robot>", "", "<mujoco><gazebo/></mujoco>"])
def test_documents_that_are_not_urdf_lose_nothing(text):
    assert dropped_elements(text) == []
