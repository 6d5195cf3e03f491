"""Computes the nearest points of two shapes that touch along lines or areas: a point that both of these have in common.

Along the normal that was found, each core touches with a point, an edge, a side line, a cap or a face.  If one of the
cores touches with a point, this is the nearest point.  Else the search's points are only as near to the common part
of the two features, projected along the normal, as its polytope is fine.  They are moved there by the shortest way.
The features of polytopes are those of their facet, if it is known (`facet_depth`).
Source: Featherlane's own method.
"""

from featherlane.prelude import *
from featherlane.collision.convex.feature import DISC, POINT, RIM, RUN, SEGMENT, find_feature, load_corner
from featherlane.collision.convex.manifold import set_contact_axes
from featherlane.collision.convex.normal_refinement import is_point
from featherlane.collision.convex.overlap import cut_by_disc, cut_by_polygon, polygon_orientation
from featherlane.collision.convex.support import support_along

STRICT = 1.0 - 1e-12  # cosine between normal and face normal above which a face touches: stored normals are float32
PARALLEL = 1e-7  # sine below which two edges are parallel
NEAR = 1e-12  # relative to the first witness' distance from the middle of the shapes: nearer points are not moved


@kernel
def touch_along_lines(m1, d1):
    """Returns whether both cores touch with more than a point, in the frame of the first."""
    kinds = d1.shapes.type[0], d1.shapes.type[1]
    several = SPHERE not in kinds and ELLIPSOID not in kinds
    if several:
        n = d1.convex.normal[0]
        support_along(m1, d1, n)
        several = not is_point(m1, d1, 0, n) and not is_point(m1, d1, 1, n)
    return several


@kernel
def cut_by_segment(d1, side, a, e):
    """Returns (from, to): the part of the line a + t e, 0 <= t <= 1, on the segment of `side`, or its crossing."""
    px, py, _ = load_corner(d1, side, 0)
    qx, qy, _ = load_corner(d1, side, 1)
    gx, gy, fx, fy = px - a[0], py - a[1], qx - px, qy - py
    ee, ff, sine = e[0] * e[0] + e[1] * e[1], fx * fx + fy * fy, e[0] * fy - e[1] * fx
    if sine * sine > PARALLEL * PARALLEL * (ee * ff):
        lo = (gx * fy - gy * fx) / sine
        hi = lo
    else:
        lo = (gx * e[0] + gy * e[1]) / ee
        hi = lo + (fx * e[0] + fy * e[1]) / ee
        if hi < lo:
            lo, hi = hi, lo
    return lo, hi


@kernel
def nearest_to_centre(d1, side, a, e):
    """Returns where a line a + t e is nearest to the centre of a disc, times the squared length of e."""
    cx, cy, _ = load_corner(d1, side, RIM)
    return (cx - a[0]) * e[0] + (cy - a[1]) * e[1]


@kernel
def point_on_segment(d1, side):
    """Returns the point of the segment of `side` and the other feature that is nearest to the origin."""
    other = 1 - side
    ax, ay, _ = load_corner(d1, side, 0)
    bx, by, _ = load_corner(d1, side, 1)
    a, e = (ax, ay), (bx - ax, by - ay)
    ee, x, y = e[0] * e[0] + e[1] * e[1], 0.0, 0.0
    if ee > 0.0:
        if d1.feature.count[other] == SEGMENT:
            lo, hi = cut_by_segment(d1, other, a, e)
        elif d1.feature.count[other] == DISC:
            lo, hi = cut_by_disc(d1, other, a, e)
        else:
            lo, hi = cut_by_polygon(d1, other, polygon_orientation(d1, other), a, e)
        if lo > hi and d1.feature.count[other] == DISC:
            # a tangent that misses the disc by rounding
            lo = nearest_to_centre(d1, other, a, e) / ee
            hi = lo
        if lo <= hi:
            t = clip(clip(-(a[0] * e[0] + a[1] * e[1]) / ee, lo, hi), 0.0, 1.0)
            x, y = a[0] + t * e[0], a[1] + t * e[1]
    return x, y


@kernel
def nearest_in_polygon(d1, side, cx, cy):
    """Returns the point of the polygon of `side` that is nearest to a point."""
    sign, o, inside = polygon_orientation(d1, side), 3 * RUN * side, True
    x, y, best = cx, cy, 1e300
    for k in range(o, o + d1.feature.count[side]):
        gx, gy = cx - d1.feature.point[k], cy - d1.feature.point[k + RUN]
        ex, ey = d1.feature.edge[k], d1.feature.edge[k + RUN]
        ee = ex * ex + ey * ey
        if sign * (ex * gy - ey * gx) < 0.0 and ee > 0.0:
            inside = False
        t = clip((gx * ex + gy * ey) / ee, 0.0, 1.0) if ee > 0.0 else 0.0
        vx, vy = gx - t * ex, gy - t * ey
        if vx * vx + vy * vy < best:
            best, x, y = vx * vx + vy * vy, cx - vx, cy - vy
    if inside:
        x, y = cx, cy
    return x, y


@kernel
def nearest_in_area(d1, side, cx, cy):
    """Returns the point of the disc or polygon of `side` that is nearest to a point."""
    if d1.feature.count[side] == DISC:
        ox, oy, _ = load_corner(d1, side, RIM)
        gx, gy, r = cx - ox, cy - oy, d1.shapes.size[side][0]
        gg, x, y = gx * gx + gy * gy, cx, cy
        if gg > r * r:
            s = r / sqrt(gg)
            x, y = ox + s * gx, oy + s * gy
    else:
        x, y = nearest_in_polygon(d1, side, cx, cy)
    return x, y


@kernel
def point_on_disc(d1, side):
    """Returns a point of the disc of `side` and the other area: the other's nearest to the centre, if it has to move.

    The point of a convex area that is nearest to the centre of a disc is in the disc, or the two are apart.
    """
    x, y = nearest_in_area(d1, side, 0.0, 0.0)
    u, v = nearest_in_area(d1, 1 - side, 0.0, 0.0)
    if x != 0.0 or y != 0.0 or u != 0.0 or v != 0.0:
        cx, cy, _ = load_corner(d1, side, RIM)
        x, y = nearest_in_area(d1, 1 - side, cx, cy)
    return x, y


@kernel
def move_to_common_point(m1, d1):
    """Moves the nearest points, in world axes, along the tangents into the common part of the two features.

    Reads:  shapes.*, convex.dist, convex.normal, convex.witness.
    Writes: convex.witness.
    Scratch: feature.*.
    """
    set_contact_axes(d1)
    find_feature(m1, d1, 0, STRICT)
    find_feature(m1, d1, 1, STRICT)
    p, q, x, y = d1.feature.count[0], d1.feature.count[1], 0.0, 0.0
    if p != POINT and q != POINT:
        if p == SEGMENT or q == SEGMENT:
            x, y = point_on_segment(d1, 0 if p == SEGMENT else 1)
        elif p == DISC or q == DISC:
            x, y = point_on_disc(d1, 0 if p == DISC else 1)
    v = d1.shapes.pos[1] - d1.shapes.pos[0]
    r = d1.convex.witness[0] - d1.shapes.pos[0]
    if x * x + y * y > NEAR * NEAR * (dot(v, v) + dot(r, r)):
        s, t, _ = d1.feature.axes[0].rows
        for k in range(2):
            d1.convex.witness[k] = fma(x, s, fma(y, t, d1.convex.witness[k]))
