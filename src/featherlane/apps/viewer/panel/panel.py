"""The control panel: time, worlds, plots, layers, mouse forces, options, bodies.

Each control posts a job to the page.  `sync` updates the controls after a refused job or a selection; `refresh` updates
changing values several times a second.
"""

from __future__ import annotations

import numpy as np

from featherlane.apps.viewer.markup import Prose
from featherlane.apps.viewer.panel.controls import Controls
from featherlane.apps.viewer.panel.curves import Curves
from featherlane.apps.viewer.panel.edits import Bodies, Options
from featherlane.apps.viewer.panel.forces import Forces
from featherlane.apps.viewer.panel.host import Host
from featherlane.apps.viewer.panel.inspector import Inspector
from featherlane.apps.viewer.panel.layers import Layers
from featherlane.apps.viewer.panel.sliders import actuator_sliders, joint_sliders
from featherlane.apps.viewer.panel.time import Time
from featherlane.apps.viewer.panel.worlds import DrawnWorlds
from featherlane.apps.viewer.session import Session
from featherlane.enums import HINGE, SLIDE


class Panel(Controls):
    """Creates the controls of a page for the shown worlds.

    Attributes:
        time, drawn, curves, inspector: folders whose contents change with time.
    """

    def __init__(self, page: Host):
        super().__init__(page)
        self.gui.reset()
        self._status = Prose(self.gui)
        self.time, self.drawn, self.curves = Time(self), DrawnWorlds(self), Curves(self)
        self.inspector, self._sliders = Inspector(self), []
        Layers(self)
        if isinstance(self.source, Session):
            Forces(self)
            if np.isin(self.model.jnt_type, (HINGE, SLIDE)).any():
                self._sliders.append(joint_sliders(self))
            if self.model.nu:
                self._sliders.append(actuator_sliders(self))
            Options(self)
            Bodies(self)
        self.sync()
        self.refresh()

    def refresh(self) -> None:
        """Updates numbers, the time slider, bad worlds and plots."""
        world = self.world()
        seconds, lines = float(self.source.batch.time[world]), self._lines(world)
        self._status.show("<b>t = {} s</b>, {}" + "<br>{}" * (len(lines) - 1), f"{seconds:.3f}", *lines)
        self.drawn.refresh()
        self.time.refresh()
        self.inspector.refresh()
        for sliders in self._sliders:
            sliders.refresh()
        self.curves.refresh(self.source.seconds(world))

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
