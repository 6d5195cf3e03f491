"""Assignment to options and fields: valid broadcasts, and errors for probable mistakes."""

import mujoco
import numpy as np
import pytest

import featherlane as fl

XML = """<mujoco><worldbody><body name="a"><freejoint/><geom name="g" size=".1 .1 .1" type="box"/></body>
<body name="b" mocap="true"/><body name="c"><joint name="h"/><geom size=".1"/></body></worldbody>
<actuator><motor name="u" joint="h"/></actuator></mujoco>"""
VECTORS = {"gravity": 3, "wind": 3, "magnetic": 3, "o_solref": 2, "o_solimp": 5, "o_friction": 5}


@pytest.fixture
def model():
    return fl.load(XML)


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("value", [9.81, (9.81,), [[0.1] * 5], "down", None, True, "3"])
def test_a_vector_option_takes_a_vector_of_its_length_only(model, name, value):
    before = getattr(model.opt, name).copy()
    with pytest.raises(fl.ModelError):
        setattr(model.opt, name, value)
    with pytest.raises(fl.ModelError):
        setattr(model, f"opt_{name}", value)
    np.testing.assert_array_equal(getattr(model.opt, name), before)


@pytest.mark.parametrize("name", ["timestep", "iterations", "integrator", "disableflags", "erp", "ccd_iterations"])
@pytest.mark.parametrize("value", [True, "0.5x", [1, 2], None])
def test_options_take_no_truth_values_and_no_lists_of_numbers(model, name, value):
    if name == "disableflags" and isinstance(value, list):
        return  # flags accept lists
    with pytest.raises(fl.ModelError):
        setattr(model.opt, name, value)


def test_flags_have_names(model):
    bits = mujoco.mjtDisableBit
    for value in ("contact,Gravity", ["contact", "gravity"], {"contact", bits.mjDSBL_GRAVITY}, "gravity | contact"):
        model.opt.disableflags = 0
        model.opt.disableflags = value
        assert model.opt.disableflags == int(bits.mjDSBL_CONTACT) | int(bits.mjDSBL_GRAVITY)
    model.opt.disableflags = ()
    assert model.opt.disableflags == 0
    model.opt.enableflags = "energy"
    assert model.opt.enableflags == int(mujoco.mjtEnableBit.mjENBL_ENERGY)


@pytest.mark.parametrize("value", ["", "contacts", "contact,,gravity", ["contact", "gravty"], ["contact", 1.5]])
def test_a_flag_that_does_not_exist_is_named(model, value):
    with pytest.raises(fl.ModelError, match="disableflags"):
        model.opt.disableflags = value
    assert model.opt.disableflags == 0


@pytest.mark.parametrize("name", ["geom_solref", "geom_solimp", "geom_friction", "jnt_range", "body_quat"])
def test_a_number_does_not_spread_over_entries_that_mean_different_things(model, name):
    before = getattr(model, name).copy()
    for value in (0.02, [0.02], np.full((len(before), 1), 0.02)):
        with pytest.raises(fl.ModelError):
            setattr(model, name, value)
    np.testing.assert_array_equal(getattr(model, name), before)
    setattr(model, name, np.arange(before.shape[1]))  # a value per object is broadcast
    assert (getattr(model, name) == np.arange(before.shape[1])).all()


def test_numbers_spread_over_objects_worlds_and_vectors(model):
    model.dof_damping, model.geom_pos = 0.5, 0
    assert (model.dof_damping == 0.5).all() and not model.geom_pos.any()
    batch = fl.Batch(model, 3, dtype="float32")
    batch.ctrl, batch.qvel = 1, np.arange(model.nv)
    assert (batch.ctrl == 1).all() and (batch.qvel == np.arange(model.nv)).all()


def test_named_objects_refuse_the_same(model):
    data, batch = fl.Data(model), fl.Batch(model, 2)
    with pytest.raises(fl.ModelError, match=r"geom 'g': friction: got 0\.5, allowed are 3 numbers"):
        model.geom("g").friction = 0.5
    with pytest.raises(fl.ModelError):
        model.body("a").mass = "heavy"
    with pytest.raises(fl.ModelError):
        model.joint("h").type = 0
    for owner in (data, batch):
        with pytest.raises(fl.ModelError):
            owner.mocap_quat = 1
        with pytest.raises(fl.ModelError, match="body 'b': mocap_quat"):
            owner.body("b").mocap_quat = 1
    with pytest.raises(fl.ModelError):
        batch.body("a").xpos = 0
    model.geom("g").friction = 1, 0.1, 0.01
    np.testing.assert_array_equal(model.geom_friction[model.geom("g").id], (1, 0.1, 0.01))


def test_whole_numbers_and_flags_are_not_rounded(model):
    for value in (1.7, 2**40, "1", 1j):
        with pytest.raises(fl.ModelError):
            model.geom_group = value
    with pytest.raises(fl.ModelError):
        model.actuator_ctrllimited = 2
    model.actuator_ctrllimited = 1
    assert model.actuator_ctrllimited.all()


def test_invalid_assignments_name_the_given_value(model):
    data = fl.Data(model)
    for value in (np.zeros(99), "up", None, [[1], [2, 3]], 1j, {}):
        with pytest.raises(fl.ModelError):
            data.qpos = value
    with pytest.raises(fl.ModelError):
        data.time = [1, 2]


@pytest.mark.parametrize("value", ["x", True, None, [1.0], -1.0, float("nan")])
def test_the_mean_inertia_is_a_number(model, value):
    with pytest.raises(fl.ModelError):
        model.stat.meaninertia = value
