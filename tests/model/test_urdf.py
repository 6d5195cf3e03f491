"""Elements that MuJoCo drops from a URDF are named; elements that it reads are not."""

import mujoco
import pytest

import featherlane as fl
from featherlane.engine.model.urdf import dropped_elements
from sampling import pairwise

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
  <joint name="knee" type="{kind}"><parent link="thigh"/><child link="shank"/><origin xyz="0 0 1"/>
    {limit}{joint}</joint>
  {robot}
</robot>"""
)


def urdf(**parts):
    """Returns the robot with one part inserted."""
    limit = "" if "<limit" in parts.get("joint", "") else '<limit lower="-1" upper="1"/>'
    parts = {"section": "", "link": "", "joint": "", "robot": "", "kind": "revolute", "limit": limit} | parts
    return ROBOT.format(**parts)


def test_elements_that_mujoco_reads_are_not_listed():
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
    "joint 'knee': <limit> with only one of lower and upper is ignored: the joint has no limits": {
        "joint": '<limit upper="1"/>'
    },
    "link 'thigh': <contact_coefficients> is ignored": {"link": '<contact_coefficients mu="0.1"/>'},
    "transmission 't': is ignored": {"robot": '<transmission name="t"/>'},
    "<gazebo>: is ignored": {"robot": "<gazebo/>"},
    "gazebo 'thigh': is ignored (mu1, gravity)": {"robot": '<gazebo reference="thigh"><mu1/><gravity/></gazebo>'},
    "link 'thigh': <sdf>, <surface> in <collision> is ignored": {
        "link": '<collision><sdf/><geometry><sphere radius="1"/></geometry><surface/><sdf/></collision>'
    },
    "joint 'knee': <limit> with lower 1 and upper -1 is ignored: the joint has no limits": {
        "joint": '<limit lower="1" upper="-1"/>'
    },
    "joint 'knee': <limit> with lower 0 and upper 0.0 is ignored: the joint has no limits": {
        "joint": '<limit lower="0" upper="0.0"/>'
    },
    "joint 'knee': <limit> lower and upper are missing: the joint has no limits": {"joint": '<limit effort="1"/>'},
    "joint 'tip': <limit> lower and upper are missing: the joint has no limits": {
        "robot": '<link name="t"/><joint name="tip" type="prismatic"><parent link="shank"/><child link="t"/></joint>'
    },
    "link 'crate': no joint has it as its child; it is fixed to the world, as 'base'": {
        "robot": '<link name="crate"/>'
    },
    "<xacro:leg>: is ignored: expand xacro files first, with `xacro FILE > robot.urdf`": {"robot": "<xacro:leg/>"},
    "ros2_control 'c': is ignored": {"robot": '<ros2_control name="c"/>'},
    "<mujoco>: <actuator> is ignored": {"section": "<actuator/>"},
}


@pytest.mark.parametrize("line", LOSSES)
def test_unread_elements_are_named(line):
    text = urdf(**LOSSES[line])
    assert dropped_elements(text) == [line]
    mujoco.MjSpec.from_string(text)  # MuJoCo reads it


def test_a_one_sided_limit_is_ignored_by_mujoco():
    model = mujoco.MjModel.from_xml_string(urdf(joint='<limit upper="1"/>'))
    assert list(model.jnt_limited) == [1, 0]


def test_mimic_of_a_joint_that_is_not_scalar_is_named():
    text = urdf(kind="planar", joint='<mimic joint="hip"/>')
    expected = "joint 'knee': <mimic> is ignored: it needs a revolute, continuous or prismatic joint"
    assert dropped_elements(text) == [expected]
    assert mujoco.MjModel.from_xml_string(text).neq == 0
    assert dropped_elements(urdf(joint='<mimic joint="nope"/>')) == [expected]


def test_equal_unread_elements_share_a_line():
    text = urdf(robot='<transmission name="t1"/><transmission name="t2"/>')
    assert dropped_elements(text) == ["transmission 't1', transmission 't2': is ignored"]


def test_empty_lines_before_the_declaration_are_accepted():
    text = '<robot name="r"><link name="a"/><gazebo><static>1</static></gazebo></robot>'
    assert dropped_elements("\n \n<?xml version='1.0'?>" + text) == dropped_elements(text) != []


def test_undeclared_prefixes_are_accepted():
    assert dropped_elements(urdf(robot="<sensor:camera/>")) == ["<sensor:camera>: is ignored"]


@pytest.mark.parametrize("text", ["<robot>", "", "<mujoco><gazebo/></mujoco>"])
def test_documents_other_than_urdf_report_no_unread_elements(text):
    assert dropped_elements(text) == []


# ---- packages --------------------------------------------------------------------------------------------------------
TETRAHEDRON = "v 0 0 0\nv .1 0 0\nv 0 .1 0\nv 0 0 .1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"
MESH = '<collision><geometry><mesh filename="package://my_robot/meshes/a%20part.obj"/></geometry></collision>'


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Returns a folder with the package `my_robot`, which no environment variable names."""
    for name in ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH"):
        monkeypatch.delenv(name, raising=False)
    meshes = tmp_path / "install" / "share" / "my_robot" / "meshes"
    meshes.mkdir(parents=True)
    (meshes / "a part.obj").write_text(TETRAHEDRON)
    return meshes.parents[1]


def meshes(source, **given):
    with pytest.warns(UserWarning, match="links without a body"):
        return fl.load(source, **given).nmesh


@pytest.mark.parametrize("up", [0, 1, 2])
def test_packages_are_found_in_package_dirs(package, up):
    folder = (package / "my_robot", package, package.parent)[up]
    assert meshes(urdf(link=MESH), package_dirs=folder) == 1
    assert meshes(urdf(link=MESH), package_dirs=["/nowhere", str(folder)]) == 1


@pytest.mark.parametrize("name", ["ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH"])
def test_packages_are_found_by_the_usual_variables(package, name, monkeypatch):
    folder = package if name == "ROS_PACKAGE_PATH" else package.parent
    monkeypatch.setenv(name, f"/nowhere:{folder}")
    assert meshes(urdf(link=MESH)) == 1
    assert len(fl.variants(urdf(link=MESH), [1], lambda spec, parameter: None).models) == 1


def test_a_file_within_its_package_finds_it(package):
    file = package / "my_robot" / "urdf" / "robot.urdf"
    file.parent.mkdir()
    file.write_text(urdf(link=MESH))
    assert meshes(file) == 1


FORMS = ["package:///{}", "package://{}", "Package:/{}", "package:\\\\{}"]
INSIDE = ["my_robot/meshes/a part.obj", "my_robot//meshes/a%20part.obj", "my_robot/./x/../meshes\\a part.obj"]


@pytest.mark.parametrize(("form", "inside"), pairwise(FORMS, INSIDE))
def test_forms_of_package_uris(package, form, inside):
    text = urdf(link=MESH.replace("package://my_robot/meshes/a%20part.obj", form.format(inside)))
    assert meshes(text, package_dirs=package) == 1


@pytest.mark.parametrize(
    "uri", ["package://", "package:///", "package://..", "package://./my_robot", "package://my_robot/../other"]
)
def test_uris_without_a_package_or_outside_of_it_are_refused(package, uri):
    (package / "other").mkdir()
    (package / "other" / "m.obj").write_text(TETRAHEDRON)
    text = urdf(link=MESH.replace("package://my_robot/meshes/a%20part.obj", f"{uri}/m.obj"))
    with pytest.raises(fl.ModelError, match=r"mesh 'm': got package:.*allowed (is|are)"):
        fl.load(text, package_dirs=package)


@pytest.mark.parametrize("name", ["*", "?y_robot", "[m]y_robot", "**"])
def test_characters_of_patterns_belong_to_a_name(package, name):
    text = urdf(link=MESH.replace("my_robot", name))
    with pytest.raises(fl.ModelError, match="no package"):
        fl.load(text, package_dirs=package)
    (package / "my_robot").rename(package / name)
    assert meshes(text, package_dirs=package) == 1


def test_an_unknown_user_is_a_name(package):
    assert meshes(urdf(link=MESH), package_dirs=["~nobody9/x", package]) == 1


def test_forms_of_file_names(package, monkeypatch):
    folder = package / "my_robot" / "meshes"
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    file = package / "my_robot" / "robot.urdf"
    (folder / "b%20.obj").write_text(TETRAHEDRON)
    uri = folder.as_uri()
    for name in (f"{uri}/a%20part.obj", f"FILE://localhost{uri.removeprefix('file://')}/a part.obj", "~/a part.obj",
                 "meshes/a part.obj", "meshes/a%20part.obj", "meshes\\a part.obj", "./x/..//meshes/a part.obj",
                 "file:meshes/b%2520.obj", "meshes/b%20.obj"):  # fmt: skip
        file.write_text(urdf(link=MESH.replace("package://my_robot/meshes/a%20part.obj", name)))
        assert meshes(file) == 1, name
    robot = '<mujoco><asset><mesh name="m" file="~/a part.obj"/></asset></mujoco>'
    assert fl.load(robot).nmesh == fl.load(robot.replace("~", uri)).nmesh == 1


def test_strippath_reads_the_last_part_of_a_name(package):
    file = package / "my_robot" / "meshes" / "robot.urdf"
    file.write_text(urdf(link=MESH.replace("%20", " "), section='<compiler strippath="true"/>'))
    assert meshes(file) == 1


def test_a_missing_package_is_named_with_the_searched_paths(package):
    with pytest.raises(fl.ModelError, match=r"my_robot/meshes.*no package 'my_robot' was found.*ROS_PACKAGE_PATH"):
        fl.load(urdf(link=MESH))
    text = urdf(link=MESH.replace("part", "hole"))
    with pytest.raises(fl.ModelError, match=str(package / "my_robot")):
        fl.load(text, package_dirs=package)
    with pytest.raises(fl.ModelError):
        fl.load("<mujoco/>", package_dirs=3)


def test_a_package_has_the_name_in_its_manifest(package):
    (package / "my_robot").rename(package / "checkout")
    (package / "checkout" / "package.xml").write_text('<package format="2"><name> my_robot </name></package>')
    for folder in (package / "checkout", package, package.parent):
        assert meshes(urdf(link=MESH), package_dirs=folder) == 1
    file = package / "checkout" / "robot.urdf"
    file.write_text(urdf(link=MESH))
    assert meshes(file) == 1
    (package / "checkout" / "package.xml").write_text("<package/>")
    with pytest.raises(fl.ModelError, match="no package 'my_robot'"):
        fl.load(file)


RELATIVE = MESH.replace("package://my_robot/meshes/a%20part.obj", "meshes/a%20part.obj")


def test_relative_names_from_a_folder_of_packages_or_as_in_old_mujoco(package):
    file = package / "my_robot" / "urdf" / "robot.urdf"
    file.parent.mkdir()
    file.write_text(urdf(link=RELATIVE))
    assert meshes(file, package_dirs=package / "my_robot") == 1
    with pytest.raises(fl.ModelError, match=r"meshes/a%20part\.obj"):
        fl.load(file, package_dirs=package)
    for folder in ("meshes", "../meshes"):  # MuJoCo before 3.7 looked for the last part of a name in `meshdir`
        place = package / "my_robot" / ("robot.urdf" if folder == "meshes" else "urdf/robot.urdf")
        place.write_text(urdf(link=RELATIVE, section=f'<compiler meshdir="{folder}"/>'))
        assert meshes(place) == 1


@pytest.mark.parametrize("uri", ["package://other/meshes/a%20part.obj", "package://meshes/a%20part.obj"])
def test_files_above_are_read_if_a_package_is_missing_and_repair(package, uri):
    file = package / "my_robot" / "urdf" / "robot.urdf"
    file.parent.mkdir()
    file.write_text(urdf(link=MESH.replace("package://my_robot/meshes/a%20part.obj", uri)))
    with pytest.raises(fl.ModelError, match=r"was not found.*repair=True \(--repair\) reads .*a part.obj"):
        fl.load(file)
    with pytest.warns(UserWarning, match=f"{uri} is in no package, read from "):
        model = fl.load(file, repair=True)
    assert model.nmesh == 1 and len(model.repairs) == 1


# ---- links that fixed joints merge -----------------------------------------------------------------------------------
TOOL = """<link name="tcp"/><joint name="mount" type="fixed"><parent link="shank"/><child link="tcp"/>
<origin xyz="0 0 0.2"/></joint>"""


def test_links_that_fusestatic_merges_are_reported():
    with pytest.warns(UserWarning, match="'base', 'tcp'"):
        model = fl.load(urdf(robot=TOOL))
    assert model.fused == ["base", "tcp"] and model.names("body") == ["world", "thigh", "shank"]
    found = fl.diagnose(model, ["urdf-fused"])
    assert [finding.severity for finding in found] == ["note"] * 2 and "'tcp'" in found[1].seen


def test_fusestatic_false_keeps_the_frames_and_the_motion(recwarn):
    kept = fl.load(urdf(robot=TOOL, section='<compiler fusestatic="false"/>'))
    assert kept.fused == [] and "tcp" in kept.names("body") and not recwarn.list
    merged, qpos = fl.load(urdf(robot=TOOL)), []
    for model in (kept, merged):
        data = fl.Data(model)
        data.qvel[:] = 1.0, -1.0
        fl.step(model, data, 100)
        qpos.append(data.qpos.copy())
    assert qpos[0] == pytest.approx(qpos[1], abs=1e-9)  # inertias of merged bodies are summed in a different order
