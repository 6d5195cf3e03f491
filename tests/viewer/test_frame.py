"""The picture of worlds: equal to the results of `fl.forward`, and the worlds do not change."""

import copy

import numpy as np
import pytest

import featherlane as fl
from featherlane.apps.viewer.frame import LAYERS, MOST_DETAILED, Frame
from featherlane.errors import ModelError
from featherlane.extension import batch_of

EXACT = 1e-12  # kernels for one world and for many round alike; sums here do not
LONG_CHORD = 0.02  # nearly a full circle
CHORD = 2e-3  # an arc in 8 pieces is shorter by this factor
WRAPS = """
<mujoco>
  <worldbody>
    <geom name="drum" type="cylinder" size=".1 .3" pos="0 0 .5" euler="90 10 0"/>
    <site name="left" pos="-.3 .1 .45"/><site name="right" pos=".3 -.2 .5"/><site name="above" pos="0 0 .8"/>
    <site name="b" pos="-.4 0 .05"/>
    <body>
      <joint type="hinge" axis="0 1 0"/>
      <geom name="ball" type="sphere" size=".1"/><geom type="capsule" fromto="0 0 0 .5 0 0" size=".02"/>
      <site name="a" pos=".4 0 .05"/><site name="side" pos="0 0 .2"/><site name="inside" pos="0 0 .02"/>
    </body>
  </worldbody>
  <tendon>
    <spatial><site site="a"/><geom geom="ball" sidesite="side"/><site site="b"/></spatial>
    <spatial><site site="left"/><geom geom="drum" sidesite="above"/><site site="right"/></spatial>
    <spatial>
      <site site="left"/><site site="a"/><pulley divisor="2"/><site site="b"/><geom geom="ball"/><site site="right"/>
    </spatial>
    <spatial><site site="a"/><geom geom="ball" sidesite="inside"/><site site="b"/></spatial>
    <fixed><joint joint="turn" coef="2"/></fixed>
  </tendon>
</mujoco>
""".replace('axis="0 1 0"', 'name="turn" axis="0 1 0"')
PILE = """
<mujoco>
  <option><flag sleep="{sleep}"/></option>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
    <body pos="0 0 .3"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
    <body pos="1 0 .1"><freejoint/><geom type="sphere" size=".1"/></body>
    <body pos="2 0 5"><freejoint/><geom type="sphere" size=".1"/></body>
  </worldbody>
</mujoco>
"""


def thrown(name, nworld, steps=40):
    """Returns a batch whose worlds have diverged from each other."""
    model = fl.bundled(name)
    batch = fl.Batch(model, nworld)
    batch.qvel[:] = np.random.default_rng(1).normal(size=batch.qvel.shape)
    batch.step(steps)
    return model, batch


def everything(batch):
    return {name: array.copy() for name, array in batch.checkpoint().items()}


# ---- poses -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["humanoid", "hand", "slider_crank"])
def test_poses_equal_those_of_forward(name):
    _, batch = thrown(name, 11)
    frame = Frame.of(batch, [2, 7, 10], {"joints", "mass centres"})
    assert frame.worlds.tolist() == [2, 7, 10]
    for k, world in enumerate(frame.worlds):
        data = batch.get_data(world)
        assert np.array_equal(frame.pos[k], data.xpos) and np.array_equal(frame.quat[k], data.xquat)
        assert np.array_equal(frame.fields["xanchor"][k], data.xanchor)
        assert np.array_equal(frame.fields["xaxis"][k], data.xaxis)
        assert np.array_equal(frame.fields["xipos"][k], data.xipos)
        assert frame.time[k] == data.time


def test_a_frame_shows_the_state_after_a_step_not_the_one_before_it():
    model = fl.bundled("pendulum")
    data = fl.Data(model)
    data.qpos[:], data.qvel[:] = 0.3, 5.0
    fl.step(model, data)
    before = data.xquat.copy()
    frame = Frame.of(batch_of(data))
    fl.forward(model, data)
    assert np.array_equal(frame.quat[0], data.xquat)
    assert not np.array_equal(before, data.xquat)


def test_mocap_bodies_and_expanded_models_are_shown():
    model = fl.load(
        "<mujoco><worldbody><body name='m' mocap='true'><geom size='.1'/></body>"
        "<body name='b' pos='0 0 1'><joint/><geom size='.1'/></body></worldbody></mujoco>"
    )
    batch = fl.Batch(model, 3)
    batch.mocap_pos[:, 0] = np.arange(9.0).reshape(3, 3)
    batch.expand("body_pos")[:, 2, 0] = (7, 8, 9)
    batch.expand("body_mass")[:, 2] = (1, 2, 3)
    frame = Frame.of(batch, None, {"inertias"})
    assert np.array_equal(frame.pos[:, 1], np.arange(9.0).reshape(3, 3))
    assert frame.pos[:, 2, 0].tolist() == [7, 8, 9]
    assert frame.fields["body_mass"][:, 2].tolist() == [1, 2, 3]
    assert frame.fields["body_inertia"].shape == (3, 3, 3)
    data = fl.Data(model)
    data.mocap_pos[0] = (1, 2, 3)
    assert Frame.of(batch_of(data)).pos[0, 1].tolist() == [1, 2, 3]


def test_a_batch_stays_as_it_is():
    _, batch = thrown("humanoid", 9)
    bound = batch.bind("xpos")
    batch.step()
    twin, state, outputs = copy.deepcopy(batch), everything(batch), bound.copy()
    Frame.of(batch, None, set(LAYERS))
    assert all(np.array_equal(state[name], array) for name, array in everything(batch).items())
    assert np.array_equal(bound, outputs)
    batch.step(20), twin.step(20)
    assert np.array_equal(batch.qpos, twin.qpos)


def test_a_data_stays_as_it_is():
    model = fl.bundled("humanoid")
    data = fl.Data(model)
    for _ in range(60):
        fl.step(model, data)
    kept = {name: np.array(getattr(data, name)) for name in ("qpos", "xpos", "qacc", "con_force", "warning", "time")}
    Frame.of(batch_of(data), None, set(LAYERS))
    assert all(np.array_equal(getattr(data, name), value) for name, value in kept.items())


def test_only_drawn_quantities_are_computed():
    _, batch = thrown("humanoid", 2)
    frame = Frame.of(batch, None, {"geoms", "sites", "bodies", "hulls"})
    assert frame.asleep is frame.touches is frame.paths is None and frame.fields == {}
    assert frame.shows("bodies") and not frame.shows("joints")


def test_model_edits_take_effect():
    model = fl.bundled("pendulum")
    data = fl.Data(model)
    first = Frame.of(batch_of(data)).pos.copy()
    model.body_pos[1, 0] += 2
    assert Frame.of(batch_of(data)).pos[0, 1, 0] == pytest.approx(first[0, 1, 0] + 2)


# ---- contacts, islands, sleep ------------------------------------------------------------------------------
@pytest.mark.parametrize("contact_model", ["convex", "lcp"])
def test_contacts_and_their_forces_equal_those_of_forward(contact_model):
    model, batch = thrown("humanoid", 4, 300)
    model.opt.contact_model = contact_model
    batch.step(20)
    touches = Frame.of(batch, [1, 3], {"contacts"}).touches
    for k, world in enumerate((1, 3)):
        data, here = batch.get_data(world), touches.world == k
        contact = data.contact
        assert len(contact) > 0
        assert np.array_equal(touches.pos[here], contact.pos) and np.array_equal(touches.geom[here], contact.geom)
        frames = contact.frame.reshape(-1, 3, 3)
        assert np.array_equal(touches.normal[here], frames[:, 0])
        forces = [fl.query.contact_force(model, data, i)[:3] @ frames[i] for i in range(len(contact))]
        assert np.allclose(touches.force[here], forces, rtol=EXACT, atol=EXACT)
        assert np.abs(touches.force[here]).max() > 1


def test_contacts_at_rest_carry_the_weight():
    model = fl.load(PILE.format(sleep="disable"))
    data = fl.Data(model)
    for _ in range(300):
        fl.step(model, data)
    touches = Frame.of(batch_of(data), None, {"forces"}).touches
    floor = touches.force[(touches.geom == 0).any(1)]
    assert floor[:, 2].sum() == pytest.approx(9.81 * model.body_mass[1:4].sum(), rel=1e-3)  # the last ball falls


def test_bodies_that_touch_are_an_island():
    model = fl.load(PILE.format(sleep="disable"))
    data = fl.Data(model)
    for _ in range(30):
        fl.step(model, data)
    island = Frame.of(batch_of(data), None, {"islands"}).fields["tree_island"]
    assert island.tolist() == [[0, 0, 1, -1]]


def test_sleeping_trees_are_reported():
    model = fl.load(PILE.format(sleep="enable"))
    batch = fl.Batch(model, 3)
    batch.qvel[1, 0] = 3.0
    batch.step(150)
    data = batch.get_data(0)
    frame = Frame.of(batch, None, {"sleep"})
    assert frame.asleep[0].tolist() == [True, True, True, False]
    assert not frame.asleep[1, 0]
    assert np.array_equal(frame.asleep[0], data.tree_asleep >= 0)
    assert Frame.of(batch_of(data), None, {"sleep"}).asleep.tolist() == [[True, True, True, False]]
    awake = fl.Batch(fl.load(PILE.format(sleep="disable")), 2)
    assert not Frame.of(awake, None, {"sleep"}).asleep.any()


def test_only_contacts_of_the_first_worlds_are_computed():
    model = fl.load(PILE.format(sleep="disable"))
    batch = fl.Batch(model, MOST_DETAILED + 3)
    batch.step(20)
    frame = Frame.of(batch, None, {"contacts", "islands"})
    assert np.unique(frame.touches.world).tolist() == list(range(MOST_DETAILED))
    island = frame.fields["tree_island"]
    assert (island[MOST_DETAILED:] == -1).all() and (island[:MOST_DETAILED, 0] == 0).all()


def test_user_contacts_are_shown():
    model = fl.load(PILE.format(sleep="disable"))
    data = fl.Data(model, given_contacts=1)
    data.give_contacts([-0.001], [(2, 0, 4.9)], [(0, 0, 1)], geom=[(0, 4)], replace=True)
    touches = Frame.of(batch_of(data), None, {"contacts"}).touches
    assert touches.pos.tolist() == [[2, 0, 4.9]]


# ---- tendons -----------------------------------------------------------------------------------------------
def test_drawn_tendon_paths_have_the_tendon_length():
    model = fl.load(WRAPS)
    batch = fl.Batch(model, 21)
    batch.qpos[:, 0] = np.linspace(-1.2, 1.2, 21)
    ways = Frame.of(batch, None, {"tendons"}).paths
    length = np.zeros((21, model.ntendon))
    np.add.at(length, (ways.world, ways.tendon), np.linalg.norm(ways.end - ways.start, axis=1))
    exact = batch.bind("ten_length")
    batch.forward()
    assert np.allclose(length[:, (0, 1, 3)], exact[:, (0, 1, 3)], rtol=CHORD)
    assert (length[:, 4] == 0).all()  # a fixed tendon has no path
    assert len(np.unique(np.bincount(ways.world[ways.tendon == 0]))) == 2  # it bends in some worlds and not in others


def test_drawn_tendon_paths_pass_through_the_points_of_tendon_path():
    model = fl.load(WRAPS)
    data = fl.Data(model)
    for angle in (-0.9, 0.4, 1.1):
        data.qpos[:] = angle
        fl.forward(model, data)
        ways = Frame.of(batch_of(data), None, {"tendons"}).paths
        for tendon in range(model.ntendon):
            corners = np.concatenate((ways.start[ways.tendon == tendon], ways.end[ways.tendon == tendon]))
            for branch in fl.query.tendon_path(model, data, tendon).branches():
                for point in branch:
                    assert np.abs(corners - point).max(1).min() < EXACT


def test_tendon_arcs_lie_on_their_wrapping_geoms():
    model = fl.load(WRAPS)
    data = fl.Data(model)
    data.qpos[:] = 1.1
    fl.forward(model, data)
    ways = Frame.of(batch_of(data), None, {"tendons"}).paths
    ball = ways.start[ways.tendon == 0]
    assert np.isclose(np.linalg.norm(ball, axis=1), 0.1).sum() == 9
    drum, axis = ways.start[ways.tendon == 1] - (0, 0, 0.5), data.geom_xmat[0].reshape(3, 3)[:, 2]
    assert np.isclose(np.linalg.norm(np.cross(drum, axis), axis=1), 0.1).sum() == 9


@pytest.mark.parametrize("shape", ['type="sphere" size=".1"', 'type="cylinder" size=".1 .3" euler="90 0 0"'])
def test_an_arc_can_exceed_half_a_turn(shape):
    model = fl.load(f"""
        <mujoco><worldbody>
          <geom name="g" {shape}/><site name="a" pos="-.02 0 -.15"/><site name="b" pos=".02 .05 -.15"/>
          <site name="over" pos="0 0 .2"/>
        </worldbody><tendon><spatial>
          <site site="a"/><geom geom="g" sidesite="over"/><site site="b"/>
        </spatial></tendon></mujoco>""")
    data = fl.Data(model)
    fl.forward(model, data)
    ways = Frame.of(batch_of(data), None, {"tendons"}).paths
    assert data.ten_length[0] > 0.1 * np.pi + 0.2
    assert np.linalg.norm(ways.end - ways.start, axis=1).sum() == pytest.approx(data.ten_length[0], rel=LONG_CHORD)
    assert ways.start[:, 2].max() == pytest.approx(0.1, rel=0.02)  # it goes over the top


# ---- errors ------------------------------------------------------------------------------------------------
def test_wrong_calls_are_reported():
    model, batch = thrown("pendulum", 3, 1)
    data = fl.Data(model)
    with pytest.raises(ModelError):
        Frame.of(batch_of(data), None, {"contatcs"})
    with pytest.raises(ModelError):
        Frame.of(batch, [3])
    with pytest.raises(ModelError):
        Frame.of(batch_of(data), [1])
    assert Frame.of(batch_of(data), [0]).worlds.tolist() == [0]


def test_non_finite_worlds_and_empty_batches_have_frames():
    model, batch = thrown("humanoid", 3, 1)
    batch.qpos[1] = np.nan
    frame = Frame.of(batch, None, set(LAYERS))
    assert np.isnan(frame.pos[1, 1:]).any() and np.isfinite(frame.pos[[0, 2]]).all()
    assert Frame.of(batch, [], set(LAYERS)).pos.shape == (0, model.nbody, 3)
    empty = fl.load("<mujoco/>")
    assert Frame.of(fl.Batch(empty, 1), None, set(LAYERS)).pos.shape == (1, 1, 3)
