"""Folder of forces: dragging and pushing bodies."""

from __future__ import annotations

import numpy as np

from featherlane.apps.viewer.markup import Prose
from featherlane.apps.viewer.panel.controls import Controls

DIRECTIONS = {"+x": (1, 0, 0), "-x": (-1, 0, 0), "+y": (0, 1, 0), "-y": (0, -1, 0), "+z": (0, 0, 1), "-z": (0, 0, -1)}


class Forces:
    """The folder of mouse forces."""

    def __init__(self, controls: Controls):
        self.controls, gui = controls, controls.gui
        with controls.folder("Forces"):
            Prose(gui, "Click a body to select it. Ctrl and drag pulls it with a spring.")
            frequency = controls.session.mouse.frequency
            controls.on("spring", gui.add_slider("Spring [rad/s]", 2.0, 64.0, 1.0, frequency), self._set_spring)
            names = controls.body_names()
            body = gui.add_dropdown("Body", names, initial_value=names[controls.body()])
            controls.on("body", body, lambda value: controls.page.pick(controls.world(), names.index(value)))
            controls.follows(body, lambda: names[controls.body()])
            controls.handles["impulse"] = gui.add_number("Push [N s]", 10.0, min=0.0, step=1.0)
            controls.on("push", gui.add_button_group("", tuple(DIRECTIONS)), self._push, click=True)

    def _set_spring(self, frequency: float) -> None:
        self.controls.session.mouse.frequency = float(frequency)

    def _push(self, direction: str) -> None:
        session = self.controls.session
        impulse = float(self.controls.handles["impulse"].value) * np.array(DIRECTIONS[direction], float)
        for world in range(len(session.labels)) or (self.controls.world(),):
            session.push(world, self.controls.body(), impulse)
