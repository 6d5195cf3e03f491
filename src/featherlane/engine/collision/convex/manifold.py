"""Computes contact points of two convex shapes from their features: corners of the overlap of faces, ends of edges.

Both features are projected along the contact's normal.  For a face with a face or an edge, the contact points are the
corners of the overlap; for parallel edges the ends of the common part; else only the nearest points.  The
distance at a point is that of the two planes there, so inclined faces have larger forces where they are
deeper.  Of many points four are kept: the deepest one, and those that span the largest area with it.
Candidate i has contact coordinates clip.point[:, i] (two tangents and the normal) and the distance clip.dist[i].
`eights(field)` is a field as rows of eight values; a coordinate of clip.point has CAPACITY // 8 rows.
feature.count is POINT, SEGMENT, DISC or the number of corners; FACE is the cosine above which a face is in contact
(feature.py).  SAME is the distance within which positions coincide.  m1 and d1 are the model and the data of one world.
convex.dist is the shapes' signed distance, convex.normal points from the first to the second shape, and
convex.witness[side] is the nearest point on each, in world axes.
feature.axes has the tangents and the normal as rows, feature.origin is the origin of the contact coordinates.  FAR is
larger than any distance.  The result is manifold.count points: manifold.pos, manifold.dist and manifold.normal.

Imported kernels:

    find_feature(m1, d1, side, least_cosine)   writes feature.* of `side`
    segment_with_segment, disc_with_disc, ...  add the overlap of both features as candidates; least distance of these
    add_candidate(d1, x, y, z, dist)           writes candidate clip.count, and increases this count

Source: MuJoCo's native ccd, which clips a face or edge of one polytope by a face of the other and keeps four points;
    the tolerances are the same.
Deviation: MuJoCo's normal is that of one of the faces, up to five degrees off; here it is the direction of the depth.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.feature import DISC, FACE, POINT, SEGMENT, find_feature
from featherlane.engine.collision.convex.overlap import (
    CAPACITY,
    FAR,
    SAME,
    add_candidate,
    disc_with_disc,
    edges_and_corners,
    segment_with_face,
    segment_with_segment,
)
from featherlane.engine.collision.frame import frame_of

KEPT = 4  # maximum number of points of one pair
EQUAL = 1e-9  # m distances that differ by less are equal


# ---- selection ------------------------------------------------------------------------------------------------------
@kernel
def load_candidate(d1, i):
    """Returns the contact coordinates of a candidate."""
    return Vec3(d1.clip.point[0, i], d1.clip.point[1, i], d1.clip.point[2, i])


@kernel
def doubled_area(o, a, b):
    """Returns twice the signed area of the triangle o, a, b, from their tangential coordinates: (a - o) x (b - o)."""
    ax, ay, bx, by = a[0] - o[0], a[1] - o[1], b[0] - o[0], b[1] - o[1]
    return ax * by - ay * bx


@kernel
def swap_largest_to(d1, target, tolerance):
    """Swaps candidate `target` with the candidate of largest value in `clip.buffer`, among those from `target` on.

    Of values that are equal within the tolerance, the first is selected.
    """
    count, best = d1.clip.count[0], target
    largest = -FAR
    values = d1.clip.buffer
    rows = eights(d1.clip.buffer)
    for row in range(target // 8, (count + 7) // 8):
        # skips a group of eight without a larger value
        if any_(rows[row] > largest + tolerance):
            for k in range(max(target, 8 * row), min(count, 8 * row + 8)):
                if values[k] > largest + tolerance:
                    largest, best = values[k], k
    # clip.buffer is not swapped: the next selection computes it again
    point_target = load_candidate(d1, target)
    point_best = load_candidate(d1, best)
    dist_target = d1.clip.dist[target]
    dist_best = d1.clip.dist[best]
    d1.clip.point[0, target], d1.clip.point[1, target], d1.clip.point[2, target] = point_best
    d1.clip.point[0, best], d1.clip.point[1, best], d1.clip.point[2, best] = point_target
    d1.clip.dist[target], d1.clip.dist[best] = dist_best, dist_target


@kernel
def move_selected_first(d1):
    """Moves the selected candidates to the front; returns their number, at most KEPT.

    These are the deepest candidate, the farthest from the deepest, the third corner of the largest triangle with these
    two, and the candidate that adds the most area to this triangle.  Of at most KEPT candidates, all are selected.  The
    value to maximize is computed for eight candidates at once, into clip.buffer.
    """
    points, distances, values = eights(d1.clip.point), eights(d1.clip.dist), eights(d1.clip.buffer)
    count = d1.clip.count[0]
    run = CAPACITY // 8  # rows of eight values of a coordinate
    if count > KEPT:
        nrow = (count + 7) // 8
        # the deepest: by depth
        for row in range(nrow):
            values[row] = -distances[row]
        swap_largest_to(d1, target=0, tolerance=EQUAL)
        deepest = load_candidate(d1, 0)
        # the farthest: by the squared distance from the deepest
        for row in range(nrow):
            offset_x = points[row] - deepest[0]
            offset_y = points[row + run] - deepest[1]
            values[row] = offset_x * offset_x + offset_y * offset_y
        swap_largest_to(d1, target=1, tolerance=EQUAL * EQUAL)
        farthest = load_candidate(d1, 1)
        # the third: by the area of the triangle with the first two
        for row in range(nrow):
            values[row] = fabs(doubled_area(deepest, farthest, (points[row], points[row + run])))
        swap_largest_to(d1, target=2, tolerance=EQUAL * EQUAL)
        third = load_candidate(d1, 2)
        sign = -1.0 if doubled_area(deepest, farthest, third) < 0.0 else 1.0
        # the fourth: by the area added beyond each edge of the triangle, whose orientation is `sign`
        for row in range(nrow):
            position = points[row], points[row + run]
            beyond1 = sign * doubled_area(farthest, deepest, position)
            beyond2 = sign * doubled_area(third, farthest, position)
            beyond3 = sign * doubled_area(deepest, third, position)
            values[row] = fmax(beyond3, fmax(beyond2, beyond1))
        swap_largest_to(d1, target=3, tolerance=EQUAL * EQUAL)
        count = KEPT
    return count


@kernel
def store_candidates(d1, count):
    """Stores the first `count` candidates as contact points in manifold.*, in the frame of convex.*."""
    axes, origin = d1.feature.axes[0], d1.feature.origin[0]  # rows of axes: two tangents and the normal
    for k in range(count):
        d1.manifold.pos[k] = axes.T @ load_candidate(d1, k) + origin
        d1.manifold.dist[k] = d1.clip.dist[k]
        d1.manifold.normal[k] = axes.rows[2]
    d1.manifold.count[0] = count


@kernel
def add_candidates(m1, d1):
    """Adds the overlap of the two features as candidates to clip.*; returns their least distance, FAR without one."""
    least = FAR
    find_feature(m1, d1, side=0, least_cosine=FACE)  # writes feature.*[0]
    count1 = d1.feature.count[0]
    if count1 != POINT:
        find_feature(m1, d1, side=1, least_cosine=FACE)
        count2 = d1.feature.count[1]
        # the side whose edges are clipped: a segment by a face, a polygon by a disc, the second polygon by the first
        side = 0 if count1 == SEGMENT or count2 == DISC else 1
        if count1 == SEGMENT and count2 == SEGMENT:
            least = segment_with_segment(d1)
        elif count1 == DISC and count2 == DISC:
            least = disc_with_disc(d1)
        elif count2 != POINT and d1.feature.count[side] == SEGMENT:
            least = segment_with_face(d1, side)
        elif count2 != POINT:
            least = edges_and_corners(d1, side)
    return least


@kernel
def add_nearest(d1):
    """Adds the middle of the nearest points as a candidate, with the distance convex.dist.

    It replaces a candidate at the same position, whose distance may differ if a face's corners are not exactly
    coplanar.
    """
    index, count = d1.clip.count[0], d1.clip.count[0]
    for k in range(count):
        x, y, _ = load_candidate(d1, k)
        # the middle of the nearest points is the origin of the contact coordinates
        if x * x + y * y < SAME * SAME:
            index = k
    if index < CAPACITY:
        d1.clip.count[0] = index  # `add_candidate` writes candidate clip.count
        add_candidate(d1, x=0.0, y=0.0, z=0.0, dist=d1.convex.dist[0])
        d1.clip.count[0] = max(count, index + 1)


@kernel
def set_contact_axes(d1):
    """Sets the contact coordinates from convex.*: two tangents and the normal, and the middle of the nearest points.

    Writes: feature.axes, with the tangents and the normal as rows; feature.origin.
    """
    normal, tangent1, tangent2 = frame_of(d1.convex.normal[0]).rows
    d1.feature.axes[0] = join(tangent1, tangent2, normal)
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
    set_contact_axes(d1)  # writes feature.axes, feature.origin
    d1.clip.count[0] = 0
    least = FAR
    if m1.opt_disableflags & DISABLE_MULTICCD == 0:
        least = add_candidates(m1, d1)  # writes clip.*
    # the nearest points are a contact unless a candidate is as near; least is FAR if there is no candidate
    if d1.convex.dist[0] < least - EQUAL:
        add_nearest(d1)
    store_candidates(d1, move_selected_first(d1))
