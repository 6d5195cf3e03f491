"""Loading: every kind of source gives MuJoCo's values; every bad source raises an error with its repair."""

import pickle
import subprocess
import sys

import mujoco
import numpy as np
import pytest

from featherlane.engine.model import MODEL, bundled, bundled_names, load
from featherlane.engine.model.bundle import resolve_name
from featherlane.engine.model.mujoco_arrays import is_mujocos, read_field
from featherlane.errors import ModelError, UnsupportedFeatureError
from robots import wheels
from scenes import joints

# if MuJoCo takes the inertial frame as the body frame, it equals the body frame
SNAPPED = {"body_ipos": 1e-6, "body_iquat": 1e-6}


def assert_fields_are_mujocos(model, mj):
    for field in filter(is_mujocos, MODEL.fields):
        ours, theirs = getattr(model, field.name), read_field(mj, field.name)
        np.testing.assert_allclose(
            np.ravel(ours), np.ravel(theirs), rtol=0, atol=SNAPPED.get(field.name, 0), err_msg=field.name
        )


def test_all_fields_of_all_joint_types_equal_mujoco():
    assert_fields_are_mujocos(load(joints.XML), mujoco.MjModel.from_xml_string(joints.XML))


def test_a_centred_mesh_has_the_inertia_frame_of_mujoco(real_model):
    mj = mujoco.MjModel.from_xml_path(str(real_model("mjx/convex")))
    rock = mj.geom_type[mj.body_geomadr] == int(mujoco.mjtGeom.mjGEOM_MESH)
    centred = rock & (mj.body_sameframe == int(mujoco.mjtSameFrame.mjSAMEFRAME_BODY))
    assert np.any(mj.body_ipos[centred] != 0.0)
    model = load(mj)
    np.testing.assert_array_equal(model.body_ipos[centred], 0.0)
    assert_fields_are_mujocos(model, mj)


@pytest.mark.parametrize("name", wheels.GYMNASIUM_MODELS + wheels.DM_CONTROL_MODELS)
@pytest.mark.filterwarnings("ignore:MuJoCo. compiler attribute 'settotalmass'")
def test_fields_of_real_models_equal_mujoco_or_unsupported_features_are_named(real_model, name):
    path = real_model(name)
    try:
        model = load(path)
    except UnsupportedFeatureError as error:
        assert error.features and all(":" in feature for feature in error.features)
        assert str(path) in str(error)
    else:
        assert_fields_are_mujocos(model, mujoco.MjModel.from_xml_path(str(path)))


def sources(folder):
    """Returns the same model as each kind of source."""
    file = folder / "robot.xml"
    file.write_text(joints.XML)
    return {
        "path": file,
        "str": str(file),
        "text": joints.XML,
        "prolog": "\ufeff \n<?xml version='1.0'?>\n<!-- a robot -->" + joints.XML,
        "MjModel": mujoco.MjModel.from_xml_string(joints.XML),
        "MjSpec": mujoco.MjSpec.from_string(joints.XML),
    }


@pytest.mark.parametrize("kind", ["path", "str", "text", "prolog", "MjModel", "MjSpec"])
def test_every_kind_of_source_gives_the_same_model(tmp_path, kind):
    model = load(sources(tmp_path)[kind])
    assert np.array_equal(model.real_buffer, load(joints.XML).real_buffer)


def test_a_given_mjmodel_is_copied():
    mj = mujoco.MjModel.from_xml_string(joints.XML)
    model = load(mj)
    mj.key_time[:] = 7
    mj.opt.timestep = 7
    assert model.opt.timestep == 0.004 and model.key_time[0] == 2


def test_assets_are_found():
    included = "<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>"
    for content in (included, included.encode()):
        assert load("<mujoco><include file='ball.xml'/></mujoco>", assets={"ball.xml": content}).nv == 6


@pytest.mark.parametrize(("assets", "message"), [({"a.xml": 3}, "asset 'a.xml':"), ({"a.xml": None}, "asset 'a.xml':")])
def test_assets_of_a_wrong_type_are_named(assets, message):
    with pytest.raises(ModelError, match=message):
        load("<mujoco/>", assets=assets)


def test_assets_belong_to_text(tmp_path):
    with pytest.raises(ModelError):
        load(sources(tmp_path)["path"], assets={})


@pytest.mark.parametrize("name", bundled_names())
def test_bundled_models_load_by_name(name):
    model = bundled(name)
    assert model.source.endswith(f"{name}.xml")
    assert_fields_are_mujocos(model, mujoco.MjModel.from_xml_path(model.source))


def test_an_unknown_bundled_name_lists_bundled_models(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=r"no bundled model 'humanoidd'; did you mean 'humanoid'.*rope"):
        bundled("humanoidd")
    with pytest.raises(ModelError, match=r"no bundled model and no file 'humanoidd'; did you mean 'humanoid'.*rope"):
        load("humanoidd")


def test_load_takes_a_bundled_name(monkeypatch, tmp_path):
    """As `view`, `diagnose`, `BatchEnv` and the command line do."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "humanoid").write_text("<mujoco model='mine'/>")
    assert load("humanoid").nv == bundled("humanoid").nv == 27
    assert load("./humanoid").nv == 0
    with pytest.raises(ModelError, match="humanoid"):
        load(tmp_path / "humanoidd")


@pytest.mark.parametrize("source", ["./arm", "robot.xml", "<mujoco/>", "", 3, None])
def test_front_ends_pass_on_what_is_no_bundled_name(source):
    assert resolve_name(source) is source


def test_a_model_names_its_source(tmp_path):
    (tmp_path / "mine.xml").write_text("<mujoco/>")
    mj = mujoco.MjModel.from_xml_string("<mujoco/>")
    assert load(tmp_path / "mine.xml").source == str(tmp_path / "mine.xml")
    assert [load(given).source for given in ("<mujoco/>", mj, mujoco.MjSpec())] == ["XML text", "MjModel", "MjSpec"]
    assert repr(load(mj)).startswith("Model('MjModel', ")


@pytest.mark.parametrize("source", ["nowhere/robot.xml", "robot.urdf", "/no/such"])
def test_a_missing_file_is_named(source):
    with pytest.raises(ModelError, match=source):
        load(source)


def test_text_that_is_not_xml_is_not_treated_as_a_path():
    with pytest.raises(ModelError):
        load("a robot with " + "many " * 2000 + "legs.xml")


@pytest.mark.parametrize("text", ["", " \n\t", "\ufeff"])
def test_an_empty_text_is_refused(text):
    with pytest.raises(ModelError):
        load(text)


def test_assets_are_a_dict():
    with pytest.raises(ModelError):
        load(joints.XML, assets=["mesh.stl"])


def test_a_directory_is_refused(tmp_path):
    with pytest.raises(ModelError):
        load(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<mujoco>\n<worldbody>\n<body></worldbody></mujoco>", "ine number=3|line 3"),
        ("<mujoco>\n<bdy/></mujoco>", "'bdy', line 2"),
        ("<mujoco><include file='nope.xml'/></mujoco>", "nope.xml"),
        ("<mujoco><worldbody><body name='heavy'><joint/></body></worldbody></mujoco>", "mass and inertia.*heavy"),
        ("<robot name='r'><link></robot>", "link"),
    ],
)
def test_invalid_xml_is_reported_with_file_and_line(tmp_path, text, message):
    file = tmp_path / "bad.xml"
    file.write_text(text)
    with pytest.raises(ModelError, match=f"(?s)bad.xml: .*({message})"):
        load(file)
    with pytest.raises(ModelError, match=f"(?s)XML text: .*({message})"):
        load(text)


def test_a_source_of_another_type_is_refused():
    with pytest.raises(ModelError):
        load(3)


def test_an_invalid_option_value_is_refused():
    mj = mujoco.MjModel.from_xml_string(joints.XML)
    mj.opt.timestep = 0
    with pytest.raises(ModelError):
        load(mj)


@pytest.mark.filterwarnings("ignore:MuJoCo. flex 'c'")
def test_unsupported_features_are_all_listed():
    flags = "<option integrator='RK4'><flag sleep='enable'/></option>"
    cloth = "<flexcomp name='c' type='grid' count='3 3 1' spacing='1 1 1' radius='.01' mass='1' dim='2'/>"
    text = joints.XML.replace("<worldbody>", f"{flags}<worldbody>{cloth}")
    with pytest.raises(UnsupportedFeatureError) as caught:
        load(text)
    assert len(caught.value.features) == 2
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value) and again.features == caught.value.features


URDF = """<?xml version="1.0"?>
<!-- <mujoco/> is not the root --> <robot name="r">
  <link name="a"/><link name="b"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="3" velocity="2"/></joint>
  <transmission name="drive"/>
</robot>"""  # noqa: E501


def test_a_urdf_loads_and_lists_unread_elements():
    with pytest.warns(UserWarning, match="drive"), pytest.warns(UserWarning, match="links without a body"):
        model = load(URDF)
    assert model.nv == 1 and np.array_equal(model.joint("j").range, [-1, 1])
    assert any("transmission" in line for line in model.dropped)


def test_the_package_imports_without_mujoco():
    code = "import sys, featherlane.engine.model; sys.exit('mujoco' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=900).returncode == 0


def test_a_pickle_of_a_version_with_other_fields_is_refused():
    model = bundled("pendulum")
    for state in (model.__getstate__() | {"_layout": "of old"}, {"_sizes": {}}):
        with pytest.raises(ModelError):
            object.__new__(type(model)).__setstate__(state)
