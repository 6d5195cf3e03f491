"""Fields that `Batch.set_const` recomputes by kernels, against MuJoCo's mj_setConst; bits of unchanged worlds."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model import Constants
from featherlane.engine.model.set_const import DEPENDENT_REALS
from featherlane.extension import dependent_fields
from scenes import equalities, joints

ROUNDING = 1e-12  # relative to 1 + the value
NWORLD = 70  # more than one call of the kernels takes
TENDONS = """
<mujoco>
  <compiler autolimits="true"/>
  <worldbody>
    <site name="base" pos="0 0 .5"/>
    <geom name="wheel" type="cylinder" size=".05 .1" pos=".1 0 .4" euler="90 0 0" contype="0" conaffinity="0"/>
    <body name="upper" pos="0 0 .3">
      <joint name="shoulder" type="ball" armature=".01"/>
      <geom type="capsule" size=".03" fromto="0 0 0 .3 0 0"/>
      <site name="middle" pos=".2 0 .03"/>
      <camera name="wrist" pos=".1 .2 .3" euler="10 20 30" mode="trackcom"/>
      <body name="lower" pos=".3 0 0">
        <joint name="elbow" axis="0 1 0"/>
        <joint name="slide" type="slide" axis="1 0 0" armature=".1"/>
        <geom type="ellipsoid" size=".1 .04 .03" pos=".1 0 0"/>
        <site name="end" pos=".2 0 0"/>
      </body>
    </body>
    <body name="point" pos="1 0 0">
      <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/><joint type="slide" axis="0 0 1"/>
      <geom type="sphere" size=".05"/>
    </body>
    <body name="hand" mocap="true" pos="0 1 0"><geom type="box" size=".1 .1 .1" contype="0" conaffinity="0"/></body>
  </worldbody>
  <tendon>
    <spatial name="rope" stiffness="3">
      <site site="base"/><geom geom="wheel"/><site site="middle"/><site site="end"/>
    </spatial>
    <spatial name="heavy" armature=".02"><site site="base"/><site site="end"/></spatial>
    <fixed name="both" stiffness="2"><joint joint="elbow" coef="1"/><joint joint="slide" coef="-2"/></fixed>
  </tendon>
  <actuator>
    <motor tendon="rope" gear="2"/><motor joint="shoulder" gear="1 2 3"/><general joint="elbow" gear="4"/>
    <motor site="end" gear="1 0 0 0 1 0"/><adhesion body="lower" ctrlrange="0 1"/>
  </actuator>
  <equality><connect body1="lower" body2="point" anchor=".1 .2 .3"/><weld body1="upper" body2="hand"/></equality>
</mujoco>"""
SCALED = "body_mass body_inertia dof_armature geom_size tendon_armature actuator_armature actuator_gear".split()
MOVED = "body_pos body_ipos jnt_pos geom_pos site_pos cam_pos qpos0 qpos_spring eq_data".split()
TURNED = "body_quat jnt_axis geom_quat site_quat cam_quat".split()
SCENES = {"joints": joints.XML, "tendons": TENDONS, "equalities": equalities.EQUALITIES} | {
    name: name for name in ("humanoid", "hand", "slider_crank")
}


def loaded(scene: str) -> fl.Model:
    return fl.bundled(scene) if SCENES[scene] == scene else fl.load(SCENES[scene])


def edited(model: fl.Model, names, nworld: int = NWORLD) -> dict[str, np.ndarray]:
    """Returns random values (nworld, ...) of fields; world 0 has the model's."""
    rng, found = np.random.default_rng(4), {}
    for name in names:
        own = getattr(model, name)
        rows = np.array(np.broadcast_to(own, (nworld, *own.shape)))
        if name == "body_inertia":
            rows[1:] *= rng.uniform(0.7, 1.4, (nworld - 1, len(own), 1))
        elif name in SCALED:
            rows[1:] *= rng.uniform(0.7, 1.4, rows[1:].shape)
        elif name in MOVED:
            rows[1:] += 0.05 * rng.normal(size=rows[1:].shape)
            if name.startswith("qpos"):
                rows = fl.normalize_quat(model, rows)
        else:
            length = np.linalg.norm(own, axis=-1, keepdims=True)
            rows[1:] += 0.1 * rng.normal(size=rows[1:].shape) * (length > 0)
            rows[1:] /= np.maximum(np.linalg.norm(rows[1:], axis=-1, keepdims=True), 1e-9)
        found[name] = rows
    if (model.body_simple > 0).any():  # their centres of mass and axes are fixed
        found = {name: rows for name, rows in found.items() if name not in ("body_ipos", "jnt_axis", "jnt_pos")}
    return {name: rows for name, rows in found.items() if rows.size}


def recomputed(model: fl.Model, values: dict[str, np.ndarray], ids=None) -> fl.Batch:
    batch = fl.Batch(model, len(next(iter(values.values()))))
    for name, rows in values.items():
        batch.expand(name)[...] = rows
    batch.set_const(ids)
    return batch


@pytest.mark.parametrize("scene", SCENES)
def test_dependent_fields_equal_those_of_mj_setconst(scene):
    model = loaded(scene)
    values = edited(model, SCALED + MOVED + TURNED)
    batch, expected = recomputed(model, values), Constants(model).of(model, values, NWORLD)
    for name in batch.dependent_fields:
        found = batch.expand(name)
        np.testing.assert_allclose(found, expected[name], rtol=ROUNDING, atol=ROUNDING, err_msg=name)
        assert found.size == 0 or name in ("tendon_lengthspring", "geom_fluid") or np.isfinite(found).all()


@pytest.mark.parametrize("name", ["body_mass", "qpos0", "geom_size", "dof_armature"])
def test_each_field_alone_changes_what_mj_setconst_changes(name):
    model = loaded("joints")
    values = edited(model, [name])
    batch, expected = recomputed(model, values), Constants(model).of(model, values, NWORLD)
    for field in set(batch.dependent_fields) & set(expected):
        np.testing.assert_allclose(batch.expand(field), expected[field], rtol=ROUNDING, atol=ROUNDING, err_msg=field)


def test_worlds_with_the_models_fields_keep_the_bits_of_the_compiler():
    model = loaded("joints")
    batch = recomputed(model, edited(model, SCALED))
    for name in batch.dependent_fields:
        np.testing.assert_array_equal(batch.expand(name)[0], getattr(model, name), err_msg=name)


def test_bits_depend_neither_on_other_worlds_nor_on_the_present_edits_of_the_model():
    model = loaded("tendons")
    values = edited(model, SCALED + MOVED)
    many = recomputed(model, values)
    model.body_mass[2] *= 3.0  # each world has its own masses
    fl.set_const(model)
    some = recomputed(model, {name: rows[[41, 7]] for name, rows in values.items()})
    for name in many.dependent_fields:
        np.testing.assert_array_equal(some.expand(name), many.expand(name)[[41, 7]], err_msg=name)


@pytest.mark.parametrize("scene", ["joints", "tendons", "hand"])
def test_a_model_with_the_edits_of_a_world_has_its_bits(scene):
    model = loaded(scene)
    values = edited(model, SCALED + MOVED + TURNED, 3)
    batch = recomputed(model, values)
    for name, rows in values.items():
        getattr(model, name)[...] = rows[2]
    fl.set_const(model)
    for name in set(batch.dependent_fields) & set(DEPENDENT_REALS):
        np.testing.assert_array_equal(getattr(model, name), batch.expand(name)[2], err_msg=name)


def test_reverted_edits_restore_all_bits():
    model = loaded("humanoid")
    before = model.real_buffer.copy()
    model.body_mass *= 2.0
    fl.set_const(model)
    assert not np.array_equal(model.real_buffer, before)
    model.body_mass /= 2.0
    fl.set_const(model)
    assert np.array_equal(model.real_buffer, before)


def test_worlds_follow_each_edit_of_the_models_masses():
    model = loaded("humanoid")
    batch = fl.Batch(model, 3)
    batch.expand("dof_armature")[...] *= 2.0
    for factor in (1.0, 2.0, 3.0, 1.0 / 6.0):
        model.body_mass[...] *= factor
        batch.set_const()
        expected = Constants(model).of(model, {"dof_armature": 2.0 * model.dof_armature[None]}, 1)
        for name in ("body_subtreemass", "body_invweight0", "dof_invweight0", "actuator_acc0"):
            np.testing.assert_allclose(batch.expand(name)[2], expected[name][0], rtol=ROUNDING, err_msg=name)


def test_only_chosen_worlds_are_recomputed():
    model = loaded("joints")
    batch = recomputed(model, edited(model, ["body_mass"], 4), ids=[1, 3])
    rows = batch.expand("body_subtreemass")
    assert np.array_equal(rows[[0, 2]], [model.body_subtreemass] * 2)
    assert (rows[[1, 3], 0] != model.body_subtreemass[0]).all()
    np.testing.assert_allclose(rows[[1, 3], 0], batch.expand("body_mass")[[1, 3]].sum(1), rtol=ROUNDING)


def test_values_of_an_edited_mjmodel_are_recomputed():
    """An MjModel whose masses were edited without mj_setConst is loaded as it is."""
    mujoco = pytest.importorskip("mujoco")
    mj = mujoco.MjModel.from_xml_string(joints.XML)
    mj.body_mass[:] *= 2.0
    model = fl.load(mj)
    batch = recomputed(model, {"body_mass": model.body_mass[None]})
    mujoco.mj_setConst(mj, mujoco.MjData(mj))
    np.testing.assert_allclose(batch.expand("body_invweight0")[0], mj.body_invweight0, rtol=ROUNDING)
    fl.set_const(model)
    np.testing.assert_allclose(model.body_invweight0, mj.body_invweight0, rtol=ROUNDING)


def test_rest_lengths_of_minus_one_become_lengths_in_the_rest_position():
    model = loaded("tendons")
    values = {"tendon_lengthspring": np.full((2, model.ntendon, 2), -1.0)} | edited(model, ["qpos_spring"], 2)
    values["tendon_lengthspring"][1, 0] = 0.1, 0.2
    found = recomputed(model, values).expand("tendon_lengthspring")
    for w in range(2):
        data = fl.Data(model)
        data.qpos = values["qpos_spring"][w]
        data.forward()
        np.testing.assert_allclose(found[w, 1:].T, [data.ten_length[1:]] * 2, rtol=ROUNDING, atol=ROUNDING)
    assert found[0, 0, 0] > 0.1 and found[1, 0].tolist() == [0.1, 0.2]


def test_fluid_coefficients_follow_the_sizes_of_ellipsoids():
    model = fl.load(
        '<mujoco><option density="1000"/><worldbody><body><freejoint/>'
        '<geom type="ellipsoid" size=".1 .2 .3" fluidshape="ellipsoid"/></body></worldbody></mujoco>'
    )
    values = {"geom_size": model.geom_size * np.array([1.0, 1.5])[:, None, None]}
    batch, expected = recomputed(model, values), Constants(model).of(model, values, 2)
    np.testing.assert_array_equal(batch.expand("geom_fluid"), expected["geom_fluid"])
    assert (batch.expand("geom_fluid")[1] != batch.expand("geom_fluid")[0]).any()


def test_float32_worlds_have_rounded_values():
    model = loaded("humanoid")
    values = {"body_mass": np.float32(edited(model, ["body_mass"], 5)["body_mass"]).astype(float)}
    exact, batch = recomputed(model, values), fl.Batch(model, 5, dtype="float32")
    batch.expand("body_mass")[...] = values["body_mass"]
    batch.set_const()
    for name in ("body_invweight0", "dof_M0", "body_subtreemass"):
        np.testing.assert_array_equal(batch.expand(name), exact.expand(name).astype(np.float32), err_msg=name)


def test_sets_of_values_may_have_different_fields():
    model = loaded("joints")
    heavy, none, shifted = dependent_fields(
        model, [{"body_mass": 2.0 * model.body_mass}, {}, {"body_pos": model.body_pos + 0.1}]
    )
    assert np.array_equal(none["body_invweight0"], model.body_invweight0)
    np.testing.assert_allclose(heavy["body_subtreemass"], 2.0 * model.body_subtreemass, rtol=ROUNDING)
    assert np.array_equal(shifted["body_subtreemass"], model.body_subtreemass)
    assert dependent_fields(model, []) == []
