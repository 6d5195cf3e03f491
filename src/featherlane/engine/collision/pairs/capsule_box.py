"""Computes the contact points of a capsule and a box: up to two spheres on the capsule's segment, each against the box.

If the segment meets the box, spheres on it have no information about the least displacement that separates the shapes.
The pair is then computed as any two convex shapes (convex/pair.py).

The first sphere is at the segment's point nearest to the box: an end that lies over a face, or the nearest point
to one of the edges.  The second sphere is as far from the first as the capsule extends along the box, so a capsule
rests on a face or an edge in two points.  If the capsule points at the box, only one sphere is used.  Points of
the segment and of edges have coordinates from -1 to 1, from end to end.  An extent is the difference of two coordinates
of the segment: that of the second sphere less that of the first, NO_SECOND without a second sphere.
In all functions p is the centre of the segment, h half of it as a vector, both in the box's frame, and size the box's
half sides.  x is a coordinate of the segment, e one of an edge.  Bit k of a corner's index is 1 if its coordinate k is
positive.
With gap from p to the middle of an edge along axis k, and s_k half of this edge, the nearest points of the two lines
minimize |gap + e s_k - x h|: they solve ma e + mb x = u, mb e + mc x = v, where ma = |s_k|^2, mb = -s_k . h,
mc = |h|^2, u = -s_k . gap, v = h . gap, det = ma mc - mb^2.  box.edge has for each axis k four rows of eight lanes,
from row 4 k on: squared distance, x, e, and the end where the edge was clipped, or 0.  An edge has the lane of its
lower corner.
m1 and d1 are the model and the data of one world: shapes.*[0] is the capsule, shapes.*[1] the box; points are stored
in manifold.*.
The number of points is manifold.count, a point has manifold.pos, dist and normal; shapes.limit is the largest distance.
Source: MuJoCo 4.0.1 mjraw_CapsuleBox, which also uses spheres if the segment meets the box.
Note: sums, such as those of plain_dot3, are not fused, so that they round as MuJoCo's; see box_frame.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.pair import convex
from featherlane.engine.collision.pairs.box_frame import plain_mat_mul_vec, plain_mat_t_mul_vec
from featherlane.engine.collision.pairs.sphere_box import sphere_box

NEVER = 1e300  # distance or extent that does not exist
NO_SECOND = -4.0  # extent without a second sphere; extents are within -2 .. 2
# relative to the sizes: distance from the box at which a segment meets it.  `nearest_edge` ignores differences of
# squared distances below MINVAL, which is an error of 1e-10 sizes at this distance
MEETING = 1e-5

# the nearest feature of the box
NOWHERE, FACE, EDGE, CORNER = range(4)


# ---- separating axes ---------------------------------------------------------------------------------------------
@kernel
def meets_box(p, h, size):
    """Returns whether the segment meets the box, or is apart from it by less than MEETING of their sizes.

    Six directions u can separate a segment from a box: the three normals e_k of faces, and e_k x h.
    Along u the segment reaches |h . u|, the box sum_i |u_i| size_i, and their centres are |p . u| apart.  Along
    u = e_k x h these are 0, the sum of |h_j| size_i over the two axes i, j other than k, and |(h x p)_k|.
    """
    hx, hy, hz = fabs(h)
    slack = MEETING * (hx + hy + hz + size[0] + size[1] + size[2])
    if fabs(p[0]) - hx - size[0] > slack or fabs(p[1]) - hy - size[1] > slack or fabs(p[2]) - hz - size[2] > slack:
        return False
    # e_k x h is not a unit vector: the slack is scaled by a bound of its length
    offset, scaled_slack = cross(h, p), slack * (hx + hy + hz)
    return (
        fabs(offset[0]) - hz * size[1] - hy * size[2] <= scaled_slack
        and fabs(offset[1]) - hz * size[0] - hx * size[2] <= scaled_slack
        and fabs(offset[2]) - hy * size[0] - hx * size[1] <= scaled_slack
    )


# ---- the nearest point of the segment --------------------------------------------------------------------------
@kernel
def nearest_end(p, h, size):
    """Returns (feature, axis, x, squared distance) of the segment's end nearest to the box, if over a face.

    feature: FACE, or NOWHERE if both ends are over an edge or a corner; axis: orthogonal to the face; x: -1 or 1, the
    end.
    """
    feature, axis, x, least_squared = NOWHERE, 0, 0.0, NEVER
    for end in (-1, 1):
        point = p + end * h
        to_box = clip(point, -size, size) - point
        squared = plain_dot3(to_box, to_box)
        beyond, face_axis = 0, 0  # number of axes along which the point is outside; the last one of them
        for i in range(3):
            if fabs(point[i]) > size[i]:
                beyond = beyond + 1
                face_axis = i
        if beyond == 1 and squared < least_squared:
            feature = FACE
            axis = face_axis
            x = 1.0 * end
            least_squared = squared
    return feature, axis, x, least_squared


@kernel
def corner_signs(d1):
    """Returns the signs (x, y, z) = -1 or 1 of a box's eight corners, in eight lanes.   Writes: box.corner."""
    for i in range(8):
        d1.box.corner[0, i] = 2 * (i & 1) - 1
        d1.box.corner[1, i] = (i & 2) - 1
        d1.box.corner[2, i] = (i >> 1 & 2) - 1
    return Vec3(eights(d1.box.corner)[0:3])


@kernel
def is_out_of_interval(e):
    """Returns whether the coordinate is outside of -1..1."""
    return (e > 1.0) | (e < -1.0)


@kernel
def edges_and_segment(mb, ma, mc, u, v, inverse):
    """Returns (e, x, end): coordinates, -1 to 1, of the nearest points of edges (e) and the segment (x).

    On the lines they solve ma e + mb x = u, mb e + mc x = v: e = (mc u - mb v) / det, x = (ma v - mb u) / det.  e is
    clipped and x recomputed from e, then x is clipped and e recomputed from x, then e is clipped again.
    end: the end (-1 or 1) to which e was clipped last, else 0.   inverse: 1 / det.
    """
    e, x = (mc * u - mb * v) * inverse, (ma * v - mb * u) * inverse
    cut = is_out_of_interval(e)
    e = where(cut, clip(e, -1.0, 1.0), e)
    end = where(cut, e, 0.0)
    x = where(cut, (v - mb * e) * (1.0 / mc), x)
    over = is_out_of_interval(x)
    x = where(over, clip(x, -1.0, 1.0), x)
    e = where(over, (u - mb * x) * (1.0 / ma), e)
    cut = is_out_of_interval(e)
    e = where(cut, clip(e, -1.0, 1.0), e)
    return e, x, where(cut, e, end)


@kernel
def compute_box_edges(d1, signs, p, h, half, size, k):
    """Computes the nearest points of the segment and the four edges along axis k: squared distance, x, e and end.

    A parallel edge is never the nearest: its squared distance is NEVER, and so is that of lanes of upper corners, which
    have no edge.
    half: |h|; signs: result of `corner_signs`.
    Writes: box.edge, rows 4 k .. 4 k + 3.
    """
    rows = eights(d1.box.edge)
    ma = size[k] * size[k]
    mb = -size[k] * h[k]
    mc = half * half
    det = ma * mc - mb * mb
    skew = fabs(det) >= MINVAL  # not parallel
    inverse = 1.0 / det if skew else 0.0
    gap = Vec3((signs[c] * size[c] if k != c else 0.0) - p[c] for c in range(3))
    e, x, end = edges_and_segment(mb, ma, mc, -size[k] * gap[k], plain_dot3(h, gap), inverse)
    to_middle = gap - x * h
    step = size[k] * e
    # from the segment's point to the edge's point
    between = Vec3(to_middle[c] + (step if k == c else 0.0) for c in range(3))
    # NEVER + signs[k] is NEVER in eight lanes: the sum is a vector, and NEVER is too large to change by 1
    squared = plain_dot3(between, between) if skew else NEVER + signs[k]
    row = 4 * k
    rows[row] = where(signs[k] < 0.0, squared, NEVER)
    rows[row + 1], rows[row + 2], rows[row + 3] = x, e, end


@kernel
def nearest_edge(d1, p, h, feature, axis, x, best):
    """Returns (feature, axis, x, e, corner) of the nearest edge or corner, if nearer than the segment's nearest end.

    Otherwise it returns the arguments feature, axis and x, which are those of the nearest end, with e = corner = 0.
    best: squared distance of the nearest end; corner: index of the edge's lower corner, or of the nearest corner.
    Writes: box.corner, box.edge.
    """
    signs = corner_signs(d1)
    half, size = d1.shapes.size[0][1], d1.shapes.size[1]
    for k in (0, 1, 2):
        compute_box_edges(d1, signs, p, h, half, size, k)
    nearest = -1.0  # index in box.edge of the nearest edge's squared distance, as a value; -1 without a nearer edge
    for k in range(3):
        if any_(eights(d1.box.edge)[4 * k] < best - MINVAL):
            for j in range(4):
                # row 4 k of eight lanes, lower corner of edge j along axis k: j with a bit 0 inserted at position k
                i = 32 * k + (j >> k << k + 1 | j & (1 << k) - 1)
                squared = d1.box.edge[i]
                nearer = squared < best - MINVAL
                nearest, best = where(nearer, i, nearest), where(nearer, squared, best)
    e, corner = 0.0, 0
    i = whole(nearest)
    if i >= 0:
        # i is 32 axis + corner; the rows of x, e and end follow that of the squared distance
        axis = i >> 5
        corner = i & 7
        x, e, end = d1.box.edge[i + 8], d1.box.edge[i + 16], d1.box.edge[i + 24]
        feature = CORNER
        if end == 0.0:
            feature = EDGE
        elif end > 0.0:
            corner += 1 << axis  # the edge's upper corner
    return feature, axis, x, e, corner


# ---- extent along the box from the first point, in coordinates of the segment -------------------------------
@kernel
def segment_extent(distance, h, k):
    """Returns the extent of the segment that covers a distance [m] along axis k; NEVER if h is orthogonal to axis k."""
    return distance / fabs(h[k]) if fabs(h[k]) > 0.0 else NEVER


@kernel
def positive_bits(h):
    """Returns a bit mask: bit k is 1 if component k of h is positive."""
    return (1 if h[0] > 0.0 else 0) + (2 if h[1] > 0.0 else 0) + (4 if h[2] > 0.0 else 0)


@kernel
def single_axis(bits):
    """Returns the axis of the only set bit, -1 for several bits or none."""
    return 0 if bits == 1 else 1 if bits == 2 else 2 if bits == 4 else -1


@kernel
def extent_from_corner(z, h, size, corner, x):
    """Returns the extent of the segment from a corner along an edge, or over a face; NO_SECOND if it points at the box.

    sign h, with sign = 1 or -1, leads into the box along a single axis k, and -sign h along the two other axes.  If the
    segment is within 45 degrees of axis k, the extent follows sign h along the edge on axis k, to the end of the edge
    or of the segment.  Otherwise it follows -sign h over the face across k, to the other side of the face or the end of
    the segment.  If h leads inward along all axes or none, the segment points at the box.

    Args:
        z: unit direction of the segment.
        corner: index of the corner.
        x: coordinate of the segment's point nearest to the corner.
    """
    # bit k is 1 if h leads inward along axis k: its component and the corner's coordinate have opposite signs
    inward = positive_bits(h) ^ corner
    sign = 1  # sign h leads inward along the single axis k
    if single_axis(inward) < 0:
        inward = 7 - inward  # the axes along which -h leads inward
        sign = -1
    k = single_axis(inward)
    if k < 0:
        return NO_SECOND
    if z[k] * z[k] > 0.5:
        # along the edge, of length 2 size_k, to its end or the segment's
        edge_end = segment_extent(2.0 * size[k], h, k)
        segment_end = 1.0 - sign * x
        return sign * fmin(edge_end, segment_end)
    # over the face, to its sides across i and j, or to the end of the segment
    i, j = (k + 1) % 3, (k + 2) % 3
    segment_end = 1.0 + sign * x
    return -sign * fmin(segment_extent(2.0 * size[j], h, j), fmin(segment_extent(2.0 * size[i], h, i), segment_end))


@kernel
def extent_from_edge(z, h, size, corner, k, x, e):
    """Returns the extent from an edge along axis k, over one of the two faces at the edge.

    It is the face that is more parallel to the segment.
    The extent ends at the end of the edge, at the face's other side or at the segment's end.  NO_SECOND: the segment
    points at the box.
    z: unit direction of the segment; corner: lower corner of the edge; x, e: coordinates of the nearest points.
    """
    # the axes other than k along which h leads into the box: if both or none, the segment points at the box
    inward = (positive_bits(h) ^ corner) & (7 - (1 << k))
    if single_axis(inward) < 0:
        return NO_SECOND
    # across: the axis in the face that is orthogonal to the edge; the segment is longer along it than along other_axis
    across, other_axis = (k + 1) % 3, (k + 2) % 3
    if fabs(z[across]) <= fabs(z[other_axis]):
        across = other_axis
    sign = 1 if inward & (1 << across) else -1  # sign h leads over the face
    # whether sign h leads towards the upper end of the edge
    upwards = (sign == 1) == (positive_bits(h) & (1 << k) != 0)
    remaining = 1.0 - e if upwards else 1.0 + e
    return sign * fmin(
        segment_extent(size[k] * remaining, h, k),
        fmin(segment_extent(2.0 * size[across], h, across), 1.0 - sign * x),
    )


@kernel
def extent_over_face(p, h, size, k, x):
    """Returns the extent from the segment's end x, over a face across axis k, to the other end or the face's border."""
    sign = -1 if x > 0.0 else 1  # sign h points from this end to the other one
    end = p + x * h
    length = 2.0  # of the extent: coordinates go from -1 to 1, so the other end is 2 away
    for i in range(3):
        if i != k and fabs(h[i]) > 0.0:
            for side in (1, -1):
                # the length up to the plane of an adjacent face
                to_plane = (side * size[i] - end[i]) / h[i] * sign
                if to_plane > 0.0:
                    length = fmin(to_plane, length)
    return sign * length


# ---- the pair -----------------------------------------------------------------------------------------------
@kernel
def add_sphere(d1, p):
    """Adds the contact point of the capsule's sphere at p, in the box's frame, if it touches.   Writes: manifold.*."""
    R, c = d1.shapes.mat[1], d1.shapes.pos[1]
    # transformed to world axes and back as in MuJoCo, because rounding decides whether the point is inside the box
    centre = plain_mat_t_mul_vec(R, plain_mat_mul_vec(R, p) + c - c)
    touch, dist, pos, n = sphere_box(centre, d1.shapes.size[0][0], d1.shapes.size[1], d1.shapes.limit[0])
    if touch:
        i = d1.manifold.count[0]
        d1.manifold.dist[i] = dist
        d1.manifold.pos[i] = plain_mat_mul_vec(R, pos) + c
        d1.manifold.normal[i] = plain_mat_mul_vec(R, n)
        d1.manifold.count[0] = i + 1


@kernel
def spheres_on_segment(d1, p, z, h):
    """Adds the contact points of up to two spheres on the capsule's segment, which is apart from the box.

    z: unit direction of the segment.   Writes: manifold.*.   Scratch: box.*.
    """
    size, half = d1.shapes.size[1], d1.shapes.size[0][1]
    # the nearest feature, its axis k, the coordinates of the nearest points on the segment (x) and on an edge (e)
    feature, k, x, squared_distance = nearest_end(p, h, size)
    e, corner = 0.0, 0
    # If this end is over a face, and the other end is not nearer to the face, then the face's plane separates the
    # segment from all edges by the end's distance.  An edge could be nearer only by a rounding error of more than
    # MINVAL.  The error of a squared distance is about 1e-16 distance lengths: below MINVAL if distance^2 lengths^2 < 1
    lengths = fabs(p[0]) + fabs(p[1]) + fabs(p[2]) + half + size[0] + size[1] + size[2]
    # the direction x h points from the segment's centre to this end
    away = (p[k] + x * h[k]) * (x * h[k]) <= 0.0
    if not (feature == FACE and away and squared_distance * lengths * lengths < 1.0):
        feature, k, x, e, corner = nearest_edge(d1, p, h, feature, k, x, squared_distance)
    travel = NO_SECOND  # extent from the first sphere to the second
    if feature == FACE:
        travel = extent_over_face(p, h, size, k, x)
    elif feature == EDGE:
        travel = extent_from_edge(z, h, size, corner, k, x, e)
    elif feature == CORNER:
        travel = extent_from_corner(z, h, size, corner, x)

    d1.manifold.count[0] = 0
    if feature != NOWHERE:
        add_sphere(d1, p + x * h)
        if travel > NO_SECOND:
            add_sphere(d1, p + (travel + x) * h)


@stage
def capsule_box(m1, d1):
    """Computes up to two contact points of a capsule and a box, up to three if the segment meets the box.

    Source: MuJoCo mjraw_CapsuleBox, unless the segment meets the box.
    Reads:  shapes.*; recall.pair, recall.key: the pair's cache entry.
    Writes: manifold.*, and that entry.
    Scratch: box.*; what `convex` writes.
    Frame: the box's; p is the capsule's centre, z its axis, h = half z.
    """
    R, size, half = d1.shapes.mat[1], d1.shapes.size[1], d1.shapes.size[0][1]
    p = plain_mat_t_mul_vec(R, d1.shapes.pos[0] - d1.shapes.pos[1])
    z = plain_mat_t_mul_vec(R, d1.shapes.mat[0].columns[2])
    h = half * z
    if meets_box(p, h, size):
        convex(m1, d1)
    else:
        spheres_on_segment(d1, p, z, h)
