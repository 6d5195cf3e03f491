"""Computes the contact points of a capsule and a box: up to two spheres on the capsule's segment, each against the box.

The first sphere is at the segment's point nearest to the box: an end that lies over a face, or the nearest point
to one of the edges.  The second sphere is as far from the first as the capsule extends along the box, so a capsule
rests on a face or an edge in two points.  If the capsule points at the box, only one sphere is used.  Points of
the segment and of edges have coordinates from -1 to 1, from end to end.
Source: MuJoCo 4.0.1 mjraw_CapsuleBox.
Note: sums are not fused; see box_frame.
"""

from featherlane.prelude import *
from featherlane.collision.pairs.box_frame import seen_from, turned_by
from featherlane.collision.pairs.sphere_box import sphere_box

NEVER = 1e300
NO_SECOND = -4.0

# the nearest feature of the box
NOWHERE, INSIDE, FACE, EDGE, CORNER = range(5)


# ---- the nearest point of the segment --------------------------------------------------------------------------
@kernel
def nearest_end(d1, p, h, size):
    """Returns (feature, axis, x, squared distance) of the end nearest to the face below it, or of an end inside."""
    what, axis, x, best = NOWHERE, 0, 0.0, NEVER
    for end in (-1, 1):
        c = p + end * h
        out = clip(c, -size, size) - c
        square, beyond, k = plain_dot3(out, out), 0, 0
        for i in range(3):
            if fabs(c[i]) > size[i]:
                beyond, k = beyond + 1, i
        if beyond < 2 and square < best:
            what, axis, x, best = INSIDE + beyond, k, 1.0 * end, square
    return what, axis, x, best


@kernel
def none_nearer(p, h, half, size, what, k, x, best):
    """Returns whether no edge is nearer than end x: x is inside, or over face k with the segment leading away from it.

    Then the plane of the face separates the segment from all edges by that distance.  For a product of lengths below 1,
    the rounding of their squared distances stays below MINVAL.
    """
    lengths = fabs(p[0]) + fabs(p[1]) + fabs(p[2]) + half + size[0] + size[1] + size[2]
    away = (p[k] + x * h[k]) * (x * h[k]) <= 0.0
    return what == INSIDE or (what == FACE and away and best * lengths * lengths < 1.0)


@kernel
def corner_signs(d1):
    """Returns (x, y, z) of the corners of a cube from -1 to 1, eight at once; bit k of a corner's index is its sign."""
    for i in range(8):
        d1.box.corner[0, i] = 2 * (i & 1) - 1
        d1.box.corner[1, i] = (i & 2) - 1
        d1.box.corner[2, i] = (i >> 1 & 2) - 1
    return Vec3(eights(d1.box.corner)[0:3])


@kernel
def lower_corner(j, k):
    """Returns the corner index where edge j of the four along axis k begins: j with a bit 0 inserted at k."""
    return j >> k << k + 1 | j & (1 << k) - 1


@kernel
def is_out_of_interval(e):
    """Returns whether the coordinate is before the lower end or past the upper end."""
    return (e > 1.0) | (e < -1.0)


@kernel
def edges_and_segment(mb, ma, mc, u, v, inverse):
    """Returns (e, x, end) of the nearest points of edges and a segment; `end` is the end where the edge was clipped.

    On the lines: e = (mc u - mb v) / det, x = (ma v - mb u) / det.  The first is clipped and the second recomputed,
    then vice versa.
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

    The least |c + e s_k - p - x h| over e and x solves [ma mb; mb mc] (e, x) = (u, v): c is a corner, s_k half an edge,
    p the centre of the segment, h its half vector, and half = |h|.
    Each edge is stored at the index of its lower corner; entries of upper corners are empty.
    """
    E = eights(d1.box.edge)
    ma, mb, mc = size[k] * size[k], -size[k] * h[k], half * half
    det = ma * mc - mb * mb
    skew = fabs(det) >= MINVAL
    inverse = 1.0 / det if skew else 0.0
    gap = Vec3((signs[c] * size[c] if k != c else 0.0) - p[c] for c in range(3))
    e, x, end = edges_and_segment(mb, ma, mc, -size[k] * gap[k], plain_dot3(h, gap), inverse)
    gap, step = gap - x * h, size[k] * e
    gap = Vec3(gap[c] + (step if k == c else 0.0) for c in range(3))
    square = plain_dot3(gap, gap) if skew else NEVER + signs[k]
    row = 4 * k  # squared distance, x, e, clipped end; one corner per lane
    E[row], E[row + 1], E[row + 2], E[row + 3] = where(signs[k] < 0.0, square, NEVER), x, e, end


@kernel
def nearest_edge(d1, p, h, what, axis, x, best):
    """Returns (what, axis, x, e, corner) of the nearest edge or corner if nearer than the previous best, else that."""
    signs, half, size = corner_signs(d1), d1.shapes.size[0][1], d1.shapes.size[1]
    for k in (0, 1, 2):
        compute_box_edges(d1, signs, p, h, half, size, k)
    place = -1.0
    for k in range(3):
        if any_(eights(d1.box.edge)[4 * k] < best - MINVAL):
            for j in range(4):
                i = 32 * k + lower_corner(j, k)
                square = d1.box.edge[i]
                nearer = square < best - MINVAL
                place, best = where(nearer, i, place), where(nearer, square, best)
    e, corner, i = 0.0, 0, whole(place)
    if i >= 0:
        axis, corner, x, e, end = i >> 5, i & 7, d1.box.edge[i + 8], d1.box.edge[i + 16], d1.box.edge[i + 24]
        what = CORNER
        if end == 0.0:
            what = EDGE
        elif end > 0.0:
            corner += 1 << axis
    return what, axis, x, e, corner


# ---- extent along the box from the first point, in coordinates of the segment -------------------------------
@kernel
def segment_extent(distance, h, k):
    """Returns how far the segment extends along axis k in its own coordinates; infinite if it is orthogonal to k."""
    return distance / fabs(h[k]) if fabs(h[k]) > 0.0 else NEVER


@kernel
def positive(h):
    """Returns the positive components as a bit mask."""
    return (1 if h[0] > 0.0 else 0) + (2 if h[1] > 0.0 else 0) + (4 if h[2] > 0.0 else 0)


@kernel
def single(bits):
    """Returns the axis of the only set bit, -1 for several bits or none."""
    return 0 if bits == 1 else 1 if bits == 2 else 2 if bits == 4 else -1


@kernel
def along_corner(z, h, size, corner, x):
    """Returns the extent from a corner along an edge, or over a face.

    `inward` are the axes along which the segment passes the box: one axis selects that edge, two select that face.
    """
    inward, s = positive(h) ^ corner, 1
    if single(inward) < 0:
        inward, s = 7 - inward, -1
    k = single(inward)
    if k < 0:
        return NO_SECOND
    if z[k] * z[k] > 0.5:
        return s * fmin(segment_extent(2.0 * size[k], h, k), 1.0 - s * x)
    i, j = (k + 1) % 3, (k + 2) % 3
    return -s * fmin(segment_extent(2.0 * size[j], h, j), fmin(segment_extent(2.0 * size[i], h, i), 1.0 + s * x))


@kernel
def along_edge(z, h, size, corner, k, x, e):
    """Returns the extent from an edge on axis k over the face more parallel to the segment; none if that spans it."""
    inward = (positive(h) ^ corner) & (7 - (1 << k))
    if single(inward) < 0:
        return NO_SECOND
    b, c = (k + 1) % 3, (k + 2) % 3
    if fabs(z[b]) <= fabs(z[c]):
        b = c
    s = 1 if inward & (1 << b) else -1
    upwards = (s == 1) == (positive(h) & (1 << k) != 0)
    rest = 1.0 - e if upwards else 1.0 + e
    return s * fmin(segment_extent(size[k] * rest, h, k), fmin(segment_extent(2.0 * size[b], h, b), 1.0 - s * x))


@kernel
def along_face(p, h, size, k, x):
    """Returns the extent from an end over a face across axis k, to the other end or to where it leaves the face."""
    s = -1 if x > 0.0 else 1
    c, travel = p + x * h, 2.0
    for i in range(3):
        if i != k and fabs(h[i]) > 0.0:
            for side in (1, -1):
                t = (side * size[i] - c[i]) / h[i] * s
                if t > 0.0:
                    travel = fmin(t, travel)
    return s * travel


# ---- the pair -----------------------------------------------------------------------------------------------
@kernel
def add_sphere(d1, p):
    """Adds the contact point of the capsule's sphere at p, in the box's frame, if it touches."""
    R, c = d1.shapes.mat[1], d1.shapes.pos[1]
    # transformed out of the frame and back, because the rounding of that point decides what is inside
    centre = seen_from(R, turned_by(R, p) + c - c)
    touch, dist, pos, n = sphere_box(centre, d1.shapes.size[0][0], d1.shapes.size[1], d1.shapes.limit[0])
    if touch:
        i = d1.manifold.count[0]
        d1.manifold.dist[i] = dist
        d1.manifold.pos[i] = turned_by(R, pos) + c
        d1.manifold.normal[i] = turned_by(R, n)
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
    p = seen_from(R, d1.shapes.pos[0] - d1.shapes.pos[1])
    z = seen_from(R, d1.shapes.mat[0].columns[2])
    h = half * z

    what, k, x, best = nearest_end(d1, p, h, size)
    e, corner = 0.0, 0
    if not none_nearer(p, h, half, size, what, k, x, best):
        what, k, x, e, corner = nearest_edge(d1, p, h, what, k, x, best)
    travel = NO_SECOND
    if what == FACE:
        travel = along_face(p, h, size, k, x)
    elif what == EDGE:
        travel = along_edge(z, h, size, corner, k, x, e)
    elif what == CORNER:
        travel = along_corner(z, h, size, corner, x)

    d1.manifold.count[0] = 0
    if what != NOWHERE:
        add_sphere(d1, p + x * h)
        if travel > NO_SECOND:
            add_sphere(d1, p + (travel + x) * h)
