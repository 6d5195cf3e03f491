"""Proves the deepest contact of two convex shapes, and finds the poses in which MuJoCo's closed forms are not exact.

A contact's normal n proves its distance: the shapes overlap by -dist along n.  No direction that brute force finds
(`penetration.py`) may have less overlap.
"""

from __future__ import annotations

import numpy as np

from oracles.penetration import Solid, overlap, signed_distance

INCLINED = 0.0888 * 0.6  # m: faces and edges that are inclined by up to five degrees have points between them
# MuJoCo's rules: the distances of capsules within 1e-4 of parallel are those at the ends of their overlap; of boxes, a
# face is preferred to a pair of edges whose depth is less by up to 5 %
RULES = {("capsule", "capsule"): (1e-4 * 0.6, 0.0), ("box", "box"): (0.0, 0.05)}
MEETING = 1e-7  # m: distance of centres that coincide
NEAR_BOX = 1e-4  # m: distance of a segment from a box, above the one at which it meets the box
# sine of a tilt below which MuJoCo's points leave the rim of a cylinder: its direction has an error of 1e-16 / sine
UPRIGHT = 1e-5


def assert_exact(a: Solid, b: Solid, points, exact: float, limit: float, distance: float, along: float) -> None:
    """Asserts that contacts exist below the limit, and that the deepest one has the exact signed distance.

    Args:
        points: contacts with the fields `dist`, `pos` and `frame`.
        exact: signed distance of the shapes by brute force; at most the true one [m].
        distance, along: errors of a distance, and of the overlap along a normal [m].
    """
    if len(points) == 0:
        assert exact > limit - distance, exact
        return
    dist, pos = np.asarray(points["dist"], float), np.asarray(points["pos"], float).reshape(-1, 3)
    n = np.asarray(points["frame"], float).reshape(-1, 9)[:, :3]
    k = int(np.argmin(dist))
    constant, relative = RULES.get((a.kind, b.kind), (0.0, 0.0))
    allowed = distance + constant + relative * abs(exact)
    assert dist[k] > exact - allowed, (dist[k], exact)
    assert abs(dist[k] + overlap(a, b, n[k])[0]) < along + allowed, (dist[k], exact)
    for point, d, normal in zip(pos, dist, n, strict=True):
        assert max(a.beyond(point - 0.5 * d * normal), b.beyond(point + 0.5 * d * normal)) < INCLINED


def is_disputed(a: Solid, b: Solid, theirs, rng: np.random.Generator) -> bool:
    """Returns whether MuJoCo's contacts of two shapes are not exact, or not all contacts of such a pose.

    - The segment of a capsule meets a box: MuJoCo computes spheres on it.
    - A cylinder stands almost upright on a plane: its points are off the rim.
    - Centres coincide, on axes or on a rim: any normal across these is exact, and MuJoCo's may be along an axis.
    """
    kinds = (a.kind, b.kind)
    if kinds == ("capsule", "box"):
        return signed_distance(a, b, rng) + a.radius < NEAR_BOX
    if kinds == ("plane", "cylinder"):
        return 0.0 < np.linalg.norm(np.cross(a.mat[:, 2], b.mat[:, 2])) < UPRIGHT
    if len(theirs["dist"]) == 0 or kinds not in {("sphere", "capsule"), ("sphere", "cylinder"), ("capsule", "capsule")}:
        return False
    # the distance of the centres; a sphere on a rim is a point on the other side
    centres = np.min(theirs["dist"]) + a.radius
    return bool(min(abs(centres), abs(centres + b.size[0])) < MEETING)
