"""Computes the overlap of two features, projected along the contact's normal: candidates for contact points.

For a face with a face or an edge, these are the corners of the overlap; for parallel edges, the ends of
the common part.  Such a position becomes a candidate if the features are near enough and it is new.  Clipping of
edges, tests of corners and measurements run eight at once; one edge is clipped by eight polygon edges at once.
Source: MuJoCo's native ccd, with its tolerances.
Deviation: MuJoCo's rim is a polygon, here its crossings with edges are exact; parallel edges touch at two points here,
    at one in MuJoCo.
"""

from featherlane.prelude import *
from featherlane.collision.convex.feature import DISC, EDGE, FEW, ON_EDGE, RIM, RUN, SEGMENT, load_corner

CAPACITY = 160  # capacity of candidates
ROWS = 24  # rows of eight positions: two for the ends of eight edges, one for eight corners
FAR = 1e30  # m distance at an invalid position
SAME = 1e-7  # m positions nearer than this coincide


# ---- candidates ------------------------------------------------------------------------------------------------------
@kernel
def feature_height(d1, side, x, y):
    """Returns the height of the feature at positions: on its plane, or on its line."""
    base = 0
    if d1.feature.count[side] == DISC:
        base = RIM
    p = load_corner(d1, side, base)
    z = p[2] + 0.0 * x
    if d1.feature.count[side] == SEGMENT:
        q = load_corner(d1, side, 1)
        ex, ey = q[0] - p[0], q[1] - p[1]
        ee = ex * ex + ey * ey
        if ee > 0.0:
            z = p[2] + (q[2] - p[2]) * (((x - p[0]) * ex + (y - p[1]) * ey) / ee)
    else:
        n = d1.feature.normal[side]
        z = p[2] - (n[0] * (x - p[0]) + n[1] * (y - p[1])) / n[2]
    return z


@kernel
def measure_overlap(d1, x, y):
    """Returns (height, distance) at positions in both features, halfway between them; FAR beyond the limit.

    The depth along the normal is an upper bound: nearly parallel edges would exceed it away from their crossing.
    """
    low, high = feature_height(d1, 0, x, y), feature_height(d1, 1, x, y)
    dist = high - low
    dist = where(dist < d1.convex.dist[0], d1.convex.dist[0], dist)
    return 0.5 * (low + high), where(dist <= d1.shapes.limit[0], dist, FAR)


@kernel
def measure_places(d1, rows):
    """Computes height and distance at each position, FAR if it is invalid."""
    Q = eights(d1.clip.place)
    for i in range(rows):
        z, dist = measure_overlap(d1, Q[i], Q[i + ROWS])
        Q[i + 2 * ROWS], Q[i + 3 * ROWS] = z, where(Q[i + 3 * ROWS] < FAR, dist, FAR)


@kernel
def add_candidate(d1, x, y, z, dist):
    """Appends a candidate."""
    k = d1.clip.count[0]
    d1.clip.point[0, k], d1.clip.point[1, k], d1.clip.point[2, k], d1.clip.dist[k] = x, y, z, dist
    d1.clip.count[0] = k + 1


@kernel
def is_new_position(d1, x, y):
    """Returns whether the position is apart from all candidates."""
    k, C, E = d1.clip.count[0], d1.clip.point, eights(d1.clip.point)
    # the last ones first: edges that meet duplicate one of these
    for i in range(k - 1, 8 * (k // 8) - 1, -1):
        a, b = C[i] - x, C[i + CAPACITY] - y
        if a * a + b * b < SAME * SAME:
            return False
    for i in range(k // 8):
        a, b = E[i] - x, E[i + CAPACITY // 8] - y
        if any_(a * a + b * b < SAME * SAME):
            return False
    return True


@kernel
def add_place(d1, x, y, z, dist, least):
    """Adds a candidate at a position if it is near enough and new; returns the least distance so far."""
    if dist < FAR and d1.clip.count[0] < CAPACITY and is_new_position(d1, x, y):
        add_candidate(d1, x, y, z, dist)
        if dist < least:
            least = dist
    return least


@kernel
def add_row_place(d1, i, least):
    """Applies `add_place` to position i of `clip.place`."""
    o = 8 * ROWS
    x, y, z, dist = d1.clip.place[i], d1.clip.place[i + o], d1.clip.place[i + 2 * o], d1.clip.place[i + 3 * o]
    return add_place(d1, x, y, z, dist, least)


@kernel
def add_places(d1, edges, corners):
    """Adds candidates at the ends of clipped edges, which are stored in two rows, and at corners.

    Returns the least distance.
    """
    least, first = FAR, 2 * ((edges + 7) // 8)
    measure_places(d1, first + (corners + 7) // 8)
    for k in range(edges):
        i = k + 8 * (k // 8)
        least = add_row_place(d1, i, least)
        least = add_row_place(d1, i + 8, least)
    for k in range(8 * first, 8 * first + corners):
        least = add_row_place(d1, k, least)
    return least


@kernel
def add_ends(d1, ax, ay, bx, by):
    """Adds candidates at two positions; returns the least distance."""
    z, dist = measure_overlap(d1, ax, ay)
    least = add_place(d1, ax, ay, z, dist, FAR)
    z, dist = measure_overlap(d1, bx, by)
    return add_place(d1, bx, by, z, dist, least)


# ---- clipping of one feature by the other ----------------------------------------------------------------------------
@kernel
def polygon_orientation(d1, side):
    """Returns 1 if the polygon is counterclockwise, else -1."""
    s = 1.0
    if d1.feature.normal[side][2] < 0.0:
        s = -s
    return s


@kernel
def meet_edge(sign, p, g, a, e):
    """Returns (t, enters, leaves, misses) of a line a + t e and a polygon's edge g from p on."""
    gx, gy = sign * g[0], sign * g[1]
    here = gx * (a[1] - p[1]) - gy * (a[0] - p[0]) + g[2]
    slope = gx * e[1] - gy * e[0]
    enters, leaves = slope > 0.0, slope < 0.0
    return -here / where(enters | leaves, slope, 1.0), enters, leaves, not_(enters | leaves) & (here < 0.0)


@kernel
def cut_by_polygon(d1, side, sign, a, e):
    """Returns (from, to): the parts of lines a + t e, 0 <= t <= 1, inside the polygon; an empty part has to < from."""
    o, P, E = 3 * RUN * side, d1.feature.point, d1.feature.edge
    lo, hi = where(a[0] < a[0], a[0], 0.0), where(a[0] < a[0], a[0], 1.0)
    misses = lo > hi
    for k in range(o, o + d1.feature.count[side]):
        t, enters, leaves, beside = meet_edge(sign, (P[k], P[k + RUN]), (E[k], E[k + RUN], E[k + 2 * RUN]), a, e)
        lo, hi = where(enters & (t > lo), t, lo), where(leaves & (t < hi), t, hi)
        misses = misses | beside
    return lo, where(misses, lo - 1.0, hi)


@kernel
def cut_by_disc(d1, side, a, e):
    """Returns (from, to): the parts of lines a + t e, 0 <= t <= 1, inside the disc; an empty part has to < from."""
    cx, cy, _ = load_corner(d1, side, RIM)
    r = d1.shapes.size[side][0]
    gx, gy = a[0] - cx, a[1] - cy
    ee, ge = e[0] * e[0] + e[1] * e[1], gx * e[0] + gy * e[1]
    root = ge * ge - ee * (gx * gx + gy * gy - r * r)
    meets = (ee > 0.0) & (root >= 0.0)
    root, ee = sqrt(where(meets, root, 0.0)), where(meets, ee, 1.0)
    lo, hi = (-ge - root) / ee, (-ge + root) / ee
    lo, hi = where(lo > 0.0, lo, 0.0), where(hi < 1.0, hi, 1.0)
    return lo, where(meets, hi, lo - 1.0)


@kernel
def cut_edges(d1, side):
    """Stores where the edges of the feature of `side` enter and leave the other one, which is a polygon or a disc."""
    other, i, run = 1 - side, 3 * RUN // 8 * side, RUN // 8
    P, E, Q = eights(d1.feature.point), eights(d1.feature.edge), eights(d1.clip.place)
    sign = 1.0
    if d1.feature.count[other] != DISC:
        sign = polygon_orientation(d1, other)
    for k in range((d1.feature.count[side] + 7) // 8):
        a, e = (P[i + k], P[i + k + run]), (E[i + k], E[i + k + run])
        if d1.feature.count[other] == DISC:
            lo, hi = cut_by_disc(d1, other, a, e)
        else:
            lo, hi = cut_by_polygon(d1, other, sign, a, e)
        away = where(lo <= hi, 0.0, FAR)
        Q[2 * k], Q[2 * k + ROWS], Q[2 * k + 3 * ROWS] = a[0] + lo * e[0], a[1] + lo * e[1], away
        Q[2 * k + 1], Q[2 * k + 1 + ROWS], Q[2 * k + 1 + 3 * ROWS] = a[0] + hi * e[0], a[1] + hi * e[1], away


@kernel
def add_covered(d1, side, n, first):
    """Adds corners of a polygon, or points on the rim of a disc, that are inside the other feature, a polygon."""
    other, i, run, o = 1 - side, 3 * RUN // 8 * side, RUN // 8, 3 * RUN * (1 - side)
    C, E, P, Q = d1.feature.point, d1.feature.edge, eights(d1.feature.point), eights(d1.clip.place)
    sign = polygon_orientation(d1, other)
    for k in range((n + 7) // 8):
        x, y = P[i + k], P[i + k + run]
        beyond = x < x
        for j in range(o, o + d1.feature.count[other]):
            beyond = beyond | (sign * (E[j] * (y - C[j + RUN]) - E[j + RUN] * (x - C[j])) < -E[j + 2 * RUN])
        Q[first + k], Q[first + k + ROWS], Q[first + k + 3 * ROWS] = x, y, where(beyond, FAR, 0.0)


@kernel
def add_rim(d1, side, first):
    """Adds points on the rim of a disc that are inside the other feature, a disc."""
    cx, cy, _ = load_corner(d1, 1 - side, RIM)
    r = d1.shapes.size[1 - side][0] + ON_EDGE
    i, run, P, Q = 3 * RUN // 8 * side, RUN // 8, eights(d1.feature.point), eights(d1.clip.place)
    for k in range(RIM // 8):
        x, y = P[i + k], P[i + k + run]
        away = where((x - cx) * (x - cx) + (y - cy) * (y - cy) <= r * r, 0.0, FAR)
        Q[first + k], Q[first + k + ROWS], Q[first + k + 3 * ROWS] = x, y, away


@kernel
def part_over_polygon(d1, side, a, e):
    """Returns (from, to): the part of a line a + t e, 0 <= t <= 1, inside the polygon, by eight edges at a time."""
    run, sign, misses = RUN // 8, polygon_orientation(d1, side), False
    P, E, Q, i = eights(d1.feature.point), eights(d1.feature.edge), eights(d1.clip.place), 3 * RUN // 8 * side
    los, his = where(P[i] < P[i], P[i], 0.0), where(P[i] < P[i], P[i], 1.0)
    for k in range(i, i + (d1.feature.count[side] + 7) // 8):
        t, enters, leaves, beside = meet_edge(sign, (P[k], P[k + run]), (E[k], E[k + run], E[k + 2 * run]), a, e)
        los, his = where(enters & (t > los), t, los), where(leaves & (t < his), t, his)
        if any_(beside):
            misses = True
    Q[0], Q[1] = los, his
    lo, hi = d1.clip.place[0, 0], d1.clip.place[0, 8]
    for k in range(1, 8):
        lo, hi = fmax(d1.clip.place[k], lo), fmin(d1.clip.place[8 + k], hi)
    if misses:
        hi = lo - 1.0
    return lo, hi


@kernel
def segment_with_face(d1, side):
    """Adds the overlap of a face and a segment, the feature of `side`; returns the least distance."""
    other = 1 - side
    ax, ay, _ = load_corner(d1, side, 0)
    bx, by, _ = load_corner(d1, side, 1)
    a, e = (ax, ay), (bx - ax, by - ay)
    if d1.feature.count[other] == DISC:
        lo, hi = cut_by_disc(d1, other, a, e)
    elif d1.feature.count[other] <= FEW:
        lo, hi = cut_by_polygon(d1, other, polygon_orientation(d1, other), a, e)
    else:
        lo, hi = part_over_polygon(d1, other, a, e)
    least = FAR
    if lo <= hi:
        least = add_ends(d1, ax + lo * e[0], ay + lo * e[1], ax + hi * e[0], ay + hi * e[1])
    return least


@kernel
def segment_with_segment(d1):
    """Adds the ends of the common part of two nearly parallel segments; returns the least distance."""
    ax, ay, _ = load_corner(d1, 0, 0)
    bx, by, _ = load_corner(d1, 0, 1)
    px, py, _ = load_corner(d1, 1, 0)
    qx, qy, _ = load_corner(d1, 1, 1)
    ex, ey, gx, gy = bx - ax, by - ay, qx - px, qy - py
    ee, gg, sine = ex * ex + ey * ey, gx * gx + gy * gy, ex * gy - ey * gx
    least = FAR
    if sine * sine < EDGE * EDGE * (ee * gg):
        t, s = ((px - ax) * ex + (py - ay) * ey) / ee, ((qx - ax) * ex + (qy - ay) * ey) / ee
        if s < t:
            t, s = s, t
        if t < 0.0:
            t = 0.0 * t
        if s > 1.0:
            s = 0.0 * s + 1.0
        if t <= s:
            least = add_ends(d1, ax + t * ex, ay + t * ey, ax + s * ex, ay + s * ey)
    return least


@kernel
def disc_with_disc(d1):
    """Adds the crossings of two rims, and points of each inside the other; returns the least distance."""
    ax, ay, _ = load_corner(d1, 0, RIM)
    bx, by, _ = load_corner(d1, 1, RIM)
    r, s = d1.shapes.size[0][0], d1.shapes.size[1][0]
    ex, ey = bx - ax, by - ay
    ee, least = ex * ex + ey * ey, FAR
    if ee > SAME * SAME:
        t = 0.5 * (1.0 + (r * r - s * s) / ee)
        square = r * r / ee - t * t
        if square >= 0.0:
            w = sqrt(square)
            cx, cy, ux, uy = ax + t * ex, ay + t * ey, w * ey, w * ex
            least = add_ends(d1, cx - ux, cy + uy, cx + ux, cy - uy)
    add_rim(d1, 0, 0)
    add_rim(d1, 1, RIM // 8)
    return fmin(least, add_places(d1, 0, 2 * RIM))


@kernel
def edges_and_corners(d1, side):
    """Adds the edges of one side clipped by the other, and corners of the other inside the face of this side.

    For two polygons these are corners of the second inside the first, crossings of edges, and corners of the
    first inside the second; for a disc and a polygon, crossings of edges with the rim, and points of the rim.  Returns
    the least distance.
    """
    n = d1.feature.count[side]
    corners = d1.feature.count[1 - side]
    if corners == DISC:
        corners = RIM
    cut_edges(d1, side)
    add_covered(d1, 1 - side, corners, 2 * ((n + 7) // 8))
    return add_places(d1, n, corners)
