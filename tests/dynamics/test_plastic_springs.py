"""Plastic springs: the law of ideal plasticity, the state `plastic`, and MuJoCo with every integrator and flag."""

from __future__ import annotations

import re

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.step.forward import forward, step
from featherlane.engine.simulation.tile.workspace import Workspace
from oracles import smooth
from scenes.states import kicked

PARITY = 1e-12  # relative, after 15 steps: rounding
EXACT = 1e-14  # of a plastic deflection
WORK = 1e-3  # relative: in each step of 5e-5 m the force is 50 N/m of it, 0.05 % of 5 N, above the yield force
INTEGRATORS = ("Euler", "RK4", "implicit", "implicitfast", "discrete")
FLAGS = ("", 'spring="disable"', 'damper="disable"', 'spring="disable" damper="disable"')
XML = """
<mujoco><compiler angle="radian"/>
<option timestep=".01" integrator="{integrator}"><flag energy="enable" {flags}/></option>
<default><geom contype="0" conaffinity="0"/></default>
<worldbody>
  <body><joint name="hinge" axis="0 1 .2" stiffness="2 .3 .1" springref=".2" springyield=".3" damping=".1"/>
    <geom size=".1" pos=".2 0 0"/>
    <body pos=".3 0 0"><joint name="slide" type="slide" axis="0 1 .2" stiffness="20" springref=".2" springyield=".1"/>
      <geom size=".1" pos=".2 0 0"/>
      <body pos=".3 0 0"><joint name="ball" type="ball" stiffness="2 .2 .1" springyield=".3"/>
        <geom type="box" size=".1 .2 .05" pos=".2 0 0"/></body></body></body>
  <body pos="0 0 5"><joint name="elastic" type="ball" stiffness="5"/><geom size=".1" pos=".2 0 0"/></body>
  <body pos="0 0 6"><joint type="free" stiffness="3"/><geom size=".1" pos=".2 0 0"/></body>
</worldbody>
{keys}</mujoco>
"""
KEYS = '<keyframe><key name="bent" plastic="1 2 3 4 5 6"/><key name="plain"/></keyframe>'
TENDONS = """
<mujoco><option timestep=".01" integrator="{integrator}"/><default><geom contype="0" conaffinity="0"/></default>
<worldbody><site name="wall" pos="0 0 3"/>
  <body pos="0 0 2"><joint name="slide" type="slide" axis="0 1 .2"/><geom size=".1" pos=".2 0 0"/>
    <body pos=".1 .1 .1"><joint type="ball"/><geom size=".1" pos=".2 0 0"/>
      <site name="end" pos=".1 .1 .1"/></body></body>
</worldbody>
<tendon>
  <spatial springyield=".05" springlength="0 .3"><site site="wall"/><site site="end"/></spatial>
  <spatial springyield=".05" springlength=".1 .3"><site site="wall"/><site site="end"/></spatial>
  <spatial springyield=".05" springlength="5 6"><site site="wall"/><site site="end"/></spatial>
  <fixed springyield=".02" springlength="0 0"><joint joint="slide" coef="2"/></fixed>
  <fixed springyield=".02" springlength="0 .1"><joint joint="slide" coef="-1"/></fixed>
</tendon></mujoco>
"""
SLIDER = """
<mujoco><option timestep=".01" gravity="0 0 0"/><worldbody><body>
  <joint type="slide" axis="1 0 0" stiffness="50" springyield=".1"/><geom size=".1"/></body></worldbody></mujoco>
"""


def loaded(integrator="Euler", flags=""):
    return fl.load(XML.format(integrator=integrator, flags=flags, keys=KEYS))


@pytest.mark.covers("passive force", lambda: [XML.format(integrator="Euler", flags="", keys="")])
@pytest.mark.parametrize("width", smooth.WIDTHS)
@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_motion_equals_mujoco(rng, integrator, flags, width):
    model = loaded(integrator, flags)
    mj, tile = model.to_mujoco(), Workspace(model, width)
    states = [dict(zip(("qpos", "qvel"), kicked(model, rng, velocity=5.0), strict=True)) for _ in range(width)]
    states[0]["qpos"][2:6] *= -2.0  # the other quaternion of the same rotation, not of unit length
    for k, state in enumerate(states):
        smooth.fill(tile, k, **state)
    for _ in range(15):
        tile.run(step)
    tile.run(forward)
    for k, state in enumerate(states):
        data = mujoco.MjData(mj)
        for name, value in state.items():
            getattr(data, name)[...] = value
        mujoco.mj_step(mj, data, 15)
        mujoco.mj_forward(mj, data)
        for name in ("plastic", "qpos", "qvel", "qfrc_spring"):
            truth = getattr(data, name)
            assert smooth.relative(tile.arrays[name][: truth.size, k], truth) < PARITY, name
        yielded = not np.array_equal(data.plastic, mujoco.MjData(mj).plastic)
        assert yielded == ("spring" not in flags)


@pytest.mark.covers("tendon force", lambda: [TENDONS.format(integrator="Euler")])
@pytest.mark.parametrize("width", smooth.WIDTHS)
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_plastic_tendons_deform_as_in_mujoco(rng, integrator, width):
    mj = mujoco.MjModel.from_xml_string(TENDONS.format(integrator=integrator))
    model = fl.load(mj)
    tile = Workspace(model, width)
    states = [dict(zip(("qpos", "qvel"), kicked(model, rng, velocity=5.0), strict=True)) for _ in range(width)]
    for k, state in enumerate(states):
        smooth.fill(tile, k, **state)
    for _ in range(15):
        tile.run(step)
    for k, state in enumerate(states):
        data = mujoco.MjData(mj)
        for name, value in state.items():
            getattr(data, name)[...] = value
        mujoco.mj_step(mj, data, 15)
        assert smooth.relative(tile.arrays["plastic"][: model.nplastic, k], data.plastic) < PARITY
    # stretched strings keep their shorter length, those that may not go slack do not
    assert data.plastic[0] == 0 and data.plastic[1] != 0.3 and data.plastic[2] not in (0.1, 0.0)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_energy_uses_the_deformed_reference(rng, integrator):
    model = loaded(integrator)
    data, expected = fl.Data(model), mujoco.MjData(model.to_mujoco())
    expected.qpos[:], expected.qvel[:] = data.qpos, data.qvel = kicked(model, rng, velocity=5.0)
    fl.step(model, data, 5)
    mujoco.mj_step(model.to_mujoco(), expected, 5)
    fl.forward(model, data)
    mujoco.mj_forward(model.to_mujoco(), expected)
    assert smooth.relative(data.energy, expected.energy) < PARITY


@pytest.mark.parametrize("limit", [0.3, 0.0, -0.2])
def test_the_remaining_deflection_is_the_threshold(rng, limit):
    model = loaded()
    model.jnt_springyield[model.jnt_plasticadr >= 0] = limit
    data, least = fl.Data(model), max(limit, 0.0)
    data.qpos, data.qvel = kicked(model, rng)
    data.qpos[:6] = 2.0, -1.0, 0.8, 0.0, -0.6, 0.0
    fl.step(model, data)
    left = fl.differentiate_pos(model, 1.0, np.r_[data.plastic, data.qpos[6:]], data.qpos)
    assert np.abs(left[0]) == pytest.approx(least, abs=EXACT)
    assert np.abs(left[1]) == pytest.approx(least, abs=EXACT)
    assert np.linalg.norm(left[2:5]) == pytest.approx(least, abs=1e-12)


def test_a_spring_within_its_threshold_is_elastic(rng):
    text = XML.format(integrator="Euler", flags="", keys="")
    model, elastic = loaded(), fl.load(re.sub('springyield="[^"]*"', "", text))
    assert model.nplastic == 6 and elastic.nplastic == 0
    model.jnt_springyield[model.jnt_plasticadr >= 0] = 10.0
    state, ends = kicked(model, rng), []
    for m in (model, elastic):
        data = fl.Data(m)
        data.qpos, data.qvel = state
        fl.step(m, data, 10)
        ends.append(data.qpos.copy())
    assert np.array_equal(*ends)


def test_a_closed_loop_loses_the_work_of_the_yield_force():
    # out to 1, back to -1 and to 1 again: the force is 50 * 0.1 along 2 * (2 - 0.2) of the path
    model = fl.load(SLIDER)
    data, work = fl.Data(model), 0.0
    path = np.concatenate([np.linspace(0, 1, 20000), np.linspace(1, -1, 40000), np.linspace(-1, 1, 40000)])
    for k, x in enumerate(path):
        data.qpos, data.qvel = x, 0.0
        data.qfrc_applied = 0.0
        fl.forward(model, data)
        data.qfrc_applied = -data.qfrc_passive[0]  # held in place
        if k >= 20000:
            work -= data.qfrc_passive[0] * (x - path[k - 1])
        fl.step(model, data)
    assert work == pytest.approx(50 * 0.1 * 2 * (2 - 0.2), rel=WORK)


def test_states_and_keyframes_have_mujocos_layout(rng):
    model = loaded()
    mj, data = model.to_mujoco(), fl.Data(model)
    expected = mujoco.MjData(mj)
    assert np.array_equal(data.plastic, expected.plastic) and model.nplastic == 6
    bits = (1 << 15) - 1
    expected.plastic[:] = rng.standard_normal(6)
    vector = np.zeros(mujoco.mj_stateSize(mj, bits))
    mujoco.mj_getState(mj, expected, vector, bits)
    fl.set_state(model, data, vector, bits)
    assert np.array_equal(data.plastic, expected.plastic)
    assert np.array_equal(fl.get_state(model, data, fl.State.PLASTIC), expected.plastic)
    data.reset(keyframe="bent")
    assert np.array_equal(data.plastic, model.key_plastic[0]) and data.plastic[0] == 1
    data.plastic[:] = 7
    fl.set_keyframe(model, data, "plain")
    assert np.array_equal(model.key_plastic[1], np.full(6, 7.0))
    data.reset()
    assert np.array_equal(data.plastic, mujoco.MjData(mj).plastic)


@pytest.mark.filterwarnings("ignore::featherlane.NonFiniteWarning")
def test_worlds_start_and_reset_at_their_own_spring_references(rng):
    model = loaded()
    batch = fl.Batch(model, 3, 1)
    batch.expand("qpos_spring")[:, 0] = [0.1, 0.2, 0.25]
    batch.reset()
    assert np.array_equal(batch.plastic[:, 0], [0.1, 0.2, 0.25])
    batch.reset(keyframe="bent", ids=[1])
    assert np.array_equal(batch.plastic[1], model.key_plastic[0])
    batch.reset()
    batch.qpos[:, 0] = 2.0
    batch.qpos[1] = np.nan
    batch.step(3)
    assert batch.nreset.tolist() == [0, 1, 0]
    assert batch.plastic[0, 0] > 1.0 and batch.plastic[1, 0] == 0.2 and batch.plastic[2, 0] > 1.0
    kept = batch.checkpoint()
    batch.step(5)
    after = batch.plastic.copy()
    batch.restore(kept)
    batch.step(5)
    assert np.array_equal(after, batch.plastic)


def test_a_world_is_bitwise_equal_in_any_batch(rng):
    model = loaded("implicitfast")
    states, ends = [kicked(model, rng, velocity=5.0) for _ in range(5)], []
    for ids in ([range(5)], [[k] for k in range(5)]):
        batch = fl.Batch(model, 5, 1)
        for k, state in enumerate(states):
            batch.qpos[k], batch.qvel[k] = state
        for some in ids:
            batch.step(20, ids=list(some))
        ends.append(np.concatenate([batch.plastic, batch.qpos], 1))
    assert np.array_equal(*ends)
