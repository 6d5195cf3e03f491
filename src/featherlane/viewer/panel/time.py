"""Folder of time: clock, speed, scrubbing, bookmarks, and switching to copies and back."""

from __future__ import annotations

from featherlane.viewer.bookmark import take_up, written
from featherlane.viewer.markup import Prose
from featherlane.viewer.panel.controls import Controls, change, labels
from featherlane.viewer.playback import Playback
from featherlane.viewer.session import Session
from featherlane.viewer.watch import Watch

SPEEDS = ("0.05", "0.1", "0.25", "0.5", "1", "2", "4")
RESET, BACK, RUN, PAUSE, STEP = "Reset", "Back", "Run", "Pause", "Step"
DEFAULTS = "the model's defaults"


class Time:
    """The folder of time.

    Args:
        controls: controls of the panel.
    """

    def __init__(self, controls: Controls):
        self.controls, self.page, self.source = controls, controls.page, controls.source
        source, gui = controls.source, controls.gui
        with controls.folder("Time", True):
            if isinstance(source, Watch):
                Prose(gui, "Another program steps these worlds; the page only shows them.")
                hint = "The page's own worlds, from this state on"
                controls.button("branch", "Run a copy from here", self._branch, hint)
            else:
                group = gui.add_button_group("Clock", (RUN, PAUSE, BACK, STEP, RESET))
                controls.on("clock", group, self._clock, click=True)
                speed = gui.add_dropdown("Speed", SPEEDS, initial_value="1", hint="1: real time")
                controls.on("speed", speed, lambda value: source.set_speed(float(value)))
                label, last = "Frame" if isinstance(source, Playback) else "History", self._last()
                hint = "Scrub through the frames, or the last seconds"
                controls.on("scrub", gui.add_slider(label, 0, last, 1, last, hint=hint), self._scrub)
            if isinstance(source, Playback):
                controls.button("branch", "Run on from this frame", self._branch)
            if self.page.depth:
                controls.button("leave", "Back to what was shown before", self.page.leave)
            if isinstance(source, Session):
                self._keyframes()
                self._bookmarks(source)
                if len(source.parts) == 1:
                    hint = "From the present state of the picked world"
                    controls.button("beside", "Both contact models, side by side", self._beside, hint)

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

    def _beside(self) -> None:
        session, told = self.controls.session.beside(self.controls.world())
        self.page.enter(session)
        if told:
            self.page.tell(told, "Side by side")

    # ---- bookmarks ---------------------------------------------------------------------------------------------------
    def _bookmarks(self, source: Session) -> None:
        controls, gui = self.controls, self.controls.gui
        with controls.folder("Bookmarks"):
            controls.button("bookmark", "Bookmark this state", self._bookmark)
            marks = gui.add_dropdown("Bookmarks", ("none",), initial_value="none")
            controls.handles["bookmarks"] = marks
            controls.button("recall", "Go to it", lambda: source.recall(marks.value))
            controls.button("save", "Save this state to a file", self._save, "An .npz that fl.set_state takes")
            upload = gui.add_upload_button("Take up a saved state", mime_type=".npz")
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
