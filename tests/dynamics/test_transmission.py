"""Transmissions of actuators: against MuJoCo, and the laws of lengths, moments and forces."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.step.forward import forward, step
from featherlane.engine.simulation.tile import capacity
from featherlane.engine.simulation.tile.workspace import Workspace
from oracles import smooth
from scenes.states import kicked
from scenes.tendons import FIXED, PATHS
from scenes.tendons import scene as tendons

TOLERANCE = 1e-11  # the bound for lengths, moments, velocities and forces; rounding stays below 1e-13
ACCELERATION = 1e-8  # the bound for qacc: a solver's
WIDTHS = (1, 8)
FIELDS = ("actuator_length", "actuator_velocity", "actuator_force", "qfrc_actuator")
INTEGRATORS = {"Euler": 0, "implicit": 2, "implicitfast": 3, "discrete": 4}

# a branching tree on a ball, free bodies with and without simple inertia, a ball, and the static world
MECHANISM = """
<mujoco>
  <compiler autolimits="true"/>
  <option timestep=".01"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <site name="still" pos=".3 .2 .1" euler="20 30 40"/>
    <body pos="0 0 1"><joint name="root" type="ball"/><geom size=".1" pos=".1 .2 .1"/>
      <site name="trunk" pos=".1 .2 .3" euler="10 50 20"/>
      <body pos=".3 0 0"><joint axis="0 1 0" {joint}/><geom size=".1" pos=".1 0 0"/>
        <site name="elbow" pos=".1 .3 .2" euler="40 10 70"/>
        <body pos=".3 0 0"><joint axis="1 0 0"/><joint type="slide" axis="0 1 1"/><geom size=".1" pos=".1 0 0"/>
          <site name="hand" pos=".2 .1 .2" euler="15 25 70"/></body></body>
      <body pos="-.3 0 0"><joint axis="0 1 0"/><geom size=".1" pos=".1 0 0"/>
        <site name="other" pos=".2 .1 .2" euler="15 25 70"/></body></body>
    <body pos="1 0 0"><freejoint/><geom type="box" size=".1 .2 .3"/>
      <site name="simple" pos=".2 .1 .2" euler="15 25 70"/></body>
    <body pos="1 0 0"><freejoint/><geom type="box" size=".1 .2 .3" pos=".1 0 0"/>
      <site name="lone" pos=".2 .1 .2" euler="15 25 70"/></body>
    <body pos="2 0 0"><joint type="ball"/><geom type="box" size=".1 .2 .3"/><site name="round" pos=".2 .1 .2"/></body>
  </worldbody>
  <actuator>{actuators}</actuator>
</mujoco>
"""
ANY = 'gear=".1 .2 .3 .4 .5 -.6"'
ON_CHAINS = {
    "site": f'site="hand" {ANY}',
    "site of a free body": f'site="lone" {ANY}',
    "site of the world": f'site="still" {ANY}',
    "site from the world": f'site="hand" refsite="still" {ANY}',
    "site from its own chain": f'site="hand" refsite="trunk" {ANY}',
    "site from itself": f'site="hand" refsite="hand" {ANY}',
    "crank": 'cranksite="hand" slidersite="elbow" cranklength=".8" gear="1.5"',
    "crank too short": 'cranksite="hand" slidersite="elbow" cranklength=".01" gear="1.5"',
    "crank in the world": 'cranksite="hand" slidersite="still" cranklength="3" gear="-2"',
}
ACROSS = {
    "site of a simple body": f'site="simple" {ANY}',
    "site of a ball": f'site="round" {ANY}',
    "site from a branch": f'site="hand" refsite="other" {ANY}',
    "site from another tree": f'site="hand" refsite="lone" {ANY}',
    "site from another free body": f'site="simple" refsite="lone" {ANY}',
    "crank of two trees": 'cranksite="hand" slidersite="lone" cranklength="2" gear="1.5"',
}
AFFINE = '<general gaintype="affine" gainprm="2 .3 -.5" biastype="affine" biasprm=".1 -5 -3" {}/>'
SERVO = '<position kp="5" kv=".3" {}/>'
TURNING = ("gear='0 0 0 .1 .2 .3'", "gear='.1 0 .2 0 .1 0'", "gear='0 .1 0 0 0 0'")

# boxes and balls that touch a floor, each other, a mocap body, or are within the gap
GRIPPER = """
<mujoco>
  <option timestep=".002" cone="{cone}"/>
  <default><geom margin=".01" gap=".03" condim="{dim}"/></default>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body name="stand" mocap="true" pos="0 0 .05"><geom type="box" size=".3 .3 .05"/></body>
    <body name="box" pos="0 0 .2"><freejoint/><geom type="box" size=".1 .1 .1"/>
      <body name="arm" pos=".3 0 0"><joint axis="0 1 0"/><geom size=".1" pos=".1 0 0"/></body>
      <body name="knob" pos="-.15 0 0"><geom size=".11"/></body>
    </body>
    <body name="ball" pos="0 0 .4"><freejoint/><geom size=".1"/></body>
  </worldbody>
  <actuator>
    <adhesion body="box" ctrlrange="0 1" gain="3"/>
    <adhesion body="arm" ctrlrange="0 1" gain="5"/>
    <adhesion body="stand" ctrlrange="0 1" gain="1"/>
    <adhesion body="world" ctrlrange="0 1" gain="2"/>
    <adhesion body="knob" ctrlrange="0 1" gain="2"/>
    <general body="ball" gaintype="affine" gainprm="2 0 -.5" biastype="affine" biasprm=".1 0 -3"/>
  </actuator>
</mujoco>
"""


def mechanism(actuators, kind=AFFINE, joint=""):
    """Returns the XML of the mechanism with these actuators."""
    return MECHANISM.format(actuators="\n".join(kind.format(text) for text in actuators), joint=joint)


def gripper(dim=3, cone="pyramidal"):
    return GRIPPER.format(dim=dim, cone=cone)


def states(mj, count, seed=0):
    """Returns states with controls; the gripper's are close to its start, at increasing heights above its ground."""
    rng, met = np.random.default_rng(seed), []
    for k in range(count):
        qpos, qvel = kicked(mj, rng)
        if mj.nmocap:
            qpos = kicked(mj, rng, position=0.02)[0]
            qpos[2] = 0.2 + 0.01 * (k % 8 - 4)
            qpos[-7:-4] += ((0, 0, 0), (1, 0, -0.3), (0.4, 0, 0))[k % 3]  # the ball on the box, the floor, the arm
        met.append({"qpos": qpos, "qvel": 2 * qvel, "ctrl": 4 * rng.standard_normal(mj.nu)})
    return met


def oracle(mj, state):
    """Returns MuJoCo's data in a state."""
    data = mujoco.MjData(mj)
    for name, value in state.items():
        getattr(data, name)[...] = value
    return data


def moments(mj, data):
    """Returns MuJoCo's moments, dense."""
    dense = np.zeros((mj.nout, mj.nv))
    mujoco.mju_sparse2dense(dense, data.actuator_moment, data.moment_rownnz, data.moment_rowadr, data.moment_colind)
    return dense


def rows(model, values):
    """Returns our moments, dense."""
    dense = np.zeros((model.nout, model.nv))
    for o in range(model.nout):
        at = slice(model.moment_rowadr[o], model.moment_rowadr[o] + model.moment_rownnz[o])
        dense[o, model.moment_colind[at]] = values[at]
    return dense


def filled(model, width, met):
    ws = Workspace(model, width)
    for lane, state in enumerate(met):
        smooth.fill(ws, lane, **state)
    return ws


def solved_exactly(model):
    model.opt.tolerance, model.opt.iterations = 0, 100
    return model


PULLED = "".join(f'<general name="{name}" tendon="{name}" gear="1.5"/>' for name in (*PATHS, *FIXED))
SCENES = {
    "tendons": tendons(tail=f"<actuator>{PULLED}</actuator>"),
    "mechanism": mechanism([*ON_CHAINS.values(), *ACROSS.values()]),
    "servos": mechanism([f'site="hand" refsite="{ref}" {g}' for ref in ("still", "lone") for g in TURNING], SERVO),
    "frictionless": gripper(1),
    "pyramids": gripper(3),
    "cones": gripper(6, "elliptic"),
}


# ---- against MuJoCo -------------------------------------------------------------------------------------------------
@pytest.mark.covers("transmission", SCENES.values)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scene", SCENES)
def test_lengths_moments_and_forces_equal_mujoco(scene, width):
    model = solved_exactly(fl.load(SCENES[scene]))
    mj = model.to_mujoco()
    met = states(mj, width, seed=len(scene))
    ws = filled(model, width, met)
    ws.run(forward)
    for lane, state in enumerate(met):
        data = oracle(mj, state)
        mujoco.mj_forward(mj, data)
        for name in FIELDS:
            expected = getattr(data, name)
            assert smooth.relative(ws.arrays[name][: expected.size, lane], expected) <= TOLERANCE, name
        assert smooth.relative(rows(model, ws.arrays["actuator_moment"][:, lane]), moments(mj, data)) <= TOLERANCE
        assert smooth.relative(ws.arrays["qacc"][:, lane], data.qacc) <= ACCELERATION


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dm_control/dog", "dm_control/point_mass", "mjx/actuator/arm21"])
def test_tendon_actuators_of_real_models_equal_mujoco(name, real_model):
    mj = mujoco.MjModel.from_xml_path(str(real_model(name)))
    model = fl.load(mj)
    met = states(mj, 8)
    ws = filled(model, 8, met)
    ws.run(forward)
    for lane, state in enumerate(met):
        data = oracle(mj, state)
        mujoco.mj_forward(mj, data)
        for field in ("actuator_length", "actuator_velocity"):
            expected = getattr(data, field)
            assert smooth.relative(ws.arrays[field][: expected.size, lane], expected) <= TOLERANCE, field
        assert smooth.relative(rows(model, ws.arrays["actuator_moment"][:, lane]), moments(mj, data)) <= TOLERANCE


@pytest.mark.parametrize("limit", ["", 'actuatorfrcrange="-1 1"'])
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_steps_equal_mujoco(integrator, limit):
    """Uses tolerance 0, because under discrete MuJoCo finds accelerations iteratively if actuators couple dofs."""
    across = {} if integrator == "discrete" else ACROSS  # whose couplings are not in the metric of discrete
    for text in (*ON_CHAINS.values(), *across.values()):
        mj = mujoco.MjModel.from_xml_string(mechanism([text, text + ' forcerange="-.5 .5"'], joint=limit))
        mj.opt.integrator, mj.opt.tolerance = INTEGRATORS[integrator], 0
        met = states(mj, 8)
        ws = filled(fl.load(mj), 8, met)
        ws.run(step)
        for lane, state in enumerate(met):
            data = oracle(mj, state)
            mujoco.mj_step(mj, data)
            assert smooth.relative(ws.arrays["qvel"][:, lane], data.qvel) <= TOLERANCE, text


# ---- laws -----------------------------------------------------------------------------------------------------------
def test_the_moment_is_the_gradient_of_the_length():
    """Tests lengths of slider-cranks, and of positions in the frame of a fixed reference."""
    cranks = [text for name, text in ON_CHAINS.items() if "crank" in name]
    across = ACROSS["crank of two trees"]
    model = fl.load(mechanism([*cranks, across, 'site="hand" refsite="still" gear=".3 1 2"']))
    data, rng, small = fl.Data(model), np.random.default_rng(1), 1e-6

    def lengths(qpos):
        data.qpos = qpos
        fl.stages.forward_position(model, data)
        return data.actuator_length.copy()

    for _ in range(5):
        qpos, direction = kicked(model, rng)
        ahead, behind = (lengths(fl.integrate_pos(model, qpos, direction, h)) for h in (small, -small))
        lengths(qpos)
        rate = rows(model, data.actuator_moment) @ direction
        assert smooth.relative((ahead - behind) / (2 * small), rate) < 1e-8  # truncation and rounding, about 1e-10


def test_actuators_between_two_bodies_conserve_momentum():
    """A site and its reference get opposite forces; a slider-crank has no total torque, either."""
    sites = [text for name, text in ACROSS.items() if "another free body" in name]
    model = fl.load(mechanism([*sites, 'cranksite="simple" slidersite="lone" cranklength="3"']))
    ws, free = filled(model, 8, states(model, 8)), model.jnt_dofadr[model.jnt_type == 0]
    ws.run(forward)
    for lane in range(8):
        moment = rows(model, ws.arrays["actuator_moment"][:, lane])
        force = sum(moment[:, v : v + 3] for v in free)
        assert np.abs(force).max() < 1e-11  # the bound; rounding of values of size 1
        bodies = model.dof_bodyid[free]
        R, p = (ws.view(name)[..., lane][bodies] for name in ("xmat", "xpos"))
        total = sum(
            R[k].reshape(3, 3) @ moment[1, v + 3 : v + 6] + np.cross(p[k], moment[1, v : v + 3])
            for k, v in enumerate(free)
        )
        assert np.abs(total).max() < 1e-11


@pytest.mark.parametrize("scene", SCENES)
def test_power_is_force_times_velocity(scene):
    model = fl.load(SCENES[scene])
    ws = filled(model, 8, states(model.to_mujoco(), 8))
    ws.run(forward)
    at_dofs = (ws.arrays["qfrc_actuator"] * ws.arrays["qvel"]).sum(0)
    at_outputs = (ws.arrays["actuator_force"] * ws.arrays["actuator_velocity"]).sum(0)
    assert smooth.relative(at_dofs, at_outputs) < 1e-12


def test_adhesion_is_shared_by_the_contacts_and_pulls_along_their_normals():
    """The full force pulls a box to the floor, for any number of corners on the floor."""
    model = fl.load(
        '<mujoco><worldbody><geom type="plane" size="1 1 1"/><body name="b" pos="0 0 .1"><freejoint/>'
        '<geom type="box" size=".1 .1 .1" gap=".1"/></body></worldbody>'
        '<actuator><adhesion body="b" ctrlrange="0 2" gain="3"/></actuator></mujoco>'
    )
    for height, tilt, corners in ((0.099, 0, 4), (0.15, 0, 4), (0.1, 0.02, 4), (0.16, 0.4, 2), (0.35, 0, 0)):
        data = fl.Data(model)
        data.qpos, data.ctrl = [0, 0, height, np.cos(tilt), np.sin(tilt), 0, 0], [1.5]
        fl.forward(model, data)
        assert data.ncon == corners
        assert np.allclose(data.qfrc_actuator[:3], [0, 0, -4.5 if corners else 0], atol=1e-12)


# ---- tiles ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scene", ["mechanism", "pyramids"])
def test_a_world_is_bitwise_equal_in_any_batch(scene):
    model = fl.load(SCENES[scene])
    met = states(model.to_mujoco(), 8)
    tile, alone = filled(model, 8, met), Workspace(model, 1)
    tile.run(step)
    for k, state in enumerate(met):
        alone.reset()
        smooth.fill(alone, 0, **state)
        alone.run(step)
        for name in ("actuator_moment", "qpos", "qvel", "qacc"):
            assert alone.arrays[name][:, 0].tobytes() == tile.arrays[name][:, k].tobytes(), name


def test_adhesion_in_a_split_tile_equals_single_worlds(monkeypatch):
    model, results = fl.load(SCENES["pyramids"]), []
    met = states(model.to_mujoco(), 13)
    for split in (False, True):
        if split:
            limit = int(results[0]["ncon"].max())
            tile = filled(model, 8, met[:8])
            tile.run(forward)
            assert tile.arrays["ncon_slot"][0] > limit  # together eight worlds have more
            monkeypatch.setattr(capacity, "CONTACT_LIMIT", limit)
        batch = fl.Batch(model, 13, nthread=1)
        for name in ("qpos", "qvel", "ctrl"):
            setattr(batch, name, np.array([state[name] for state in met]))
        results.append(batch.rollout(5, record=("qvel", "qacc", "ncon", "actuator_force", "qfrc_actuator")))
        assert not batch.status["contacts_full"].any()
    for name, values in results[0].items():
        assert values.tobytes() == results[1][name].tobytes(), name


# ---- the metric of discrete -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ACROSS)
def test_the_metric_has_actuators_that_couple_branches(name, rng):
    model = fl.load(mechanism([ACROSS[name]]))
    model.opt.integrator, model.opt.tolerance, model.opt.iterations = "discrete", 0.0, 200
    data, oracle = fl.Data(model), model.to_mujoco()
    reference = mujoco.MjData(oracle)
    for _ in range(4):
        data.qpos, data.qvel = kicked(model, rng)
        data.ctrl = rng.standard_normal(model.nu)
        for field in ("qpos", "qvel", "ctrl"):
            getattr(reference, field)[:] = getattr(data, field)
        fl.forward(model, data)
        mujoco.mj_forward(oracle, reference)
        np.testing.assert_allclose(data.qacc, reference.qacc, rtol=1e-9, atol=1e-9)


# ---- errors ---------------------------------------------------------------------------------------------------------
@pytest.mark.filterwarnings("ignore:MuJoCo. XML contains a 'NaN'")
def test_a_zero_length_rod_and_a_nan_gear_are_refused():
    mj = mujoco.MjModel.from_xml_string(mechanism([ON_CHAINS["crank"]]))
    mj.actuator_cranklength[0] = -1
    with pytest.raises(fl.ModelError):
        fl.load(mj)
    with pytest.raises(fl.ModelError, match="gear"):
        fl.load(mechanism(['site="hand" gear="nan 1"']))
