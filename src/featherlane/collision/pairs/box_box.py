"""Computes the contact points of two boxes: separating-axis test, then the points of a face or of two edges.

Fifteen axes can separate two boxes: three face normals of each and nine cross products of their edges (Gottschalk, Lin
and Manocha, OBBTree, 1996).  The axis of least overlap selects the contact type: a face contact, with up to eight
corners of the polygon where the other box's face overlaps it, or an edge contact, with one point.
Source: MuJoCo 4.0.1 mjc_BoxBox, with its tolerances.
"""

from featherlane.prelude import *
from featherlane.collision.pairs.box_edge import edge_point
from featherlane.collision.pairs.box_face import face_points
from featherlane.collision.pairs.box_frame import axis, frame_column, frame_row, relative, seen_from

ROUNDING = 1e-13  # relative to the sum of half sizes: boxes whose overlap is within rounding still touch
PARALLEL = 1e-8  # sine below which two edges count as parallel
PREFERENCE = 1e-6  # relative advantage in separation that two edges need over a face
SAME = 0.99  # cosine above which the axis of two edges is as good as a face's normal
BETTER = 0.05  # advantage that they need then, relative to the face's depth
NEVER = -1e30  # m separation along an invalid axis

SEPARATED, FACES1, FACES2, EDGES = -1, 0, 3, 6  # codes of axes; EDGES + 3 i + j is the axis of edges i and j


@kernel
def extent(n, size):
    """Returns half the width of a box along a vector in its frame: sum of |n_k| size_k."""
    return plain_dot3((fabs(n[0]), fabs(n[1]), fabs(n[2])), size)


@kernel
def best_face(R, p, q, size1, size2, slack):
    """Returns (code, separation) of the face normal of least overlap, the first of equal ones."""
    code, best = SEPARATED, -1e10
    for k in range(3):
        gap = fabs(p[k]) - size1[k] - extent(frame_row(R, k), size2)
        if gap > slack:
            return SEPARATED, gap
        if gap > best:
            code, best = FACES1 + k, gap
    for k in range(3):
        gap = fabs(q[k]) - size2[k] - extent(frame_column(R, k), size1)
        if gap > slack:
            return SEPARATED, gap
        if gap > best:
            code, best = FACES2 + k, gap
    return code, best


@kernel
def lay_columns(d1, R):
    """Stores the second box's axes in the frame of the first, side by side, padded with zeros after the third."""
    E = eights(d1.box.axis)
    for k in range(3):
        E[k] = 0.0
    for k in range(9):
        d1.box.axis[k // 3, k % 3] = R[k]


@kernel
def lay_gaps(d1, R, p, size1, size2):
    """Computes the cross products of the first box's edges with the second's three, and the separations along them."""
    E = eights(d1.box.axis)
    columns = Vec3(E[0:3])
    for i in (0, 1, 2):
        u, sine = normalize3(cross(axis(i), columns))
        gap = fabs(plain_dot3(u, p)) - extent(u, size1) - extent(seen_from(R, u), size2)
        k = 3 + 4 * i
        E[k], E[k + 1 : k + 4] = where(sine >= PARALLEL, gap, NEVER), u


@kernel
def best_edges(d1, R, p, size1, size2, slack, face, depth):
    """Returns (code, separation, axis) of the best of all axes, given the best face's code and separation."""
    code, best, n, E, A = face, depth, axis(0), eights(d1.box.axis), d1.box.axis
    lay_gaps(d1, R, p, size1, size2)
    for i in range(3):
        gaps = E[3 + 4 * i]
        if any_(gaps > slack):
            return SEPARATED, best, n
        if any_((gaps - PREFERENCE * fabs(gaps) > best) & (gaps > depth)):
            for j in range(3):
                k = 8 * (3 + 4 * i) + j
                gap = A[k]
                if (gap - PREFERENCE * fabs(gap) > best) & (gap > depth):
                    code, best, n = EDGES + 3 * i + j, gap, Vec3(A[k + 8], A[k + 16], A[k + 24])
    return code, best, n


@kernel
def separating_axis(d1, R, p, q, size1, size2, slack):
    """Returns (code, axis of the edges) of the axis of least overlap.

    An edge axis close to the best face's normal, and hardly better, is rejected: the face yields more points.
    """
    lay_columns(d1, R)
    face, depth = best_face(R, p, q, size1, size2, slack)
    if face == SEPARATED:
        return face, axis(0)
    code, best, n = best_edges(d1, R, p, size1, size2, slack, face, depth)
    if code >= EDGES:
        cosine = n[face] if face < FACES2 else plain_dot3(n, frame_column(R, face - FACES2))
        if (fabs(cosine) > SAME) & (best < depth + BETTER * fabs(depth) + MINVAL):
            code = face
    return code, n


@stage
def box_box(m1, d1):
    """Computes up to eight contact points of two boxes.

    Source: MuJoCo mjc_BoxBox; the choice among equal axes and the order of points were measured on it.
    Reads:  shapes.pos, shapes.mat, shapes.size, shapes.limit.
    Writes: manifold.*.
    Scratch: box.*.
    Frame: R and p are the second box's pose in the frame of the first, q is the first's centre in the second's frame.
    """
    R1, R2 = d1.shapes.mat[0], d1.shapes.mat[1]
    offset = d1.shapes.pos[1] - d1.shapes.pos[0]
    R, p, q = relative(R1, R2), seen_from(R1, offset), seen_from(R2, -offset)
    size1, size2 = d1.shapes.size[0], d1.shapes.size[1]
    slack = d1.shapes.limit[0] + ROUNDING * (size1[0] + size1[1] + size1[2] + size2[0] + size2[1] + size2[2])

    d1.manifold.count[0] = 0
    code, n = separating_axis(d1, R, p, q, size1, size2, slack)
    if code >= EDGES:
        edge_point(d1, R, p, n, (code - EDGES) // 3, (code - EDGES) % 3, slack)
    elif code >= FACES2:
        face_points(d1, R.T, q, 1, code - FACES2)
    elif code >= FACES1:
        face_points(d1, R, p, 0, code)
