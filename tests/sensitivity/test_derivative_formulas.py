"""Analytic derivatives against differences of the residual; they share only the residual's code."""

import copy

import numpy as np
import pytest

import featherlane as fl
from featherlane.tools.sensitivity.api.exact import acceleration_derivatives
from featherlane.tools.sensitivity.rates.contact_moves import STEP
from featherlane.tools.sensitivity.systems.convex import CONVEX_STAGES
from featherlane.tools.sensitivity.systems.served import differences_lag, serves
from featherlane.tools.sensitivity.worlds.implicit_worlds import ImplicitWorlds
from scenes.states import kicked
from sensitivity.test_transition import exact, relative

SMOOTH = 1e-8  # error of differences over 2e-7 of smooth forces
CONTACT = 1e-6
ONE_SIDED = 1e-3  # error of a one-sided difference over STEP
# all joints, limits, dry friction, gravity compensation, springs, dampers with polynomials, motors with rates and
# activations
JOINTS = """<mujoco><option timestep="0.004"/><compiler autolimits="true"/><default>
  <geom contype="{contact}" conaffinity="{contact}" condim="{condim}" friction="0.8 0.05 0.02"/></default><worldbody>
  <geom type="plane" size="5 5 1" condim="{condim}"/>
  <body pos="0 0 {height}" gravcomp="0.3"><freejoint/><geom size="0.1 0.05 0.2" type="box"/>
    <body pos="0.35 0 0" gravcomp="1"><joint type="ball" damping="0.05"/>
      <geom type="capsule" fromto="0 0 0 0.2 0 0.1" size="0.03"/>
      <body pos="0.3 0 0.1"><joint name="hinge" axis="0 1 1" damping="0.1" armature="0.01" stiffness="1"/>
        <joint name="second" axis="1 0 0" pos="0 0.1 0" frictionloss="0.02" range="-0.1 0.1"/>
        <geom type="capsule" fromto="0 0 0 0 0.2 0" size="0.03"/></body></body>
    <body pos="-0.3 0 0" gravcomp="1.5">
      <joint name="slide" type="slide" axis="1 0 1" damping="0.5 0.1 0.2" range="-0.05 0.4"/>
      <geom size="0.05"/></body></body>
  <body pos="0.1 0 {over}"><freejoint/><geom size="0.1 0.2 0.05" type="ellipsoid"/></body></worldbody>
  <actuator><motor joint="hinge"/><position joint="slide" kp="4" kv="0.3"/><velocity joint="second" kv="0.2"/>
    <general joint="hinge" dyntype="filter" dynprm="0.05" gainprm="2"/>
    <motor joint="slide" ctrlrange="-1 1" forcerange="-0.2 0.2"/></actuator></mujoco>"""


def rates(model, data, by_formulas, reach=2e-7):
    """Returns (dg, dp, dx') by all coordinates, and whether the formulas applied; reach: of differences."""
    worlds = ImplicitWorlds(model, data, CONVEX_STAGES, False, 1, 0, by_formulas)
    worlds.load(data)
    passes = worlds.passes(worlds.width, differences_lag(model))
    passes.size[...] = reach
    found = passes.run(np.arange(worlds.batch.nworld))
    assert found.fits.all()
    return found, found.known.all()


def compare(model, data, tolerance):
    ours, served = rates(model, data, True)
    theirs = rates(model, data, False)[0].state.copy()
    if not data.ncon:  # the impedance of a contact bends within a longer reach
        theirs = (4.0 * theirs - rates(model, data, False, 4e-7)[0].state) / 3.0
    assert served
    nv = model.nv
    for columns in (slice(0, nv), slice(nv, 2 * nv), slice(2 * nv, None)):
        if ours.state[:, columns].size:
            assert relative(ours.state[:, columns], theirs[:, columns]) < tolerance


@pytest.mark.parametrize("integrator", ["euler", "implicitfast"])
def test_smooth_forces(integrator, rng):
    model = exact(fl.load(JOINTS.format(contact=0, condim=3, height=1.0, over=2.0).replace("ellipsoid", "sphere")))
    model.opt.integrator = integrator
    for _ in range(3):
        data = fl.Data(model)
        data.qpos, data.qvel = kicked(model, rng, 0.1)
        data.ctrl, data.act = rng.uniform(-1, 1, model.nu), 0.3
        compare(model, data, 10 * SMOOTH)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("condim", [1, 3, 4, 6])
def test_contacts(condim, cone):
    """Covers contacts with the ground, and between moving bodies of two trees and of one tree."""
    model = exact(fl.load(JOINTS.format(contact=1, condim=condim, height=0.25, over=0.6)))
    model.opt.cone = cone
    data, seen = fl.Data(model), 0
    data.qvel[:] = 0.1
    for _ in range(30):
        fl.step(model, data, 10)
        if data.ncon >= 2 and fl.linearize(model, data).switching > 3e-3:
            compare(model, data, CONTACT)
            seen += 1
    assert seen >= 3


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("name", ["humanoid", "quadruped", "pile", "stacks", "arm"])
def test_bundled_models(name, cone):
    model = exact(fl.bundled(name))
    model.opt.cone = cone
    assert serves(model)
    data, seen = fl.Data(model), 0
    data.ctrl = np.linspace(-0.4, 0.4, model.nu)
    for _ in range(20):
        fl.step(model, data, 10)
        if data.ncon and fl.linearize(model, data).switching > 1e-2:
            compare(model, data, CONTACT)
            seen += 1
            break
    assert seen or name in ("pile", "stacks", "arm")


def test_worlds_without_formulas_use_finite_differences(rng):
    """One world is pushed, one in a fluid, one has a ball with a spring: the others' results stay bitwise identical."""
    model = fl.bundled("humanoid")
    batch = fl.Batch(model, 6, nthread=1)
    batch.step(60)
    before = fl.linearize(model, batch)
    batch.xfrc_applied[2, 3, 2] = 30.0
    after, steps = fl.linearize(model, batch), fl.linearize(model, batch, method="finite_difference")
    for w in (0, 1, 3, 4, 5):
        assert after.A[w].tobytes() == before.A[w].tobytes()
    assert relative(after.A[2], steps.A[2]) < 1e-5
    alone = fl.linearize(model, batch.get_data(2))
    assert alone.A.tobytes() == after.A[2].tobytes()


BALLS = """<mujoco><default><geom size="0.1" condim="4" friction="0.7 0.01 0.01"/></default>
  <worldbody><geom type="plane" size="5 5 1"/>{balls}</worldbody></mujoco>"""


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("gap", [-1e-7, 1e-7])
def test_a_contact_change_affects_only_its_world(gap, cone):
    """In a displaced pose the other worlds use formulas and keep their bits; a world with a new contact is close."""
    balls = "".join(f'<body pos="{x} 0 0.099"><freejoint/><geom/></body>' for x in (0.0, 0.195, 1.0))
    model = exact(fl.load(BALLS.format(balls=balls)))
    model.opt.cone = cone
    batch = fl.Batch(model, 8, nthread=1)
    batch.qvel[:] = 0.1
    batch.qpos[:, 16] = np.resize([0.2, 0.1 + gap], 8)  # the last ball is free, or nearly in contact
    batch.qpos[4:, 7] = 0.5  # two balls apart
    worlds = ImplicitWorlds(model, batch, CONVEX_STAGES, False, 1)
    worlds.load(batch)
    assert worlds.passes(worlds.width, differences_lag(model)).run(worlds.every).known.tolist() == [True, gap > 0.0] * 4
    found = fl.linearize(model, batch)
    assert (found.switching[1::2] <= STEP).all() and (found.switching[::2] > 1e-6).all()
    for w in range(8):
        alone = fl.linearize(model, batch.get_data(w))
        assert alone.A.tobytes() == found.A[w].tobytes() and alone.switching == found.switching[w]


def after(model, data, dof, step):
    """Returns the next velocity and the contact points, with the position moved along a dof."""
    moved, start = copy.copy(data), np.zeros(model.nv)
    start[dof] = step
    moved.qpos = fl.integrate_pos(model, data.qpos, start, 1.0)
    points = copy.copy(moved)
    fl.forward(model, points)
    fl.step(model, moved)
    return moved.qvel.copy(), points.contact.pos.copy()


def test_corners_between_flat_faces_are_followed(rng):
    """Corners of a box between flat fingers: their number and places do not change when the box rotates."""
    model = exact(fl.bundled("hand"))
    data, seen = fl.Data(model), 0
    data.qvel = 0.05 * rng.normal(size=model.nv)
    for _ in range(8):
        fl.step(model, data, 12)
        found, (coarse, fine) = (
            fl.linearize(model, data),
            (fl.linearize(model, data, eps=e, method="finite_difference") for e in (2e-6, 1e-6)),
        )
        if data.ncon and found.switching > 1e-4 and relative(coarse.A, fine.A) < 1e-6:
            assert relative(found.A, fine.A) < CONTACT
            assert rates(model, data, True)[1]
            points = [after(model, data, dof, step)[1] for dof in range(model.nv) for step in (STEP, -STEP)]
            assert all(np.abs(p - points[0]).max() < 3 * STEP for p in points)
            seen += 1
    assert seen > 2


def standing(geoms, **option):
    """Returns a pile of these shapes, at their heights, after some steps."""
    bodies = "".join(f'<body pos="0 0 {z}"><freejoint/><geom {geom}/></body>' for z, geom in geoms)
    model = exact(fl.load(FACES.format(prism=PRISM, bodies=bodies)))
    for name, value in option.items():
        setattr(model.opt, name, value)
    data = fl.Data(model)
    fl.step(model, data, 20)
    return model, data


BOX, HULL = 'type="box" size="0.1 0.1 0.1"', 'type="mesh" mesh="hull"'
AT = np.arange(7) * 2 * np.pi / 7
PRISM = " ".join(f"{0.1 * np.cos(t):.5f} {0.1 * np.sin(t):.5f} {z}" for t in AT for z in (-0.1, 0.1))
FACES = """<mujoco><asset><mesh name="hull" vertex="{prism}"/></asset>
  <worldbody><geom type="plane" size="5 5 1"/>{bodies}</worldbody></mujoco>"""


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_contact_points_can_be_renumbered(cone):
    """The order of the corners of two boxes' common face changes when one of them rotates."""
    model, data = standing([(0.1, BOX), (0.299, BOX + ' euler="0 0 20"')], cone=cone)
    _, own = after(model, data, 0, 0.0)
    points = [after(model, data, dof, step)[1] for dof in range(model.nv) for step in (STEP, -STEP)]
    assert any(np.abs(p - own).max() > 1e3 * STEP for p in points)
    assert all(np.linalg.norm(p[:, None] - own, axis=2).min(0).max() < 10 * STEP for p in points)
    compare(model, data, CONTACT)


def test_a_switch_to_another_point_of_a_face_is_not_a_derivative():
    """As soon as a prism on a plane tilts, four other ones of its seven corners become contacts."""
    model, data = standing([(0.099, HULL)])
    data.qpos[3:] = 1.0, 0.0, 0.0, 0.0  # upright
    nv, sides, jumps = model.nv, 0, 0
    found, (here, own) = fl.linearize(model, data), after(model, data, 0, 0.0)
    assert found.switching <= STEP and rates(model, data, True)[1]
    scale = np.abs(found.A[nv : 2 * nv]).max()
    for dof in range(nv):
        for step in (STEP, -STEP):
            velocity, points = after(model, data, dof, step)
            slope = (velocity - here) / step
            if len(points) == len(own) and np.linalg.norm(points[:, None] - own, axis=2).min(0).max() < 10 * STEP:
                assert np.abs(slope - found.A[nv : 2 * nv, dof]).max() < ONE_SIDED * scale
                sides += 1
            else:
                # differences of whole steps are not a slope there
                jumps += np.abs(slope).max() > 10 * scale
    assert sides > 0 and jumps > 0


def test_momentum_is_conserved_by_derivatives(rng):
    """Internal forces and changes of posture do not accelerate the whole: tested on a free root's translation rows."""
    model = exact(fl.bundled("humanoid"))
    model.opt.gravity = [0.0, 0.0, 0.0]
    data = fl.Data(model)
    data.qpos[:], data.qvel[:] = kicked(model, rng, 0.1)
    data.qpos[2] = 5.0
    found = acceleration_derivatives(model, data)
    fl.forward(model, data)
    # of the com: M times the root's linear acceleration plus the posture's part, by the first rows of M
    M = fl.query.full_m(model, data)
    total = model.body_mass.sum()
    assert np.allclose(M[:3] @ found.DaDu, 0.0, atol=1e-9 * total)
    assert relative(M[:3, :] @ found.DaDtau, np.eye(3, model.nv)) < 1e-9
