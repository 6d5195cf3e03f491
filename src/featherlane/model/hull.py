"""Convex hulls and triangles of meshes, as MuJoCo's compiler made them, in arrays that kernels can walk.

A hull's vertices are numbered from 0 and stored together; so are its edges (the neighbours of each vertex) and its
faces, in which the compiler has merged coplanar triangles.  A mesh that no geom collides with has no hull.
Source: MuJoCo's `mesh_graph` (the hull of qhull, described in mjmodel.h) and `mesh_poly*`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featherlane.model.outline import outlines
from featherlane.model.products import heights

if TYPE_CHECKING:
    import mujoco

CELLS = 16  # along each side of a cube's face, in which directions are told apart
ASK_ALL = 16  # vertices of a hull up to which all are asked for a support point
SMALL = 10  # vertices of a mesh from which on MuJoCo goes along the hull's edges
ROUNDING = 1e-6  # of a mesh's size: MuJoCo's boxes were made before its vertices became float32, and may lack 1e-7


def hulls(mj: mujoco.MjModel) -> dict[str, np.ndarray]:
    """The fields `hull_*` of all meshes, by name."""
    parts = [_hull(mj, mesh) for mesh in range(mj.nmesh)] or [_empty()]
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    out = {f"hull_{name}": value for name, value in joined.items()}
    for name, rows in (("vert", "vert"), ("poly", "polynormal")):
        count = np.array([len(part[rows]) for part in parts[: mj.nmesh]], np.int32)
        out[f"hull_{name}num"], out[f"hull_{name}adr"] = count, _starts(count)
    for name in ("edge", "polyvert", "map", "outline"):
        out[f"hull_{name}adr"] = _starts(joined[f"{name}num"])
    out |= _starting_vertices([part["vert"] for part in parts[: mj.nmesh]])
    return out


def triangles(mj: mujoco.MjModel) -> dict[str, np.ndarray]:
    """The fields `triangle_*` of all meshes, by name: what a ray meets."""
    return {
        "triangle_adr": mj.mesh_faceadr.astype(np.int32),
        "triangle_num": mj.mesh_facenum.astype(np.int32),
        "triangle_vertadr": mj.mesh_vertadr.astype(np.int32),
        "triangle": mj.mesh_face.astype(np.int32),
        "triangle_vert": mj.mesh_vert.astype(np.float64),
    }


def triangle_trees(mj: mujoco.MjModel) -> dict[str, np.ndarray]:
    """The fields `meshnode_*`: a tree of boxes about the triangles of each mesh, one triangle in each leaf.

    Source: MuJoCo's `mesh_bvhadr`, `bvh_child`, `bvh_nodeid`, `bvh_aabb` (centre and half sides there).
    """
    trees = [slice(a, a + n) for a, n in zip(mj.mesh_bvhadr, mj.mesh_bvhnum, strict=True)]
    rows = np.concatenate([np.arange(mj.nbvh)[t] for t in trees]) if trees else np.zeros(0, int)
    centre, half = mj.bvh_aabb[rows, :3], mj.bvh_aabb[rows, 3:]
    largest = [np.abs(mj.bvh_aabb[t]).sum(axis=1).max() for t in trees]
    half = half + ROUNDING * np.repeat(np.asarray(largest, float), mj.mesh_bvhnum)[:, None]
    return {
        "meshnode_adr": (np.cumsum(mj.mesh_bvhnum) - mj.mesh_bvhnum).astype(np.int32),
        "meshnode_child": mj.bvh_child[rows].astype(np.int32),
        "meshnode_triangle": mj.bvh_nodeid[rows].astype(np.int32),
        "meshnode_box": np.concatenate([centre - half, centre + half], axis=1),
    }


def _starting_vertices(hulls: list[np.ndarray]) -> dict[str, np.ndarray]:
    """For each hull that is climbed, the vertex that is farthest along the middle of each cell of directions."""
    middles, place, adr, starts = _middles(), 0, [], [np.zeros(0, np.int32)]
    for vert in hulls:
        climbed = len(vert) > ASK_ALL
        adr.append(place if climbed else -1)
        if climbed:
            starts.append(np.argmax(heights(vert, middles), axis=0).astype(np.int32))
            place += len(middles)
    return {"hull_startadr": np.array(adr, np.int32), "hull_start": np.concatenate(starts)}


def _middles() -> np.ndarray:
    """(6 CELLS^2, 3): the middles of the cells of directions, in the order of `collision.support.cell_of`.

    The directions are those to the faces of a cube, each cut into CELLS x CELLS squares: face 2 k + (1 where axis k is
    positive), then the square's place along axis k + 1, then along axis k + 2.
    """
    at = (2.0 * np.arange(CELLS) + 1.0) / CELLS - 1.0
    out = np.zeros((6, CELLS, CELLS, 3))
    for face in range(6):
        k = face // 2
        out[face, ..., k] = 1.0 if face % 2 else -1.0
        out[face, ..., (k + 1) % 3], out[face, ..., (k + 2) % 3] = np.meshgrid(at, at, indexing="ij")
    return out.reshape(-1, 3)


def _starts(count: np.ndarray) -> np.ndarray:
    """Where each of several lists begins, stored one after the other."""
    return (np.cumsum(count) - count).astype(np.int32)


def _rows(start: np.ndarray, count: np.ndarray) -> np.ndarray:
    """start[0], start[0] + 1, ... (count[0] of them), start[1], ..."""
    return np.repeat(start - _starts(count), count) + np.arange(count.sum())


def _empty() -> dict[str, np.ndarray]:
    """The hull of a mesh that has none."""
    lists = ("edge", "polyvert", "map", "outline")
    ints = {name + of: np.zeros(0, np.int32) for name in lists for of in ("", "num")}
    reals = {name: np.zeros((0, 3)) for name in ("vert", "polynormal", "planenormal")}
    return ints | reals | {name: np.zeros(0) for name in ("planeoffset", "planeerror", "planedrop")}


def _hull(mj: mujoco.MjModel, mesh: int) -> dict[str, np.ndarray]:
    """One mesh's vertices and neighbours, faces and corners, and the faces at each vertex."""
    at = mj.mesh_graphadr[mesh]
    if at < 0:
        return _empty()
    nvert, nface = mj.mesh_graph[at : at + 2]
    start, ids, edges = np.split(mj.mesh_graph[at + 2 : at + 2 + 3 * nvert + 3 * nface], [nvert, 2 * nvert])
    # a vertex's neighbours end with -1
    ends = np.flatnonzero(edges < 0)
    edgenum = ends[np.searchsorted(ends, start)] - start

    # where MuJoCo asks all vertices of the mesh, the first of equally far ones is the first in the mesh's order
    order = np.argsort(ids) if mj.mesh_vertnum[mesh] < SMALL else np.arange(nvert)
    rank = np.argsort(order)
    ids, start, edgenum = ids[order], start[order], edgenum[order]
    first, npoly = mj.mesh_polyadr[mesh], mj.mesh_polynum[mesh]
    number = np.full(mj.mesh_vertnum[mesh], -1)
    number[ids] = np.arange(nvert)
    cornernum = mj.mesh_polyvertnum[first : first + npoly]
    corners = number[mj.mesh_polyvert[_rows(mj.mesh_polyvertadr[first : first + npoly], cornernum)]]
    by_vertex = np.argsort(corners, kind="stable")
    ints = {
        "edge": rank[edges[_rows(start, edgenum)]],
        "edgenum": edgenum,
        "polyvert": corners,
        "polyvertnum": cornernum,
        "map": np.repeat(np.arange(npoly), cornernum)[by_vertex],
        "mapnum": np.bincount(corners, minlength=nvert),
    }
    vert = mj.mesh_vert[mj.mesh_vertadr[mesh] + ids].astype(np.float64)
    planes = _planes(vert, ints)
    ints["outline"], ints["outlinenum"] = outlines(vert, planes["planenormal"], corners, cornernum)
    return {name: value.astype(np.int32) for name, value in ints.items()} | {
        "vert": vert,
        **planes,
        "polynormal": _unit(mj.mesh_polynormal[first : first + npoly].astype(np.float64)),
    }


def _planes(vert: np.ndarray, hull: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The planes of a hull's faces, in float64: how flat each is, and how far it stands out from the other vertices."""
    corners, count = hull["polyvert"], hull["polyvertnum"]
    first, face = _starts(count), np.repeat(np.arange(len(count)), count)
    if not len(count):
        return {"planenormal": np.zeros((0, 3))} | dict.fromkeys(
            ("planeoffset", "planeerror", "planedrop"), np.zeros(0)
        )
    arm = vert[corners] - vert[corners[first[face]]]
    following = np.arange(len(corners)) + 1
    following[first + count - 1] = first
    normal = _unit(np.add.reduceat(np.cross(arm, arm[following]), first))
    height = np.einsum("ij,ij->i", vert[corners], normal[face])
    offset = np.maximum.reduceat(height, first)
    error = offset - np.minimum.reduceat(height, first)

    # neighbours of corners that are no corners themselves
    begin, number = _starts(hull["edgenum"])[corners], hull["edgenum"][corners]
    of_face = np.repeat(face, number)
    neighbour = hull["edge"][_rows(begin, number)]
    outside = ~np.isin(of_face * len(vert) + neighbour, face * len(vert) + corners)
    drop = np.full(len(count), np.inf)
    height = np.einsum("ij,ij->i", vert[neighbour[outside]], normal[of_face[outside]])
    np.minimum.at(drop, of_face[outside], offset[of_face[outside]] - height)
    drop = np.where(np.isfinite(drop), drop, 0.0)
    return {"planenormal": normal, "planeoffset": offset, "planeerror": error, "planedrop": drop}


def _unit(v: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1 (MuJoCo's are float32)."""
    length = np.linalg.norm(v, axis=1, keepdims=True)
    return v / np.where(length > 0.0, length, 1.0)
