"""Invalid edits of a model: the next call raises an error that names the field, for every kind of edit."""

import contextlib
import copy
import pickle

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.fields import MODEL
from featherlane.engine.model.limits import LIMITS, ROWS
from featherlane.engine.model.model import LIVE, peek
from featherlane.errors import ModelError

XML = """
<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
  <body name="cart" pos="0 0 1"><joint name="rail" type="slide" range="-1 1" damping="-.1"/><geom name="box" size=".1"/>
    <site name="tip"/><body pos="0 0 .3"><joint type="hinge"/><geom type="capsule" size=".1 .1"/></body></body>
  <body name="ball" pos="1 0 1"><freejoint name="free"/><geom size=".1"/></body>
</worldbody>
<tendon><fixed name="rope" limited="true" range="-1 1"><joint joint="rail" coef="1"/></fixed></tendon>
<equality><connect name="pin" body1="cart" body2="ball" anchor="0 0 0"/></equality>
<actuator><general name="lag" joint="rail" dyntype="filter" dynprm=".1"/>
  <motor name="push" joint="rail" ctrlrange="-1 1"/></actuator></mujoco>
"""
WRONG = [
    ("body_mass", 1, -1.0, "body_mass of body 'cart': got -1, allowed are finite numbers >= 0"),
    ("body_mass", 1, np.inf, "body_mass of body 'cart': got inf"),
    ("body_inertia", (3, 2), np.nan, "body_inertia of body 'ball': got nan"),
    ("body_quat", 2, 0.0, "body_quat of body #2: got (0, 0, 0, 0), allowed are quaternions of length > 0"),
    ("geom_quat", 1, 2.0, "geom_quat of geom 'box': got (2, 2, 2, 2), allowed are quaternions of length 1"),
    ("geom_size", (1, 0), -0.1, "geom_size of geom 'box': got (-0.1, 0, 0), allowed are sizes > 0"),
    ("geom_size", (2, 1), 0.0, "geom_size of geom #2: got (0.1, 0, 0)"),
    ("geom_solref", (1, 0), np.nan, "geom_solref of geom 'box': got nan, allowed are finite numbers"),
    ("geom_friction", (1, 0), -1.0, "geom_friction of geom 'box'"),
    ("geom_restitution", 1, -5.0, "geom_restitution of geom 'box': got -5, allowed are numbers from 0 to 1"),
    ("dof_armature", 3, -1.0, "dof_armature[3] of joint 'free': got -1"),
    ("jnt_axis", (0, 0), 3.0, "jnt_axis of joint 'rail'"),
    ("jnt_range", 0, (1.0, -1.0), "jnt_range of joint 'rail': got (1, -1), allowed are limits with lower <= upper"),
    ("jnt_range", (0, 1), np.nan, "jnt_range of joint 'rail': got nan, allowed are numbers"),
    ("site_pos", (0, 1), np.nan, "site_pos of site 'tip'"),
    ("tendon_armature", 0, -1.0, "tendon_armature of tendon 'rope'"),
    ("eq_data", (0, 1), np.nan, "eq_data of equality 'pin'"),
    ("actuator_dynprm", (0, 0), 0.0, "actuator_dynprm of actuator 'lag'"),
    (
        "actuator_delay",
        0,
        0.1,
        "actuator_delay of actuator 'lag': got 0.1, allowed are zeros, because the element was "
        "compiled without nsample",
    ),
    (
        "jnt_springyield",
        0,
        0.1,
        "jnt_springyield of joint 'rail': got 0.1, allowed are zeros, because the element was compiled without",
    ),
    ("actuator_gear", (1, 0), np.inf, "actuator_gear of actuator 'push'"),
    ("actuator_ctrlrange", 1, (1.0, -1.0), "actuator_ctrlrange of actuator 'push'"),
    ("qpos0", 0, np.nan, "qpos0[0]: got nan"),
    ("opt_timestep", 0, -0.001, "option timestep: got -0.001, allowed are finite numbers > 0"),
    ("opt_gravity", 2, np.nan, "option gravity: got nan"),
]
CALLS = {
    "step": lambda model, data, batch: fl.step(model, data),
    "forward": lambda model, data, batch: fl.forward(model, data),
    "crb": lambda model, data, batch: fl.stages.crb(model, data),
    "set_const": lambda model, data, batch: fl.set_const(model),
    "Data": lambda model, data, batch: fl.Data(model),
    "batch.step": lambda model, data, batch: batch.step(),
    "batch.rollout": lambda model, data, batch: batch.rollout(2),
    "batch.set_const": lambda model, data, batch: batch.set_const(),
    "transition_fd": lambda model, data, batch: fl.linearize(model, data, method="finite_difference"),
    "transition": lambda model, data, batch: fl.linearize(model, data),
}


@pytest.fixture
def model():
    return fl.load(XML)


def refused(call, part: str):
    with pytest.raises(ModelError) as error:
        call()
    assert part in str(error.value)


@pytest.mark.parametrize(("field", "where", "value", "part"), WRONG)
def test_impossible_numbers_are_refused_by_name(model, field, where, value, part):
    data = fl.Data(model)
    fl.step(model, data)
    before = data.qpos.copy()
    kept = copy.copy(getattr(model, field)[where])
    getattr(model, field)[where] = value
    for _ in range(2):
        refused(lambda: fl.step(model, data), part)
    np.testing.assert_array_equal(data.qpos, before)
    getattr(model, field)[where] = kept
    fl.step(model, data)


@pytest.mark.parametrize(("field", "where", "value", "part"), WRONG)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_impossible_numbers_of_a_world_are_refused_with_its_number(model, field, where, value, part, dtype):
    batch = fl.Batch(model, 9, dtype=dtype)
    rows = batch.expand(field)
    batch.step()
    rows[7][where] = value
    refused(batch.step, part.partition(":")[0] + " in world 7: got")
    batch.expand(field)[7] = rows[6]
    batch.step()


@pytest.mark.parametrize("call", CALLS)
def test_every_call_checks_edited_values(model, call):
    data, batch = fl.Data(model), fl.Batch(model, 2)
    batch.step()
    fl.step(model, data)
    model.body_mass[1] = -1.0
    refused(lambda: CALLS[call](model, data, batch), "body_mass of body 'cart'")


def ways(model):
    """Yields live arrays of the masses, from every public access."""
    yield model.body_mass
    yield model.body_mass[1:]
    yield model.body_mass.reshape(2, 2)[:, 1:].T
    yield np.asarray(memoryview(model.body_mass))


def test_a_referenced_array_is_checked_for_edits(model):
    data = fl.Data(model)
    for array in ways(model):
        fl.step(model, data, 3)
        kept = array.copy()
        array[...] = -1.0
        refused(lambda: fl.step(model, data), "body_mass")
        array[...] = kept
        fl.step(model, data)


def test_an_unreferenced_array_is_no_longer_checked(model):
    # no public attribute shows which fields a call checks: skipping a check only saves time
    data = fl.Data(model)
    mass = model.body_mass
    fl.step(model, data)
    assert model._edited == {"body_mass"} and model._stamp is None
    del mass
    fl.step(model, data)
    assert not model._edited and model._stamp is data._stamp
    model.opt.timestep, model.opt.gravity = 0.001, (0, 0, -1)
    assert model._stamp is data._stamp  # checked immediately


def test_of_several_invalid_fields_the_first_by_name_raises(model):
    data = fl.Data(model)
    for name in ("geom_size", "dof_armature", "body_mass", "geom_friction"):  # the order of access does not matter
        getattr(model, name)[...] = -1.0
    refused(lambda: fl.step(model, data), "body_mass")


def test_peek_is_a_read_only_view_and_no_edit(model):
    data = fl.Data(model)
    fl.step(model, data)
    before = model._stamp
    mass = peek(model, "body_mass")
    with pytest.raises(ValueError, match="read-only"):
        mass[1] = 2.0
    assert not model._edited and model._stamp is before
    model.body_mass[1] = 2.0
    assert mass[1] == 2.0


def test_edits_by_assignment_name_copy_and_pickle_are_detected(model):
    data = fl.Data(model)
    fl.step(model, data)
    model.body_mass = np.array([0.0, 1.0, 2.0, -3.0])
    for other in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        refused(lambda other=other: fl.Data(other), "body_mass of body 'ball'")
    model.body("ball").mass = 1.0
    fl.step(model, data)
    batch = fl.Batch(model, 3)
    mass = pickle.loads(pickle.dumps(batch)).expand("body_mass")
    mass[1] = -1.0
    batch.expand("body_mass")[2, 1] = np.nan
    refused(batch.step, "body_mass of body 'cart' in world 2: got nan")
    refused(pickle.loads(pickle.dumps(batch)).step, "in world 2")


def test_a_compiled_model_with_impossible_numbers_is_refused():
    mj = mujoco.MjModel.from_xml_string(XML)
    mj.body_mass[1] = -1.0
    refused(lambda: fl.Data(fl.load(mj)), "body_mass of body 'cart'")


def test_heights_are_finite():
    xml = '<mujoco><asset><hfield name="h" nrow="3" ncol="3" size="1 1 1 1"/></asset><worldbody>'
    xml += '<geom type="hfield" hfield="h"/><body><freejoint/><geom size=".1"/></body></worldbody></mujoco>'
    model = fl.load(xml)
    data = fl.Data(model)
    fl.step(model, data)
    model.hfield_data[4] = np.nan
    refused(lambda: fl.step(model, data), "hfield_data")


def test_limits_are_of_fields_that_exist():
    assert set(LIMITS) | set(ROWS) <= set(LIVE) and set(LIVE) <= set(MODEL.index)


@pytest.mark.parametrize(
    "given, made, text",
    [
        ('size=".1"/>\n    <site', 'size=".1" friction="-1 0 0"/>\n    <site', "geom_friction of geom 'box': got -1"),
        ('range="-1 1" damping="-.1"', 'range="-1 1" damping="nan"', "dof_damping[0] of joint 'rail': got nan"),
        ('pos="0 0 1"', 'pos="0 0 nan"', "got nan, allowed are finite numbers"),
    ],
)
def test_numbers_that_mujoco_compiles_and_no_field_can_hold_are_refused_by_load(given, made, text):
    assert given in XML
    with pytest.warns(UserWarning) if "nan" in made else contextlib.nullcontext(), pytest.raises(ModelError) as error:
        fl.load(XML.replace(given, made, 1))
    assert text in str(error.value)


def test_a_number_that_float32_makes_infinite_is_refused_there():
    model = fl.bundled("humanoid")
    doubles, singles = (fl.Batch(model, 2, dtype=dtype) for dtype in ("float64", "float32"))
    singles.step()
    model.dof_armature[7] = 1e200
    doubles.step()
    for _ in range(2):
        with pytest.raises(fl.ModelError, match=r"dof_armature\[7\] .*float32"):
            singles.step()
    with pytest.raises(fl.ModelError):
        fl.Batch(model, 2, dtype="float32").step()
    model.dof_armature[7] = 0.01
    model.actuator_forcerange[:] = -1e200, 1e200  # not a limit, in either
    singles.step()
    assert not singles.nreset.any()
