"""Edits of model fields after loading: in place, by world, or in an MjModel before loading; against MuJoCo."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.fields import MODEL
from featherlane.engine.model.in_use import DECIDING
from featherlane.engine.model.mujoco_arrays import is_mujocos, write_field
from featherlane.engine.model.set_const import BOTH, DEPENDENT_REALS
from featherlane.errors import ModelError
from sampling import every

# zero in all fields that switch a feature on
PLAIN = """
<mujoco><option timestep=".002" density="1.2" viscosity=".001" wind=".3 .2 .1"><flag energy="enable"/></option>
<worldbody>
  <geom name="floor" type="plane" size="5 5 .1"/><site name="ray" pos="1.1 .3 1" euler="90 0 0"/>
  <body name="cube" pos="0 0 .0995"><freejoint/><geom name="cube" type="box" size=".1 .1 .1" mass="1"/>
    <site name="top" pos="0 0 .1"/></body>
  <body name="crate" pos=".5 0 .0995"><inertial pos=".01 0 0" mass="1" diaginertia=".01 .01 .012"/><freejoint/>
    <geom name="crate" type="box" size=".1 .1 .1"/></body>
  <body name="ball" pos="2 0 1"><joint name="ball" type="ball"/>
    <geom type="capsule" size=".05 .2" mass="1" fluidshape="ellipsoid"/></body>
  <body name="arm" pos="1 0 1"><joint name="shoulder" axis="0 1 0" range="-1 1"/>
    <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass="1"/><site name="near" pos=".1 0 .05"/>
    <body pos=".3 0 0"><joint name="elbow" axis="0 1 0" limited="true" range="-2 .001"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass="1"/><site name="far" pos=".1 0 .05"/>
      <body name="hand" pos=".3 0 0"><joint name="slide" type="slide" axis="1 0 0"/><geom size=".03" mass=".3"/>
        <site name="tip"/><camera name="lens" mode="trackcom" pos="0 -1 .2"/></body></body></body>
  <body name="lever" pos="3 0 1"><joint name="lever" axis="0 1 0"/><geom type="box" size=".1 .05 .02" mass=".5"/>
    <site name="end" pos="0 0 .03"/></body>
  <body name="hook" pos="0 2 .5" mocap="true"><geom name="hook" type="box" size=".1 .1 .1"/></body>
</worldbody>
<contact><pair geom1="hook" geom2="cube"/><pair geom1="floor" geom2="crate"/></contact>
<equality><joint joint1="shoulder" joint2="slide" polycoef="0 1 0 0 0"/><connect body1="hand" anchor="0 0 0"/>
  <weld body1="lever" body2="hook" active="false"/></equality>
<tendon><fixed name="fixed"><joint joint="shoulder" coef="1"/><joint joint="elbow" coef="-.5"/></fixed>
  <spatial name="limited" limited="true" range="0 .05"><site site="near"/><site site="far"/></spatial>
  <spatial name="spatial"><site site="tip"/><site site="end"/></spatial></tendon>
<actuator><motor joint="shoulder" ctrlrange="-1 1" forcerange="-2 2"/><position joint="elbow" kp="3"/>
  <motor tendon="fixed"/><general name="lag" joint="slide" dyntype="filter" dynprm=".1" gainprm="1"/>
  <motor tendon="spatial"/><motor joint="ball" gear="1 2 3"/><motor site="tip" gear="1 0 0 0 0 1"/></actuator>
<sensor><accelerometer site="tip"/><gyro site="far"/><rangefinder site="ray"/><jointpos joint="shoulder"/>
  <tendonpos tendon="limited"/><force site="far"/><subtreecom body="arm"/><touch site="top"/><e_potential/>
  <actuatorfrc actuator="lag"/><magnetometer site="near"/><framepos objtype="camera" objname="lens"/></sensor>
</mujoco>
"""
SMALL = 1e-9  # absolute and relative; unedited, the step agrees to 2e-12 of velocities up to 1e3
LARGER = {"geom_surfacevel": 0.3, "geom_adhesion": 5.0, "pair_adhesion": 5.0, "body_gravcomp": 0.5}
# memory or structure is compiled: an edit is refused
REFUSED = "jnt_springyield tendon_springyield actuator_delay sensor_delay geom_variant geom_material".split()
FRAMES = ("body_ipos", "body_iquat", "jnt_pos", "jnt_axis")
EDITED = [
    field.name
    for field in MODEL.fields
    if field.kind == "real"
    and is_mujocos(field)
    and (field.name not in DEPENDENT_REALS or field.name in BOTH)
    and field.name not in REFUSED
    and not field.name.startswith("opt_o_")  # used only with the flag override
]


def edited(model: fl.Model, name: str) -> np.ndarray:
    """Returns other values of a field: zeros become nonzero."""
    old, rng = np.array(getattr(model, name)), np.random.default_rng(1)
    if name.endswith("quat") or name == "jnt_axis":
        new = old + 0.05 * rng.normal(size=old.shape)
        new /= np.linalg.norm(new, axis=-1, keepdims=True)
    elif name == "qpos0":
        new = np.where(np.arange(len(old)) > 18, old + 0.01, old)  # after the two free joints and the ball
    elif name.endswith("range"):
        new = np.where(old == 0.0, (-0.01, 0.02), 1.1 * old)
    else:
        new = np.where(old == 0.0, LARGER.get(name, 0.01) * (1.0 + rng.random(old.shape)), 1.1 * old)
    if name == "body_inertia":
        new = 1.1 * old
    if name in FRAMES:  # M of simple bodies is a diagonal
        joints = name.startswith("jnt")
        simple = model.body_simple[model.jnt_bodyid if joints else slice(None)] > 0
        new = np.where(simple[:, None], old, new)
    return new


def start(model) -> dict[str, np.ndarray]:
    """Returns the state and the inputs of a moving start."""
    rng = np.random.default_rng(0)
    qpos = np.array(model.qpos0)
    qpos[18:20] += 0.02
    return {"qpos": qpos, "qvel": 0.2 * rng.normal(size=model.nv), "ctrl": 0.5 * rng.normal(size=model.nu), "act": 0.3}


def of_mujoco(mj) -> np.ndarray:
    """Returns state and sensors after a step of MuJoCo."""
    data = mujoco.MjData(mj)
    for name, value in start(mj).items():
        getattr(data, name)[:] = value
    mujoco.mj_step(mj, data)
    return np.concatenate([data.qvel, data.qpos, data.sensordata, data.act])


def of_data(model) -> np.ndarray:
    """Returns the same of one world."""
    data = fl.Data(model)
    for name, value in start(model).items():
        setattr(data, name, value)
    data.step()
    return np.concatenate([data.qvel, data.qpos, data.sensordata, data.act])


def of_batch(batch) -> np.ndarray:
    """Returns the same of the last world of a batch."""
    batch.reset()
    for name, value in start(batch.get_model(batch.nworld - 1)).items():
        setattr(batch, name, value)
    batch.bind("sensordata")
    batch.step()
    return np.concatenate([batch.qvel[-1], batch.qpos[-1], batch.sensordata[-1], batch.act[-1]])


def in_place(name, new, mj, const) -> np.ndarray:
    model = fl.load(PLAIN)
    data = fl.Data(model)  # loaded before the edit
    data.step()
    getattr(model, name)[...] = new
    if const:
        fl.set_const(model)
    return of_data(model)


def in_place_with_a_batch(name, new, mj, const) -> np.ndarray:
    model = fl.load(PLAIN)
    batch = fl.Batch(model, 2)
    batch.step()
    getattr(model, name)[...] = new
    if const:
        fl.set_const(model)
    return of_batch(batch)


def by_world(name, new, mj, const) -> np.ndarray:
    batch = fl.Batch(fl.load(PLAIN), 2)
    batch.step()
    batch.expand(name)[1] = new
    if const:
        batch.set_const()
    return of_batch(batch)


def before_load(name, new, mj, const) -> np.ndarray:
    model = fl.load(mj)
    if const:
        fl.set_const(model)
    return of_data(model)


METHODS = (in_place, in_place_with_a_batch, by_world, before_load)


@pytest.mark.parametrize("name", every(4, EDITED))
def test_every_edit_acts_as_in_mujoco(name):
    mj = mujoco.MjModel.from_xml_string(PLAIN)
    new = edited(fl.load(mj), name)
    if not new.size:
        pytest.skip("no such element")
    write_field(mj, name, new)
    compiled = copy.copy(mj)
    mujoco.mj_setConst(compiled, mujoco.MjData(compiled))
    expected = of_mujoco(compiled)
    for method in METHODS:
        given = method(name, new, mj, const=True)
        np.testing.assert_allclose(given, expected, rtol=SMALL, atol=SMALL, err_msg=method.__name__)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", DECIDING)
def test_a_feature_is_in_use_as_soon_as_a_value_is_not_zero(name, method):
    """Kernels skip features by ints that only `set_const` updated."""
    mj = mujoco.MjModel.from_xml_string(PLAIN)
    new = edited(fl.load(mj), name)
    if name == "actuator_armature":  # `set_const` updates the constant M of simple bodies
        new[-2:] = 0.0
    write_field(mj, name, new)
    compiled = copy.copy(mj)
    mujoco.mj_setConst(compiled, mujoco.MjData(compiled))
    for const in (False, True):
        if name == "actuator_armature" and not const:
            continue
        given = method(name, new, mj, const)
        np.testing.assert_allclose(given, of_mujoco(compiled), rtol=SMALL, atol=SMALL)


def test_a_feature_that_is_zero_again_is_not_in_use():
    model = fl.load(PLAIN)
    data = fl.Data(model)
    data.step()
    before = dict(model.size_values())
    for value in (0.5, 0.0):
        model.body_gravcomp[1], model.geom_surfacevel[0, 0], model.geom_adhesion[1] = value, value, value
        data.step()
        assert bool(model.ngravcomp) == bool(model.flg_surfacevel) == bool(model.flg_adhesion) == bool(value)
    assert model.size_values() == before


def test_an_edit_before_load_is_in_the_model_of_mujoco():
    model = fl.load(PLAIN)
    model.geom_surfacevel[0, 0] = 1.0
    assert model.to_mujoco().flg_surfacevel and not model.flg_surfacevel
    fl.step(model, fl.Data(model))
    assert model.to_mujoco().flg_surfacevel and model.flg_surfacevel


# ---- rays and sleep --------------------------------------------------------------------------------------------------
HIDDEN = """
<mujoco><worldbody><geom name="slab" type="box" size="1 1 .1" rgba="1 1 1 0"/>
<body pos="0 0 1"><joint type="slide"/><geom size=".1"/><site name="eye" euler="180 0 0"/></body></worldbody>
<sensor><rangefinder site="eye"/></sensor></mujoco>
"""


def test_rays_hit_a_geom_that_becomes_visible():
    model = fl.load(HIDDEN)
    data, batch = fl.Data(model), fl.Batch(model, 2)
    batch.bind("sensordata")
    for alpha, expected in ((0.0, -1.0), (0.5, 0.9), (0.0, -1.0)):
        model.geom_rgba[0, 3] = alpha
        assert fl.query.ray(model, data, [0, 0, 1], [0, 0, -1], bodyexclude=1).distance == pytest.approx(expected)
        fl.forward(model, data)
        batch.forward()
        np.testing.assert_allclose([data.sensordata[0], *batch.sensordata[:, 0]], expected)


COUPLED = """
<mujoco><option><flag sleep="enable"/></option><worldbody><geom type="plane" size="5 5 .1"/>
<body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/><site name="a"/></body>
<body pos="1 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/><site name="b"/></body></worldbody>
<tendon><spatial springlength="1"><site site="a"/><site site="b"/></spatial></tendon></mujoco>
"""


@pytest.mark.parametrize("name", ["tendon_stiffness", "tendon_stiffnesspoly", "tendon_damping", "tendon_dampingpoly"])
def test_trees_with_a_spring_or_damper_between_them_never_sleep(name):
    mj = mujoco.MjModel.from_xml_string(COUPLED)
    getattr(mj, name)[...] = 0.5
    mujoco.mj_setConst(mj, mujoco.MjData(mj))
    data = mujoco.MjData(mj)
    mujoco.mj_step(mj, data, 100)
    batch = fl.Batch(fl.load(COUPLED), 3)
    batch.expand(name)[1] = 0.5
    batch.step(100)
    asleep = batch.tree_asleep >= 0
    assert (data.tree_asleep < 0).all()
    assert asleep[[0, 2]].all() and not asleep[1].any()


# ---- what cannot follow ----------------------------------------------------------------------------------------------
SIMPLE = """
<mujoco><worldbody><site name="w" pos="0 0 2"/>
<body name="box" {simple}><freejoint/><geom type="box" size=".1 .2 .3"/><site name="s" pos=".1 .1 .1"/></body>
<body name="ball" pos="1 0 0" {simple}><joint name="ball" type="ball"/><geom type="box" size=".1 .2 .3"/></body>
<body name="cart" pos="2 0 0" {simple}><joint name="x" type="slide" axis="1 0 0"/><joint name="z" axis="0 0 1"/>
  <geom type="box" size=".1 .2 .3"/></body>
<body name="door" pos="3 0 0"><joint name="door" axis="0 0 1"/><geom type="box" size=".1 .2 .3"/></body></worldbody>
<tendon><spatial name="rope"><site site="w"/><site site="s"/></spatial></tendon>
<actuator><general name="pull" tendon="rope"/></actuator></mujoco>
"""
TURNED = (0.8, 0.6, 0.0, 0.0)
NEEDS_ENTRIES = [
    ("body_ipos", 1, (0.05, 0, 0), "body 'box'"),
    ("body_iquat", 2, TURNED, "body 'ball'"),
    ("jnt_pos", 1, (0.05, 0, 0), "joint 'ball'"),
    ("jnt_pos", 3, (0.05, 0, 0), "joint 'z'"),
    ("jnt_axis", 3, (0.6, 0, 0.8), "joint 'z'"),
    ("tendon_armature", 0, 0.1, "tendon 'rope'"),
    ("actuator_armature", 0, 0.1, "actuator 'pull'"),
]


def inertia_of(model) -> np.ndarray:
    data = fl.Data(model)
    data.qpos = np.random.default_rng(2).normal(size=model.nq)
    fl.forward(model, data)
    return fl.query.full_m(model, data)


@pytest.mark.parametrize(("name", "at", "value", "element"), NEEDS_ENTRIES)
def test_an_edit_that_a_diagonal_inertia_excludes_is_refused(name, at, value, element):
    mj = mujoco.MjModel.from_xml_string(SIMPLE.format(simple=""))
    model, batch = fl.load(mj), fl.Batch(fl.load(mj), 2)
    fl.Data(model).step()
    getattr(model, name)[at] = value
    batch.expand(name)[1, at] = value
    getattr(mj, name)[at] = value
    for call in (lambda: fl.Data(model), lambda: fl.set_const(model), batch.step, batch.set_const, lambda: fl.load(mj)):
        with pytest.raises(ModelError, match=rf"{name} of {element}.*simple"):
            call()
    model = fl.load(SIMPLE.format(simple=""))
    for how in ("analytic", "finite_difference"):
        with pytest.raises(ModelError, match=rf"{name} of {element}.*simple"):
            fl.linearize(model, fl.Data(model), parameters=[f"{name}[{at}]"], method=how)


@pytest.mark.parametrize(("name", "at", "value", "element"), NEEDS_ENTRIES)
def test_the_edit_is_allowed_if_the_compiler_kept_all_entries(name, at, value, element):
    model = fl.load(SIMPLE.format(simple='simple="false"'))
    getattr(model, name)[at] = value
    fl.set_const(model)
    mj = model.to_mujoco()
    data, M = mujoco.MjData(mj), np.zeros((mj.nv, mj.nv))
    data.qpos = np.random.default_rng(2).normal(size=mj.nq)
    mujoco.mj_forward(mj, data)
    mujoco.mj_fullM(mj, data, M)
    np.testing.assert_allclose(inertia_of(model), M, rtol=SMALL, atol=SMALL)


def test_edits_that_keep_a_diagonal_inertia_act():
    """A simple body with one DoF; an axis along another axis of the body; an offset within the compiler's tolerance."""
    model = fl.load(SIMPLE.format(simple=""))
    model.jnt_pos[4], model.jnt_axis[4], model.jnt_axis[2] = (0.1, 0.2, 0.0), (0.6, 0.0, 0.8), (0, -1, 0)
    model.body_ipos[1, 0] = 1e-7
    fl.set_const(model)
    other = fl.load(model.to_mujoco())
    np.testing.assert_allclose(inertia_of(model), inertia_of(other), rtol=SMALL, atol=SMALL)


# ---- impossible masses and inertias ----------------------------------------------------------------------------------
WELDED = """
<mujoco><worldbody><body name="base"><geom size=".1"/></body>
<body name="empty"><joint/><body name="tool"><geom type="box" size=".1 .2 .3" mass="2"/></body></body>
<body name="plate" pos="1 0 0"><freejoint/><inertial pos="0 0 0" mass="1" diaginertia="1 2 3"/></body>
</worldbody></mujoco>
"""
IMPOSSIBLE = [
    ("body_inertia", "plate", 0.0, ">= 1e-15 of a moving body"),
    ("body_inertia", "plate", (1.0, 1.0, 0.0), ">= 1e-15 of a moving body"),
    ("body_mass", "plate", 0.0, ">= 1e-15 of a moving body"),
    ("body_inertia", "plate", np.nan, "got nan"),
    ("body_inertia", "plate", -1.0, "got -1"),
    ("body_mass", "tool", 0.0, ">= 1e-15 of a moving body"),
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("name", "body", "value", "words"), IMPOSSIBLE)
def test_an_impossible_mass_or_inertia_is_refused(name, body, value, words, dtype):
    mj = mujoco.MjModel.from_xml_string(WELDED)
    model, batch, at = fl.load(mj), fl.Batch(fl.load(mj), 2, dtype=dtype), mj.body(body).id
    getattr(model, name)[at] = value
    batch.expand(name)[1, at] = value
    getattr(mj, name)[at] = value
    for call in (lambda: fl.Data(model), lambda: fl.set_const(model), batch.step, batch.set_const, lambda: fl.load(mj)):
        with pytest.raises(ModelError, match=words):
            call()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.filterwarnings("ignore:body_inertia of body 'plate'")
def test_an_inertia_of_no_mass_distribution_is_reported(dtype):
    """It has a solution: recorded spins of ODE use (10, 4, 2)."""
    model, batch = fl.load(WELDED), fl.Batch(fl.load(WELDED), 3, dtype=dtype)
    model.body_inertia[4] = batch.expand("body_inertia")[1, 4] = (1.0, 1.0, 5.0)
    for call in (lambda: fl.Data(model), batch.step):
        with pytest.warns(UserWarning, match="body_inertia of body 'plate': moments A"):
            call()
    for world, count in ((0, 0), (1, 1)):
        found = fl.diagnose(batch.get_model(world), ["inertia-impossible"])
        assert [finding.element for finding in found] == ["body 'plate'"] * count


def test_masses_of_static_and_welded_bodies_may_be_zero():
    model = fl.load(WELDED)
    assert model.body_mass[2] == 0.0  # "empty", which carries "tool"
    model.body_mass[1], model.body_inertia[1] = 0.0, 0.0
    fl.step(model, fl.Data(model))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_flat_body_may_be_scaled(dtype):
    """A + B = C up to rounding."""
    batch = fl.Batch(fl.load(WELDED), 64, dtype=dtype)
    batch.expand("body_inertia")[:] *= np.random.default_rng(4).uniform(0.1, 9.0, (64, 1, 1))
    batch.step()
    model = batch.get_model(5)
    data = fl.Data(model)
    assert set(fl.linearize(model, data, parameters=["body_inertia"]).P) == {"body_inertia"}
