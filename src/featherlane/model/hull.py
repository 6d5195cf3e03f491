"""Convex hulls and triangles of meshes, as MuJoCo's compiler made them, in arrays that kernels can walk.

A hull's vertices are numbered from 0 and stored together; so are its edges (the neighbours of each vertex) and its
faces, in which the compiler has merged coplanar triangles.  A mesh that no geom collides with has no hull.
Source: MuJoCo's `mesh_graph` (the hull of qhull, described in mjmodel.h) and `mesh_poly*`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import mujoco

ROUNDING = 1e-9  # boxes are larger by this part of their corners' numbers, so that a ray along a face is not lost


def hulls(mj: mujoco.MjModel) -> dict[str, np.ndarray]:
    """The fields `hull_*` of all meshes, by name."""
    per_mesh: dict[str, list[int]] = {name: [] for name in ("vertadr", "vertnum", "polyadr", "polynum")}
    vert, normal = [np.zeros((0, 3))], [np.zeros((0, 3))]
    edges: list[list[int]] = []  # neighbours of each hull vertex
    corners: list[list[int]] = []  # corners of each face
    faces: list[list[int]] = []  # faces at each hull vertex
    for mesh in range(mj.nmesh):
        own = _Graph(mj, mesh)
        polygons = _polygons(mj, mesh, own)
        per_mesh["vertadr"].append(len(edges))
        per_mesh["vertnum"].append(len(own.ids))
        per_mesh["polyadr"].append(len(corners))
        per_mesh["polynum"].append(len(polygons))
        vert.append(mj.mesh_vert[mj.mesh_vertadr[mesh] + own.ids].astype(np.float64))
        first = mj.mesh_polyadr[mesh]
        normal.append(mj.mesh_polynormal[first : first + len(polygons)].astype(np.float64))
        edges += own.edges
        corners += polygons
        at_vertex: list[list[int]] = [[] for _ in own.ids]
        for face, polygon in enumerate(polygons):
            for v in polygon:
                at_vertex[v].append(face)
        faces += at_vertex
    out = {f"hull_{name}": np.array(value, np.int32) for name, value in per_mesh.items()}
    for name, lists in (("edge", edges), ("polyvert", corners), ("map", faces)):
        count = np.array([len(x) for x in lists], np.int32)
        out[f"hull_{name}num"] = count
        out[f"hull_{name}adr"] = (np.cumsum(count) - count).astype(np.int32)
        out[f"hull_{name}"] = np.array([i for x in lists for i in x], np.int32)
    return out | {"hull_vert": np.concatenate(vert), "hull_polynormal": _unit(np.concatenate(normal))}


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
    half = half + ROUNDING * (np.abs(centre) + half)
    return {
        "meshnode_adr": (np.cumsum(mj.mesh_bvhnum) - mj.mesh_bvhnum).astype(np.int32),
        "meshnode_child": mj.bvh_child[rows].astype(np.int32),
        "meshnode_triangle": mj.bvh_nodeid[rows].astype(np.int32),
        "meshnode_box": np.concatenate([centre - half, centre + half], axis=1),
    }


class _Graph:
    """The hull of one mesh: `ids` of its vertices in the mesh, `edges` by hull vertex; empty where there is none."""

    def __init__(self, mj, mesh: int):
        self.ids, self.edges = np.zeros(0, int), []
        start = mj.mesh_graphadr[mesh]
        if start < 0:
            return
        nvert, nface = mj.mesh_graph[start], mj.mesh_graph[start + 1]
        graph = mj.mesh_graph[start + 2 :]
        self.ids = graph[nvert : 2 * nvert].astype(int)
        neighbours = graph[2 * nvert : 3 * nvert + 3 * nface]
        for adr in graph[:nvert]:
            end = adr + int(np.argmax(neighbours[adr:] < 0))
            self.edges.append(neighbours[adr:end].tolist())


def _polygons(mj, mesh: int, own: _Graph) -> list[list[int]]:
    """Corners of each face, as numbers of hull vertices."""
    place = {int(v): k for k, v in enumerate(own.ids)}
    out = []
    for p in range(mj.mesh_polyadr[mesh], mj.mesh_polyadr[mesh] + mj.mesh_polynum[mesh]):
        start = mj.mesh_polyvertadr[p]
        out.append([place[int(v)] for v in mj.mesh_polyvert[start : start + mj.mesh_polyvertnum[p]]])
    return out if place else []


def _unit(v: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1 (MuJoCo's are float32)."""
    return v / np.linalg.norm(v, axis=1, keepdims=True)
