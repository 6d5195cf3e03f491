"""A written MJCF file is the same model for Featherlane and MuJoCo, with all its meshes."""

import ctypes
import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.mjcf_writer import LIBRARY
from featherlane.engine.model.mujoco_arrays import read_fields
from featherlane.extension import RobotSetup, write_mjcf
from robots import urdf

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*not read from"),
    pytest.mark.filterwarnings("ignore:.*links without a body"),
    pytest.mark.filterwarnings("ignore:.*reads only the faces of the first object"),
]
STANDING = {"base": "free", "floor": True, "actuators": "position"}
SETUPS = {
    "file": (urdf.arm, {}),
    "arm": (urdf.arm, {"base": "fixed", "actuators": "velocity", "home": {"elbow": -1.0}}),
    "biped": (urdf.biped, STANDING),
    "quadruped": (urdf.quadruped, STANDING | {"height": 1 / 3, "gains": (1 / 3, 1 / 7)}),
}
SAME = 1e-12  # relative: derived values are computed from equal numbers
TETRAHEDRON = """o one
v 0 0 0\nv .1 0 0\nv 0 .1 0\nv 0 0 .1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4
"""
SECOND = """o two
v 1 0 0\nv 1.2 0 0\nv 1 .2 0\nv 1 0 .2\nf 5 7 6\nf 5 6 8\nf 5 8 7\nf 6 7 8
"""


def assert_same(one, other, tolerance=SAME):
    found, expected = read_fields(one), read_fields(other)
    for name, value in expected.items():
        scale = np.abs(np.asarray(value, float)).max(initial=0.0)
        np.testing.assert_allclose(found[name], value, rtol=tolerance, atol=tolerance * scale, err_msg=name)
    assert one.names == other.names
    np.testing.assert_allclose(one.key_qpos, other.key_qpos, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(one.key_ctrl, other.key_ctrl, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", SETUPS)
def test_mujoco_and_featherlane_read_the_model_that_was_written(name, tmp_path):
    text, setup = SETUPS[name]
    (path,) = write_mjcf(text(), tmp_path / "robot.xml", setup=RobotSetup(**setup))
    expected = fl.load(text(), **setup).to_mujoco()
    assert_same(mujoco.MjModel.from_xml_path(str(path)), expected)
    assert_same(fl.load(path).to_mujoco(), expected)


def test_trajectories_are_equal(tmp_path):
    (path,) = write_mjcf(urdf.quadruped(), tmp_path / "robot.xml", setup=RobotSetup(**STANDING))
    ends = []
    for model in (fl.load(path), fl.load(urdf.quadruped(), **STANDING)):
        data = fl.Data(model)
        data.reset(keyframe="home")
        data.ctrl = 0.2
        data.step(200)
        ends.append(data.qpos.copy())
    np.testing.assert_allclose(*ends, atol=1e-9)


def meshed(tmp_path):
    """Returns a URDF with meshes of equal names in two folders of a package, one of two objects."""
    shapes = ""
    for folder, content in (("left", TETRAHEDRON), ("right", TETRAHEDRON + SECOND)):
        (tmp_path / "pack" / folder).mkdir(parents=True)
        (tmp_path / "pack" / folder / "a finger.obj").write_text(content)
        mesh = f'<mesh filename="package://pack/{folder}/a finger.obj" scale="1 1 2"/>'
        shapes += f"<collision><geometry>{mesh}</geometry></collision>"
    path = tmp_path / "pack" / "robot.urdf"
    path.write_text(f'<robot name="r"><link name="hand">{shapes}</link></robot>')
    return path


def test_meshes_are_copied_next_to_the_file(tmp_path):
    source = meshed(tmp_path)
    (tmp_path / "out").mkdir()
    setup = {"base": "free", "floor": True}
    files = write_mjcf(source, tmp_path / "out" / "hand.xml", setup=RobotSetup(**setup))
    expected = fl.load(source, **setup).to_mujoco()
    assert [file.relative_to(tmp_path / "out").as_posix() for file in files] == [
        "hand.xml",
        "hand_assets/a_finger.obj",
        "hand_assets/a_finger_1.obj",
    ]
    moved = tmp_path / "elsewhere"
    (tmp_path / "out").rename(moved)
    for folder in ("left", "right"):
        (tmp_path / "pack" / folder / "a finger.obj").unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # all faces are in one object now
        found = fl.load(moved / "hand.xml").to_mujoco()
    for model in (found, mujoco.MjModel.from_xml_path(str(moved / "hand.xml"))):
        assert_same(model, expected)
        np.testing.assert_array_equal(model.mesh_vert, expected.mesh_vert)
        np.testing.assert_array_equal(model.mesh_face, expected.mesh_face)


def test_mjcf_with_height_fields_and_included_files_is_written(tmp_path):
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "t.obj").write_text(TETRAHEDRON)
    heights = np.array([0, 1, 2, 1, 2, 3, 1, 1, 0], np.float32)
    (tmp_path / "assets" / "h.bin").write_bytes(np.array([3, 3], np.int32).tobytes() + heights.tobytes())
    (tmp_path / "part.xml").write_text('<mujoco><default><geom friction=".3"/></default></mujoco>')
    source = tmp_path / "scene.xml"
    source.write_text("""<mujoco><compiler meshdir="assets" angle="degree"/><include file="part.xml"/>
      <asset><mesh file="t.obj"/><hfield name="h" file="h.bin" size="1 1 1 1"/></asset><worldbody>
      <geom type="hfield" hfield="h"/><body pos="0 0 5" euler="10 20 30"><freejoint/><geom type="mesh" mesh="t"/></body>
      </worldbody></mujoco>""")
    files = write_mjcf(source, tmp_path / "out.xml")
    assert sorted(file.name for file in files) == ["h.bin", "out.xml", "t.obj"]
    assert_same(mujoco.MjModel.from_xml_path(str(files[0])), fl.load(source).to_mujoco())


def test_bundled_models_are_written(tmp_path):
    for name in ("humanoid", "hand", "slider_crank"):
        (path,) = write_mjcf(name, tmp_path / f"{name}.xml")
        assert_same(fl.load(path).to_mujoco(), fl.bundled(name).to_mujoco())


def test_repairs_and_losses_are_reported(tmp_path):
    text = urdf.biped().replace('lower="0" upper="2.5"', 'lower="2.5" upper="0"')
    with fl.extension.repairing(), pytest.warns(UserWarning) as caught:
        (path,) = write_mjcf(text, tmp_path / "robot.xml")
    texts = " ".join(str(each.message) for each in caught)
    assert "lower must be <= upper, swapped" in texts and "velocity is ignored" in texts
    assert list(fl.load(path).joint("left_knee").range.ravel()) == [0, 2.5]


def test_existing_files_are_kept(tmp_path):
    source = meshed(tmp_path)
    write_mjcf(source, tmp_path / "hand.xml")
    before = (tmp_path / "hand.xml").read_text()
    with pytest.raises(fl.errors.ModelError, match=r"hand\.xml: exists already; --force replaces files"):
        write_mjcf(source, tmp_path / "hand.xml", setup=RobotSetup(floor=True))
    (tmp_path / "hand.xml").unlink()
    with pytest.raises(fl.errors.ModelError, match=r"a_finger\.obj: exists already"):
        write_mjcf(source, tmp_path / "hand.xml")
    assert not (tmp_path / "hand.xml").exists()
    write_mjcf(source, tmp_path / "hand.xml", overwrite=True)
    assert (tmp_path / "hand.xml").read_text() == before
    write_mjcf(source, tmp_path / "hand.xml", setup=RobotSetup(floor=True), overwrite=True)
    assert "floor" in (tmp_path / "hand.xml").read_text()


def test_nothing_is_written_if_the_source_is_wrong(tmp_path):
    cases = {
        "no such file": (tmp_path / "missing.urdf", {}),
        "no joint": (urdf.arm(), {"home": {"nope": 1}}),
        "Schema violation|unrecognized": ("<mujoco><world/></mujoco>", {}),
    }
    for message, (source, setup) in cases.items():
        with pytest.raises(fl.errors.ModelError, match=message):
            write_mjcf(source, tmp_path / "robot.xml", setup=RobotSetup(**setup))
    assert list(tmp_path.iterdir()) == []


def test_wrong_targets_are_named(tmp_path):
    source = tmp_path / "robot.xml"
    source.write_text("<mujoco/>")
    for path, message in (
        (tmp_path / "robot.urdf", "allowed is a name that ends with .xml"),
        (tmp_path / "none" / "robot.xml", "no such folder"),
        (source, "is the source; allowed is another file"),
    ):
        with pytest.raises(fl.errors.ModelError, match=message):
            write_mjcf(source, path, overwrite=True)
    assert source.read_text() == "<mujoco/>"


def test_elements_with_files_that_are_not_copied_are_named(tmp_path):
    text = '<mujoco><asset><texture name="t" type="cube" fileright="a.png"/></asset></mujoco>'
    with pytest.raises(fl.errors.ModelError, match="texture 't': its files of a cube are not copied"):
        write_mjcf(text, tmp_path / "a.xml")


def test_the_digits_of_other_files_stay(tmp_path):
    folder = Path(mujoco.__file__).parent
    library = ctypes.CDLL(str(next(path for path in folder.iterdir() if LIBRARY.match(path.name))))
    before = library._mjPRIVATE__get_xml_precision()
    write_mjcf("pendulum", tmp_path / "a.xml")
    assert library._mjPRIVATE__get_xml_precision() == before
