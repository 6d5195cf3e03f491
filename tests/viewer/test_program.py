"""A program that steps worlds and shows them: `is_running`, `sync`, `draw`, and the export of a recorded motion."""

import base64
import re
import time

import numpy as np
import pytest

import featherlane as fl

pytest.importorskip("viser")

from featherlane.apps.viewer import view as view_module

SECONDS = 20.0  # s, limit on a busy machine


def until(condition):
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.01)


@pytest.fixture
def guests(monkeypatch):
    """The connected browsers, which a test may change."""
    from types import SimpleNamespace

    storage = SimpleNamespace(get_item=lambda *_, **__: None)
    guest = SimpleNamespace(add_notification=lambda *_, **__: None, camera=SimpleNamespace(), local_storage=storage)
    found = {0: guest}
    monkeypatch.setattr("viser.ViserServer.get_clients", lambda self: dict(found))
    return found


def nodes(page):
    """Returns the drawings in the scene, name -> handle."""
    return page.page.ask(lambda: dict(page.draw._handles))


def shown(page, name):
    until(lambda: name in nodes(page))
    return nodes(page)[name]


# ---- the loop of a program -------------------------------------------------------------------------------------------
def test_a_program_runs_until_the_page_is_closed():
    model = fl.bundled("pendulum")
    data = fl.Data(model)
    with fl.view(model, data, port=0) as page:
        for k in range(100):
            assert page.is_running()
            data.step()
            page.sync()
            if k == 50:
                page.close()
                break
        assert not page.is_running()
    assert data.time == pytest.approx(51 * model.opt.timestep)


def test_sync_shows_the_state_that_the_caller_sets(guests):
    data = fl.Data(fl.bundled("pendulum"))
    with fl.view(data, port=0) as page:
        until(lambda: page.visitors)
        for angle in (0.3, 0.7):
            data.qpos = angle

            def is_there(angle=angle):
                page.sync()
                return page.page.ask(lambda: page.page.source.batch.qpos[0, 0]) == angle

            until(is_there)


def test_the_results_of_a_shown_world_are_those_of_another(guests):
    model = fl.bundled("humanoid")
    shown_one, other = fl.Data(model), fl.Data(model)
    with fl.view(model, shown_one, port=0) as page:
        for _ in range(30):
            shown_one.step()
            page.sync()
    other.step(30)
    assert np.array_equal(shown_one.qpos, other.qpos)


def test_a_page_that_all_browsers_left_is_not_running(guests, monkeypatch):
    monkeypatch.setattr(view_module, "GRACE", 0.3)
    guest = dict(guests)
    with fl.view(fl.Data(fl.bundled("pendulum")), port=0) as page:
        until(lambda: page.visitors)
        guests.clear()
        until(lambda: not page.visitors)
        guests.update(guest)  # a reload within the time
        until(lambda: page.visitors)
        assert page.is_running()
        guests.clear()
        until(lambda: not page.is_running())


def test_sync_and_data_are_refused_where_they_have_no_meaning():
    model = fl.bundled("pendulum")
    with fl.view(model, port=0, paused=True) as page, pytest.raises(fl.ModelError, match="runs a copy of the model"):
        page.sync()
    with pytest.raises(fl.ModelError, match="worlds of another model"):
        fl.view(fl.bundled("arm"), fl.Data(model), port=0)
    with pytest.raises(fl.ModelError, match="data: got str"):
        fl.view(model, "pendulum", port=0)


# ---- drawings --------------------------------------------------------------------------------------------------------
def test_drawings_stay_until_they_are_replaced_or_removed():
    data = fl.Data(fl.bundled("pendulum"))
    with fl.view(data, port=0) as page:
        page.draw.arrow("push", [0, 0, 0], [[0, 0, 1.0], [1.0, 0, 0]][0])
        page.draw.line("path", np.eye(3), color=(0, 1, 0))
        page.draw.points("feet", np.zeros((4, 3)))
        page.draw.text("state", "stance", [0, 0, 1])
        arrow = shown(page, "push")
        assert np.allclose(arrow.points, [[[0, 0, 0], [0, 0, 1]]])
        assert shown(page, "path").points.shape == (2, 2, 3)
        assert shown(page, "feet").points.shape == (4, 3)
        assert shown(page, "state").text == "stance"
        page.draw.arrow("push", [0, 0, 0], [0, 0, 2.0])
        until(lambda: np.allclose(nodes(page)["push"].points[0, 1], [0, 0, 2]))
        page.draw.clear("push")
        until(lambda: "push" not in nodes(page))
        page.draw.clear()
        until(lambda: not nodes(page))


def test_a_drawing_stands_in_its_world_and_survives_another_choice_of_worlds():
    batch = fl.Batch(fl.bundled("pendulum"), 4)
    with fl.view(batch, port=0) as page:
        page.draw.points("here", [0.0, 0.0, 0.5], world=2)
        origin = page.page.ask(lambda: page.page.offsets[2])
        assert np.allclose(shown(page, "here").points[0], origin + [0, 0, 0.5], atol=1e-6)
        page.page.ask(lambda: page.page.draw_these([2, 3]))
        origin = page.page.ask(lambda: page.page.offsets[2])
        until(lambda: np.allclose(nodes(page)["here"].points[0], origin + [0, 0, 0.5], atol=1e-6))
        page.page.ask(lambda: page.page.draw_these([0]))
        until(lambda: "here" not in nodes(page))
        page.page.ask(lambda: page.page.draw_these([0, 1, 2]))
        assert shown(page, "here") is not None


def test_wrong_drawings_are_refused():
    with fl.view(fl.Data(fl.bundled("pendulum")), port=0) as page:
        for call, message in (
            (lambda: page.draw.arrow("a", [0, 0], [0, 0, 1]), "start: got"),
            (
                lambda: page.draw.arrow("a", np.zeros((2, 3)), np.zeros((3, 3))),
                r"end: got \(3, 3\), allowed are .*2, 3",
            ),
            (lambda: page.draw.points("a", [[0, 0, np.nan]]), "points: got"),
            (lambda: page.draw.line("a", [[0, 0, 0]]), "points: got 1, allowed are at least two"),
            (lambda: page.draw.line("", np.eye(3)), "name: got ''"),
            (lambda: page.draw.points("a", [0, 0, 0], color=(2, 0, 0)), "color: got"),
            (lambda: page.draw.points("a", [0, 0, 0], radius=0), "radius: got 0"),
            (lambda: page.draw.points("a", [0, 0, 0], world=-1), "world: got -1"),
            (lambda: page.draw.text("a", 3, [0, 0, 0]), "text: got int"),
        ):
            with pytest.raises(fl.ModelError, match=message):
                call()


# ---- export ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("every", [1, 10])
def test_a_motion_is_exported_as_one_file(every, tmp_path):
    """Every step, and fewer frames than pictures: the motion takes its recorded time."""
    model = fl.bundled("pendulum")
    batch = fl.Batch(model, 2)
    batch.qpos = [[0.5], [1.0]]
    recorded = {name: rows[:, ::every] for name, rows in batch.rollout(101, record=("time", "qpos")).items()}
    path = fl.export_html(model, recorded, tmp_path / "motion.html", fps=50)
    text = path.read_text(encoding="utf-8")
    assert not re.findall(r'(?:src|href)="https?://', text)  # nothing is loaded from elsewhere
    import msgspec
    import zstandard

    held = base64.b64decode(re.search(r'__VISER_EMBED_DATA__="([^"]*)"', text).group(1))
    content = zstandard.ZstdDecompressor().decompress(held[8:], max_output_size=int.from_bytes(held[:8], "little"))
    told = msgspec.msgpack.decode(content[8 : 8 + int.from_bytes(content[:8], "little")])
    seconds = 100 * model.opt.timestep
    assert told["durationSeconds"] == pytest.approx(seconds, abs=0.03)
    moments = {moment for moment, _ in told["messages"]}
    assert len(moments) >= min(seconds * 50, 100 / every) - 2


def test_a_recorded_file_is_exported(tmp_path):
    model = fl.bundled("pendulum")
    recorded = fl.Batch(model, 1).rollout(20, record=("time", "qpos"))
    np.savez(tmp_path / "run.npz", **recorded)
    assert fl.export_html(model, tmp_path / "run.npz", tmp_path / "run.html").stat().st_size > 1e5


def test_a_wrong_export_is_refused(tmp_path):
    model = fl.bundled("pendulum")
    recorded = fl.Batch(model, 1).rollout(5, record=("time", "qpos"))
    for frames, path, options, message in (
        (recorded, "a.txt", {}, "allowed is a name that ends in .html"),
        (recorded, "a.html", {"fps": 0}, "fps: got 0"),
        ({"qpos": recorded["qpos"]}, "a.html", {}, "time missing"),
        (recorded, "nowhere/a.html", {}, "cannot be written"),
    ):
        with pytest.raises(fl.ModelError, match=message):
            fl.export_html(model, frames, tmp_path / path, **options)
