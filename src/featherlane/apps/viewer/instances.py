"""Draws one mesh many times: all instances of a shape are one node of the page, for any number of worlds.

Bodies are coloured by state: sleeping trees are grey, and each constraint island has a separate colour.
"""

from __future__ import annotations

import colorsys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from featherlane import Model
from featherlane.apps.viewer.appearance import PLAIN, Look
from featherlane.apps.viewer.frame import Frame
from featherlane.apps.viewer.node import Drag, Node, colour_bytes
from featherlane.apps.viewer.shapes import Mesh
from featherlane.extension import rotation

GLASS = 0.35  # opacity of transparent parts
GREY = (0.33, 0.34, 0.37)
GOLDEN = 0.6180339887  # hue difference between consecutive islands, as part of a full circle


class Solid(NamedTuple):
    """A shape that is attached to a body, in each world."""

    kind: int  # type of the geom
    data: int  # number of the mesh or height field, -1 for none
    body: int
    pos: np.ndarray  # pose in the body's frame
    quat: np.ndarray
    size: np.ndarray | Sequence[float]  # (3,) as that of a geom; of an instance, the factors for its mesh
    rgba: np.ndarray
    number: int  # of the geom or site
    look: Look = PLAIN
    variant: tuple[int, str] | None = None  # (group, variant) with which a world has the solid; None for all worlds


class Carried:
    """Computes the poses of many solids at once from those of their bodies; `poses` yields a result for each list."""

    def __init__(self, groups: Sequence[Sequence[Solid]]):
        solids = [solid for group in groups for solid in group]
        self.ends = np.cumsum([len(group) for group in groups])[:-1]
        self.bodies = np.array([solid.body for solid in solids], int)
        self.pos = np.array([solid.pos for solid in solids], np.float32).reshape(-1, 3)
        self.quat = np.array([solid.quat for solid in solids], np.float32).reshape(-1, 4)
        self.variants = [(k, solid.variant) for k, solid in enumerate(solids) if solid.variant is not None]

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
    """Colours of bodies that replace those of their shapes."""

    bodies: np.ndarray  # (n, nbody) whether each body is painted
    colours: np.ndarray  # (n, nbody, 3) from 0 to 1


def hues(islands: np.ndarray) -> np.ndarray:
    """Returns a colour (..., 3) for each island number."""
    table = np.array([colorsys.hsv_to_rgb(GOLDEN * i % 1.0, 0.75, 0.9) for i in range(int(islands.max(initial=0)) + 1)])
    return table[np.maximum(islands, 0)]


def paint(model: Model, frame: Frame, sleep: bool, islands: bool) -> Paint | None:
    """Computes the colours of bodies in a frame, None if none is painted; sleeping trees are grey on islands, too."""
    tree, shape = model.body_treeid, frame.pos.shape[:2]
    painted, colours = np.zeros(shape, bool), np.zeros((*shape, 3))
    moving = tree >= 0
    if islands and "tree_island" in frame.fields:
        island = frame.fields["tree_island"][:, tree[moving]]
        painted[:, moving], colours[:, moving] = island >= 0, hues(island)
    if sleep and frame.asleep is not None:
        asleep = np.zeros(shape, bool)
        asleep[:, moving] = frame.asleep[:, tree[moving]]
        painted, colours = painted | asleep, np.where(asleep[..., None], GREY, colours)
    return Paint(painted, colours) if painted.any() else None


class Instances:
    """A mesh with k instances per world, ordered by world.

    Args:
        parts: instances in one world, either all opaque or all transparent.
        hold: called with the index among the drawn worlds, the body and a `Drag` when a visitor drags an instance.
        glb: the mesh with its texture, as a file; drawn while the parts are neither painted nor transparent.
        fixed: whether the parts are static.
    """

    def __init__(
        self,
        server,
        name: str,
        mesh: Mesh,
        parts: Sequence[Solid],
        hold: Callable[[int, int, Drag], Any],
        glb: bytes | None = None,
        fixed: bool = False,
    ):
        self.parts, self.fixed, self.bodies = parts, fixed, np.array([part.body for part in parts])
        self.scale = np.array([part.size for part in parts], np.float32).reshape(-1, 3)
        rgba = np.array([part.rgba for part in parts], np.float32).reshape(-1, 4)
        self.rgb, self.opacities = colour_bytes(rgba[:, :3]), None if (rgba[:, 3] >= 1).all() else rgba[:, 3]

        def held(pose: int, drag: Drag) -> None:
            world, part = divmod(pose, len(parts))
            hold(world, int(self.bodies[part]), drag)

        self.plain = Node(server, name, mesh, held)
        self.textured = Node(server, f"{name}_textured", mesh, held, glb) if glb else self.plain
        self._node = self.textured

    def place(self, at: np.ndarray, quat: np.ndarray, paint: Paint | None, glass: bool) -> None:
        """Moves the parts to (n, k, 3) [m] and (n, k, 4) in the n worlds; unchanged values are not sent."""
        n, rgb, glass = len(at), self.rgb[None], glass and not self.fixed
        painted = np.zeros(0, bool) if paint is None else paint.bodies[:, self.bodies, None]
        if paint is not None and painted.any():
            rgb = np.where(painted, colour_bytes(paint.colours[:, self.bodies]), rgb)
        node = self.plain if painted.any() or glass else self.textured
        if node is not self._node:
            self._node.remove()
            self._node = node
        rgb = np.broadcast_to(rgb, at.shape).reshape(-1, 3)
        opacities = None if self.opacities is None else np.tile(self.opacities, n)
        scale = np.tile(self.scale, (n, 1))
        node.draw(at.reshape(-1, 3), quat.reshape(-1, 4), scale, rgb, opacities, GLASS if glass else None)

    def hide(self) -> None:
        """Hides the parts until the next `place`."""
        self._node.hide()

    def remove(self) -> None:
        """Removes the parts from the page."""
        self._node.remove()
