"""Special paths of implicit steps equal the general one, and MuJoCo's step, with every force that has a derivative."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.enums import Enable
from oracles import smooth
from sampling import pairwise
from scenes.forces import FORCES, LONE, TREES, fits, moving, scene

INTEGRATORS = ("Euler", "implicitfast", "implicit", "discrete", "RK4")
LAW = 1e-11  # relative, of the next velocity: rounding in two different orders, D up to 100 times M
PARITY = 1e-9  # relative, one step of MuJoCo's from the same state
DERIVATIVE = 1e-7  # relative, of central differences


def velocity(model, **options):
    """Returns the velocity after one step from the random state of the model."""
    for name, value in options.items():
        setattr(model.opt, name, value)
    data = moving(model)
    fl.step(model, data)
    return data.qvel.copy()


def both(text):
    """Returns the velocities after one step from the random state, of Featherlane and of MuJoCo."""
    model, mj = fl.load(text), mujoco.MjModel.from_xml_string(text)
    data, expected = moving(model), mujoco.MjData(mj)
    for name in ("qpos", "qvel", "ctrl", "act"):
        getattr(expected, name)[:] = getattr(data, name)
    mujoco.mj_step(mj, expected)
    fl.step(model, data)
    return data.qvel, expected.qvel


@pytest.mark.parametrize(("force", "tree", "integrator"), pairwise(list(FORCES), list(TREES), INTEGRATORS))
def test_a_step_equals_mujoco(force, tree, integrator):
    if not fits(force, tree):
        return
    found, expected = both(scene(force, tree, integrator))
    assert smooth.relative(found, expected) < PARITY


@pytest.mark.parametrize("force", FORCES)
@pytest.mark.parametrize("tree", LONE)
def test_a_lone_free_body_steps_as_in_the_general_path(force, tree):
    """Its block has all terms of `implicit`, which solves one system for the whole model."""
    if fits(force, tree):
        model = fl.load(scene(force, tree, "implicit"))
        assert smooth.relative(velocity(model, integrator="implicitfast"), velocity(model, integrator="implicit")) < LAW


@pytest.mark.parametrize("force", FORCES)
def test_a_lone_free_body_has_the_general_path_s_inverse(force):
    """The continuous-time acceleration of a step's acceleration has no force left over but that of actuators."""
    if not fits(force, "free off its com"):
        return
    model = fl.load(scene(force, "free off its com", "implicitfast"))
    model.opt.enableflags |= int(Enable.INVDISCRETE)
    data = moving(model)
    start = data.qvel.copy()
    other = moving(model)
    fl.step(model, data)
    fl.forward(model, other)
    other.qacc = (data.qvel - start) / model.opt.timestep
    fl.inverse(model, other)
    scale = 1.0 + np.abs(other.qfrc_bias).max() + np.abs(other.qfrc_passive).max() + np.abs(other.qfrc_actuator).max()
    np.testing.assert_allclose(other.qfrc_inverse, other.qfrc_actuator, rtol=0, atol=LAW * scale / model.opt.timestep)


@pytest.mark.parametrize("integrator", ["implicitfast", "implicit", "Euler"])
@pytest.mark.parametrize("force", FORCES)
def test_articulated_bodies_step_as_the_factor_of_the_inertia(force, integrator):
    for tree in ("chain", "slides and a ball", "free with a hinge"):
        if fits(force, tree):
            model = fl.load(scene(force, tree, integrator))
            one, other = (velocity(model, forward_dynamics=method) for method in ("crb", "aba"))
            assert smooth.relative(other, one) < LAW


@pytest.mark.parametrize("force", FORCES)
def test_a_simple_body_steps_as_with_its_full_inertia(force):
    """Compares with `simple="false"` under `implicit`; `implicitfast` keeps only the rates on the pattern of M."""
    for tree in ("free", "ball", "slides and a ball"):
        if fits(force, tree):
            one, other = (fl.load(scene(force, tree, "implicit", simple=text)) for text in ("", 'simple="false"'))
            assert smooth.relative(velocity(other), velocity(one)) < LAW


@pytest.mark.parametrize("integrator", ["implicitfast", "discrete"])
@pytest.mark.parametrize("force", FORCES)
def test_a_full_inertia_steps_as_in_mujoco(force, integrator):
    for tree in ("free", "ball", "slides and a ball"):
        if fits(force, tree):
            found, expected = both(scene(force, tree, integrator, simple='simple="false"'))
            assert smooth.relative(found, expected) < PARITY


@pytest.mark.parametrize("force", FORCES)
def test_an_awake_tree_steps_bitwise_as_without_sleep(force):
    for tree in ("two free", "chain"):
        if fits(force, tree):
            model = fl.load(scene(force, tree, "implicitfast"))
            one = velocity(model)
            model.opt.enableflags |= int(Enable.SLEEP)
            assert velocity(model).tobytes() == one.tobytes()


@pytest.mark.parametrize("tree", LONE)
def test_a_world_of_a_batch_steps_bitwise_as_alone(tree):
    model = fl.load(scene("all", tree, "implicitfast"))
    batch, alone = fl.Batch(model, 11), [moving(model, seed) for seed in range(11)]
    for k, data in enumerate(alone):
        batch.qpos[k], batch.qvel[k], batch.ctrl[k] = data.qpos, data.qvel, data.ctrl
        fl.step(model, data, 3)
    batch.step(3)
    assert all(batch.qvel[k].tobytes() == data.qvel.tobytes() for k, data in enumerate(alone))


@pytest.mark.parametrize("force", ["tendon damping", "tendon damping polynomial", "ellipsoid in a fluid", "all"])
def test_derivatives_of_a_lone_free_body_include_every_rate(force):
    model = fl.load(scene(force, "free off its com", "implicitfast"))
    data = moving(model)
    A, expected = (fl.linearize(model, data, method=method)[0] for method in ("analytic", "finite_difference"))
    assert smooth.relative(A, expected) < DERIVATIVE
