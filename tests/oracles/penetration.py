"""Computes distance and depth of convex shapes by brute force: all facets of a difference, or a search of directions.

The signed distance of two convex shapes is the largest -h(n) over unit vectors n, where h(n) = h_A(n) + h_B(-n) is the
support function of their difference A - B.  It shares no code with the engine's searches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull

KINDS = {0: "plane", 2: "sphere", 3: "capsule", 4: "ellipsoid", 5: "cylinder", 6: "box", 7: "hull"}  # by geom type
UPRIGHT = 1e-6  # sine between a direction and a plane's normal that is a rounding error of float32
DIRECTIONS = 1000  # of the sphere, from which the search starts
STARTS = 6  # most directions that are refined
CONE = 64  # directions of a cone per refinement
SHRINK, LEVELS = 0.35, 30  # of the cone, from 0.1 rad to 2e-15


@dataclass
class Solid:
    """Holds a convex shape: its kind, sizes as those of a geom, or vertices (n, 3), and its pose.

    Attributes:
        kind: "plane" (the half space below it), "sphere", "capsule", "ellipsoid", "cylinder", "box" or "hull".
    """

    kind: str
    size: np.ndarray
    pos: np.ndarray
    mat: np.ndarray

    def local_height(self, u: np.ndarray) -> np.ndarray:
        """Returns the support function (n,) of the shape about its centre along directions (n, 3) in its frame."""
        s = self.size
        if self.kind == "plane":
            return np.where((np.hypot(u[:, 0], u[:, 1]) < UPRIGHT) & (u[:, 2] > 0.0), 0.0, np.inf)
        if self.kind == "sphere":
            return s[0] * np.linalg.norm(u, axis=1)
        if self.kind == "capsule":
            return s[0] * np.linalg.norm(u, axis=1) + s[1] * np.abs(u[:, 2])
        if self.kind == "ellipsoid":
            return np.linalg.norm(u * s[:3], axis=1)
        if self.kind == "cylinder":
            return s[0] * np.hypot(u[:, 0], u[:, 1]) + s[1] * np.abs(u[:, 2])
        if self.kind == "box":
            return np.abs(u) @ s[:3]
        return (u @ s.T).max(1)

    def beyond(self, point: np.ndarray) -> float:
        """Returns how far a point, in world axes, is outside of the shape [m]; at most 0 inside."""
        x, s = (np.asarray(point) - self.pos) @ self.mat, self.size
        if self.kind == "plane":
            return float(x[2])
        if self.kind == "sphere":
            return float(np.linalg.norm(x) - s[0])
        if self.kind == "capsule":
            return float(np.linalg.norm(x - (0, 0, np.clip(x[2], -s[1], s[1]))) - s[0])
        if self.kind == "ellipsoid":
            return float((np.linalg.norm(x / s[:3]) - 1.0) * s[:3].min())
        if self.kind == "cylinder":
            return float(max(np.hypot(x[0], x[1]) - s[0], abs(x[2]) - s[1]))
        if self.kind == "box":
            return float((np.abs(x) - s[:3]).max())
        planes = ConvexHull(s).equations
        return float((planes[:, :3] @ x + planes[:, 3]).max())

    def corners(self) -> np.ndarray | None:
        """Returns the vertices of the core in world axes, (n, 3); None if it is no polytope.

        The core of a sphere is its centre, that of a capsule its segment; any other shape is its own core.
        """
        if self.kind == "box":
            signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
            points = signs * self.size[:3]
        elif self.kind == "capsule":
            points = np.array([[0.0, 0.0, -self.size[1]], [0.0, 0.0, self.size[1]]])
        elif self.kind in ("sphere", "hull"):
            points = self.size if self.kind == "hull" else np.zeros((1, 3))
        else:
            return None
        return points @ self.mat.T + self.pos

    @property
    def radius(self) -> float:
        """The radius around the core."""
        return float(self.size[0]) if self.kind in ("sphere", "capsule") else 0.0


def solids(model, xpos: np.ndarray, xmat: np.ndarray) -> tuple[Solid, Solid]:
    """Returns the two geoms of a model of one pair in a pose: positions (2, 3), orientations (2, 9)."""
    found = []
    for g, name in enumerate(KINDS[int(kind)] for kind in model.geom_type):
        size, mesh = np.array(model.geom_size[g]), int(model.geom_dataid[g])
        if name == "hull":
            size = np.array(model.hull_vert[model.hull_vertadr[mesh] :][: model.hull_vertnum[mesh]])
        found.append(Solid(name, size, np.array(xpos[g], float), np.array(xmat[g], float).reshape(3, 3)))
    return found[0], found[1]


def overlap(a: Solid, b: Solid, n: np.ndarray) -> np.ndarray:
    """Returns h(n) (k,), by which the shapes overlap along unit vectors (k, 3) from a to b."""
    n = np.atleast_2d(n)
    return a.local_height(n @ a.mat) + b.local_height(-n @ b.mat) - n @ (b.pos - a.pos)


def nearest_on_triangles(p: np.ndarray) -> np.ndarray:
    """Returns the squared distance (n,) of the origin from triangles (n, 3, 3): from planes, edges and corners."""
    best = np.full(len(p), np.inf)
    n = np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0])
    nn = np.einsum("ij,ij->i", n, n)
    inside = nn > 0
    for i in range(3):
        a, b = p[:, i], p[:, (i + 1) % 3]
        inside &= np.einsum("ij,ij->i", n, np.cross(a, b)) >= 0
        e = b - a
        ee = np.einsum("ij,ij->i", e, e)
        t = np.clip(-np.einsum("ij,ij->i", a, e) / np.where(ee > 0, ee, 1.0), 0.0, 1.0)
        x = a + t[:, None] * e
        best = np.minimum(best, np.einsum("ij,ij->i", x, x))
    height = np.einsum("ij,ij->i", n, p[:, 0]) / np.sqrt(np.where(nn > 0, nn, 1.0))
    return np.where(inside, np.minimum(best, height * height), best)


def nearest_on_segments(p: np.ndarray, q: np.ndarray) -> float:
    """Returns the distance of two segments, or points, of one or two ends each (n, 3)."""
    ends = [
        np.linalg.norm(point - _nearest_on_segment(point, other))
        for points, other in ((p, q), (q, p))
        for point in points
    ]
    if len(p) == len(q) == 2:
        # where the lines are nearest to each other, if that is within both segments
        lines = np.stack([p[1] - p[0], q[0] - q[1]], axis=1)
        st = np.linalg.lstsq(lines, q[0] - p[0], rcond=None)[0]
        if (st >= 0).all() and (st <= 1).all():
            ends.append(np.linalg.norm(p[0] - q[0] + lines @ st))
    return float(min(ends))


def _nearest_on_segment(point: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Returns the nearest point of a segment, or of a single point (1, 3)."""
    e = ends[-1] - ends[0]
    return ends[0] + np.clip((point - ends[0]) @ e / max(e @ e, 1e-300), 0.0, 1.0) * e


def polytope_distance(a: Solid, b: Solid) -> tuple[float, np.ndarray]:
    """Returns the signed distance of two shapes whose cores are polytopes, and normals (k, 3) of facets.

    The facets are those of the difference of the cores.  The depth of the cores is attained at the normal of one of
    them; their distance is that of the nearest triangle of the surface.  Points and segments have no facets.
    """
    p, q = a.corners(), b.corners()
    radii = a.radius + b.radius
    if len(p) <= 2 and len(q) <= 2:
        return nearest_on_segments(p, q) - radii, np.zeros((0, 3))
    hull = ConvexHull((p[:, None] - q[None]).reshape(-1, 3))
    normals = np.unique(hull.equations[:, :3], axis=0)
    depth = overlap(a, b, normals).min() - radii
    if depth >= 0.0:
        return -float(depth) - radii, normals
    return float(np.sqrt(nearest_on_triangles(hull.points[hull.simplices]).min())) - radii, normals


def sphere_directions(n: int) -> np.ndarray:
    """Returns nearly uniform directions (n, 3), on a spiral."""
    k = np.arange(n) + 0.5
    z, angle = 1.0 - 2.0 * k / n, k * np.pi * (1.0 + np.sqrt(5.0))
    r = np.sqrt(1.0 - z * z)
    return np.stack([r * np.cos(angle), r * np.sin(angle), z], axis=1)


def searched_distance(a: Solid, b: Solid, rng: np.random.Generator) -> tuple[float, np.ndarray]:
    """Returns the signed distance of two convex shapes and its normal, by cones of directions that become narrower."""
    axes = np.concatenate([a.mat.T, b.mat.T])
    line = (b.pos - a.pos) / max(np.linalg.norm(b.pos - a.pos), 1e-300)
    start = np.concatenate([sphere_directions(DIRECTIONS), axes, -axes, *([line[None]] if line.any() else [])])
    height = overlap(a, b, start)
    order, kept = np.argsort(height), []
    for k in order:
        if len(kept) < STARTS and all(start[k] @ n < 0.97 for n in kept):
            kept.append(start[k])
    found = [_refine(a, b, n, rng) for n in kept]
    least, n = min(found, key=lambda item: item[0])
    return -least, n


def _refine(a: Solid, b: Solid, n: np.ndarray, rng: np.random.Generator) -> tuple[float, np.ndarray]:
    """Returns the least h near a direction, and its direction; a cone that finds a lower one keeps its width."""
    width, least = 0.1, float(overlap(a, b, n)[0])
    for _ in range(4 * LEVELS):
        trial = n + width * rng.uniform(size=(CONE, 1)) * rng.standard_normal((CONE, 3))
        trial /= np.linalg.norm(trial, axis=1, keepdims=True)
        height = overlap(a, b, trial)
        k = int(np.argmin(height))
        if height[k] < least:
            least, n = float(height[k]), trial[k]
        else:
            width *= SHRINK
        if width < 1e-13:
            break
    return least, n


def signed_distance(a: Solid, b: Solid, rng: np.random.Generator) -> float:
    """Returns the signed distance of two convex shapes; the first one may be a plane."""
    if a.kind == "plane":
        return -float(overlap(a, b, a.mat[:, 2])[0])
    if (a.kind, b.kind) == ("sphere", "cylinder"):
        # how far the centre is beyond the side and beyond the caps
        x, y, z = (a.pos - b.pos) @ b.mat
        out = np.array([np.hypot(x, y) - b.size[0], abs(z) - b.size[1]])
        return float(np.linalg.norm(np.maximum(out, 0.0)) + min(out.max(), 0.0) - a.radius)
    if a.corners() is not None and b.corners() is not None:
        return polytope_distance(a, b)[0]
    return searched_distance(a, b, rng)[0]
