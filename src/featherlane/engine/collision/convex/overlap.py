"""Computes the overlap of two features, projected along the contact's normal: candidates for contact points.

For a face with a face or an edge, these are the corners of the overlap; for parallel edges, the ends of the common
part.  Such a position becomes a candidate if the features are near enough and it is new.  Clipping of edges, tests of
corners and measurements run eight at once.
d1 is the data of one world.  Positions have two coordinates, along the tangents of the contact.  A feature is stored in
feature.*[side]: corners feature.point, edges feature.edge and feature.count, which is SEGMENT, DISC or the number of
corners (feature.py).  In flat arrays, a coordinate of a feature has RUN values.  `eights(field)` is a field as rows of
eight values.  clip.buffer holds positions to be measured, in rows of eight: x in row i, y in row i + ROWS, height in
row i + 2 ROWS, distance in row i + 3 ROWS; the distance is FAR if the position is invalid.  clip.point and clip.dist
hold candidates.
The points on the rim of a disc are corners 0 to RIM - 1, its middle is corner RIM, its radius
shapes.size[side][0].  ON_EDGE [m]: a point outside by less is on an edge.

Imported kernels:

    load_corner(d1, side, k)  corner k of a feature in contact coordinates

Source: MuJoCo's native ccd, with its tolerances.
Deviation: MuJoCo's rim is a polygon, here its crossings with edges are exact; parallel edges touch at two points here,
    at one in MuJoCo.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.feature import DISC, EDGE, ON_EDGE, RIM, RUN, SEGMENT, load_corner

CAPACITY = 160  # capacity of candidates
ROWS = 24  # rows of eight positions: two for the ends of eight edges, one for eight corners
FAR = 1e30  # m distance at an invalid position
SAME = 1e-7  # m positions nearer than this coincide


# ---- candidates ------------------------------------------------------------------------------------------------------
@kernel
def feature_height(d1, side, x, y):
    """Returns the height along the contact's normal of a feature at positions x, y: on its plane, or on its line."""
    # a point of the plane: the first corner, or the middle of a disc
    corner = load_corner(d1, side, RIM if d1.feature.count[side] == DISC else 0)
    height = corner[2]
    if d1.feature.count[side] == SEGMENT:
        end = load_corner(d1, side, 1)
        edge_x, edge_y = end[0] - corner[0], end[1] - corner[1]
        edge_squared = edge_x * edge_x + edge_y * edge_y
        if edge_squared > 0.0:
            rise = end[2] - corner[2]
            t = ((x - corner[0]) * edge_x + (y - corner[1]) * edge_y) / edge_squared
            height = corner[2] + rise * t
    else:
        normal = d1.feature.normal[side]
        height = corner[2] - (normal[0] * (x - corner[0]) + normal[1] * (y - corner[1])) / normal[2]
    return height


@kernel
def measure_overlap(d1, x, y):
    """Returns (height, distance) of the features at positions that are in both; the distance is FAR beyond the limit.

    The height is halfway between the features, the distance is the difference of their heights.  A distance below
    convex.dist, the signed distance of the shapes, is raised to it, because no point of the shapes is deeper.  The
    lines of two nearly parallel edges have such distances away from their crossing.
    """
    low, high = feature_height(d1, 0, x, y), feature_height(d1, 1, x, y)
    dist = high - low
    dist = where(dist < d1.convex.dist[0], d1.convex.dist[0], dist)
    return 0.5 * (low + high), where(dist <= d1.shapes.limit[0], dist, FAR)


@kernel
def measure_positions(d1, rows):
    """Stores height and distance at each position of clip.buffer; the distance of an invalid one remains FAR.

    rows: number of rows of eight positions.
    """
    positions = eights(d1.clip.buffer)
    for row in range(rows):
        height, dist = measure_overlap(d1, positions[row], positions[row + ROWS])
        positions[row + 2 * ROWS], positions[row + 3 * ROWS] = height, where(positions[row + 3 * ROWS] < FAR, dist, FAR)


@kernel
def add_candidate(d1, x, y, z, dist):
    """Appends a candidate: its position, height and distance, to clip.point and clip.dist."""
    k = d1.clip.count[0]
    d1.clip.point[0, k], d1.clip.point[1, k], d1.clip.point[2, k], d1.clip.dist[k] = x, y, z, dist
    d1.clip.count[0] = k + 1


@kernel
def is_new_position(d1, x, y):
    """Returns whether the position is apart from all candidates."""
    count, points = d1.clip.count[0], d1.clip.point
    rows = eights(d1.clip.point)
    # first the last candidates, after the full rows: a duplicate is often among these, where two edges meet
    for i in range(count - 1, 8 * (count // 8) - 1, -1):
        offset_x = points[i] - x
        offset_y = points[i + CAPACITY] - y
        if offset_x * offset_x + offset_y * offset_y < SAME * SAME:
            return False
    # the full rows, eight candidates at once
    for i in range(count // 8):
        offset_x = rows[i] - x
        offset_y = rows[i + CAPACITY // 8] - y
        if any_(offset_x * offset_x + offset_y * offset_y < SAME * SAME):
            return False
    return True


@kernel
def add_if_new(d1, x, y, z, dist, least):
    """Adds a candidate at a position if `dist` is valid and the position new; returns the least distance so far.

    x, y, z: position and height; least: the least distance before.
    """
    if dist < FAR and d1.clip.count[0] < CAPACITY and is_new_position(d1, x, y):
        add_candidate(d1, x, y, z, dist)
        if dist < least:
            least = dist
    return least


@kernel
def add_stored_position(d1, i, least):
    """Adds position i of `clip.buffer` as a candidate if it is valid and new; returns the least distance so far.

    least: the least distance before.
    """
    stride = 8 * ROWS  # from x to y, from y to the height, from the height to the distance
    x = d1.clip.buffer[i]
    y = d1.clip.buffer[i + stride]
    z = d1.clip.buffer[i + 2 * stride]
    dist = d1.clip.buffer[i + 3 * stride]
    return add_if_new(d1, x, y, z, dist, least)


@kernel
def add_stored_positions(d1, edges, corners):
    """Adds candidates at ends of clipped edges and at corners, both stored in clip.buffer; returns the least distance.

    edges: number of edges; eight of them have two rows, of starts and of ends.
    corners: number of corners, in the rows after the edges.
    """
    least = FAR
    edge_rows = 2 * ((edges + 7) // 8)
    measure_positions(d1, edge_rows + (corners + 7) // 8)
    for k in range(edges):
        # eight edges have a row of eight starts and a row of eight ends: 16 (k // 8) + k % 8 = k + 8 (k // 8)
        start = k + 8 * (k // 8)
        least = add_stored_position(d1, start, least)
        least = add_stored_position(d1, start + 8, least)
    for i in range(8 * edge_rows, 8 * edge_rows + corners):
        least = add_stored_position(d1, i, least)
    return least


@kernel
def add_ends(d1, ax, ay, bx, by):
    """Adds candidates at the ends (ax, ay) and (bx, by) of a common part; returns the least distance of both [m]."""
    z, dist = measure_overlap(d1, ax, ay)
    least = add_if_new(d1, ax, ay, z, dist, FAR)
    z, dist = measure_overlap(d1, bx, by)
    return add_if_new(d1, bx, by, z, dist, least)


# ---- clipping of one feature by the other ----------------------------------------------------------------------------
@kernel
def polygon_orientation(d1, side):
    """Returns 1 if the polygon is counterclockwise, else -1."""
    return -1.0 if d1.feature.normal[side][2] < 0.0 else 1.0


@kernel
def meet_edge(sign, corner, edge, a, e):
    """Returns (t, enters, leaves, misses) of a line a + t e and a polygon's edge, which starts at a corner.

    Args:
        sign: 1 for a counterclockwise polygon, else -1.
        edge: two coordinates of its vector, and a tolerance: |edge| times the distance by which a point on the edge may
            be outside.

    t: where the line crosses the edge's line; enters, leaves: whether it does so inwards or outwards; misses: whether
    it is parallel to the edge and outside.
    """
    edge_x, edge_y, tolerance = sign * edge[0], sign * edge[1], edge[2]
    # the height of a + t e on the inner side, times |edge|, is start_height + t slope
    start_height = edge_x * (a[1] - corner[1]) - edge_y * (a[0] - corner[0]) + tolerance
    slope = edge_x * e[1] - edge_y * e[0]
    enters = slope > 0.0
    leaves = slope < 0.0
    return (
        -start_height / where(enters | leaves, slope, 1.0),
        enters,
        leaves,
        not_(enters | leaves) & (start_height < 0.0),
    )


@kernel
def cut_by_polygon(d1, side, sign, a, e):
    """Returns (lo, hi): the parts lo <= t <= hi, within 0 .. 1, of lines a + t e inside the polygon of `side`.

    An empty part has hi < lo.  a, e: two coordinates each, of one line or of eight; sign: `polygon_orientation`.
    """
    first = 3 * RUN * side
    points, edges = d1.feature.point, d1.feature.edge
    # a may be one line or eight: `where` of a mask of its width, which is false, gives 0 and 1 this width
    lo, hi = where(a[0] < a[0], a[0], 0.0), where(a[0] < a[0], a[0], 1.0)
    misses = lo > hi
    for i in range(first, first + d1.feature.count[side]):
        t, enters, leaves, is_outside = meet_edge(
            sign, (points[i], points[i + RUN]), (edges[i], edges[i + RUN], edges[i + 2 * RUN]), a, e
        )
        lo = where(enters & (t > lo), t, lo)
        hi = where(leaves & (t < hi), t, hi)
        misses = misses | is_outside
    return lo, where(misses, lo - 1.0, hi)


@kernel
def cut_by_disc(d1, side, a, e):
    """Returns (lo, hi): the parts lo <= t <= hi, within 0 .. 1, of lines a + t e inside the disc of `side`.

    An empty part has hi < lo.  With offset = a - centre, t solves |e|^2 t^2 + 2 (offset . e) t + |offset|^2 - radius^2
    = 0.
    """
    centre_x, centre_y, _ = load_corner(d1, side, RIM)
    radius = d1.shapes.size[side][0]
    offset_x, offset_y = a[0] - centre_x, a[1] - centre_y
    edge_squared = e[0] * e[0] + e[1] * e[1]
    along = offset_x * e[0] + offset_y * e[1]
    discriminant = along * along - edge_squared * (offset_x * offset_x + offset_y * offset_y - radius * radius)
    meets = (edge_squared > 0.0) & (discriminant >= 0.0)
    # 0 and 1 replace values that would give NaN: without a crossing the result is not used
    root = sqrt(where(meets, discriminant, 0.0))
    edge_squared = where(meets, edge_squared, 1.0)
    lo = (-along - root) / edge_squared
    hi = (-along + root) / edge_squared
    lo = where(lo > 0.0, lo, 0.0)
    hi = where(hi < 1.0, hi, 1.0)
    return lo, where(meets, hi, lo - 1.0)


@kernel
def cut_edges(d1, side):
    """Stores where the edges of the feature of `side` enter and leave the other shape's feature, a polygon or a disc.

    Writes to clip.buffer, for each row of eight edges, a row of positions where they enter and a row where they leave.
    The distance is 0, or FAR for an edge that is completely outside.
    """
    other = 1 - side
    first_row = 3 * RUN // 8 * side
    run = RUN // 8
    points, edges, positions = eights(d1.feature.point), eights(d1.feature.edge), eights(d1.clip.buffer)
    sign = polygon_orientation(d1, other)
    for row in range((d1.feature.count[side] + 7) // 8):
        a = (points[first_row + row], points[first_row + row + run])
        e = (edges[first_row + row], edges[first_row + row + run])
        if d1.feature.count[other] == DISC:
            lo, hi = cut_by_disc(d1, other, a, e)
        else:
            lo, hi = cut_by_polygon(d1, other, sign, a, e)
        distance = where(lo <= hi, 0.0, FAR)
        x, y = a[0] + lo * e[0], a[1] + lo * e[1]
        positions[2 * row], positions[2 * row + ROWS], positions[2 * row + 3 * ROWS] = x, y, distance
        x, y = a[0] + hi * e[0], a[1] + hi * e[1]
        positions[2 * row + 1], positions[2 * row + 1 + ROWS], positions[2 * row + 1 + 3 * ROWS] = x, y, distance


@kernel
def store_corners_inside(d1, side, count, position_row):
    """Stores corners of a feature in clip.buffer, with distance 0 inside the other shape's polygon, FAR outside.

    Args:
        side: the polygon whose corners are stored, or the disc, with the points on its rim.
        count: number of its corners.
        position_row: first row of clip.buffer to write.
    """
    other = 1 - side
    # the tested corners are read in rows of eight, `run` rows for each coordinate, the other feature's corners and
    # edges as single values, RUN values for each coordinate; edge i starts at corner i
    first_row = 3 * RUN // 8 * side
    run = RUN // 8
    first_edge = 3 * RUN * (1 - side)
    corners, edges = d1.feature.point, d1.feature.edge
    points, positions = eights(d1.feature.point), eights(d1.clip.buffer)
    sign = polygon_orientation(d1, other)
    for row in range((count + 7) // 8):
        x, y = points[first_row + row], points[first_row + row + run]
        outside = x < x  # false in all lanes
        for edge in range(first_edge, first_edge + d1.feature.count[other]):
            # the cross product edge x (position - corner) is below the edge's tolerance
            outside = outside | (
                sign * (edges[edge] * (y - corners[edge + RUN]) - edges[edge + RUN] * (x - corners[edge]))
                < -edges[edge + 2 * RUN]
            )
        distance = where(outside, FAR, 0.0)
        (
            positions[position_row + row],
            positions[position_row + row + ROWS],
            positions[position_row + row + 3 * ROWS],
        ) = x, y, distance


@kernel
def store_rim_inside(d1, side, position_row):
    """Stores points on the rim of a disc in clip.buffer, with distance 0 inside the other shape's disc, FAR outside.

    position_row: first row of clip.buffer to write.
    """
    centre_x, centre_y, _ = load_corner(d1, 1 - side, RIM)
    radius = d1.shapes.size[1 - side][0] + ON_EDGE  # a point outside by less is on the rim
    first_row = 3 * RUN // 8 * side
    run = RUN // 8
    points, positions = eights(d1.feature.point), eights(d1.clip.buffer)
    for row in range(RIM // 8):
        x, y = points[first_row + row], points[first_row + row + run]
        distance = where((x - centre_x) * (x - centre_x) + (y - centre_y) * (y - centre_y) <= radius * radius, 0.0, FAR)
        (
            positions[position_row + row],
            positions[position_row + row + ROWS],
            positions[position_row + row + 3 * ROWS],
        ) = x, y, distance


@kernel
def segment_with_face(d1, side):
    """Adds the overlap of the segment of `side` and the other shape's face as candidates; returns the least distance.

    The candidates are the ends of the part of the segment over the face.
    """
    other = 1 - side
    start_x, start_y, _ = load_corner(d1, side, 0)
    end_x, end_y, _ = load_corner(d1, side, 1)
    a = (start_x, start_y)
    e = (end_x - start_x, end_y - start_y)
    if d1.feature.count[other] == DISC:
        lo, hi = cut_by_disc(d1, other, a, e)
    else:
        lo, hi = cut_by_polygon(d1, other, polygon_orientation(d1, other), a, e)
    least = FAR
    if lo <= hi:
        least = add_ends(d1, start_x + lo * e[0], start_y + lo * e[1], start_x + hi * e[0], start_y + hi * e[1])
    return least


@kernel
def segment_with_segment(d1):
    """Adds the ends of the common part of two nearly parallel segments, ab and pq; returns the least distance.

    The part lo <= t <= hi of a + t (b - a) is between the projections of p and q, and within 0 .. 1.  Segments at a
    larger angle, or of length 0, have none: the result is FAR.
    """
    a_x, a_y, _ = load_corner(d1, 0, 0)
    b_x, b_y, _ = load_corner(d1, 0, 1)
    p_x, p_y, _ = load_corner(d1, 1, 0)
    q_x, q_y, _ = load_corner(d1, 1, 1)
    ab_x, ab_y, pq_x, pq_y = b_x - a_x, b_y - a_y, q_x - p_x, q_y - p_y
    ab_squared = ab_x * ab_x + ab_y * ab_y
    pq_squared = pq_x * pq_x + pq_y * pq_y
    cross_product = ab_x * pq_y - ab_y * pq_x
    least = FAR
    # the segments are nearly parallel: the sine of their angle is below EDGE
    if cross_product * cross_product < EDGE * EDGE * (ab_squared * pq_squared):
        lo = ((p_x - a_x) * ab_x + (p_y - a_y) * ab_y) / ab_squared
        hi = ((q_x - a_x) * ab_x + (q_y - a_y) * ab_y) / ab_squared
        if hi < lo:
            lo, hi = hi, lo
        lo, hi = fmax(lo, 0.0), fmin(hi, 1.0)
        if lo <= hi:
            least = add_ends(d1, a_x + lo * ab_x, a_y + lo * ab_y, a_x + hi * ab_x, a_y + hi * ab_y)
    return least


@kernel
def disc_with_disc(d1):
    """Adds the crossings of two discs' rims, and points of each rim in the other disc; returns the least distance [m].

    The discs have the middles a and b.  The rims cross at a + t ab +- height (-ab_y, ab_x), with
    t = (1 + (radius1^2 - radius2^2) / |ab|^2) / 2 and height = sqrt(radius1^2 / |ab|^2 - t^2).
    """
    a_x, a_y, _ = load_corner(d1, 0, RIM)
    b_x, b_y, _ = load_corner(d1, 1, RIM)
    radius1, radius2 = d1.shapes.size[0][0], d1.shapes.size[1][0]
    ab_x, ab_y = b_x - a_x, b_y - a_y
    ab_squared = ab_x * ab_x + ab_y * ab_y
    least = FAR
    # rims about the same centre do not cross
    if ab_squared > SAME * SAME:
        t = 0.5 * (1.0 + (radius1 * radius1 - radius2 * radius2) / ab_squared)
        height_squared = radius1 * radius1 / ab_squared - t * t
        if height_squared >= 0.0:
            height = sqrt(height_squared)
            foot_x, foot_y = a_x + t * ab_x, a_y + t * ab_y
            offset_x, offset_y = height * ab_y, height * ab_x
            least = add_ends(d1, foot_x - offset_x, foot_y + offset_y, foot_x + offset_x, foot_y - offset_y)
    # both write clip.buffer: RIM // 8 rows for each rim
    store_rim_inside(d1, side=0, position_row=0)
    store_rim_inside(d1, side=1, position_row=RIM // 8)
    return fmin(least, add_stored_positions(d1, edges=0, corners=2 * RIM))


@kernel
def edges_and_corners(d1, side):
    """Adds the ends of the edges of `side`, clipped by the other feature, and the other's corners inside this polygon.

    For two polygons, `side` is 1, and these are corners of the second inside the first, crossings of edges, and corners
    of the first inside the second; for a disc and a polygon, crossings of edges with the rim, and points of the rim.
    Returns the least distance.
    """
    count = d1.feature.count[side]
    corners = RIM if d1.feature.count[1 - side] == DISC else d1.feature.count[1 - side]
    # both write clip.buffer: first two rows for eight edges, then the corners
    cut_edges(d1, side)
    store_corners_inside(d1, 1 - side, corners, 2 * ((count + 7) // 8))
    return add_stored_positions(d1, count, corners)
