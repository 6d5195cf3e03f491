"""Decomposes geoms and sites into scaled unit meshes and individual meshes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from featherlane import Batch, Model
from featherlane.apps.viewer import shapes
from featherlane.apps.viewer.appearance import PLAIN, Look, Looks
from featherlane.apps.viewer.instances import Part
from featherlane.apps.viewer.shapes import Mesh
from featherlane.enums import BOX, CAPSULE, CYLINDER, ELLIPSOID, HFIELD, MESH, PLANE, SDF, SPHERE
from featherlane.extension import rotation

SHARED = 48  # number of capsules of equal proportions from which they share one mesh instead of three pieces each
# fields of geoms that differ by variant; the mesh and the material have other names than MuJoCo's
FIELDS = tuple(f"geom_{name}" for name in "variant material rgba size pos quat type bodyid".split())
DIFFERING = {"dataid": "variant", "matid": "material"}
UPSIDE_DOWN = (0.0, 1.0, 0.0, 0.0)


class Solid(NamedTuple):
    """A shape that is attached to a body.

    Attributes:
        kind: type of the geom.
        data: number of the mesh or height field, -1 for none.
        body, pos, quat: the body, and the pose in its frame.
        size: (3,) sizes as those of a geom.
        rgba: colour.
        number: number of the geom or site.
        look: surface without its colour.
        variant: (group, variant) with which a world has the solid; None for all worlds.
    """

    kind: int
    data: int
    body: int
    pos: np.ndarray
    quat: np.ndarray
    size: np.ndarray
    rgba: np.ndarray
    number: int
    look: Look = PLAIN
    variant: tuple[int, int] | None = None


class Kind(NamedTuple):
    """Key of the parts that one node of the page can draw.

    Attributes:
        mesh: name of the triangles.
        fixed: whether it is static.
        clear: whether it is transparent.
        look: its surface if it has a texture, else the plain one.
        rgba: its colour if it has a texture, else none.
        repeat: number of repetitions of the texture.
    """

    mesh: Hashable
    fixed: bool
    clear: bool
    look: Look = PLAIN
    rgba: tuple[float, ...] = ()
    repeat: tuple[float, float] = (1.0, 1.0)


def geoms(model: Model, looks: Looks) -> list[Solid]:
    """Returns the geoms of the model, with those of all variants."""
    found = []
    for variant, shown, fields in _variants(model):
        own = {"geom_rgba": fields["geom_rgba"].astype(np.float32)}
        own |= {f"geom_{name}": fields[f"geom_{old}"].astype(int) for name, old in DIFFERING.items()}
        looks = looks.with_fields(own) if model.nvariant else looks
        colour = looks.colours("geom")
        for solid in _solids(lambda name: own[name] if name in own else fields[name], "geom"):  # noqa: B023
            if shown[solid.number]:
                look = looks.look(solid.number)
                found.append(solid._replace(rgba=colour[solid.number], look=look, variant=variant))
    return found


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


def sites(model: Model, looks: Looks) -> list[Solid]:
    """Returns the sites of the model."""
    solids = zip(_solids(lambda name: getattr(model, name), "site"), looks.colours("site"), strict=True)
    return [solid._replace(rgba=rgba) for solid, rgba in solids]


def _solids(field: Callable[[str], np.ndarray], kind: str) -> Iterator[Solid]:
    """Yields all solids of a kind, in white."""
    columns = (field(f"{kind}_{name}") for name in ("type", "dataid", "bodyid", "pos", "quat", "size"))
    for i, (k, data, body, pos, quat, size) in enumerate(zip(*columns, strict=True)):
        yield Solid(int(k), int(data), int(body), pos, quat, size, np.ones(4), i)


def detail(count: int) -> int:
    """Computes the segments of a shape that is drawn `count` times; a page can draw about a million triangles."""
    return 32 if count <= 300 else 20 if count <= 2000 else 8


def sorted_parts(
    model: Model, solids: Iterable[Solid], nworld: int, hulls: bool, infinite: float
) -> dict[Kind, list[Part]]:
    """Groups the parts of solids by the node that can draw them.

    Args:
        infinite: half side of an infinite plane [m].
    """
    solids = list(solids)
    proportions = Counter(_ratio(solid) for solid in solids if solid.kind == CAPSULE)
    found: dict[Kind, list[Part]] = {}
    for solid in solids:
        fixed = bool(model.body_weldid[solid.body] == 0 and model.body_mocapid[solid.body] < 0)
        clear, drawn = bool(solid.rgba[3] < 1), solid.look.texture >= 0
        whole = solid.kind == CAPSULE and (drawn or proportions[_ratio(solid)] * nworld >= SHARED)
        for mesh, part in _parts(solid, whole, hulls, infinite):
            kind = Kind(mesh, fixed, clear)
            if drawn:
                kind = Kind(mesh, fixed, clear, solid.look, tuple(map(float, solid.rgba)), _repeat(solid, part))
            found.setdefault(kind, []).append(part)
    return found


def _ratio(solid: Solid) -> float:
    return round(float(solid.size[1] / solid.size[0]), 6)


def _repeat(solid: Solid, part: Part) -> tuple[float, float]:
    """Returns the repetitions of a texture over a shape; a mesh has its texture coordinates."""
    x, y = solid.look.repeat
    if solid.look.per_metre and solid.kind not in (MESH, SDF, HFIELD):  # of unit size, which is 2 m
        return x * float(part.scale[0]), y * float(part.scale[1])
    return x, y


def _parts(solid: Solid, whole: bool, hulls: bool, infinite: float) -> Iterator[tuple[Hashable, Part]]:
    """Yields the names of meshes and their placement."""

    def part(scale, pos=None, quat=rotation.IDENTITY) -> Part:
        at = solid.pos if pos is None else solid.pos + rotation.to_world(solid.quat, np.asarray(pos, float))
        turn = rotation.product(solid.quat, np.asarray(quat, float))
        return Part(solid.body, at, turn, scale, solid.rgba, solid.variant)

    a, b, c = map(float, solid.size)
    if solid.kind == PLANE:
        yield "rectangle", part((a or infinite, b or infinite, 1.0))
    elif solid.kind == SPHERE:
        yield "sphere", part((a, a, a))
    elif solid.kind == ELLIPSOID:
        yield "sphere", part((a, b, c))
    elif solid.kind == CYLINDER:
        yield "cylinder", part((a, a, b))
    elif solid.kind == BOX:
        yield "box", part((a, b, c))
    elif solid.kind == CAPSULE and whole:
        yield ("capsule", _ratio(solid)), part((a, a, a))
    elif solid.kind == CAPSULE:
        yield "tube", part((a, a, b))
        yield "cap", part((a, a, a), (0.0, 0.0, b))
        yield "cap", part((a, a, a), (0.0, 0.0, -b), UPSIDE_DOWN)
    elif solid.kind in (MESH, SDF) and solid.data >= 0:
        yield ("hull" if hulls else "mesh", solid.data), part((1.0, 1.0, 1.0))
    elif solid.kind == HFIELD and solid.data >= 0:
        yield ("height field", solid.data), part((1.0, 1.0, 1.0))


def mesh_of(model: Model, key: Hashable, count: int) -> Mesh:
    """Returns the triangles of a name, for a shape that is drawn `count` times."""
    if isinstance(key, str):
        flat = {"rectangle": shapes.rectangle, "box": shapes.box}
        return flat[key]() if key in flat else getattr(shapes, key)(detail(count))
    assert isinstance(key, tuple)
    kind, which = key
    if kind == "capsule":
        return shapes.capsule(which, detail(count))
    return {"mesh": shapes.mesh, "hull": shapes.hull, "height field": shapes.height_field_mesh}[kind](model, which)
