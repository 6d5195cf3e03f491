"""Checks whether the surface of a mesh bounds a volume: closed, not degenerate, without crossing faces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from featherlane.engine.model.ordered_sums import heights_along, products_of_rows

FLAT = 1e-6  # of the mesh's size: distances from a plane up to which points count as on it
ROUNDING = 1e-9  # of a triangle's size: an edge through the common edge of two triangles crosses one of them
MOST_PAIRS = 2**20  # pairs of faces that are compared at once


def merged_mesh(mj: Any, mesh: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns vertices (n, 3) and faces (k, 3) in the frame of the mesh's file, scaled; equal vertices are merged."""
    import mujoco

    first, number = mj.mesh_vertadr[mesh], mj.mesh_vertnum[mesh]
    start, count = mj.mesh_faceadr[mesh], mj.mesh_facenum[mesh]
    turn = np.empty(9)
    mujoco.mju_quat2Mat(turn, mj.mesh_quat[mesh])
    vertices = heights_along(mj.mesh_vert[first : first + number].astype(float), turn.reshape(3, 3)) + mj.mesh_pos[mesh]
    _, firsts, index = np.unique(mj.mesh_vert[first : first + number], axis=0, return_index=True, return_inverse=True)
    faces = index.reshape(-1)[mj.mesh_face[start : start + count]]
    distinct = (faces != np.roll(faces, 1, axis=1)).all(1)
    return vertices[firsts], faces[distinct].astype(np.int32)


def signed_volume(vertices: np.ndarray, faces: np.ndarray) -> float:
    """Returns the volume within a closed surface, by the divergence theorem; negative if its faces look inwards."""
    corners = vertices[faces] - vertices[faces].mean((0, 1))
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    return float(products_of_rows(a, np.cross(b, c)).sum() / 6.0)


def mesh_size(vertices: np.ndarray) -> float:
    """Returns the longest edge of the vertices' bounding box."""
    return float(np.ptp(vertices, axis=0).max(initial=0.0))


def is_degenerate(vertices: np.ndarray, faces: np.ndarray) -> bool:
    """Returns whether the surface has fewer than four faces, non-finite vertices or no volume."""
    size = mesh_size(vertices)
    return (
        len(faces) < 4
        or not np.isfinite(vertices).all()
        or not abs(signed_volume(vertices, faces)) > FLAT * size * size * size
    )


def is_watertight(faces: np.ndarray) -> bool:
    """Returns whether each directed edge has one opposite edge."""
    number = int(faces.max(initial=0)) + 1
    edges = np.concatenate([faces[:, [k, (k + 1) % 3]] for k in range(3)])
    there, back = (np.sort(pair[:, 0].astype(np.int64) * number + pair[:, 1]) for pair in (edges, edges[:, ::-1]))
    return bool((there[1:] != there[:-1]).all()) and np.array_equal(there, back)


def open_edges(faces: np.ndarray) -> int:
    """Returns the number of edges that have more faces in one direction than in the other."""
    a, b = np.concatenate([faces[:, [k, (k + 1) % 3]] for k in range(3)]).astype(np.int64).T
    key = np.minimum(a, b) * (int(faces.max(initial=0)) + 1) + np.maximum(a, b)
    edge = np.unique(key, return_inverse=True)[1].reshape(-1)
    return int(np.count_nonzero(np.bincount(edge, np.where(a < b, 1.0, -1.0))))


# ---- crossing faces --------------------------------------------------------------------------------------------------
def first_crossing(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray | None:
    """Returns a point at which an edge of a face crosses another face, (3,); None if no faces cross.

    Faces with a common edge are not compared.  Touching faces do not cross: the ends of the edge must be farther than
    FLAT from the other face's plane, on different sides.
    """
    reach = FLAT * mesh_size(vertices)
    for first, second in _near_pairs(vertices, faces):
        common = (faces[first][:, :, None] == faces[second][:, None, :]).any((1, 2))
        shared = (faces[first][:, :, None] == faces[second][:, None, :]).sum((1, 2))
        for a, b in ((first, second), (second, first)):
            for k in range(3):
                ends = faces[a][:, [k, (k + 1) % 3]]
                # of faces with a common corner only the opposite edge can cross
                free = ~common | ((shared == 1) & ~(ends[:, :, None] == faces[b][:, None, :]).any((1, 2)))
                found = _crossing(vertices[ends[free]], vertices[faces[b][free]], reach)
                if found is not None:
                    return found
    return None


def _near_pairs(vertices: np.ndarray, faces: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields pairs of faces with overlapping bounding boxes, each pair once, by a sweep along the longest axis."""
    corners = vertices[faces]
    low, high = corners.min(1), corners.max(1)
    axis = int(np.ptp(vertices, axis=0).argmax())
    order = np.argsort(low[:, axis], kind="stable")
    low, high = low[order], high[order]
    after = np.arange(1, len(order) + 1)
    count = np.searchsorted(low[:, axis], high[:, axis], "right") - after
    total = np.cumsum(count)
    start = 0
    while start < len(order):
        done = total[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(total, done + MOST_PAIRS, "right")))
        number = count[start:stop]
        first = np.repeat(np.arange(start, stop), number)
        second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(number) - number, number)
        near = ((low[first] <= high[second]) & (low[second] <= high[first])).all(1)
        yield order[first[near]], order[second[near]]
        start = stop


def _crossing(ends: np.ndarray, corners: np.ndarray, reach: float) -> np.ndarray | None:
    """Returns the point of the first edge (n, 2, 3) that crosses its triangle (n, 3, 3); None without one."""
    p, q, a, b, c = ends[:, 0], ends[:, 1], corners[:, 0], corners[:, 1], corners[:, 2]
    normal = np.cross(b - a, c - a)
    least = reach * np.sqrt(products_of_rows(normal, normal))
    above, below = products_of_rows(p - a, normal), products_of_rows(q - a, normal)
    apart = (np.abs(above) > least) & (np.abs(below) > least) & ((above > 0) != (below > 0))
    p, q, above, below, a, b, c, normal = (x[apart] for x in (p, q, above, below, a, b, c, normal))
    point = p + (q - p) * (above / (above - below))[:, None]
    sides = [products_of_rows(np.cross(v - u, point - u), normal) for u, v in ((a, b), (b, c), (c, a))]
    inside = (np.stack(sides) >= -ROUNDING * products_of_rows(normal, normal)).all(0)
    return point[inside.argmax()] if inside.any() else None
