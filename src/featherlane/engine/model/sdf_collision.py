"""Changes mesh geoms to signed distance fields (SDF geoms), before a model is compiled.

MuJoCo's compiler computes the octree of distances of each mesh.  A geom keeps its mesh for its mass and for drawing.
Source: MuJoCo's documentation, XML reference, asset/mesh (octree_maxdepth) and geom (type sdf).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from featherlane.engine.model.arguments import method_options
from featherlane.engine.model.assignment import number_in_range
from featherlane.engine.model.candidates import candidates
from featherlane.engine.model.closed_mesh import first_crossing, is_degenerate, is_watertight, merged_mesh
from featherlane.engine.model.enums import MESH, SDF
from featherlane.engine.model.mujoco_arrays import with_missing_fields
from featherlane.engine.model.names import element
from featherlane.engine.model.ordered_sums import products_of_rows
from featherlane.errors import ModelError

DEFAULT_DEPTH, GREATEST_DEPTH = 6, 12  # of an octree; the first is MuJoCo's
MOST_NODES = 4_000_000  # nodes of all octrees: 0.6 GB in the model, about three times as much while it is compiled
PADDING = 1.1  # the octree's box relative to the mesh's


def checked_options(given: Any) -> tuple[tuple[str, ...] | None, int]:
    """Returns the names of the geoms (None: all colliding meshes) and the depth of their octrees.

    Args:
        given: the method `sdf`, or a dict of `method`, `geoms` and `octree_maxdepth`.

    Raises:
        ModelError: an unknown method or option, a name that is not a string, or a depth out of range.
    """
    values = method_options("collision", given, "sdf", ("geoms", "octree_maxdepth"))
    depth = values.get("octree_maxdepth", DEFAULT_DEPTH)
    depth = int(number_in_range("collision: octree_maxdepth", depth, 1, GREATEST_DEPTH, whole=True))
    geoms = values.get("geoms")
    if isinstance(geoms, str):
        geoms = (geoms,)
    if geoms is not None and not (isinstance(geoms, list | tuple) and all(isinstance(name, str) for name in geoms)):
        raise ModelError(f"collision: geoms: got {geoms!r}, allowed are names of mesh geoms in a list")
    return None if geoms is None else tuple(geoms), depth


def use_fields(spec: Any, given: Any) -> None:
    """Changes mesh geoms of a specification to SDF geoms.

    Args:
        spec: the `mujoco.MjSpec`, modified in place.
        given: as for `checked_options`.

    Raises:
        ModelError: an invalid option; an unknown geom, or one that is not a mesh; a mesh that is degenerate, not
            watertight or intersects itself; octrees with too many nodes.  With the names.
    """
    names, depth = checked_options(given)
    mj = spec.compile()
    numbers = _chosen(mj, names)
    chosen = [geom for geom in spec.geoms if geom.id in numbers]
    specified = {mesh.id: mesh for mesh in spec.meshes}
    nodes = 0.0
    for mesh in sorted({int(mj.geom_dataid[geom.id]) for geom in chosen}):
        label, (vertices, faces) = element(mj, "mesh", mesh), merged_mesh(mj, mesh)
        _check(label, vertices, faces)
        nodes += expected_nodes(vertices, faces, depth)
        if nodes > MOST_NODES:
            raise ModelError(
                f"{label}: octrees to a depth of {depth} need about {nodes:.2g} nodes, allowed are {MOST_NODES:.2g}; "
                "use a smaller octree_maxdepth or fewer geoms"
            )
        specified[mesh].octree_maxdepth = depth
    for geom in chosen:
        geom.type = SDF


def _chosen(mj: Any, names: tuple[str, ...] | None) -> set[int]:
    """Returns the geoms with these names, or all meshes that may collide.

    Raises:
        ModelError: a name is unknown, or its geom is not a mesh.
    """
    if names is None:
        pairs = candidates(with_missing_fields(mj))
        colliding = np.union1d(pairs["cand_geom1"], pairs["cand_geom2"])
        return {int(geom) for geom in colliding if mj.geom_type[geom] == MESH}
    meshes = {mj.geom(i).name: i for i in range(mj.ngeom) if mj.geom_type[i] == MESH and mj.geom(i).name}
    for name in names:
        if name not in meshes:
            shown = ", ".join(sorted(meshes)[:20]) or "none: the model has no mesh geom with a name"
            raise ModelError(f"collision: geoms: got {name!r}, allowed are mesh geoms: {shown}")
    return {meshes[name] for name in names}


def _check(label: str, vertices: np.ndarray, faces: np.ndarray) -> None:
    """Raises an error for a mesh without an inside.

    Raises:
        ModelError: it is degenerate, not watertight, or intersects itself.
    """
    if is_degenerate(vertices, faces):
        raise ModelError(f"{label}: it is degenerate ({len(faces)} faces, no volume), and has no signed distance")
    if not is_watertight(faces):
        raise ModelError(f"{label}: it is not watertight, allowed are closed surfaces with consistent orientation")
    crossing = first_crossing(vertices, faces)
    if crossing is not None:
        at = ", ".join(f"{x:.4g}" for x in crossing)
        raise ModelError(
            f"{label}: its surface intersects itself near ({at}) m in the frame of its file; "
            "allowed are surfaces that bound a volume, and one geom for each of several overlapping parts"
        )


def expected_nodes(vertices: np.ndarray, faces: np.ndarray, depth: int) -> float:
    """Returns the approximate number of nodes of a mesh's octree.

    A cell that the surface crosses has eight children.  A surface crosses as many cells of a level as its projections
    along the three axes cover faces of cells.
    """
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    areas = np.abs(np.cross(b - a, c - a)).sum(0) / 2.0
    x, y, z = PADDING * np.ptp(vertices, axis=0)
    covered = float(products_of_rows(areas[None], 1.0 / np.array([[y * z, z * x, x * y]]))[0])
    return 1.0 + sum(8.0 * min(8.0**level, covered * 4.0**level) for level in range(depth))
