"""The convex hull of points from a surface that is nearly theirs: edges that bend inwards are flipped, exactly.

MuJoCo's compiler makes the hull of a mesh's vertices before these become float32.  After it some edges in a hundred
bend inwards, by a part in 1e8 of the mesh's size, and who climbs along them may stop short of the highest vertex.  Here
triangles a b c and b a d whose common edge bends inwards become a d c and b c d.  That adds the tetrahedron between
them, so it comes to an end.  Where it would turn a triangle over, an end of the edge lies below the other three points:
it is no corner of the hull, and is left out.  What bends is asked in float64 first, and of whole numbers where rounding
may decide, so a hull is the same on every processor.
Source: Edelsbrunner and Shah, "Incremental topological flipping works for regular triangulations" (1996); a convex
    surface is a regular triangulation of the sphere about a point inside.
"""

from __future__ import annotations

from math import ldexp

import numpy as np

ROUNDING = 2e-14  # of the product of three lengths: by more a volume is not wrong in float64
FLIPS = 100  # for each edge: who needs more is not near a hull

Point = tuple[int, int, int]
Edge = tuple[int, int]


def convex_triangles(vert: np.ndarray, triangles: np.ndarray) -> np.ndarray | None:
    """The triangles of the convex hull, or None where those given are too far from it.

    Args:
        vert: (n, 3), points.
        triangles: (f, 3), a closed surface over some of them that is nearly convex, counterclockwise seen from outside.

    Returns:
        (g, 3); those given where no edge bends inwards.  Points that lie in a face or on an edge of the hull may be
        corners all the same.
    """
    triangles = _without_twins(vert, triangles)
    if len(triangles) < 4 or not _is_closed(triangles) or not np.isfinite(vert).all():
        return None
    centre = vert[np.unique(triangles)].mean(axis=0).astype(np.float32).astype(np.float64)
    points = _whole(np.vstack([vert, centre]))
    bent = [edge for edge in _may_bend(vert, triangles) if _volume(points, *edge) > 0]
    inwards = [face for face in _may_face_inwards(vert - centre, triangles) if _volume(points, -1, *face) <= 0]
    if not (bent or inwards):
        return triangles
    surface = _Surface(points, triangles)
    done = all(surface.turn(*face) for face in inwards) and surface.make_convex([(a, b) for a, b, _, _ in bent])
    return surface.triangles() if done else None


def _without_twins(vert: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Triangles whose corners differ: of points in one place the first is taken for all."""
    _, first, place = np.unique(vert, axis=0, return_index=True, return_inverse=True)
    if len(first) == len(vert):
        return triangles
    a, b, c = first[place.ravel()][triangles].T
    return np.stack([a, b, c], axis=1)[(a != b) & (b != c) & (c != a)]


# ---- in float64 ------------------------------------------------------------------------------------------------------
def _sides(triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(3 f, 2) edges in the direction in which their triangles run, and (3 f,) the corners across."""
    a, b, c = triangles.T
    return np.concatenate([np.stack(edge, axis=1) for edge in ((a, b), (b, c), (c, a))]), np.concatenate([c, a, b])


def _numbers(edges: np.ndarray) -> np.ndarray:
    """(m,): a number for each edge and its direction."""
    return edges[:, 0].astype(np.int64) << 32 | edges[:, 1]


def _is_closed(triangles: np.ndarray) -> bool:
    """Has each edge two triangles, which run along it in opposite directions?"""
    edges, _ = _sides(triangles)
    there, back = np.sort(_numbers(edges)), np.sort(_numbers(edges[:, ::-1]))
    return bool((there == back).all() and (np.diff(there) > 0).all())


def _is_positive(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n,) masks: is the volume between rows of three vectors surely positive; is it surely not?"""
    x = np.cross(a, b) * c
    volume, most = x[:, 0] + x[:, 1] + x[:, 2], ROUNDING * np.prod([np.abs(v).max(axis=1) for v in (a, b, c)], axis=0)
    return volume > most, volume < -most


def _may_face_inwards(arms: np.ndarray, triangles: np.ndarray) -> list[tuple[int, ...]]:
    """The triangles that the point from which the arms reach may see from outside."""
    outwards, _ = _is_positive(*(arms[corner] for corner in triangles.T))
    return [tuple(face) for face in triangles[~outwards].tolist()]


def _may_bend(vert: np.ndarray, triangles: np.ndarray) -> list[tuple[int, ...]]:
    """(a, b, c, d): edges a b that may bend inwards, each once, and the corners across."""
    edges, across = _sides(triangles)
    beyond = np.empty_like(across)
    beyond[np.argsort(_numbers(edges[:, ::-1]))] = across[np.argsort(_numbers(edges))]
    fours = np.column_stack([edges, across, beyond])[edges[:, 0] < edges[:, 1]]
    a, b, c, d = (vert[corner] for corner in fours.T)
    _, below = _is_positive(b - a, c - a, d - a)
    return [tuple(four) for four in fours[~below].tolist()]


# ---- of whole numbers ------------------------------------------------------------------------------------------------
def _whole(points: np.ndarray) -> list[Point]:
    """Points times the power of two that makes whole numbers of all coordinates."""
    mantissa, exponent = np.frexp(points)
    bits = 53 - int(exponent[mantissa != 0.0].min(initial=0))
    return [(int(ldexp(x, bits)), int(ldexp(y, bits)), int(ldexp(z, bits))) for x, y, z in points.tolist()]


def _volume(points: list[Point], a: int, b: int, c: int, d: int) -> int:
    """Six times the volume of a tetrahedron: positive where d is above the triangle a b c, seen counterclockwise."""
    (x, y, z), p, q, r = points[a], points[b], points[c], points[d]
    px, py, pz = p[0] - x, p[1] - y, p[2] - z
    qx, qy, qz = q[0] - x, q[1] - y, q[2] - z
    rx, ry, rz = r[0] - x, r[1] - y, r[2] - z
    return rx * (py * qz - pz * qy) + ry * (pz * qx - px * qz) + rz * (px * qy - py * qx)


class _Surface:
    """A closed surface of triangles about the last of its points, by its edges.

    Attributes:
        points: in whole numbers.
        across: for each edge, in the direction in which a triangle runs along it, that triangle's third corner.
        changed: edges of triangles that are new.
        tries: how many edges may still be flipped.
    """

    def __init__(self, points: list[Point], triangles: np.ndarray):
        self.points = points
        self.across: dict[Edge, int] = {}
        self.changed: list[Edge] = []
        self.tries = FLIPS * len(triangles)
        for a, b, c in triangles.tolist():
            self._add(a, b, c)

    def triangles(self) -> np.ndarray:
        """(f, 3)."""
        return np.array([(a, b, c) for (a, b), c in self.across.items() if a < b and a < c])

    def turn(self, a: int, b: int, c: int) -> bool:
        """Give a triangle that does not face outwards an edge of its neighbours'; can that be done?"""
        if self.across.get((a, b)) != c or self._faces_outwards(a, b, c):
            return True
        return any(self._flip(*edge) for edge in ((a, b), (b, c), (c, a)))

    def make_convex(self, bent: list[Edge]) -> bool:
        """Flip all edges that bend inwards, beginning with these and those whose triangles change; can that be done?"""
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
        """Put the edge c d in the place of a b, if both triangles then face outwards."""
        c, d = self.across[a, b], self.across[b, a]
        good = (c, d) not in self.across and self._faces_outwards(a, d, c) and self._faces_outwards(b, c, d)
        if good:
            del self.across[a, b], self.across[b, a]
            self._add(a, d, c)
            self._add(b, c, d)
            self.changed += [(a, d), (d, b), (b, c), (c, a)]
        return good

    def _leave_out_below(self, a: int, b: int) -> bool:
        """Leave out the end of an edge that hinders its flip, and close the ring around it by ears."""
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
        """Does the triangle of corner k and those beside it face outwards, with no other corner of the ring in it?"""
        b, c, d = ring[k - 1], ring[k], ring[(k + 1) % len(ring)]
        sides = ((b, c), (c, d), (d, b))
        others = (e for e in ring if e not in (b, c, d))
        return self._faces_outwards(b, c, d) and not any(
            all(_volume(self.points, -1, e, p, q) >= 0 for p, q in sides) for e in others
        )
