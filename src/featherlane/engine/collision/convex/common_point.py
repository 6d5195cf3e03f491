"""Computes the nearest points of two shapes that touch along lines or areas: a point that both of these have in common.

Along the normal that was found, each core touches with a point, an edge, a side line, a cap or a face.  If one of the
cores touches with a point, this is the nearest point.  Else the search's points are only as near to the common part
of the two features, projected along the normal, as its polytope is fine.  They are moved there by the shortest way.
The features of polytopes are those of their facet, if it is known (`facet_depth`).
Points are two-dimensional here: coordinates along the two tangents of the contact, whose origin is the middle of the
nearest points.  A feature is stored for each side in feature.*: feature.count is POINT, SEGMENT, DISC or a polygon's
number of corners; corner k is `load_corner`, and the middle of a disc is corner RIM.
m1 and d1 are the model and the data of one world; shapes.*[side] has the type, the size and the pose of each shape.
The core of a sphere is its centre, that of a capsule its segment; any other shape is its own core.
convex.dist is the distance, convex.normal points from the first to the second shape, convex.witness[side] is the
nearest point on each.

Imported kernels:

    support_along(m1, d1, u)         support point of the difference along u; writes support.* of both cores
    is_point(m1, d1, side, n)        whether a core touches with a single point; n: the normal; reads support.vertex
    cut_by_polygon, cut_by_disc      (lo, hi): part of the line a + t e in the feature of `side`; empty: hi < lo
    polygon_orientation(d1, side)    1 if the polygon is counterclockwise, else -1
    find_feature(m1, d1, side, ...)  writes feature.* of `side`; least_cosine: of a face that touches
    set_contact_axes(d1)             writes the tangents, normal and origin of the contact coordinates

Source: Featherlane's own method.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.feature import DISC, POINT, RIM, RUN, SEGMENT, find_feature, load_corner
from featherlane.engine.collision.convex.manifold import set_contact_axes
from featherlane.engine.collision.convex.normal_refinement import is_point
from featherlane.engine.collision.convex.overlap import cut_by_disc, cut_by_polygon, polygon_orientation
from featherlane.engine.collision.convex.support import support_along

TOUCHING_COSINE = 1.0 - 1e-12  # cosine of the angle between two normals of faces that touch: stored ones are float32
HUGE = 1e300  # m^2: above any squared distance
PARALLEL = 1e-7  # sine below which two edges are parallel
# least length of a move, relative to the distance of the shapes' centres and that of the first witness from its centre
NEAR = 1e-12


@kernel
def touch_along_lines(m1, d1):
    """Returns whether both cores touch with more than a point.

    Reads: convex.normal, in the frame of the first shape.  Writes: support.*.
    """
    kinds = d1.shapes.type[0], d1.shapes.type[1]
    touch = SPHERE not in kinds and ELLIPSOID not in kinds  # spheres and ellipsoids touch with a point
    if touch:
        normal = d1.convex.normal[0]
        support_along(m1, d1, normal)  # writes support.vertex, which is_point reads
        touch = not is_point(m1, d1, 0, normal) and not is_point(m1, d1, 1, normal)
    return touch


@kernel
def interval_on_segment(d1, side, a, e):
    """Returns (lo, hi): the part lo <= t <= hi of the line a + t e that the segment of `side` covers.

    If they are parallel, this is the projection of the segment on the line; otherwise lo = hi is where the line crosses
    the line of the segment, also beyond its ends.   a, e: two coordinates each.
    """
    start_x, start_y, _ = load_corner(d1, side, 0)
    end_x, end_y, _ = load_corner(d1, side, 1)
    offset_x, offset_y = start_x - a[0], start_y - a[1]
    edge_x, edge_y = end_x - start_x, end_y - start_y
    e_squared = e[0] * e[0] + e[1] * e[1]
    edge_squared = edge_x * edge_x + edge_y * edge_y
    cross_product = e[0] * edge_y - e[1] * edge_x
    if cross_product * cross_product > PARALLEL * PARALLEL * (e_squared * edge_squared):
        # crossing: t = (offset x edge) / (e x edge)
        lo = (offset_x * edge_y - offset_y * edge_x) / cross_product
        hi = lo
    else:
        # ends of the segment: t = offset . e / |e|^2
        lo = (offset_x * e[0] + offset_y * e[1]) / e_squared
        hi = lo + (edge_x * e[0] + edge_y * e[1]) / e_squared
        if hi < lo:
            lo, hi = hi, lo
    return lo, hi


@kernel
def point_on_segment(d1, side):
    """Returns (x, y): the point nearest to the origin that the segment of `side` shares with the other shape's feature.

    The segment is a + t e; lo <= t <= hi is in the other feature.  Returns (0, 0) if they do not meet.
    """
    other = 1 - side
    start_x, start_y, _ = load_corner(d1, side, 0)
    end_x, end_y, _ = load_corner(d1, side, 1)
    a = (start_x, start_y)
    e = (end_x - start_x, end_y - start_y)
    e_squared = e[0] * e[0] + e[1] * e[1]
    x, y = 0.0, 0.0
    if e_squared > 0.0:  # no division by 0
        if d1.feature.count[other] == SEGMENT:
            lo, hi = interval_on_segment(d1, other, a, e)
        elif d1.feature.count[other] == DISC:
            lo, hi = cut_by_disc(d1, other, a, e)
        else:
            lo, hi = cut_by_polygon(d1, other, polygon_orientation(d1, other), a, e)
        if lo > hi and d1.feature.count[other] == DISC:
            # the features touch, so a line that misses the disc is a tangent, up to rounding: the part is its point
            # nearest to the disc's centre
            centre_x, centre_y, _ = load_corner(d1, other, RIM)
            lo = ((centre_x - a[0]) * e[0] + (centre_y - a[1]) * e[1]) / e_squared
            hi = lo
        if lo <= hi:
            # the origin's projection on the line, moved into the part and into the segment
            t = clip(clip(-(a[0] * e[0] + a[1] * e[1]) / e_squared, lo, hi), 0.0, 1.0)
            x, y = a[0] + t * e[0], a[1] + t * e[1]
    return x, y


@kernel
def nearest_in_polygon(d1, side, cx, cy):
    """Returns (x, y): the point of the polygon of `side` that is nearest to the point (cx, cy).

    It is (cx, cy) itself if that is inside the polygon, else the nearest point of the nearest edge.
    """
    sign = polygon_orientation(d1, side)
    # feature.point and feature.edge are flat here: RUN values of x, then of y, then of z for each shape
    first_corner = 3 * RUN * side
    inside = True
    x, y = cx, cy
    least_squared = HUGE
    for corner in range(first_corner, first_corner + d1.feature.count[side]):
        offset_x = cx - d1.feature.point[corner]
        offset_y = cy - d1.feature.point[corner + RUN]
        edge_x, edge_y = d1.feature.edge[corner], d1.feature.edge[corner + RUN]
        edge_squared = edge_x * edge_x + edge_y * edge_y
        # on the outer side of an edge; the cross product edge x offset is positive on the left of the edge
        if sign * (edge_x * offset_y - edge_y * offset_x) < 0.0 and edge_squared > 0.0:
            inside = False
        t = clip((offset_x * edge_x + offset_y * edge_y) / edge_squared, 0.0, 1.0) if edge_squared > 0.0 else 0.0
        # the vector from the edge's nearest point to (cx, cy)
        gap_x, gap_y = offset_x - t * edge_x, offset_y - t * edge_y
        if gap_x * gap_x + gap_y * gap_y < least_squared:
            least_squared = gap_x * gap_x + gap_y * gap_y
            x, y = cx - gap_x, cy - gap_y
    if inside:
        x, y = cx, cy
    return x, y


@kernel
def nearest_in_area(d1, side, cx, cy):
    """Returns (x, y): the point of the disc or polygon of `side` that is nearest to the point (cx, cy)."""
    if d1.feature.count[side] == DISC:
        centre_x, centre_y, _ = load_corner(d1, side, RIM)
        offset_x, offset_y = cx - centre_x, cy - centre_y
        radius = d1.shapes.size[side][0]
        offset_squared = offset_x * offset_x + offset_y * offset_y
        x, y = cx, cy
        if offset_squared > radius * radius:
            scale = radius / sqrt(offset_squared)
            x, y = centre_x + scale * offset_x, centre_y + scale * offset_y
    else:
        x, y = nearest_in_polygon(d1, side, cx, cy)
    return x, y


@kernel
def point_on_disc(d1, side):
    """Returns (x, y): a point that the disc of `side` shares with the other shape's feature, a disc or a polygon.

    This is the origin if both contain it, else the other feature's point that is nearest to the centre of the disc.
    That point is in the disc, unless the two features are apart.
    """
    x, y = nearest_in_area(d1, side, cx=0.0, cy=0.0)
    other_x, other_y = nearest_in_area(d1, 1 - side, cx=0.0, cy=0.0)
    # the origin is not in both areas
    if x != 0.0 or y != 0.0 or other_x != 0.0 or other_y != 0.0:
        centre_x, centre_y, _ = load_corner(d1, side, RIM)
        x, y = nearest_in_area(d1, 1 - side, centre_x, centre_y)
    return x, y


@kernel
def move_to_common_point(m1, d1):
    """Moves the nearest points, in world axes, along the tangents into the common part of the two features.

    Two polygons need no move: their facet determines the points.

    Reads:  shapes.*, convex.dist, convex.normal, convex.witness.
    Writes: convex.witness.
    Scratch: feature.*.
    """
    set_contact_axes(d1)  # writes feature.axes, feature.origin
    find_feature(m1, d1, side=0, least_cosine=TOUCHING_COSINE)  # writes feature.count, feature.point, feature.normal
    find_feature(m1, d1, side=1, least_cosine=TOUCHING_COSINE)
    count1, count2 = d1.feature.count[0], d1.feature.count[1]
    # the common point; features that are points, and two polygons, need no move
    x, y = 0.0, 0.0
    if count1 != POINT and count2 != POINT:
        if count1 == SEGMENT or count2 == SEGMENT:
            x, y = point_on_segment(d1, 0 if count1 == SEGMENT else 1)
        elif count1 == DISC or count2 == DISC:
            x, y = point_on_disc(d1, 0 if count1 == DISC else 1)
    centres = d1.shapes.pos[1] - d1.shapes.pos[0]
    arm = d1.convex.witness[0] - d1.shapes.pos[0]
    # a shorter move is rounding
    if x * x + y * y > NEAR * NEAR * (dot(centres, centres) + dot(arm, arm)):
        tangent1, tangent2, _ = d1.feature.axes[0].rows
        for side in range(2):
            d1.convex.witness[side] = fma(x, tangent1, fma(y, tangent2, d1.convex.witness[side]))
