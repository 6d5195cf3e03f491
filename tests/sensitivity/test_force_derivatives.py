"""Derivatives of all kinds of forces against differences of the residual, of steps, and of MuJoCo."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.tools.sensitivity.systems.served import differences_lag, serves
from scenes.states import kicked
from sensitivity.test_derivative_formulas import compare, rates
from sensitivity.test_derivative_sweep import extrapolated
from sensitivity.test_derivatives import CONTACT, close
from sensitivity.test_transition import exact, relative

SMOOTH = 1e-7  # error of two differences over 2e-7
INSIDE = 1e-7  # the point that a tendon touches from inside is iterated to 1e-6
WIDE, EXACT = 1e-4, 1e-8  # range of extrapolated differences of steps without rows, and their error
MUJOCO = 1e-5  # error of differences over 1e-6 with soft rows
STEPS = 3e-7  # rounding of steps with accelerations of some hundreds
# wrapping tendons, springs and limits of ball joints, muscles, sites, cranks, all equalities, a fluid, a push
REST = """<mujoco><option timestep="0.004" density="3" viscosity="0.05" wind="1 0 0.3"/><compiler autolimits="true"/>
  <default><geom contype="0" conaffinity="0"/></default><worldbody>
  <site name="hook" pos="0.5 0.3 1.2"/><geom name="wrap" type="cylinder" size="0.05 0.2" pos="0.4 0.1 1.1"/>
  <body name="a" pos="0 0 1"><freejoint/><geom size="0.1 0.05 0.2" type="box"/>
    <body name="b" pos="0.35 0 0" gravcomp="0.5"><joint name="ball" type="ball" damping="0.05" stiffness="0.7"
      range="0 0.1"/><geom type="capsule" fromto="0 0 0 0.2 0 0.1" size="0.03"/><site name="tip" pos="0.2 0 0.1"/>
      <body pos="0.3 0 0.1"><joint name="hinge" axis="0 1 1" damping="0.1" armature="0.01" actuatorgravcomp="true"/>
        <joint name="second" axis="1 0 0" pos="0 0.1 0" frictionloss="0.02" range="-0.1 0.1"/>
        <geom type="capsule" fromto="0 0 0 0 0.2 0" size="0.03"/><site name="end" pos="0 0.2 0"/></body></body>
    <body name="c" pos="-0.3 0 0"><joint name="slide" type="slide" axis="1 0 1" damping="0.5" range="-0.05 0.4"/>
      <geom size="0.05"/><site name="crank" euler="0 20 0"/></body></body>
  <body name="lone" pos="0.45 0.1 1"><freejoint/><geom size="0.1 0.2 0.05" type="ellipsoid"/></body>
  <body name="target" mocap="true" pos="-0.3 0 1"/></worldbody>
  <tendon><spatial name="rope" stiffness="3" damping="0.2 0.1 0.1" range="0.1 0.4"><site site="hook"/>
      <geom geom="wrap"/><site site="tip"/><site site="end"/></spatial>
    <fixed name="sum" frictionloss="0.05"><joint joint="hinge" coef="0.7"/><joint joint="slide" coef="-1.2"/></fixed>
    <fixed name="other"><joint joint="second" coef="1"/></fixed></tendon>
  <equality><connect body1="b" body2="lone" anchor="0.1 0 0" solref="0.2 1"/>
    <weld body1="c" body2="target" solref="0.5 1"/>
    <joint joint1="hinge" joint2="slide" polycoef="0.1 0.5 0.2" solref="0.1 1"/>
    <tendon tendon1="sum" tendon2="other" solref="0.1 1"/></equality>
  <actuator><motor tendon="rope" gear="0.5"/><muscle tendon="rope" force="2" range="0.4 1.4"/>
    <motor site="tip" refsite="hook" gear="1 0 0 0 0.3 0"/><position joint="ball" kp="2" gear="0.2 1 0.4"/>
    <general joint="hinge" gainprm="1 0.4 -0.5" gaintype="affine" biastype="affine" biasprm="0 -1 -0.2"/>
    <motor cranksite="crank" slidersite="tip" cranklength="0.9"/>
    <intvelocity joint="slide" kp="3" actrange="-1 1"/></actuator></mujoco>"""
INTEGRATORS = ("euler", "implicitfast", "implicit")


def pushed(model, rng):
    data = fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng, 0.1)
    data.ctrl, data.act = rng.uniform(-0.4, 0.4, model.nu), 0.3
    data.xfrc_applied[2] = rng.normal(size=6)
    return data


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_they_are_the_rates_of_the_residual(integrator, rng):
    model = exact(fl.load(REST))
    model.opt.integrator = integrator
    assert serves(model) and differences_lag(model) == (integrator != "euler")
    for _ in range(3):
        compare(model, pushed(model, rng), SMOOTH)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_they_are_the_rates_of_steps(integrator, rng):
    model = exact(fl.load(REST))
    model.opt.integrator = integrator
    data = pushed(model, rng)
    fl.step(model, data, 100)  # equalities find each other
    close(fl.linearize(model, data), data, model, STEPS)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_they_are_those_of_mujoco(integrator, rng):
    model, theirs = exact(fl.load(REST)), mujoco.MjModel.from_xml_string(REST)
    model.opt.integrator = integrator
    theirs.opt.integrator = int(model.opt.integrator)
    theirs.opt.tolerance, theirs.opt.iterations = 0.0, 100
    data, state = pushed(model, rng), mujoco.MjData(theirs)
    for name in ("qpos", "qvel", "act", "ctrl", "xfrc_applied"):
        getattr(state, name)[:] = getattr(data, name)
    n = 2 * model.nv + model.na
    A, B = np.zeros((n, n)), np.zeros((n, model.nu))
    mujoco.mjd_transitionFD(theirs, state, 1e-6, True, A, B, None, None)
    found = fl.linearize(model, data)
    assert relative(found.A, A) < MUJOCO and relative(found.B, B) < MUJOCO


# a tendon around a geom on a moving body, between a sibling and the end of a chain
AROUND = """<mujoco><option timestep="0.004"/><default><geom contype="0" conaffinity="0"/></default><worldbody>
  <body pos="0 0 1"><freejoint/><geom size="0.1 0.05 0.2" type="box"/>{geom}
    <site name="near" pos="0.2 0.005 0.02"/><site name="far" pos="0.2 0 0.3"/>
    <body pos="0.35 0 0"><joint type="ball" damping="0.05"/><geom type="capsule" fromto="0 0 0 .2 0 .1" size="0.03"/>
      <body pos="0.3 0 0.1"><joint axis="0 1 1"/><geom type="capsule" fromto="0 0 0 0 .2 0" size="0.03"/>
        <site name="end" pos="0 0.2 0.03"/></body></body>
    <body pos="-0.3 0 0"><joint type="slide" axis="1 0 1"/><geom size="0.05"/><site name="start" pos="0 0.1 0"/></body>
  </body></worldbody><tendon><spatial stiffness="30" damping="2" springlength="0.1"><site site="start"/>
    <geom geom="g"{side}/><site site="end"/></spatial></tendon></mujoco>"""
GEOMS = {
    "sphere": '<geom name="g" size="0.05" pos="{pos}"/>',
    "cylinder": '<geom name="g" type="cylinder" size="0.04 0.1" pos="{pos}" euler="70 10 0"/>',
}


@pytest.mark.parametrize("side", ["", "near", "far"])
@pytest.mark.parametrize("geom", GEOMS)
def test_tendons_around_geoms(geom, side, rng):
    """The path is short, passes the geom's inside, or passes over a point beyond it."""
    geom = GEOMS[geom].format(pos="0.2 0 0.02" if side == "near" else "0.2 0.14 0.05")
    side, inside = f' sidesite="{side}"' if side else "", side == "near"
    model, bent = exact(fl.load(AROUND.format(geom=geom, side=side))), 0
    for _ in range(6):
        data = fl.Data(model)
        data.qpos, data.qvel = kicked(model, rng, 0.1)
        fl.forward(model, data)
        path = np.linalg.norm(data.site_xpos[model.wrap_objid[0]] - data.site_xpos[model.wrap_objid[2]])
        found, theirs = fl.linearize(model, data).A, extrapolated(model, data, WIDE)[0]
        if relative(theirs, extrapolated(model, data, 0.1 * WIDE)[0]) < INSIDE:  # no path begins to bend in between
            assert relative(found, theirs) < (INSIDE if inside else EXACT)
            bent += data.ten_length[0] > path + 1e-4
    assert bent


def test_single_free_bodies_under_implicitfast(rng):
    """Their separate system has gyroscopic terms, of the force about the joint, too: the centre of mass is off it."""
    model = exact(
        fl.load("""<mujoco><option timestep="0.01" integrator="implicitfast"/><worldbody><body><freejoint/>
        <geom type="box" size="0.1 0.2 0.05" pos="0.1 0.05 0.02" contype="0"/><body pos="0 0 0.3"><geom size="0.1"
        contype="0"/></body></body></worldbody></mujoco>""")
    )
    assert not differences_lag(model)
    data = fl.Data(model)
    for _ in range(3):
        data.qpos, data.qvel = kicked(model, rng, 0.1)
        data.qvel *= 30.0
        found, theirs = fl.linearize(model, data).A, extrapolated(model, data, WIDE)[0]
        assert relative(found, theirs) < EXACT


def test_an_equality_with_a_long_lever_keeps_its_digits():
    """A switch moves 14 times as far as its lamp: its impedance changes within 1e-3, a dof's within 7e-5."""
    model = exact(
        fl.load("""<mujoco><option timestep="0.002" gravity="0 0 0"/><worldbody>
        <body><joint name="switch" axis="0 1 0" damping="2"/><geom size="0.05" mass="0.1" pos="0.1 0 0"/></body>
        <body pos="0 1 0"><joint name="lamp" type="slide" damping="2"/><geom size="0.05" mass="0.1"/></body></worldbody>
        <equality><joint joint1="switch" joint2="lamp" polycoef="0 14 0 0 0"/></equality></mujoco>""")
    )
    data = fl.Data(model)
    data.qpos, data.qvel = [3.4e-4, -1e-6], [0.01, -0.02]
    close(fl.linearize(model, data), data, model, 2e-7)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_tendon_rows_together_with_contacts(cone):
    """A chain of tendons lies on the ground."""
    ground = '<worldbody><geom type="plane" size="5 5 1" pos="0 0 0.8"/>'
    text = REST.replace('contype="0" conaffinity="0"', 'condim="4"').replace("<worldbody>", ground)
    model = exact(fl.load(text))
    model.opt.cone = cone
    data, seen = fl.Data(model), 0
    for _ in range(30):
        fl.step(model, data, 10)
        if data.ncon and fl.linearize(model, data).switching > 1e-2:
            compare(model, data, CONTACT)
            seen += 1
    assert seen


def test_tendon_armature_uses_residual_differences(rng):
    model = fl.load(REST)
    data = pushed(model, rng)
    assert rates(model, data, True)[1]
    model.tendon_armature[1] = 0.1  # of the fixed tendon
    assert not rates(model, data, True)[1]
    model.tendon_armature[1] = 0.0
    assert rates(model, data, True)[1]


def test_a_batch_is_bitwise_equal_to_its_worlds(rng):
    model = fl.load(REST)
    batch = fl.Batch(model, 11, nthread=1)
    batch.qvel[:] = rng.normal(size=batch.qvel.shape) * 0.1
    batch.ctrl[:] = rng.uniform(-0.3, 0.3, batch.ctrl.shape)
    batch.expand("tendon_stiffness")[:] *= rng.uniform(0.5, 1.5, (11, 1))
    batch.step(20)
    found, two = fl.linearize(model, batch, nthread=1), fl.linearize(model, batch, nthread=2)
    forces = fl.acceleration_derivatives(model, batch)
    for w in (0, 6, 10):
        data = batch.get_data(w)
        alone = fl.linearize(data.model, data)
        for name in ("A", "B", "switching"):
            assert (
                getattr(alone, name).tobytes() == getattr(found, name)[w].tobytes() == getattr(two, name)[w].tobytes()
            )
        for one, every in zip(fl.acceleration_derivatives(data.model, data), forces, strict=True):
            assert one.tobytes() == every[w].tobytes()


def test_applied_forces_have_the_inverse_inertia_as_derivative(rng):
    model = exact(fl.load(REST))
    model.opt.disableflags = "constraint"
    data = pushed(model, rng)
    fl.forward(model, data)
    found = fl.acceleration_derivatives(model, data)
    assert relative(found.DaDtau @ fl.query.full_m(model, data), np.eye(model.nv)) < 1e-10


@pytest.mark.parametrize("integrator", ["euler", "implicitfast"])
def test_a_model_without_joints_has_no_derivatives(integrator):
    model = fl.load('<mujoco><worldbody><site name="s"/></worldbody><actuator><motor site="s"/></actuator></mujoco>')
    model.opt.integrator = integrator
    assert serves(model) and differences_lag(model) == (integrator != "euler")  # a motor on a site
    found = fl.linearize(model, fl.Data(model))
    assert found.A.shape == (0, 0) and found.B.shape == (0, 1)


# ---- worlds with separate parameters -----------------------------------------------------------------------------
BALL = """<mujoco><option timestep="0.004"/><default><geom contype="0" conaffinity="0"/></default><worldbody>
  <body><joint name="ball" type="ball" damping="0.1"/><geom type="capsule" size=".02" fromto="0 0 0 .3 0 0"/>
    <body pos=".3 0 0"><joint axis="0 1 0"/><geom type="box" size=".05 .03 .02" pos=".1 .05 0"/></body></body>
  </worldbody></mujoco>"""


@pytest.mark.parametrize("integrator", ["euler", "implicitfast"])
@pytest.mark.parametrize("name", ["jnt_stiffness", "opt.density"])
def test_a_world_with_expanded_fields_is_independent_of_its_batch(name, integrator, rng):
    model = exact(fl.load(BALL))
    model.opt.integrator = integrator
    batch = fl.Batch(model, 11)
    batch.qvel[:] = rng.normal(size=(11, model.nv))
    rows = batch.expand(name).reshape(11, -1)
    rows[::3, 0] = 2.0
    batch.forward()
    together, inverse = fl.linearize(model, batch), fl.inverse_derivatives(model, batch)
    for w in range(11):
        data = batch.get_data(w)
        assert fl.linearize(data.model, data).A.tobytes() == together.A[w].tobytes(), w
        alone = fl.inverse_derivatives(data.model, data)
        for one, all_ in zip(alone, inverse, strict=True):
            assert one is None or one.tobytes() == all_[w].tobytes(), w


def test_a_temporary_spring_edit_leaves_no_trace(rng):
    model, other = exact(fl.load(BALL)), exact(fl.load(BALL))
    other.jnt_stiffness[0] = 2.0
    batch, fresh = fl.Batch(model, 2), fl.Batch(other, 2)
    batch.qvel[:] = fresh.qvel[:] = rng.normal(size=model.nv)
    before = fl.linearize(model, batch).A
    model.jnt_stiffness[0] = 2.0
    assert fl.linearize(model, batch).A.tobytes() == fl.linearize(other, fresh).A.tobytes()
    model.jnt_stiffness[0] = 0.0
    assert fl.linearize(model, batch).A.tobytes() == before.tobytes()
