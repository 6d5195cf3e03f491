"""A node of the page draws one mesh in any number of poses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from featherlane.apps.viewer.appearance import linear
from featherlane.apps.viewer.shapes import Mesh

SHADOWS = 2000  # most poses that cast shadows: the page draws each of these four times

BURIED = (0.0, 0.0, -1e5)  # m, position of non-finite poses, out of view


class Drag(NamedTuple):
    """The mouse drags an instance, with Ctrl.

    Attributes:
        phase: "start", "update" or "end".
        start: grabbed point, which moves with the instance (3,) [m].
        end: position of the pointer (3,) [m].
    """

    phase: str
    start: tuple[float, float, float]
    end: tuple[float, float, float]


class Node:
    """One mesh, drawn in many poses; it is created at the first draw, and later only changes are sent.

    Args:
        hold: called with the index of the dragged pose and a `Drag`.
        glb: the mesh with its texture, as a file; replaces the triangles.
    """

    def __init__(
        self, server, name: str, mesh: Mesh, hold: Callable[[int, Drag], Any] | None = None, glb: bytes | None = None
    ):
        self.server, self.name, self.mesh, self.hold, self.glb = server, name, mesh, hold, glb
        self.on = True
        self._handle: Any = None

    @property
    def count(self) -> int:
        """Returns the number of poses, drawn or hidden."""
        return 0 if self._handle is None else len(self._handle.batched_positions)

    def draw(
        self,
        at: np.ndarray,
        quat: np.ndarray,
        scale: np.ndarray,
        colours: np.ndarray | None = None,
        opacities: np.ndarray | None = None,
    ) -> None:
        """Draws the mesh n times.

        Args:
            at: (n, 3) positions [m].
            quat: (n, 4) orientations.
            scale: (n, 3) factors for the size of the mesh.
            colours: (n, 3) or (3,) sRGB from 0 to 1; None for those of the mesh.
            opacities: (n,); None for opaque.
        """
        if len(at) == 0:
            self._show(False)
            return
        rgb = None if colours is None else _bytes(colours)
        at, quat = _sound(at, quat)
        if self._handle is None:
            self._make(at, quat, scale, rgb, opacities)
        else:
            self._handle.batched_positions, self._handle.batched_wxyzs = at, quat
            self._handle.batched_scales = scale
            if rgb is not None and self.glb is None:
                self._handle.batched_colors = rgb
            if opacities is not None and self.glb is None:
                self._handle.batched_opacities = opacities
        self._show(self.on)

    def _make(self, at, quat, scale, rgb, opacities) -> None:
        scene, shadow = self.server.scene, len(at) <= SHADOWS
        if self.glb is not None:
            self._handle = scene.add_batched_glb(
                self.name, self.glb, quat, at, batched_scales=scale, lod="off", cast_shadow=shadow
            )
        else:
            self._handle = scene.add_batched_meshes_simple(
                self.name,
                self.mesh.vertices,
                self.mesh.faces,
                quat,
                at,
                batched_scales=scale,
                batched_colors=np.full(3, 255, np.uint8) if rgb is None else rgb,
                batched_opacities=opacities,
                lod="off",
                cast_shadow=shadow,
            )
        if self.hold is not None:
            # no click callback: with one, viser does not report which instance is under a hovering pointer
            self._handle.on_drag("left", modifier="cmd/ctrl")(self._dragged)

    async def _dragged(self, event) -> None:
        """Handles a drag on the server's event loop, which keeps the phases in order."""
        if self.hold is not None:
            self.hold(event.instance_index or 0, Drag(event.phase, event.start_position, event.end_position))

    def move(self, at: np.ndarray, quat: np.ndarray) -> None:
        """Changes the poses; their number must stay the same."""
        self._handle.batched_positions, self._handle.batched_wxyzs = _sound(at, quat)

    def colour(self, colours: np.ndarray) -> None:
        """Changes the colours (n, 3), from 0 to 1."""
        if self._handle is not None and self.glb is None:
            self._handle.batched_colors = _bytes(colours)

    def dim(self, opacity: float | None) -> None:
        """Multiplies the opacities by a factor; None restores them."""
        if self._handle is not None and self.glb is None:
            self._handle.opacity = opacity

    def switch(self, on: bool) -> None:
        """Shows or hides the node."""
        self.on = on
        self._show(on)

    def _show(self, on: bool) -> None:
        if self._handle is not None:
            self._handle.visible = on

    def remove(self) -> None:
        """Removes the node from the page."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None


def _bytes(colours: np.ndarray) -> np.ndarray:
    """Converts colours of many poses to linear light in bytes, as the page expects."""
    return np.round(255 * linear(colours)).astype(np.uint8)


def _sound(at: np.ndarray, quat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns poses without non-finite values, which would crash the page."""
    sound = np.isfinite(np.hstack((at, quat))).all(1, keepdims=True)
    if sound.all():
        return at, quat
    return np.where(sound, at, BURIED), np.where(sound, quat, (1.0, 0.0, 0.0, 0.0))
