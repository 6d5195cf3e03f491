"""Marks are shapes and labels whose number and poses are recomputed for each frame, such as arrows at contacts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from featherlane import Model
from featherlane.apps.viewer.appearance import Looks
from featherlane.apps.viewer.frame import Frame
from featherlane.apps.viewer.markup import plain
from featherlane.apps.viewer.node import Node, colour_bytes
from featherlane.apps.viewer.shapes import box, cone, cylinder, sphere, tube
from featherlane.extension import rotation

STEPS = 12  # segments around a mark
HEAD = 0.25  # length of the head relative to the arrow, and radius of the head relative to its length
MESHES = {"sphere": sphere(STEPS), "tube": tube(STEPS), "cone": cone(STEPS), "cylinder": cylinder(STEPS), "box": box()}
MOST_LABELS = 200
LABEL_SCALE = 0.8  # size of text relative to viser's


class Marks:
    """A layer of marks, which a function draws for each frame.

    Args:
        layer: name of the layer, in `frame.LAYERS`.
        paint: function that draws the marks of a frame; `paint(marks, frame, offsets)`, with the drawn origins of the
            worlds (n, 3) [m].
        size, extent: mean size of the bodies, and size of the model [m].
    """

    def __init__(
        self,
        server,
        layer: str,
        paint: Callable[[Marks, Frame, np.ndarray], None],
        model: Model,
        looks: Looks,
        size: float,
        extent: float,
    ):
        self.server, self.layer, self.paint = server, layer, paint
        self.model, self.looks, self.size, self.extent = model, looks, size, extent
        self.shown: tuple[int | None, ...] = ()
        self._name = f"/{layer.replace(' ', '_')}"
        self._nodes: dict[str, Node] = {}
        self._labels: list[Any] = []

    def show(self, frame: Frame, offsets: np.ndarray, groups: tuple[int | None, ...] = (None,)) -> None:
        """Draws the marks of these groups in worlds drawn at `offsets` (n, 3) [m]; hides them if no group is on."""
        self.shown = groups
        for label in self._labels:
            label.visible = bool(groups)
        if not groups:
            for node in self._nodes.values():
                node.hide()
        elif frame.shows(self.layer):
            self.paint(self, frame, offsets)

    def draw(self, part: str, at, scale, colours, quat=rotation.IDENTITY, opacity: float | None = None) -> None:
        """Draws a mesh n times; arguments without a leading axis are broadcast.

        Args:
            part: name of the mesh (`MESHES`), with a number after a space if a layer draws it for several purposes.
        """
        at = np.asarray(at, np.float32).reshape(-1, 3)
        n = len(at)
        quat, scale = (np.array(np.broadcast_to(a, (n, k)), np.float32) for a, k in ((quat, 4), (scale, 3)))
        opacities = None if opacity is None else np.full(n, opacity, np.float32)
        if part not in self._nodes:
            self._nodes[part] = Node(self.server, f"{self._name}/{part}", MESHES[part.split()[0]])
        self._nodes[part].draw(at, quat, scale, colour_bytes(colours), opacities)

    def arrows(self, start: np.ndarray, vector: np.ndarray, radius: float, colours) -> None:
        """Draws arrows from points (n, 3) along vectors (n, 3)."""
        quat, length = rotation.from_z(vector), np.linalg.norm(vector, axis=-1, keepdims=True)
        head = np.minimum(HEAD * length, 6 * radius)
        direction = vector / np.maximum(length, 1e-12)
        shaft = length - head
        wide = np.minimum(radius, head / 3)
        self.draw("tube", start + direction * shaft / 2, np.hstack((wide, wide, shaft / 2)), colours, quat)
        self.draw("cone", start + direction * shaft, np.hstack((2 * wide, 2 * wide, head)), colours, quat)

    def lines(self, start: np.ndarray, end: np.ndarray, radius, colours) -> None:
        """Draws round lines between points (n, 3), with a radius for all or for each (n, 1)."""
        length = np.linalg.norm(end - start, axis=-1, keepdims=True)
        wide = np.broadcast_to(radius, length.shape)
        size, quat = np.hstack((wide, wide, length / 2)), rotation.from_z(end - start)
        self.draw("tube 1", (start + end) / 2, size, colours, quat)
        self.draw("sphere 1", end, np.hstack((wide, wide, wide)), colours)

    def label(self, texts: Sequence[str], at: np.ndarray) -> None:
        """Writes texts at points (n, 3); the first `MOST_LABELS`."""
        texts, at = texts[:MOST_LABELS], np.where(np.isfinite(at), at, 0.0)
        for k in range(len(self._labels), len(texts)):
            path = f"{self._name}/label/{k}"
            label = self.server.scene.add_label(path, plain(texts[k]), font_screen_scale=LABEL_SCALE)
            self._labels.append(label)
        for label, point in zip(self._labels, at, strict=False):
            label.position = tuple(point)
