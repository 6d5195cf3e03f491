"""Contact points of two convex shapes from how they meet: corners of the overlap of two faces, ends of an edge.

Both features are looked at along the contact's normal.  Where a face meets a face or an edge, the corners of what both
cover touch; where an edge meets an edge along it, the ends of the common part; else the nearest points alone.  The
distance at a point is that of the two planes there, so faces that lean towards each other press more where they are
deeper.  Of many points four are kept: the deepest one, and those that span the largest area with it.
Source: MuJoCo's native ccd, which clips a face or edge of one polytope by a face of the other and keeps four points;
    the tolerances are its own.
Deviation: MuJoCo's normal is then that of one of the faces, up to five degrees off, here it is that of the depth; a rim
    is a polygon there, here its crossings with edges are exact; parallel edges touch at two points here, at one there.
"""

from __future__ import annotations

from featherlane.collision.feature import DISC, EDGE, POINT, RIM, SEGMENT, find_feature
from featherlane.collision.frame import frame_of
from featherlane.lanes import fabs, kernel, real, sqrt, stage
from featherlane.spatial.vector import load3, load9, mat_t_mul_vec, store3

KEPT = 4  # points of one pair
ROOM = 160  # points before some are chosen
ON_EDGE = 1e-9  # m a point beyond an edge by less is on it
SAME = 1e-7  # m points nearer than this are one
EQUAL = 1e-9  # m distances that differ by less are equal


# ---- candidates ------------------------------------------------------------------------------------------------------
@kernel
def height(d1, side, x, y):
    """How high the feature is at a place: on its plane, or on its line."""
    o = 192 * side
    p = load3(d1.feature_point, o)
    z = p[2]
    if d1.feature_count[side] == SEGMENT:
        q = load3(d1.feature_point, o + 3)
        ex, ey = q[0] - p[0], q[1] - p[1]
        ee = ex * ex + ey * ey
        if ee > 0.0:
            z = z + (q[2] - z) * (((x - p[0]) * ex + (y - p[1]) * ey) / ee)
    else:
        n = load3(d1.feature_normal, 3 * side)
        z = z - (n[0] * (x - p[0]) + n[1] * (y - p[1])) / n[2]
    return z


@kernel
def add_candidate(d1, x, y):
    """A place that both features cover; clip_count counts those near enough, once each.

    None is deeper than the depth along the normal; edges that are parallel only nearly would say so off their crossing.
    """
    k = d1.clip_count[0]
    low, high = height(d1, 0, x, y), height(d1, 1, x, y)
    dist = high - low
    if dist < d1.convex_dist[0]:
        dist = d1.convex_dist[0]
    new = dist <= d1.shape_limit[0] and k < ROOM
    for i in range(k):
        a, b = d1.clip_point[3 * i] - x, d1.clip_point[3 * i + 1] - y
        if a * a + b * b < SAME * SAME:
            new = False
    if new:
        d1.clip_point[3 * k], d1.clip_point[3 * k + 1], d1.clip_point[3 * k + 2] = x, y, 0.5 * (low + high)
        d1.clip_dist[k] = dist
        d1.clip_count[0] = k + 1


@kernel
def corner(d1, side, k):
    """(x, y) of a corner of a feature."""
    return d1.feature_point[192 * side + 3 * k], d1.feature_point[192 * side + 3 * k + 1]


@kernel
def turn(d1, side):
    """1 if the polygon runs counterclockwise, -1 if not."""
    n, area = d1.feature_count[side], real(d1, 0.0)
    ox, oy = corner(d1, side, 0)
    for k in range(1, n - 1):
        ax, ay = corner(d1, side, k)
        bx, by = corner(d1, side, k + 1)
        area = area + ((ax - ox) * (by - oy) - (ay - oy) * (bx - ox))
    s = real(d1, 1.0)
    if area < 0.0:
        s = -s
    return s


@kernel
def is_inside(d1, side, sign, x, y):
    """Does the polygon cover the place?"""
    n, inside = d1.feature_count[side], True
    for k in range(n):
        ax, ay = corner(d1, side, k)
        bx, by = corner(d1, side, (k + 1) % n)
        ex, ey = bx - ax, by - ay
        if sign * (ex * (y - ay) - ey * (x - ax)) < -ON_EDGE * sqrt(ex * ex + ey * ey):
            inside = False
    return inside


@kernel
def is_on_disc(d1, side, x, y):
    """Does the disc cover the place?"""
    cx, cy = corner(d1, side, 0)
    r = d1.shape_size[3 * side] + ON_EDGE
    return (x - cx) * (x - cx) + (y - cy) * (y - cy) <= r * r


# ---- a segment with the rest -----------------------------------------------------------------------------------------
@kernel
def clip_by_polygon(d1, side, sign, ax, ay, ex, ey):
    """(from, to): the part of the line a + t e, 0 <= t <= 1, that the polygon covers."""
    n = d1.feature_count[side]
    lo, hi = real(d1, 0.0), real(d1, 1.0)
    for k in range(n):
        px, py = corner(d1, side, k)
        qx, qy = corner(d1, side, (k + 1) % n)
        gx, gy = sign * (qx - px), sign * (qy - py)
        here = gx * (ay - py) - gy * (ax - px) + ON_EDGE * sqrt(gx * gx + gy * gy)
        slope = gx * ey - gy * ex
        if slope > 0.0:
            t = -here / slope
            if t > lo:
                lo = t
        elif slope < 0.0:
            t = -here / slope
            if t < hi:
                hi = t
        elif here < 0.0:
            hi = lo - 1.0
    return lo, hi


@kernel
def clip_by_disc(d1, side, ax, ay, ex, ey):
    """(from, to): the part of the line a + t e, 0 <= t <= 1, that the disc covers."""
    cx, cy = corner(d1, side, 0)
    r = d1.shape_size[3 * side]
    lo, hi = real(d1, 0.0), real(d1, 1.0)
    gx, gy = ax - cx, ay - cy
    ee, ge = ex * ex + ey * ey, gx * ex + gy * ey
    root = ge * ge - ee * (gx * gx + gy * gy - r * r)
    if ee > 0.0 and root >= 0.0:
        root = sqrt(root)
        if (-ge - root) / ee > lo:
            lo = (-ge - root) / ee
        if (-ge + root) / ee < hi:
            hi = (-ge + root) / ee
    else:
        hi = lo - 1.0
    return lo, hi


@kernel
def segment_with_face(d1, side):
    """The segment is the feature of `side`."""
    other = 1 - side
    ax, ay = corner(d1, side, 0)
    bx, by = corner(d1, side, 1)
    ex, ey = bx - ax, by - ay
    if d1.feature_count[other] == DISC:
        lo, hi = clip_by_disc(d1, other, ax, ay, ex, ey)
    else:
        lo, hi = clip_by_polygon(d1, other, turn(d1, other), ax, ay, ex, ey)
    if lo <= hi:
        add_candidate(d1, ax + lo * ex, ay + lo * ey)
        add_candidate(d1, ax + hi * ex, ay + hi * ey)


@kernel
def segment_with_segment(d1):
    """The ends of the common part of two segments that are parallel, give or take."""
    ax, ay = corner(d1, 0, 0)
    bx, by = corner(d1, 0, 1)
    px, py = corner(d1, 1, 0)
    qx, qy = corner(d1, 1, 1)
    ex, ey, gx, gy = bx - ax, by - ay, qx - px, qy - py
    ee, gg, sine = ex * ex + ey * ey, gx * gx + gy * gy, ex * gy - ey * gx
    if sine * sine < EDGE * EDGE * (ee * gg):
        t, s = ((px - ax) * ex + (py - ay) * ey) / ee, ((qx - ax) * ex + (qy - ay) * ey) / ee
        if s < t:
            t, s = s, t
        if t < 0.0:
            t = 0.0 * t
        if s > 1.0:
            s = 0.0 * s + 1.0
        if t <= s:
            add_candidate(d1, ax + t * ex, ay + t * ey)
            add_candidate(d1, ax + s * ex, ay + s * ey)


# ---- faces -----------------------------------------------------------------------------------------------------------
@kernel
def polygon_with_polygon(d1):
    """Corners of the second within the first, crossings of edges, corners of the first within the second.

    Each edge of the second is cut to the part that the first covers: its ends are corners of the overlap.
    """
    n, sign = d1.feature_count[1], turn(d1, 0)
    for k in range(n):
        ax, ay = corner(d1, 1, k)
        bx, by = corner(d1, 1, (k + 1) % n)
        lo, hi = clip_by_polygon(d1, 0, sign, ax, ay, bx - ax, by - ay)
        if lo <= hi:
            add_candidate(d1, ax + lo * (bx - ax), ay + lo * (by - ay))
            add_candidate(d1, ax + hi * (bx - ax), ay + hi * (by - ay))
    sign = turn(d1, 1)
    for k in range(d1.feature_count[0]):
        x, y = corner(d1, 0, k)
        if is_inside(d1, 1, sign, x, y):
            add_candidate(d1, x, y)


@kernel
def disc_with_polygon(d1, side):
    """Where edges enter and leave the disc, and points of its rim that the polygon covers; the disc is of `side`."""
    other = 1 - side
    n = d1.feature_count[other]
    for k in range(n):
        ax, ay = corner(d1, other, k)
        bx, by = corner(d1, other, (k + 1) % n)
        lo, hi = clip_by_disc(d1, side, ax, ay, bx - ax, by - ay)
        if lo <= hi:
            add_candidate(d1, ax + lo * (bx - ax), ay + lo * (by - ay))
            add_candidate(d1, ax + hi * (bx - ax), ay + hi * (by - ay))
    sign = turn(d1, other)
    for k in range(1, RIM + 1):
        x, y = corner(d1, side, k)
        if is_inside(d1, other, sign, x, y):
            add_candidate(d1, x, y)


@kernel
def disc_with_disc(d1):
    """Where two rims cross, and points of each that the other covers."""
    ax, ay = corner(d1, 0, 0)
    bx, by = corner(d1, 1, 0)
    r, s = d1.shape_size[0], d1.shape_size[3]
    ex, ey = bx - ax, by - ay
    ee = ex * ex + ey * ey
    if ee > SAME * SAME:
        t = 0.5 * (1.0 + (r * r - s * s) / ee)
        square = r * r / ee - t * t
        if square >= 0.0:
            w = sqrt(square)
            add_candidate(d1, ax + t * ex - w * ey, ay + t * ey + w * ex)
            add_candidate(d1, ax + t * ex + w * ey, ay + t * ey - w * ex)
    for side in range(2):
        for k in range(1, RIM + 1):
            x, y = corner(d1, side, k)
            if is_on_disc(d1, 1 - side, x, y):
                add_candidate(d1, x, y)


# ---- the choice ------------------------------------------------------------------------------------------------------
@kernel
def doubled_area(d1, i, j, k):
    """Twice the signed area of three candidates."""
    ox, oy = d1.clip_point[3 * i], d1.clip_point[3 * i + 1]
    ax, ay = d1.clip_point[3 * j] - ox, d1.clip_point[3 * j + 1] - oy
    bx, by = d1.clip_point[3 * k] - ox, d1.clip_point[3 * k + 1] - oy
    return ax * by - ay * bx


@kernel
def swap_candidates(d1, i, j):
    """Change the places of two candidates."""
    a, b, x, y = load3(d1.clip_point, 3 * i), load3(d1.clip_point, 3 * j), d1.clip_dist[i], d1.clip_dist[j]
    store3(d1.clip_point, 3 * i, b)
    store3(d1.clip_point, 3 * j, a)
    d1.clip_dist[i], d1.clip_dist[j] = y, x


@kernel
def choose(d1):
    """Bring the candidates that are kept to the front; returns how many.

    The deepest, the farthest from it, the one that spans the largest triangle with them, and the one that adds most.
    """
    n, best = d1.clip_count[0], 0
    if n > KEPT:
        for k in range(1, n):
            if d1.clip_dist[k] < d1.clip_dist[best] - EQUAL:
                best = k
        swap_candidates(d1, 0, best)
        most, best = real(d1, -1.0), 1
        for k in range(1, n):
            a, b = d1.clip_point[3 * k] - d1.clip_point[0], d1.clip_point[3 * k + 1] - d1.clip_point[1]
            if a * a + b * b > most + EQUAL * EQUAL:
                most, best = a * a + b * b, k
        swap_candidates(d1, 1, best)
        most, best = real(d1, -1.0), 2
        for k in range(2, n):
            area = fabs(doubled_area(d1, 0, 1, k))
            if area > most + EQUAL * EQUAL:
                most, best = area, k
        swap_candidates(d1, 2, best)
        sign = real(d1, 1.0)
        if doubled_area(d1, 0, 1, 2) < 0.0:
            sign = -sign
        most, best = real(d1, -1.0), 3
        for k in range(3, n):
            # beyond one of the triangle's edges
            a, b, c = doubled_area(d1, 1, 0, k), doubled_area(d1, 2, 1, k), doubled_area(d1, 0, 2, k)
            area = sign * a
            if sign * b > area:
                area = sign * b
            if sign * c > area:
                area = sign * c
            if area > most + EQUAL * EQUAL:
                most, best = area, k
        swap_candidates(d1, 3, best)
        n = KEPT
    return n


@kernel
def store_candidate(d1, k, i):
    """Candidate i as point k."""
    p = load3(d1.clip_point, 3 * i)
    p = mat_t_mul_vec(load9(d1.contact_axes, 0), p)
    for c in range(3):
        d1.manifold_pos[3 * k + c] = p[c] + d1.contact_axes[9 + c]
    d1.manifold_dist[k] = d1.clip_dist[i]
    store3(d1.manifold_normal, 3 * k, load3(d1.contact_axes, 6))


@kernel
def include_nearest(d1):
    """The nearest points themselves where no candidate is as near as they are."""
    n, least = d1.clip_count[0], real(d1, 1e30)
    for k in range(n):
        if d1.clip_dist[k] < least:
            least = d1.clip_dist[k]
    if d1.convex_dist[0] < least - EQUAL and n < ROOM:
        d1.clip_point[3 * n], d1.clip_point[3 * n + 1], d1.clip_point[3 * n + 2] = 0.0, 0.0, 0.0
        d1.clip_dist[n] = d1.convex_dist[0]
        d1.clip_count[0] = n + 1


@stage
def contact_points(m1, d1):
    """Contact points of two convex shapes whose distance is known and within the limit.

    Reads:  shape_*, shape_limit; convex_dist, convex_normal, convex_witness.
    Writes: manifold_*, up to KEPT points; contact_axes, feature_*, clip_* for itself.
    Frame:  world.                                  Cost: corners of one face times corners of the other.
    """
    R = frame_of(load3(d1.convex_normal, 0))
    a, b = load3(d1.convex_witness, 0), load3(d1.convex_witness, 3)
    for i in range(3):
        d1.contact_axes[i], d1.contact_axes[3 + i], d1.contact_axes[6 + i] = R[3 + i], R[6 + i], R[i]
        d1.contact_axes[9 + i] = 0.5 * (a[i] + b[i])
    d1.clip_count[0] = 0
    find_feature(m1, d1, 0)
    find_feature(m1, d1, 1)
    p, q = d1.feature_count[0], d1.feature_count[1]
    if p != POINT and q != POINT:
        if p == SEGMENT and q == SEGMENT:
            segment_with_segment(d1)
        elif p == SEGMENT:
            segment_with_face(d1, 0)
        elif q == SEGMENT:
            segment_with_face(d1, 1)
        elif p == DISC and q == DISC:
            disc_with_disc(d1)
        elif p == DISC:
            disc_with_polygon(d1, 0)
        elif q == DISC:
            disc_with_polygon(d1, 1)
        else:
            polygon_with_polygon(d1)
    include_nearest(d1)
    n = choose(d1)
    for k in range(n):
        store_candidate(d1, k, k)
    d1.manifold_count[0] = n
