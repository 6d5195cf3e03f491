"""Computes contact points of two convex shapes from their features: corners of the overlap of faces, ends of edges.

Both features are projected along the contact's normal.  For a face with a face or an edge, the contact points are the
corners of the overlap; for parallel edges the ends of the common part; else only the nearest points.  The
distance at a point is that of the two planes there, so inclined faces have larger forces where they are
deeper.  Of many points four are kept: the deepest one, and those that span the largest area with it.
Source: MuJoCo's native ccd, which clips a face or edge of one polytope by a face of the other and keeps four points;
    the tolerances are the same.
Deviation: MuJoCo's normal is that of one of the faces, up to five degrees off; here it is the direction of the depth.
"""

from featherlane.prelude import *
from featherlane.collision.convex.feature import DISC, FACE, POINT, SEGMENT, find_feature
from featherlane.collision.convex.overlap import (
    CAPACITY,
    FAR,
    SAME,
    add_candidate,
    disc_with_disc,
    edges_and_corners,
    segment_with_face,
    segment_with_segment,
)
from featherlane.collision.frame import frame_of

KEPT = 4  # maximum number of points of one pair
EQUAL = 1e-9  # m distances that differ by less are equal


# ---- selection ------------------------------------------------------------------------------------------------------
@kernel
def load_candidate(d1, i):
    """Returns the position of a candidate."""
    return Vec3(d1.clip.point[0, i], d1.clip.point[1, i], d1.clip.point[2, i])


@kernel
def doubled_area(o, a, b):
    """Returns twice the signed area of three positions."""
    ax, ay, bx, by = a[0] - o[0], a[1] - o[1], b[0] - o[0], b[1] - o[1]
    return ax * by - ay * bx


@kernel
def bring_forward(d1, first, least):
    """Swaps candidate `first` with the candidate of largest value in `clip.place`, among those from `first` on.

    Among equal ones, within `least`, the first is selected; groups of eight without a larger value are skipped.
    """
    n, best, most, V, W = d1.clip.count[0], first, -FAR, d1.clip.place, eights(d1.clip.place)
    for i in range(first // 8, (n + 7) // 8):
        if any_(W[i] > most + least):
            for k in range(max(first, 8 * i), min(n, 8 * i + 8)):
                if V[k] > most + least:
                    most, best = V[k], k
    a, b, x, y = load_candidate(d1, first), load_candidate(d1, best), d1.clip.dist[first], d1.clip.dist[best]
    d1.clip.point[0, first], d1.clip.point[1, first], d1.clip.point[2, first] = b
    d1.clip.point[0, best], d1.clip.point[1, best], d1.clip.point[2, best] = a
    d1.clip.dist[first], d1.clip.dist[best] = y, x


@kernel
def move_selected_first(d1):
    """Moves the selected candidates to the front; returns their number.

    These are the deepest, the farthest from it, the one of the largest triangle with them, and the one that adds most.
    """
    n, C, D, V, run = (
        d1.clip.count[0],
        eights(d1.clip.point),
        eights(d1.clip.dist),
        eights(d1.clip.place),
        CAPACITY // 8,
    )
    if n > KEPT:
        rows = (n + 7) // 8
        for i in range(rows):
            V[i] = -D[i]
        bring_forward(d1, 0, EQUAL)
        p = load_candidate(d1, 0)
        for i in range(rows):
            x, y = C[i] - p[0], C[i + run] - p[1]
            V[i] = x * x + y * y
        bring_forward(d1, 1, EQUAL * EQUAL)
        q = load_candidate(d1, 1)
        for i in range(rows):
            V[i] = fabs(doubled_area(p, q, (C[i], C[i + run])))
        bring_forward(d1, 2, EQUAL * EQUAL)
        r, sign = load_candidate(d1, 2), 1.0
        if doubled_area(p, q, r) < 0.0:
            sign = -sign
        for i in range(rows):
            # outside one of the triangle's edges
            x = C[i], C[i + run]
            a, b, c = sign * doubled_area(q, p, x), sign * doubled_area(r, q, x), sign * doubled_area(p, r, x)
            V[i] = fmax(c, fmax(b, a))
        bring_forward(d1, 3, EQUAL * EQUAL)
        n = KEPT
    return n


@kernel
def store_candidates(d1, n):
    """Stores the first candidates as contact points."""
    R, c = d1.feature.axes[0], d1.feature.origin[0]
    for k in range(n):
        d1.manifold.pos[k] = R.T @ load_candidate(d1, k) + c
        d1.manifold.dist[k] = d1.clip.dist[k]
        d1.manifold.normal[k] = R.rows[2]
    d1.manifold.count[0] = n


@kernel
def add_candidates(m1, d1):
    """Adds candidates for contact points; returns the least distance."""
    least = FAR
    find_feature(m1, d1, 0, FACE)
    p = d1.feature.count[0]
    if p != POINT:
        find_feature(m1, d1, 1, FACE)
        q = d1.feature.count[1]
        side = 0 if p == SEGMENT or q == DISC else 1
        if p == SEGMENT and q == SEGMENT:
            least = segment_with_segment(d1)
        elif p == DISC and q == DISC:
            least = disc_with_disc(d1)
        elif q != POINT and d1.feature.count[side] == SEGMENT:
            least = segment_with_face(d1, side)
        elif q != POINT:
            least = edges_and_corners(d1, side)
    return least


@kernel
def add_nearest(d1):
    """Adds the nearest points themselves as a candidate, if no other is as near.

    It replaces a candidate at the same position: if a face's corners leave its plane, its corner has another depth.
    """
    place, n = d1.clip.count[0], d1.clip.count[0]
    for k in range(n):
        x, y, _ = load_candidate(d1, k)
        if x * x + y * y < SAME * SAME:
            place = k
    if place < CAPACITY:
        d1.clip.count[0] = place
        add_candidate(d1, 0.0, 0.0, 0.0, d1.convex.dist[0])
        d1.clip.count[0] = max(n, place + 1)


@kernel
def set_contact_axes(d1):
    """Sets the contact coordinates: two tangents, the normal, and the middle of the nearest points."""
    n, s, t = frame_of(d1.convex.normal[0]).rows
    d1.feature.axes[0] = join(s, t, n)
    d1.feature.origin[0] = 0.5 * (d1.convex.witness[0] + d1.convex.witness[1])


@stage
def contact_points(m1, d1):
    """Computes contact points of two convex shapes whose distance is known and within the limit.

    With the flag `multiccd` disabled, only the middle of the nearest points is one, as in MuJoCo.

    Reads:  shapes.*, shapes.limit; convex.dist, convex.normal, convex.witness; facet.kind, facet.vertex.
    Writes: manifold.*, up to KEPT points.
    Scratch: feature.*, clip.*.
    Frame:  world.                                  Cost: corners of one face times corners of the other.
    """
    set_contact_axes(d1)
    d1.clip.count[0] = 0
    least = FAR
    if m1.opt_disableflags & DISABLE_MULTICCD == 0:
        least = add_candidates(m1, d1)
    if d1.convex.dist[0] < least - EQUAL:
        add_nearest(d1)
    store_candidates(d1, move_selected_first(d1))
