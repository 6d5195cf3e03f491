"""Draws contacts: a disc perpendicular to the normal and an arrow for the force."""

from __future__ import annotations

import numpy as np

from featherlane.model.model import Model, peek
from featherlane.spatial.rotation import from_z
from featherlane.viewer.frame import Frame
from featherlane.viewer.marks import STEPS, Marks, arrow
from featherlane.viewer.shapes import cylinder

PUSHING, IDLE = (0.95, 0.5, 0.1), (0.6, 0.6, 0.65)  # colours with and without a force
FORCE = (0.2, 0.75, 0.35)
RADIUS, HALF = 0.15, 0.03  # of a disc, in mean body sizes
WEIGHT = 1.0  # length of an arrow for the weight of the whole model, in extents
STANDARD_GRAVITY = 9.81  # used if the model has no gravity


class Contacts(Marks):
    """Draws contact points."""

    def __init__(self, server, model: Model, size: float):
        super().__init__(server, "contacts", {"disc": cylinder(STEPS)})
        self.size = size

    def show(self, frame: Frame, offsets: np.ndarray) -> None:
        """Draws the marks of a frame."""
        touches = frame.touches
        if touches is None:
            return
        pushes = (touches.force != 0).any(1, keepdims=True)
        radius = RADIUS * self.size
        at, quat = touches.pos + offsets[touches.world], from_z(touches.normal)
        self.draw("disc", at, quat, (radius, radius, HALF * self.size), np.where(pushes, PUSHING, IDLE))


class Forces(Marks):
    """Draws contact forces on the second body."""

    def __init__(self, server, model: Model, size: float, extent: float):
        super().__init__(server, "forces", arrow())
        gravity = float(np.linalg.norm(peek(model, "opt_gravity"))) or STANDARD_GRAVITY
        weight = gravity * float(peek(model, "body_mass").sum())
        self.per_newton, self.radius = (WEIGHT * extent / weight if weight else 0.0), 0.05 * size

    def show(self, frame: Frame, offsets: np.ndarray) -> None:
        """Draws the marks of a frame."""
        touches = frame.touches
        if touches is None:
            return
        acts = (touches.force != 0).any(1)
        start = (touches.pos + offsets[touches.world])[acts]
        self.arrows(start, self.per_newton * touches.force[acts], self.radius, FORCE)
