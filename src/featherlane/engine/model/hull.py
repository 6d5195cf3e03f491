"""Converts convex hulls of meshes, as computed by MuJoCo's compiler, to arrays for kernels.

A hull's vertices are numbered from 0 and stored contiguously, as are its edges (the neighbours of each vertex) and its
faces, in which the compiler has merged coplanar triangles.  A mesh without a colliding geom has no hull.
Source: MuJoCo's `mesh_graph` (the hull of qhull, described in mjmodel.h) and `mesh_poly*`.
Deviation: edges are those of the convex hull of the stored float32 vertices (`convexity`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from featherlane.engine.lanes.layout import Declare, size
from featherlane.engine.model.convexity import convex_triangles
from featherlane.engine.model.derived import derived
from featherlane.engine.model.ordered_sums import products_of_rows
from featherlane.engine.model.outline import outlines
from featherlane.engine.spatial.types import Vec3

if TYPE_CHECKING:
    import mujoco

CELLS_PER_VERTEX = 3  # cells of directions
CELLS = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96)  # along the edge of a face of the cube of directions
LEVEL = 1e-12  # of the hull's size: a vertex that is lower by at most this counts as equally high
SMALL = 10  # from this number of mesh vertices on, MuJoCo climbs along the hull's edges
FLAT = 0.25e-3  # largest error of a flat face, relative to the height by which all other vertices are below it
_field = Declare()


@derived(
    size("nhullvert", "vertices of all convex hulls"),
    size("nhulledge", "neighbours of all hull vertices"),
    size("nhullpoly", "faces of all hulls"),
    size("nhullpolyvert", "corners of all faces"),
    size("nhulloutline", "corners of all faces' outlines"),
    size("nhullmap", "faces at all hull vertices"),
    size("nhullflat", "flat faces of more than three corners at all hull vertices"),
    size("nhullcell", "cells of directions of all hulls, and one more"),
    size("nhullcandidate", "candidates of all cells of directions"),
    _field.int("hull_vertadr", "nmesh", "1", "first vertex of the mesh's hull"),
    _field.int("hull_vertnum", "nmesh", "1", "vertices of the hull"),
    _field.int("hull_polyadr", "nmesh", "1", "first face"),
    _field.int("hull_polynum", "nmesh", "1", "number of faces; coplanar triangles form one face"),
    _field.int("hull_convex", "nmesh", "1", "1: the hull's edges are exactly those of the convex hull of its vertices"),
    _field.int("hull_cells", "nmesh", "1", "cells of directions along the edge of a face of a cube"),
    _field.int("hull_celladr", "nmesh", "1", "first cell of directions"),
    _field.int("hull_cell", "nhullcell", "1", "first candidate of a cell; the next entry is the end of its candidates"),
    _field.int("hull_candidate", "nhullcandidate", "1", "farthest vertex along some direction of a cell, ascending"),
    _field.int("hull_edgeadr", "nhullvert", "1", "first neighbour of a vertex"),
    _field.int("hull_edgenum", "nhullvert", "1", "neighbours of a vertex"),
    _field.int("hull_edge", "nhulledge", "1", "neighbour: number of a vertex within its hull"),
    _field.int("hull_polyvertadr", "nhullpoly", "1", "first corner of a face"),
    _field.int("hull_polyvertnum", "nhullpoly", "1", "corners of a face"),
    _field.int("hull_polyvert", "nhullpolyvert", "1", "corner: number of a vertex within its hull, counterclockwise"),
    _field.int("hull_outlineadr", "nhullpoly", "1", "first corner of a face's outline"),
    _field.int("hull_outlinenum", "nhullpoly", "1", "corners of the outline, the convex hull of a face's corners"),
    _field.int("hull_outline", "nhulloutline", "1", "corner of an outline, counterclockwise: vertex within its hull"),
    _field.int("hull_mapadr", "nhullvert", "1", "first face at a vertex"),
    _field.int("hull_mapnum", "nhullvert", "1", "faces at a vertex"),
    _field.int("hull_map", "nhullmap", "1", "face: its number within its hull"),
    _field.int("hull_flatadr", "nhullvert", "1", "first flat face of more than three corners at a vertex"),
    _field.int("hull_flatnum", "nhullvert", "1", "flat faces of more than three corners at a vertex"),
    _field.int("hull_flat", "nhullflat", "1", "such a face: its number within its hull"),
    _field.rows(Vec3, "hull_vert", "nhullvert", "m", "vertex in the mesh's frame", shared=True),
    _field.rows(Vec3, "hull_planenormal", "nhullpoly", "1", "unit normal of a face, from its corners", shared=True),
    _field.scalar("hull_planeoffset", "nhullpoly", "m", "largest height of the face's corners along hull_polynormal"),
    _field.scalar("hull_planeerror", "nhullpoly", "m", "range of the heights of the face's corners"),
    _field.scalar("hull_planedrop", "nhullpoly", "m", "lower bound of the distance of other vertices below the face"),
    _field.rows(Vec3, "hull_polynormal", "nhullpoly", "1", "outward unit normal of a face", shared=True),
)
def hulls(hulls_of: Sequence[mujoco.MjModel]) -> dict[str, np.ndarray]:
    """Computes the convex hull of each mesh, its vertices numbered from 0, from a model that has it."""
    of_meshes = [_hull(mj, mesh) for mesh, mj in enumerate(hulls_of)]
    parts = of_meshes or [_empty()]
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0] if name != "convex"}
    out = {f"hull_{name}": value for name, value in joined.items()}
    for name, rows in (("vert", "vert"), ("poly", "polynormal")):
        count = np.array([len(part[rows]) for part in of_meshes], np.int32)
        out[f"hull_{name}num"], out[f"hull_{name}adr"] = count, _starts(count)
    for name in ("edge", "polyvert", "map", "flat", "outline"):
        out[f"hull_{name}adr"] = _starts(joined[f"{name}num"])
    out["hull_convex"] = np.array([part["convex"] for part in of_meshes], np.int32)
    return out | _farthest_vertices(of_meshes)


def _farthest_vertices(hulls: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Returns, for each cell of directions of each hull, the vertices that are farthest along some direction in it."""
    cells, count, candidates = [], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for hull in hulls:
        number, found = _candidates(hull) if len(hull["vert"]) else (np.zeros(0, np.int64), np.zeros(0, np.int64))
        cells.append(round((len(number) / 6) ** 0.5))
        count.append(number)
        candidates.append(found)
    return {
        "hull_cells": np.array(cells, np.int32),
        "hull_celladr": _starts(6 * np.array(cells, np.int32) ** 2),
        "hull_cell": _starts(np.append(np.concatenate(count), 0)),
        "hull_candidate": np.concatenate(candidates).astype(np.int32),
    }


def _candidates(hull: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Returns (6 n^2,) the number of candidates of each cell, and the candidates, ascending within each cell.

    There are about CELLS_PER_VERTEX cells for each vertex.  Larger cells come first, and are halved along both edges.
    The candidates of a cell are those of the halved one that may be farthest (`_farthest_in_cells`).  A vertex without
    edges is no corner of the hull and no candidate.
    """
    corners = np.flatnonzero(hull["edgenum"])
    corners = corners if len(corners) else np.arange(len(hull["vert"]))
    last = min(CELLS, key=lambda n: abs(6 * n * n - CELLS_PER_VERTEX * len(corners)))
    n = 3 if last % 3 == 0 else 1
    count, found = np.full(6 * n * n, len(corners)), np.tile(corners, 6 * n * n)
    count, found = _farthest_in_cells(hull["vert"], n, count, found)
    while n < last:
        # the candidates of cell (face, i, j) for its quarters (face, 2 i, 2 j) to (face, 2 i + 1, 2 j + 1)
        quarter = np.arange(6 * n * n).reshape(6, n, n).repeat(2, axis=1).repeat(2, axis=2).ravel()
        found = found[_rows(_starts(count)[quarter], count[quarter])]
        count, n = count[quarter], 2 * n
        count, found = _farthest_in_cells(hull["vert"], n, count, found)
    return count, found


def _farthest_in_cells(vert: np.ndarray, n: int, count: np.ndarray, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns (count, found) with those candidates of each cell only that may be farthest along a direction in it.

    The cells are those of `collision.support.cell_of`: n x n squares on each face of a cube, face 2 k + (1 if axis k is
    positive), ordered by the square's index along axis k + 1, then along axis k + 2.  In a cell, directions are
    (+-1, u, v) along axes (k, k + 1, k + 2), with u and v in intervals of length 2 / n, so the height of a vertex is
    linear in u and v.  Its advantage over another vertex is largest at one of the four corners.
    A candidate remains if, with this largest advantage, it is at least as high as each of five vertices: the farthest
    ones along the corners and the centre.  All farthest vertices remain.

    Args:
        vert: (v, 3), the vertices.
        count, found: candidates of the cells, one cell after the other.
    """
    face, i, j = np.unravel_index(np.arange(len(count)), (6, n, n))
    axis, side = face // 2, 2.0 / n
    # a single candidate remains
    several = np.flatnonzero(count > 1)
    pairs, number = _rows(_starts(count)[several], count[several]), count[several]
    first, cell = _starts(number), np.repeat(several, number)
    # the height at the first corner of the cell, and its rise along both edges of the cell
    flat, place = vert.ravel(), 3 * found[pairs]
    along, rise_u, rise_v = (flat[place + ((axis + k) % 3)[cell]] for k in range(3))
    sign, u0, v0 = (values[cell] for values in (2.0 * (face % 2) - 1.0, side * i - 1.0, side * j - 1.0))
    height = sign * along + u0 * rise_u + v0 * rise_v
    rise_u, rise_v = side * rise_u, side * rise_v
    level, keeps = LEVEL * np.abs(vert).max(), np.ones(len(pairs), bool)
    for u, v in ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0), (0.5, 0.5)):
        at = height + u * rise_u + v * rise_v
        is_top = np.flatnonzero(at == np.repeat(np.maximum.reduceat(at, first), number))
        top = np.empty(len(count), np.int64)
        top[cell[is_top]] = is_top  # one of equally high vertices
        top = np.repeat(top[several], number)
        advantage = height - height[top] + np.maximum(rise_u - rise_u[top], 0.0) + np.maximum(rise_v - rise_v[top], 0.0)
        keeps &= advantage >= -level
    remains = np.ones(len(found), bool)
    remains[pairs] = keeps
    return np.bincount(np.repeat(np.arange(len(count)), count)[remains], minlength=len(count)), found[remains]


def _starts(count: np.ndarray) -> np.ndarray:
    """Returns the start of each of several contiguous lists."""
    return (np.cumsum(count) - count).astype(np.int32)


def _rows(start: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Returns start[0], start[0] + 1, ... (count[0] of them), start[1], ..."""
    return np.repeat(start - _starts(count), count) + np.arange(count.sum())


def _are_in(values: np.ndarray, ascending: np.ndarray) -> np.ndarray:
    """Returns whether each value is one of an ascending list, which is not empty."""
    place = np.searchsorted(ascending, values)
    return ascending[np.minimum(place, len(ascending) - 1)] == values


def _empty() -> dict[str, np.ndarray]:
    """Returns an empty hull, for a mesh without one."""
    lists = ("edge", "polyvert", "map", "flat", "outline")
    ints = {name + of: np.zeros(0, np.int32) for name in lists for of in ("", "num")}
    reals = {name: np.zeros((0, 3)) for name in ("vert", "polynormal", "planenormal")}
    reals |= {name: np.zeros(0) for name in ("planeoffset", "planeerror", "planedrop")}
    return ints | reals | {"convex": np.array(0)}


def _hull(mj: mujoco.MjModel, mesh: int) -> dict[str, np.ndarray]:
    """Returns a mesh's vertices and neighbours, faces and corners, and the faces at each vertex."""
    at = mj.mesh_graphadr[mesh]
    if at < 0:
        return _empty()
    nvert, nface = mj.mesh_graph[at : at + 2]
    graph = mj.mesh_graph[at + 2 : at + 2 + 3 * nvert + 6 * nface]
    start, ids, edges, triangles = np.split(graph, [nvert, 2 * nvert, 3 * nvert + 3 * nface])
    # -1 terminates a vertex's neighbours
    ends = np.flatnonzero(edges < 0)
    edgenum = ends[np.searchsorted(ends, start)] - start

    # where MuJoCo tests all vertices of the mesh, ties are decided by the mesh's vertex order
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
        "polyvert": corners,
        "polyvertnum": cornernum,
        "map": np.repeat(np.arange(npoly), cornernum)[by_vertex],
        "mapnum": np.bincount(corners, minlength=nvert),
    }
    vert = mj.mesh_vert[mj.mesh_vertadr[mesh] + ids].astype(np.float64)
    ints |= _edges(vert, rank[edges[_rows(start, edgenum)]], edgenum, number[triangles].reshape(-1, 3))
    planes = _planes(vert, ints)
    ints["outline"], ints["outlinenum"] = outlines(vert, planes["planenormal"], corners, cornernum)
    flat = (ints["outlinenum"] > 3) & (planes["planeerror"] <= FLAT * planes["planedrop"])
    ints["flat"] = ints["map"][flat[ints["map"]]]
    ints["flatnum"] = np.bincount(corners[np.repeat(flat, cornernum)], minlength=nvert)
    return {name: value.astype(np.int32) for name, value in ints.items()} | {
        "vert": vert,
        **planes,
        "polynormal": _unit(mj.mesh_polynormal[first : first + npoly].astype(np.float64)),
    }


def _edges(vert: np.ndarray, edge: np.ndarray, edgenum: np.ndarray, triangles: np.ndarray) -> dict[str, np.ndarray]:
    """Returns the neighbours of each vertex: those of the convex hull if it can be found, else MuJoCo's.

    Neighbours keep their order, and new ones come last.  A vertex inside the hull due to rounding has none.
    """
    hull = convex_triangles(vert, triangles)
    if hull is None:
        return {"edge": edge, "edgenum": edgenum, "convex": np.array(0)}
    if hull is not triangles:
        a, b, c = hull.T
        given = np.repeat(np.arange(len(vert)), edgenum) * len(vert) + edge
        edges = np.sort(np.concatenate([a * len(vert) + b, b * len(vert) + c, c * len(vert) + a]))
        number = np.concatenate([given[_are_in(given, edges)], edges[~_are_in(edges, np.sort(given))]])
        number = number[np.argsort(number // len(vert), kind="stable")]
        edge, edgenum = number % len(vert), np.bincount(number // len(vert), minlength=len(vert))
    return {"edge": edge, "edgenum": edgenum, "convex": np.array(1)}


def _planes(vert: np.ndarray, hull: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the planes of a hull's faces, in float64: their flatness, and their distance to the other vertices."""
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
    height = products_of_rows(vert[corners], normal[face])
    offset = np.maximum.reduceat(height, first)
    error = offset - np.minimum.reduceat(height, first)

    # neighbours of corners that are not corners of the same face
    begin, number = _starts(hull["edgenum"])[corners], hull["edgenum"][corners]
    of_face = np.repeat(face, number)
    neighbour = hull["edge"][_rows(begin, number)]
    outside = ~_are_in(of_face * len(vert) + neighbour, np.sort(face * len(vert) + corners))
    drop = np.full(len(count), np.inf)
    height = products_of_rows(vert[neighbour[outside]], normal[of_face[outside]])
    np.minimum.at(drop, of_face[outside], offset[of_face[outside]] - height)
    drop = np.where(np.isfinite(drop), drop, 0.0)
    return {"planenormal": normal, "planeoffset": offset, "planeerror": error, "planedrop": drop}


def _unit(v: np.ndarray) -> np.ndarray:
    """Returns rows scaled to length 1 (MuJoCo's are float32)."""
    length = np.linalg.norm(v, axis=1, keepdims=True)
    return v / np.where(length > 0.0, length, 1.0)
