"""Variants: worlds of one model that differ in meshes, sizes, colours and inertias, or that lack some geoms.

`load(source, variants=...)` compiles the source once for each variant.  The real fields of the compiled models differ
in some entries; the model stores the values that each variant has there, and `Batch.set_variant` copies them to worlds.
Worlds share all integers, except the mesh and the material of a geom: these are whole numbers in the real fields
`geom_variant` and `geom_material`.  The model holds the convex hulls of all meshes that collide in some variant.

A body whose centre of mass is at its frame is *simple*: its part of M is stored as a diagonal (`body_simple`).  If a
body is simple in some variants only, the model is compiled with `simple="false"` for it.
Source: mjlab's entity variants; mujoco_warp's `geom_dataid`, which differs by world.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from featherlane.engine.model.arguments import instance
from featherlane.engine.model.edit import Edit, apply_edit
from featherlane.engine.model.enums import ABSENT_GEOM, HFIELD
from featherlane.engine.model.fields import MODEL, MUJOCO
from featherlane.engine.model.mujoco_arrays import centred_inertias, read_field, read_sizes
from featherlane.engine.model.set_const import BOTH, DEPENDENT_REALS, VOLUMES
from featherlane.errors import ModelError, UnknownNameError, near

Declared = Mapping[str, Sequence[str] | Mapping[str, Edit]]
# real fields that a variant sets; others follow from these (`set_const`)
REALS = tuple(
    field.name
    for field in MUJOCO
    if field.kind == "real"
    and field.name != "stat_meaninertia"
    and (field.name not in DEPENDENT_REALS or field.name in BOTH or field.name in VOLUMES)
)
# fields of geoms by which variants are recognized
SEEN = frozenset("geom_variant geom_material geom_rgba geom_size geom_pos geom_quat".split())
INERTIA = ("body_mass", "body_inertia", "body_ipos", "body_iquat")
SIMPLE = frozenset("body_simple dof_simplenum nC M_rownnz M_rowadr M_colind".split())
# integers that change with the numbers of geoms
NUMBERED = frozenset(
    "ngeom body_geomnum body_geomadr sensor_objid sensor_refid wrap_objid pair_geom1 pair_geom2".split()
)
SHARED = "that all worlds share; geoms of other types are variants of a body (variants={'body': ['geom', ...]})"
ALLOWED = "allowed are names of meshes (of a geom), names of geoms (of a body), or functions edit(spec) by name"


@dataclass(frozen=True)
class Group:
    """The variants of a geom, of a body, or of any part of a model.

    Attributes:
        places: entries of the real fields that a variant sets, by field: flat indices (n,).
        values: the values of each variant there: by variant, by field, (n,) float64.
    """

    places: dict[str, np.ndarray]
    values: dict[str, dict[str, np.ndarray]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def nearest(self, rows: Callable[[str], np.ndarray], nworld: int) -> np.ndarray:
        """Returns the number of the variant that worlds have, or of the most similar one, (nworld,).

        Args:
            rows: returns a field of the geoms of the worlds by name, (nworld or 1, ...).
        """
        apart = np.zeros((nworld, len(self)))
        for name in SEEN & self.places.keys():
            own = rows(name)
            own = own.reshape(len(own), math.prod(own.shape[1:]))[:, self.places[name]]
            for variant, values in enumerate(self.values.values()):
                apart[:, variant] += np.abs(own - values[name]).sum(1)
        return apart.argmin(1)


@dataclass(frozen=True)
class Variants:
    """What `load` needs of the compiled variants.

    Attributes:
        mj_model: the model that holds all variants.
        hulls_of: for each mesh a model that has its convex hull.
        reals: the real fields of the source by name, for the geoms and bodies of mj_model.
    """

    mj_model: Any
    hulls_of: list[Any]
    reals: dict[str, np.ndarray]
    groups: dict[str, Group]


def compile_variants(spec: Any, declared: Declared) -> tuple[Variants, list[tuple[str, Any]]]:
    """Compiles a spec once for each variant, and once for all.

    Args:
        spec: a `mujoco.MjSpec`, not changed.
        declared: the variants of each group; see `load`.

    Returns:
        The result, and all compiled variants with their labels for messages.

    Raises:
        ModelError: no variants, an invalid declaration, a variant that cannot be compiled, or that changes what all
            worlds share, or entries that two groups change.
        UnknownNameError: an unknown geom, body or mesh.
    """
    if not isinstance(declared, Mapping) or not declared:
        raise ModelError(f"variants: got {declared!r}, allowed is a dict of variants by geom, body or other name")
    named = spec.copy()
    for i, geom in enumerate(named.geoms):
        geom.name = geom.name or f"geom #{i}"
    source = named.copy().compile()
    base, models, groups = _reals(source, source, np.arange(source.ngeom)), [source], {}
    labelled = []
    for group, given in declared.items():
        found = {}
        for name, edit in _edits(named, source, group, given).items():
            label = f"variant {name!r} of {group!r}"
            mj = _compiled(named, label, edit)
            found[name] = _reals(mj, source, _check_shared(mj, source, label))
            models.append(mj)
            labelled.append((label, mj))
        groups[group] = _group(base, found)
    _check_apart(groups)
    scales = any(mj.stat.meaninertia != source.stat.meaninertia for mj in models)
    hulls = [next((mj for mj in models if mj.mesh_graphadr[k] >= 0), source) for k in range(source.nmesh)]
    if scales:
        groups = {name: Group({**group.places, MEAN: EMPTY}, group.values) for name, group in groups.items()}
    return Variants(_structure(spec, models), hulls, base, groups), labelled


MEAN, EMPTY = "stat_meaninertia", np.zeros(0, int)


# ---- declarations ----------------------------------------------------------------------------------------------------
def _edits(spec: Any, mj: Any, group: str, given: Any) -> dict[str, Edit]:
    """Returns the functions that change a copy of the spec, by variant."""
    if isinstance(given, Mapping) and given and all(isinstance(n, str) and callable(f) for n, f in given.items()):
        return dict(given)
    names = [] if isinstance(given, str | Mapping) else list(given)
    if not names or not all(isinstance(name, str) for name in names) or len({*names}) < len(names):
        raise ModelError(f"variants: {group!r}: got {given!r}, {ALLOWED}")
    geoms, bodies = {geom.name for geom in spec.geoms}, {body.name for body in spec.bodies} - {""}
    if group in geoms:
        kind, known, edit = "mesh", {mj.mesh(k).name for k in range(mj.nmesh)}, _mesh_edit
    elif group in bodies:
        kind, known, edit = "geom", {geom.name for geom in spec.body(group).geoms}, _geom_edit
    else:
        raise UnknownNameError(f"variants: no geom or body {group!r}{near(group, geoms | bodies)}")
    for name in names:
        if name not in known:
            raise UnknownNameError(f"variants: {group!r}: no {kind} {name!r}{near(name, known)}")
    return {name: edit(group, name, names) for name in names}


def _mesh_edit(geom: str, mesh: str, names: list[str]) -> Edit:
    def edit(spec) -> None:
        spec.geom(geom).meshname = mesh

    return edit


def _geom_edit(body: str, kept: str, names: list[str]) -> Edit:
    def edit(spec) -> None:
        lacks = {name for name in names if name != kept}
        _check_sensors(spec, body, kept, lacks)
        for name in lacks:
            spec.delete(spec.geom(name))

    return edit


def _check_sensors(spec: Any, body: str, kept: str, lacks: Collection[str]) -> None:
    """Raises an error if a sensor refers to a geom that a variant lacks."""
    import mujoco

    for i, sensor in enumerate(spec.sensors):
        for kind, name in ((sensor.objtype, sensor.objname), (sensor.reftype, sensor.refname)):
            if kind == mujoco.mjtObj.mjOBJ_GEOM and name in lacks:
                raise ModelError(
                    f"variants: {body!r}: the variant {kept!r} lacks geom {name!r}, to which sensor "
                    f"{sensor.name or f'#{i}'} refers; allowed are sensors that refer to the body {body!r}, "
                    f"to a site, or to geoms that all variants have"
                )


# ---- compiled variants -----------------------------------------------------------------------------------------------
def _compiled(named: Any, label: str, edit: Edit) -> Any:
    """Returns the compiled model of one variant."""
    spec = named.copy()
    apply_edit(label, edit, spec)
    try:
        return spec.compile()
    except ValueError as error:
        raise ModelError(f"{label}: {str(error).strip()}") from None


def _check_shared(mj: Any, source: Any, label: str) -> np.ndarray:
    """Returns the geoms that a variant has, as numbers in the source; raises an error for what worlds cannot have."""
    number = {source.geom(g).name: g for g in range(source.ngeom)}
    names = [mj.geom(g).name for g in range(mj.ngeom)]
    rows = np.array([number.get(name, -1) for name in names], int)
    if (rows < 0).any() or (np.diff(rows) <= 0).any():
        raise ModelError(
            f"{label}: adds or renames geom {names[int(np.argmin(rows))]!r}, allowed are the source's geoms"
        )
    ours, theirs = read_sizes(mj), read_sizes(source)
    lacks = mj.ngeom < source.ngeom
    for field in MUJOCO:
        name = field.name
        if field.kind == "real" or name in SIMPLE or name == "geom_dataid" or (lacks and name in NUMBERED):
            continue
        if field.kind == "size":
            a, b = ours[name], theirs[name]
        else:
            a, b = np.asarray(read_field(mj, name)), np.asarray(read_field(source, name))
            b = b[rows] if field.shape and field.shape[0] == "ngeom" else b
        if not np.array_equal(a, b):
            why = "of a mesh; add another mesh to the source" if name.startswith("mesh") else SHARED
            raise ModelError(f"{label}: changes {name} {why}")
    fields = mj.geom_type == HFIELD
    if not np.array_equal(mj.geom_dataid[fields], source.geom_dataid[rows][fields]):
        raise ModelError(f"{label}: changes the height field of a geom {SHARED}")
    if not np.array_equal(mj.mesh_vert, source.mesh_vert):
        raise ModelError(f"{label}: changes the vertices of a mesh; add another mesh to the source")
    return rows


def _reals(mj: Any, source: Any, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Returns the real fields of a variant, for all geoms of the source; it lacks those that are not in `rows`."""
    centred, out = centred_inertias(mj), {}
    for name in REALS:
        out[name] = value = np.array(centred[name] if name in centred else read_field(mj, name), float)
        if MODEL[name].shape[0] == "ngeom":
            out[name] = np.array(read_field(source, name), float)
            out[name][rows] = value
    absent = np.setdiff1d(np.arange(source.ngeom), rows)
    out["geom_variant"][absent], out["geom_material"][absent] = ABSENT_GEOM, -1
    out["geom_fluid"][absent], out["geom_rgba"][absent, 3] = 0.0, 0.0
    return out


def _group(base: dict[str, np.ndarray], found: dict[str, dict[str, np.ndarray]]) -> Group:
    """Returns the entries in which a variant differs from the source, and the values there."""
    places = {}
    for name in REALS:
        differs = np.zeros(base[name].size, bool)
        for reals in found.values():
            differs |= (reals[name] != base[name]).ravel()
        if differs.any():
            places[name] = np.flatnonzero(differs)
    values = {variant: {n: reals[n].ravel()[at] for n, at in places.items()} for variant, reals in found.items()}
    return Group(places, values)


def _check_apart(groups: dict[str, Group]) -> None:
    """Raises an error for entries that two groups change: a world's value would depend on the order of the calls."""
    owner: dict[tuple[str, int], str] = {}
    for group, (name, at) in ((g, item) for g, own in groups.items() for item in own.places.items()):
        for k in at.tolist():
            other = owner.setdefault((name, k), group)
            if other != group:
                raise ModelError(
                    f"variants: {other!r} and {group!r} both change entry {k} of {name}, allowed are groups that change"
                    " different entries; give the body an inertial element, or make one group of both"
                )


def _structure(spec: Any, models: list[Any]) -> Any:
    """Returns the spec compiled so that its structure suits all variants."""
    simple = np.stack([mj.body_simple for mj in models])
    spec = spec.copy()
    mj = spec.compile()
    octrees = np.any([mj.mesh_octadr >= 0 for mj in models], axis=0)
    if (simple == simple[0]).all() and (octrees == (mj.mesh_octadr >= 0)).all():
        return mj
    for mesh in spec.meshes:
        mesh.needsdf = bool(octrees[mesh.id])
    for body in spec.bodies:
        if len({*simple[:, body.id].tolist()}) > 1:
            if not hasattr(body, "simple"):
                raise ModelError(
                    f"variants: body {body.name!r} is simple in some variants only, which requires a MuJoCo with the "
                    "attribute simple of a body"
                )
            body.simple = 0
    return spec.compile()


# ---- values of worlds ------------------------------------------------------------------------------------------------
def group_of(variants: Mapping[str, Group], call: str, group: Any) -> Group:
    """Returns the variants of a group; raises as `values_of` does, with the name of the call."""
    instance("geom", group, str, "a name")
    if group not in variants:
        known = (
            f"allowed are {', '.join(map(repr, variants))}"
            if variants
            else "declare them with fl.load(..., variants=...)"
        )
        raise UnknownNameError(f"{call}: the model has no variants of {group!r}; {known}")
    return variants[group]


def values_of(variants: Mapping[str, Group], group: Any, variant: Any, inertia: bool) -> dict[str, Any]:
    """Returns what a variant sets: (places, values) by field.

    Raises:
        ModelError: a group or variant that is not a string.
        UnknownNameError: an unknown group or variant.
    """
    own = group_of(variants, "set_variant", group)
    instance("variant", variant, str, "a name")
    if variant not in own.values:
        allowed = ", ".join(map(repr, own.values))
        raise UnknownNameError(f"set_variant: {group!r} has no variant {variant!r}, allowed are {allowed}")
    values = own.values[variant]
    return {
        name: (at, values[name]) for name, at in own.places.items() if name != MEAN and (inertia or name not in INERTIA)
    }


def select(model: Any, reals: Mapping[str, np.ndarray]) -> None:
    """Sets the real fields of a model to given ones, with the first variant of each group."""
    model.take_constants(reals)
    for group in model.variants.values():
        values = group.values[next(iter(group))]
        for name, at in group.places.items():
            if name != MEAN:
                entries = model.__dict__[name].ravel()
                entries[at] = values[name]
                model.take_constants({name: entries})


def exact(model: Any, values: dict[str, np.ndarray], dtype: np.dtype) -> dict[str, np.ndarray]:
    """Returns fields (n, ...) of worlds of a model with variants, with the entries in float64 that a dtype rounds."""
    if not model.variants or dtype == np.float64:
        return values
    found = {}
    for name, value in values.items():
        known = model.__dict__[name]
        found[name] = np.where(value == known.astype(dtype), known, value)
        rows, given = (a.reshape(len(value), math.prod(known.shape)) for a in (found[name], value))
        for group in model.variants.values():
            at = group.places.get(name, EMPTY)
            for entries in (own[name] for own in group.values.values() if len(at)):
                rows[:, at] = np.where(given[:, at] == entries.astype(dtype), entries, rows[:, at])
    return found


def mean_inertia(diagonal: np.ndarray) -> np.ndarray:
    """Returns the mean (n, 1) of M's diagonals (n, nv) in qpos0, each summed as MuJoCo's compiler does."""
    if not diagonal.size:
        return np.zeros((len(diagonal), 1))
    return np.cumsum(diagonal, axis=1)[:, -1:] / diagonal.shape[1]
