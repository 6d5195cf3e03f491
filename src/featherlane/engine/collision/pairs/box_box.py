"""Computes the contact points of two boxes: separating-axis test, then the points of a face or of two edges.

Fifteen axes can separate two boxes: three face normals of each and nine cross products of their edges (Gottschalk, Lin
and Manocha, OBBTree, 1996).  The axis of least overlap selects the contact type: a face contact, with up to eight
corners of the polygon where the other box's face overlaps it, or an edge contact, with one point.
In all kernels R and p are the second box's pose in the frame of the first, q is the first box's centre in the frame of
the second, size1 and size2 are half sides, and slack is the separation up to which boxes have contacts [m].
m1 and d1 are the model and the data of one world; shapes.* are the two boxes.  The products plain_* are not fused, so
that they round as MuJoCo's (box_frame.py).
Contact points are stored in manifold.*: their number manifold.count, then pos, dist and normal.
Source: MuJoCo 4.0.1 mjc_BoxBox, with its tolerances.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.pairs.box_edge import edge_point
from featherlane.engine.collision.pairs.box_face import face_points
from featherlane.engine.collision.pairs.box_frame import (
    plain_mat_t_mul_vec,
    unit_vector,
)

ROUNDING = 1e-13  # relative to the sum of half sizes: boxes whose overlap is within rounding still touch
PARALLEL = 1e-8  # sine below which two edges count as parallel
PREFERENCE = 1e-6  # relative advantage in separation that two edges need over a face
SAME = 0.99  # cosine above which the axis of two edges is as good as a face's normal
BETTER = 0.05  # advantage that they need then, relative to the face's depth
NEVER = -1e30  # m separation along an invalid axis
LEAST = 1e-8  # overlap, relative to the sum of half sizes: PREFERENCE of it is above the rounding of separations
SEPARATED, FACES1, FACES2, EDGES = -1, 0, 3, 6  # codes of axes; EDGES + 3 i + j is the axis of edges i and j

# box.axis has rows of eight lanes: rows 0 to 2 are the columns of R, one column per lane, then zeros.
# For edge i of the first box, lane j of rows 3 + 4 i .. 6 + 4 i is the separation along the unit vector
# (edge i) x (column j), and that vector.


@kernel
def extent(n, size):
    """Returns half the width of a box along a vector n in its frame: sum of |n_k| size_k."""
    return plain_dot3((fabs(n[0]), fabs(n[1]), fabs(n[2])), size)


@kernel
def best_face(R, p, q, size1, size2, slack):
    """Returns (code, separation) of the face normal along which the boxes overlap least, the first of equal ones.

    The separation is that of the boxes' projections on the normal, negative if they overlap.  If it exceeds the slack
    along a normal, the code is SEPARATED.
    """
    code = SEPARATED
    best = -1e10  # less than any separation
    # for each box: the code of its axis 0; the other box's centre and axes in its frame; its half sides and the other's
    for faces, centre, axes, own, other in ((FACES1, p, R, size1, size2), (FACES2, q, R.T, size2, size1)):
        for k in range(3):
            separation = fabs(centre[k]) - own[k] - extent(axes.rows[k], other)
            if separation > slack:
                return SEPARATED, separation
            if separation > best:
                code = faces + k
                best = separation
    return code, best


@kernel
def store_axes(d1, R):
    """Stores the columns of R, the second box's axes in the frame of the first, in rows 0 to 2 of box.axis."""
    rows = eights(d1.box.axis)
    for k in range(3):
        rows[k] = 0.0
    for k in range(9):
        d1.box.axis[k // 3, k % 3] = R[k]


@kernel
def store_edge_separations(d1, R, p, size1, size2):
    """Stores in box.axis the cross products of the boxes' edges, normalized, and the separations along them.

    The separation along u is |u . p| less half the width of each box along u, NEVER for parallel edges.
    box.axis has rows of eight lanes, lane j for edge j of the second box: rows 0 to 2 are x, y, z of this edge, row
    3 + 4 i is the separation along its cross product with edge i of the first box, the next three rows are x, y, z of
    that cross product.
    """
    rows = eights(d1.box.axis)
    columns = Vec3(rows[0:3])
    for i in (0, 1, 2):
        u, sine = normalize3(cross(unit_vector(i), columns))
        separation = fabs(plain_dot3(u, p)) - extent(u, size1) - extent(plain_mat_t_mul_vec(R, u), size2)
        row = 3 + 4 * i
        rows[row] = where(sine >= PARALLEL, separation, NEVER)
        rows[row + 1 : row + 4] = u


@kernel
def best_edges(d1, R, p, size1, size2, slack, face, depth):
    """Returns (code, separation, n) of the best of all axes, n being the unit vector of an edge axis.

    face, depth: code and separation of the best face normal (`best_face`).  For a face normal, n is undefined.
    Writes: box.axis, rows 3 to 14.
    """
    code, best = face, depth
    n = unit_vector(0)
    rows = eights(d1.box.axis)
    flat_rows = d1.box.axis
    store_edge_separations(d1, R, p, size1, size2)
    for i in range(3):
        separations = rows[3 + 4 * i]
        if any_(separations > slack):
            return SEPARATED, best, n
        # skips the three axes if none of them is better
        if any_((separations - PREFERENCE * fabs(separations) > best) & (separations > depth)):
            for j in range(3):
                entry = 8 * (3 + 4 * i) + j  # lane j of row 3 + 4 i; the vector is in lane j of the next three rows
                separation = flat_rows[entry]
                # better than the best axis so far by PREFERENCE, and better than the best face
                if (separation - PREFERENCE * fabs(separation) > best) & (separation > depth):
                    edge_code = EDGES + 3 * i + j
                    u = Vec3(flat_rows[entry + 8], flat_rows[entry + 16], flat_rows[entry + 24])
                    code, best, n = edge_code, separation, u
    return code, best, n


@kernel
def is_deep_inside(R, o, size, other_size, a, depth):
    """Returns whether the deepest corner of a box is below the other's face, away from its sides by its depth or more.

    Then no axis has less overlap than the face's normal n, so that the edges need no test: the face's box contains a
    right cylinder of radius r and height h >= r >= depth, whose axis is the normal through the corner.  Along a unit
    vector u, with the angle t to n, the overlap is at least depth cos t + r sin t >= depth; from the other side of the
    face's box, it is at least (h - depth) cos t + r sin t.

    Args:
        R, o: axes and centre of the box with the corner, in the frame of the box with the face.
        size, other_size: half sides of the box with the face, and of the other one.
        a: axis of the face.
        depth: overlap along n, positive [m].
    """
    up = 1.0 if o[a] >= 0.0 else -1.0
    row = R.rows[a]
    to_corner = (
        -up * (other_size[0] if row[0] >= 0.0 else -other_size[0]),
        -up * (other_size[1] if row[1] >= 0.0 else -other_size[1]),
        -up * (other_size[2] if row[2] >= 0.0 else -other_size[2]),
    )
    inside = depth <= size[a]
    for k in (1, 2):
        side = (a + k) % 3  # an axis along the face
        inside = inside & (fabs(o[side] + dot3(R.rows[side], to_corner)) + depth <= size[side])
    return inside


@kernel
def separating_axis(d1, R, p, q, size1, size2, slack):
    """Returns (code, n) of the axis of least overlap, n being the unit vector of an edge axis, else undefined.

    The code is SEPARATED if the boxes are apart.  An edge axis that is close to the best face's normal, and hardly
    better, is rejected, because the face yields more points.
    """
    face, depth = best_face(R, p, q, size1, size2, slack)
    if face == SEPARATED:
        return face, unit_vector(0)  # no edge axis: any vector
    # a box on a table; this saves a quarter of the time of the pair
    if -depth >= LEAST * (size1[0] + size1[1] + size1[2] + size2[0] + size2[1] + size2[2]):
        if face < FACES2:
            deep = is_deep_inside(R, p, size1, size2, face, -depth)
        else:
            deep = is_deep_inside(R.T, q, size2, size1, face - FACES2, -depth)
        if deep:
            return face, unit_vector(0)
    store_axes(d1, R)  # box.axis, for best_edges
    code, best, n = best_edges(d1, R, p, size1, size2, slack, face, depth)
    if code >= EDGES:
        # between the edge axis and the best face's normal: axis `face` of box 1, or axis face - FACES2 of box 2
        cosine = n[face] if face < FACES2 else plain_dot3(n, R.columns[face - FACES2])
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
    slack: separation [m] up to which boxes have contacts.
    """
    R1, R2 = d1.shapes.mat[0], d1.shapes.mat[1]
    offset = d1.shapes.pos[1] - d1.shapes.pos[0]
    x, y, z = R2.columns
    # R1^T R2 without fma: its columns are the axes of the second box in the frame of the first
    R = Mat3(join(plain_mat_t_mul_vec(R1, x), plain_mat_t_mul_vec(R1, y), plain_mat_t_mul_vec(R1, z))).T
    p = plain_mat_t_mul_vec(R1, offset)
    q = plain_mat_t_mul_vec(R2, -offset)
    size1, size2 = d1.shapes.size[0], d1.shapes.size[1]
    slack = d1.shapes.limit[0] + ROUNDING * (size1[0] + size1[1] + size1[2] + size2[0] + size2[1] + size2[2])

    d1.manifold.count[0] = 0
    code, n = separating_axis(d1, R, p, q, size1, size2, slack)
    if code >= EDGES:
        edge_point(d1, R, p, n, (code - EDGES) // 3, (code - EDGES) % 3, slack)
    elif code >= FACES2:
        face_points(d1, R.T, q, ref=1, a=code - FACES2)
    elif code >= FACES1:
        face_points(d1, R, p, ref=0, a=code)  # FACES1 is 0
