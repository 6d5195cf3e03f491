"""Draws spatial tendons along their paths around geoms, by group."""

from __future__ import annotations

import numpy as np

from featherlane.model.enums import NGROUP
from featherlane.model.model import Model
from featherlane.spatial.rotation import from_z
from featherlane.viewer.appearance import Looks
from featherlane.viewer.frame import Frame
from featherlane.viewer.marks import STEPS, Marks
from featherlane.viewer.shapes import sphere, tube


class Tendons(Marks):
    """Draws paths of tendons."""

    def __init__(self, server, model: Model, looks: Looks):
        mj = model.mj_model
        self.group, self.width = np.clip(mj.tendon_group, 0, NGROUP - 1), mj.tendon_width
        self.colours = looks.colours("tendon")
        groups = tuple(int(g) for g in np.unique(self.group[self.colours[:, 3] > 0]))
        super().__init__(server, "tendons", {"piece": tube(STEPS), "corner": sphere(STEPS)}, groups)

    def show(self, frame: Frame, offsets: np.ndarray) -> None:
        """Draws the marks of a frame."""
        if frame.paths is None:
            return
        ways, shown = frame.paths, [g for g in self.groups if self.on[g]]
        drawn = (np.isin(self.group, shown) & (self.colours[:, 3] > 0))[ways.tendon]
        tendon, offset = ways.tendon[drawn], offsets[ways.world[drawn]]
        start, end = ways.start[drawn] + offset, ways.end[drawn] + offset
        width, rgb = self.width[tendon][:, None], self.colours[tendon, :3]
        length = np.linalg.norm(end - start, axis=1, keepdims=True)
        self.draw("piece", (start + end) / 2, from_z(end - start), np.hstack((width, width, length / 2)), rgb)
        self.draw("corner", end, (1.0, 0.0, 0.0, 0.0), np.hstack((width, width, width)), rgb)
