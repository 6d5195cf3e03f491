"""The control panel of the page, with one module per folder."""

from featherlane.apps.viewer.panel.panel import Panel
from featherlane.apps.viewer.panel.worlds import DRAWN

__all__ = ["DRAWN", "Panel"]
