"""Fluid forces: laws of drag and lift, closed forms, and MuJoCo, with derivatives and every integrator."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.dynamics.integrator.velocity_derivative import passive_vel, smooth_vel
from featherlane.engine.model.enums import Enable
from featherlane.engine.simulation.step.forward import forward, step
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.errors import ModelError
from oracles import smooth
from oracles.smooth import dense_rate, differences
from scenes.fluids import BOXES, ELLIPSOIDS, INTEGRATORS, MEDIA, scene
from scenes.states import kicked

FORCE = 1e-11  # relative, against MuJoCo: wrenches are summed along the tree here, body by body there
RATE = 1e-11  # relative: composite matrices here, Jacobians of every body there
NEXT = 1e-10  # relative, of velocities: the same, then a solve with M - h D
DIFFERENCE = 1e-6  # relative: central differences of |v| v, whose third derivative jumps
NO_WORK = 1e-12  # relative to the power of drag: rounding
STEADY = 1e-10  # relative: a sinking sphere, after many time constants
SINGLE = 2e-4  # relative: float32 through a tree of depth 4
SHAPES = {"ellipsoids": ELLIPSOIDS, "boxes": BOXES}


def entered(model, rng, velocity=2.0):
    """Returns a `Data` in a random state, after forward."""
    data = fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng, velocity=velocity)
    data.ctrl = rng.standard_normal(model.nu)
    fl.forward(model, data)
    return data


def oracle(mj, state):
    data = mujoco.MjData(mj)
    for name, value in state.items():
        getattr(data, name)[...] = value
    return data


# ---- MuJoCo ----------------------------------------------------------------------------------------------------------
@pytest.mark.covers(
    "passive force", lambda: [scene(medium, "implicit", shape) for medium in MEDIA for shape in SHAPES.values()]
)
@pytest.mark.parametrize("width", smooth.WIDTHS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("medium", MEDIA)
def test_forces_and_their_rates_equal_mujoco(rng, medium, shape, width):
    model = fl.load(scene(medium, "implicit", SHAPES[shape]))
    mj, tile = model.to_mujoco(), Workspace(model, width)
    states = [smooth.random_state(model, rng) for _ in range(width)]
    for k, state in enumerate(states):
        smooth.fill(tile, k, **state)
    tile.run(forward)
    force = {name: tile.arrays[name].copy() for name in ("qfrc_fluid", "qfrc_passive")}
    tile.run(smooth_vel)
    for k, state in enumerate(states):
        data = oracle(mj, state)
        mujoco.mj_forward(mj, data)
        for name, rows in force.items():
            assert smooth.relative(rows[: model.nv, k], getattr(data, name)) < FORCE, name
        mujoco.mj_implicit(mj, data)
        assert smooth.relative(tile.arrays["qDeriv"][: model.nD, k], data.qDeriv) < RATE
    assert data.qfrc_fluid.any() == (medium != "vacuum")


@pytest.mark.parametrize("width", smooth.WIDTHS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_the_next_state_equals_mujoco(rng, integrator, shape, width):
    for medium in ("water", "oil"):
        model = fl.load(scene(medium, integrator, SHAPES[shape]))
        mj, tile = model.to_mujoco(), Workspace(model, width)
        states = [smooth.random_state(model, rng) for _ in range(width)]
        for k, state in enumerate(states):
            smooth.fill(tile, k, **state)
        tile.run(step)
        for k, state in enumerate(states):
            data = oracle(mj, state)
            mujoco.mj_step(mj, data)
            for name in ("qvel", "qpos"):
                error = smooth.relative(tile.arrays[name][: getattr(data, name).size, k], getattr(data, name))
                assert error < NEXT, (medium, name)


@pytest.mark.parametrize("flags", ['spring="disable"', 'damper="disable"', 'spring="disable" damper="disable"'])
@pytest.mark.parametrize("integrator", ["implicit", "implicitfast", "discrete"])
def test_flags_act_as_in_mujoco(rng, integrator, flags):
    model = fl.load(scene(integrator=integrator, flags=flags))
    data = entered(model, rng)
    expected = oracle(model.to_mujoco(), {name: getattr(data, name) for name in ("qpos", "qvel", "ctrl")})
    mujoco.mj_step(model.to_mujoco(), expected)
    assert data.qfrc_fluid.any() == expected.qfrc_fluid.any() == (flags.count("disable") < 2)
    fl.step(model, data)
    assert smooth.relative(data.qvel, expected.qvel) < NEXT


@pytest.mark.parametrize("name", ["gymnasium/swimmer", "dm_control/swimmer"])
def test_swimmers_swim_as_in_mujoco(name, real_model):
    mj = mujoco.MjModel.from_xml_path(str(real_model(name)))
    mj.opt.tolerance, mj.opt.iterations, mj.opt.ls_iterations = 0, 100, 100
    mj.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    model, expected, rng = fl.load(mj), mujoco.MjData(mj), np.random.default_rng(0)
    data = fl.Data(model)
    expected.qvel[:] = rng.standard_normal(model.nv)
    for _ in range(100):
        expected.ctrl[:] = data.ctrl = rng.uniform(-1, 1, model.nu)
        for field in ("qpos", "qvel", "qacc_warmstart"):
            setattr(data, field, getattr(expected, field))
        mujoco.mj_step(mj, expected)
        fl.step(model, data)
        assert smooth.relative(data.qfrc_fluid, expected.qfrc_fluid) < FORCE
        assert smooth.relative(data.qvel, expected.qvel) < NEXT
    assert expected.qfrc_fluid.any()


@pytest.mark.parametrize("integrator", ["Euler", "implicit", "implicitfast", "discrete"])
def test_inverse_dynamics_recovers_applied_forces(rng, integrator):
    model = fl.load(scene(integrator=integrator))
    model.opt.enableflags = Enable.INVDISCRETE
    data = entered(model, rng)
    data.ctrl = 0
    data.qfrc_applied = rng.standard_normal(model.nv)
    before = data.qvel.copy()
    position = data.qpos.copy()
    fl.step(model, data)
    acceleration = (data.qvel - before) / model.opt.timestep
    data.qpos, data.qvel, data.qacc = position, before, acceleration
    fl.inverse(model, data)
    assert smooth.relative(data.qfrc_inverse, data.qfrc_applied) < 1e-8  # the difference of velocities over h = 5e-3


# ---- laws ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", SHAPES)
def test_rates_are_difference_quotients(rng, shape):
    model = fl.load(scene(shape=SHAPES[shape]))
    data = entered(model, rng)

    def force():
        fl.stages.com_vel(model, data)
        fl.stages.passive(model, data)
        return data.qfrc_passive.copy()

    expected = differences(model, data, force)
    force()
    fl.stages.passive_vel(model, data)
    assert smooth.relative(dense_rate(model, data.qDeriv), expected) < DIFFERENCE


@pytest.mark.parametrize("shape", SHAPES)
def test_a_fluid_at_rest_dissipates_energy(rng, shape):
    model = fl.load(scene(shape=SHAPES[shape], wind="0 0 0"))
    for _ in range(10):
        data = entered(model, rng)
        assert data.qvel @ data.qfrc_fluid < 0


def test_lift_and_added_mass_do_no_work(rng):
    model = fl.load(scene("ideal", wind="0 0 0"))
    data = entered(model, rng)
    drag = data.qvel @ data.qfrc_fluid
    boxes = np.array([not any(model.geom_fluid[model.geom_bodyid == b, 0]) for b in range(model.nbody)])
    model.geom_fluid[:, 1:4] = 0  # no drag, and the bodies without ellipsoids are points
    model.body_inertia[boxes] = 1e-14
    fl.stages.passive(model, data)
    assert np.abs(data.qfrc_fluid).max() > 0.1
    assert abs(data.qvel @ data.qfrc_fluid) < NO_WORK * abs(drag)


def test_a_body_moving_with_the_wind_has_no_fluid_force(rng):
    model = fl.load(scene(wind=".3 .2 -.1"))
    data = fl.Data(model)
    data.qpos, _ = kicked(model, rng)
    free = model.jnt_type == 0
    for v in model.jnt_dofadr[free]:
        data.qvel[v : v + 3] = model.opt.wind
    fl.forward(model, data)
    moved = np.repeat(free, np.where(free, 6, np.where(model.jnt_type == 1, 3, 1)))
    assert np.abs(data.qfrc_fluid[moved]).max() < 1e-13  # forces are 10 N and more at these speeds


SINKING = """
<mujoco><option density="900" viscosity="1.5" integrator="implicitfast" timestep=".01"/><worldbody><body>
  <joint name="down" type="slide" axis="0 0 1"/><geom size=".07" mass="4" {}/></body></worldbody></mujoco>
"""


def sinking_speed(linear, quadratic, weight):
    """Returns the positive root of quadratic v^2 + linear v = weight."""
    return (np.sqrt(linear**2 + 4 * quadratic * weight) - linear) / (2 * quadratic)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_sphere_sinks_at_its_terminal_velocity(shape):
    model = fl.load(SINKING.format(SHAPES[shape]))
    rho, beta, r, weight = 900.0, 1.5, 0.07, 4 * 9.81
    if shape == "ellipsoids":
        expected = sinking_speed(6 * np.pi * beta * r, rho * 0.5 * np.pi * r**2, weight)  # C blunt is 0.5
    else:
        side = r * np.sqrt(2.4)  # of the cube with the same moments of inertia
        expected = sinking_speed(3 * np.pi * beta * side, 0.5 * rho * side**2, weight)
    data = fl.Data(model)
    fl.step(model, data, 3000)
    assert data.qvel[0] == pytest.approx(-expected, rel=STEADY)


# ---- worlds and options ----------------------------------------------------------------------------------------------
def stepped(model, states, densities, integrator, width):
    """Returns velocities after two steps of worlds with per-world densities, in tiles of a width."""
    model.opt.integrator = integrator
    batch = fl.Batch(model, len(states), 1)
    batch.expand("opt.density")[:, 0] = densities
    batch.expand("opt.viscosity")[:, 0] = 0.0
    for k, state in enumerate(states):
        batch.qpos[k], batch.qvel[k] = state
    if width == 1:
        for k in range(len(states)):
            batch.step(2, ids=[k])
    else:
        batch.step(2)
    return batch.qvel.copy()


@pytest.mark.parametrize("way", ["crb", "aba"])
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_world_is_bitwise_equal_for_any_fluid_of_other_worlds(rng, integrator, way):
    text = scene()
    model = fl.load(text if way == "crb" else text[: text.index('<body name="lone"')] + "</worldbody></mujoco>")
    model.opt.forward_dynamics = way
    states = [kicked(model, rng) for _ in range(5)]
    densities = np.array([0.0, 800.0, 0.0, 1.2, 0.0])
    together, alone = (stepped(model, states, densities, integrator, width) for width in (8, 1))
    assert np.array_equal(together, alone)
    vacuum = stepped(model, states, np.zeros(5), integrator, 8)
    assert np.array_equal(together[densities == 0], vacuum[densities == 0])
    assert not np.array_equal(together[1], vacuum[1])


def test_fluid_and_shape_can_differ_by_world(rng):
    model = fl.load(scene())
    batch, state = fl.Batch(model, 3, 1), kicked(model, rng)
    batch.qpos[:], batch.qvel[:] = state
    for name, values in (("opt.density", [0, 900, 3]), ("opt.viscosity", [0.1, 0, 2])):
        batch.expand(name)[:, 0] = values
    batch.expand("opt.wind")[:] = rng.standard_normal((3, 3))
    batch.expand("geom_fluid")[1, :, 0] = 0  # boxes in this world
    batch.bind("qfrc_fluid")
    batch.forward()
    for k in range(3):
        alone = fl.Data(batch.get_model(k))
        alone.qpos, alone.qvel = state
        fl.forward(alone.model, alone)
        assert np.array_equal(batch.bind("qfrc_fluid")[k], alone.qfrc_fluid)
        expected = oracle(alone.model.to_mujoco(), {"qpos": state[0], "qvel": state[1]})
        mujoco.mj_forward(alone.model.to_mujoco(), expected)
        assert smooth.relative(alone.qfrc_fluid, expected.qfrc_fluid) < FORCE


def test_the_fluid_can_change_between_steps(rng):
    model = fl.load(scene("vacuum"))
    data = entered(model, rng)
    assert not data.qfrc_fluid.any() and model.opt.density == 0
    model.opt.density = 1000
    fl.forward(model, data)
    thick = data.qfrc_fluid.copy()
    model.opt_density[0] = 500  # the underlying array
    fl.forward(model, data)
    assert np.allclose(2 * data.qfrc_fluid, thick, rtol=1e-12)
    model.opt.density = 0
    fl.forward(model, data)
    assert not data.qfrc_fluid.any()
    with pytest.raises(ModelError):
        model.opt.density = -1


def test_added_mass_follows_the_size(rng):
    model = fl.load(scene())
    model.geom_size[0] *= 2
    fl.set_const(model)
    expected = model.to_mujoco()
    mujoco.mj_setConst(expected, mujoco.MjData(expected))
    assert np.array_equal(model.geom_fluid, expected.geom_fluid)
    batch = fl.Batch(fl.load(scene()), 2, 1)
    batch.expand("geom_size")[1, 0] *= 2
    batch.set_const()
    assert np.array_equal(batch.expanded("geom_fluid")[1], model.geom_fluid)
    plain = fl.Batch(fl.load(scene(shape=BOXES)), 2, 1)
    plain.set_const()
    assert plain.expanded("geom_fluid") is None


def test_single_precision_follows(rng):
    model = fl.load(scene(integrator="implicitfast"))
    states = [kicked(model, rng) for _ in range(16)]
    force = []
    for dtype in (np.float64, np.float32):
        batch = fl.Batch(model, 16, 1, dtype=dtype)
        for k, (qpos, qvel) in enumerate(states):
            batch.qpos[k], batch.qvel[k] = qpos, qvel
        bound = batch.bind("qfrc_fluid")
        batch.step()
        force.append(bound.astype(np.float64))
    scale = np.abs(force[0]).max(1)
    assert (np.abs(force[1] - force[0]).max(1) < SINGLE * scale).all()


def test_derivatives_of_passive_forces_only(rng):
    model = fl.load(scene("vacuum"))
    tile = Workspace(model, 1)
    smooth.fill(tile, 0, **smooth.random_state(model, rng))
    tile.run(forward)
    tile.run(passive_vel)
    rate = tile.arrays["qDeriv"][: model.nD, 0]
    assert np.count_nonzero(rate) == 5  # two hinges and the three axes of a ball are damped


def test_a_bound_fluid_force_is_zero_without_a_fluid(rng):
    batch = fl.Batch(fl.load(scene()), 2, 1)
    batch.qvel[:] = rng.standard_normal(batch.qvel.shape)
    force = batch.bind("qfrc_fluid")
    batch.step()
    assert force.any()
    batch.model.opt.density = batch.model.opt.viscosity = 0
    batch.step()
    assert not force.any()
