"""Folder of the inspected element: a body, joint, geom, actuator, tendon or contact, with live values."""

from __future__ import annotations

import time

from featherlane import Data
from featherlane.apps.viewer.inspection import KINDS, at_body, lines, names
from featherlane.apps.viewer.markup import Prose
from featherlane.apps.viewer.panel.controls import Controls, change
from featherlane.apps.viewer.quantities import world_data

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
            hint = "Click a body to inspect its first element of this kind, or a drawn contact"
            self._kind = controls.dropdown("inspected kind", "Kind", kinds, NONE, lambda _: self._follow(), hint)
            self._element = controls.dropdown("inspected", "Element", (NONE,), NONE, lambda _: self._show(self._data()))
            self._text = Prose(gui)
        controls.shows(self._look)

    def refresh(self) -> None:
        """Updates the values, several times a second."""
        if self._kind.value != NONE and time.perf_counter() >= self._due:
            self._show(self._data())

    def choose(self, kind: str, element: int | None = None) -> None:
        """Selects an element; None for the first one of the kind at the selected body."""
        self._followed, self._kind.value, data = self.page.picked, kind, self._data()
        change(self._element, "options", names(data, kind) or (NONE,))
        found = at_body(data, kind, self.controls.body()) if element is None else [element]
        if len(found):
            self._element.value = self._element.options[int(found[0])]
        self._show(data)

    def _data(self) -> Data:
        return world_data(*self.page.source.locate(self.controls.world()))

    def _look(self) -> None:
        """Follows a new selection by the mouse."""
        if self.page.picked != self._followed:
            self.choose("body" if self._kind.value == NONE else self._kind.value)

    def _follow(self) -> None:
        """Selects an element of a kind that a visitor has chosen."""
        if self._kind.value != NONE:
            self.choose(self._kind.value)
        else:
            change(self._element, "options", (NONE,))
            self._text.show("")

    def _show(self, data: Data) -> None:
        self._due, kind = time.perf_counter() + INTERVAL, self._kind.value
        if kind == "contact":  # contacts open and close
            change(self._element, "options", names(data, kind) or (NONE,))
        found = []
        if self._element.value != NONE:
            found = lines(data, kind, self._element.options.index(self._element.value))
        rows = "".join(VALUE if label else FINDING for label, _ in found)
        self._text.show(f"<table>{rows}</table>" * bool(rows), *(text for line in found for text in line))
