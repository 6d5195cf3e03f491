"""MuJoCo's actuator plugin mujoco.pid: steps equal those of MuJoCo with its plugin library."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from scenes.pid_plugins import CASES, OTHER, scene
from scenes.states import kicked

EVERYTHING = mujoco.mjtState.mjSTATE_INTEGRATION.value
PARITY = 1e-12  # relative to the field's largest value, or absolute: both engines round a few operations
NAMES = ("actuator_force", "act_dot", "act", "qfrc_actuator", "qvel", "qpos")
INTEGRATORS = ("Euler", "RK4", "implicit", "implicitfast", "discrete")


def differences(mj, rng, count):
    """Yields relative differences of fields from MuJoCo's in a step from states of its trajectory, by name."""
    model, data = fl.load(mj), mujoco.MjData(mj)
    ours, state = fl.Data(model), np.empty(mujoco.mj_stateSize(mj, EVERYTHING))
    data.qpos[:], data.qvel[:] = kicked(mj, rng)
    for k in range(count):
        data.ctrl[:] = rng.uniform(-1, 1, mj.nu)
        mujoco.mj_getState(mj, data, state, EVERYTHING)
        fl.set_state(model, ours, state, EVERYTHING)
        mujoco.mj_step(mj, data)
        fl.step(model, ours)
        for name in NAMES:
            expected = getattr(data, name)
            yield (
                k,
                name,
                np.abs(getattr(ours, name) - expected).max(initial=0) / max(1, np.abs(expected).max(initial=0)),
            )


@pytest.mark.parametrize("name", CASES)
def test_a_step_equals_mujoco(name, rng):
    integrator = INTEGRATORS[list(CASES).index(name) % len(INTEGRATORS)]
    mj = mujoco.MjModel.from_xml_string(scene(name, integrator=integrator))
    for k, field, difference in differences(mj, rng, 20):
        assert difference < PARITY, (k, field)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_all_together_equal_mujoco(integrator, rng):
    mj = mujoco.MjModel.from_xml_string(scene(*CASES, integrator=integrator))
    for k, field, difference in differences(mj, rng, 20):
        assert difference < PARITY, (k, field)


def test_the_limit_of_a_tendon_holds_for_plugins_alone():
    model = fl.load(scene("p").replace(OTHER, ""))
    data = fl.Data(model)
    data.ctrl[2] = 0.9
    fl.step(model, data)
    assert data.actuator_force[2] == 5.0


def test_a_disabled_group_has_no_force_and_keeps_its_integral():
    model = fl.load(scene("pi"))
    model.actuator_group[2:], model.opt.disableactuator = 3, 1 << 3
    data = fl.Data(model)
    data.ctrl = 0.3
    fl.step(model, data)
    assert data.actuator_force[:2].all() and not data.actuator_force[2:].any() and not data.act.any()


# ---- batches, edits, derivatives -------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gains_differ_by_world(dtype, rng):
    """A world with its gains equals a model compiled with them."""
    model = fl.load(scene("all", "early"))
    batch, n = fl.Batch(model, 5, dtype=dtype), 12
    gains = batch.expand("actuator_pidprm")
    gains[:] *= rng.uniform(0.5, 1.5, (5, 1, 5))
    control = rng.uniform(-1, 1, (5, n, model.nu))
    batch.rollout(n, control)
    for w in (1, 4):
        own = fl.load(scene("all", "early"))
        own.actuator_pidprm[:] = gains[w]
        data = fl.Data(own)
        data.rollout(n, control[w].astype(dtype))
        found, expected = np.concatenate([batch.qpos[w], batch.act[w]]), np.concatenate([data.qpos, data.act])
        if dtype == "float64":
            assert np.array_equal(found, expected)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


def test_an_edit_equals_a_model_compiled_with_it():
    model, other = fl.load(scene("all")), fl.load(scene("all").replace('key="kp" value="12"', 'key="kp" value="5"'))
    model.actuator_pidprm[2:, 0] = 5
    data, expected = fl.Data(model), fl.Data(other)
    for each in (data, expected):
        each.ctrl = 0.3
        each.step(5)
    assert np.array_equal(data.qpos, expected.qpos) and data.qpos.any()
    with pytest.warns(UserWarning, match="actuator_pidprm of actuator 'all hinge'"):
        model.to_mujoco()


@pytest.mark.parametrize(
    "column, value", [(0, np.nan), (1, 0.0), (3, -1.0), (4, -1.0), (4, np.nan)], ids=["kp", "ki", "imax", "slew", "nan"]
)
def test_invalid_edits_are_refused(column, value):
    model = fl.load(scene("all"))
    data = fl.Data(model)
    model.actuator_pidprm[3, column] = value
    with pytest.raises(fl.ModelError, match="actuator_pidprm of actuator 'all slide'"):
        fl.step(model, data)
    fixed = fl.load(scene("p"))
    fixed.actuator_pidprm[3, 1] = 1.0
    with pytest.raises(fl.ModelError, match="set of activations"):
        fl.step(fixed, fl.Data(fixed))


@pytest.mark.parametrize(
    "given, changed, words",
    [
        ('actdim="2"', 'actdim="1"', "actuator 2 has actdim 1, expected 2"),  # MuJoCo's words
        ('value="0.8"', 'value="-0.8"', "negative imax"),
        ('key="slewmax" value="3"', 'key="slewmax" value="-3"', "slewmax must be non-negative"),
        ('value="12"', 'value="twelve"', "kp is 'twelve', allowed is a finite number"),
        ('value="12"', 'value="inf"', "kp is 'inf', allowed is a finite number"),
    ],
)
def test_invalid_configurations_are_refused(given, changed, words):
    text = scene("all")
    assert given in text
    with pytest.raises(fl.ModelError, match=words):
        fl.load(text.replace(given, changed))


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "discrete"])
def test_derivatives_equal_differences(integrator, rng):
    model = fl.load(scene("pd", "bounded", "filtered", integrator=integrator))
    data = fl.Data(model)
    data.time, data.qpos, data.qvel = 0.1, [0.2, -0.1], [0.3, 0.2]
    data.act, data.ctrl = rng.uniform(-0.02, 0.02, model.na), rng.uniform(-0.05, 0.05, model.nu)
    exact = fl.linearize(model, data)
    found = fl.linearize(model, data, method="finite_difference", eps=1e-6)
    for name in ("A", "B"):
        expected = getattr(found, name)
        assert np.abs(getattr(exact, name) - expected).max() < 1e-5 * np.abs(expected).max(), name


def away_from_bounds(model, nworld):
    """Returns worlds whose controls, integrals and setpoints stay within their bounds."""
    batch = fl.Batch(model, nworld, nthread=1)
    batch.qpos[:], batch.qvel[:], batch.time[:] = [0.02, -0.01], [0.03, 0.02], 0.1
    batch.act[:] = 0.01 * np.arange(1, model.na + 1) / max(model.na, 1)
    return batch


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast"])
def test_derivatives_by_parameters_equal_differences(integrator):
    model = fl.load(scene("pd", "bounded", "filtered", integrator=integrator))
    batch = away_from_bounds(model, 1)
    names = *(f"actuator_pidprm[{i}, {k}]" for i in (5, 8) for k in range(3) if (i, k) != (5, 2)), "body_mass"
    with pytest.raises(fl.ModelError, match="actuator_pidprm of actuator 'pd hinge'"):
        fl.linearize(model, batch, parameters=("actuator_pidprm",))  # an integral would begin
    exact = fl.linearize(model, batch, parameters=names).P
    found = fl.linearize(model, batch, parameters=names, method="finite_difference").P
    for name in names:
        scale = np.abs(found[name]).max()
        assert scale > 0 and np.abs(exact[name] - found[name]).max() < 1e-5 * scale, name


def test_gradients_of_rollouts_equal_differences(rng):
    """The integrals, slewed setpoints and filters carry the gradient from step to step."""
    model = fl.load(scene("pd", "bounded", "filtered"))
    batch, nstep, name = away_from_bounds(model, 2), 6, "actuator_pidprm[2, 0]"
    control = rng.uniform(-0.02, 0.02, (2, nstep, model.nu))
    weights = rng.standard_normal(2 * model.nv + model.na)
    found = fl.rollout_gradient(model, batch, control, loss_gradient=np.tile(weights, (2, 1)), parameters=[name])

    def loss(du=0.0, dact=0.0, dp=0.0):
        model.actuator_pidprm[2, 0] += dp
        work = away_from_bounds(model, 2)
        work.act += dact
        work.rollout(nstep, control + du)
        model.actuator_pidprm[2, 0] -= dp
        return np.concatenate([work.qpos, work.qvel, work.act], 1) @ weights

    for k in range(model.nu):
        du = np.zeros_like(control)
        du[:, 1, k] = 1e-6
        slope = (loss(du=du) - loss(du=-du)) / 2e-6
        assert np.abs(found.control[:, 1, k] - slope).max() < 1e-6 * np.abs(found.control).max(), k
    for k in range(model.na):
        dact = 1e-6 * np.eye(model.na)[k]
        slope = (loss(dact=dact) - loss(dact=-dact)) / 2e-6
        assert np.abs(found.state[:, 2 * model.nv + k] - slope).max() < 1e-6 * np.abs(found.state).max(), k
    slope = (loss(dp=1e-5) - loss(dp=-1e-5)) / 2e-5
    assert np.abs(found.parameters[name] - slope).max() < 1e-5 * np.abs(slope).max()


def test_pickles_and_variants_keep_the_plugin(rng):
    import pickle

    model = fl.load(scene("all"))
    copy, again = pickle.loads(pickle.dumps(model)), fl.load(model.to_mujoco())
    worlds = [fl.Data(each) for each in (model, copy, again)]
    for data in worlds:
        data.ctrl = 0.4
        data.step(5)
    assert all(np.array_equal(data.qpos, worlds[0].qpos) for data in worlds) and worlds[0].qpos.any()
