"""Forces with and without analytic derivatives: combined, they match the rates of the residual and of steps."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.sensitivity.derivative.formulas import leaves_rest, serves
from scenes.states import kicked
from sensitivity.test_derivative_formulas import compare, rates
from sensitivity.test_derivatives import CONTACT, close
from sensitivity.test_transition import exact, relative

SMOOTH = 1e-7  # error of two differences over 2e-7
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
def test_both_together_are_the_residuals_rates(integrator, rng):
    model = exact(fl.load(REST))
    model.opt.integrator = integrator
    assert serves(model) and leaves_rest(model)
    for _ in range(3):
        compare(model, pushed(model, rng), SMOOTH)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_both_together_are_the_rates_of_steps(integrator, rng):
    model = exact(fl.load(REST))
    model.opt.integrator = integrator
    data = pushed(model, rng)
    fl.step(model, data, 100)  # equalities find each other
    close(fl.linearize(model, data), data, model, STEPS)


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
    model.tendon_armature[0] = 0.1
    assert not rates(model, data, True)[1]
    model.tendon_armature[0] = 0.0
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


# ---- the choice of forces without formulas is made per world -----------------------------------------------------
BALL = """<mujoco><option timestep="0.004"/><default><geom contype="0" conaffinity="0"/></default><worldbody>
  <body><joint name="ball" type="ball" damping="0.1"/><geom type="capsule" size=".02" fromto="0 0 0 .3 0 0"/>
    <body pos=".3 0 0"><joint axis="0 1 0"/><geom type="box" size=".05 .03 .02" pos=".1 .05 0"/></body></body>
  </worldbody></mujoco>"""


@pytest.mark.parametrize("name", ["jnt_stiffness", "opt.density"])
def test_a_world_with_expanded_fields_is_independent_of_its_batch(name, rng):
    model = exact(fl.load(BALL))
    batch = fl.Batch(model, 11)
    batch.qvel[:] = rng.normal(size=(11, model.nv))
    rows = batch.expand(name).reshape(11, -1)
    rows[::3, 0] = 2.0
    batch.forward()
    together, inverse = fl.linearize(model, batch), fl.inverse_derivatives(model, batch)
    for w in range(11):
        own, data = batch.get_model(w), batch.get_data(w)
        assert fl.linearize(own, data).A.tobytes() == together.A[w].tobytes(), w
        alone = fl.inverse_derivatives(own, data)
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
