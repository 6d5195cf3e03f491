"""Folder of the inspected element: a body, joint, geom, actuator, tendon or contact, with live values."""

from __future__ import annotations

import time

import numpy as np

from featherlane.apps.viewer.inspection import KINDS, lines, moved_joints, names
from featherlane.apps.viewer.markup import Prose
from featherlane.apps.viewer.panel.controls import Controls, change

NONE = "none"
INTERVAL = 0.25  # time between two updates of the values [s]
FINDING, VALUE = "<tr><td colspan=2><b>{}{}</b></td></tr>", "<tr><td>{}&ensp;</td><td>{}</td></tr>"


class Inspector:
    """The folder of the inspected element; a click selects the element of its kind at the clicked body."""

    def __init__(self, controls: Controls):
        self.controls, self.page, gui = controls, controls.page, controls.gui
        self._due, self._followed = 0.0, self.page.picked
        kinds = (NONE, *(kind for kind in KINDS if kind == "contact" or controls.model.names(kind)))
        with controls.folder("Inspect", True):
            hint = "Click a body to inspect its first element of this kind"
            self._kind = gui.add_dropdown("Kind", kinds, initial_value=NONE, hint=hint)
            self._element = gui.add_dropdown("Element", (NONE,), initial_value=NONE)
            self._text = Prose(gui)
        controls.on("inspected kind", self._kind, lambda _: self._follow())
        controls.on("inspected", self._element, lambda _: self._show())
        controls.shows(self._look)

    def refresh(self) -> None:
        """Updates the values, several times a second."""
        if self._kind.value != NONE and time.perf_counter() >= self._due:
            self._show()

    def _look(self) -> None:
        """Follows a new selection by the mouse."""
        if self.page.picked != self._followed:
            self._followed = self.page.picked
            if self._kind.value == NONE:
                self._kind.value = "body"
            self._follow()

    def _follow(self) -> None:
        """Selects the first element of the kind at the selected body."""
        if self._kind.value != NONE:
            self._list()
            found = self._of_body(self._kind.value, self.controls.body())
            if len(found):
                self._element.value = self._element.options[int(found[0])]
        self._show()

    def _of_body(self, kind: str, body: int) -> np.ndarray:
        """Returns the elements of a kind that belong to a body."""
        model, (batch, row) = self.controls.model, self.page.source.locate(self.controls.world())
        owners = {
            "body": lambda: np.arange(model.nbody),
            "joint": lambda: model.jnt_bodyid,
            "geom": lambda: model.geom_bodyid,
            "actuator": lambda: np.where((j := moved_joints(model)) >= 0, model.jnt_bodyid[j], -1),
            "tendon": lambda: np.zeros(0),
            "contact": lambda: model.geom_bodyid[batch.get_data(row).contact.geom].reshape(-1, 2),
        }[kind]()
        return np.flatnonzero((owners == body).reshape(len(owners), -1).any(1))

    def _list(self) -> None:
        """Lists the elements of the kind."""
        batch, row = self.page.source.locate(self.controls.world())
        change(self._element, "options", names(batch, row, self._kind.value) or (NONE,))

    def _show(self) -> None:
        self._due = time.perf_counter() + INTERVAL
        kind, found = self._kind.value, []
        if kind == NONE:
            change(self._element, "options", (NONE,))
        elif kind == "contact":
            self._list()
        if self._element.value != NONE:
            batch, row = self.page.source.locate(self.controls.world())
            found = lines(batch, row, kind, self._element.options.index(self._element.value))
        rows = "".join(VALUE if label else FINDING for label, _ in found)
        self._text.show(f"<table>{rows}</table>" * bool(rows), *(text for line in found for text in line))
