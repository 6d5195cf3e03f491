"""Derivatives of steps with the no-slip solver: its sweeps end early, so the derivative is that of the sweeps."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.tools.sensitivity.systems import served
from sensitivity.test_derivatives import close
from sensitivity.test_transition import exact, relative

EXACT = 1e-7  # of Richardson's extrapolation of differences of steps
DIFFERENCED = 1e-6  # of plain differences over 1e-6
AWAY = 1e-4  # distance from switches
# contacts of dimension 1, 3, 4 and 6, two of them between two moving bodies, and dry friction of a hinge and a slide
SCENE = """<mujoco><option timestep="0.002" cone="pyramidal" noslip_iterations="3" {option}/>
  <default><geom solref="0.02 1"/></default><worldbody>
  <geom type="plane" size="5 5 1" condim="1" friction="0.6"/>
  <body pos="0 0 0.099" euler="0 0 20"><freejoint/><geom type="box" size="0.2 0.15 0.1" condim="3" mass="2"/>
    <body pos="0.2 0 0.05"><joint name="hinge" axis="0 1 0.2" damping="0.05" armature="0.01" frictionloss="0.3"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 -0.1" size="0.048" condim="4" friction="0.7 0.01 0.001"/></body></body>
  <body pos="0.02 0.01 0.297"><freejoint/><geom size="0.1" condim="6" friction="0.8 0.02 0.01" mass="0.5"/>
    <body pos="0 0 0.2"><joint axis="1 0 0" damping="0.01"/><geom size="0.03" mass="0.1"/></body></body>
  <body pos="-0.5 0 0.099"><joint name="slide" type="slide" axis="1 0 0" frictionloss="2" damping="0.3"/>
    <joint type="slide" axis="0 0 1"/><geom size="0.1" condim="1"/></body></worldbody>
  <actuator><motor joint="hinge"/><motor joint="slide" gear="3"/></actuator></mujoco>"""


def scene(sweeps: int, option: str = "") -> fl.Model:
    """Returns the scene with that many sweeps of the no-slip solver."""
    model = exact(fl.load(SCENE.format(option=option)))
    model.opt.noslip_iterations, model.opt.noslip_tolerance = sweeps, 0.0
    return model


def moving(model: fl.Model, steps: int) -> fl.Data:
    """Returns the scene after some steps, sliding, the first state from there on that is away from switches."""
    data = fl.Data(model)
    data.qvel[:] = 0.3 * np.cos(3.0 * np.arange(model.nv))
    data.ctrl = [0.4, -0.3]
    fl.step(model, data, steps)
    for _ in range(30):
        if fl.linearize(model, data).switching > AWAY:
            return data
        fl.step(model, data)
    raise AssertionError("no state is away from switches")


@pytest.mark.parametrize("sweeps, steps", [(1, 40), (3, 50), (3, 60), (20, 40)])
@pytest.mark.parametrize("option", ["", 'integrator="implicitfast"'])
def test_derivatives_equal_those_of_a_step(sweeps, steps, option):
    model = scene(sweeps, option)
    data = moving(model, steps)
    assert set(data.contact.dim) >= {3, 4, 6}
    close(fl.linearize(model, data), data, model, EXACT)


@pytest.mark.parametrize("option", ["", 'integrator="implicitfast"'])
def test_derivatives_without_damping_equal_those_of_a_step(option):
    model = scene(3, option)
    model.opt.disableflags = "eulerdamp"
    data = moving(model, 40)
    close(fl.linearize(model, data), data, model, EXACT)
    model.opt.disableflags, model.dof_damping[:] = 0, 0.0
    data = moving(model, 40)
    close(fl.linearize(model, data), data, model, EXACT)


def test_mujoco_agrees():
    model = scene(3)
    data, mj = moving(model, 40), model.to_mujoco()
    theirs, n = mujoco.MjData(mj), 2 * model.nv
    mujoco.mj_setState(mj, theirs, fl.get_state(model, data, fl.State.INTEGRATION), int(fl.State.INTEGRATION))
    A, B = np.zeros((n, n)), np.zeros((n, model.nu))
    mujoco.mjd_transitionFD(mj, theirs, 1e-6, True, A, B, None, None)
    found = fl.linearize(model, data)
    assert relative(found.A, A) < 1e-5 and relative(found.B, B) < 1e-5


def test_the_sweeps_matter():
    """Without the no-slip solver, or with more sweeps, the derivatives are others."""
    model = scene(3)
    data = moving(model, 40)
    A = fl.linearize(model, data).A
    for sweeps in (0, 2, 30):
        model.opt.noslip_iterations = sweeps
        assert relative(fl.linearize(model, data).A, A) > 1e-4


def test_accelerations():
    model = scene(3)
    data = moving(model, 40)
    found, state = fl.acceleration_derivatives(model, data), fl.get_state(model, data, fl.State.INTEGRATION)

    def accelerations(name: str, eps: float) -> np.ndarray:
        ends = []
        for sign in (eps, -eps):
            batch = fl.Batch(model, model.nv, nthread=1)
            batch.bind("qacc")
            fl.set_state(model, batch, np.tile(state, (model.nv, 1)), fl.State.INTEGRATION)
            getattr(batch, name)[:] += sign * np.eye(model.nv)
            batch.forward()
            ends.append(batch.qacc.copy())
        return (ends[0] - ends[1]).T / (2 * eps)

    assert relative(found.DaDv, accelerations("qvel", 1e-6)) < DIFFERENCED
    assert relative(found.DaDtau, accelerations("qfrc_applied", 1e-5)) < DIFFERENCED
    model.opt.disableflags = "eulerdamp"  # then the next velocity is qvel + h qacc
    rates = fl.linearize(model, data)
    assert relative(model.opt.timestep * found.DaDq, rates.A[model.nv :, : model.nv]) < EXACT
    assert relative(model.opt.timestep * found.DaDu, rates.B[model.nv :]) < EXACT


@pytest.mark.parametrize("damped", [True, False])
def test_worlds_do_not_depend_on_their_batch(damped):
    """One world has no contacts; without damping and dry friction, it has no rows and the integrator no matrix."""
    model = scene(4)
    model.opt.noslip_tolerance = 1e-6
    if not damped:
        model.dof_damping[:], model.dof_frictionloss[:] = 0.0, 0.0
    batch = fl.Batch(model, 11, nthread=1)
    batch.qpos[-1, [2, 10, 17]] += 1.0
    batch.qpos[:, 2] += np.linspace(0.0, 0.02, 11)
    batch.qvel[:, 0] = np.linspace(-1.0, 1.0, 11)
    batch.step(30)
    found, forward = fl.linearize(model, batch), fl.acceleration_derivatives(model, batch)
    assert np.isfinite(found.switching).sum() >= 8
    for w in range(batch.nworld):
        data = fl.Data(model)
        fl.set_state(model, data, fl.get_state(model, batch, fl.State.INTEGRATION)[w], fl.State.INTEGRATION)
        one = fl.linearize(model, data)
        assert one.A.tobytes() == found.A[w].tobytes() and one.B.tobytes() == found.B[w].tobytes()
        assert fl.acceleration_derivatives(model, data).DaDq.tobytes() == forward.DaDq[w].tobytes()
        assert one.switching == found.switching[w] or np.isnan(one.switching)


def test_gradient_of_a_rollout():
    model = scene(3)
    data = moving(model, 20)
    batch = fl.Batch(model, 1, nthread=1)
    fl.set_state(model, batch, fl.get_state(model, data, fl.State.INTEGRATION)[None], fl.State.INTEGRATION)
    control, weights = np.full((1, 4, model.nu), 0.1), np.cos(np.arange(2 * model.nv))[None]
    weights[:, : model.nv] = 0.0
    found, start = (
        fl.rollout_gradient(model, batch, control, loss_gradient=weights),
        fl.get_state(model, batch, fl.State.INTEGRATION),
    )
    assert np.isfinite(found.switching).all()

    def loss(u: np.ndarray) -> float:
        end = batch.rollout(4, control=u, record=("qvel",))["qvel"]
        return float(end[0, -1] @ weights[0, model.nv :])

    for k, i in ((0, 0), (2, 1)):
        ends = []
        for sign in (1.0, -1.0):
            u = control.copy()
            u[0, k, i] += sign * 1e-5
            fl.set_state(model, batch, start, fl.State.INTEGRATION)
            ends.append(loss(u))
        assert found.control[0, k, i] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6)


def test_cases_without_formulas_are_differences_of_steps(monkeypatch):
    """Elliptic cones, dry friction of a tendon, and more rows than a tile holds."""
    tendon = '<tendon><fixed frictionloss="0.2"><joint joint="hinge" coef="1"/></fixed></tendon><actuator>'
    models = [scene(3, 'impratio="2"'), exact(fl.load(SCENE.format(option="").replace("<actuator>", tendon)))]
    models[0].opt.cone = "elliptic"
    for model in models:
        data = fl.Data(model)
        fl.step(model, data, 30)
        found, steps = fl.linearize(model, data), fl.linearize(model, data, method="finite_difference")
        assert np.isnan(found.switching) and found.A.tobytes() == steps.A.tobytes()
    monkeypatch.setattr(served, "NOSLIP_ROWS", 5)
    model = scene(3)
    batch = fl.Batch(model, 2, nthread=1)
    batch.qpos[1, 2] += 1.0
    batch.step(30)
    found, steps = fl.linearize(model, batch), fl.linearize(model, batch, method="finite_difference")
    assert np.isnan(found.switching[0]) and found.A[0].tobytes() == steps.A[0].tobytes()
