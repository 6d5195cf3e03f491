"""Layers of solids: geoms, convex hulls of meshes, sites; each group can be turned on or off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from featherlane import Model
from featherlane.apps.viewer.appearance import PLAIN, Looks
from featherlane.apps.viewer.frame import Frame
from featherlane.apps.viewer.geom_meshes import Kind, Solid, geoms, mesh_of, sites, sorted_parts
from featherlane.apps.viewer.glb import glb
from featherlane.apps.viewer.instances import Carried, Instances, Paint, Part
from featherlane.apps.viewer.node import Drag
from featherlane.apps.viewer.shapes import textured
from featherlane.enums import MESH, NGROUP, PLANE

Groups = dict[int, list[Solid]]
_NOTHING = (), Carried([])  # initially empty


class Solids:
    """Draws solids of one kind, of all drawn worlds.

    Args:
        solids: function that returns the solids by group; called whenever the nodes are built.
        infinite: half side of an infinite plane [m].
        hold: called with the index of the world, the body and a `Drag` when a visitor drags a solid.
    """

    def __init__(
        self,
        server,
        model: Model,
        name: str,
        looks: Looks,
        solids: Callable[[Model, Looks], Groups],
        hulls: bool,
        infinite: float,
        hold: Callable[[int, int, Drag], Any] | None,
    ):
        self.server, self.model, self.name, self.looks, self.solids = server, model, name, looks, solids
        self.hulls, self.infinite, self.hold = hulls, infinite, hold
        self.groups = tuple(sorted(solids(model, looks)))
        self.on = dict.fromkeys(self.groups, False)
        self._built: dict[int, list[Instances]] = {}
        self._nworld = 0
        self._carried: tuple[tuple[int, ...], Carried] = _NOTHING

    def switch(self, group: int, on: bool) -> None:
        """Shows or hides a group."""
        self.on[group] = on
        for node in self._built.get(group, ()):
            node.switch(on)

    def show(self, frame: Frame, offsets: np.ndarray, paint: Paint | None = None, glass: bool = False) -> None:
        """Moves all shown solids to their poses.

        Args:
            frame: poses of the n worlds.
            offsets: (n, 3) drawn origins of the worlds [m].
            paint: colours that replace those of the bodies.
        """
        if len(offsets) != self._nworld:
            self.rebuild()
            self._nworld = len(offsets)
        shown = tuple(group for group, on in self.on.items() if on)
        nodes = [node for group in shown for node in self._nodes(group)]
        if nodes and self._carried[0] != shown:
            self._carried = shown, Carried([node.parts for node in nodes])
        if nodes:
            for node, (at, quat) in zip(nodes, self._carried[1].poses(frame, offsets), strict=True):
                node.place(at, quat, paint, glass and not node.fixed)

    def _nodes(self, group: int) -> list[Instances]:
        if group not in self._built:
            solids = self.solids(self.model, self.looks)[group]
            parts = sorted_parts(self.model, solids, self._nworld, self.hulls, self.infinite)
            nodes = [self._node(f"/{self.name}/{group}/{k}", *found) for k, found in enumerate(parts.items())]
            self._built[group] = nodes
        return self._built[group]

    def _node(self, name: str, kind: Kind, parts: list[Part]) -> Instances:
        mesh, file = mesh_of(self.model, kind.mesh, self._nworld * len(parts)), None
        if kind.look.texture >= 0:
            file = textured_file(self.looks, kind, mesh)
            mean = self.looks.mean(kind.look.texture)
            parts = [part._replace(rgba=(*(mean * part.rgba[:3]), part.rgba[3])) for part in parts]
        return Instances(self.server, name, mesh, parts, self.hold, file, kind.fixed)

    def rebuild(self) -> None:
        """Rebuilds all nodes at the next `show`, after a change of sizes or of the number of worlds."""
        for node in (node for nodes in self._built.values() for node in nodes):
            node.remove()
        self._built, self._carried = {}, _NOTHING


def textured_file(looks: Looks, kind: Kind, mesh) -> bytes:
    """Returns a mesh with its texture, as a file for the page."""
    return glb(textured(mesh, kind.repeat), kind.rgba, kind.look, looks.picture(kind.look.texture))


# ---- groups of solids --------------------------------------------------------------------------------------
def geom_groups(model: Model, looks: Looks) -> Groups:
    """Returns geoms by group, except the ground."""
    return _grouped(model.geom_group, geoms(model, looks), lambda solid: not is_ground(solid))


def hull_groups(model: Model, looks: Looks) -> Groups:
    """Returns meshes with a hull by group: the collision shapes."""
    plain = [solid._replace(look=PLAIN) for solid in geoms(model, looks)]
    return _grouped(model.geom_group, plain, lambda s: s.kind == MESH and model.hull_polynum[s.data] > 0)


def site_groups(model: Model, looks: Looks) -> Groups:
    """Returns sites by group."""
    return _grouped(model.mj_model.site_group, sites(model, looks), lambda solid: True)


def ground_groups(model: Model, looks: Looks) -> Groups:
    """Returns level planes of the world by group."""
    return _grouped(model.geom_group, geoms(model, looks), is_ground)


def _grouped(group: np.ndarray, solids: list[Solid], accepted: Callable[[Solid], bool]) -> Groups:
    """Returns visible solids by group."""
    found: Groups = {}
    groups = np.clip(group, 0, NGROUP - 1)
    for solid in solids:
        if solid.rgba[3] > 0 and accepted(solid):
            found.setdefault(int(groups[solid.number]), []).append(solid)
    return found


def is_ground(solid: Solid) -> bool:
    """Returns whether a solid is a plane that all worlds can share: level, and attached to the world body."""
    return solid.kind == PLANE and solid.body == 0 and bool(np.hypot(*solid.quat[1:3]) < 1e-6)
