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
    """The mouse drags an instance, with Ctrl."""

    phase: str  # "start", "update" or "end"
    start: tuple[float, float, float]  # grabbed point, which moves with the instance [m]
    end: tuple[float, float, float]  # position of the pointer [m]


class Node:
    """One mesh, drawn in many poses; it is created at the first draw, and later only changes are sent.

    Args:
        hold: called with the index of the dragged pose and a `Drag`.
        glb: the mesh with its texture, as a file; replaces the triangles and has no other colours.
    """

    def __init__(
        self, server, name: str, mesh: Mesh, hold: Callable[[int, Drag], Any] | None = None, glb: bytes | None = None
    ):
        self.server, self.name, self.mesh, self.hold, self.glb = server, name, mesh, hold, glb
        self._handle: Any = None

    def draw(
        self,
        at: np.ndarray,
        quat: np.ndarray,
        scale: np.ndarray,
        rgb: np.ndarray,
        opacities: np.ndarray | None = None,
        dimmed: float | None = None,
    ) -> None:
        """Draws the mesh n times; `rgb` is from `colour_bytes`, and `dimmed` is a factor of all opacities."""
        if len(at) == 0:
            self.hide()
        else:
            poses: dict[str, Any] = dict(zip(("batched_positions", "batched_wxyzs"), _sound(at, quat), strict=True))
            poses["batched_scales"] = scale
            look = {} if self.glb else {"batched_colors": rgb, "batched_opacities": opacities, "opacity": dimmed}
            if self._handle is None:
                self._make(len(at), poses | look)
            else:
                for key, value in (poses | look | {"visible": True}).items():
                    setattr(self._handle, key, value)

    def _make(self, n: int, values: dict[str, Any]) -> None:
        scene, values = self.server.scene, values | {"lod": "off", "cast_shadow": n <= SHADOWS}
        if self.glb is not None:
            self._handle = scene.add_batched_glb(self.name, self.glb, **values)
        else:
            self._handle = scene.add_batched_meshes_simple(self.name, self.mesh.vertices, self.mesh.faces, **values)
        if self.hold is not None:
            # no click callback: with one, viser does not report which instance is under a hovering pointer
            self._handle.on_drag("left", modifier="cmd/ctrl")(self._dragged)

    async def _dragged(self, event) -> None:
        """Handles a drag on the server's event loop, which keeps the phases in order."""
        if self.hold is not None:
            self.hold(event.instance_index or 0, Drag(event.phase, event.start_position, event.end_position))

    def hide(self) -> None:
        """Hides the node until the next `draw`."""
        if self._handle is not None:
            self._handle.visible = False

    def remove(self) -> None:
        """Removes the node from the page."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None


def colour_bytes(colours: np.ndarray) -> np.ndarray:
    """Converts sRGB colours from 0 to 1 to linear light in bytes, as the page expects."""
    return np.round(255 * linear(colours)).astype(np.uint8)


def _sound(at: np.ndarray, quat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns poses without non-finite values, which would crash the page."""
    sound = np.isfinite(np.hstack((at, quat))).all(1, keepdims=True)
    if sound.all():
        return at, quat
    return np.where(sound, at, BURIED), np.where(sound, quat, (1.0, 0.0, 0.0, 0.0))
