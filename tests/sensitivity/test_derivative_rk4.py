"""Derivatives of a Runge-Kutta step, by the chain rule, against differences of whole steps."""

import copy

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.dynamics.integrator.runge_kutta import rotation_rate
from featherlane.engine.lanes import seed, split_tangents
from featherlane.engine.model.bundle import resolve_name
from featherlane.engine.spatial.types import Vec3
from featherlane.tools.sensitivity.systems.tangent import right_jacobian
from scenes.states import kicked
from sensitivity.test_derivatives import CONTACT, JOINTS, ROUNDING, close
from sensitivity.test_transition import exact, relative

SMOOTH = JOINTS.replace('<general joint="hinge" dyntype="filter" dynprm="0.05" gainprm="2"/>', "")


def moving(text, **options):
    model = exact(fl.load(resolve_name(text)))
    model.opt.integrator = "rk4"
    for name, value in options.items():
        setattr(model.opt, name, value)
    return model


@pytest.mark.parametrize("speed", [1.0, 60.0])
def test_all_joints(speed, rng):
    """Covers slow motion, and a quarter turn per step."""
    model = moving(SMOOTH)
    data = fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng)
    data.qvel *= speed
    data.ctrl = rng.uniform(-1, 1, model.nu)
    found = fl.linearize(model, data)
    assert found.switching == 1.0
    close(found, data, model, ROUNDING * speed)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("name", ["humanoid", "quadruped"])
def test_contacts(name, cone):
    model = moving(name, cone=cone)
    data = fl.Data(model)
    data.ctrl = np.linspace(-0.4, 0.4, model.nu)
    fl.step(model, data, 90)
    for _ in range(40):
        fl.step(model, data, 10)
        found = fl.linearize(model, data)
        if data.ncon and found.switching > 1e-2:
            break
    else:
        pytest.fail("no state away from switches")
    close(found, data, model, CONTACT)


def test_a_batch_is_bitwise_equal_to_its_worlds(rng):
    model = moving("quadruped")
    batch = fl.Batch(model, 11, nthread=1)
    batch.expand("opt.timestep")[:] = np.linspace(0.001, 0.003, 11)[:, None]
    batch.qvel[:] = rng.normal(size=batch.qvel.shape) * 0.1
    batch.ctrl[:] = rng.uniform(-0.3, 0.3, batch.ctrl.shape)
    batch.step(60)
    found, two = fl.linearize(model, batch, nthread=1), fl.linearize(model, batch, nthread=2)
    steps, away = fl.linearize(model, batch, method="finite_difference"), found.switching > 1e-2
    assert away.sum() > 3 and relative(found.B[away], steps.B[away]) < 1e-6
    for w in (0, 6, 10):
        data = batch.get_data(w)
        alone = fl.linearize(data.model, data)
        for name in ("A", "B", "switching"):
            assert (
                getattr(alone, name).tobytes() == getattr(found, name)[w].tobytes() == getattr(two, name)[w].tobytes()
            )


def test_activations_use_finite_differences_of_steps(rng):
    model = moving(JOINTS)
    data = fl.Data(model)
    found, steps = fl.linearize(model, data), fl.linearize(model, data, method="finite_difference")
    assert found.A.tobytes() == steps.A.tobytes() and np.isnan(found.switching)
    with_gravity, nv = fl.linearize(model, data, parameters=["opt.gravity"]), model.nv
    by_gravity = with_gravity.P["opt_gravity"]
    assert with_gravity.A.tobytes() == steps.A.tobytes() and by_gravity.shape == (2 * nv + model.na, 3)
    ends, down = [], model.opt.gravity[2]
    for change in (1e-3, -1e-3):
        model.opt.gravity[2], end = down + change, copy.copy(data)
        fl.step(model, end)
        ends.append(end.qvel.copy())
    assert np.abs(by_gravity[nv : 2 * nv, 2] - np.subtract(*ends) / 2e-3).max() < 1e-6 * np.abs(by_gravity).max()


@pytest.mark.parametrize("angle", [1e-3, 0.2, 0.5, 2.0, 3.0, 5.0, 7.5])
def test_rotation_rates_depend_on_angle_and_velocity(angle, rng):
    """Covers angles from the range of the series to more than a full turn; full turns do not count."""
    model = fl.load("<mujoco><worldbody><body><joint type='ball'/><geom size='1'/></body></worldbody></mujoco>")
    axis = rng.normal(size=3)
    u, w, eps = angle * axis / np.linalg.norm(axis), rng.normal(size=3), 1e-5
    for du, dw in (*((e, 0 * e) for e in np.eye(3)), *((0 * e, e) for e in np.eye(3))):
        ends = [tuple(rotation_rate(Vec3(*u + s * du), Vec3(*w + s * dw))) for s in (eps, -eps)]
        _, found = split_tangents(rotation_rate(seed(Vec3(*u), Vec3(*du)), seed(Vec3(*w), Vec3(*dw))), 1)
        assert np.abs(np.array(found) - np.subtract(*ends) / (2 * eps)).max() < 1e-8
        qpos = [fl.integrate_pos(model, [1, 0, 0, 0], u + s * du, 1.0) for s in (eps, -eps)]
        moved = fl.differentiate_pos(model, 2 * eps, qpos[1], qpos[0])
        assert np.abs(np.array(right_jacobian(Vec3(*u), Vec3(*du))) - moved).max() < 1e-8
