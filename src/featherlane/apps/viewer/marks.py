"""Marks are shapes whose number and poses are recomputed for each frame, such as arrows at contacts."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from featherlane.apps.viewer.frame import Frame
from featherlane.apps.viewer.node import Node
from featherlane.apps.viewer.shapes import Mesh, cone, tube
from featherlane.extension import rotation

STEPS = 12  # segments around a mark
HEAD = 0.25  # length of the head relative to the arrow, and radius of the head relative to its length


class Marks(ABC):
    """A layer of marks.

    Args:
        groups: groups of the layer; empty if the layer has none.
    """

    def __init__(self, server, name: str, meshes: dict[str, Mesh], groups: tuple[int, ...] = ()):
        self.groups = groups
        self.on: dict[int | None, bool] = dict.fromkeys(groups or (None,), False)
        self._nodes = {part: Node(server, f"/{name}/{part}", mesh) for part, mesh in meshes.items()}

    def switch(self, group: int | None, on: bool) -> None:
        """Shows or hides a group."""
        self.on[group] = on
        for node in self._nodes.values():
            node.switch(any(self.on.values()))

    @abstractmethod
    def show(self, frame: Frame, offsets: np.ndarray) -> None:
        """Draws the marks of a frame, whose worlds are drawn at `offsets` (n, 3) [m]."""

    def draw(self, part: str, at, quat, scale, colours, opacity: float | None = None) -> None:
        """Draws a mesh n times; arguments without a leading axis are broadcast."""
        at = np.asarray(at, np.float32).reshape(-1, 3)
        n = len(at)
        quat, scale = (np.array(np.broadcast_to(a, (n, k)), np.float32) for a, k in ((quat, 4), (scale, 3)))
        opacities = None if opacity is None else np.full(n, opacity, np.float32)
        self._nodes[part].draw(at, quat, scale, np.asarray(colours, float), opacities)

    def arrows(self, start: np.ndarray, vector: np.ndarray, radius: float, colours) -> None:
        """Draws arrows from points (n, 3) along vectors (n, 3) with the meshes "shaft" and "head"."""
        quat, length = rotation.from_z(vector), np.linalg.norm(vector, axis=-1, keepdims=True)
        head = np.minimum(HEAD * length, 6 * radius)
        direction = vector / np.maximum(length, 1e-12)
        shaft = length - head
        wide = np.minimum(radius, head / 3)
        self.draw("shaft", start + direction * shaft / 2, quat, np.hstack((wide, wide, shaft / 2)), colours)
        self.draw("head", start + direction * shaft, quat, np.hstack((2 * wide, 2 * wide, head)), colours)


def arrow() -> dict[str, Mesh]:
    """Returns the meshes of arrows by name."""
    return {"shaft": tube(STEPS), "head": cone(STEPS)}
