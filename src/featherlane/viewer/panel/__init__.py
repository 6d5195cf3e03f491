"""The control panel of the page, with one module per folder."""

from featherlane.viewer.panel.host import Source
from featherlane.viewer.panel.panel import Panel
from featherlane.viewer.panel.worlds import DRAWN

__all__ = ["DRAWN", "Panel", "Source"]
