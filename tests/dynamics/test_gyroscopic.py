"""Gyroscopic torque of free bodies: ODE's steps, laws, accuracy near isotropy, and derivatives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import featherlane as fl
from oracles.naive import matrix
from oracles.smooth import dense_rate, differences
from scenes.states import kicked

ODE = Path(__file__).parents[1] / "data" / "ode"
STEP = 1e-12  # of a step of ODE's: the same formulas, rounded in different axes
CONSTANT = 1e-13  # of values that a step must conserve, relative to 3 rad/s
DIGITS = 1e-12  # relative, of a change of velocity that is 1e-11 of the velocity
DIFFERENCE = 1e-7  # of difference quotients
MODES = ("explicit", "implicit", "off")
CLASSIC = (10.0, 4.0, 2.0)  # no body has such moments: the compiler rejects them, an edit does not
SECONDS, PER_SECOND = 10, 60
# after 10 s from 22 J and 14.14 kg m^2/s, as in ODE
ENERGY = {"implicit": (13.14, 16.08), "explicit": (48.5, 19.9)}

pytestmark = pytest.mark.filterwarnings("ignore:body_inertia of body #1. moments")  # CLASSIC

BODY = """
<mujoco>
  <option timestep="{h!r}" gravity="0 0 0"/>
  <worldbody>
    <body><freejoint/><inertial pos="{pos}" quat="{quat}" mass="2" diaginertia="1 1 1"/></body>
  </worldbody>
</mujoco>
"""
# a body with another one fixed to it, and a coupled tree
WELDED = """
<mujoco>
  <option timestep="0.02" gravity="0.3 -0.2 -9.6"/>
  <worldbody>
    <body pos="0 0 1"><freejoint/>
      <geom type="box" size=".1 .2 .3" pos=".03 .02 -.05" euler="10 20 30"/>
      <body pos=".3 .1 0" euler="30 0 10"><geom type="capsule" size=".05 .2"/></body>
    </body>
    <body pos="3 0 1"><freejoint/>
      <geom type="box" size=".1 .2 .3"/>
      <body pos=".3 .1 0"><joint/><geom type="capsule" size=".05 .2"/></body>
    </body>
  </worldbody>
</mujoco>
"""


def free_body(inertia, h=1 / PER_SECOND, pos="0 0 0", quat="1 0 0 0"):
    model = fl.load(BODY.format(h=h, pos=pos, quat=quat))
    model.body_inertia[1] = inertia
    fl.set_const(model)
    return model


def world_velocity(data):
    """Returns the angular velocity of the first body in world axes."""
    return matrix(data.qpos[3:7]) @ data.qvel[3:6]


@pytest.mark.parametrize("name", ["spin_off", "spin_implicit", "spin_implicit_finiterot", "spin_explicit"])
def test_recorded_spins_equal_ode(name):
    record = np.load(ODE / f"{name}.npz")
    model = free_body(record["inertia_diag"][0], float(record["h"]))
    model.opt.gyroscopic = "explicit" if record["explicit"] else "implicit" if record["gyro_mode"] else "off"
    model.opt.rotation = "finite" if record["finite_rotation"] else "infinitesimal"
    batch = fl.Batch(model, nworld=len(record["step"]))
    turned = np.array([matrix(q[0]).T @ w[0] for q, w in zip(record["quat"], record["avel"], strict=True)])
    batch.qpos = np.concatenate([record["pos"][:, 0], record["quat"][:, 0]], axis=1)
    batch.qvel = np.concatenate([record["lvel"][:, 0], turned], axis=1)
    batch.step()
    velocity = [matrix(q) @ w for q, w in zip(batch.qpos[:, 3:], batch.qvel[:, 3:], strict=True)]
    np.testing.assert_allclose(batch.qpos[:, 3:], record["next_quat"][:, 0], rtol=0, atol=STEP)
    np.testing.assert_allclose(velocity, record["next_avel"][:, 0], rtol=0, atol=STEP)


@pytest.mark.parametrize("mode", ENERGY)
def test_energy_after_ten_seconds_equals_the_published_value(mode):
    model = free_body(CLASSIC)
    model.opt.gyroscopic = mode
    data = fl.Data(model)
    data.qvel[3:] = 1, 2, 3
    fl.step(model, data, SECONDS * PER_SECOND)
    momentum = CLASSIC * data.qvel[3:]
    energy, length = ENERGY[mode]
    assert abs(0.5 * momentum @ data.qvel[3:] - energy) < 0.05
    assert abs(np.linalg.norm(momentum) - length) < 0.05


@pytest.mark.parametrize("integrator", ["euler", "rk4", "implicit", "implicitfast", "discrete"])
def test_without_torque_a_body_rotates_about_a_fixed_axis(integrator, rng):
    model = free_body(CLASSIC)
    model.opt.gyroscopic, model.opt.integrator = "off", integrator
    data = fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng, velocity=3.0)
    before = world_velocity(data)
    fl.step(model, data, 10)
    np.testing.assert_allclose(world_velocity(data), before, rtol=0, atol=10 * CONSTANT)


@pytest.mark.parametrize("rotation", ["finite", "infinitesimal"])
def test_the_torque_solves_the_linearised_step(rotation, rng):
    model = free_body((3.0, 2.0, 1.5), h=0.05, quat=".8 .1 .5 .2")
    model.opt.gyroscopic, model.opt.rotation = "implicit", rotation
    data = fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng, velocity=5.0)
    turned = matrix(data.qpos[3:]) @ matrix(model.body_iquat[1])
    inertia, w = turned @ np.diag(model.body_inertia[1]) @ turned.T, world_velocity(data)
    L = np.cross(inertia @ w, np.eye(3)).T  # [L]x: its columns are L x e_k
    expected = w + np.linalg.solve(inertia - 0.05 * L, 0.05 * np.cross(inertia @ w, w))
    fl.step(model, data)
    np.testing.assert_allclose(world_velocity(data), expected, rtol=0, atol=STEP)


def exact_change(inertia, w, h):
    """Returns dw of the implicit step in extended precision, from differences of the moments."""
    A, w = np.asarray(inertia, np.longdouble), np.asarray(w, np.longdouble)
    b = h * np.array([(A[1] - A[2]) * w[1] * w[2], (A[2] - A[0]) * w[2] * w[0], (A[0] - A[1]) * w[0] * w[1]])
    L = A * w
    x = np.zeros(3, np.longdouble)
    for _ in range(60):
        x = (b + h * np.cross(L, x)) / A
    return x


@pytest.mark.parametrize("axes", ["1 0 0 0", ".8 .1 .5 .2"])
def test_a_nearly_isotropic_body_keeps_its_digits(axes):
    inertia, w, h = (1.0, 1.0 + 1e-9, 1.0 - 2e-9), (1.0, 2.0, 3.0), 0.01
    model = free_body(inertia, h=h, quat=axes)
    model.opt.gyroscopic = "implicit"
    data = fl.Data(model)
    principal = matrix(model.body_iquat[1])
    data.qvel[3:] = principal @ w
    fl.forward(model, data)
    expected = exact_change(model.body_inertia[1], principal.T @ data.qvel[3:], np.longdouble(h))
    change = principal.T @ (h * data.qacc[3:])
    np.testing.assert_allclose(change, expected.astype(float), rtol=0, atol=DIGITS * np.abs(expected).max().item())


@pytest.mark.parametrize("mode", MODES)
def test_the_body_s_frame_does_not_matter(mode, rng):
    origin, moved = free_body((3.0, 2.0, 1.5)), free_body((3.0, 2.0, 1.5), pos=".3 -.2 .1")
    w, found = rng.normal(size=3), []
    for model in (origin, moved):
        model.opt.gyroscopic = mode
        model.opt.gravity = 0, 0, -9.81
        data = fl.Data(model)
        data.qpos[3:], data.qvel[3:] = (0.5, 0.1, -0.7, 0.5), w
        fl.forward(model, data)
        found.append(data.qacc[3:].copy())
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=STEP)


@pytest.mark.parametrize("mode", MODES)
def test_bodies_fixed_to_a_body_rotate_with_it(mode, rng):
    """Compares with all inertia in one body: MuJoCo's compiler fuses static bodies."""
    whole, fused = fl.load(WELDED), fl.load(WELDED.replace("<option", '<compiler fusestatic="true"/><option'))
    assert fused.nbody == whole.nbody - 1
    qpos, qvel = kicked(whole, rng, velocity=3.0)
    found = []
    for model in (whole, fused):
        model.opt.gyroscopic = mode
        data = fl.Data(model)
        data.qpos, data.qvel = qpos, qvel
        fl.forward(model, data)
        found.append(data.qacc.copy())
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-11)  # of 100 rad/s^2


def test_a_body_can_differ_from_the_option(rng):
    accelerations = {}
    for option, own in (("explicit", -1), ("implicit", 0), ("implicit", -1), ("explicit", 1), ("off", -1)):
        model = fl.load(WELDED)
        model.opt.gyroscopic = option
        model.body_gyroscopic[1] = own
        data = fl.Data(model)
        data.qpos, data.qvel = kicked(model, np.random.default_rng(1), velocity=3.0)
        fl.forward(model, data)
        accelerations[option, own] = data.qacc.tobytes()
    assert accelerations["explicit", -1] == accelerations["implicit", 0]
    assert accelerations["implicit", -1] == accelerations["explicit", 1]
    assert len(set(accelerations.values())) == 3


def test_a_tree_with_further_joints_keeps_its_torque(rng):
    model = fl.load(WELDED)
    data = fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng, velocity=3.0)
    found = []
    for mode in MODES:
        model.opt.gyroscopic = mode
        fl.forward(model, data)
        found.append(data.qacc.copy())
    for other in found[1:]:
        assert (other[3:6] != found[0][3:6]).all()
        np.testing.assert_array_equal(other[6:], found[0][6:])


@pytest.mark.parametrize("mode", ["implicit", "off"])
def test_inverse_dynamics_includes_the_gyroscopic_torque(mode, rng):
    model = fl.load(WELDED)
    model.opt.gyroscopic = mode
    data = fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng, velocity=3.0)
    fl.forward(model, data)
    fl.inverse(model, data)
    np.testing.assert_allclose(data.qfrc_inverse, 0, atol=1e-10)  # of 200 N m


def test_force_derivatives_omit_a_disabled_torque(rng):
    model = fl.load(WELDED)
    model.opt.gyroscopic = "off"
    data = fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng, velocity=3.0)
    fl.forward(model, data)

    def bias():
        fl.stages.forward_velocity(model, data)
        return data.qfrc_bias.copy()

    expected = -differences(model, data, bias)
    fl.forward(model, data)
    fl.stages.smooth_vel(model, data)
    rate = dense_rate(model, data.qDeriv)
    assert np.abs(rate - expected).max() < DIFFERENCE * np.abs(expected).max()


def test_worlds_are_equal_at_every_tile_width(rng):
    model = fl.load(WELDED)
    model.opt.gyroscopic, model.opt.rotation = "implicit", "infinitesimal"
    batch, data = fl.Batch(model, nworld=8), fl.Data(model)
    for world in range(8):
        batch.qpos[world], batch.qvel[world] = kicked(model, rng, velocity=3.0)
    data.qpos, data.qvel = batch.qpos[5], batch.qvel[5]
    batch.step(3)
    fl.step(model, data, 3)
    assert batch.qpos[5].tobytes() == data.qpos.tobytes()


def test_linear_steps_of_orientations_are_refused_with_rk4():
    model = free_body((1.0, 1.0, 1.0))
    model.opt.rotation = "infinitesimal"
    with pytest.raises(fl.UnsupportedFeatureError):
        model.opt.integrator = "rk4"
    model.opt.rotation, model.opt.integrator = "finite", "rk4"
    with pytest.raises(fl.UnsupportedFeatureError):
        model.opt.rotation = "infinitesimal"


def test_rotations_are_linear_in_the_infinitesimal_mode():
    model = free_body((1.0, 1.0, 1.0), h=0.1)
    model.opt.rotation = "infinitesimal"
    data = fl.Data(model)
    data.qvel[5] = 3.0
    fl.step(model, data)
    np.testing.assert_allclose(2 * np.arctan2(data.qpos[6], data.qpos[3]), 2 * np.arctan(0.15), rtol=STEP)


@pytest.mark.parametrize(("integrator", "mode"), [("rk4", 1), ("euler", 3)])
def test_a_body_s_mode_that_does_not_go_with_the_integrator_is_refused(integrator, mode):
    model = free_body((1.0, 2.0, 2.5))
    model.opt.integrator = integrator
    model.body_gyroscopic[1] = mode
    with pytest.raises(fl.ModelError):
        fl.Data(model)
