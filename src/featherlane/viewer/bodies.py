"""Draws the frames of bodies: x red, y green, z blue."""

from __future__ import annotations

import numpy as np

from featherlane.model.model import Model
from featherlane.spatial.rotation import from_z, product, to_world
from featherlane.viewer.frame import Frame
from featherlane.viewer.marks import STEPS, Marks
from featherlane.viewer.shapes import tube

AXES = np.eye(3)
LENGTH, RADIUS = 0.8, 0.04  # in mean body sizes


class Bodies(Marks):
    """Draws the frames of all bodies except the world body."""

    def __init__(self, server, model: Model, size: float):
        super().__init__(server, "bodies", {"axis": tube(STEPS)})
        self.size = size

    def show(self, frame: Frame, offsets: np.ndarray) -> None:
        """Draws the marks of a frame."""
        half, quat = LENGTH * self.size / 2, frame.quat[:, 1:, None]
        at = (frame.pos + offsets[:, None])[:, 1:, None] + to_world(quat, half * AXES)
        radius = RADIUS * self.size
        colours = np.tile(AXES, (at.size // 9, 1))
        self.draw("axis", at, product(quat, from_z(AXES)).reshape(-1, 4), (radius, radius, half), colours)
