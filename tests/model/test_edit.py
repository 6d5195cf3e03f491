"""`fl.load(source, edit=...)` changes a specification before it is compiled."""

import warnings

import mujoco
import numpy as np
import pytest

import featherlane as fl
from model.test_obj_objects import SEVERAL

BALL = '<mujoco><worldbody><body name="ball"><freejoint/><geom name="ball" size=".1"/></body></worldbody></mujoco>'
ROBOT = """<robot name="r"><link name="trunk">
  <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><geometry><sphere radius=".1"/></geometry></collision></link></robot>"""


def grow(spec):
    spec.geom("ball").size[0] = 0.2


def sources(folder):
    """Returns the ball as XML text, as a file and as an MjSpec."""
    (folder / "ball.xml").write_text(BALL)
    return [BALL, folder / "ball.xml", mujoco.MjSpec.from_string(BALL)]


def test_an_edited_model_equals_a_separately_written_one(tmp_path):
    written = fl.load(BALL.replace(".1", ".2"))
    for source in sources(tmp_path):
        model = fl.load(source, edit=grow)
        np.testing.assert_array_equal(model.body_inertia, written.body_inertia)
        np.testing.assert_array_equal(model.geom_rbound, written.geom_rbound)


def test_a_given_specification_does_not_change():
    spec = mujoco.MjSpec.from_string(BALL)
    fl.load(spec, edit=grow)
    assert spec.geom("ball").size[0] == 0.1


def test_bundled_models_can_be_edited():
    model = fl.load("humanoid", edit=lambda spec: spec.body("torso").add_site(name="chest"))
    assert model.nsite == fl.bundled("humanoid").nsite + 1 and "chest" in model.names("site")


def test_the_function_gets_what_the_setup_added():
    def rough(spec):
        assert spec.joint("base") is not None and spec.key("home") is not None
        spec.geom("floor").friction[0] = 0.3

    model = fl.load(ROBOT, base="free", floor=True, edit=rough)
    assert model.geom("floor").friction[0] == 0.3
    assert model.key_qpos[0, 2] == pytest.approx(0.1)


def test_the_function_runs_once_before_variants():
    calls = []

    def counted(spec):
        calls.append(spec)
        grow(spec)

    variants = {"weight": {"light": lambda spec: None, "heavy": lambda spec: setattr(spec.geom("ball"), "mass", 7.0)}}
    model = fl.load(BALL, edit=counted, variants=variants)
    batch = fl.Batch(model, 2)
    batch.set_variant("weight", "heavy", ids=[1])
    assert len(calls) == 1 and model.geom_size[0, 0] == 0.2
    assert batch.get_model(1).body_mass[1] == 7.0
    assert batch.get_model(0).body_mass[1] == fl.load(BALL, edit=grow).body_mass[1]


def test_added_meshes_are_read_as_those_of_the_source(tmp_path):
    (tmp_path / "m.obj").write_text(SEVERAL["objects"])

    def add(spec):
        spec.add_mesh(name="m", file=str(tmp_path / "m.obj"))
        spec.worldbody.add_geom(name="m", type=mujoco.mjtGeom.mjGEOM_MESH, meshname="m")

    with pytest.warns(UserWarning, match=r"first object .* mesh 'm' \(2 objects\)") as caught:
        model = fl.load(BALL, edit=add)
    assert [warning.filename for warning in caught] == [__file__]
    assert len(model.mj_model.mesh_face) == 24
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        field = fl.load(BALL, edit=add, collision="sdf")
    assert field.geom("m").type[0] == mujoco.mjtGeom.mjGEOM_SDF


@pytest.mark.parametrize("kind", [KeyError, ValueError, AttributeError, fl.ModelError])
def test_errors_of_the_function_are_raised_unchanged_with_a_note(kind):
    error = kind("mine")

    def fail(spec):
        raise error

    with pytest.raises(kind) as raised:
        fl.load(BALL, edit=fail)
    assert raised.value is error
    assert raised.value.__notes__ == ["load: XML text: raised while the specification was edited"]


def test_errors_of_functions_of_variants_have_a_note():
    with pytest.raises(KeyError) as raised:
        fl.load(BALL, variants={"weight": {"heavy": lambda spec: {}["mine"]}})
    assert raised.value.__notes__ == ["variant 'heavy' of 'weight': raised while the specification was edited"]
    with pytest.raises(KeyError) as raised:
        fl.variants(BALL, [3], lambda spec, parameter: {}["mine"])
    assert raised.value.__notes__ == ["variant 3: raised while the specification was edited"]


def test_another_specification_is_refused():
    with pytest.raises(fl.ModelError, match="returned another MjSpec"):
        fl.load(BALL, edit=lambda spec: mujoco.MjSpec())
    assert fl.load(BALL, edit=lambda spec: spec).nbody == 2


def test_an_invalid_edit_is_the_error_of_the_compiler():
    with pytest.raises(fl.ModelError, match="size 0 must be positive"):
        fl.load(BALL, edit=lambda spec: setattr(spec.geom("ball"), "size", [-1, 0, 0]))


def test_compiled_models_and_other_values_are_refused():
    with pytest.raises(fl.ModelError, match="edit: got an MjModel"):
        fl.load(mujoco.MjModel.from_xml_string(BALL), edit=grow)
    with pytest.raises(fl.ModelError, match="edit: got int"):
        fl.load(BALL, edit=3)
