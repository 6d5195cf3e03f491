"""Draws joints: an arrow along the axis of a hinge or slide joint, a ball at a ball joint, a cube at a free joint."""

from __future__ import annotations

import numpy as np

from featherlane.model.enums import BALL, FREE
from featherlane.model.model import Model
from featherlane.viewer.frame import Frame
from featherlane.viewer.marks import IDENTITY, STEPS, Marks, arrow
from featherlane.viewer.shapes import box, sphere

COLOUR = (0.15, 0.45, 0.95)
LENGTH, RADIUS, BLOB = 0.7, 0.04, 0.2  # in mean body sizes


class Joints(Marks):
    """Draws the frames of joints."""

    def __init__(self, server, model: Model, size: float):
        super().__init__(server, "joints", {**arrow(), "ball": sphere(STEPS), "free": box()})
        kind = model.jnt_type
        self.ball, self.free = np.flatnonzero(kind == BALL), np.flatnonzero(kind == FREE)
        self.turning = np.flatnonzero((kind != BALL) & (kind != FREE))
        self.size = size

    def show(self, frame: Frame, offsets: np.ndarray) -> None:
        """Draws the marks of a frame."""
        if frame.anchor is None or frame.axis is None:
            return
        at = frame.anchor + offsets[:, None]
        axes = frame.axis[:, self.turning].reshape(-1, 3)
        self.arrows(at[:, self.turning].reshape(-1, 3), LENGTH * self.size * axes, RADIUS * self.size, COLOUR)
        blob = (BLOB * self.size,) * 3
        self.draw("ball", at[:, self.ball], IDENTITY, blob, COLOUR)
        self.draw("free", at[:, self.free], IDENTITY, blob, COLOUR)
