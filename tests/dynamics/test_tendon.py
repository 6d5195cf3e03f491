"""Lengths, Jacobians and velocities of tendons: laws, and MuJoCo."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.step.forward import forward_position, forward_velocity
from featherlane.engine.simulation.tile.workspace import Workspace
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


WINCH = """<mujoco><worldbody>
<geom name="drum" type="{kind}" size=".05 .02" euler="90 0 0" contype="0" conaffinity="0" pos="{at}"/>
<site name="start" pos="{at}"/><site name="side" pos="{at}"/>
<body pos="{at}"><joint axis="0 1 0"/><geom size=".01" pos=".05 0 0" mass="1"/><site name="end" pos="{end} 0 0"/></body>
</worldbody><tendon><spatial>
<site site="start"/><geom geom="drum" {side}/><site site="end"/></spatial></tendon></mujoco>"""
RADIUS = 0.05
TURNS = np.linspace(-3.1, 3.1, 2001)


def winch(kind, start, side=None, end=RADIUS, at=0.0, dtype="float64"):
    """Returns the lengths of a tendon from `start` around a drum to a site on its surface, by the angle of the site."""
    text = WINCH.format(kind=kind, at="0 0 0", end=repr(end), side="" if side is None else 'sidesite="side"')
    spec = mujoco.MjSpec.from_string(text)
    for name, place in (("start", start), ("side", (0, 0, 0) if side is None else side)):
        spec.site(name).pos = place
    for element in (*spec.worldbody.sites, *spec.worldbody.geoms, *spec.worldbody.bodies):
        element.pos = np.asarray(element.pos) + at
    batch = fl.Batch(fl.load(spec), len(TURNS), dtype=dtype)
    batch.qpos[:, 0] = TURNS
    batch.bind("ten_length")
    batch.forward()
    return np.asarray(batch.ten_length[:, 0], dtype=np.float64)


def shortest(start, end):
    """Returns the length of the shortest path between two points of the plane outside of a circle around the origin."""
    distance = np.linalg.norm(np.asarray(start) - end)
    along = np.clip(np.dot(start, np.subtract(start, end)) / max(distance, 1e-300) ** 2, 0, 1)
    nearest = np.linalg.norm(np.asarray(start) - along * np.subtract(start, end))
    lengths = [max(np.linalg.norm(point), RADIUS) for point in (start, end)]
    angle = abs(np.angle(complex(*start) / complex(*end)))
    arc = angle - sum(np.arccos(np.minimum(RADIUS / np.asarray(lengths), 1.0)))
    if nearest > RADIUS * (1 + 1e-9) or arc < 0.0:
        return distance
    return sum(np.sqrt(np.square(lengths) - RADIUS**2)) + RADIUS * arc


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("end", [RADIUS, RADIUS * (1 - 5e-7)], ids=["on", "typed"])
@pytest.mark.parametrize("start", [(-0.2, 0, -0.3), (0.05 * np.cos(2), 0, 0.05 * np.sin(2)), (-0.05, 0, 0)])
@pytest.mark.parametrize("kind", ["cylinder", "sphere"])
def test_an_end_on_the_surface_follows_it(kind, start, end, dtype):
    exact = [shortest((start[0], start[2]), RADIUS * np.array([np.cos(q), -np.sin(q)])) for q in TURNS]
    np.testing.assert_allclose(winch(kind, start, None, end, dtype=dtype), exact, atol=2e-6 * RADIUS)


def test_an_end_on_the_surface_follows_it_far_from_the_origin():
    exact = [shortest((-0.2, -0.3), RADIUS * np.array([np.cos(q), -np.sin(q)])) for q in TURNS]
    found = winch("cylinder", (-0.2, 0, -0.3), at=7.0, dtype="float32")
    np.testing.assert_allclose(found, exact, atol=1e-5)  # a float32 rounds 7 m to 5e-7 m


@pytest.mark.parametrize("kind", ["cylinder", "sphere"])
def test_a_side_site_on_the_surface_is_outside(kind):
    start = (-0.2, 0, -0.3)
    on, above = (winch(kind, start, (0, 0, height)) for height in (RADIUS, 2 * RADIUS))
    np.testing.assert_allclose(on, above, atol=1e-12)


@pytest.mark.parametrize("kind", ["cylinder", "sphere"])
def test_opposite_ends_on_the_surface_are_half_a_circle_apart(kind):
    found = winch(kind, (-RADIUS, 0, 0))[np.argmin(np.abs(TURNS))]
    assert found == pytest.approx(np.pi * RADIUS, abs=1e-12)


# ---- a path that moves with its body ---------------------------------------------------------------------------------
LOOSE = """
<mujoco><worldbody>
<body name="arm" pos=".1 .2 .3"><joint type="ball"/><geom size=".1" mass="1"/>
  <site name="start" pos=".1 .02 .03"/><site name="end" pos=".31 .17 -.23"/>
  <body pos=".4 .1 0"><joint axis="0 1 0"/><geom name="post" type="{}" size=".02 .1" pos="0 0 {}"/></body></body>
</worldbody><tendon><spatial limited="true" range=".5 .6">
<site site="start"/><geom geom="post"/><site site="end"/></spatial></tendon></mujoco>"""


@pytest.mark.parametrize("kind", ["sphere", "cylinder"])
def test_a_straight_path_between_sites_of_one_body_moves_nothing(kind, rng):
    """Its limit has no row, because rounding of the Jacobian would be divided by an inverse inertia of 0."""
    model = fl.load(LOOSE.format(kind, "1"))
    oracle = model.to_mujoco()
    for _ in range(STATES):
        data, expected = fl.Data(model), mujoco.MjData(oracle)
        data.qpos[:], data.qvel[:] = kicked(model, rng, 1.0)
        expected.qpos[:], expected.qvel[:] = data.qpos, data.qvel
        fl.forward(model, data)
        mujoco.mj_forward(oracle, expected)
        assert data.ten_length[0] < 0.5 and expected.ten_wrapnum[0] == 2
        assert not np.any(data.ten_J) and not np.any(expected.ten_J)
        assert data.nefc == expected.nefc == 0
        assert relative(data.qacc, expected.qacc) <= EXACT
