"""Computes the contact points of a capsule and a box: up to two spheres on the capsule's segment, each against the box.

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
Source: MuJoCo 4.0.1 mjraw_CapsuleBox.
Note: sums, such as those of plain_dot3, are not fused, so that they round as MuJoCo's; see box_frame.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.pairs.box_frame import plain_mat_mul_vec, plain_mat_t_mul_vec
from featherlane.engine.collision.pairs.sphere_box import sphere_box

NEVER = 1e300  # distance or extent that does not exist
NO_SECOND = -4.0  # extent without a second sphere; extents are within -2 .. 2

# the nearest feature of the box
NOWHERE, INSIDE, FACE, EDGE, CORNER = range(5)


# ---- the nearest point of the segment --------------------------------------------------------------------------
@kernel
def nearest_end(p, h, size):
    """Returns (feature, axis, x, squared distance) of the end nearest to the face below it, or of an end inside.

    An end over an edge or a corner does not count; feature: NOWHERE, INSIDE or FACE; axis: that of the face.
    """
    feature, axis, x, least = NOWHERE, 0, 0.0, NEVER
    for end in (-1, 1):
        point = p + end * h
        out = clip(point, -size, size) - point
        square = plain_dot3(out, out)
        beyond, face_axis = 0, 0
        for i in range(3):
            if fabs(point[i]) > size[i]:
                beyond = beyond + 1
                face_axis = i
        # beyond = 0: inside, 1: over a face
        if beyond < 2 and square < least:
            feature = INSIDE + beyond
            axis = face_axis
            x = 1.0 * end
            least = square
    return feature, axis, x, least


@kernel
def none_nearer(p, h, half, size, feature, k, x, best):
    """Returns whether no edge is nearer than end x: x is inside, or over face k with the segment leading away from it.

    Then the plane of the face separates the segment from all edges by the distance of the end, sqrt(best), and
    `nearest_edge` could find an edge only by rounding, by more than MINVAL.  The rounding error of a squared distance
    is about 1e-16 sqrt(best) lengths: this is below MINVAL if best lengths^2 < 1.
    feature: INSIDE, FACE or NOWHERE; k: axis of the face; half: half the segment's length; best: squared distance of
    end x.
    """
    lengths = fabs(p[0]) + fabs(p[1]) + fabs(p[2]) + half + size[0] + size[1] + size[2]
    # from end x to the other end, the segment does not come nearer to the plane of face k
    away = (p[k] + x * h[k]) * (x * h[k]) <= 0.0
    return feature == INSIDE or (feature == FACE and away and best * lengths * lengths < 1.0)


@kernel
def corner_signs(d1):
    """Returns (x, y, z) = -1 or 1 of the corners of a cube, in eight lanes.   Writes: box.corner."""
    for i in range(8):
        d1.box.corner[0, i] = 2 * (i & 1) - 1
        d1.box.corner[1, i] = (i & 2) - 1
        d1.box.corner[2, i] = (i >> 1 & 2) - 1
    return Vec3(eights(d1.box.corner)[0:3])


@kernel
def lower_corner(j, k):
    """Returns the index of the corner where edge j of the four along axis k begins: j with a bit 0 inserted at k."""
    # bits of j from k on move up by one; the bits below stay
    return j >> k << k + 1 | j & (1 << k) - 1


@kernel
def is_out_of_interval(e):
    """Returns whether the coordinate is before the lower end or past the upper end."""
    return (e > 1.0) | (e < -1.0)


@kernel
def edges_and_segment(mb, ma, mc, u, v, inverse):
    """Returns (e, x, end) of the nearest points of edges and a segment; `end` is where the edge was clipped, else 0.

    On the lines: e = (mc u - mb v) / det, x = (ma v - mb u) / det.  The first is clipped and the second recomputed from
    its equation, then vice versa.   inverse: 1 / det.
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
    """Computes squared distances, coordinates of nearest points and clipped ends of the four edges along axis k.

    A parallel edge is never the nearest: its distance is NEVER.  Lanes of upper corners are empty.
    half: |h|; signs: x, y and z = -1 or 1 of the eight corners.
    Writes: box.edge, rows 4 k .. 4 k + 3.
    """
    rows = eights(d1.box.edge)
    ma = size[k] * size[k]
    mb = -size[k] * h[k]
    mc = half * half
    det = ma * mc - mb * mb
    skew = fabs(det) >= MINVAL
    inverse = 1.0 / det if skew else 0.0
    gap = Vec3((signs[c] * size[c] if k != c else 0.0) - p[c] for c in range(3))
    e, x, end = edges_and_segment(mb, ma, mc, -size[k] * gap[k], plain_dot3(h, gap), inverse)
    to_middle = gap - x * h
    step = size[k] * e
    # from the segment's point to the edge's
    between = Vec3(to_middle[c] + (step if k == c else 0.0) for c in range(3))
    # signs[k] gives NEVER eight lanes; it is too small to change it
    square = plain_dot3(between, between) if skew else NEVER + signs[k]
    row = 4 * k
    rows[row] = where(signs[k] < 0.0, square, NEVER)
    rows[row + 1], rows[row + 2], rows[row + 3] = x, e, end


@kernel
def nearest_edge(d1, p, h, feature, axis, x, best):
    """Returns (feature, axis, x, e, corner) of the nearest edge or corner if nearer than the previous best, else that.

    feature, axis, x, best: those of the nearest end of the segment, `best` being its squared distance; corner: index of
    the edge's lower corner, or of the nearest corner.
    Writes: box.corner, box.edge.
    """
    signs = corner_signs(d1)
    half, size = d1.shapes.size[0][1], d1.shapes.size[1]
    for k in (0, 1, 2):
        compute_box_edges(d1, signs, p, h, half, size, k)
    place = -1.0  # of the nearest edge's squared distance in box.edge, as a value
    for k in range(3):
        if any_(eights(d1.box.edge)[4 * k] < best - MINVAL):
            for j in range(4):
                i = 32 * k + lower_corner(j, k)  # row 4 k of eight lanes
                square = d1.box.edge[i]
                nearer = square < best - MINVAL
                place, best = where(nearer, i, place), where(nearer, square, best)
    e, corner = 0.0, 0
    i = whole(place)
    if i >= 0:
        # i is 32 axis + corner; the rows of x, e and end follow, 8 apart
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
    """Returns the extent of the segment that covers `distance` along axis k; NEVER if it is orthogonal."""
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

    From a corner, one of the directions h and -h leads into the box along a single axis k, and the other along the two
    other axes.  If the segment is within 45 degrees of axis k, the extent follows the first direction along the edge on
    axis k; else the second one, over the face across k.  It ends there, or with the segment.  If h leads inward along
    all axes or none, the segment points at the box.
    z: unit direction of the segment; corner: index of the corner; x: coordinate of the segment's point nearest to it.
    """
    # h leads inward along an axis if its component has another sign than the corner's; -h along the other axes
    inward = positive_bits(h) ^ corner
    sign = 1  # sign h leads inward along the single axis k
    if single_axis(inward) < 0:
        inward = 7 - inward
        sign = -1
    k = single_axis(inward)
    if k < 0:
        return NO_SECOND
    if z[k] * z[k] > 0.5:
        # along the edge, of length 2 size_k, to its end or the segment's
        edge_end = segment_extent(2.0 * size[k], h, k)
        segment_end = 1.0 - sign * x
        return sign * fmin(edge_end, segment_end)
    # over the face, to one of its two other sides or the end of the segment
    i, j = (k + 1) % 3, (k + 2) % 3
    segment_end = 1.0 + sign * x
    return -sign * fmin(segment_extent(2.0 * size[j], h, j), fmin(segment_extent(2.0 * size[i], h, i), segment_end))


@kernel
def extent_from_edge(z, h, size, corner, k, x, e):
    """Returns the extent from an edge on axis k over the face more parallel to the segment; NO_SECOND if there is none.

    It ends at the end of the edge, at the face's other side or at the segment's end.
    z: unit direction of the segment; corner: lower corner of the edge; x, e: coordinates of the nearest points.
    """
    # inward: of the two axes other than k, those along which h leads into the box; with both, it points at the box
    inward = (positive_bits(h) ^ corner) & (7 - (1 << k))
    if single_axis(inward) < 0:
        return NO_SECOND
    # the axis along the face and orthogonal to the edge: that along which the segment is longer
    across, other_axis = (k + 1) % 3, (k + 2) % 3
    if fabs(z[across]) <= fabs(z[other_axis]):
        across = other_axis
    sign = 1 if inward & (1 << across) else -1  # sign h leads over the face
    # the extent ends at the end of the edge towards which sign h leads, the face's other side, or the segment's end
    upwards = (sign == 1) == (positive_bits(h) & (1 << k) != 0)
    remaining = 1.0 - e if upwards else 1.0 + e
    return sign * fmin(
        segment_extent(size[k] * remaining, h, k),
        fmin(segment_extent(2.0 * size[across], h, across), 1.0 - sign * x),
    )


@kernel
def extent_over_face(p, h, size, k, x):
    """Returns the extent from end x over a face across axis k.

    It ends at the other end, or where the segment leaves the face.
    """
    sign = -1 if x > 0.0 else 1
    end = p + x * h
    travel = 2.0
    for i in range(3):
        if i != k and fabs(h[i]) > 0.0:
            for side in (1, -1):
                # extent to the plane of the neighbouring face
                t = (side * size[i] - end[i]) / h[i] * sign
                if t > 0.0:
                    travel = fmin(t, travel)
    return sign * travel


# ---- the pair -----------------------------------------------------------------------------------------------
@kernel
def add_sphere(d1, p):
    """Adds the contact point of the capsule's sphere at p, in the box's frame, if it touches.   Writes: manifold.*."""
    R, c = d1.shapes.mat[1], d1.shapes.pos[1]
    # transformed out of the frame and back, because the rounding of that point decides what is inside
    centre = plain_mat_t_mul_vec(R, plain_mat_mul_vec(R, p) + c - c)
    touch, dist, pos, n = sphere_box(centre, d1.shapes.size[0][0], d1.shapes.size[1], d1.shapes.limit[0])
    if touch:
        i = d1.manifold.count[0]
        d1.manifold.dist[i] = dist
        d1.manifold.pos[i] = plain_mat_mul_vec(R, pos) + c
        d1.manifold.normal[i] = plain_mat_mul_vec(R, n)
        d1.manifold.count[0] = i + 1


@stage
def capsule_box(m1, d1):
    """Computes up to two contact points of a capsule and a box.

    Source: MuJoCo mjraw_CapsuleBox.
    Reads:  shapes.pos, shapes.mat, shapes.size, shapes.limit.
    Writes: manifold.*.
    Scratch: box.*.
    Frame: the box's; p is the capsule's centre, z its axis, h = half z.
    """
    R, size, half = d1.shapes.mat[1], d1.shapes.size[1], d1.shapes.size[0][1]
    p = plain_mat_t_mul_vec(R, d1.shapes.pos[0] - d1.shapes.pos[1])
    z = plain_mat_t_mul_vec(R, d1.shapes.mat[0].columns[2])
    h = half * z

    # the nearest feature, its axis k, the coordinates of the nearest points on the segment (x) and on an edge (e)
    feature, k, x, best = nearest_end(p, h, size)
    e, corner = 0.0, 0
    if not none_nearer(p, h, half, size, feature, k, x, best):
        feature, k, x, e, corner = nearest_edge(d1, p, h, feature, k, x, best)
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
