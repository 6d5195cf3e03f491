"""The page without a browser: effects of its controls on worlds, its errors, and its view of other callers' worlds."""

import asyncio
import io
import threading
import time
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest

import featherlane as fl

pytest.importorskip("viser")

from featherlane.apps.viewer import view as view_module
from featherlane.apps.viewer.markup import markup
from featherlane.apps.viewer.node import Drag
from featherlane.apps.viewer.playback import Playback
from featherlane.apps.viewer.session import Session
from featherlane.apps.viewer.watch import Watch
from featherlane.engine.model.lcp_solver import REGISTERED_SOLVERS
from featherlane.engine.solver.lcp.method import METHODS
from featherlane.lanes import kernel

SECONDS = 20.0  # s, limit of a page's job on a busy machine


@pytest.fixture
def opened():
    """Returns pages that are closed after the test."""
    views = []

    def open_page(what, **options):
        views.append(view_module.view(what, port=0, **{"paused": True} | options))
        return views[-1].page

    yield open_page
    for view in views:
        view.close()


@pytest.fixture
def visited(monkeypatch):
    """Makes pages act as if a visitor were connected."""
    storage = SimpleNamespace(get_item=lambda *_, **__: None)
    guest = SimpleNamespace(add_notification=lambda *_, **__: None, camera=SimpleNamespace(), local_storage=storage)
    monkeypatch.setattr("viser.ViserServer.get_clients", lambda self: {0: guest})


def turn(page, name, value=None):
    """Moves a control of the panel as a visitor; returns when the page has reacted."""
    handle = page.panel.handles[name]
    if value is not None:
        handle._impl.value = value
    press(handle)
    settled(page)


def press(handle):
    """Passes a visitor's click or change on as viser's server does; viser has no public call for it."""
    for callback in list(handle._impl.update_cb):
        asyncio.run(callback(SimpleNamespace(client=object(), client_id=0, target=handle)))


def watcher(batch):
    """Returns the callbacks after a batch's calls: no public attribute shows whether there are any."""
    return batch.runner.watcher


def settled(page):
    """Waits until the given jobs are done."""
    page.ask(lambda: None)


def until(condition):
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.01)


def test_the_clock_of_the_page(opened, visited):
    page = opened("humanoid")
    turn(page, "clock", "Step")
    assert page.source.clock == pytest.approx(page.source.timestep)
    turn(page, "clock", "Back")
    assert page.source.clock == 0.0
    turn(page, "clock", "Run")
    until(lambda: page.source.clock > 0.1)
    turn(page, "clock", "Pause")
    clock = page.source.clock
    time.sleep(0.1)
    assert page.source.clock == clock
    turn(page, "speed", "0.25")
    assert page.source.speed == 0.25
    turn(page, "scrub", 7 * page.source.timestep)
    assert page.source.clock == pytest.approx(7 * page.source.timestep) and not page.source.running
    turn(page, "clock", "Reset")
    assert page.source.batch.time == 0.0 and page.message == ""


def test_worlds_pause_without_a_client(opened):
    page = opened("pendulum", paused=False)
    time.sleep(0.3)
    assert page.source.running and page.source.clock == 0.0
    assert page.frames > 0, "the first picture is there before anybody comes"


def test_keyframes(opened):
    page = opened("humanoid")
    assert page.panel.handles["keyframe"].options[1:] == ("stand", "squat", "lying")
    turn(page, "keyframe", "lying")
    turn(page, "clock", "Reset")
    assert np.array_equal(page.source.batch.qpos[0], page.source.model.key_qpos[2])


@kernel
def unchanged(p, iterations):
    """Leaves the start as it is."""
    return 0


@pytest.fixture
def registered():
    """Registers a solver as the only one; other tests of the process may have registered some."""
    with patch.dict(METHODS, clear=True), patch.dict(REGISTERED_SOLVERS, clear=True):
        fl.lcp.register("unchanged", unchanged)
        yield "unchanged"


def test_registered_lcp_solvers_can_be_selected(opened, request):
    page = opened(fl.load("box_stack"))
    request.getfixturevalue("registered")
    turn(page, "option contact_model", "lcp")
    assert page.panel.handles["option lcp_solver"].options == ("dantzig", "pgs", "apgd", "unchanged")
    turn(page, "option lcp_solver", "unchanged")
    assert page.source.model.opt.lcp_solver == "unchanged" == page.panel.handles["option lcp_solver"].value
    turn(page, "option lcp_solver", "pgs")
    assert page.source.model.opt.lcp_solver == fl.enums.LcpSolver.PGS


def test_options_are_set_and_refused(opened):
    page = opened("humanoid")
    turn(page, "option timestep", 0.002)
    turn(page, "option gravity", (0.0, 0.0, -1.6))
    turn(page, "option solver", "cg")
    model = page.source.model
    assert model.opt.timestep == 0.002 and model.opt.gravity[2] == -1.6 and model.opt.solver.name == "CG"
    turn(page, "option timestep", -1.0)
    assert "timestep" in page.message and model.opt.timestep == 0.002
    assert page.panel.handles["option timestep"].value == 0.002, "the control shows what holds"
    turn(page, "option contact_model", "lcp")
    turn(page, "clock", "Step")
    assert model.opt.contact_model == "lcp"


def test_bodies_and_actuators(opened):
    page = opened("humanoid", nworld=3)
    session = page.source
    turn(page, "body", "head" if "head" in session.model.names("body") else session.model.names("body")[2])
    body = page.picked[1]
    turn(page, "mass", 9.0)
    assert session.mass(body) == 9.0
    turn(page, "picked", 1)
    turn(page, "scope", "the selected world")
    before = session.friction(body)
    turn(page, "friction", 0.25)
    assert [session.friction(body, world) for world in range(3)] == [before, 0.25, before]
    turn(page, "mass", -1.0)
    assert "mass" in page.message and page.panel.handles["mass"].value == 9.0
    turn(page, "actuator 3", 0.5)
    assert session.batch.ctrl[:, 3].tolist() == [0.0, 0.5, 0.0]
    turn(page, "scope", "all worlds")
    turn(page, "actuator 3", -0.5)
    assert (session.batch.ctrl[:, 3] == -0.5).all()
    turn(page, "reset actuators")
    assert not session.batch.ctrl.any()


def test_pushes(opened):
    page = opened("quadruped", nworld=2)
    turn(page, "picked", 1)
    turn(page, "impulse", 5.0)
    turn(page, "push", "+y")
    turn(page, "clock", "Step")
    velocity = page.source.batch.qvel[:, 1]
    assert velocity[1] > velocity[0] == pytest.approx(0.0, abs=1e-6)


def test_a_body_is_picked_by_a_ray_and_dragged(opened):
    page = opened("humanoid", nworld=4)
    offset = page.scene.spread(page.worlds)[2]
    page.ask(lambda: page.pick_along(offset + (0.0, 0.0, 5.0), (0.0, 0.0, -2.0)))
    assert page.picked[0] == 2 and page.source.model.names("body")[page.picked[1]]
    before = page.picked
    page.ask(lambda: page.pick_along(offset + (0.7, 0.7, 5.0), (0.0, 0.0, -1.0)))
    page.ask(lambda: page.pick_along(offset + (0.7, 0.7, 5.0), (0.0, 0.0, 1.0)))
    assert page.picked == before, "the ground and the sky are not picked"
    page.ask(lambda: page.drag(2, 1, Drag("start", offset + (0, 0, 1.2), offset + (0, 0, 1.2))))
    page.ask(lambda: page.drag(2, 1, Drag("update", offset + (0, 0, 1.2), offset + (0, 0, 2.0))))
    page.ask(lambda: page.source.advance(100))
    qpos = page.source.batch.qpos[:, 2]
    assert qpos[2] > 1.2 > qpos[0] and page.ask(page.source.mouse.spring)[0] == 2
    page.ask(lambda: page.drag(2, 1, Drag("end", offset, offset)))
    assert page.ask(page.source.mouse.spring) is None


def test_bookmarks_and_files(opened, monkeypatch):
    sent = {}
    monkeypatch.setattr(
        "viser.ViserServer.send_file_download", lambda self, name, content, **_: sent.update({name: content})
    )
    page = opened("humanoid", nworld=2)
    page.ask(lambda: page.source.advance(20))
    turn(page, "bookmark")
    assert page.panel.handles["bookmarks"].options == ("t = 0.1 s",)
    turn(page, "save")
    (name, content), after = next(iter(sent.items())), page.source.batch.qpos.copy()
    page.ask(lambda: page.source.advance(20))
    turn(page, "recall")
    assert np.array_equal(page.source.batch.qpos, after)
    page.ask(lambda: page.source.reset())
    page.ask(lambda: page.source.take_up(content, name))
    assert np.array_equal(page.source.batch.qpos, after)
    with np.load(io.BytesIO(content)) as file:
        model = fl.bundled("humanoid")
        batch = fl.Batch(model, 2)
        fl.set_state(model, batch, file["state"], int(file["state_bits"]))
        assert np.array_equal(batch.qpos, after)
        assert Playback(model, file).nframe == 1
    for wrong in (b"", b"PK nonsense", content[:100]):
        with pytest.raises(fl.ModelError):
            page.ask(lambda wrong=wrong: page.source.take_up(wrong, "x.npz"))
    for bits, state, says in (
        (np.zeros(3), 0.0, "state_bits is float64"),
        (8191, np.zeros((1, 10**6)), "8000128 bytes"),
    ):
        np.savez_compressed(packed := io.BytesIO(), state_bits=bits, state=state)
        with pytest.raises(fl.ModelError, match=says):
            page.ask(lambda packed=packed: page.source.take_up(packed.getvalue(), "x.npz"))
    other = opened("pendulum")
    with pytest.raises(fl.ModelError, match="for this model"):
        other.ask(lambda: other.source.take_up(content, "x.npz"))


def test_worlds_are_chosen(opened):
    page = opened("pendulum", nworld=100)
    assert page.worlds.tolist() == list(range(64))
    turn(page, "drawn", 3)
    assert page.worlds.tolist() == [0, 1, 2]
    turn(page, "only", "7, 90-92,7")
    assert page.worlds.tolist() == [7, 90, 91, 92] and page.ask(page.frame).worlds.tolist() == [7, 90, 91, 92]
    for wrong, says in (("100", "allowed are 0 to 99"), ("a", "ranges"), ("3-x", "ranges"), ("1-999999999999", "99")):
        turn(page, "only", wrong)
        assert says in page.message
        assert page.worlds.tolist() == [7, 90, 91, 92]
    turn(page, "only", " ")
    assert len(page.worlds) == 64 == page.panel.handles["drawn"].value


def test_layers(opened):
    page = opened("humanoid")
    for name in page.panel.handles:
        if name.startswith("layer "):
            turn(page, name, not page.panel.handles[name].value)
    settled(page)
    assert page.message == "" and page.ask(page.frame) is not None


def test_plots(opened, visited):
    page = opened("humanoid", nworld=2)
    plots = page.panel.plots
    assert plots.names == ("energy", "contacts")
    turn(page, "plot residual", True)
    turn(page, "quantity", "xpos[torso, 2]")
    turn(page, "plot")
    assert plots.names == ("energy", "contacts", "residual", "xpos[torso, 2]")
    turn(page, "clock", "Run")

    def chart():  # viser does not list its plots
        return plots.charts.get("xpos[torso, 2]")

    until(lambda: chart() is not None and len(chart().data[0]) > 5)
    turn(page, "clock", "Pause")
    assert len(chart().data) == 2
    assert chart().data[1][-1] == pytest.approx(page.ask(page.frame).pos[0, 1, 2], abs=0.2)
    turn(page, "quantity", "nonsense")
    turn(page, "plot")
    assert "unknown quantity 'nonsense'" in page.message
    turn(page, "unplot")
    turn(page, "plot energy", False)
    assert plots.names == ("contacts", "residual")


def test_the_contact_models_side_by_side(opened):
    page = opened("box_stack")
    page.ask(lambda: page.source.advance(5))
    first = page.source
    turn(page, "side_by_side")
    assert len(page.source.labels) == 3 and page.depth == 1
    page.ask(lambda: page.source.advance(50))
    frame = page.ask(page.frame)
    assert frame.worlds.tolist() == [0, 1, 2] and len(np.unique(frame.pos, axis=0)) == 3
    for layer in page.scene.layers:
        page.ask(lambda layer=layer: page.scene.switch(layer, None, True))
    settled(page)
    assert page.ask(page.frame).touches.world.tolist() == sorted(page.ask(page.frame).touches.world.tolist())
    turn(page, "leave")
    assert page.source is first and page.depth == 0


def test_a_second_click_on_a_switch_is_dropped(opened):
    page = opened("pendulum")
    first, button = page.source, page.panel.handles["side_by_side"]
    for _ in range(3):
        press(button)
    settled(page)
    assert page.depth == 1 and len(page.source.labels) == 3
    turn(page, "leave")
    assert page.source is first and page.message == ""


def test_a_non_finite_world_is_marked_and_replayed(opened, monkeypatch):
    sent = {}
    monkeypatch.setattr(
        "viser.ViserServer.send_file_download", lambda self, name, content, **_: sent.update({name: content})
    )
    page = opened("humanoid", nworld=3)
    page.ask(lambda: page.source.advance(50))
    page.source.batch.qfrc_applied[1, 0] = 1e30
    page.ask(lambda: page.source.advance(3))
    page.ask(page.panel.refresh)
    settled(page)
    assert (
        page.source.bad_worlds == [1]
        and page.server.scene.get_handle_by_name("/page/bad/1")
        and "1" in page.panel.drawn.bad.content
    )
    assert page.panel.handles["incident"].options == ("1",)
    turn(page, "save_incident")
    content = sent["failure-1.npz"]
    turn(page, "replay")
    assert isinstance(page.source, Playback) and page.source.nframe == 51
    turn(page, "scrub", 50)
    assert page.source.position == 50
    turn(page, "branch")
    assert isinstance(page.source, Session) and page.depth == 2
    assert content[:2] == b"PK"


def test_a_batch_is_watched(opened, visited):
    model = fl.bundled("humanoid")
    batch = fl.Batch(model, 5)
    page = opened(batch)
    assert isinstance(page.source, Watch) and "clock" not in page.panel.handles
    until(lambda: watcher(batch) is not None)
    batch.step(7)
    until(lambda: page.source.batch.time[0] == batch.time[0])
    with pytest.raises(fl.ModelError):
        page.ask(lambda: page.drag(0, 1, Drag("start", (0, 0, 0), (0, 0, 0))))
    turn(page, "branch")
    assert isinstance(page.source, Session) and watcher(batch) is None
    assert np.array_equal(page.source.batch.qpos, batch.qpos)
    page.ask(lambda: page.source.advance(3))
    assert batch.time[0] == pytest.approx(7 * model.opt.timestep)
    turn(page, "leave")
    assert isinstance(page.source, Watch) and watcher(batch) is not None


def test_a_mixed_batch_is_watched_model_by_model(opened, visited):
    batch = fl.MixedBatch([(fl.bundled("pendulum"), 2), (fl.bundled("cartpole"), 3)])
    page = opened(batch)
    assert page.source.nworld == 2 and page.panel.handles["model"].options == ("0: worlds 0 to 1", "1: worlds 2 to 4")
    until(lambda: watcher(batch.groups[0]) is not None)
    turn(page, "model", "1: worlds 2 to 4")
    assert page.source.nworld == 3 and page.source.model.nq == 2 and page.depth == 0
    assert page.panel.handles["model"].value == "1: worlds 2 to 4"
    assert watcher(batch.groups[0]) is None and watcher(batch.groups[1]) is not None
    batch.step(5)
    until(lambda: page.source.batch.time[0] == batch.time[2])
    assert np.array_equal(page.source.batch.qpos, batch.groups[1].qpos)
    page.ask(lambda: page.pick(1, 1))
    assert "world 1 of 3 (world 3 of 5 of all models), live" in page.panel._lines(1)[0]
    turn(page, "branch")
    assert isinstance(page.source, Session) and "model" not in page.panel.handles
    turn(page, "leave")
    assert page.source.nworld == 3 and page.message == ""


def test_a_batch_without_clients_is_not_copied(opened):
    batch = fl.Batch(fl.bundled("pendulum"), 2)
    page = opened(batch)
    time.sleep(0.3)
    assert watcher(batch) is None and page.frames > 0
    view = view_module.view(batch, port=0)
    view.close()
    view.close()
    assert watcher(batch) is None and repr(view).endswith("closed)")


def test_frames_are_played(opened, visited):
    model = fl.bundled("pendulum")
    frames = fl.Batch(model, 3).rollout(50, record=("time", "qpos", "qvel"))
    page = opened(model, frames=frames)
    assert isinstance(page.source, Playback)
    turn(page, "clock", "Run")
    until(lambda: page.source.position == 49)
    assert not page.source.running
    turn(page, "clock", "Back")
    assert page.source.position == 48
    turn(page, "clock", "Reset")
    assert page.source.position == 0
    turn(page, "scrub", 7)
    assert np.array_equal(page.source.batch.qpos, frames["qpos"][:, 7])


def test_failures_are_played(opened):
    batch = fl.Batch(fl.bundled("humanoid"), 2, record_failures=8)
    batch.step(5)
    batch.qfrc_applied[1, 0] = 1e30
    with pytest.warns(fl.NonFiniteWarning):
        batch.step()
    page = opened(batch.failures[0])
    assert isinstance(page.source, Playback) and page.source.nframe == 6 and page.source.nworld == 1


def test_environments_are_watched(opened):
    gymnasium = pytest.importorskip("gymnasium")
    import featherlane.environments  # noqa: F401  registers them

    env = gymnasium.make_vec("featherlane/Ant-v5", num_envs=2)
    page = opened(env)
    assert page.source.source is env.unwrapped.batch
    env.close()


def test_errors_of_a_job_are_reported_and_the_page_continues(opened, capfd):
    page = opened("pendulum")
    page.do(lambda: 1 / 0)
    until(lambda: "ZeroDivisionError" in page.message)
    settled(page)
    assert "ZeroDivisionError" in capfd.readouterr().err
    with pytest.raises(ZeroDivisionError):
        page.ask(lambda: 1 / 0)
    turn(page, "clock", "Step")
    assert page.source.clock > 0


def test_a_model_edit_that_is_impossible_stops_the_clock(opened, visited):
    page = opened("pendulum", paused=False)
    page.ask(lambda: page.source.model.body_mass.__setitem__(1, -1.0))
    until(lambda: "body_mass" in page.message)
    assert not page.source.running


@pytest.mark.parametrize("name", ["arm", "rope", "hand", "pile", "slider_crank", "cartpole"])
def test_bundled_models_are_shown(opened, name):
    page = opened(name)
    turn(page, "clock", "Step")
    for layer in page.scene.layers:
        page.ask(lambda layer=layer: page.scene.switch(layer, None, True))
    settled(page)
    assert page.message == ""


@pytest.mark.parametrize("text", ["<mujoco/>", "<mujoco><worldbody><body><geom size='1'/></body></worldbody></mujoco>"])
def test_models_without_dofs(opened, text):
    page = opened(text)
    turn(page, "clock", "Step")
    page.ask(page.panel.refresh)
    settled(page)
    assert page.message == ""


def test_wrong_calls_are_refused():
    with pytest.raises(fl.ModelError, match="nosuch"):
        fl.view("nosuch")
    with pytest.raises(fl.ModelError, match="MixedBatch"):
        mixed = fl.MixedBatch([(fl.bundled("pendulum"), 1), (fl.bundled("cartpole"), 1)])
        fl.view(mixed, frames={"time": np.zeros((1, 2)), "qpos": np.zeros((1, 2, 1))})
    with pytest.raises(fl.ModelError, match="worlds"):
        fl.view("pendulum", worlds=0)
    with pytest.raises(fl.ModelError, match="nworld"):
        fl.view("pendulum", nworld=0)
    with pytest.raises(fl.ModelError, match="token"):
        fl.view("pendulum", token="short")
    with pytest.raises(fl.ModelError, match="loopback"):
        fl.view("pendulum", token=False, host="0.0.0.0")
    with pytest.raises(fl.ModelError, match="host"):
        fl.view("pendulum", host="")
    with pytest.raises(fl.ModelError, match="qpos"):
        fl.view("pendulum", frames={"time": np.zeros((1, 2)), "qpos": np.zeros((1, 2, 5))})
    with pytest.raises(fl.ModelError, match="time"):
        fl.view("pendulum", frames={"qpos": np.zeros((1, 2, 1))})
    before = threading.active_count()
    with fl.view("pendulum", port=0) as view, pytest.raises(fl.ModelError, match="in use"):
        fl.view("pendulum", port=view.port)
    until(lambda: threading.active_count() <= before + 33)  # viser's pool ends with its server


def test_a_notebook_shows_the_page_and_offline_its_state():
    token = "k7f2q9x4w1z8"
    with fl.view("pendulum", port=0, token=token) as view:
        shown = view._repr_html_()
        assert f':{view.port}/{view.lock.frame_token}/"' in shown and token in view.url and token not in shown
        assert shown.startswith("<object data=") and shown.count("<iframe srcdoc=") == 1 and len(shown) > 100_000
        assert view.visitors == 0
    assert "closed" in view._repr_html_()


def test_an_exported_notebook_has_the_recorded_motion():
    """The player's length is that of the recording: pauses of 1 / 30 s between pictures."""
    model = fl.bundled("pendulum")
    frames = fl.Batch(model, 1).rollout(60, record=("time", "qpos"))
    still, moving = [], []
    with fl.view(model, port=0, paused=True) as view:
        view.page.ask(lambda: still.append(len(view.page.recorded(30.0))))
    with fl.view(model, frames=frames, port=0, paused=True) as view:
        view.page.ask(lambda: view.page.source.go_to(7))
        view.page.ask(lambda: moving.append(len(view.page.recorded(30.0))))
        assert view.page.source.position == 7 and not view.page.source.running
        view.page.source.run()
        view.page.ask(lambda: view.page.recorded(30.0))
        assert view.page.source.running
    assert moving[0] > still[0]


def test_a_program_waits_until_the_page_is_closed():
    view = fl.view("pendulum", port=0)
    waiting = threading.Thread(target=view.wait)
    waiting.start()
    time.sleep(0.1)
    assert waiting.is_alive()
    view.close()
    waiting.join(timeout=SECONDS)
    assert not waiting.is_alive()


def test_unsupported_features_are_listed_on_a_page():
    error = fl.UnsupportedFeatureError(["flex 'cl`oth': deformable body", "plugin 'x'"], "<b>m.xml")
    text = markup(*view_module.explanation(error))
    assert "<code>flex &#x27;cl`oth&#x27;: deformable body</code>" in text and "&lt;b&gt;m.xml cannot be shown" in text
    with view_module.open_page(error, 0) as view:
        assert view.page is None and view.url
