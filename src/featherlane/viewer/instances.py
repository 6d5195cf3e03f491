"""One mesh, drawn many times: what shares a shape is one node of the page, whatever the number of worlds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from featherlane.viewer.frame import Frame
from featherlane.viewer.rotation import product, turned
from featherlane.viewer.shapes import Mesh

IDENTITY = (1.0, 0.0, 0.0, 0.0)


class Part(NamedTuple):
    """One piece of each world, carried by a body.

    Attributes:
        body: the body.
        pos: offset from the body's frame [m].
        quat: rotation from it.
        scale: sizes of the piece, times those of its mesh.
        rgba: colour.
    """

    body: int
    pos: Sequence[float] | np.ndarray
    quat: Sequence[float] | np.ndarray
    scale: Sequence[float] | np.ndarray
    rgba: Sequence[float] | np.ndarray


class Instances:
    """A node of the page with one mesh in many poses: of each world k parts, the worlds one after the other.

    Args:
        server: where it is drawn.
        name: its place in the tree of nodes.
        mesh: the triangles.
        parts: the pieces of a world, all of them opaque or none.
        pick: called with the world's place among the drawn ones and the body, when somebody clicks.
    """

    def __init__(self, server, name: str, mesh: Mesh, parts: Sequence[Part], pick: Callable[..., Any] | None = None):
        self.server, self.name, self.mesh, self.pick = server, name, mesh, pick
        self.bodies = np.array([part.body for part in parts])
        self.pos = np.array([part.pos for part in parts], np.float32).reshape(-1, 3)
        self.quat = np.array([part.quat for part in parts], np.float32).reshape(-1, 4)
        self.scale = np.array([part.scale for part in parts], np.float32).reshape(-1, 3)
        rgba = np.clip(np.array([part.rgba for part in parts], float).reshape(-1, 4), 0.0, 1.0)
        self.colours = np.round(255 * rgba[:, :3]).astype(np.uint8)
        self.opacities = rgba[:, 3].astype(np.float32)
        self._handle: Any = None
        self._last: tuple[np.ndarray, ...] = ()
        self._painted = False

    def place(self, frame: Frame, offsets: np.ndarray) -> None:
        """Move the parts to where their bodies are; what has not moved is not sent.

        Args:
            frame: poses of the n worlds.
            offsets: (n, 3) where each world's origin is drawn [m].
        """
        pos, quat = frame.pos[:, self.bodies], frame.quat[:, self.bodies]
        given = (pos, quat, offsets)
        if len(self._last) == len(given) and all(map(np.array_equal, given, self._last)):
            return
        self._last = (*given[:2], offsets.copy())
        n, quat = len(pos), quat.astype(np.float32)
        at = (pos + offsets[:, None]).astype(np.float32) + turned(quat, self.pos)
        self._send(n, at.reshape(-1, 3), product(quat, self.quat).reshape(-1, 4))

    def _send(self, n: int, at: np.ndarray, quat: np.ndarray) -> None:
        if self._handle is not None and len(self._handle.batched_positions) == len(at):
            self._handle.batched_positions, self._handle.batched_wxyzs = at, quat
            return
        self.remove()
        opaque = bool((self.opacities == 1.0).all())
        self._handle = self.server.scene.add_batched_meshes_simple(
            self.name,
            self.mesh.vertices,
            self.mesh.faces,
            quat,
            at,
            batched_scales=np.tile(self.scale, (n, 1)),
            batched_colors=np.tile(self.colours, (n, 1)),
            batched_opacities=None if opaque else np.tile(self.opacities, n),
            lod="off",
        )
        if self.pick is not None:
            self._handle.on_click(self._clicked)

    def visible(self, on: bool) -> None:
        """Show the node, or hide it."""
        if self._handle is not None:
            self._handle.visible = on

    def paint(self, paint: tuple[np.ndarray, np.ndarray] | None) -> None:
        """Colours of bodies in place of those of the parts.

        Args:
            paint: whether a body of a world is painted (n, nbody), and how (n, nbody, 3) uint8; None: none is.
        """
        if self._handle is None or (paint is None and not self._painted):
            return
        n, own = len(self._handle.batched_positions) // len(self.bodies), self.colours[None]
        if paint is not None:
            painted, colours = (values[:, self.bodies] for values in paint)
            own = np.where(painted[..., None], colours, own)
        self._handle.batched_colors = np.broadcast_to(own, (n, *self.colours.shape)).reshape(-1, 3)
        self._painted = paint is not None

    def _clicked(self, event) -> None:
        world, part = divmod(event.instance_index or 0, len(self.bodies))
        assert self.pick is not None
        self.pick(world, int(self.bodies[part]))

    def remove(self) -> None:
        """Take the node off the page."""
        if self._handle is not None:
            self._handle.remove()
        self._handle, self._last, self._painted = None, (), False
