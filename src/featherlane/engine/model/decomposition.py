"""Replaces colliding concave meshes by convex parts, before a model is compiled.

Each geom keeps its mesh for its mass, for rays and for drawing, and does not collide any more.  Geoms without mass,
which are invisible to rays and renderers, collide in its place: one for each part, with its frame and contact
parameters.
Source: Wei et al. 2022, Approximate Convex Decomposition for 3D Meshes with Collision-Aware Concavity and Tree Search;
    the library CoACD, which the extra `coacd` installs.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from featherlane.engine.lanes.cache import directory
from featherlane.engine.libraries import required
from featherlane.engine.model.arguments import method_options
from featherlane.engine.model.array_file import whole_file
from featherlane.engine.model.assignment import flag, number_in_range
from featherlane.engine.model.candidates import candidates
from featherlane.engine.model.closed_mesh import (
    FLAT,
    is_degenerate,
    is_watertight,
    merged_mesh,
    mesh_size,
    signed_volume,
)
from featherlane.engine.model.enums import MESH
from featherlane.engine.model.mujoco_arrays import with_missing_fields
from featherlane.engine.model.ordered_sums import heights_along, products_of_rows
from featherlane.errors import ModelError, UnsupportedFeatureError

# options: default, least and greatest value, and whether they are whole
OPTIONS = {
    "threshold": (0.05, 0.01, 1.0, False),  # largest concavity of a part, in parts of the mesh's size
    "max_convex_hull": (-1, -1, 10000, True),  # most parts, -1: any number
    "seed": (0, 0, 2**31 - 1, True),
}
SAME = ("conaffinity", "condim", "contype", "friction", "gap", "group", "margin", "pos", "priority", "quat")
SAME += ("solimp", "solmix", "solref", "adhesion", "surfacevel")  # the last two since MuJoCo 3.13
OF_PAIR = ("adhesion", "condim", "friction", "gap", "margin", "solimp", "solref", "solreffriction")
TURNED = ("axisangle", "euler", "type", "xyaxes", "zaxis")  # orientations in place of a quaternion


class Decomposition(NamedTuple):
    """Describes how a mesh was divided into convex parts.

    Attributes:
        mesh: name of the mesh, or its number as `#3`.
        geoms: names of the geoms that collided with it, or their numbers.
        parts: names of the meshes of the parts, in order.
        part_volumes: (n,) volumes of the parts [m^3].
        volume: volume of the mesh [m^3]; of a mesh that is not watertight, a rough value.
        watertight: whether each edge belongs to two faces; otherwise CoACD closed the surface first.
        cached: whether the parts were read from the cache.
    """

    mesh: str
    geoms: tuple[str, ...]
    parts: tuple[str, ...]
    part_volumes: np.ndarray
    volume: float
    watertight: bool
    cached: bool


def checked_options(given: Any) -> dict[str, float]:
    """Returns the options of a decomposition, with defaults.

    Args:
        given: the method, or a dict with `method` and options.

    Raises:
        ModelError: an unknown method or option, or a value out of range; with the allowed ones.
    """
    values = method_options("convex_decomposition", given, "coacd", ("repair", *OPTIONS))
    found: dict[str, float] = {"repair": flag("convex_decomposition: repair", values.get("repair", False))}
    for name, (default, *limits) in OPTIONS.items():
        found[name] = number_in_range(f"convex_decomposition: {name}", values.get(name, default), *limits)
    return found


def decompose(spec: Any, given: Any) -> list[Decomposition]:
    """Replaces the colliding concave meshes of a specification by convex parts.

    Args:
        spec: the `mujoco.MjSpec`, modified in place.
        given: the method `coacd`, or a dict with `method` and options.

    Returns:
        The decomposed meshes; convex ones, and those that the method keeps as one part, are unchanged.

    Raises:
        ModelError: an invalid option, or a mesh that is degenerate or not watertight; with its name.
        UnsupportedFeatureError: a sensor measures contacts or distances of a geom that would be replaced.
        InstallationError: the library is missing.
    """
    options = checked_options(given)
    coacd = required("coacd", "convex_decomposition")
    spec.compiler.discardvisual = False  # the meshes have the mass
    mj = spec.compile()
    pairs = candidates(with_missing_fields(mj))
    colliding = {*pairs["cand_geom1"].tolist(), *pairs["cand_geom2"].tolist()}
    users: dict[int, list[Any]] = {}
    for geom in spec.geoms:
        if geom.id in colliding and mj.geom_type[geom.id] == MESH:
            users.setdefault(int(mj.geom_dataid[geom.id]), []).append(geom)
    found = []
    replaced: dict[str, list[str]] = {}
    for mesh, geoms in sorted(users.items()):
        result = _decomposed(coacd, mj, mesh, options)
        if result is None or len(result.hulls) < 2:
            continue
        name = mj.mesh(mesh).name or f"#{mesh}"
        parts = _add_meshes(spec, name, result.hulls)
        _refuse_sensors(mj, geoms)
        for geom in geoms:
            replaced[geom.name] = _replace(spec, geom, parts)
        labels = tuple(geom.name or f"#{geom.id}" for geom in geoms)
        volumes = np.array([signed_volume(*hull) for hull in result.hulls])
        found.append(Decomposition(name, labels, tuple(parts), volumes, *result[1:]))
    _replace_pairs(spec, replaced)
    return found


# ---- one mesh --------------------------------------------------------------------------------------------------------
class _Parts(NamedTuple):
    """Holds the convex parts of a mesh, (vertices, faces) each, and what `Decomposition` reports of it."""

    hulls: list[tuple[np.ndarray, np.ndarray]]
    volume: float
    watertight: bool
    cached: bool


def _decomposed(coacd: Any, mj: Any, mesh: int, options: dict[str, float]) -> _Parts | None:
    """Returns the parts of a mesh in the frame of its file; None if it is convex.

    Raises:
        ModelError: it is degenerate, or not watertight.
    """
    vertices, faces = merged_mesh(mj, mesh)
    volume, watertight = signed_volume(vertices, faces), is_watertight(faces)
    label = f"mesh {mj.mesh(mesh).name!r}"
    if is_degenerate(vertices, faces):
        raise ModelError(f"{label}: it is degenerate ({len(faces)} faces, volume {volume:g}), and cannot be decomposed")
    if not watertight and not options["repair"]:
        raise ModelError(
            f"{label}: it is not watertight, allowed are closed surfaces; "
            "convex_decomposition={'repair': True} closes it first, which may take minutes"
        )
    if watertight and _is_convex(vertices, faces, FLAT * mesh_size(vertices)):
        return None
    path = _cache_file(vertices, faces, options)
    hulls, cached = _read(path), True
    if not hulls:
        coacd.set_log_level("error")
        own = {name: value for name, value in options.items() if name != "repair"}
        hulls, cached = coacd.run_coacd(coacd.Mesh(vertices, faces), **own), False
        hulls = [(np.asarray(points, float), np.asarray(triangles, np.int32)) for points, triangles in hulls]
        if not hulls:
            raise ModelError(f"{label}: CoACD found no parts; it is degenerate or its surface intersects itself")
        _write(path, hulls)
    return _Parts(hulls, abs(volume), watertight, cached)


def _is_convex(vertices: np.ndarray, faces: np.ndarray, tolerance: float) -> bool:
    """Returns whether no vertex is farther than the tolerance outside of a face's plane."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    normal = np.cross(b - a, c - a)
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    normal = np.divide(normal, length, out=np.zeros_like(normal), where=length > 0.0)
    rows = max(1, 2**22 // len(vertices))  # of 32 MB
    return all(
        ((heights_along(vertices, n) - products_of_rows(n, p)) <= tolerance).all()
        for n, p in ((normal[k : k + rows], a[k : k + rows]) for k in range(0, len(faces), rows))
    )


# ---- the cache -------------------------------------------------------------------------------------------------------
def _cache_file(vertices: np.ndarray, faces: np.ndarray, options: dict[str, float]) -> Path:
    """Returns the file of a decomposition: a hash of the mesh, the options and the library's version."""
    key = hashlib.sha256(f"coacd {importlib.metadata.version('coacd')} {sorted(options.items())}".encode())
    for array in (vertices, faces):
        key.update(f"{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return directory().parent / "decompositions" / f"{key.hexdigest()[:32]}.npz"


def _read(path: Path) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns the parts in a file; none if it is missing, incomplete or invalid."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            hulls = [(stored[f"v{k}"].astype(float), stored[f"f{k}"].astype(np.int32)) for k in range(len(stored) // 2)]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return []
    valid = all(
        v.ndim == f.ndim == 2
        and v.shape[1] == f.shape[1] == 3
        and np.isfinite(v).all()
        and ((f >= 0) & (f < len(v))).all()
        for v, f in hulls
    )
    return hulls if valid else []


def _write(path: Path, hulls: list[tuple[np.ndarray, np.ndarray]]) -> None:
    """Stores parts, atomically; without a writable folder nothing is stored."""
    arrays: dict[str, Any] = {
        f"{kind}{k}": array for k, hull in enumerate(hulls) for kind, array in zip("vf", hull, strict=True)
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as part:
            np.savez(part, **arrays)
    except OSError:
        return


# ---- the specification -----------------------------------------------------------------------------------------------
def _add_meshes(spec: Any, name: str, hulls: list[tuple[np.ndarray, np.ndarray]]) -> list[str]:
    """Adds the parts as meshes, and returns their names."""
    names = [f"{name}_part{k}" for k in range(len(hulls))]
    for part, (vertices, faces) in zip(names, hulls, strict=True):
        spec.add_mesh(name=part, uservert=vertices.ravel().tolist(), userface=faces.ravel().tolist())
    return names


def _replace(spec: Any, geom: Any, parts: list[str]) -> list[str]:
    """Adds a colliding geom for each part next to a geom, which no longer collides; returns their names."""
    import mujoco

    names = []
    for k, part in enumerate(parts):
        own = geom.parent.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname=part)
        if geom.frame is not None:
            own.set_frame(geom.frame)
        for name in SAME:
            if hasattr(geom, name):
                setattr(own, name, getattr(geom, name))
        for name in TURNED:
            setattr(own.alt, name, getattr(geom.alt, name))
        own.name = f"{geom.name}_part{k}" if geom.name else ""
        own.mass, own.rgba, own.material, own.fluid_ellipsoid = 0.0, np.zeros(4), "", 0.0
        names.append(own.name)
    geom.contype = geom.conaffinity = 0
    return names


def _replace_pairs(spec: Any, replaced: dict[str, list[str]]) -> None:
    """Replaces contact pairs of replaced geoms by pairs of their parts."""
    for pair in list(spec.pairs):
        sides = [replaced.get(name, [name]) for name in (pair.geomname1, pair.geomname2)]
        if len(sides[0]) * len(sides[1]) > 1:
            for first in sides[0]:
                for second in sides[1]:
                    own = spec.add_pair(geomname1=first, geomname2=second)
                    for name in OF_PAIR:
                        if hasattr(pair, name):
                            setattr(own, name, getattr(pair, name))
            spec.delete(pair)


def _refuse_sensors(mj: Any, geoms: list[Any]) -> None:
    """Raises an error for sensors of contacts or distances of these geoms.

    Raises:
        UnsupportedFeatureError: with the names of sensor and geom.
    """
    found = [f"sensor {sensor!r}: {kind} of geom {geom!r}" for sensor, kind, geom in _affected(mj, geoms)]
    if found:
        raise UnsupportedFeatureError(found, what="convex_decomposition replaces geoms that these sensors measure")


def _affected(mj: Any, geoms: list[Any]) -> Iterator[tuple[str, str, str]]:
    """Yields (sensor, type, geom) for sensors that measure contacts or distances of these geoms."""
    import mujoco

    distance = {getattr(mujoco.mjtSensor, f"mjSENS_GEOM{name}") for name in ("DIST", "NORMAL", "FROMTO")}
    contact = {mujoco.mjtSensor.mjSENS_CONTACT}
    body = (int(mujoco.mjtObj.mjOBJ_BODY), int(mujoco.mjtObj.mjOBJ_XBODY))
    for i, kind in enumerate(map(mujoco.mjtSensor, mj.sensor_type)):
        if kind in distance | contact:
            sides = {(int(mj.sensor_objtype[i]), int(mj.sensor_objid[i]))}
            sides.add((int(mj.sensor_reftype[i]), int(mj.sensor_refid[i])))
            for geom in geoms:
                held = kind in distance and any((b, int(mj.geom_bodyid[geom.id])) in sides for b in body)
                if (int(mujoco.mjtObj.mjOBJ_GEOM), geom.id) in sides or held:
                    yield mj.sensor(i).name or f"#{i}", kind.name.split("_")[1].lower(), geom.name or f"#{geom.id}"
