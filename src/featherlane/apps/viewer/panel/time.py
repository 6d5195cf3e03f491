"""Folder of time: clock, speed, scrubbing, bookmarks, and switching to copies and back."""

from __future__ import annotations

from featherlane.apps.viewer.bookmark import take_up, written
from featherlane.apps.viewer.markup import Prose, labels
from featherlane.apps.viewer.panel.controls import Controls, change
from featherlane.apps.viewer.session import Session
from featherlane.apps.viewer.source import Clock

SPEEDS = ("0.05", "0.1", "0.25", "0.5", "1", "2", "4")
RESET, BACK, RUN, PAUSE, STEP = "Reset", "Back", "Run", "Pause", "Step"
TOGGLE = "Run or pause"
KEYS = (
    ("space", TOGGLE, TOGGLE),
    ("pagedown", STEP, "Step"),
    ("pageup", BACK, "Step back"),
    ("backspace", RESET, RESET),
)
DEFAULTS = "the model's defaults"


class Time:
    """The folder of time."""

    def __init__(self, controls: Controls):
        self.controls, self.page, self.source = controls, controls.page, controls.source
        source, gui = controls.source, controls.gui
        with controls.folder("Time", True):
            if isinstance(source, Clock):
                group = gui.add_button_group("Clock", (RUN, PAUSE, BACK, STEP, RESET))
                controls.on("clock", group, lambda button: self._clock(source, button), click=True)
                hint = "Ratio of simulated time to real time"
                speed = gui.add_dropdown("Speed", SPEEDS, initial_value="1", hint=hint)
                controls.on("speed", speed, lambda value: source.set_speed(float(value)))
                first, place, last = source.place
                label = "History [s]" if isinstance(source, Session) else "Frame"
                hint = "Go to a frame, or to a time within the last seconds"
                slider = gui.add_slider(label, first, last, source.pitch, place, hint=hint)
                controls.on("scrub", slider, source.go_to)
                for key, button, label in KEYS:
                    controls.command(label, key, lambda button=button: self._clock(source, button))
            else:
                Prose(gui, "These worlds are simulated by another program; the page only displays them.")
            if not isinstance(source, Session):
                label = "Simulate from this frame" if isinstance(source, Clock) else "Run a copy from here"
                hint = "Simulate a copy of the worlds in the page, starting from this state"
                controls.button("branch", label, lambda: self.page.enter(source.session()), hint)
            if self.page.depth:
                controls.button("leave", "Back to the previous worlds", self.page.leave)
            if isinstance(source, Session):
                if source.file is not None:
                    controls.command("Reload the model", "R", self.page.reload)
                self._keyframes()
                hint = "Older states are discarded"
                kept = gui.add_number("Length of history [s]", source.history.seconds, min=0.1, step=1.0, hint=hint)
                controls.on("history", kept, lambda value: setattr(source.history, "seconds", float(value)))
                self._bookmarks(source)
                if not source.labels:
                    hint = "Starting from the current state of the selected world"
                    controls.button("side_by_side", "Compare the contact models side by side", self._side_by_side, hint)

    def refresh(self) -> None:
        """Sets the slider to the clock."""
        if isinstance(self.source, Clock):
            slider = self.controls.handles["scrub"]
            for name, value in zip(("min", "value", "max"), self.source.place, strict=True):
                change(slider, name, value)

    # ---- the clock ---------------------------------------------------------------------------------------------------
    def _clock(self, source: Clock, button: str) -> None:
        if button == RUN or (button == TOGGLE and not source.running):
            source.run()
        elif button == RESET:
            key = self.controls.handles.get("keyframe")
            source.reset(self._keys[key.value] if key else -1)
        else:
            source.pause()
            if button == STEP:
                source.advance()
            elif button == BACK:
                source.step_back()

    def _keyframes(self) -> None:
        model = self.controls.model
        if model.nkey:
            self._keys = {DEFAULTS: -1} | {name: k for k, name in enumerate(labels(model.names("keyframe")))}
            box = self.controls.gui.add_dropdown("Reset to", tuple(self._keys), initial_value=DEFAULTS)
            self.controls.handles["keyframe"] = box

    # ---- copies ------------------------------------------------------------------------------------------------------
    def _side_by_side(self) -> None:
        session, note = self.controls.session.side_by_side(self.controls.world())
        self.page.enter(session)
        if note:
            self.page.notify(note, "Side by side")

    # ---- bookmarks ---------------------------------------------------------------------------------------------------
    def _bookmarks(self, source: Session) -> None:
        controls, gui = self.controls, self.controls.gui
        with controls.folder("Bookmarks"):
            controls.button("bookmark", "Bookmark this state", self._bookmark)
            marks = gui.add_dropdown("Bookmarks", ("none",), initial_value="none")
            controls.handles["bookmarks"] = marks
            controls.button("recall", "Go to the bookmark", lambda: source.recall(marks.value))
            controls.button("save", "Save this state to a file", self._save, "An .npz file for fl.set_state")
            upload = gui.add_upload_button("Load a saved state", mime_type=".npz")
            controls.handles["upload"] = upload
            upload.on_upload(lambda event: self.page.do(lambda: self.take_up(event.target.value)))

    def _bookmark(self) -> None:
        source, marks = self.controls.session, self.controls.handles["bookmarks"]
        name = f"t = {source.batch.time[0]:.4g} s"
        while name in source.bookmarks:
            name += "'"
        source.bookmark(name)
        marks.options = tuple(source.bookmarks)
        marks.value = name

    def _save(self) -> None:
        source = self.controls.session
        name = f"state-{source.batch.time[0]:.3f}.npz"
        self.controls.server.send_file_download(name, written(source), save_immediately=True)

    def take_up(self, file) -> None:
        """Restores the state in a file that a visitor has uploaded."""
        take_up(self.controls.session, file.content, file.name)
