"""The layers of solids: geoms, hulls of meshes in their place, sites; each switched by group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from featherlane.model.enums import MESH, NGROUP, PLANE
from featherlane.model.model import Model
from featherlane.viewer.frame import Frame
from featherlane.viewer.instances import Instances
from featherlane.viewer.look import colours
from featherlane.viewer.pieces import Solid, geoms, mesh_of, sites, sorted_parts

SHOWN = (0, 1, 2)  # groups that MuJoCo shows at first


class Solids:
    """Solids of one kind, of all drawn worlds.

    Args:
        server: where they are drawn.
        name: of the layer, and of its place in the tree of nodes.
        solids: by group, what is drawn; read anew whenever the page is built.
        hulls: draw meshes as their hulls.
        pick: called with the world's place and the body when somebody clicks.
    """

    def __init__(
        self,
        server,
        model: Model,
        name: str,
        solids: Callable[[], dict[int, list[Solid]]],
        hulls: bool,
        infinite: float,
        pick: Callable[..., Any] | None,
    ):
        self.server, self.model, self.name, self.solids = server, model, name, solids
        self.hulls, self.infinite, self.pick = hulls, infinite, pick
        self.groups = tuple(sorted(solids()))
        self.on = dict.fromkeys(self.groups, False)
        self._built: dict[int, list[Instances]] = {}
        self._nworld = 0

    def switch(self, group: int, on: bool) -> None:
        """Show a group, or hide it."""
        self.on[group] = on
        for node in self._built.get(group, ()):
            node.visible(on)

    def show(self, frame: Frame, offsets: np.ndarray, paint=None) -> None:
        """Put all that is shown in its place.

        Args:
            frame: poses of the n worlds.
            offsets: (n, 3) where they are drawn [m].
            paint: colours of bodies in place of their own, as `Instances.paint` takes them.
        """
        if len(offsets) != self._nworld:
            self.rebuild()
            self._nworld = len(offsets)
        for group in (g for g, on in self.on.items() if on):
            for node in self._nodes(group):
                node.place(frame, offsets)
                node.paint(paint)

    def _nodes(self, group: int) -> list[Instances]:
        if group not in self._built:
            parts = sorted_parts(self.solids()[group], self._nworld, self.hulls, self.infinite)
            self._built[group] = []
            for k, (key, found) in enumerate(_split(self.model, parts)):
                name = f"/{self.name}/{group}/{k}"
                mesh = mesh_of(self.model, key, self._nworld * len(found))
                self._built[group].append(Instances(self.server, name, mesh, found, self.pick))
        return self._built[group]

    def rebuild(self) -> None:
        """Make all anew, when shown next: sizes have changed, or the number of worlds."""
        for node in (node for nodes in self._built.values() for node in nodes):
            node.remove()
        self._built = {}


def _split(model: Model, parts):
    """Parts of one mesh by whether they move and whether light goes through them."""
    fixed = (model.body_weldid == 0) & (model.body_mocapid < 0)
    for key, found in parts.items():
        kinds: dict[tuple[bool, bool], list] = {}
        for _, part in found:
            kinds.setdefault((bool(fixed[part.body]), part.rgba[3] < 1), []).append(part)
        yield from ((key, some) for some in kinds.values())


def geom_groups(model: Model) -> dict[int, list[Solid]]:
    """Geoms by group, but for what cannot be seen and the ground."""
    colour = colours(model.mj_model, "geom")
    return _grouped(model.__dict__["geom_group"], geoms(model, colour), lambda s: not is_ground(model, s))


def hull_groups(model: Model) -> dict[int, list[Solid]]:
    """Meshes alone, by group."""
    colour = colours(model.mj_model, "geom")
    return _grouped(model.__dict__["geom_group"], geoms(model, colour), lambda s: s.kind == MESH)


def site_groups(model: Model) -> dict[int, list[Solid]]:
    """Sites by group."""
    mj = model.mj_model
    return _grouped(mj.site_group, sites(model, colours(mj, "site")), lambda s: True)


def _grouped(group: np.ndarray, solids: list[Solid], wanted: Callable[[Solid], bool]) -> dict[int, list[Solid]]:
    found: dict[int, list[Solid]] = {}
    for g, solid in zip(np.clip(group, 0, NGROUP - 1), solids, strict=True):
        if solid.rgba[3] > 0 and wanted(solid):
            found.setdefault(int(g), []).append(solid)
    return found


def is_ground(model: Model, solid: Solid) -> bool:
    """Is it a plane that all worlds may share: level, and part of the world itself?"""
    return solid.kind == PLANE and solid.body == 0 and bool(np.hypot(*solid.quat[1:3]) < 1e-6)
