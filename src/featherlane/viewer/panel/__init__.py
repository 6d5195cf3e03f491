"""The panel beside the picture, a module for each of its folders."""

from featherlane.viewer.panel.crowd import DRAWN
from featherlane.viewer.panel.host import Source
from featherlane.viewer.panel.panel import Panel

__all__ = ["DRAWN", "Panel", "Source"]
