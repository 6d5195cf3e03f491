"""Derivatives of fixed tendons and of equalities of joints and tendons, against differences of residuals and steps."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.tools.sensitivity.systems.served import differences_lag, serves
from scenes.states import kicked
from sensitivity.test_derivative_formulas import compare, rates
from sensitivity.test_derivative_sweep import extrapolated
from sensitivity.test_derivatives import close
from sensitivity.test_transition import exact, relative

RESIDUALS = 3e-8  # error of differences over 2e-7
EXACT = 1e-9, 1e-7  # error of extrapolated differences over WIDE, of A, and of B with its smaller entries
WIDE = 1e-4
STEPS = 3e-7  # rounding of steps with accelerations of some hundreds
MUJOCO = 1e-5  # error of differences over 1e-6 with soft rows
INTEGRATORS = ("euler", "implicitfast", "rk4")
# springs with a dead band and polynomials, dampers, both limits, dry friction, equalities of joints and tendons, most
# with polynomials, actuators with rates, activations and clamps on tendons
TENDONS = """<mujoco><option timestep="0.004"/><compiler autolimits="true"/>
  <default><geom contype="0" conaffinity="0"/><joint damping="0.05"/></default><worldbody>
  <body name="a" pos="0 0 1"><freejoint/><geom size="0.1 0.05 0.2" type="box"/>
    <body pos="0.3 0 0"><joint name="h1" axis="0 1 1"/><geom type="capsule" fromto="0 0 0 0.2 0 0.1" size="0.03"/>
      <body pos="0.2 0 0.1"><joint name="h2" axis="1 0 0"/><joint name="s2" type="slide" axis="0 0 1"/>
        <geom type="capsule" fromto="0 0 0 0 0.2 0" size="0.03"/></body></body>
    <body pos="-0.3 0 0"><joint name="h3" axis="0 1 0"/><geom size="0.05" pos="0 0.1 0"/>
      <body pos="-0.1 0 0"><joint name="h4" axis="0 0 1"/><geom size="0.05" pos="0.1 0 0"/></body></body></body>
  </worldbody><tendon>
    <fixed name="spring" stiffness="3 0.5 0.7" damping="0.2 {poly}" springlength="0.01 0.02">
      <joint joint="h1" coef="0.7"/><joint joint="h3" coef="-1.2"/><joint joint="s2" coef="0.4"/></fixed>
    <fixed name="low" range="0.5 4" limited="true"><joint joint="h1" coef="1"/><joint joint="h4" coef="0.5"/></fixed>
    <fixed name="high" range="-4 -0.3" limited="true"><joint joint="h2" coef="1"/><joint joint="h3" coef="0.5"/></fixed>
    <fixed name="dry" frictionloss="0.3"><joint joint="h2" coef="1"/><joint joint="s2" coef="-0.3"/></fixed>
    <fixed name="led"><joint joint="h4" coef="1"/><joint joint="h2" coef="0.2"/></fixed>
    <fixed name="lead"><joint joint="h3" coef="1.1"/><joint joint="h1" coef="-0.6"/></fixed></tendon>
  <equality><joint joint1="h1" joint2="s2" polycoef="0.1 0.5 0.8 0.6 0.4" solref="0.1 1"/>
    <joint joint1="h4" polycoef="0.05 0 0 0 0" solref="0.3 1"/>
    <tendon tendon1="led" tendon2="lead" polycoef="0.02 0.5 0.7 0.3 0.2" solref="0.1 1"/>
    <tendon tendon1="high" solref="0.2 1"/></equality>
  <actuator><motor tendon="spring" gear="0.5"/><position tendon="led" kp="4" kv="0.3" gear="1.5"/>
    <general tendon="lead" dyntype="filter" dynprm="0.05" gainprm="2" biastype="affine" biasprm="0 -2 -0.1"/>
    <position tendon="low" kp="50" forcerange="-0.1 0.1"/><motor joint="h4"/>
    <intvelocity joint="h1" kp="3" actrange="-1 1"/></actuator></mujoco>"""


# straight segments between trees, along a chain of a ball, to the world and over pulleys; bodies that are welded
SPATIAL = """<mujoco><option timestep="0.004"/><compiler autolimits="true"/>
  <default><geom contype="0" conaffinity="0"/></default><worldbody><site name="w" pos="0.3 0.2 1.5"/>
  <body name="a" pos="0 0 1"><freejoint/><geom size="0.1 0.05 0.2" type="box"/><site name="s0" pos="0.1 0.05 0"/>
    <body pos="0.35 0 0"><joint type="ball" damping="0.05"/><site name="s1" pos="0.1 0.05 0"/>
      <geom type="capsule" fromto="0 0 0 0.2 0 0.1" size="0.03"/>
      <body pos="0.3 0 0.1"><joint axis="0 1 1" damping="0.1"/><joint axis="1 0 0" pos="0 0.1 0" damping="0.1"/>
        <geom type="capsule" fromto="0 0 0 0 0.2 0" size="0.03"/><site name="s2" pos="0 0.2 0.03"/>
        <body pos="0 0.2 0.1"><geom size="0.04"/><site name="s3"/></body></body></body>
    <body pos="-0.3 0 0"><joint type="slide" axis="1 0 1" damping="0.5"/><geom size="0.05"/>
      <site name="s4" pos="0 0.1 0"/></body></body>
  <body name="b" pos="0.6 0.1 1.2"><freejoint/><geom size="0.1 0.2 0.05" type="ellipsoid"/>
    <site name="s5" pos="0.02 0.1 0"/></body></worldbody>
  <tendon><spatial stiffness="8 1 2" damping="0.4 0.1 0.1" springlength="0.1 0.3" frictionloss="0.2">
      <site site="s4"/><site site="s0"/><site site="s2"/><site site="s3"/><site site="s5"/></spatial>
    <spatial limited="true" range="0 0.3"><site site="s1"/><site site="s5"/></spatial>
    <spatial limited="true" range="3 4"><site site="w"/><site site="s2"/></spatial>
    <spatial name="pulled" stiffness="2"><site site="w"/><site site="s1"/><pulley divisor="2"/><site site="s2"/>
      <site site="s4"/><pulley divisor="4"/><site site="s0"/><site site="w"/><site site="s5"/></spatial></tendon>
  <actuator><motor tendon="pulled" gear="0.5"/><position tendon="pulled" kp="3" kv="0.5"/></actuator></mujoco>"""


def scene(integrator: str, activations: bool = True) -> fl.Model:
    text = TENDONS.format(poly="0 0" if integrator == "implicitfast" else "0.1 0.1")
    if not activations:
        text = text.replace('dyntype="filter" dynprm="0.05"', "")
        text = text.replace('<intvelocity joint="h1" kp="3" actrange="-1 1"/>', "")
    model = exact(fl.load(text))
    model.opt.integrator = integrator
    return model


def moving(model, rng) -> fl.Data:
    data = fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng, 0.2)
    data.ctrl, data.act = rng.uniform(-0.4, 0.4, model.nu), 0.3
    return data


@pytest.mark.parametrize("integrator", INTEGRATORS[:2])
def test_they_are_the_rates_of_the_residual(integrator, rng):
    model = scene(integrator)
    assert serves(model) and not differences_lag(model)
    for _ in range(5):
        compare(model, moving(model, rng), RESIDUALS)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_they_are_the_rates_of_steps(integrator, rng):
    model = scene(integrator, activations=integrator != "rk4")
    for _ in range(5):
        data = moving(model, rng)
        close(fl.linearize(model, data), data, model, STEPS)


def test_spatial_tendons(rng):
    model = exact(fl.load(SPATIAL))
    assert serves(model) and not differences_lag(model)
    for _ in range(5):
        data = moving(model, rng)
        found, theirs = fl.linearize(model, data)[:2], extrapolated(model, data, WIDE)
        for mine, other, bound in zip(found, theirs, EXACT, strict=True):
            assert relative(mine, other) < bound
        data.qacc = rng.normal(size=model.nv)
        found = fl.inverse_derivatives(model, data)
        theirs = fl.inverse_derivatives(model, data, method="finite_difference")
        for mine, other in zip(found[:3], theirs[:3], strict=True):
            assert relative(mine, other) < STEPS


@pytest.mark.parametrize("change", ["wraps", "implicitfast", "linked"])
def test_other_spatial_tendons(change, rng):
    text = SPATIAL
    if change == "wraps":
        text = text.replace("<worldbody>", '<worldbody><geom name="g" size="0.1" pos="0.3 0 1.2"/>')
        text = text.replace('<site site="w"/><site site="s2"/>', '<site site="w"/><geom geom="g"/><site site="s2"/>')
    elif change == "implicitfast":
        text = text.replace("<option", '<option integrator="implicitfast"')
    else:
        text = text.replace("<actuator>", '<equality><tendon tendon1="pulled" solref="0.1 1"/></equality><actuator>')
    model = exact(fl.load(text))
    assert serves(model) and differences_lag(model) == (change == "implicitfast")
    data = moving(model, rng)
    assert relative(fl.linearize(model, data).A, extrapolated(model, data, WIDE)[0]) < STEPS


def test_they_are_those_of_mujoco(rng):
    model = scene("euler")
    data, theirs = moving(model, rng), mujoco.MjModel.from_xml_string(TENDONS.format(poly="0.1 0.1"))
    theirs.opt.tolerance, theirs.opt.iterations = 0.0, 100
    state = mujoco.MjData(theirs)
    for name in ("qpos", "qvel", "act", "ctrl"):
        getattr(state, name)[:] = getattr(data, name)
    n = 2 * model.nv + model.na
    A, B = np.zeros((n, n)), np.zeros((n, model.nu))
    mujoco.mjd_transitionFD(theirs, state, 1e-6, True, A, B, None, None)
    found = fl.linearize(model, data)
    assert relative(found.A, A) < MUJOCO and relative(found.B, B) < MUJOCO


def test_inverse_dynamics(rng):
    model = scene("euler")
    data = moving(model, rng)
    data.qacc = rng.normal(size=model.nv)
    for actuation in (False, True):
        found = fl.inverse_derivatives(model, data, actuation=actuation)
        theirs = fl.inverse_derivatives(model, data, actuation=actuation, method="finite_difference")
        for mine, other in zip(found[:3], theirs[:3], strict=True):
            assert relative(mine, other) < STEPS


def test_rates_of_damping_are_differenced_under_implicitfast(rng):
    model = exact(fl.load(TENDONS.format(poly="0.1 0.1")))
    assert not differences_lag(model)
    model.opt.integrator = "implicitfast"
    assert differences_lag(model)
    compare(model, moving(model, rng), RESIDUALS)


def test_a_joint_with_limited_actuator_forces_is_differenced(rng):
    """The force of a tendon's actuator counts in the clamped sum of a joint."""
    text = TENDONS.format(poly="0 0").replace('name="h4"', 'name="h4" actuatorfrcrange="-0.01 0.01"')
    model = exact(fl.load(text))
    data = moving(model, rng)
    assert not rates(model, data, True)[1]
    close(fl.linearize(model, data), data, model, STEPS)


def test_tendons_with_armature_use_residual_differences(rng):
    model = scene("euler")
    data = moving(model, rng)
    assert rates(model, data, True)[1]
    model.tendon_armature[0] = 0.1
    assert not rates(model, data, True)[1]


@pytest.mark.parametrize("text", [TENDONS.format(poly="0.1 0.1"), SPATIAL], ids=["fixed", "spatial"])
def test_a_batch_is_bitwise_equal_to_its_worlds(text, rng):
    """Worlds with other active limits, equalities and stiffnesses share the rows of a tile."""
    model = exact(fl.load(text))
    batch = fl.Batch(model, 11, nthread=1)
    batch.qpos[:] = [kicked(model, rng, 0.5)[0] for _ in range(11)]
    batch.qvel[:] = rng.normal(size=batch.qvel.shape) * 0.1
    batch.ctrl[:] = rng.uniform(-0.3, 0.3, batch.ctrl.shape)
    if model.neq:
        batch.eq_active[::2, 2] = 0
        batch.expand("eq_data")[::3, 0, 2:] = 0.0
    batch.expand("tendon_stiffness")[:] *= rng.uniform(0.0, 1.5, (11, 1))
    found, inverse = fl.linearize(model, batch, nthread=1), fl.inverse_derivatives(model, batch)
    for w in range(11):
        data = batch.get_data(w)
        alone = fl.linearize(data.model, data)
        for name in ("A", "B", "switching"):
            assert getattr(alone, name).tobytes() == getattr(found, name)[w].tobytes()
        data.forward()
        for one, every in zip(fl.inverse_derivatives(data.model, data)[:3], inverse[:3], strict=True):
            assert one.tobytes() == every[w].tobytes()


SPRING = """<mujoco><option timestep=".05" gravity="0 0 0"/><worldbody><site name="w" pos="0 0 2"/>
<body><joint type="slide" axis="0 0 1"/><geom size=".1" mass="1"/><site name="a"/></body></worldbody>
<tendon><spatial stiffness="300" springlength="{rest}"><site site="w"/><site site="a"/></spatial></tendon></mujoco>"""


@pytest.mark.parametrize("rest", ["-1", "2", "1.9 2.1"], ids=["length at qpos0", "given length", "dead band"])
def test_a_spring_at_rest_pulls_back_unless_it_has_a_dead_band(rest):
    model = fl.load(SPRING.format(rest=rest))
    data = fl.Data(model)
    data.qvel[:] = 1.0
    found, expected = (fl.linearize(model, data, method=method).A for method in ("analytic", "finite_difference"))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert (found[1, 0] == 0.0) == (" " in rest)
