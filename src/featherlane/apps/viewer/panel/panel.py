"""The control panel: time, worlds, plots, inspector, layers, mouse forces, sliders, options, bodies.

Each control posts a job to the page.  `sync` updates the controls after a refused job or a selection; `refresh` updates
changing values several times a second.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from featherlane.apps.viewer.markup import Prose
from featherlane.apps.viewer.panel.controls import Controls
from featherlane.apps.viewer.panel.edits import actuator_sliders, bodies, forces, joint_sliders, options
from featherlane.apps.viewer.panel.inspector import Inspector
from featherlane.apps.viewer.panel.layers import layers
from featherlane.apps.viewer.panel.plots import Plots
from featherlane.apps.viewer.panel.time import time_folder
from featherlane.apps.viewer.panel.worlds import DrawnWorlds
from featherlane.apps.viewer.session import Session
from featherlane.enums import HINGE, SLIDE


class Panel(Controls):
    """Creates the controls of a page for the shown worlds."""

    def __init__(self, page: Any):
        super().__init__(page)
        self.gui.reset()
        self._status = Prose(self.gui)
        refresh_time = time_folder(self)
        self.drawn, self.plots, self.inspector = DrawnWorlds(self), Plots(self), Inspector(self)
        self._live = [refresh_time, self.drawn.refresh, self.inspector.refresh, self.plots.refresh]
        layers(self)
        if isinstance(self.source, Session):
            forces(self)
            if np.isin(self.model.jnt_type, (HINGE, SLIDE)).any():
                self._live.append(joint_sliders(self))
            if self.model.nu:
                self._live.append(actuator_sliders(self))
            options(self)
            bodies(self)
        self.sync()
        self.refresh()

    def refresh(self) -> None:
        """Updates numbers, sliders, bad worlds and plots."""
        world = self.world()
        seconds, lines = float(self.source.batch.time[world]), self._lines(world)
        self._status.show("<b>t = {} s</b>, {}" + "<br>{}" * (len(lines) - 1), f"{seconds:.3f}", *lines)
        for job in self._live:
            job()

    def _lines(self, world: int) -> list[str]:
        """Returns lines of text about the selected world."""
        lines, batch = [self.source.description(world)], self.source.batch
        if self.source.reported:
            lines.append(
                f"{int(batch.ncon[world])} contacts, {int(batch.solver_niter[world])} iterations, "
                f"residual {float(batch.solver_residual[world]):.1e}"
            )
        if self.page.picked:
            lines.append(f"picked: {self.body_names()[self.page.picked[1]]}")
        return lines
