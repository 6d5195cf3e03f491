"""Folder of plots: quantities of the selected worlds over the last seconds."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from featherlane.apps.viewer.panel.controls import Controls
from featherlane.apps.viewer.quantities import FIELD_OF, Quantity, names, quantity, values
from featherlane.apps.viewer.worker import wait_for_browsers
from featherlane.errors import ModelError

POINTS = 300
MOST_PLOTS = 6
MOST_WORLDS = 4  # most worlds with lines in a plot
SMALL, LARGE, WIDTH = 150, 300, 640  # heights of a plot in the folder and in a window, width of the window [pixels]
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f")
FIRST = ("energy", "contacts")


class Plots:
    """The folder of plots, one chart for each quantity."""

    def __init__(self, controls: Controls):
        self.controls, self.source, gui = controls, controls.source, controls.gui
        self._folder, known = controls.folder("Plots"), tuple(names(controls.model))
        self._container, self._height = self._folder, SMALL
        self._quantities: dict[str, Quantity] = {}
        self.charts: dict[str, Any] = {}
        self._worlds: list[int] = []
        self._points: deque[tuple[float, list[np.ndarray]]] = deque(maxlen=POINTS)
        with self._folder:
            controls.on("large plots", gui.add_checkbox("In a large window", False), self._enlarge)
            for name in FIELD_OF:
                box = gui.add_checkbox(name, name in FIRST)
                switch = lambda on, name=name: self.add(name) if on else self.remove(name)  # noqa: E731
                controls.on(f"plot {name}", box, switch)
            put = lambda value: setattr(text, "value", value)  # noqa: E731
            controls.dropdown("field", "Sensor or field", known, known[0], put)
            text = gui.add_text("What", "", hint="A sensor, or a field such as qpos[2] or xpos[torso, 2]")
            controls.handles["quantity"] = text
            controls.button("plot", "Add plot", lambda: self.add(text.value))
            unnamed = lambda: [self.remove(name) for name in self.names if name not in FIELD_OF]  # noqa: E731
            controls.button("unplot", "Remove all plots", unnamed)
        for name in FIRST:
            self.add(name)

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the plotted quantities."""
        return tuple(self._quantities)

    def add(self, name: str) -> None:
        """Adds a plot of a quantity; see `quantities.quantity` for the names."""
        if name in self._quantities:
            return
        found = quantity(self.source.model, name)
        if len(self._quantities) >= MOST_PLOTS:
            raise ModelError(f"plot: at most {MOST_PLOTS} plots are allowed; remove one first")
        self._quantities[name] = found
        self._points.clear()

    def remove(self, name: str) -> None:
        """Removes the plot of a quantity."""
        self._quantities.pop(name, None)
        self._points.clear()
        self._clear(name)

    def refresh(self) -> None:
        """Adds the present values of the selected worlds, and sends them if they are new."""
        # the selected world, or all worlds of a side-by-side comparison
        worlds = list(range(len(self.source.labels)))[:MOST_WORLDS] or [self.controls.world()]
        seconds = self.source.seconds(worlds[0])
        if worlds != self._worlds:
            self._worlds = worlds
            self._points.clear()
            self._clear(*self.charts)
        if not self._quantities or (self._points and seconds == self._points[-1][0]):
            return
        if self._points and seconds < self._points[-1][0]:
            self._points.clear()
        chosen = list(self._quantities.values())
        places = [self.source.locate(world) for world in worlds]
        found = [values(batch, row, chosen, self.source.reported) for batch, row in places]
        self._points.append((seconds, [np.concatenate(parts) for parts in zip(*found, strict=True)]))
        if len(self._points) > 1:
            self._draw()

    def _draw(self) -> None:
        x = np.array([time for time, _ in self._points])
        for k, found in enumerate(self._quantities.values()):
            columns = np.stack([row[k] for _, row in self._points], 1)
            data = (x, *np.where(np.isfinite(columns), columns, np.nan))
            if found.name in self.charts:
                self.charts[found.name].data = data
            else:
                self.charts[found.name] = self._made(found, data)

    def _made(self, found: Quantity, data: tuple[np.ndarray, ...]):
        many = len(self._worlds) > 1
        labels = [f"{label} of {world}" if many else label for world in self._worlds for label in found.labels]
        series: list[Any] = [{"label": "time [s]"}]
        for k, label in enumerate(labels):
            series.append({"label": label, "stroke": COLOURS[k % len(COLOURS)], "width": 1.5})
        with self._container:
            return self.controls.gui.add_uplot(
                data,
                tuple(series),
                title=f"{found.name} [{found.unit}]" if found.unit else found.name,
                scales={"x": {"time": False}},
                legend={"show": len(labels) > 1},
                height=self._height + 20 * (len(labels) > 1),
            )

    def _enlarge(self, on: bool) -> None:
        """Moves the plots to a window of the page, or back to the folder."""
        self._clear(*self.charts)
        if on:
            self._window = self.controls.gui.add_panel()
            self._window.dock_left()
            self._window.set_width(WIDTH)
            self._container, self._height = self._window.add_tab("Plots"), LARGE
        else:
            self._container, self._height = self._folder, SMALL
            self._window.remove()
        if len(self._points) > 1:
            self._draw()

    def _clear(self, *names: str) -> None:
        """Removes charts from the page."""
        if gone := [self.charts.pop(name) for name in names if name in self.charts]:
            wait_for_browsers(self.controls.server)
            for chart in gone:
                chart.remove()
