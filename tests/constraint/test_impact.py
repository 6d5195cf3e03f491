"""Restitution and static friction under the contact models lcp and coulomb: laws with known results."""

from __future__ import annotations

import numpy as np
import pytest

import featherlane as fl

BALL = """
<mujoco><option timestep="{h}"/><worldbody><geom type="plane" size="5 5 1"/>
<body pos="0 0 {z}"><freejoint/><geom {shape}/></body></worldbody></mujoco>"""
SLED = """
<mujoco><option timestep=".001" gravity="0 0 -10"/><worldbody>
<geom type="plane" size="5 5 1" friction=".3" {belt}/>
<body pos="0 0 .1"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
  <geom type="box" size=".1 .1 .1" mass="1" friction=".3"/></body>
</worldbody></mujoco>"""
MODELS = pytest.mark.parametrize("contact_model", ["lcp", "coulomb"])


def ball(contact_model: str, e: float, shape: str = 'size=".1"', z: float = 0.0999) -> fl.Data:
    """Returns a body that touches a plane, with a coefficient of restitution."""
    model = fl.load(BALL.format(h=0.001, z=z, shape=shape))
    model.opt.contact_model = contact_model
    model.geom_restitution[1] = e
    return fl.Data(model)


def sled(contact_model: str, static: float, belt: str = "") -> fl.Data:
    """Returns a box of 1 kg at rest on a plane: mu = 0.3, a normal force of 10 N."""
    model = fl.load(SLED.format(belt=belt))
    model.opt.contact_model = contact_model
    model.geom_friction_static[:], model.geom_stribeck_vel[:] = static, 0.02
    data = fl.Data(model)
    data.qpos[1] = -0.0002
    fl.step(model, data, 300)
    return data


@MODELS
@pytest.mark.parametrize("e", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("shape", ['size=".1"', 'type="box" size=".1 .1 .1"'])
def test_the_separation_speed_is_the_approach_speed_times_restitution(contact_model, e, shape):
    data = ball(contact_model, e, shape)
    data.qvel[2] = -2.0
    fl.step(data.model, data)
    np.testing.assert_allclose(data.qvel[2], 2.0 * e, atol=2e-5 * (1.0 + e) * 2.0)
    np.testing.assert_allclose(data.qvel[3:], 0.0, atol=1e-6)


@MODELS
def test_a_static_coefficient_below_the_sliding_one_has_no_effect(contact_model):
    ends = []
    for static in (0.0, 0.1, 0.3):
        data = sled(contact_model, static)
        data.qfrc_applied[0] = 2.9  # below mu times the normal force, above 0.1 times
        fl.step(data.model, data, 50)
        ends.append(data.qpos.tobytes())
        assert abs(data.qvel[0]) < 1e-4
    assert len(set(ends)) == 1


@MODELS
def test_a_slow_approach_does_not_rebound(contact_model):
    data = ball(contact_model, 0.8)
    data.model.geom_restitution_vel[:] = 0.5
    ends = []
    for speed in (0.49, 0.51):
        data.reset()
        data.qvel[2] = -speed
        fl.step(data.model, data)
        ends.append(data.qvel[2])
    assert ends[0] < 0.3 * 0.49
    np.testing.assert_allclose(ends[1], 0.8 * 0.51, atol=4e-5)


@MODELS
def test_an_elastic_ball_returns_to_its_height(contact_model):
    data, heights = ball(contact_model, 1.0, z=0.6), []
    for _ in range(3000):
        fl.step(data.model, data)
        heights.append(data.qpos[2])
    later = np.array(heights[400:])
    np.testing.assert_allclose([later[:1000].max(), later[1000:].max()], 0.6, rtol=3e-3)


@MODELS
def test_the_geom_of_higher_priority_sets_restitution_and_static_friction(contact_model):
    model = fl.load(BALL.format(h=0.001, z=0.0999, shape='size=".1" priority="1"'))
    model.opt.contact_model = contact_model
    model.geom_restitution[:], model.geom_friction_static[:] = (0.9, 0.5), (9.0, 2.0)
    data = fl.Data(model)
    data.qvel[2] = -1.0
    fl.step(model, data)
    np.testing.assert_allclose(data.qvel[2], 0.5, atol=4e-5)
    np.testing.assert_allclose(data.contact.friction[0, :2], 2.0)


def test_given_contacts_have_their_own_restitution():
    model = fl.load(BALL.format(h=0.001, z=2.0, shape='size=".1"'))
    for contact_model in ("lcp", "coulomb"):
        model.opt.contact_model = contact_model
        data = fl.Data(model, given_contacts=1)
        data.qvel[2] = -1.0
        data.give_contacts([-1e-4], [[0, 0, 1.9]], [[0, 0, 1]], geom=[[0, 1]], restitution=[0.7])
        fl.step(model, data)
        np.testing.assert_allclose(data.qvel[2], 0.7, atol=4e-5)


@MODELS
def test_a_body_at_rest_resists_up_to_static_friction(contact_model):
    for force, moves in ((4.9, False), (5.1, True)):
        data = sled(contact_model, 0.5)
        data.qfrc_applied[0] = force
        fl.step(data.model, data, 100)
        assert (data.qvel[0] > 0.05) == moves


@MODELS
@pytest.mark.parametrize("speed, mu", [(1.0, 0.3), (0.02, 0.3 + 0.2 / np.e), (0.01, 0.3 + 0.2 * np.exp(-0.25))])
def test_friction_of_a_sliding_body_follows_stribecks_curve(contact_model, speed, mu):
    data = sled(contact_model, 0.5)
    data.qvel[0] = speed
    fl.step(data.model, data)
    np.testing.assert_allclose(speed - data.qvel[0], mu * 0.01, rtol=1e-3)


@MODELS
def test_slip_is_relative_to_a_moving_surface(contact_model):
    """A box that moves with its belt has static friction; at rest on it, it slips."""
    for speed, mu in ((1.0, 0.5), (0.0, 0.3)):
        data = sled(contact_model, 0.5, 'surfacevel="1 0 0 0 0 0"')
        data.qvel[0] = speed
        fl.forward(data.model, data)
        np.testing.assert_allclose(data.contact.friction[:, 0], mu, rtol=1e-6)


@MODELS
def test_static_friction_below_dynamic_friction_has_no_effect(contact_model):
    ends = []
    for static in (0.0, 0.2):
        data = sled(contact_model, static)
        data.qvel[0] = 0.01
        fl.step(data.model, data, 20)
        ends.append(data.qpos.tobytes() + data.qvel.tobytes())
    assert ends[0] == ends[1]


@MODELS
def test_derivatives_of_a_rebound_and_of_static_friction_match_differences(contact_model):
    """A rebound has formulas; worlds with static friction are differenced."""
    fall, slide = ball(contact_model, 0.8), sled(contact_model, 0.5)
    fall.qvel[:] = (0.5, 0.1, -2.0, 0.1, 0.2, 0.3)
    slide.qvel[0] = 0.02
    for data, differenced in ((fall, False), (slide, True)):
        data.model.opt.tolerance = 1e-14
        found = fl.linearize(data.model, data)
        steps = fl.linearize(data.model, data, method="finite_difference")
        np.testing.assert_allclose(found.A, steps.A, atol=2e-6 * np.abs(steps.A).max())
        assert np.isnan(found.switching) == differenced


@pytest.mark.parametrize(
    "name, value, allowed",
    [("friction_static", -0.1, ">= 0"), ("friction_static", np.nan, ">= 0"), ("stribeck_vel", 0.0, "> 0")],
)
def test_values_out_of_range_are_refused_with_the_geom(name, value, allowed):
    data = ball("coulomb", 0.5)
    getattr(data.model, f"geom_{name}")[1] = value
    with pytest.raises(fl.ModelError, match=rf"geom_{name} of geom #1.*{allowed}"):
        fl.step(data.model, data)
