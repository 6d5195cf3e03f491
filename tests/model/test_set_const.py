"""Dependent fields against a compile of the edited source, and one world's overrides against an edit."""

import copy
import pickle

import numpy as np
import pytest

import featherlane as fl
from featherlane import set_const
from featherlane.engine.model import Constants, load
from featherlane.engine.model.set_const import DEPENDENT_INTS, DEPENDENT_REALS
from featherlane.errors import ModelError
from featherlane.extension import dependent_fields
from scenes import joints

ROUNDING = 1e-12  # the same formulas on the same values, summed in MuJoCo's order on both sides


@pytest.fixture
def model():
    return load(joints.XML)


def test_an_unedited_model_stays_as_it_is(model):
    before = model.real_buffer.copy()
    set_const(model)
    np.testing.assert_allclose(model.real_buffer, before, rtol=ROUNDING, atol=ROUNDING)


def test_edits_equal_a_recompiled_model():
    text = joints.XML.replace('armature=".01"', 'armature=".5"').replace('gravcomp="0.25"', "")
    text = text.replace('pos=".35 0 0"', 'pos=".6 0 .1"').replace('gear="30"', 'gear="10"')
    compiled, model = load(text), load(joints.XML)
    model.joint("wrist").armature = 0.5
    model.body("torso").gravcomp = 0
    model.body("hand").pos = [0.6, 0, 0.1]
    model.actuator_gear[0, 0] = 10
    set_const(model)
    for name in DEPENDENT_REALS + DEPENDENT_INTS:
        np.testing.assert_allclose(getattr(model, name), getattr(compiled, name), rtol=ROUNDING, err_msg=name)
    assert model.ngravcomp == 0


def test_scaled_masses_scale_inverse_weights(model):
    before = model.dof_invweight0.copy(), model.body_subtreemass.copy()
    model.body_mass *= 4
    model.body_inertia *= 4
    model.dof_armature *= 4
    set_const(model)
    np.testing.assert_allclose(model.dof_invweight0, before[0] / 4, rtol=ROUNDING)
    np.testing.assert_allclose(model.body_subtreemass, before[1] * 4, rtol=ROUNDING)


def test_arrays_stay_attached(model):
    views = {name: getattr(model, name) for name in DEPENDENT_REALS}
    model.body_mass *= 2
    set_const(model)
    assert all(getattr(model, name) is view for name, view in views.items())
    assert views["body_subtreemass"][0] == pytest.approx(model.body_mass.sum())


SIZED = """
<mujoco>
  <worldbody>
    <body><freejoint/><geom name="sphere" type="sphere" size="{0}"/></body>
    <body><freejoint/><geom name="capsule" type="capsule" size="{0} {1}"/></body>
    <body><freejoint/><geom name="ellipsoid" type="ellipsoid" size="{0} {1} {2}"/></body>
    <body><freejoint/><geom name="cylinder" type="cylinder" size="{0} {1}"/></body>
    <body><freejoint/><geom name="box" type="box" size="{0} {1} {2}"/></body>
  </worldbody>
</mujoco>"""


def test_resized_geoms_get_their_bounding_spheres_and_boxes():
    model, compiled = load(SIZED.format(0.1, 0.2, 0.3)), load(SIZED.format(0.7, 0.3, 0.2))
    model.geom_size[:] = compiled.geom_size
    set_const(model)
    np.testing.assert_allclose(model.geom_rbound, compiled.geom_rbound, rtol=ROUNDING)
    np.testing.assert_allclose(model.geom_aabb, compiled.geom_aabb, rtol=ROUNDING)


def test_constants_of_overrides_equal_those_of_the_edit_and_leave_the_model(model, rng):
    constants, before = Constants(model), model.real_buffer.copy()
    for _ in range(3):
        overrides = {"body_mass": model.body_mass * rng.uniform(0.5, 2, model.nbody)}
        edited = load(joints.XML)
        edited.body_mass = overrides["body_mass"]
        set_const(edited)
        for result in (constants(overrides), Constants(model)(overrides)):
            assert result.keys() == set(DEPENDENT_REALS)
            for name, value in result.items():
                np.testing.assert_allclose(value, getattr(edited, name), rtol=ROUNDING, atol=ROUNDING, err_msg=name)
    assert np.array_equal(model.real_buffer, before)


def test_overrides_apply_to_their_world_only(model):
    constants = Constants(model)
    first = constants({})
    constants({"body_mass": 2 * model.body_mass, "body_subtreemass": model.body_mass})
    assert all(np.array_equal(value, first[name]) for name, value in constants({}).items())


def test_an_unknown_override_is_named(model):
    with pytest.raises(ModelError, match="body_mas'"):
        Constants(model)({"body_mas": 1})


def test_dependent_fields_are_those_of_set_const_and_the_model_is_kept(model):
    edited, masses = copy.copy(model), 1.5 * model.body_mass
    own, heavy = dependent_fields(model, [{}, {"body_mass": masses}])
    assert np.array_equal(own["body_subtreemass"], model.body_subtreemass)
    edited.body_mass = masses
    set_const(edited)
    assert all(np.array_equal(heavy[name], getattr(edited, name)) for name in heavy)


def test_edits_that_contradict_the_compilation_raise():
    model = load("<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>")
    model.body_ipos[1, 0] = 0.1
    with pytest.raises(ModelError, match="body_ipos of body #1: got"):
        set_const(model)


def test_constants_are_kept_between_calls_and_follow_edits(monkeypatch):
    """An MjModel holds meshes and textures: copying it in each call cost more than the computation."""
    model = load(joints.XML)
    batch, other = fl.Batch(model, 3), fl.Batch(model, 2)
    batch.expand("body_mass")[1] *= 2.0
    batch.set_const()
    copies = []
    kept = copy.copy
    monkeypatch.setattr(copy, "copy", lambda value: copies.append(value) or kept(value))
    for factor in (1.0, 3.0):
        model.body_inertia *= factor
        model.dof_armature[-1] += 0.25
        other.expand("body_mass")[1] = 3.0 * model.body_mass
        batch.set_const([1])
        other.set_const()
        assert not copies
        for many, worlds in ((batch, (1,)), (other, (0, 1))):
            for w in worlds:
                alone = many.get_model(w)
                set_const(alone)
                for name in DEPENDENT_REALS:
                    rows = many.expanded(name)
                    given = getattr(model, name) if rows is None else rows[w]
                    np.testing.assert_array_equal(given, getattr(alone, name), err_msg=f"{name} of world {w}")
        copies.clear()


def test_constants_do_not_depend_on_the_worlds_before():
    model = load(joints.XML)
    batch, alone = fl.Batch(model, 8), fl.Batch(model, 8)
    rng = np.random.default_rng(3)
    for name, change in (("body_pos", 0.1), ("geom_pos", 0.1), ("body_mass", 0.5)):
        values = getattr(model, name) + change * rng.random((8, *getattr(model, name).shape))
        batch.expand(name)[:], alone.expand(name)[:] = values, values
    batch.set_const()
    for w in (5, 2, 7, 0, 1, 6, 3, 4):
        alone.set_const([w])
    for name in DEPENDENT_REALS:
        np.testing.assert_array_equal(batch.expanded(name), alone.expanded(name), err_msg=name)


KEYED = """<mujoco>
  <worldbody><body><freejoint/><geom name="ball" size=".1"/></body></worldbody>
  <keyframe><key name="home" qpos="0 0 1 1 0 0 0"/></keyframe>
</mujoco>"""


@pytest.mark.parametrize("use", ["mj_model", "pickle", "copy", "set_const", "to_mujoco", "world_copy"])
def test_models_of_worlds_copy_the_mjmodel_when_it_is_first_used(use):
    """Meshes and textures can take 50 MB."""
    model = fl.load(KEYED)
    batch = fl.Batch(model, 2)
    batch.expand("body_mass")[1, 1] = 3.0
    one = batch.get_model(1)
    fl.Data(one).forward()
    assert one.names("geom") == ["ball"] and one.compiled is model.mj_model
    model.key_qpos[0, 2] = 7.0  # after the copy
    if use == "pickle":
        one = pickle.loads(pickle.dumps(one))
    elif use == "copy":
        one = copy.copy(one)
    elif use == "set_const":
        fl.set_const(one)
    elif use == "world_copy":
        lender, one = one, one.world_copy()
        lender.key_qpos[0, 2] = 9.0
    mj = one.to_mujoco() if use == "to_mujoco" else one.mj_model
    assert mj is not model.mj_model and mj.key_qpos[0, 2] == 1.0
    mj.key_qpos[0, 0], mj.geom_rgba[0, 0] = 5.0, 0.25
    assert model.key_qpos[0].tolist()[:3] == [0.0, 0.0, 7.0] and model.mj_model.geom_rgba[0, 0] == 0.5
    assert one.body_mass[1] == 3.0
