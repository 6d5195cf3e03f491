"""Computes the points of a box face contact: the other box's opposite face, clipped to the reference face.

The polygon is clipped by the four sides of the face, one after the other (Sutherland and Hodgman, Reentrant polygon
clipping, 1974).  Its corners have two coordinates along the face; the third is their height over it.
Source: MuJoCo 4.0.1 mjc_BoxBox.
"""

from featherlane.prelude import *
from featherlane.collision.pairs.box_frame import frame_column

CAPACITY = 12  # corner capacity of one half of box.polygon: eight, plus corners that rounding may add
MOST = 8  # points of one pair
NEAR = 1e-14  # squared distance, in half diagonals of the face, within which two corners coincide


@kernel
def along(o, R, size, r, b, turn):
    """Returns coordinate r of the middle and the two half sides of the face +-b of a box with centre o and axes R."""
    u, v = (b + 1) % 3, (b + 2) % 3
    return o[r] + turn * size[b] * R[3 * r + b], size[u] * R[3 * r + u], size[v] * R[3 * r + v]


@kernel
def lay_face(d1, o, R, size, level, a, up):
    """Copies the incident box's face opposite to the reference to box.polygon: coordinates a + 1, a + 2 and height.

    o, R and size describe the incident box in the reference's frame; the reference's face is at `level` along `up` a.
    """
    # the axis most parallel to a, oriented against it
    b = 0
    for k in range(1, 3):
        if fabs(R[3 * a + k]) > fabs(R[3 * a + b]):
            b = k
    turn = -1.0 if up * R[3 * a + b] > 0.0 else 1.0
    x, y = along(o, R, size, (a + 1) % 3, b, turn), along(o, R, size, (a + 2) % 3, b, turn)
    z = tuple(up * v for v in along(o, R, size, a, b, turn))
    for k in range(4):
        su, sv = -1.0 if k in (1, 2) else 1.0, -1.0 if k >= 2 else 1.0
        d1.box.polygon[k][0] = x[0] + su * x[1] + sv * x[2]
        d1.box.polygon[k][1] = y[0] + su * y[1] + sv * y[2]
        d1.box.polygon[k][2] = z[0] - level + su * z[1] + sv * z[2]


@kernel
def cut(d1, source, target, n, c, sign, limit):
    """Clips the polygon of n corners at `source` to sign x_c <= limit; returns the number of corners at `target`."""
    kept = 0
    for k in range(n):
        p, q = d1.box.polygon[source + k], d1.box.polygon[source + (k + 1 if k + 1 < n else 0)]
        here, there = sign * p[c] - limit, sign * q[c] - limit
        if (here <= 0.0) & (kept < CAPACITY):
            d1.box.polygon[target + kept] = p
            kept += 1
        if (((here < 0.0) & (there > 0.0)) | ((here > 0.0) & (there < 0.0))) & (kept < CAPACITY):
            t = here / (here - there)
            d1.box.polygon[target + kept] = p + t * (q - p)
            kept += 1
    return kept


@kernel
def is_new_corner(d1, k, n, radius2):
    """Returns whether corner k of the polygon is apart from the first n, projected along the normal."""
    for i in range(n):
        x = d1.box.polygon[i][0] - d1.box.polygon[k][0]
        y = d1.box.polygon[i][1] - d1.box.polygon[k][1]
        if x * x + y * y < radius2:
            return False
    return True


@kernel
def keep_near(d1, n, radius2):
    """Keeps the corners within the limit that do not coincide with previous ones; returns their number."""
    kept = 0
    for k in range(n):
        if kept < MOST and d1.box.polygon[k][2] <= d1.shapes.limit[0] and is_new_corner(d1, k, kept, radius2):
            d1.box.polygon[kept] = d1.box.polygon[k]
            kept += 1
    return kept


@kernel
def face_points(d1, R, o, ref, a):
    """Computes points over a face across axis a of box `ref`, the reference; R and o are the other box in its frame.

    A point is halfway between the face and a corner of the polygon.
    Reads:  shapes.*.   Writes: manifold.*, box.polygon.
    """
    up = 1.0 if o[a] >= 0.0 else -1.0
    inc, x, y = 1 - ref, (a + 1) % 3, (a + 2) % 3
    size, half = d1.shapes.size[inc], d1.shapes.size[ref]
    lay_face(d1, o, R, size, half[a], a, up)

    n, other = 4, CAPACITY
    n = cut(d1, 0, other, n, 0, 1.0, half[x])
    n = cut(d1, other, 0, n, 0, -1.0, half[x])
    n = cut(d1, 0, other, n, 1, 1.0, half[y])
    n = cut(d1, other, 0, n, 1, -1.0, half[y])
    n = keep_near(d1, n, NEAR * (half[x] * half[x] + half[y] * half[y]))

    M, centre = d1.shapes.mat[ref], d1.shapes.pos[ref]
    normal = (up if ref == 0 else -up) * frame_column(M, a)
    for k in range(n):
        height = d1.box.polygon[k][2]
        pos = fma(d1.box.polygon[k][0], frame_column(M, x), centre)
        pos = fma(d1.box.polygon[k][1], frame_column(M, y), pos)
        d1.manifold.dist[k] = height
        d1.manifold.pos[k] = fma(up * (half[a] + 0.5 * height), frame_column(M, a), pos)
        d1.manifold.normal[k] = normal
    d1.manifold.count[0] = n
