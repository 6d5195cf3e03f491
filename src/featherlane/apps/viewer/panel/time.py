"""Folder of time: clock, speed, scrubbing, bookmarks, and switching to copies and back."""

from __future__ import annotations

from featherlane.apps.viewer.bookmark import take_up, written
from featherlane.apps.viewer.markup import Prose
from featherlane.apps.viewer.panel.controls import Controls, change, labels
from featherlane.apps.viewer.playback import Playback
from featherlane.apps.viewer.session import Session
from featherlane.apps.viewer.watch import Watch

SPEEDS = ("0.05", "0.1", "0.25", "0.5", "1", "2", "4")
RESET, BACK, RUN, PAUSE, STEP = "Reset", "Back", "Run", "Pause", "Step"
DEFAULTS = "the model's defaults"


class Time:
    """The folder of time."""

    def __init__(self, controls: Controls):
        self.controls, self.page, self.source = controls, controls.page, controls.source
        source, gui = controls.source, controls.gui
        with controls.folder("Time", True):
            if isinstance(source, Watch):
                Prose(gui, "These worlds are simulated by another program; the page only displays them.")
                hint = "Simulate a copy of the worlds in the page, starting from this state"
                controls.button("branch", "Run a copy from here", self._branch, hint)
            else:
                group = gui.add_button_group("Clock", (RUN, PAUSE, BACK, STEP, RESET))
                controls.on("clock", group, self._clock, click=True)
                speed = gui.add_dropdown(
                    "Speed", SPEEDS, initial_value="1", hint="Ratio of simulated time to real time"
                )
                controls.on("speed", speed, lambda value: source.set_speed(float(value)))
                label, last = "Frame" if isinstance(source, Playback) else "History", self._last()
                hint = "Go to a frame, or to a time within the last seconds"
                controls.on("scrub", gui.add_slider(label, 0, last, 1, last, hint=hint), self._scrub)
            if isinstance(source, Playback):
                controls.button("branch", "Simulate from this frame", self._branch)
            if self.page.depth:
                controls.button("leave", "Back to the previous worlds", self.page.leave)
            if isinstance(source, Session):
                self._keyframes()
                self._bookmarks(source)
                if len(source.parts) == 1:
                    hint = "Starting from the current state of the selected world"
                    controls.button("side_by_side", "Compare the contact models side by side", self._side_by_side, hint)

    def refresh(self) -> None:
        """Sets the slider to the clock."""
        if "scrub" not in self.controls.handles:
            return
        source, slider = self.source, self.controls.handles["scrub"]
        if isinstance(source, Playback):
            change(slider, "value", source.position)
            return
        assert isinstance(source, Session)
        last = max(1, len(source.history) - (source.position is not None))
        change(slider, "max", last)
        change(slider, "value", source.position[0] if source.position else last)

    # ---- the clock ---------------------------------------------------------------------------------------------------
    def _last(self) -> int:
        """Returns the largest value of the slider."""
        source = self.source
        if isinstance(source, Playback):
            return max(1, source.nframe - 1)
        return max(1, len(source.history)) if isinstance(source, Session) else 1

    def _clock(self, button: str) -> None:
        source = self.source
        assert not isinstance(source, Watch)
        if button == RUN:
            source.run()
        elif button == PAUSE:
            source.pause()
        elif button == STEP:
            source.pause()
            source.advance()
        elif button == BACK:
            source.pause()
            source.step_back()
        elif isinstance(source, Session):
            key = self.controls.handles.get("keyframe")
            source.reset(self._keys[key.value] if key else -1)
        else:
            source.pause()
            source.seek(0)

    def _scrub(self, value: int) -> None:
        if isinstance(self.source, Playback):
            self.source.pause()
            self.source.seek(int(value))
        elif isinstance(self.source, Session) and len(self.source.history):
            last = len(self.source.history) - (self.source.position is not None)
            self.source.seek(min(int(value), last))

    def _keyframes(self) -> None:
        model = self.controls.model
        if model.nkey:
            self._keys = {DEFAULTS: -1} | {name: k for k, name in enumerate(labels(model.names("keyframe")))}
            box = self.controls.gui.add_dropdown("Reset to", tuple(self._keys), initial_value=DEFAULTS)
            self.controls.handles["keyframe"] = box

    # ---- copies ------------------------------------------------------------------------------------------------------
    def _branch(self) -> None:
        source = self.source
        if isinstance(source, Playback):
            self.page.enter(source.session())
        elif isinstance(source, Watch):
            source.whole()
            self.page.enter(Session.from_batch(source.batch))

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
        name = f"t = {source.rows('time')[0]:.4g} s"
        while name in source.bookmarks:
            name += "'"
        source.bookmark(name)
        marks.options = tuple(source.bookmarks)
        marks.value = name

    def _save(self) -> None:
        source = self.controls.session
        name = f"state-{source.rows('time')[0]:.3f}.npz"
        self.controls.server.send_file_download(name, written(source), save_immediately=True)

    def take_up(self, file) -> None:
        """Restores the state in a file that a visitor has uploaded."""
        take_up(self.controls.session, file.content, file.name)
