"""Computes outlines of a hull's faces: convex rings of corners.

MuJoCo's compiler merges neighbouring triangles that are coplanar within a tolerance.  The more a hull is curved, the
more irregular its faces are: in robot models a few percent of the faces with more than three corners, up to one in
five, have a reflex corner (one that points inwards).  Clipping by a face's edges, and point-in-face tests, need a
convex face.  The area cut out by a reflex corner belongs to other faces, and is lower by no more than the face's own
corners are.  So the outline omits the corner.
"""

from __future__ import annotations

import numpy as np

from featherlane.engine.model.ordered_sums import heights_along, products_of_rows

INWARDS = 1e-6  # of the face's size: smaller reflex corners are rounding errors of float32 vertices


def outlines(
    vert: np.ndarray, normal: np.ndarray, corners: np.ndarray, count: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Returns (vertices of the outlines, concatenated; number of vertices of each face).

    Args:
        vert: (n, 3), vertices of a hull.
        normal: (faces, 3), unit normals of its faces.
        corners: vertex indices, counterclockwise seen from outside, of all faces.
        count: (faces,), number of corners of each face.
    """
    bent = _bends_inwards(vert, normal, corners, count)
    if not bent.any():
        return corners, count
    normal, start = normal[bent], (np.cumsum(count) - count)[bent]
    x = np.cross(np.eye(3)[np.argmin(np.abs(normal), axis=1)], normal)
    plane = np.stack([x, np.cross(normal, x)], axis=1)
    outline, number, is_kept = corners.copy(), count.copy(), np.ones(len(corners), bool)
    for face, first, axes in zip(np.flatnonzero(bent), start, plane, strict=True):
        ring = outline[first : first + count[face]]
        kept = _convex_ring(heights_along(vert[ring], axes))
        number[face] = len(kept)
        ring[: len(kept)], is_kept[first + len(kept) : first + len(ring)] = ring[kept], False
    return outline[is_kept], number


def _bends_inwards(vert: np.ndarray, normal: np.ndarray, corners: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Returns (faces,): whether the face has a reflex corner."""
    end = np.cumsum(count)
    face, place = np.repeat(np.arange(len(count)), count), np.arange(len(corners))
    before, after = place - 1, place + 1
    before[end - count], after[end - 1] = end - 1, end - count
    e, f = vert[corners] - vert[corners[before]], vert[corners[after]] - vert[corners]
    turn = products_of_rows(np.cross(e, f), normal[face])
    arm = np.linalg.norm(vert[corners] - vert[corners[(end - count)[face]]], axis=1)
    size = np.maximum.reduceat(arm, end - count) if len(count) else arm
    # doubled area of the corner's triangle, compared to the side that would replace it
    inwards = turn < -INWARDS * size[face] * np.linalg.norm(e + f, axis=1)
    return np.bincount(face, weights=inwards, minlength=len(count)) > 0


def _convex_ring(flat: np.ndarray) -> list[int]:
    """Returns the corners (n, 2) of a face that are corners of its convex hull, in ring order."""
    points = flat.tolist()

    def chain(order: list[int]) -> list[int]:
        """Returns one side of the hull: from the first to the last of corners in ascending or descending order."""
        kept: list[int] = []
        for k in order:
            while len(kept) > 1 and _doubled_area(points[kept[-2]], points[kept[-1]], points[k]) <= 0.0:
                kept.pop()
            kept.append(k)
        return kept

    order = np.lexsort((flat[:, 1], flat[:, 0])).tolist()
    lower, upper = chain(order), chain(order[::-1])
    hull = lower[:-1] + upper[:-1]
    first = hull.index(min(hull))
    return hull[first:] + hull[:first]


def _doubled_area(a: list[float], b: list[float], c: list[float]) -> float:
    """Returns twice the signed area of a triangle."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
