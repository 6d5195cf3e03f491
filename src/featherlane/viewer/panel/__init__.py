"""The control panel of the page, with one module per folder."""

from featherlane.viewer.panel.crowd import DRAWN
from featherlane.viewer.panel.host import Source
from featherlane.viewer.panel.panel import Panel

__all__ = ["DRAWN", "Panel", "Source"]
