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
def face_coordinate(o, R, size, r, b, turn):
    """Returns coordinate r of a box's face: (of its middle, of half its first side, of half its second side).

    The face is across axis b, on side `turn` = -1 or 1, of the box with centre o, axes R and half sides `size`.
    """
    u, v = (b + 1) % 3, (b + 2) % 3  # the two axes along the face; R[3 r + b] is R_rb
    return o[r] + turn * size[b] * R[3 * r + b], size[u] * R[3 * r + u], size[v] * R[3 * r + v]


@kernel
def store_incident_face(d1, o, R, size, level, a, up):
    """Stores the incident box's face opposite to the reference in box.polygon: coordinates a + 1, a + 2 and height.

    o, R and size describe the incident box in the reference's frame; the reference's face is across axis a, on side
    `up` = -1 or 1, at the distance `level` from its centre.
    """
    # the axis most parallel to a, oriented against it
    b = 0
    for k in range(1, 3):
        if fabs(R[3 * a + k]) > fabs(R[3 * a + b]):
            b = k
    turn = -1.0 if up * R[3 * a + b] > 0.0 else 1.0
    # of each coordinate: the face's middle, and the changes along half of its two sides
    x, y = face_coordinate(o, R, size, (a + 1) % 3, b, turn), face_coordinate(o, R, size, (a + 2) % 3, b, turn)
    z = tuple(up * v for v in face_coordinate(o, R, size, a, b, turn))
    for k in range(4):
        # signs of corner k along the two sides, in cyclic order: (1, 1), (-1, 1), (-1, -1), (1, -1)
        su = -1.0 if k in (1, 2) else 1.0
        sv = -1.0 if k >= 2 else 1.0
        d1.box.polygon[k][0] = x[0] + su * x[1] + sv * x[2]
        d1.box.polygon[k][1] = y[0] + su * y[1] + sv * y[2]
        d1.box.polygon[k][2] = z[0] - level + su * z[1] + sv * z[2]


@kernel
def clip_polygon(d1, source, target, n, c, sign, limit):
    """Clips the polygon to sign x_c <= limit, c = 0 or 1; returns its new number of corners.

    It has n corners in box.polygon from `source` on; the clipped one is written from `target` on.
    """
    kept = 0
    for k in range(n):
        p, q = d1.box.polygon[source + k], d1.box.polygon[source + (k + 1 if k + 1 < n else 0)]
        here, there = sign * p[c] - limit, sign * q[c] - limit
        if (here <= 0.0) & (kept < CAPACITY):
            d1.box.polygon[target + kept] = p
            kept += 1
        # the edge to the next corner crosses the line
        if (((here < 0.0) & (there > 0.0)) | ((here > 0.0) & (there < 0.0))) & (kept < CAPACITY):
            t = here / (here - there)
            d1.box.polygon[target + kept] = p + t * (q - p)
            kept += 1
    return kept


@kernel
def is_new_corner(d1, k, n, radius2):
    """Returns whether corner k of box.polygon is apart from each of the first n, projected along the normal.

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
    """Keeps the corners of box.polygon, of n, within the limit and not at a previous one; returns their number.

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
    """Computes points over a face across axis a of box `ref` = 0 or 1, the reference.

    R and o are orientation and centre of the other box in the frame of `ref`.  A point is halfway between the face and
    a corner of the polygon.
    Reads:  shapes.*.   Writes: manifold.*, box.polygon.
    """
    up = 1.0 if o[a] >= 0.0 else -1.0
    other_box = 1 - ref
    x, y = (a + 1) % 3, (a + 2) % 3  # the axes along the face
    size, half = d1.shapes.size[other_box], d1.shapes.size[ref]
    store_incident_face(d1, o, R, size, half[a], a, up)  # writes box.polygon

    # clip to the four sides, between the two halves of box.polygon
    n, buffer = 4, CAPACITY
    n = clip_polygon(d1, source=0, target=buffer, n=n, c=0, sign=1.0, limit=half[x])
    n = clip_polygon(d1, source=buffer, target=0, n=n, c=0, sign=-1.0, limit=half[x])
    n = clip_polygon(d1, source=0, target=buffer, n=n, c=1, sign=1.0, limit=half[y])
    n = clip_polygon(d1, source=buffer, target=0, n=n, c=1, sign=-1.0, limit=half[y])
    n = keep_distinct_corners(d1, n, NEAR * (half[x] * half[x] + half[y] * half[y]))

    M, centre = d1.shapes.mat[ref], d1.shapes.pos[ref]
    # from the first box to the second
    normal = (up if ref == 0 else -up) * M.columns[a]
    for k in range(n):
        height = d1.box.polygon[k][2]
        pos = fma(d1.box.polygon[k][0], M.columns[x], centre)
        pos = fma(d1.box.polygon[k][1], M.columns[y], pos)
        d1.manifold.dist[k] = height
        d1.manifold.pos[k] = fma(up * (half[a] + 0.5 * height), M.columns[a], pos)
        d1.manifold.normal[k] = normal
    d1.manifold.count[0] = n
