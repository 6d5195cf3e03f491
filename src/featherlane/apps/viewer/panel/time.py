"""Folder of time: clock, speed, scrubbing, bookmarks, and switching to copies and back."""

from __future__ import annotations

import threading
from collections.abc import Callable

from featherlane.apps.video import check_encoder
from featherlane.apps.viewer.markup import Prose, labels
from featherlane.apps.viewer.panel.controls import Controls, change
from featherlane.apps.viewer.session import Session
from featherlane.apps.viewer.source import Clock
from featherlane.errors import FeatherlaneError

SPEEDS = ("0.05", "0.1", "0.25", "0.5", "1", "2", "4")
RESET, BACK, RUN, PAUSE, STEP = "Reset", "Back", "Run", "Pause", "Step"
TOGGLE = "Run or pause"
KEYS = {"space": TOGGLE, "pagedown": STEP, "pageup": BACK, "backspace": RESET}
FPS = 30.0  # of a video
DEFAULTS = "the model's defaults"


def time_folder(controls: Controls) -> Callable[[], None]:
    """Creates the folder of time, and returns the function that updates it."""
    source, page, gui = controls.source, controls.page, controls.gui
    with controls.folder("Time", True):
        if isinstance(source, Clock):
            _clock(controls, source)
        else:
            Prose(gui, "These worlds are simulated by another program; the page only displays them.")
        if isinstance(source, Clock):
            hint = "The selected world in the history or recording, by the present camera, without layers"
            controls.button("video", "Video", lambda: _video(controls), hint)
        if not isinstance(source, Session):
            label = "Simulate from this frame" if isinstance(source, Clock) else "Run a copy from here"
            hint = "Simulate a copy of the worlds in the page, starting from this state"
            controls.button("branch", label, lambda: page.enter(source.session()), hint)
        if page.depth:
            controls.button("leave", "Back to the previous worlds", page.leave)
        if isinstance(source, Session):
            if source.file is not None:
                controls.command("Reload the model", "R", page.reload)
            hint = "Older states are discarded"
            kept = gui.add_number("Length of history [s]", source.history.seconds, min=0.1, step=1.0, hint=hint)
            controls.on("history", kept, lambda value: setattr(source.history, "seconds", float(value)))
            _bookmarks(controls, source)
            if not source.labels:
                hint = "Starting from the current state of the selected world"
                compare = lambda: _side_by_side(controls)  # noqa: E731
                controls.button("side_by_side", "Compare the contact models side by side", compare, hint)

    def refresh() -> None:
        if isinstance(source, Clock):
            for name, value in zip(("min", "value", "max"), source.place, strict=True):
                change(controls.handles["scrub"], name, value)

    return refresh


def _clock(controls: Controls, source: Clock) -> None:
    """Creates the controls of the clock."""
    gui, model, keys = controls.gui, controls.model, {DEFAULTS: -1}

    def act(button: str) -> None:
        if button == RUN or (button == TOGGLE and not source.running):
            source.run()
        elif button == RESET:
            source.reset(keys[controls.handles["keyframe"].value] if "keyframe" in controls.handles else -1)
        else:
            source.pause()
            if button == STEP:
                source.advance()
            elif button == BACK:
                source.step_back()

    controls.on("clock", gui.add_button_group("Clock", (RUN, PAUSE, BACK, STEP, RESET)), act, click=True)
    hint = "Ratio of simulated time to real time"
    controls.dropdown("speed", "Speed", SPEEDS, "1", lambda value: source.set_speed(float(value)), hint)
    first, place, last = source.place
    label, hint = "Frame", "Go to a frame, or to a time within the last seconds"
    if isinstance(source, Session):
        label = "History [s]"
    controls.on("scrub", gui.add_slider(label, first, last, source.pitch, place, hint=hint), source.go_to)
    for key, button in KEYS.items():
        controls.command("Step back" if button == BACK else button, key, lambda button=button: act(button))
    if model.nkey and isinstance(source, Session):
        keys |= {name: k for k, name in enumerate(labels(model.names("keyframe")))}
        controls.handles["keyframe"] = gui.add_dropdown("Reset to", tuple(keys), initial_value=DEFAULTS)


def _video(controls: Controls) -> None:
    check_encoder()
    video = controls.page.video(FPS)

    def send() -> None:
        try:
            controls.server.send_file_download("video.mp4", video(), save_immediately=True)
        except FeatherlaneError as error:
            controls.page.notify(str(error))

    threading.Thread(target=send, daemon=True).start()
    controls.page.notify("It is saved when it is complete.", "Video", "blue")


def _side_by_side(controls: Controls) -> None:
    session, note = controls.session.side_by_side(controls.world())
    controls.page.enter(session)
    if note:
        controls.page.notify(note, "Side by side", "blue")


def _bookmarks(controls: Controls, source: Session) -> None:
    """Creates the folder of bookmarks."""

    def bookmark() -> None:
        name = f"t = {source.batch.time[0]:.4g} s"
        while name in source.bookmarks:
            name += "'"
        source.bookmark(name)
        marks.options = tuple(source.bookmarks)
        marks.value = name

    def save() -> None:
        name = f"state-{source.batch.time[0]:.3f}.npz"
        controls.server.send_file_download(name, source.written(), save_immediately=True)

    with controls.folder("Bookmarks"):
        controls.button("bookmark", "Bookmark this state", bookmark)
        controls.handles["bookmarks"] = marks = controls.gui.add_dropdown("Bookmarks", ("none",), initial_value="none")
        controls.button("recall", "Go to the bookmark", lambda: source.recall(marks.value))
        controls.button("save", "Save this state to a file", save, "An .npz file for fl.set_state")
        upload = controls.gui.add_upload_button("Load a saved state", mime_type=".npz")
        loaded = lambda file: controls.post(lambda: source.take_up(file.content, file.name))  # noqa: E731
        upload.on_upload(lambda event: loaded(event.target.value))
