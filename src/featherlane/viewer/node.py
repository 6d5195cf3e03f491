"""A node of the page: one mesh in any number of poses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from featherlane.viewer.look import linear
from featherlane.viewer.shapes import Mesh

SHADOWS = 2000  # poses up to which each casts a shadow: a page draws what does so four times

BURIED = (0.0, 0.0, -1e5)  # m, where poses go that are no numbers


class Drag(NamedTuple):
    """The mouse holds a pose, with Ctrl.

    Attributes:
        phase: "start", "update" or "end".
        start: where the pose was taken hold of, moved along with it (3,) [m].
        end: where the pointer is (3,) [m].
    """

    phase: str
    start: tuple[float, float, float]
    end: tuple[float, float, float]


class Node:
    """One mesh, drawn in many poses; made when it is drawn first, and only what changed is sent.

    Args:
        server: the viser server.
        name: place in the page's tree of nodes.
        mesh: the triangles.
        hold: called with the number of the pose that somebody drags, and how.
        glb: the mesh with its texture, as a file, in place of the triangles.
    """

    def __init__(
        self,
        server,
        name: str,
        mesh: Mesh,
        hold: Callable[[int, Drag], Any] | None = None,
        glb: bytes | None = None,
    ):
        self.server, self.name, self.mesh, self.hold, self.glb = server, name, mesh, hold, glb
        self.on = True
        self._handle: Any = None

    @property
    def count(self) -> int:
        """Poses that are drawn, or hidden."""
        return 0 if self._handle is None else len(self._handle.batched_positions)

    def draw(
        self,
        at: np.ndarray,
        quat: np.ndarray,
        scale: np.ndarray,
        colours: np.ndarray | None = None,
        opacities: np.ndarray | None = None,
    ) -> None:
        """Draw it n times.

        Args:
            at: (n, 3) [m].
            quat: (n, 4).
            scale: (n, 3) times the mesh.
            colours: (n, 3) or (3,), from 0 to 1, as on a screen; None for those that it has.
            opacities: (n,), None: opaque.
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
            # no click of its own: hovered, viser's nodes that have one hide which pose is under the pointer
            self._handle.on_drag("left", modifier="cmd/ctrl")(self._dragged)

    async def _dragged(self, event) -> None:
        """On the server's event loop, which keeps the phases in order."""
        if self.hold is not None:
            self.hold(event.instance_index or 0, Drag(event.phase, event.start_position, event.end_position))

    def move(self, at: np.ndarray, quat: np.ndarray) -> None:
        """Other poses, as many as there are."""
        self._handle.batched_positions, self._handle.batched_wxyzs = _sound(at, quat)

    def colour(self, colours: np.ndarray) -> None:
        """Other colours (n, 3), from 0 to 1."""
        if self._handle is not None and self.glb is None:
            self._handle.batched_colors = _bytes(colours)

    def dim(self, opacity: float | None) -> None:
        """Times its opacities, None: as they are."""
        if self._handle is not None and self.glb is None:
            self._handle.opacity = opacity

    def switch(self, on: bool) -> None:
        """Show the node, or hide it."""
        self.on = on
        self._show(on)

    def _show(self, on: bool) -> None:
        if self._handle is not None:
            self._handle.visible = on

    def remove(self) -> None:
        """Take the node off the page."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None


def _bytes(colours: np.ndarray) -> np.ndarray:
    """Colours of many poses as a page takes them: amounts of light."""
    return np.round(255 * linear(colours)).astype(np.uint8)


def _sound(at: np.ndarray, quat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Poses without bad numbers, which a page would not survive."""
    sound = np.isfinite(np.hstack((at, quat))).all(1, keepdims=True)
    if sound.all():
        return at, quat
    return np.where(sound, at, BURIED), np.where(sound, quat, (1.0, 0.0, 0.0, 0.0))
