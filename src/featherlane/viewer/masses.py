"""Draws the centres of mass of bodies and trees, and boxes of equal mass and inertia."""

from __future__ import annotations

import numpy as np

from featherlane.model.model import Model, peek
from featherlane.spatial.rotation import product
from featherlane.viewer.frame import Frame, Masses
from featherlane.viewer.marks import IDENTITY, STEPS, Marks
from featherlane.viewer.shapes import box, sphere

BODY, TREE, INERTIA = (0.95, 0.75, 0.1), (0.9, 0.15, 0.15), (0.85, 0.3, 0.25)
SMALL, LARGE = 0.1, 0.2  # radii of the centres of a body and of a tree, in mean body sizes
CLEAR = 0.5  # opacity of boxes


class MassCentres(Marks):
    """Draws the centres of mass of bodies, and of the subtree of each child of the world."""

    def __init__(self, server, model: Model, size: float):
        super().__init__(server, "mass_centres", {"body": sphere(STEPS), "tree": sphere(2 * STEPS)})
        self.size, self.roots = size, model.body_rootid
        self.trees = np.unique(model.body_rootid[1:])

    def show(self, frame: Frame, offsets: np.ndarray) -> None:
        """Draws the marks of a frame."""
        if frame.masses is None:
            return
        centre, mass = frame.masses.centre + offsets[:, None], np.broadcast_to(frame.masses.mass, frame.pos.shape[:2])
        there = mass[:, 1:] > 0
        self.draw("body", centre[:, 1:][there], IDENTITY, (SMALL * self.size,) * 3, BODY)
        whole, moment = np.zeros(mass.shape), np.zeros(centre.shape)
        np.add.at(whole.T, self.roots, mass.T)
        np.add.at(moment.swapaxes(0, 1), self.roots, (mass[..., None] * centre).swapaxes(0, 1))
        whole, moment = whole[:, self.trees], moment[:, self.trees]
        at = moment[whole > 0] / whole[whole > 0][:, None]
        self.draw("tree", at, IDENTITY, (LARGE * self.size,) * 3, TREE)


class Inertias(Marks):
    """Draws boxes of equal mass and inertia, along the principal axes."""

    def __init__(self, server, model: Model, size: float):
        super().__init__(server, "inertias", {"box": box()})
        self.model = model

    def show(self, frame: Frame, offsets: np.ndarray) -> None:
        """Draws the marks of a frame."""
        if frame.masses is None:
            return
        sides = half_sides(frame.masses)
        at = frame.masses.centre + offsets[:, None]
        quat = product(frame.quat, peek(self.model, "body_iquat"))
        there = np.broadcast_to((sides > 0).any(-1), at.shape[:2])
        self.draw("box", at[there], quat[there], np.broadcast_to(sides, at.shape)[there], INERTIA, CLEAR)


def half_sides(masses: Masses) -> np.ndarray:
    """Computes half sides (n or 1, nbody, 3) of the boxes from I_x = m / 3 (y^2 + z^2); zero without mass."""
    moment = masses.inertia / np.where(masses.mass > 0, masses.mass, 1.0)[..., None]
    squares = 1.5 * (moment.sum(-1, keepdims=True) - 2 * moment)
    return np.where(masses.mass[..., None] > 0, np.sqrt(np.maximum(squares, 0.0)), 0.0)
