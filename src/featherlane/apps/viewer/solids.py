"""Layers of solids: geoms, convex hulls of meshes, sites; each group can be turned on or off.

A geom or site is drawn as a scaled mesh of unit size.  Shapes that no scaling produces, such as capsules, have a
mesh for each ratio of their sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from featherlane import Batch, Model
from featherlane.apps.viewer import shapes
from featherlane.apps.viewer.appearance import PLAIN, Look, Looks
from featherlane.apps.viewer.frame import Frame
from featherlane.apps.viewer.instances import Carried, Instances, Paint, Solid
from featherlane.apps.viewer.node import Drag
from featherlane.apps.viewer.shapes import Mesh
from featherlane.enums import BOX, CAPSULE, CYLINDER, ELLIPSOID, HFIELD, MESH, NGROUP, PLANE, SDF, SPHERE

Groups = tuple[int | None, ...]
GEOMS, HULLS, SITES, GROUND = "geoms", "hulls", "sites", "ground"
# fields of geoms that differ by variant; the mesh and the material have other names than MuJoCo's
FIELDS = tuple(f"geom_{name}" for name in "variant material rgba size pos quat type bodyid".split())
DIFFERING = {"dataid": "variant", "matid": "material"}


class Kind(NamedTuple):
    """Key of the solids that one node of the page can draw."""

    mesh: Hashable  # name of the triangles
    fixed: bool  # whether it is static
    clear: bool  # whether it is transparent
    look: Look = PLAIN  # its surface if it has a texture
    rgba: tuple[float, ...] = ()  # its colour if it has a texture
    repeat: tuple[float, float] = (1.0, 1.0)  # of the texture


class Solids:
    """Draws solids of one layer, of all drawn worlds.

    Args:
        name: the layer: GEOMS, HULLS or SITES.
        infinite: half side of an infinite plane [m].
        hold: called with the index of the world, the body and a `Drag` when a visitor drags a solid.
    """

    def __init__(
        self, server, model: Model, name: str, looks: Looks, infinite: float, hold: Callable[[int, int, Drag], Any]
    ):
        self.server, self.model, self.name, self.looks = server, model, name, looks
        self.infinite, self.hold = infinite, hold
        self.groups = tuple(sorted(by_group(model, looks, name)))
        self._built: dict[int, list[Instances]] = {}
        self._nworld = 0
        self._carried: tuple[Groups, Carried] = (), Carried([])

    def show(self, frame: Frame, offsets: np.ndarray, groups: Groups, paint: Paint | None, glass: bool) -> None:
        """Moves the solids of these groups, in worlds drawn at `offsets` (n, 3) [m], and hides the others."""
        if len(offsets) != self._nworld:
            self.rebuild()
            self._nworld = len(offsets)
        for node in (node for group in self._built.keys() - set(groups) for node in self._built[group]):
            node.hide()
        nodes = [node for group in groups if group in self.groups for node in self._nodes(group)]
        if nodes and self._carried[0] != groups:
            self._carried = groups, Carried([node.parts for node in nodes])
        if nodes:
            for node, (at, quat) in zip(nodes, self._carried[1].poses(frame, offsets), strict=True):
                node.place(at, quat, paint, glass)

    def _nodes(self, group: int) -> list[Instances]:
        if group not in self._built:
            found: dict[Kind, list[Solid]] = {}
            for solid in by_group(self.model, self.looks, self.name)[group]:
                for mesh, size in drawn_as(solid, self.name == HULLS, self.infinite):
                    part = solid._replace(size=size)
                    found.setdefault(_kind(self.model, solid, mesh, part), []).append(part)
            made = enumerate(found.items())
            self._built[group] = [self._node(f"/{self.name}/{group}/{k}", *kind_parts) for k, kind_parts in made]
        return self._built[group]

    def _node(self, name: str, kind: Kind, parts: list[Solid]) -> Instances:
        mesh, file = mesh_of(self.model, kind.mesh, self._nworld * len(parts)), None
        if kind.look.texture >= 0:
            file = textured_file(self.looks, kind, mesh)
            mean = self.looks.mean(kind.look.texture)
            parts = [part._replace(rgba=np.append(mean * part.rgba[:3], part.rgba[3])) for part in parts]
        return Instances(self.server, name, mesh, parts, self.hold, file, kind.fixed)

    def rebuild(self) -> None:
        """Rebuilds all nodes at the next `show`, after a change of sizes or of the number of worlds."""
        for node in (node for nodes in self._built.values() for node in nodes):
            node.remove()
        self._built, self._carried = {}, ((), Carried([]))


def textured_file(looks: Looks, kind: Kind, mesh: Mesh) -> bytes:
    """Returns a mesh with its texture, as a file for the page."""
    return shapes.glb(shapes.textured(mesh, kind.repeat), kind.rgba, kind.look, looks.picture(kind.look.texture))


# ---- solids of a model -----------------------------------------------------------------------------------------------
def by_group(model: Model, looks: Looks, layer: str) -> dict[int, list[Solid]]:
    """Returns the visible solids of a layer by group: GEOMS, HULLS (meshes that have one), SITES or GROUND.

    The ground is a plane that all worlds can share: level, and attached to the world body.
    """
    found: dict[int, list[Solid]] = {}
    groups = np.clip(model.mj_model.site_group if layer == SITES else model.geom_group, 0, NGROUP - 1)
    of_sites = {f"site_{name}": getattr(model, f"site_{name}") for name in "type dataid bodyid pos quat size".split()}
    for solid in _solids(of_sites, "site", looks) if layer == SITES else geoms(model, looks):
        level = solid.kind == PLANE and solid.body == 0 and bool(np.hypot(*solid.quat[1:3]) < 1e-6)
        if layer == HULLS:
            belongs, solid = solid.kind == MESH and model.hull_polynum[solid.data] > 0, solid._replace(look=PLAIN)
        else:
            belongs = layer == SITES or level == (layer == GROUND)
        if solid.rgba[3] > 0 and belongs:
            found.setdefault(int(groups[solid.number]), []).append(solid)
    return found


def geoms(model: Model, looks: Looks) -> Iterator[Solid]:
    """Yields the geoms of the model, with those of all variants."""
    for variant, shown, fields in _variants(model):
        own = {"geom_rgba": fields["geom_rgba"].astype(np.float32)}
        own |= {f"geom_{name}": fields[f"geom_{old}"].astype(int) for name, old in DIFFERING.items()}
        looks = looks.with_fields(own) if model.nvariant else looks
        for solid in _solids(fields | own, "geom", looks):
            if shown[solid.number]:
                yield solid._replace(look=looks.look(solid.number), variant=variant)


def _variants(model: Model) -> Iterator[tuple[tuple[int, str] | None, np.ndarray, dict[str, np.ndarray]]]:
    """Yields what may be drawn: (group, variant), or None for all worlds; which geoms; the fields of all geoms."""
    fields, common = {name: np.array(getattr(model, name)) for name in FIELDS}, np.ones(model.ngeom, bool)
    for k, (group, variants) in enumerate(model.variants.items()):
        worlds, names = Batch(model, len(variants), nthread=1), list(variants)
        for world, variant in enumerate(names):
            worlds.set_variant(group, variant, ids=[world])
        own = {name: rows for name in FIELDS[:6] if (rows := worlds.expanded(name)) is not None}
        differs = np.zeros(model.ngeom, bool)
        for rows in own.values():
            differs |= (rows != rows[:1]).reshape(len(names), model.ngeom, -1).any((0, 2))
        for world, variant in enumerate(names):
            yield (k, variant), differs & common, fields | {name: rows[world] for name, rows in own.items()}
        common = common & ~differs
    yield None, common, fields


def _solids(fields: dict[str, np.ndarray], kind: str, looks: Looks) -> Iterator[Solid]:
    """Yields all solids of a kind."""
    columns = (fields[f"{kind}_{name}"] for name in ("type", "dataid", "bodyid", "pos", "quat", "size"))
    for i, (k, data, body, pos, quat, size, rgba) in enumerate(zip(*columns, looks.colours(kind), strict=True)):
        yield Solid(int(k), int(data), int(body), pos, quat, size, rgba, i)


# ---- meshes of solids ------------------------------------------------------------------------------------------------
def drawn_as(solid: Solid, hulls: bool, infinite: float) -> Iterator[tuple[Hashable, Sequence[float]]]:
    """Yields the mesh of a solid and the factors for its size; an infinite plane has this half side [m]."""
    a, b, c = map(float, solid.size)
    if solid.kind == PLANE:
        yield "rectangle", (a or infinite, b or infinite, 1.0)
    elif solid.kind in (SPHERE, ELLIPSOID):
        yield "sphere", (a, a, a) if solid.kind == SPHERE else (a, b, c)
    elif solid.kind == CYLINDER:
        yield "cylinder", (a, a, b)
    elif solid.kind == BOX:
        yield "box", (a, b, c)
    elif solid.kind == CAPSULE:
        yield ("capsule", round(b / a, 6)), (a, a, a)
    elif solid.data >= 0:
        kind = "height field" if solid.kind == HFIELD else "hull" if hulls else "mesh"
        yield (kind, solid.data), (1.0, 1.0, 1.0)


def _kind(model: Model, solid: Solid, mesh: Hashable, part: Solid) -> Kind:
    """Returns the key of the node that can draw a solid."""
    fixed = bool(model.body_weldid[solid.body] == 0 and model.body_mocapid[solid.body] < 0)
    kind = Kind(mesh, fixed, bool(solid.rgba[3] < 1))
    if solid.look.texture < 0:
        return kind
    x, y = solid.look.repeat
    if solid.look.per_metre and solid.kind not in (MESH, SDF, HFIELD):  # of unit size, which is 2 m
        x, y = x * part.size[0], y * part.size[1]
    return kind._replace(look=solid.look, rgba=tuple(map(float, solid.rgba)), repeat=(float(x), float(y)))


def mesh_of(model: Model, key: Hashable, count: int) -> Mesh:
    """Returns the triangles of a name, for a shape that is drawn `count` times; a page can draw a million triangles."""
    detail = 32 if count <= 300 else 20 if count <= 2000 else 8
    if isinstance(key, str):
        return getattr(shapes, key)(*() if key in ("rectangle", "box") else (detail,))
    assert isinstance(key, tuple)
    kind, which = key
    if kind == "capsule":
        return shapes.capsule(which, detail)
    return {"mesh": shapes.mesh, "hull": shapes.hull, "height field": shapes.height_field_mesh}[kind](model, which)
