"""URDF files have the same model under every MuJoCo version, and a mesh for each file."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model import mujoco_versions
from featherlane.engine.model.mujoco_versions import MERGES, merges_wrongly
from featherlane.engine.model.urdf_reader import read_as_newest, rotation, with_distinct_names

OLD = (3, 6)
INERTIA = '<inertia ixx="1" iyy="2" izz="2.5" ixy="0.2" ixz="-0.1" iyz="0.3"/>'
INERTIAL = f'<inertial><origin xyz="0.1 0 0.2" rpy="0.3 -0.4 0.5"/><mass value="2"/>{INERTIA}</inertial>'
ROBOT = """<robot name="r"><link name="w"/><link name="a">{link}</link><link name="b">{link}</link>
<joint name="j" type="continuous"><parent link="w"/><child link="a"/><axis xyz="0 0 1"/>{first}</joint>
<joint name="k" type="prismatic"><parent link="a"/><child link="b"/><limit lower="-1" upper="1"/>{second}
</joint></robot>"""
MIMIC = '<mimic joint="j" multiplier="-2" offset="0.1"/>'


def robot(link=INERTIAL, first="", second=""):
    return ROBOT.format(link=link, first=first, second=second)


def mass_matrix(mj):
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    matrix = np.zeros((mj.nv, mj.nv))
    mujoco.mj_fullM(mj, data, matrix)
    return matrix


def test_rpy_are_fixed_axis_angles():
    quaternion, matrix = np.zeros(4), np.zeros(9)
    mujoco.mju_euler2Quat(quaternion, np.array([0.3, -0.4, 0.5]), "XYZ")
    mujoco.mju_quat2Mat(matrix, quaternion)
    np.testing.assert_allclose(rotation(0.3, -0.4, 0.5), matrix.reshape(3, 3), atol=1e-15)


def test_the_inertial_frame_is_rotated_as_by_the_newest_mujoco():
    expected = mujoco.MjModel.from_xml_string(robot())
    spec = mujoco.MjSpec.from_string(robot())
    for name in "ab":
        spec.body(name).iquat = (1, 0, 0, 0)  # as before 3.14, without the rotation
    read_as_newest(spec, robot(), OLD)
    found = spec.compile()
    np.testing.assert_allclose(found.body_inertia, expected.body_inertia, rtol=1e-12)
    np.testing.assert_allclose(mass_matrix(found), mass_matrix(expected), atol=1e-12)


def test_mimic_joints_become_the_equalities_of_the_newest_mujoco():
    expected = mujoco.MjModel.from_xml_string(robot(second=MIMIC))
    spec = mujoco.MjSpec.from_string(robot())  # as before 3.13, without the equality
    spec_of_others = mujoco.MjSpec.from_string(robot())
    read_as_newest(spec, robot(second=MIMIC), (3, 12))
    found = spec.compile()
    for name in ("eq_type", "eq_obj1id", "eq_obj2id", "eq_data", "eq_solref", "eq_solimp", "eq_active0"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    for text in ('<mimic joint="nope"/>', '<mimic joint=""/>'):
        read_as_newest(spec_of_others, robot(second=text), (3, 12))
    assert not spec_of_others.equalities


def test_a_joint_that_mimics_itself_is_named():
    with pytest.raises(fl.ModelError, match=r"joint 'k': got <mimic> of the joint itself"):
        fl.load(robot(second=MIMIC.replace('"j"', '"k"')))


def test_continuous_joints_have_no_limits():
    text = robot(first='<limit lower="-1" upper="1" effort="3"/>')
    spec = mujoco.MjSpec.from_string(text)
    spec.joint("j").range = (-1.0, 1.0)  # as before 4.0
    read_as_newest(spec, text, (3, 17))
    found, expected = spec.compile(), mujoco.MjModel.from_xml_string(text)
    for name in ("jnt_limited", "jnt_range", "jnt_actfrcrange"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


def test_the_newest_mujoco_reads_everything():
    text = robot(first='<limit lower="-1" upper="1"/>', second=MIMIC)
    spec = mujoco.MjSpec.from_string(text)
    before = spec.to_xml()
    read_as_newest(spec, text, (4, 0, 1))
    assert spec.to_xml() == before


CARRIED = '<body><joint/><geom size="1"/>{}</body>'
STATIC = {
    "<body>{}</body>".format('<geom size="1"/>'): True,
    '<body><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>': True,
    "<body><site/></body>": False,
    "<body><body><joint/><geom size='1'/></body></body>": False,
    '<body><body><geom size="1"/></body></body>': True,
}


@pytest.mark.parametrize("inner", STATIC)
def test_bodies_whose_inertia_old_versions_misplace_are_found(inner, monkeypatch):
    for version, fuse, carried in (
        (OLD, "true", True),
        (MERGES, "true", True),
        (OLD, "false", True),
        (OLD, "true", False),
    ):
        monkeypatch.setattr(mujoco_versions, "version_numbers", lambda text, version=version: version)
        body = CARRIED.format(inner) if carried else inner
        text = f'<mujoco><compiler fusestatic="{fuse}"/><worldbody>{body}</worldbody></mujoco>'
        expected = STATIC[inner] and version == OLD and fuse == "true" and carried
        assert merges_wrongly(mujoco.MjSpec.from_string(text)) == expected


# ---- meshes ----------------------------------------------------------------------------------------------------------
TETRAHEDRON = "v 0 0 0\nv {0} 0 0\nv 0 {0} 0\nv 0 0 {0}\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"
MESH = '<collision><geometry><mesh filename="{}"/></geometry></collision>'


def test_each_file_has_a_mesh_name():
    files = ["left/f.stl", "right/f.stl", "left/f.stl", "f.obj", "f_1", "a &amp; b.stl", "'"]
    text = "\n".join(MESH.format(file) for file in files)
    found, given = with_distinct_names(text)
    assert given == {
        "f.stl": "left/f.stl",
        "f_1.stl": "right/f.stl",
        "f_2.obj": "f.obj",
        "f_1_1": "f_1",
        "a & b.stl": "a & b.stl",
        "'": "'",
    }
    assert found.count('"f.stl"') == 2 and '"a &amp; b.stl"' in found and found.count("\n") == text.count("\n")


@pytest.mark.filterwarnings("ignore:.*links without a body")
def test_files_of_equal_names_in_two_folders_are_two_meshes(tmp_path):
    for name, size in (("left", 0.1), ("right", 0.2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f.obj").write_text(TETRAHEDRON.format(size))
    links = [MESH.format("left/f.obj"), MESH.format("right/f.obj")]
    text = ROBOT.format(link="{}", first="", second="").format(*links)
    (tmp_path / "r.urdf").write_text(text)
    assets = {f"{name}/f.obj": (tmp_path / name / "f.obj").read_text() for name in ("left", "right")}
    for model in (fl.load(tmp_path / "r.urdf"), fl.load(text, assets=assets)):
        assert model.body_mass[1:] == pytest.approx([1 / 6, 8 / 6], rel=1e-5)
        assert [model.mj_model.mesh(k).name for k in range(2)] == ["f", "f_1"]
