"""Repairs of MJCF of older MuJoCo versions and of missing textures; messages about files of a model."""

import mujoco
import numpy as np
import pytest

import featherlane as fl

pytestmark = pytest.mark.filterwarnings("ignore:.*repaired")
FLAG = mujoco.mjtDisableBit
BODY = '<body pos="1 2 3"><joint axis="0 1 0"/><geom size=".1" pos=".1 .2 .3"/></body>'
MESH = '<asset><mesh name="m" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/></asset>'
TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"
PAIR = '<contact><pair geom1="g" geom2="h"/></contact>'


def mjcf(before="", body=BODY, after=""):
    return f"<mujoco>{before}<worldbody>{body}</worldbody>{after}</mujoco>"


def same(ours, expected):
    """Returns whether two models have equal arrays and options."""
    names = [name for name in dir(expected) if isinstance(getattr(expected, name), np.ndarray)]
    options = [name for name in dir(expected.opt) if not name.startswith("_")]
    equal = (np.array_equal(getattr(ours, name), getattr(expected, name), equal_nan=True) for name in names)
    return all(equal) and all(np.all(getattr(ours.opt, name) == getattr(expected.opt, name)) for name in options)


# ---- attributes that MuJoCo removed ----------------------------------------------------------------------------------
GEOMS = '<geom name="g" size="1"/><body><joint/><geom name="h" size="1" contype="3"/></body>'
REMOVED = {
    "apirate": (mjcf('<option apirate="200" timestep="0.001"/>'), mjcf('<option timestep="0.001"/>')),
    "mpr": (
        mjcf('<option mpr_tolerance="1e-4" mpr_iterations="9"/>'),
        mjcf('<option ccd_tolerance="1e-4" ccd_iterations="9"/>'),
    ),
    "convexhull": (mjcf('<compiler convexhull="false"/>'), mjcf()),
    "sensornoise": (mjcf('<option><flag sensornoise="enable"/></option>'), mjcf()),
    "passive": (
        mjcf('<option><flag passive="disable"/></option>'),
        mjcf('<option><flag spring="disable" damper="disable"/></option>'),
    ),
    "orthographic": (
        mjcf(body=f'{BODY}<camera orthographic="true"/>'),
        mjcf(body=f'{BODY}<camera projection="orthographic"/>'),
    ),
    "all": (mjcf('<option collision="all"/>', GEOMS, PAIR), mjcf("", GEOMS, PAIR)),
    "dynamic": (mjcf('<option collision="dynamic"/>', GEOMS, PAIR), mjcf("", GEOMS)),
    "predefined": (
        mjcf('<default><geom contype="5"/></default><option collision="predefined"/>', GEOMS, PAIR),
        mjcf("", GEOMS.replace(' contype="3"', "").replace("<geom", '<geom contype="0" conaffinity="0"'), PAIR),
    ),
    "exactmeshinertia": (
        mjcf(f'<compiler exactmeshinertia="true"/>{MESH}', '<body><joint/><geom type="mesh" mesh="m"/></body>'),
        mjcf(MESH.replace("/>", ' inertia="exact"/>'), '<body><joint/><geom type="mesh" mesh="m"/></body>'),
    ),
    "commas": (mjcf(body=BODY.replace("1 2 3", "1, 2,3")), mjcf()),
    "world": (mjcf(body=f'<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>{BODY}'), mjcf()),
    "material": (mjcf(body=BODY.replace("<geom", '<geom material="no"')), mjcf()),
}


@pytest.mark.parametrize("name", REMOVED)
def test_older_models_are_repaired(name):
    old, new = REMOVED[name]
    with pytest.raises(fl.ModelError, match="repair=True"):
        fl.load(old)
    model = fl.load(old, repair=True)
    assert model.repairs and same(model.to_mujoco(), mujoco.MjModel.from_xml_string(new))


def test_an_attribute_of_an_included_file_is_named_with_the_file(tmp_path):
    (tmp_path / "parts" / "more").mkdir(parents=True)
    (tmp_path / "r.xml").write_text(mjcf('<include file="parts/a.xml"/>'))
    (tmp_path / "parts" / "a.xml").write_text('<mujocoinclude><include file="more/b.xml"/></mujocoinclude>')
    (tmp_path / "parts" / "more" / "b.xml").write_text(
        '<mujocoinclude><option apirate="9" timestep="0.5"/></mujocoinclude>'
    )
    with pytest.raises(fl.ModelError, match=r"repair=True.*\n.*<option apirate='9'> in b.xml: not in MuJoCo 3.3.7"):
        fl.load(tmp_path / "r.xml")
    assert fl.load(tmp_path / "r.xml", repair=True).opt.timestep == 0.5
    files = {name: (tmp_path / name).read_bytes() for name in ("parts/a.xml", "parts/more/b.xml")}
    assert fl.load((tmp_path / "r.xml").read_text(), files, repair=True).opt.timestep == 0.5


def test_included_files_may_have_equal_names(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        option = f'<option apirate="9" {"timestep" if name == "a" else "density"}="0.5"/>'
        (tmp_path / name / "r.xml").write_text(f"<mujocoinclude>{option}</mujocoinclude>")
    (tmp_path / "r.xml").write_text(mjcf('<include file="a/r.xml"/><include file="b/r.xml"/>'))
    model = fl.load(tmp_path / "r.xml", repair=True)
    assert model.opt.timestep == model.opt.density == 0.5 and len(model.repairs) == 2


@pytest.mark.parametrize("name", ["humanoid", "pile"])
def test_a_valid_model_remains_unchanged(name):
    model = fl.load(name, repair=True)
    assert model.repairs == [] and same(model.to_mujoco(), fl.load(name).to_mujoco())


def test_invalid_models_that_no_repair_helps_have_no_advice():
    for text in (mjcf('<option apirate="200" nonsense="1"/>'), mjcf("<nonsense/>")):
        for repair in (False, True):
            with pytest.raises(fl.ModelError, match="nonsense") as found:
                fl.load(text.replace('apirate="200"', ""), repair=repair)
            assert "repair=True" not in str(found.value)


# ---- global coordinates ----------------------------------------------------------------------------------------------
LOCAL = """<mujoco><worldbody><body name="a" pos="1 2 3" quat="2 1 0 1"><freejoint/>
<geom type="box" size=".1 .2 .3" pos=".1 .2 .3" quat="1 1 0 2"/><site name="s" pos=".3 0 0" quat="0 1 1 0"/>
<camera name="c" pos=".3 0 .1" quat="0 1 2 0"/>
<body name="b" pos=".5 0 .2" quat="1 0 3 0"><joint axis="1 1 0" pos=".1 .2 0"/>
<inertial pos=".1 0 .2" quat="1 0 2 0" mass="2" diaginertia="1 2 2.5"/><geom size=".1"/>
<body name="d" pos="0 .4 0"><joint type="ball" pos=".1 0 0"/>
<geom type="ellipsoid" size=".1 .2 .3" pos="0 .1 0"/></body></body></body></worldbody></mujoco>"""
FRAMES = "xipos ximat geom_xpos geom_xmat site_xpos site_xmat cam_xpos cam_xmat".split()
ROUNDING = 1e-12  # of products of a few rotations


def written_globally(with_pos: bool) -> str:
    """Returns LOCAL with all frames in world coordinates; bodies have no `pos` unless it is asked for."""
    mj = mujoco.MjModel.from_xml_string(LOCAL)
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)

    def words(values):
        return " ".join(map(repr, np.ravel(values).tolist()))

    def pose(pos, mat):
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, np.ravel(mat))
        return f'pos="{words(pos)}" quat="{words(quat)}"'

    def body(name, content):
        b = mj.body(name).id
        return f'<body name="{name}" {pose(data.xpos[b], data.xmat[b]) if with_pos else ""}>{content}</body>'

    geoms = [pose(data.geom_xpos[g], data.geom_xmat[g]) for g in range(3)]
    inertial = pose(data.xipos[2], data.ximat[2])
    d = body("d", f'<joint type="ball" pos="{words(data.xanchor[2])}"/>'
                  f'<geom type="ellipsoid" size=".1 .2 .3" {geoms[2]}/>')  # fmt: skip
    b = body("b", f'<joint axis="{words(data.xaxis[1])}" pos="{words(data.xanchor[1])}"/><inertial {inertial} mass="2" '
                  f'diaginertia="1 2 2.5"/><geom size=".1" {geoms[1]}/>{d}')  # fmt: skip
    a = body("a", f'<freejoint/><geom type="box" size=".1 .2 .3" {geoms[0]}/>'
                  f'<site name="s" {pose(data.site_xpos[0], data.site_xmat[0])}/>'
                  f'<camera name="c" {pose(data.cam_xpos[0], data.cam_xmat[0])}/>{b}')  # fmt: skip
    return f'<mujoco><compiler coordinate="global"/><worldbody>{a}</worldbody></mujoco>'


@pytest.mark.parametrize("with_pos", [True, False])
def test_global_coordinates_become_local(with_pos):
    expected = mujoco.MjModel.from_xml_string(LOCAL)
    model = fl.load(written_globally(with_pos), repair=True)
    assert [line.split(":")[0] for line in model.repairs] == ["<compiler coordinate='global'>"]
    mj = model.to_mujoco()
    found, data = mujoco.MjData(mj), mujoco.MjData(expected)
    mujoco.mj_forward(mj, found)
    mujoco.mj_forward(expected, data)
    for name in [*FRAMES, *(["xpos", "xquat", "qpos", "qacc"] if with_pos else [])]:
        assert np.abs(getattr(found, name) - getattr(data, name)).max() < ROUNDING, name
    # the frame of a body without `pos` is its inertial frame
    assert with_pos or np.abs(mj.body_ipos).max() < ROUNDING
    assert np.abs(found.xanchor[1:] - data.xanchor[1:]).max() < ROUNDING
    assert np.abs(found.xaxis[1] - data.xaxis[1]).max() < ROUNDING


# `eq_data[:, :7]` of MuJoCo 2.3.3, for anchors in global coordinates
ANCHORS = """<mujoco><compiler coordinate="global"/><worldbody>
<body name="a" pos="1 2 3" quat="1 1 0 0"><freejoint/><geom size="1" pos="1 2 3"/></body>
<body name="b" pos="1 2 2" quat="1 0 1 0"><freejoint/><geom size="1" pos="1 2 2.1"/></body></worldbody>
<equality><connect body1="a" body2="b" anchor="1 2 2.5"/><weld body1="a" body2="b" relpose="0 0 1 1 0 0 0"/></equality>
</mujoco>"""
RECORDED = [[0, -0.5, 0, -0.5, 0, 0, 0], [2, -2, -1, 0, 0, 1, 1]]


def test_anchors_of_equality_constraints_are_global():
    assert np.abs(fl.load(ANCHORS, repair=True).to_mujoco().eq_data[:, :7] - RECORDED).max() < ROUNDING


def test_end_points_are_global():
    text = mjcf(
        body='<body pos="0 0 1"><joint pos="0 0 1"/><geom type="capsule" fromto="0 0 1 0 0 2" size=".1"/></body>'
    )
    model = fl.load(text.replace("<mujoco>", '<mujoco><compiler coordinate="global"/>'), repair=True)
    assert model.geom_pos[0].tolist() == [0, 0, 0.5] and model.geom_size[0, :2].tolist() == [0.1, 0.5]
    assert model.jnt_pos[0].tolist() == [0, 0, 0]


# ---- missing files ---------------------------------------------------------------------------------------------------
TEXTURES = """<asset><texture name="t" type="2d" file="no.png"/><material name="m" texture="t"/>
<texture name="cube" type="cube" fileright="a.png" fileleft="b.png"/><texture type="skybox" file="sky.png"/>
<skin name="s" file="no.skn"/></asset>"""


def test_missing_textures_and_skins_are_replaced(tmp_path):
    (tmp_path / "r.xml").write_text(mjcf(TEXTURES, BODY.replace("<geom", '<geom material="m"')))
    with pytest.raises(fl.ModelError, match=r"missing: texture 't', .*no.png\n") as found:
        fl.load(tmp_path / "r.xml")
    assert "repair=True" in str(found.value)
    model = fl.load(tmp_path / "r.xml", repair=True)
    mj = model.to_mujoco()
    assert len(model.repairs) == 4 and mj.ntex == 3 and mj.nskin == 0 and (mj.tex_data == 255).all()


def test_a_missing_mesh_is_named_with_a_place_where_it_exists(tmp_path):
    (tmp_path / "robots" / "arm").mkdir(parents=True)
    (tmp_path / "assets" / "arm").mkdir(parents=True)
    (tmp_path / "assets" / "arm" / "m.obj").write_text(TETRAHEDRON)
    file = tmp_path / "robots" / "arm" / "r.xml"
    file.write_text(mjcf('<asset><mesh file="arm/m.obj"/><mesh name="n" file="n.obj"/></asset>' + TEXTURES))
    for repair in (False, True):
        with pytest.raises(fl.ModelError, match=r"missing: mesh 'm', .*arm/m.obj; arm/m.obj is in .*assets\n") as found:
            fl.load(file, repair=repair)
        assert "missing: mesh 'n'" in str(found.value) and "repair=True" not in str(found.value)


def test_long_lists_of_missing_files_are_cut(tmp_path):
    meshes = "".join(f'<mesh file="m{k}.obj"/>' for k in range(30))
    (tmp_path / "r.xml").write_text(mjcf(f"<asset>{meshes}</asset>"))
    with pytest.raises(fl.ModelError, match="and 22 more"):
        fl.load(tmp_path / "r.xml")


def test_a_git_lfs_pointer_is_named(tmp_path):
    (tmp_path / "m.obj").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n")
    (tmp_path / "r.xml").write_text(
        mjcf('<asset><mesh file="m.obj"/></asset>', '<body><joint/><geom type="mesh" mesh="m"/></body>')
    )
    with pytest.raises(fl.ModelError, match=r"m.obj is a Git LFS pointer; `git lfs pull`"):
        fl.load(tmp_path / "r.xml")


def test_a_part_of_a_model_is_named_with_a_model_that_includes_it(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "p.xml").write_text("<mujocoinclude/>")
    with pytest.raises(fl.ModelError, match=r"it is a part of a model; load a file that includes it$"):
        fl.load(tmp_path / "parts" / "p.xml")
    (tmp_path / "r.xml").write_text(mjcf('<include file="parts/p.xml"/>'))
    with pytest.raises(fl.ModelError, match=r"includes it, such as .*r.xml$"):
        fl.load(tmp_path / "parts" / "p.xml")


def test_a_missing_included_file_in_an_empty_folder_is_a_submodule(tmp_path):
    (tmp_path / "hive").mkdir()
    (tmp_path / "r.xml").write_text(mjcf('<include file="hive/p.xml"/>'))
    with pytest.raises(fl.ModelError, match=r"missing: .*hive/p.xml; its folder is empty: `git submodule"):
        fl.load(tmp_path / "r.xml")
