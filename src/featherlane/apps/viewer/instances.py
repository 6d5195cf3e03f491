"""Draws one mesh many times: all instances of a shape are one node of the page, for any number of worlds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from featherlane.apps.viewer.frame import Frame
from featherlane.apps.viewer.node import Drag, Node
from featherlane.apps.viewer.shapes import Mesh
from featherlane.extension import rotation

GLASS = 0.35  # opacity of transparent parts


class Part(NamedTuple):
    """An instance of a mesh in each world, attached to a body.

    Attributes:
        body: the body that carries it.
        pos: offset from the body's frame [m].
        quat: rotation relative to the body's frame.
        scale: factors for the size of the mesh.
        variant: (group, variant) with which a world has the part; None for all worlds.
    """

    body: int
    pos: Sequence[float] | np.ndarray
    quat: Sequence[float] | np.ndarray
    scale: Sequence[float] | np.ndarray
    rgba: Sequence[float] | np.ndarray
    variant: tuple[int, int] | None = None


class Carried:
    """Computes the poses of many parts at once from the poses of their bodies.

    Args:
        groups: lists of parts; `poses` yields one result for each list.
    """

    def __init__(self, groups: Sequence[Sequence[Part]]):
        parts = [part for group in groups for part in group]
        self.ends = np.cumsum([len(group) for group in groups])[:-1]
        self.bodies = np.array([part.body for part in parts], int)
        self.pos = np.array([part.pos for part in parts], np.float32).reshape(-1, 3)
        self.quat = np.array([part.quat for part in parts], np.float32).reshape(-1, 4)
        self.variants = [(k, part.variant) for k, part in enumerate(parts) if part.variant is not None]

    def poses(self, frame: Frame, offsets: np.ndarray) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        """Yields positions (n, k, 3) and orientations (n, k, 4) of each list in n worlds drawn at `offsets`."""
        quat = frame.quat.astype(np.float32)[:, self.bodies]
        at = (frame.pos + offsets[:, None]).astype(np.float32)[:, self.bodies] + rotation.to_world(quat, self.pos)
        if frame.variants is not None:
            for k, (group, variant) in self.variants:
                at[frame.variants[:, group] != variant, k] = np.nan  # such parts are not drawn
        split = (np.split(values, self.ends, axis=1) for values in (at, rotation.product(quat, self.quat)))
        return zip(*split, strict=True)


class Paint(NamedTuple):
    """Colours of bodies that replace those of their shapes.

    Attributes:
        bodies: (n, nbody) whether each body is painted.
        colours: (n, nbody, 3) from 0 to 1.
    """

    bodies: np.ndarray
    colours: np.ndarray


class Instances:
    """A mesh with k instances per world, ordered by world.

    Args:
        parts: instances in one world, either all opaque or all transparent.
        hold: called with the index among the drawn worlds, the body and a `Drag` when a visitor drags an instance.
        glb: the mesh with its texture, as a file; drawn while no paint is set.
    """

    def __init__(
        self,
        server,
        name: str,
        mesh: Mesh,
        parts: Sequence[Part],
        hold: Callable[[int, int, Drag], Any] | None = None,
        glb: bytes | None = None,
        fixed: bool = False,
    ):
        self.fixed = fixed
        self.parts, self.bodies = parts, np.array([part.body for part in parts])
        self.scale = np.array([part.scale for part in parts], np.float32).reshape(-1, 3)
        rgba = np.array([part.rgba for part in parts], np.float32).reshape(-1, 4)
        self.colours, self.opacities = rgba[:, :3], None if (rgba[:, 3] >= 1).all() else rgba[:, 3]
        self.hold, held = hold, self._held if hold else None
        self.plain = Node(server, name, mesh, held)
        self.textured = Node(server, f"{name}_textured", mesh, held, glb) if glb else self.plain
        self._node = self.textured
        self._painted = False

    def place(self, at: np.ndarray, quat: np.ndarray, paint: Paint | None = None, glass: bool = False) -> None:
        """Moves the parts; unchanged poses are not sent.

        Args:
            at: (n, k, 3) positions of the parts of the n worlds [m].
            quat: (n, k, 4) orientations of the parts.
            paint: replacement colours.
        """
        if paint is not None and not paint.bodies[:, self.bodies].any():
            paint = None
        self._choose(self.textured if paint is None and not glass else self.plain)
        self._send(len(at), at.reshape(-1, 3), quat.reshape(-1, 4))
        if paint is not None or self._painted:
            self._node.colour(self._colours(len(at), paint))
        self._node.dim(GLASS if glass else None)
        self._painted = paint is not None

    def _choose(self, node: Node) -> None:
        """Draws with this node and hides the other."""
        if node is not self._node:
            self._node.remove()
            self._node = node

    def _send(self, n: int, at: np.ndarray, quat: np.ndarray) -> None:
        """Sends the poses of all parts of n worlds."""
        if n and self._node.count == len(at):
            self._node.move(at, quat)
            return
        self._node.remove()
        if n == 0:
            return
        opacities = None if self.opacities is None else np.tile(self.opacities, n)
        self._node.draw(at, quat, np.tile(self.scale, (n, 1)), self._colours(n, None), opacities)

    def _colours(self, n: int, paint: Paint | None) -> np.ndarray:
        """Returns the colours of all parts of all worlds, (n k, 3)."""
        if paint is None:
            return np.tile(self.colours, (n, 1))
        own = np.where(paint.bodies[:, self.bodies, None], paint.colours[:, self.bodies], self.colours)
        return own.reshape(-1, 3)

    def switch(self, on: bool) -> None:
        """Shows or hides the parts."""
        self.plain.switch(on)
        self.textured.switch(on)

    def _held(self, pose: int, drag: Drag) -> None:
        world, part = divmod(pose, len(self.bodies))
        if self.hold is not None:
            self.hold(world, int(self.bodies[part]), drag)

    def remove(self) -> None:
        """Removes the parts from the page."""
        self._node.remove()
        self._painted = False
