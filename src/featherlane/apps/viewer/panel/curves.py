"""Folder of plots: selection of quantities and worlds."""

from __future__ import annotations

from featherlane.apps.viewer.panel.controls import Controls
from featherlane.apps.viewer.plots import FIRST, HEIGHT, Plots
from featherlane.apps.viewer.quantities import FIELD_OF, names

LARGE, WIDTH = 300, 640  # height of a plot in a large window, and width of the window [pixels]


class Curves:
    """The folder of plots."""

    def __init__(self, controls: Controls):
        self.controls, gui = controls, controls.gui
        self._folder, known = controls.folder("Plots"), tuple(names(controls.model))
        self.plots = Plots(controls.server, self._folder, controls.source)
        with self._folder:
            controls.on("large plots", gui.add_checkbox("In a large window", False), self._enlarge)
            for name in FIELD_OF:
                box = gui.add_checkbox(name, name in FIRST)
                controls.on(f"plot {name}", box, lambda on, name=name: self._switch(name, on))
            listed = gui.add_dropdown("Sensor or field", known, initial_value=known[0])
            controls.on("field", listed, lambda value: setattr(text, "value", value))
            text = gui.add_text("What", "", hint="A sensor, or a field such as qpos[2] or xpos[torso, 2]")
            controls.handles["quantity"] = text
            controls.button("plot", "Add plot", lambda: self.plots.add(text.value))
            controls.button("unplot", "Remove all plots", self._remove)
        for name in FIRST:
            self.plots.add(name)

    def refresh(self, seconds: float) -> None:
        """Adds the values at this time [s]."""
        self.plots.take(seconds, self._worlds())
        self.plots.draw()

    def _enlarge(self, on: bool) -> None:
        """Moves the plots to a window of the page, or back to the folder."""
        if on:
            self._window = self.controls.gui.add_panel()
            self._window.dock_left()
            self._window.set_width(WIDTH)
            self.plots.move(self._window.add_tab("Plots"), LARGE)
        else:
            self.plots.move(self._folder, HEIGHT)
            self._window.remove()

    def _switch(self, name: str, on: bool) -> None:
        self.plots.add(name) if on else self.plots.remove(name)

    def _remove(self) -> None:
        for name in self.plots.names:
            if name not in FIELD_OF:
                self.plots.remove(name)

    def _worlds(self) -> list[int]:
        """Returns the plotted worlds: the selected one, or all in a side-by-side comparison."""
        return list(range(len(self.controls.source.labels))) or [self.controls.world()]
