"""Lengths, Jacobians and velocities of tendons: laws, and MuJoCo."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.simulation.step.forward import forward_position, forward_velocity
from featherlane.simulation.tile.workspace import Workspace
from oracles.smooth import WIDTHS, fill, relative
from scenes.states import kicked
from scenes.tendons import FIXED, PATHS, scene

EXACT = 1e-11  # the bound on lengths and Jacobians; rounding stays below 1e-13 here
STEP, SLOPE = (
    1e-6,
    1e-7,
)  # finite differences; MuJoCo's inside wrapping, used here, stops 3e-7 from the shortest path
STATES = 6
# models with tendons in the wheels
WHEELS = ("gymnasium_robotics/mujoco/assets/humanoid", "mjx/sensor/sensor") + tuple(
    f"mjx/tendon/{name}"
    for name in "fixed fixed_site fixed_site_wrap pulley_fixed_site_wrap pulley_site pulley_site_wrap pulley_wrap site "
    "site_wrap wrap_sidesite".split()
)


def worlds(model, rng, width, kick=0.4):
    """Returns a workspace of random states and MuJoCo's data in each."""
    ws, oracle, found = Workspace(model, width), model.to_mujoco(), []
    for k in range(width):
        data = mujoco.MjData(oracle)
        data.qpos[:], data.qvel[:] = kicked(model, rng, kick)
        fill(ws, k, qpos=data.qpos, qvel=data.qvel)
        mujoco.mj_forward(oracle, data)
        found.append(data)
    return ws, found


@pytest.mark.covers("tendon", lambda: [scene()])
@pytest.mark.parametrize("width", WIDTHS)
def test_lengths_jacobians_and_rates_equal_mujoco(rng, width):
    model, wraps = fl.load(scene()), set()
    for _ in range(STATES):
        ws, found = worlds(model, rng, width)
        ws.run(forward_position)
        ws.run(forward_velocity)
        for k, data in enumerate(found):
            wraps |= set(enumerate(data.ten_wrapnum.tolist()))
            for name in ("ten_length", "ten_J", "ten_velocity"):
                assert relative(ws.arrays[name][:, k], getattr(data, name)) <= EXACT, name
    # the path wraps every kind of geom in some states and not in others
    if width > 1:
        several = {i for i, _ in wraps if sum(tendon == i for tendon, _ in wraps) > 1}
        names = [*PATHS, *FIXED]
        assert {names[i] for i in several} >= {"round", "sided", "inside", "pulleys", "post"}


def test_a_step_without_other_frames_gives_the_same_lengths(rng):
    model = fl.load(scene())
    lean = Workspace(model, 8)
    for size in ("want_frames", "want_all"):
        lean.record.set_size(size, 0)
    ws, _ = worlds(model, rng, 8)
    for k in range(8):
        fill(lean, k, qpos=ws.arrays["qpos"][:, k], qvel=ws.arrays["qvel"][:, k])
    for space in (ws, lean):
        space.run(forward_position)
    np.testing.assert_array_equal(ws.arrays["ten_length"], lean.arrays["ten_length"])
    np.testing.assert_array_equal(ws.arrays["ten_J"], lean.arrays["ten_J"])


def test_a_world_is_bitwise_equal_in_any_batch(rng):
    model = fl.load(scene())
    ws, _ = worlds(model, rng, 8)
    ws.run(forward_position)
    for k in range(8):
        alone = Workspace(model, 1)
        fill(alone, 0, qpos=ws.arrays["qpos"][:, k])
        alone.run(forward_position)
        np.testing.assert_array_equal(alone.arrays["ten_J"][:, 0], ws.arrays["ten_J"][:, k])
        np.testing.assert_array_equal(alone.arrays["ten_length"][:, 0], ws.arrays["ten_length"][:, k])


def test_the_jacobian_is_the_slope_of_the_length(rng):
    model = fl.load(scene())
    data = fl.Data(model)

    def lengths(qpos):
        data.qpos = qpos
        fl.stages.forward_position(model, data)
        return data.ten_length.copy()

    for _ in range(3):
        qpos, direction = kicked(model, rng, 0.4)
        ends = [fl.integrate_pos(model, qpos, direction, s * STEP) for s in (1.0, -1.0)]
        slope = (lengths(ends[0]) - lengths(ends[1])) / (2 * STEP)
        data.qvel, data.qpos = direction, qpos
        fl.stages.forward_position(model, data)
        fl.stages.forward_velocity(model, data)
        assert np.abs(data.ten_velocity - slope).max() <= 10 * SLOPE


def test_a_side_site_makes_a_tendon_wrap_more_than_half_a_turn():
    """Both end points and the side site are on a circle about a post: the arc over the site, for any length."""
    for angle in (30.0, 150.0, 220.0, 330.0):
        a, s = np.radians(angle), np.radians(angle / 2)
        model = fl.load(
            f"""<mujoco><worldbody><body><joint axis="0 0 1"/><geom name="post" type="cylinder" size=".1 1"/></body>
            <site name="a" pos=".5 0 0"/><site name="b" pos="{0.5 * np.cos(a)} {0.5 * np.sin(a)} 0"/>
            <site name="side" pos="{np.cos(s)} {np.sin(s)} 0"/></worldbody><tendon><spatial><site site="a"/>
            <geom geom="post" sidesite="side"/><site site="b"/></spatial></tendon></mujoco>"""
        )
        data = fl.Data(model)
        fl.stages.forward_position(model, data)
        tangent, beta = np.sqrt(0.5**2 - 0.1**2), np.arccos(0.1 / 0.5)
        wrapped = a - 2 * beta
        expected = 2 * tangent + 0.1 * wrapped if wrapped > 0 else 2 * 0.5 * np.sin(a / 2)
        assert abs(data.ten_length[0] - expected) <= 1e-14


@pytest.mark.slow
@pytest.mark.parametrize("name", WHEELS)
def test_real_models_equal_mujoco(real_model, rng, name):
    mj = mujoco.MjModel.from_xml_path(str(real_model(name)))
    data = mujoco.MjData(mj)
    model = fl.load(mj)
    ws = Workspace(model, 8)
    for k in range(8):
        data.qpos[:], data.qvel[:] = kicked(model, rng, 0.3)
        fill(ws, k, qpos=data.qpos, qvel=data.qvel)
    ws.run(forward_position)
    ws.run(forward_velocity)
    for k in range(8):
        data.qpos[:], data.qvel[:] = ws.arrays["qpos"][:, k], ws.arrays["qvel"][:, k]
        mujoco.mj_forward(mj, data)
        for field in ("ten_length", "ten_J", "ten_velocity"):
            assert relative(ws.arrays[field][:, k], getattr(data, field)) <= EXACT, field
