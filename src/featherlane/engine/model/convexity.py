"""Computes the convex hull of points from a nearly convex surface: flips the edges that bend inwards, exactly.

MuJoCo's compiler computes the hull of a mesh's vertices before rounding them to float32.  After rounding, a few percent
of the edges bend inwards by 1e-8 of the mesh's size, and hill climbing may stop short of the highest vertex.
Triangles a b c and b a d whose common edge bends inwards become a d c and b c d.  This adds the tetrahedron between
them, so the algorithm terminates.  If a flip would invert a triangle, an end of the edge is below the other three
points: it is not a corner of the hull and is removed.  The predicate is evaluated in float64 first, and in integers if
rounding may decide, so the hull is identical on every processor.
Source: Edelsbrunner and Shah, "Incremental topological flipping works for regular triangulations" (1996); a convex
    surface is a regular triangulation of the sphere about a point inside.
"""

from __future__ import annotations

from math import ldexp

import numpy as np

from featherlane.engine.model.closed_mesh import is_watertight

ROUNDING = 2e-14  # of the product of three lengths: bound of the rounding error of a volume in float64
FLIPS = 100  # per edge: a surface that needs more is not nearly convex

Point = tuple[int, int, int]
Edge = tuple[int, int]


def convex_triangles(vert: np.ndarray, triangles: np.ndarray) -> np.ndarray | None:
    """Returns the triangles of the convex hull, or None if the given surface is too far from it.

    Args:
        vert: (n, 3), points.
        triangles: (f, 3), a nearly convex closed surface over some of them, counterclockwise seen from outside.

    Returns:
        (g, 3); the given triangles if no edge bends inwards.  Points in a face or on an edge of the hull may remain
        corners.
    """
    triangles = _without_twins(vert, triangles)
    if len(triangles) < 4 or not is_watertight(triangles) or not np.isfinite(vert).all():
        return None
    centre = vert[np.unique(triangles)].mean(axis=0).astype(np.float32).astype(np.float64)
    points = _Whole(np.vstack([vert, centre]))
    bent = [edge for edge in _may_bend(vert, triangles) if _volume(points, *edge) > 0]
    inwards = [face for face in _may_face_inwards(vert - centre, triangles) if _volume(points, -1, *face) <= 0]
    if not (bent or inwards):
        return triangles
    surface = _Surface(points, triangles)
    done = all(surface.turn(*face) for face in inwards) and surface.make_convex([(a, b) for a, b, _, _ in bent])
    return surface.triangles() if done else None


def _without_twins(vert: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Returns the triangles without degenerate ones: points at equal positions are merged into the first."""
    ordered = vert[np.lexsort(vert.T)]
    if (ordered[1:] != ordered[:-1]).any(1).all():
        return triangles
    _, first, place = np.unique(vert, axis=0, return_index=True, return_inverse=True)
    a, b, c = first[place.ravel()][triangles].T
    return np.stack([a, b, c], axis=1)[(a != b) & (b != c) & (c != a)]


# ---- in float64 ------------------------------------------------------------------------------------------------------
def _sides(triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns (3 f, 2) edges in the orientation of their triangles, and (3 f,) the opposite corners."""
    a, b, c = triangles.T
    return np.concatenate([np.stack(edge, axis=1) for edge in ((a, b), (b, c), (c, a))]), np.concatenate([c, a, b])


def _numbers(edges: np.ndarray) -> np.ndarray:
    """Returns (m,) a unique number for each directed edge."""
    return edges[:, 0].astype(np.int64) << 32 | edges[:, 1]


def _is_positive(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns (n,) masks: whether the triple product of three vectors is certainly positive; certainly not positive."""
    x = np.cross(a, b) * c
    volume, most = x[:, 0] + x[:, 1] + x[:, 2], ROUNDING * np.prod([np.abs(v).max(axis=1) for v in (a, b, c)], axis=0)
    return volume > most, volume < -most


def _may_face_inwards(arms: np.ndarray, triangles: np.ndarray) -> list[tuple[int, ...]]:
    """Returns the triangles that may not face away from the point at the origin of the arms."""
    outwards, _ = _is_positive(*(arms[corner] for corner in triangles.T))
    return [tuple(face) for face in triangles[~outwards].tolist()]


def _may_bend(vert: np.ndarray, triangles: np.ndarray) -> list[tuple[int, ...]]:
    """Returns (a, b, c, d): edges a b that may bend inwards, each once, and the opposite corners."""
    edges, across = _sides(triangles)
    beyond = np.empty_like(across)
    beyond[np.argsort(_numbers(edges[:, ::-1]))] = across[np.argsort(_numbers(edges))]
    fours = np.column_stack([edges, across, beyond])[edges[:, 0] < edges[:, 1]]
    a, b, c, d = (vert[corner] for corner in fours.T)
    _, below = _is_positive(b - a, c - a, d - a)
    return [tuple(four) for four in fours[~below].tolist()]


# ---- in integers -----------------------------------------------------------------------------------------------------
class _Whole(dict[int, Point]):
    """Points multiplied by the power of two that makes all coordinates integers, each converted when first read."""

    def __init__(self, points: np.ndarray):
        super().__init__()
        mantissa, exponent = np.frexp(points)
        self._points, self._bits = points, 53 - int(exponent[mantissa != 0.0].min(initial=0))

    def __missing__(self, number: int) -> Point:
        x, y, z = self._points[number].tolist()
        self[number] = point = int(ldexp(x, self._bits)), int(ldexp(y, self._bits)), int(ldexp(z, self._bits))
        return point


def _volume(points: _Whole, a: int, b: int, c: int, d: int) -> int:
    """Returns six times the volume of a tetrahedron: positive if d is above the counterclockwise triangle a b c."""
    (x, y, z), p, q, r = points[a], points[b], points[c], points[d]
    px, py, pz = p[0] - x, p[1] - y, p[2] - z
    qx, qy, qz = q[0] - x, q[1] - y, q[2] - z
    rx, ry, rz = r[0] - x, r[1] - y, r[2] - z
    return rx * (py * qz - pz * qy) + ry * (pz * qx - px * qz) + rz * (px * qy - py * qx)


class _Surface:
    """A closed surface of triangles around an interior point (the last one), stored by its edges.

    Attributes:
        points: in integers.
        across: for each directed edge of a triangle, the triangle's third corner.
        changed: edges of new triangles.
        tries: remaining number of flips.
    """

    def __init__(self, points: _Whole, triangles: np.ndarray):
        self.points = points
        edges, across = _sides(triangles)
        self.across: dict[Edge, int] = dict(zip(zip(*edges.T.tolist(), strict=True), across.tolist(), strict=True))
        self.changed: list[Edge] = []
        self.tries = FLIPS * len(triangles)

    def triangles(self) -> np.ndarray:
        """Returns (f, 3) corners of the triangles."""
        return np.array([(a, b, c) for (a, b), c in self.across.items() if a < b and a < c])

    def turn(self, a: int, b: int, c: int) -> bool:
        """Flips an edge of a triangle that does not face outwards; returns whether that is possible."""
        if self.across.get((a, b)) != c or self._faces_outwards(a, b, c):
            return True
        return any(self._flip(*edge) for edge in ((a, b), (b, c), (c, a)))

    def make_convex(self, bent: list[Edge]) -> bool:
        """Flips all edges that bend inwards, starting with these; returns whether the surface became convex."""
        self.changed = bent + self.changed
        while self.changed and self.tries > 0:
            a, b = self.changed.pop()
            if (a, b) in self.across and self._bends_inwards(a, b):
                self.tries -= 1
                if not (self._flip(a, b) or self._leave_out_below(a, b)):
                    return False
        return not self.changed

    def _add(self, a: int, b: int, c: int) -> None:
        self.across[a, b], self.across[b, c], self.across[c, a] = c, a, b

    def _faces_outwards(self, a: int, b: int, c: int) -> bool:
        return _volume(self.points, -1, a, b, c) > 0

    def _bends_inwards(self, a: int, b: int) -> bool:
        return _volume(self.points, a, b, self.across[a, b], self.across[b, a]) > 0

    def _flip(self, a: int, b: int) -> bool:
        """Replaces the edge a b by c d, if both new triangles face outwards; returns whether it did."""
        c, d = self.across[a, b], self.across[b, a]
        good = (c, d) not in self.across and self._faces_outwards(a, d, c) and self._faces_outwards(b, c, d)
        if good:
            del self.across[a, b], self.across[b, a]
            self._add(a, d, c)
            self._add(b, c, d)
            self.changed += [(a, d), (d, b), (b, c), (c, a)]
        return good

    def _leave_out_below(self, a: int, b: int) -> bool:
        """Removes the end of an edge that prevents its flip, and fills the ring around it by ear clipping."""
        c, d = self.across[a, b], self.across[b, a]
        if self._faces_outwards(a, d, c):
            a, b = b, a
        ring = [b]
        while (b := self.across[a, b]) != ring[0]:
            ring.append(b)
        for b in ring:
            del self.across[a, b], self.across[b, a]
        while len(ring) > 2:
            k = next((k for k in range(len(ring)) if self._is_ear(ring, k)), None)
            if k is None:
                return False
            b, c, d = ring[k - 1], ring[k], ring[(k + 1) % len(ring)]
            self._add(b, c, d)
            self.changed += [(b, c), (c, d), (d, b)]
            del ring[k]
        return True

    def _is_ear(self, ring: list[int], k: int) -> bool:
        """Returns whether corner k and its neighbours form an outward triangle without other corners of the ring."""
        b, c, d = ring[k - 1], ring[k], ring[(k + 1) % len(ring)]
        sides = ((b, c), (c, d), (d, b))
        others = (e for e in ring if e not in (b, c, d))
        return self._faces_outwards(b, c, d) and not any(
            all(_volume(self.points, -1, e, p, q) >= 0 for p, q in sides) for e in others
        )
