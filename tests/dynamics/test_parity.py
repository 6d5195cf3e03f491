"""Every field of the smooth dynamics against MuJoCo, from random states, with forces and controls."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from featherlane.engine.dynamics.body.newton_euler import rne_acc
from featherlane.engine.dynamics.integrator.integrate import euler, implicitfast
from featherlane.engine.dynamics.integrator.runge_kutta import rk4_finish, rk4_stage, rk4_start
from featherlane.engine.model.load import load
from featherlane.engine.simulation.tile.workspace import Workspace
from oracles import smooth

TOLERANCE = 1e-12  # the bound for M, qfrc_bias and qacc_smooth; rounding alone stays below 1e-13 here
FIELDS = """xpos xquat xmat xipos ximat xanchor xaxis geom_xpos geom_xmat site_xpos site_xmat subtree_com cdof cinert
    crb M qLD qLDiagInv actuator_length energy cvel cdof_dot actuator_velocity qfrc_bias qfrc_spring qfrc_damper
    qfrc_gravcomp qfrc_passive actuator_force qfrc_actuator qfrc_smooth qacc_smooth""".split()
DISABLE = mujoco.mjtDisableBit
FLAGS = (0, DISABLE.mjDSBL_SPRING, DISABLE.mjDSBL_DAMPER, DISABLE.mjDSBL_SPRING | DISABLE.mjDSBL_DAMPER)
MORE_FLAGS = (DISABLE.mjDSBL_GRAVITY, DISABLE.mjDSBL_ACTUATION, DISABLE.mjDSBL_EULERDAMP, DISABLE.mjDSBL_CLAMPCTRL)
GROUP_3 = 1 << 3
INTEGRATORS = {"Euler": 0, "RK4": 1, "implicitfast": 3}


def pair(rng, width, flags=0, integrator="Euler", groups=0):
    """Returns a workspace of random worlds and an oracle of each."""
    model = load(smooth.XML)
    model.opt.disableflags = int(flags)
    model.opt.disableactuator = groups
    oracle = model.to_mujoco()
    oracle.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    oracle.opt.integrator = INTEGRATORS[integrator]
    ws, worlds = Workspace(model, width), []
    for k in range(width):
        state, data = smooth.random_state(model, rng), mujoco.MjData(oracle)
        smooth.fill(ws, k, **state)
        for name, value in state.items():
            getattr(data, name)[...] = value
        worlds.append(data)
    return ws, oracle, worlds


def assert_equal(ws, worlds, fields, tolerance=TOLERANCE):
    for name in fields:
        for k, data in enumerate(worlds):
            expected = np.ravel(getattr(data, name))
            error = smooth.relative(ws.arrays[name][: expected.size, k], expected)
            assert error <= tolerance, f"{name} of world {k}: {error:.1e}"


@pytest.mark.parametrize("width", smooth.WIDTHS)
@pytest.mark.parametrize("flags", FLAGS + MORE_FLAGS)
def test_smooth_dynamics_equal_mujoco(rng, width, flags):
    ws, oracle, worlds = pair(rng, width, flags)
    smooth.forward(ws)
    for data in worlds:
        mujoco.mj_forward(oracle, data)
    assert_equal(ws, worlds, FIELDS)


def test_actuators_of_disabled_groups_do_nothing(rng):
    ws, oracle, worlds = pair(rng, 8, groups=GROUP_3)
    smooth.forward(ws)
    for data in worlds:
        mujoco.mj_forward(oracle, data)
    assert_equal(ws, worlds, ["actuator_force", "qfrc_actuator", "qacc_smooth"])


@pytest.mark.parametrize("width", smooth.WIDTHS)
def test_rne_with_acceleration_equals_mujoco(rng, width):
    ws, oracle, worlds = pair(rng, width)
    smooth.forward(ws)
    ws.run(rne_acc)
    for k, data in enumerate(worlds):
        mujoco.mj_forward(oracle, data)
        data.qacc[:], expected = data.qacc_smooth, np.zeros(oracle.nv)
        mujoco.mj_rne(oracle, data, 1, expected)
        assert smooth.relative(ws.arrays["qvec"][:, k], expected) <= TOLERANCE


def advance(ws, integrator):
    """Computes one step of an integrator from evaluated accelerations."""
    if integrator != "RK4":
        return ws.run({"Euler": euler, "implicitfast": implicitfast}[integrator])
    ws.run(rk4_start)
    for k in (1, 2, 3):
        ws.run(rk4_stage, k)
        smooth.forward(ws)
    ws.run(rk4_finish)


@pytest.mark.parametrize("width", smooth.WIDTHS)
@pytest.mark.parametrize("flags", FLAGS + MORE_FLAGS[:3])
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_step_equals_mujoco(rng, width, flags, integrator):
    ws, oracle, worlds = pair(rng, width, flags, integrator)
    smooth.forward(ws)
    advance(ws, integrator)
    for data in worlds:
        mujoco.mj_step(oracle, data)
    assert_equal(ws, worlds, ["qpos", "qvel", "time", "qacc_warmstart"])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_non_finite_control_acts_as_zero_and_is_reported(rng, bad):
    ws, oracle, worlds = pair(rng, 8, DISABLE.mjDSBL_CLAMPCTRL)
    ws.arrays["ctrl"][1, 3] = worlds[3].ctrl[1] = bad
    smooth.forward(ws)
    for data in worlds:
        mujoco.mj_forward(oracle, data)
    assert_equal(ws, worlds, ["actuator_force", "qacc_smooth"])
    np.testing.assert_array_equal(ws.arrays["badctrl"][0], np.arange(8) == 3)
    counts = [data.warning[mujoco.mjtWarning.mjWARN_BADCTRL].number for data in worlds]
    np.testing.assert_array_equal(ws.arrays["warning"][4], counts)


def test_mocap_bodies_have_the_assigned_pose(rng):
    ws, oracle, worlds = pair(rng, 8)
    for k, data in enumerate(worlds):
        data.mocap_pos[0], data.mocap_quat[0] = rng.standard_normal(3), rng.standard_normal(4)
        smooth.fill(ws, k, mocap_pos=data.mocap_pos, mocap_quat=data.mocap_quat)
        mujoco.mj_forward(oracle, data)
    smooth.forward(ws)
    assert_equal(ws, worlds, ["xpos", "xquat", "site_xpos", "site_xmat"])
