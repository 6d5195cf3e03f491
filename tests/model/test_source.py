"""Sources of models: the content of a file decides on its format, files are read again at each load."""

import os
import zipfile

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.load import compile_source, specification

TETRAHEDRON = "v 0 0 0\nv {0} 0 0\nv 0 {0} 0\nv 0 0 {0}\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"
MJCF = """<mujoco><asset><mesh name="m" file="meshes/m.obj"/></asset><worldbody><body><joint/>
<geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""
URDF = """<?xml version="1.0"?><!-- <mujoco/> --><robot name="r"><link name="a"/><link name="b"><collision><geometry>
<mesh filename="meshes/m.obj"/></geometry></collision></link>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>"""


def mass(size):
    """Returns the mass of the tetrahedron at MuJoCo's density of 1000 kg/m^3."""
    return pytest.approx(1000.0 * size**3 / 6.0, rel=1e-5)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "m.obj").write_text(TETRAHEDRON.format(0.1))
    return tmp_path


@pytest.mark.parametrize("text", [MJCF, URDF, "\ufeff" + URDF])
@pytest.mark.parametrize("name", ["r.xml", "r.urdf", "r.URDF", "r.XML", "r.mjcf", "r.urdf.xacro.out", "r", "r[*]~.x"])
@pytest.mark.filterwarnings("ignore:.*links without a body")
def test_a_file_is_read_by_its_content(folder, name, text):
    file = folder / name
    file.write_text(text, encoding="utf-8")
    assert fl.load(file, convex_decomposition=None).body_mass[1] == mass(0.1)
    assert len(specification(file).meshes) == 1


def test_a_file_of_any_suffix_includes_other_files(folder):
    (folder / "part").mkdir()
    (folder / "part" / "robot.mjcf").write_text("<mujocoinclude><body><joint/><geom size='1'/></body></mujocoinclude>")
    (folder / "robot.mjcf").write_text("<mujoco><worldbody><include file='part/robot.mjcf'/></worldbody></mujoco>")
    assert fl.load(folder / "robot.mjcf").nv == 1


def test_paths_keep_the_characters_of_their_names(folder, monkeypatch):
    (folder / "r.xml").write_text(MJCF)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    assert fl.load("~/r.xml").nv == 1
    with pytest.raises(fl.ModelError, match=r"~nobody9/r.xml: no such file"):
        fl.load("~nobody9/r.xml")
    with pytest.raises(fl.ModelError, match="no such file"):
        fl.load(str(folder / "*.xml"))


# ---- files that are written again ------------------------------------------------------------------------------------
def test_a_file_is_read_again_if_its_time_stamp_is_equal(folder):
    (folder / "r.xml").write_text(MJCF)
    file = folder / "meshes" / "m.obj"
    spec = mujoco.MjSpec.from_file(str(folder / "r.xml"))
    for size in (0.2, 0.3, 0.2):
        file.write_text(TETRAHEDRON.format(size))
        os.utime(file, (1e9, 1e9))
        assert fl.load(folder / "r.xml").body_mass[1] == mass(size)
        assert fl.load(spec).body_mass[1] == mass(size)
        assert fl.variants(folder / "r.xml", [1], lambda spec, number: None).models[0][0].body_mass[1] == mass(size)


def test_height_fields_are_read_again(tmp_path):
    text = f'<mujoco><asset><hfield name="h" file="{tmp_path}/h.bin" size="1 1 1 1"/></asset></mujoco>'
    for heights in ([0, 1, 0, 0], [0, 0, 0, 1]):
        data = np.array([2, 2], np.int32).tobytes() + np.array(heights, np.float32).tobytes()
        (tmp_path / "h.bin").write_bytes(data)
        os.utime(tmp_path / "h.bin", (1e9, 1e9))
        assert fl.load(text).mj_model.hfield_data.tolist() == heights


# ---- formats other than XML ------------------------------------------------------------------------------------------
def test_a_binary_model_is_loaded(tmp_path):
    mj = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><joint/><geom size='.1'/></body></worldbody></mujoco>"
    )
    file = tmp_path / "m.bin"
    mujoco.mj_saveModel(mj, str(file))
    model = fl.load(file)
    assert model.nv == 1 and model.source == str(file) and compile_source(file).name == str(file)
    for given in ({"collision": "sdf"}, {"variants": {"g": ["m"]}}):
        with pytest.raises(fl.ModelError, match=r"binary model|compiled model"):
            fl.load(file, **given)
    file.write_bytes(file.read_bytes()[:-100])
    with (
        pytest.warns(UserWarning, match="Truncated"),
        pytest.raises(fl.ModelError, match=r"m.bin: .*damaged, or of another MuJoCo version"),
    ):
        fl.load(file)


@pytest.mark.parametrize(("name", "text"), [("sub/r.xml", MJCF), ("r.URDF", URDF), ("a/b/r.urdf", URDF)])
@pytest.mark.filterwarnings("ignore:.*links without a body")
def test_an_archive_has_a_model_and_its_assets(tmp_path, name, text):
    parent = name.rpartition("/")[0]
    with zipfile.ZipFile(tmp_path / "r.mjz", "w") as archive:
        archive.writestr(name, text)
        archive.writestr(f"{parent}/meshes/m.obj".lstrip("/"), TETRAHEDRON.format(0.1))
        archive.writestr(f"{parent}/more/included.xml".lstrip("/"), "<mujocoinclude/>")
    model = fl.load(tmp_path / "r.mjz")
    assert model.body_mass[1] == mass(0.1) and model.source == str(tmp_path / "r.mjz")


@pytest.mark.parametrize("names", [(), ("notes.txt",), ("a.xml", "b.urdf")])
def test_an_archive_without_one_model_is_refused(tmp_path, names):
    with zipfile.ZipFile(tmp_path / "r.zip", "w") as archive:
        archive.writestr("folder/other.txt", "")
        for name in names:
            archive.writestr(name, "")
    with pytest.raises(fl.ModelError, match=r"r.zip: has .*; allowed are archives with one MJCF or URDF file"):
        fl.load(tmp_path / "r.zip")


FORMATS = {
    "m.sdf": ('<?xml version="1.0"?><sdf version="1.7"/>', "SDFormat.*sdf2mjcf"),
    "m.usda": ("#usda 1.0\n", "USD.*usd_to_urdf"),
    "m.usdc": ("PXR-USDC\0\0", "USD.*usd_to_urdf"),
    "m.dae": ("<COLLADA/>", "COLLADA"),
    "m.stl": ("solid m", "allowed are MJCF and URDF files"),
    "m.mjb": ("", "allowed are MJCF and URDF files"),
    "m.zip": ("PK\3\4 damaged", "zip file"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_other_formats_are_named_with_their_converter(tmp_path, name):
    text, message = FORMATS[name]
    (tmp_path / name).write_text(text)
    with pytest.raises(fl.ModelError, match=f"{name}: .*{message}"):
        fl.load(tmp_path / name)
    with pytest.raises(fl.ModelError, match=message):
        specification(tmp_path / name)


def test_unexpanded_xacro_expressions_are_named():
    text = URDF.replace('type="continuous">', 'type="continuous"><dynamics damping="${d * 2}"/>')
    with pytest.raises(fl.ModelError, match=r"damping.*\n.*'\$\{d \* 2\}': expand it with `xacro"):
        fl.load(text)


def test_sdformat_text_and_usd_archives_are_refused(tmp_path):
    with pytest.raises(fl.ModelError, match="XML text: is an SDFormat file"):
        fl.load('<sdf version="1.7"><model name="m"/></sdf>')
    with zipfile.ZipFile(tmp_path / "r.usdz", "w") as archive:
        archive.writestr("r.usdc", "")
    with pytest.raises(fl.ModelError, match="USD"):
        fl.load(tmp_path / "r.usdz")
