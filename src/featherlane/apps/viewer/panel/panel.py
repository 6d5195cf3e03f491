"""The control panel: time, worlds, plots, layers, mouse forces, options, bodies.

Each control posts a job to the page.  `sync` updates the controls after a refused job or a selection; `refresh` updates
changing values several times a second.
"""

from __future__ import annotations

from typing import Any

from featherlane.apps.viewer.markup import Prose
from featherlane.apps.viewer.panel.controls import Controls
from featherlane.apps.viewer.panel.curves import Curves
from featherlane.apps.viewer.panel.edits import Bodies, Options
from featherlane.apps.viewer.panel.forces import Actuators, Forces
from featherlane.apps.viewer.panel.host import Host
from featherlane.apps.viewer.panel.layers import Layers
from featherlane.apps.viewer.panel.time import Time
from featherlane.apps.viewer.panel.worlds import DrawnWorlds
from featherlane.apps.viewer.playback import Playback
from featherlane.apps.viewer.session import Session
from featherlane.apps.viewer.watch import Watch


class Panel:
    """Creates the controls of a page for the shown worlds.

    Attributes:
        time, drawn, curves: folders whose contents change with time.
    """

    def __init__(self, page: Host):
        self.page, self.source, self.controls = page, page.source, Controls(page)
        gui = page.server.gui
        gui.reset()
        self._status = Prose(gui)
        self.time, self.drawn, self.curves = Time(self.controls), DrawnWorlds(self.controls), Curves(self.controls)
        Layers(self.controls)
        if isinstance(self.source, Session):
            for folder in (Forces, Actuators, Options, Bodies):
                folder(self.controls)
        self.sync()
        self.refresh()

    @property
    def handles(self) -> dict[str, Any]:
        """Returns the server's handles of all controls, by name."""
        return self.controls.handles

    def sync(self) -> None:
        """Sets all controls to the actual values, which can differ from the requested ones."""
        self.controls.sync()

    def refresh(self) -> None:
        """Updates numbers, the time slider, bad worlds and plots."""
        batch, row = self.page.locate(self.controls.world())
        seconds = float(batch.time[row])
        lines = self._lines(batch, row)
        self._status.show("<b>t = {} s</b>, {}" + "<br>{}" * (len(lines) - 1), f"{seconds:.3f}", *lines)
        self.drawn.refresh()
        self.time.refresh()
        self.curves.refresh(self.source.clock if isinstance(self.source, Session) else seconds)

    def _lines(self, batch, row: int) -> list[str]:
        """Returns lines of text about the selected world, a row of a batch."""
        source = self.source
        lines = [f"world {self.controls.world()} of {source.nworld}"]
        if isinstance(source, Watch):
            mixed = source.mixed
            lines[0] += (
                f" (world {source.first + self.controls.world()} of {mixed.nworld} of all models)" if mixed else ""
            )
            lines[0] += ", live"
        else:
            lines[0] += f", {'running' if source.running else 'paused'}" + f" at {source.pace:.2f} x" * source.running
        if not isinstance(source, Playback):
            lines.append(
                f"{int(batch.ncon[row])} contacts, {int(batch.solver_niter[row])} iterations, "
                f"residual {float(batch.solver_residual[row]):.1e}"
            )
        if self.page.picked:
            lines.append(f"picked: {self.controls.body_names()[self.page.picked[1]]}")
        return lines
