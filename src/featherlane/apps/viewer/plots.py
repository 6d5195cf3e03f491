"""Draws live plots on the page: quantities of the selected worlds over the last seconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from featherlane.apps.viewer.browser_sync import wait_for_browsers
from featherlane.apps.viewer.quantities import Quantity, Sampler, quantity
from featherlane.apps.viewer.source import Source
from featherlane.errors import ModelError

POINTS = 300
MOST_PLOTS = 6
MOST_WORLDS = 4  # most worlds with lines in a plot
HEIGHT = 150  # height of a plot [pixels]
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f")
FIRST = ("energy", "contacts")


class Plots:
    """Charts in a folder of the page, one per quantity.

    Args:
        source: the worlds.
    """

    def __init__(self, server, container, source: Source):
        self.server, self.container, self.source, self.height = server, container, source, HEIGHT
        self._samplers = {id(batch): Sampler(batch) for batch in source.batch.groups}
        self._charts: dict[str, tuple[Quantity, Any]] = {}
        self._worlds: tuple[int, ...] = ()
        self._points: deque[tuple[float, list[np.ndarray]]] = deque(maxlen=POINTS)

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the plotted quantities."""
        return tuple(self._charts)

    def add(self, name: str) -> None:
        """Adds a plot of a quantity; see `sample.quantity` for the names.

        Raises:
            ModelError: the quantity does not exist, or there are too many plots.
        """
        if name in self._charts:
            return
        found = quantity(self.source.model, name)
        if len(self._charts) >= MOST_PLOTS:
            raise ModelError(f"plot: at most {MOST_PLOTS} plots are allowed; remove one first")
        self._charts[name] = (found, None)
        self._points.clear()

    def remove(self, name: str) -> None:
        """Removes the plot of a quantity."""
        found = self._charts.pop(name, None)
        self._points.clear()
        if found is not None and found[1] is not None:
            wait_for_browsers(self.server)
            found[1].remove()

    def move(self, container, height: int) -> None:
        """Moves the charts to another container of the page, with this height [pixels]."""
        self._clear()
        self.container, self.height = container, height

    def _clear(self) -> None:
        """Removes all charts from the page; the next `draw` creates them again."""
        wait_for_browsers(self.server)
        for name, (found, chart) in self._charts.items():
            if chart is not None:
                chart.remove()
            self._charts[name] = (found, None)

    def take(self, time: float, worlds: Sequence[int]) -> None:
        """Records the present values of some worlds.

        Args:
            time: position on the time axis [s].
            worlds: the worlds; the first 4 are plotted.
        """
        worlds = tuple(worlds[:MOST_WORLDS])
        if worlds != self._worlds:
            self._worlds = worlds
            self._points.clear()
            self._clear()
        if not self._charts or not worlds:
            return
        if self._points and time == self._points[-1][0]:
            return
        if self._points and time < self._points[-1][0]:
            self._points.clear()
        quantities = [found for found, _ in self._charts.values()]
        lines: list[list[np.ndarray]] = [[] for _ in quantities]
        for world in worlds:
            batch, row = self.source.locate(world)
            values = self._samplers[id(batch)].values(batch, row, quantities, self.source.reported)
            for line, value in zip(lines, values, strict=True):
                line.append(value)
        self._points.append((time, [np.concatenate(line) for line in lines]))

    def draw(self) -> None:
        """Sends the recorded values to the page."""
        if len(self._points) < 2:
            return
        x = np.array([time for time, _ in self._points])
        for k, (name, (found, chart)) in enumerate(list(self._charts.items())):
            columns = np.stack([values[k] for _, values in self._points], 1)
            columns = np.where(np.isfinite(columns), columns, np.nan)
            data = (x, *columns)
            if chart is None or len(chart.data) != len(data):
                self._charts[name] = (found, self._made(found, data))
            else:
                chart.data = data

    def _made(self, found: Quantity, data: tuple[np.ndarray, ...]):
        many = len(self._worlds) > 1
        labels = [f"{label} of {world}" if many else label for world in self._worlds for label in found.labels]
        series: list[dict[str, Any]] = [{"label": "time [s]"}]
        for k, label in enumerate(labels):
            series.append({"label": label, "stroke": COLOURS[k % len(COLOURS)], "width": 1.5})
        title = f"{found.name} [{found.unit}]" if found.unit else found.name
        with self.container:
            return self.server.gui.add_uplot(
                data,
                tuple(series),
                title=title,
                scales={"x": {"time": False}},
                legend={"show": len(labels) > 1},
                height=self.height + 20 * (len(labels) > 1),
            )
