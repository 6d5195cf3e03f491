"""Contacts within the step (flag `speculative`): parity with MuJoCo, no tunnelling, batches, sleep, refusals."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.lanes.processor import tile_width
from oracles.contact_parity import axis_meets_box
from sampling import every
from scenes.speculative import example, random_scene

SCENES = 50
STEPS = 8
SAME = 1e-8  # relative error of position and velocity after a step
SEARCH = 1e-5  # relative: MuJoCo's search for curved shapes and meshes, amplified by the stiffness of one step
MODELS = ("convex", "lcp", "coulomb")
SPECULATIVE = int(mujoco.mjtEnableBit.mjENBL_SPECULATIVE)

# a ball of 5 mm radius that moves by 0.6 m in a step, above a plate of 1 mm
BALL = """
<mujoco>
  <option timestep="0.002" gravity="0 0 0"><flag speculative="enable"/></option>
  <worldbody>
    <geom type="box" size="1 1 .0005"/>
    <body pos="0 0 .2"><freejoint/><geom type="sphere" size=".005" mass="1"/></body>
  </worldbody>
</mujoco>
"""
SPEED = 300.0

# the second plate is behind the first one
HIDDEN = """
<mujoco>
  <option timestep="0.002" ccd_tolerance="1e-12" ccd_iterations="200"><flag speculative="enable"/></option>
  <asset><mesh name="tetra" vertex="-1 -1 0  1 -1 0  0 1 0  0 0 .02"/></asset>
  <worldbody>
    <geom type="plane" size="2 2 1" pos="0 0 -.2"/>
    <geom type="box" size="1 1 .0005"/>
    {}
    <body pos="0 0 .2"><freejoint/><geom type="{}" size=".02 .01 .01" mass="1"/></body>
  </worldbody>
</mujoco>
"""
OBSTACLES = (
    "",
    '<geom type="box" size=".5 .5 .001" pos="0 0 .1" euler="5 0 0"/>',
    '<geom type="cylinder" size=".3 .001" pos="0 0 .1"/>',
    '<geom type="ellipsoid" size=".3 .3 .002" pos="0 0 .1"/>',
    '<geom type="sphere" size=".03" pos="0 .005 .1"/>',
    '<geom type="capsule" size=".01 .1" pos="0 0 .1" euler="0 90 0"/>',
    '<geom type="mesh" mesh="tetra" pos="0 0 .1"/>',
    '<geom type="box" size=".5 .5 .001" pos="0 0 .1" contype="0" conaffinity="0"/>',
)


def loaded(xml: str, velocity=None):
    """Returns MuJoCo's model and data, and ours, with this velocity."""
    mj = mujoco.MjModel.from_xml_string(xml)
    there, model = mujoco.MjData(mj), fl.load(mj)
    here = fl.Data(model)
    if velocity is not None:
        there.qvel[:] = here.qvel[:] = velocity
    return mj, there, model, here


def relative(given, expected) -> float:
    """Returns the largest error over the larger of 1 and the largest expected magnitude."""
    return float(np.abs(given - expected).max() / max(1.0, np.abs(expected).max()))


def parity(xml: str, velocity, steps: int) -> tuple[float, int]:
    """Returns the largest error of single steps from MuJoCo's states, and the number of contacts within a step.

    Steps that start or end with the axis of a capsule in a box have no part in the error.
    """
    mj, there, model, here = loaded(xml, velocity)
    worst, found, compared = 0.0, 0, 0
    for _ in range(steps):
        apart = axis_meets_box(mj, there)
        for name in ("qpos", "qvel", "qacc_warmstart"):
            getattr(here, name)[:] = getattr(there, name)
        mujoco.mj_step(mj, there)
        fl.step(model, here)
        view = here.workspace.view
        n = int(view("ncon_slot")[0])
        found += int((view("con_speculative")[:n] * view("con_present")[:n]).sum())
        if not (apart or axis_meets_box(mj, there)):
            worst = max(worst, relative(here.qpos, there.qpos), relative(here.qvel, there.qvel))
            compared += 1
    assert compared > 0
    return worst, found


def contacts(data) -> list:
    """Returns pairs, distances, positions and normals of all contacts, sorted."""
    return sorted((c.geom1, c.geom2, c.dist, c.exclude, *c.pos, *c.frame[:3]) for c in data.contact)


@pytest.mark.parametrize("name", ["cradle", "chain", "flipper"])
def test_step_of_an_example_matches_mujoco(name):
    error, found = parity(*example(name), 100)
    assert found > 1 and error < SAME


@pytest.mark.parametrize("seed", every(5, range(SCENES)))
@pytest.mark.filterwarnings("ignore::featherlane.NonFiniteWarning")
def test_step_of_a_random_scene_matches_mujoco(seed):
    error, _ = parity(*random_scene(seed), STEPS)
    assert error < SAME


def test_random_scenes_contain_contacts_within_steps():
    assert sum(parity(*random_scene(seed), STEPS)[1] for seed in range(5)) > 20


@pytest.mark.parametrize("seed", every(4, range(100, 120)))
def test_contacts_of_curved_shapes_and_meshes_match_mujoco(seed):
    xml, velocity = random_scene(seed, ("ellipsoid", "cylinder", "sphere", "box"))
    mj, there, model, here = loaded(xml, velocity)
    for _ in range(STEPS):
        here.qpos[:], here.qvel[:] = there.qpos, there.qvel
        mujoco.mj_forward(mj, there)
        fl.forward(model, here)
        ours = {c[:2]: c for c in contacts(here)}
        for pair, c in {c[:2]: c for c in contacts(there)}.items():
            assert pair in ours and ours[pair][3] == c[3]
            np.testing.assert_allclose(ours[pair][2], c[2], rtol=SEARCH, atol=SEARCH)
            np.testing.assert_allclose(ours[pair][7:], c[7:], atol=1e-4)
        mujoco.mj_step(mj, there)


@pytest.mark.parametrize("obstacle", OBSTACLES)
@pytest.mark.parametrize("kind", ["sphere", "box"])
def test_geoms_in_the_line_of_sight_hide_a_contact(obstacle, kind):
    mj, there, model, here = loaded(HIDDEN.format(obstacle, kind))
    there.qvel[:3] = here.qvel[:3] = [0.3, 0.1, -SPEED]
    mujoco.mj_forward(mj, there)
    fl.forward(model, here)
    expected, given = contacts(there), contacts(here)
    assert [c[:2] for c in given] == [c[:2] for c in expected]
    np.testing.assert_allclose(np.array(given)[:, 2:], np.array(expected)[:, 2:], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("contact_model", MODELS)
def test_a_fast_ball_does_not_tunnel(contact_model):
    model = fl.load(BALL)
    model.opt.contact_model = contact_model
    data = fl.Data(model)
    data.qvel[2] = -SPEED
    lowest = np.inf
    for _ in range(20):
        fl.step(model, data)
        lowest = min(lowest, data.qpos[2])
    assert lowest > 0.0 and abs(data.qvel[2]) < 1.0


def test_without_the_flag_the_ball_tunnels():
    model = fl.load(BALL)
    model.opt.enableflags = 0
    data = fl.Data(model)
    data.qvel[2] = -SPEED
    fl.step(model, data)
    assert data.qpos[2] < -0.1 and data.ncon == 0


@pytest.mark.parametrize("contact_model", MODELS)
def test_the_ball_arrives_at_the_surface_at_the_end_of_the_step(contact_model):
    model = fl.load(BALL)
    model.opt.contact_model = contact_model
    data = fl.Data(model)
    data.qvel[2] = -SPEED
    fl.step(model, data)
    # the clearance at impact is at most 3 % of the distance at the start
    gap = data.qpos[2] - 0.0055
    assert -1e-4 < gap < 0.03 * 0.1945


@pytest.mark.parametrize("contact_model", ["lcp", "coulomb"])
def test_a_bouncing_ball_reverses_in_the_step(contact_model):
    model = fl.load(BALL)
    model.opt.contact_model = contact_model
    model.geom_restitution[:] = 0.5
    data = fl.Data(model)
    data.qvel[2] = -SPEED
    fl.step(model, data)
    np.testing.assert_allclose(data.qvel[2], 0.5 * SPEED, rtol=1e-4)  # regularized


@pytest.mark.parametrize("contact_model", MODELS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_worlds_of_a_batch_do_not_depend_on_each_other(contact_model, dtype):
    xml, velocity = random_scene(3)
    model = fl.load(xml)
    model.opt.integrator, model.opt.cone, model.opt.iterations = "euler", "elliptic", 20
    model.opt.contact_model = contact_model
    n = tile_width(dtype) + 3
    scale = np.linspace(0.0, 1.5, n)[:, None]
    batch = fl.Batch(model, nworld=n, dtype=dtype)
    batch.qvel[:] = scale * velocity
    batch.step(nstep=4)
    assert np.isfinite(batch.qpos).all()
    order = np.random.default_rng(0).permutation(n)
    other = fl.Batch(model, nworld=n, dtype=dtype)
    other.qvel[:] = (scale * velocity)[order]
    other.step(nstep=4)
    np.testing.assert_array_equal(other.qpos, batch.qpos[order])
    one = fl.Batch(model, nworld=1, dtype=dtype)
    one.qvel[:] = scale[-1] * velocity
    one.step(nstep=4)
    np.testing.assert_array_equal(one.qpos[0], batch.qpos[-1])


def test_worlds_have_separate_time_steps_sizes_and_solref():
    model, n = fl.load(BALL), 5
    batch = fl.Batch(model, nworld=n)
    batch.expand("opt_timestep")[:, 0] = np.linspace(1e-3, 3e-3, n)
    batch.expand("geom_solref")[:] = np.array([[[0.02 + 0.01 * k, 1.0]] * 2 for k in range(n)])
    batch.expand("opt_ccd_tolerance")[:, 0] = np.linspace(1e-6, 5e-3, n)
    batch.qvel[:, 2] = -SPEED
    batch.step()
    for k in range(n):
        mj = mujoco.MjModel.from_xml_string(BALL)
        mj.opt.timestep, mj.opt.ccd_tolerance = 1e-3 + k * 5e-4, np.linspace(1e-6, 5e-3, n)[k]
        mj.geom_solref[:] = [0.02 + 0.01 * k, 1.0]
        data = mujoco.MjData(mj)
        data.qvel[2] = -SPEED
        mujoco.mj_step(mj, data)
        np.testing.assert_allclose(batch.qvel[k], data.qvel, atol=1e-9)


@pytest.mark.parametrize("count", [40, 1200])
def test_many_bodies_match_mujoco(count):
    side = int(np.ceil(np.sqrt(count)))
    bodies = "".join(
        f'<body pos="{0.03 * (i % side)} {0.03 * (i // side)} {0.05 + 0.001 * (i % 7)}"><freejoint/>'
        '<geom type="sphere" size=".004" mass=".1"/></body>'
        for i in range(count)
    )
    xml = f"""<mujoco><option timestep="0.002" jacobian="sparse"><flag speculative="enable"/></option><worldbody>
      <geom type="box" size="2 2 .0005"/>{bodies}</worldbody></mujoco>"""
    velocity = np.random.default_rng(0).normal(size=(count, 6)) * [5, 5, 30, 1, 1, 1] - [0, 0, 40, 0, 0, 0]
    mj, there, model, here = loaded(xml, velocity.ravel())
    mujoco.mj_forward(mj, there)
    fl.forward(model, here)
    expected, given = contacts(there), contacts(here)
    assert len(expected) > count // 4 and [c[:2] for c in given] == [c[:2] for c in expected]
    np.testing.assert_allclose(np.array(given)[:, 2:7], np.array(expected)[:, 2:7], rtol=1e-9, atol=1e-9)


def test_a_fast_ball_wakes_a_sleeping_plate():
    xml = """<mujoco><option timestep="0.002" gravity="0 0 0"><flag speculative="enable" sleep="enable"/></option>
      <worldbody>
        <body pos="0 0 0"><freejoint/><geom type="box" size=".2 .2 .0005" mass="1"/></body>
        <body pos=".05 0 .2"><freejoint/><geom type="sphere" size=".005" mass="1"/></body>
      </worldbody></mujoco>"""
    mj, there, model, here = loaded(xml)
    for _ in range(30):
        mujoco.mj_step(mj, there)
        fl.step(model, here)
    assert not there.tree_awake[0] and here.tree_asleep[0] >= 0
    there.qvel[8] = here.qvel[8] = -SPEED
    for _ in range(5):
        mujoco.mj_step(mj, there)
        fl.step(model, here)
    assert there.tree_awake[0]
    np.testing.assert_allclose(here.qpos, there.qpos, atol=1e-9)
    np.testing.assert_allclose(here.qvel, there.qvel, atol=1e-8 * SPEED)


def test_adhesive_contacts_match_mujoco():
    xml = BALL.replace('type="sphere"', 'type="sphere" adhesion="5" gap=".01" condim="3"')
    error, found = parity(xml, [1.0, 0, -SPEED, 0, 0, 0], 6)
    assert found and error < SAME


@pytest.mark.parametrize("seed", [1, 4])
def test_inverse_dynamics_match_mujoco(seed):
    mj, there, model, here = loaded(*random_scene(seed))
    for _ in range(3):
        mujoco.mj_step(mj, there)
    here.qpos[:], here.qvel[:] = there.qpos, there.qvel
    there.qacc[:] = here.qacc[:] = np.random.default_rng(seed).normal(size=mj.nv)
    mujoco.mj_inverse(mj, there)
    fl.inverse(model, here)
    assert relative(here.qfrc_inverse, there.qfrc_inverse) < SAME


@pytest.mark.parametrize("flags", [SPECULATIVE, 0])
def test_the_flag_can_be_edited(flags):
    model = fl.load(BALL)
    model.opt.enableflags = SPECULATIVE - flags
    batch = fl.Batch(model, nworld=2)
    model.opt.enableflags = flags
    batch.qvel[:, 2] = -SPEED
    batch.step()
    assert (batch.qpos[:, 2] > 0.0).all() == bool(flags)


def test_disabling_nativeccd_disables_contacts_within_the_step():
    mj, there, model, here = loaded(BALL.replace("speculative=", 'nativeccd="disable" speculative='))
    there.qvel[2] = here.qvel[2] = -SPEED
    mujoco.mj_step(mj, there)
    fl.step(model, here)
    np.testing.assert_allclose(here.qpos, there.qpos, atol=1e-12)
    assert here.qpos[2] < 0.0


def test_the_flag_changes_no_bit_of_slow_motion():
    results = []
    for flag in ("enable", "disable"):
        model = fl.load(BALL.replace('speculative="enable"', f'speculative="{flag}"').replace("0 0 0", "0 0 -9.81"))
        data = fl.Data(model)
        data.qpos[2] = 0.0058  # it falls with less than 0.1 m/s: 0.2 mm in a step
        for _ in range(100):
            fl.step(model, data)
        results.append(np.concatenate([data.qpos, data.qvel]))
    np.testing.assert_array_equal(*results)


def test_derivatives_are_refused():
    model = fl.load(BALL)
    data = fl.Data(model)
    for differentiate in (fl.linearize, fl.acceleration_derivatives, fl.inverse_derivatives):
        with pytest.raises(fl.UnsupportedFeatureError, match="speculative"):
            differentiate(model, data)


def test_a_negative_tolerance_is_refused():
    model = fl.load(BALL)
    with pytest.raises(fl.ModelError, match="ccd_tolerance"):
        model.opt.ccd_tolerance = -1.0
