"""Computes the points of a box face contact: the other box's opposite face, clipped to the reference face.

The polygon is clipped by the four sides of the face, one after the other (Sutherland and Hodgman, Reentrant polygon
clipping, 1974).  Its corners have two coordinates along the face; the third is their height over it.
d1 is the data of one world; shapes.*[side] has the pose and the half sides of each box, shapes.limit is the largest
distance of a contact.  Contact points are stored in manifold.*: their number manifold.count, then pos, dist and normal.
Source: MuJoCo 4.0.1 mjc_BoxBox.
"""

from featherlane.engine.prelude import *

CAPACITY = 12  # corner capacity of one half of box.polygon: eight, plus corners that rounding may add
MOST = 8  # points of one pair
NEAR = 1e-14  # squared distance, in half diagonals of the face, within which two corners coincide


@kernel
def face_coordinate(o, R, size, r, b, side):
    """Returns coordinate r of three vectors: the middle of a box's face, half its first side, half its second side.

    The face is orthogonal to axis b, on its positive (`side` = 1) or negative side (-1), of the box with centre o, axes
    R and half sides `size`.
    """
    u, v = (b + 1) % 3, (b + 2) % 3  # the two axes along the face; R[3 r + b] is R_rb
    return o[r] + side * size[b] * R[3 * r + b], size[u] * R[3 * r + u], size[v] * R[3 * r + v]


@kernel
def store_incident_face(d1, o, R, size, level, a, up):
    """Stores the corners of the incident box's face that is opposite to the reference face, in box.polygon.

    A corner has its coordinates along axes a + 1 and a + 2 of the reference box, and its height over the reference
    face.

    Args:
        o, R, size: centre, axes and half sides of the incident box, in the reference box's frame.
        level: distance of the reference face from the reference box's centre [m].
        a: axis of the reference box that is orthogonal to the reference face.
        up: -1 or 1, the side of the reference face along this axis.
    """
    # b: the incident box's axis most parallel to a; side: that of the face whose normal is opposite to `up`
    b = 0
    for k in range(1, 3):
        if fabs(R[3 * a + k]) > fabs(R[3 * a + b]):
            b = k
    side = -1.0 if up * R[3 * a + b] > 0.0 else 1.0
    # each coordinate: of the face's middle, and of half its two sides
    x, y = face_coordinate(o, R, size, (a + 1) % 3, b, side), face_coordinate(o, R, size, (a + 2) % 3, b, side)
    z = tuple(up * v for v in face_coordinate(o, R, size, a, b, side))
    for k in range(4):
        # signs of corner k along the two sides, in cyclic order: (1, 1), (-1, 1), (-1, -1), (1, -1)
        su = -1.0 if k in (1, 2) else 1.0
        sv = -1.0 if k >= 2 else 1.0
        d1.box.polygon[k][0] = x[0] + su * x[1] + sv * x[2]
        d1.box.polygon[k][1] = y[0] + su * y[1] + sv * y[2]
        d1.box.polygon[k][2] = z[0] - level + su * z[1] + sv * z[2]


@kernel
def clip_polygon(d1, source, target, n, c, sign, limit):
    """Clips the polygon to the half plane sign x_c <= limit, c = 0 or 1; returns the new number of corners.

    The polygon has n corners in box.polygon from row `source` on; the clipped polygon is written from row `target` on.
    """
    kept = 0
    for k in range(n):
        p, q = d1.box.polygon[source + k], d1.box.polygon[source + (k + 1 if k + 1 < n else 0)]
        # distances of the corner and of the next corner from the line, positive outside
        height, next_height = sign * p[c] - limit, sign * q[c] - limit
        if (height <= 0.0) & (kept < CAPACITY):
            d1.box.polygon[target + kept] = p
            kept += 1
        # the edge to the next corner crosses the line
        if (((height < 0.0) & (next_height > 0.0)) | ((height > 0.0) & (next_height < 0.0))) & (kept < CAPACITY):
            t = height / (height - next_height)
            d1.box.polygon[target + kept] = p + t * (q - p)
            kept += 1
    return kept


@kernel
def is_inside(d1, half_u, half_v):
    """Returns whether the four corners of box.polygon lie within the reference face, so that clipping changes nothing.

    half_u, half_v: half sides of the face [m].
    """
    inside = True
    for k in unrolled(range(4)):
        p = d1.box.polygon[k]
        inside = inside & (fabs(p[0]) - half_u <= 0.0) & (fabs(p[1]) - half_v <= 0.0)
    return inside


@kernel
def is_new_corner(d1, k, n, radius2):
    """Returns whether corner k of box.polygon differs from each of the first n corners, projected along the normal.

    radius2: squared distance up to which corners coincide [m^2].
    """
    for i in range(n):
        x = d1.box.polygon[i][0] - d1.box.polygon[k][0]
        y = d1.box.polygon[i][1] - d1.box.polygon[k][1]
        if x * x + y * y < radius2:
            return False
    return True


@kernel
def keep_distinct_corners(d1, n, radius2):
    """Keeps those of the n corners of box.polygon that are within the limit and distinct; returns their number.

    At most MOST corners are kept.
    radius2: squared distance up to which corners coincide [m^2].
    """
    kept = 0
    for k in range(n):
        if kept < MOST and d1.box.polygon[k][2] <= d1.shapes.limit[0] and is_new_corner(d1, k, kept, radius2):
            d1.box.polygon[kept] = d1.box.polygon[k]
            kept += 1
    return kept


@kernel
def face_points(d1, R, o, ref, a):
    """Stores the contact points of box `ref` = 0 or 1, with the reference face across axis a, and the other box.

    R and o are orientation and centre of the other box in the frame of box `ref`.  A point is halfway between the
    reference face and a corner of the polygon.
    Reads:  shapes.*.   Writes: manifold.*, box.polygon.
    """
    up = 1.0 if o[a] >= 0.0 else -1.0
    other_box = 1 - ref
    u, v = (a + 1) % 3, (a + 2) % 3  # the axes along the face
    other_size, size = d1.shapes.size[other_box], d1.shapes.size[ref]
    store_incident_face(d1, o, R, other_size, size[a], a, up)  # writes box.polygon

    n, second_half = 4, CAPACITY
    # a box on a table needs no clipping
    if not is_inside(d1, size[u], size[v]):
        # to the four sides: from one half of box.polygon, from row 0 on, to the other, from row CAPACITY on, or back
        n = clip_polygon(d1, source=0, target=second_half, n=n, c=0, sign=1.0, limit=size[u])
        n = clip_polygon(d1, source=second_half, target=0, n=n, c=0, sign=-1.0, limit=size[u])
        n = clip_polygon(d1, source=0, target=second_half, n=n, c=1, sign=1.0, limit=size[v])
        n = clip_polygon(d1, source=second_half, target=0, n=n, c=1, sign=-1.0, limit=size[v])
    n = keep_distinct_corners(d1, n, NEAR * (size[u] * size[u] + size[v] * size[v]))

    M, centre = d1.shapes.mat[ref], d1.shapes.pos[ref]
    # the normal points from the first to the second box
    normal = (up if ref == 0 else -up) * M.columns[a]
    for k in range(n):
        height = d1.box.polygon[k][2]
        pos = fma(d1.box.polygon[k][0], M.columns[u], centre)
        pos = fma(d1.box.polygon[k][1], M.columns[v], pos)
        d1.manifold.dist[k] = height
        d1.manifold.pos[k] = fma(up * (size[a] + 0.5 * height), M.columns[a], pos)
        d1.manifold.normal[k] = normal
    d1.manifold.count[0] = n
