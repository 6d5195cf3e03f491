"""Worlds in time: replay from a state, dragging by hand, errors, non-finite worlds."""

import importlib
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

import featherlane as fl
from featherlane.apps.viewer.history import History, Moment
from featherlane.apps.viewer.playback import Playback
from featherlane.apps.viewer.session import FIRST_STEPS, PIECE, Session

EVERYTHING = int(fl.State.INTEGRATION)
BALL = """<mujoco><worldbody><geom type="plane" size="9 9 .1"/>
<body name="ball" pos="0 0 {}"><freejoint/>{}</body></worldbody></mujoco>"""
MASSIVE = '<geom size=".1" mass="2"/>'


def ball(height=1.0, inside=MASSIVE):
    return fl.load(BALL.format(height, inside))


def state(session):
    batch = session.batch
    return fl.get_state(batch.model, batch, EVERYTHING)


@pytest.fixture
def fallen():
    """Returns a humanoid with controls after 150 steps, and the states before."""
    session = Session.of(fl.bundled("humanoid"))
    states = []
    for k in range(150):
        session.set_control(k % session.model.nu, np.sin(k))
        states.append(state(session))
        session.advance(1 + k % 3)
    return session, [*states, state(session)]


def test_every_past_step_is_restored_bitwise_equally(fallen):
    session, states = fallen
    for k in (3, 77, 149, 150):
        session.seek(k)
        assert np.array_equal(state(session), states[k])


def test_a_restored_past_state_continues_bitwise_equally():
    session = Session.of(fl.bundled("humanoid"))
    session.advance(2 * PIECE + 5)
    after, clock = state(session), session.clock
    session.seek(0, 17)
    assert session.position == (0, 17)
    session.advance(2 * PIECE + 5 - 17)
    assert np.array_equal(state(session), after)
    assert session.clock == pytest.approx(clock)


def test_steps_back_and_forward_return_to_the_same_state():
    session = Session.of(fl.bundled("quadruped"), nworld=3)
    session.advance(50)
    after = state(session)
    assert all(session.step_back() for _ in range(50))
    assert not session.step_back()
    assert session.clock == 0.0
    session.advance(50)
    assert np.array_equal(state(session), after)


def test_viewing_the_past_keeps_the_present():
    session = Session.of(ball())
    session.advance(40)
    after, moments = state(session), len(session.history)
    session.seek(0)
    session.seek(len(session.history))
    assert session.position is None
    assert len(session.history) == moments
    assert np.array_equal(state(session), after)


def test_a_drag_replays_bitwise_equally():
    session = Session.of(fl.bundled("humanoid"))
    session.mouse.grab(0, 1, [0.0, 0.0, 1.3])
    session.advance(30)
    session.mouse.move([0.3, 0.0, 2.0])
    session.advance(40)
    after = state(session)
    session.seek(0, 5)
    session.seek(len(session.history))
    assert np.array_equal(state(session), after)
    for _ in range(10):
        session.step_back()
    session.mouse.release()
    session.seek(2, 8)
    assert np.array_equal(state(session), after)  # the recorded pulls, not those of the hand now


def test_the_spring_holds_a_ball_against_gravity():
    """At rest the spring's force is the weight, m g = m w^2 (distance), for any mass."""
    session = Session.of(ball())
    session.mouse.grab(0, 1, [0.0, 0.0, 1.0])
    session.advance(2000)
    sag = 1.0 - session.batch.qpos[0, 2]
    assert sag == pytest.approx(9.81 / session.mouse.frequency**2, rel=1e-3)
    world, held, target = session.mouse.spring()
    assert world == 0 and target[2] == 1.0
    assert held[2] == pytest.approx(1.0 - sag)


def test_an_impulse_changes_the_momentum_by_itself():
    session = Session.of(ball(5.0))
    session.set_option("gravity", (0, 0, 0))
    session.mouse.push(0, 1, [3.0, -1.0, 0.0])
    session.advance(100)
    assert session.batch.qvel[0, :3] == pytest.approx([1.5, -0.5, 0.0], rel=1e-6)
    assert not session.batch.xfrc_applied.any()


def test_static_bodies_cannot_be_dragged():
    session = Session.of(ball())
    with pytest.raises(fl.ModelError):
        session.mouse.grab(0, 0, [0, 0, 0])
    with pytest.raises(fl.ModelError):
        session.mouse.grab(0, 1, [0, 0, np.nan])
    with pytest.raises(fl.ModelError):
        session.mouse.grab(1, 1, [0, 0, 0])
    assert session.mouse.spring() is None


@pytest.mark.parametrize(
    "name, value",
    [("timestep", -1.0), ("timestep", np.nan), ("solver", "bogus"), ("gravity", (1, 2)), ("viscosity", "x"), ("no", 1)],
)
def test_a_refused_option_changes_nothing(name, value):
    session = Session.of(ball())
    before = repr(session.model.opt)
    with pytest.raises(fl.ModelError):
        session.set_option(name, value)
    assert repr(session.model.opt) == before and session.epoch == 0
    session.advance(3)


def test_options_hold_from_the_next_step_on():
    session = Session.of(ball(5.0))
    session.set_option("gravity", (0, 0, 2.0))
    session.set_option("timestep", 0.01)
    session.advance(10)
    assert session.batch.qvel[0, 2] == pytest.approx(0.2)
    assert session.clock == pytest.approx(0.1)


def test_steps_under_an_edited_model_are_not_replayed():
    session = Session.of(ball(5.0))
    session.advance(20)
    session.set_option("gravity", (0, 0, 0))
    session.advance(5)
    with pytest.raises(fl.ModelError, match="edited after"):
        session.seek(0, 3)
    session.seek(0)
    assert session.batch.qpos[0, 2] == 5.0  # a state is valid for every model


def test_a_mass_edit_updates_inertia_and_constants():
    session = Session.of(ball(5.0))
    inertia = session.model.body_inertia[1].copy()
    session.set_mass(1, 6.0)
    assert session.mass(1) == 6.0 and session.model.body_subtreemass[1] == 6.0
    assert session.model.body_inertia[1] == pytest.approx(3 * inertia)


def test_one_world_of_many_can_have_its_own_mass():
    session = Session.of(ball(5.0), nworld=3)
    session.set_option("gravity", (0, 0, 0))
    session.set_mass(1, 4.0, [1])
    for world in range(3):
        session.mouse.push(world, 1, [2.0, 0, 0])
    session.advance(50)
    assert session.batch.qvel[:, 0] == pytest.approx([1.0, 0.5, 1.0], rel=1e-6)
    assert [session.mass(1, world) for world in range(3)] == [2.0, 4.0, 2.0]
    session.set_mass(1, 8.0)
    assert [session.mass(1, world) for world in range(3)] == [8.0, 16.0, 8.0]  # of world 0; the others are scaled


def test_friction_is_that_of_all_geoms_of_a_body():
    session = Session.of(ball(), nworld=2)
    session.set_friction(1, 0.25, [1])
    assert [session.friction(1, world) for world in range(2)] == [1.0, 0.25]
    with pytest.raises(fl.ModelError):
        session.set_friction(1, -1.0)
    for mass in (0.0, -1.0, np.nan):
        with pytest.raises(fl.ModelError):
            session.set_mass(1, mass)
    with pytest.raises(fl.ModelError):
        session.set_mass(0, 1.0)


def test_the_clock_drives_the_worlds(monkeypatch):
    ticks = count()
    timer = SimpleNamespace(perf_counter=lambda: 1e-3 * next(ticks))  # steps cost the same on a busy machine
    monkeypatch.setattr(importlib.import_module("featherlane.apps.viewer.session"), "time", timer)
    session = Session.of(ball(50.0))
    assert session.tick(0.0) == 0 and session.tick(1.0) == 0
    session.run()
    session.tick(1.0)
    steps = sum(session.tick(1.0 + 0.02 * k) for k in range(1, 51))
    assert steps == pytest.approx(1.0 / session.timestep, abs=1)
    session.set_speed(0.1)
    steps = sum(session.tick(2.0 + 0.02 * k) for k in range(1, 51))
    assert steps == pytest.approx(0.1 / session.timestep, abs=1)
    session.pause()
    assert session.tick(10.0) == 0
    with pytest.raises(fl.ModelError):
        session.set_speed(0.0)


def test_time_without_clients_is_not_caught_up():
    session = Session.of(ball(50.0))
    session.run()
    session.tick(0.0)
    assert session.tick(1000.0) <= 0.1 / session.timestep


def test_a_tiny_time_step_takes_a_few_steps_per_frame():
    """The clock is 1e39 steps behind; at the first tick the duration of a step is not measured yet."""
    session = Session.of(ball())
    session.set_option("timestep", 1e-40)
    session.run()
    session.tick(0.0)
    assert 0 < session.tick(1.0) <= FIRST_STEPS


def test_a_reset_can_be_undone():
    session = Session.of(ball(), nworld=2)
    session.advance(40)
    before = state(session)
    session.reset()
    assert (session.batch.time == 0).all()
    session.advance(3)
    while session.batch.time[0] < 0.07 and session.step_back():
        pass
    assert np.array_equal(state(session), before)
    with pytest.raises(fl.ModelError):
        session.reset(3)


def test_a_session_continues_from_bookmarks():
    session = Session.of(fl.bundled("humanoid"))
    session.advance(20)
    session.bookmark("here")
    session.advance(40)
    after = state(session)
    session.recall("here")
    session.advance(40)
    assert np.array_equal(state(session), after)
    with pytest.raises(fl.ModelError):
        session.recall("her")


def test_the_contact_models_start_from_one_state():
    session = Session.of(fl.bundled("box_stack"), nworld=2)
    session.advance(30)
    models, message = session.side_by_side(1)
    assert (models.batch.qpos == session.batch.qpos[1]).all()
    assert [model.opt.contact_model for model in models.batch.models] == ["convex", "coulomb", "lcp"]
    models.advance(100)
    assert len(np.unique(models.batch.qpos, axis=0)) == 3
    with pytest.raises(fl.ModelError):
        models.set_option("contact_model", "lcp")
    models.set_option("timestep", 0.001)
    assert [model.opt.timestep for model in models.batch.models] == [0.001] * 3
    assert session.model.opt.contact_model == "convex" and (message == "") == (int(session.model.opt.integrator) == 0)


def test_an_option_refused_by_one_model_is_set_in_none():
    models, _ = Session.of(ball()).side_by_side(0)
    with pytest.raises(fl.UnsupportedFeatureError):
        models.set_option("integrator", "rk4")
    assert [int(model.opt.integrator) for model in models.batch.models] == [0, 0, 0]


@pytest.mark.parametrize("pulled", [False, True])
def test_the_last_second_of_a_non_finite_world_is_replayed(pulled):
    """World 1 is thrown too hard; its motion until then is replayed step by step, bitwise identical."""
    session = Session.of(ball(), nworld=3)
    session.advance(700)
    if pulled:
        session.mouse.grab(1, 1, session.batch.qpos[1, :3])
    for _ in range(20):
        session.advance(5)
    good = session.batch.qpos[1].copy()
    session.batch.qfrc_applied[1, 0] = 1e30
    session.advance(5)
    assert session.bad_worlds == [1]
    incident = session.incidents[0]
    frames, failure = incident.replay()
    assert incident.world == 1 and failure.cause == "non_finite"
    assert np.array_equal(frames["qpos"][0, -1], good)
    assert frames["time"][0, -1] - frames["time"][0, 0] == pytest.approx(1.0, abs=PIECE * session.timestep)
    assert not Playback(incident.model, frames).bad_worlds
    session.advance(5)
    assert len(session.incidents) == 1


def test_failure_replays_start_after_the_last_reset():
    session = Session.of(ball())
    session.advance(50)
    session.reset()
    session.advance(7)
    session.batch.qfrc_applied[0, 0] = 1e30
    session.advance(1)
    frames, failure = session.incidents[0].replay()
    assert frames["time"].shape == (1, 8) and failure is not None


def test_history_is_bounded_in_seconds_and_bytes():
    history = History(seconds=1.0, most_bytes=10_000)
    for k in range(100):
        history.add(Moment({"qpos": np.zeros(10)}, 0.1 * k, 0))
    assert len(history) == 11 and history[0].clock == pytest.approx(8.9)
    assert [moment.clock for moment in history.since(9.55)] == pytest.approx([9.5, 9.6, 9.7, 9.8, 9.9])
    for _ in range(100):
        history.add(Moment({"qpos": np.zeros(500)}, 9.9, 0))
    assert len(history) == 2
    history.add(Moment({"qpos": np.zeros(5000)}, 9.9, 0))
    assert len(history) == 1, "the newest stays"
    with pytest.raises(IndexError):
        history[1]
    history.drop_from(0)
    assert len(history) == 0
    for _ in range(2):
        history.add(Moment({"qpos": np.zeros(600)}, 9.9, 0))
    assert len(history) == 2, "no bytes are left of what was dropped"


@pytest.mark.parametrize("text", ["<mujoco/>", BALL.format(1.0, MASSIVE).replace("<freejoint/>", "")])
def test_worlds_without_dofs_run(text):
    session = Session.of(fl.load(text))
    session.run()
    session.advance(10)
    session.step_back()
    session.reset()
    assert session.clock == pytest.approx(9 * session.timestep)


def test_a_batch_is_run_on_from_a_copy():
    batch = fl.Batch(ball(), 3)
    batch.expand("body_mass")[1] *= 2
    batch.set_const()
    batch.qvel[:, 0] = (1, 2, 3)
    batch.step(5)
    session = Session.from_batch(batch)
    assert np.array_equal(session.batch.qpos, batch.qpos) and session.mass(1, 1) == 4.0
    before = batch.qpos.copy()
    session.advance(30)
    assert np.array_equal(batch.qpos, before)
    batch.step(30)
    assert np.array_equal(session.batch.qpos, batch.qpos)


def test_only_models_have_sessions():
    with pytest.raises(fl.errors.ArgumentTypeError):
        Session.of("humanoid")
    with pytest.raises(fl.ModelError):
        Session.of(ball(), nworld=0)


def test_a_slider_that_poses_a_running_world_stores_no_state_for_each_position():
    session = Session.of(fl.bundled("pendulum"))
    session.run()
    session.advance(5)
    for angle in np.linspace(0.0, 1.0, 50):
        session.pose([0], [angle], None)
    assert len(session.history) == 1
    session.advance(5)
    after = state(session)
    session.seek(1)
    assert session.batch.qpos[0, 0] == 1.0 and session.batch.qvel[0, 0] == 0.0
    session.seek(len(session.history))
    assert np.array_equal(state(session), after)
    session.seek(0, 5)
    assert session.batch.time[0] == pytest.approx(5 * session.timestep)


def test_posing_a_paused_world_can_be_undone():
    session = Session.of(fl.bundled("pendulum"))
    session.advance(5)
    before = state(session)
    for angle in (0.1, 0.2):
        session.pose([0], [angle], [0])
    session.advance(1)
    session.step_back()
    assert session.batch.qpos[0, 0] == 0.2
    session.step_back()
    assert np.array_equal(state(session), before)
    with pytest.raises(fl.ModelError, match="joint position"):
        session.pose([0], [np.nan], None)
