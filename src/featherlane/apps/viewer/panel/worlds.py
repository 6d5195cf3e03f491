"""Folder of worlds: selection of drawn worlds, the selected world, and bad worlds."""

from __future__ import annotations

import tempfile
from pathlib import Path

from featherlane.apps.viewer.markup import Prose
from featherlane.apps.viewer.panel.controls import Controls, change
from featherlane.apps.viewer.playback import Playback
from featherlane.apps.viewer.session import Session
from featherlane.errors import ModelError, few

DRAWN = 64  # default number of drawn worlds
NAMED = 12  # most bad worlds that are listed


class DrawnWorlds:
    """The folder of worlds."""

    def __init__(self, controls: Controls):
        self.controls, self.page, self.source = controls, controls.page, controls.source
        n, gui, page = self.source.nworld, controls.gui, controls.page
        names = self.source.choices
        with controls.folder("Worlds", n > 1 or bool(names)):
            if names:
                choose = lambda name: page.switch(self.source.choose(names.index(name)))  # noqa: E731
                controls.dropdown("model", "Model", names, names[self.source.choice], choose)
            if n > 1:
                slider = gui.add_slider("Drawn", 1, n, 1, min(n, len(page.worlds)), hint="Number of displayed worlds")
                drawn = controls.on("drawn", slider, lambda value: page.draw_first(int(value)))
                controls.follows(drawn, lambda: len(page.worlds))
                text = gui.add_text("Only", "", hint="World numbers and ranges, for example 0, 7, 10-20")
                controls.on("only", text, self._only)
                picked = gui.add_number("Picked", controls.world(), min=0, max=n - 1, step=1)
                controls.on("picked", picked, lambda value: page.pick(int(value), controls.body()))
                controls.follows(picked, controls.world)
            self.bad = Prose(gui)  # lists bad worlds
            if isinstance(self.source, Session):
                with controls.folder("Failed worlds"):
                    controls.handles["incident"] = gui.add_dropdown("World", ("none",), initial_value="none")
                    controls.button("replay", "Replay the last second before the failure", self._replay)
                    hint = "A file for fl.load_failure"
                    controls.button("save_incident", "Save the failure", self._save_incident, hint)

    def refresh(self) -> None:
        """Updates the list of bad worlds."""
        bad = self.source.bad_worlds
        self.bad.show("<b>Non-finite or out-of-range values</b> in world {}" * bool(bad), few(bad, NAMED))
        if "incident" in self.controls.handles:
            incidents = self.controls.session.incidents
            options = tuple(str(incident.world) for incident in incidents) or ("none",)
            change(self.controls.handles["incident"], "options", options)

    def _only(self, text: str) -> None:
        worlds: list[int] = []
        for part in filter(None, (part.strip() for part in text.split(","))):
            first, dash, last = part.partition("-")
            if not first.isdigit() or (dash and not last.isdigit()):
                raise ModelError(f"worlds: got {part!r}, allowed are numbers and ranges, for example 0, 7, 10-20")
            low, high = int(first), int(last or first)
            if high >= self.source.nworld:
                raise ModelError(f"worlds: got {high}, allowed are 0 to {self.source.nworld - 1}")
            worlds += range(low, high + 1)
        if worlds:
            self.page.draw_these(worlds)
        else:
            self.page.draw_first(DRAWN)
            self.controls.sync()

    def _incident(self):
        chosen = self.controls.handles["incident"].value
        for incident in self.controls.session.incidents:
            if chosen == str(incident.world):
                return incident
        raise ModelError("no world has failed")

    def _replay(self) -> None:
        incident = self._incident()
        frames, failure = incident.replay()
        self.page.enter(Playback(incident.model, frames, f"world {incident.world}"))
        causes = ", ".join(failure.causes)
        self.page.notify(f"The step after the last frame failed ({causes}).", "Last second before the failure", "blue")

    def _save_incident(self) -> None:
        incident = self._incident()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"failure-{incident.world}.npz"
            incident.replay()[1].save(path)
            self.controls.server.send_file_download(path.name, path.read_bytes(), save_immediately=True)
