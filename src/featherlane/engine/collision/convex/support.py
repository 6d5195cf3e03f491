"""Computes support points: the farthest point of a convex shape, or of the difference of two shapes, in a direction.

A pair is represented in the frame of its first shape: `convex.mat` and `convex.pos` are the second's pose in it.  Thus
directions and points of the first need no rotation, and values are as small as the shapes.  The difference of the
shapes, C = {a - b}, contains the origin if they overlap; its support point is that of the first along u minus that of
the second along -u.

A sphere is a point here and a capsule a segment, both with a radius (`core_radius`) that is added at the end: depth and
distance of the round shapes are those of their cores less the radii, along the same normal, since the support function
of a ball is the same in all directions.

A corner of a box, a vertex of a hull and an end of a capsule have an index (`support.vertex`); for a point of an
ellipsoid or a cylinder it is -1.

The hull of a mesh has hull_vertnum[mesh] vertices from hull_vert[hull_vertadr[mesh]] on.  hull_candidate lists the
vertices, numbered within their hull, that are farthest along some direction of a cell of directions.

m1 and d1 are the model and the data of one world.  `side` is 0 for the first shape, 1 for the second; shapes.*[side]
holds its type, size, pose and mesh.  support.dir is the direction of a support point of the difference, support.first
the point a, support.point a - b.
Source: van den Bergen, Collision Detection in Interactive 3D Environments, sec. 4.3; MuJoCo mjc_*Support.
"""

from featherlane.engine.prelude import *

PRISM = 8  # six vertices `shapes.prism`, in the frame of the shape that has this type
NO_VERTEX = -1
NO_LENGTH = 1e-300  # a direction shorter than this selects no point of a curve or surface


# ---- shapes ---------------------------------------------------------------------------------------------------------
@kernel
def core_radius(d1, side):
    """Returns the radius around the shape's core: that of a sphere or a capsule, else 0 [m]."""
    return d1.shapes.size[side][0] if d1.shapes.type[side] in (SPHERE, CAPSULE) else 0.0


@kernel
def core_limit(d1):
    """Returns the distance of the cores up to which the shapes have a contact point [m]."""
    return (d1.shapes.limit[0] - d1.shapes.slack[0]) + (core_radius(d1, side=0) + core_radius(d1, side=1))


@kernel
def is_curved(d1):
    """Returns whether one of the cores is not a polytope."""
    type1, type2 = d1.shapes.type[0], d1.shapes.type[1]
    return type1 in (ELLIPSOID, CYLINDER) or type2 in (ELLIPSOID, CYLINDER)


@kernel
def is_convex(m1, d1, side):
    """Returns whether a core is exactly convex; the hull of a mesh may not be, by rounding (hull_convex)."""
    return d1.shapes.type[side] != MESH or m1.hull_convex[d1.shapes.data[side]] == 1


@kernel
def signed(size, u):
    """Returns (size, 1), or (-size, 0) if u < 0: a coordinate of a box's corner, and its bit in the vertex index."""
    return (-size, 0) if u < 0.0 else (size, 1)


@kernel
def unit_axis(axis, length):
    """Returns the vector of this length (1 or -1) along a coordinate axis."""
    return Vec3(length if k == axis else 0.0 for k in range(3))


@kernel
def scaled_by_sizes(size, v):
    """Returns D v, D the diagonal matrix of the sizes."""
    return Vec3(size[0] * v[0], size[1] * v[1], size[2] * v[2])


@kernel
def ellipsoid_support(size, u):
    """Returns the support point D^2 u / |D u| of an ellipsoid, D the diagonal matrix of its sizes."""
    support = scaled_by_sizes(size, u)
    norm = norm3(support)  # |D u|
    return scaled_by_sizes(size, (1.0 / norm) * support) if norm > NO_LENGTH else support


@kernel
def cylinder_support(size, u):
    """Returns the support point of a cylinder, on a rim; for u along the axis, the point of the rim on the x axis.

    size: radius and half length [m].
    """
    z, _ = signed(size[1], u[2])
    norm = sqrt(u[0] * u[0] + u[1] * u[1])
    x = size[0]
    y = 0.0
    if norm > NO_LENGTH:
        scale = size[0] / norm
        x, y = u[0] * scale, u[1] * scale
    return Vec3(x, y, z)


@kernel
def cell_of(u, n):
    """Returns the index of the cell of directions that contains u; the order is that of `model.hull`.

    u is projected on a cube: face 2 k if the negative axis k is the major one, 2 k + 1 if the positive one is.  A face
    has n rows of n cells.
    """
    x_size, y_size, z_size = fabs(u[0]), fabs(u[1]), fabs(u[2])
    face = 0
    major, minor1, minor2 = u[0], u[1], u[2]
    if y_size > x_size and y_size >= z_size:
        face = 2
        major, minor1, minor2 = u[1], u[2], u[0]
    elif z_size > x_size:
        face = 4
        major, minor1, minor2 = u[2], u[0], u[1]
    if major > 0.0:
        face += 1
    # the coordinates minor / |major| on the face, from -1 to 1, are mapped to 0 .. n - 1
    half = 0.5 * n
    scale = half / fabs(major)
    row = whole(clip(minor1 * scale + half, 0.0, n - 1.0))
    column = whole(clip(minor2 * scale + half, 0.0, n - 1.0))
    return (face * n + row) * n + column


@kernel
def farthest_vertex(m1, mesh, u):
    """Returns the first of a hull's farthest vertices along u, counted from the hull's first vertex.

    The candidates of u's cell of directions are tested.  The maximum uses a select, not a branch, because which
    candidate is higher cannot be predicted.
    """
    start = m1.hull_vertadr[mesh]
    cell = m1.hull_celladr[mesh] + cell_of(u, m1.hull_cells[mesh])
    first, end = m1.hull_cell[cell], m1.hull_cell[cell + 1]
    best = dot(m1.hull_vert[start + m1.hull_candidate[first]], u)
    vertex = where(best < best, best, m1.hull_candidate[first])  # the mask is false: a value of the precision of `best`
    for k in range(first + 1, end):
        candidate = m1.hull_candidate[k]
        height = dot(m1.hull_vert[start + candidate], u)
        vertex = where(height > best, candidate, vertex)
        best = fmax(height, best)
    return whole(vertex)


@kernel
def highest_prism_vertex(d1, u):
    """Returns the index of the first of the prism's highest vertices along u."""
    vertex = 0
    best = dot(d1.shapes.prism[0], u)
    for k in range(1, 6):
        height = dot(d1.shapes.prism[k], u)
        if height > best:
            vertex, best = k, height
    return vertex


@kernel
def core_support(m1, d1, side, u):
    """Returns (point, vertex): the farthest point of the shape's core along u, in the shape's frame, and its index.

    vertex: NO_VERTEX on a curved shape.  Bit k of a box's vertex is 1 if coordinate k is positive.
    """
    kind, size = d1.shapes.type[side], d1.shapes.size[side]
    vertex = NO_VERTEX
    x, y, z = zeros(3)
    if kind == MESH:
        mesh = d1.shapes.data[side]
        vertex = farthest_vertex(m1, mesh, u)
        x, y, z = m1.hull_vert[m1.hull_vertadr[mesh] + vertex]
    elif kind == BOX:
        x, x_bit = signed(size[0], u[0])
        y, y_bit = signed(size[1], u[1])
        z, z_bit = signed(size[2], u[2])
        vertex = x_bit + 2 * y_bit + 4 * z_bit
    elif kind == CYLINDER:
        x, y, z = cylinder_support(size, u)
    elif kind == ELLIPSOID:
        x, y, z = ellipsoid_support(size, u)
    elif kind == CAPSULE:
        z, vertex = signed(size[1], u[2])
    elif kind == PRISM:
        vertex = highest_prism_vertex(d1, u)
        x, y, z = d1.shapes.prism[vertex]
    else:  # a sphere's core is its centre
        vertex = 0
    return Vec3(x, y, z), vertex


# ---- the difference of two shapes ------------------------------------------------------------------------------------
@kernel
def look_from_first(d1):
    """Computes the pose of the second shape in the frame of the first: convex.pos and convex.mat."""
    first_mat = d1.shapes.mat[0]
    d1.convex.pos[0] = first_mat.T @ (d1.shapes.pos[1] - d1.shapes.pos[0])
    d1.convex.mat[0] = first_mat.T @ d1.shapes.mat[1]


@kernel
def vector_in_frame(d1, side, v):
    """Returns a vector in the frame of shape `side`; v is given in the frame of shape 1 - side."""
    return d1.convex.mat[0] @ v if side == 0 else d1.convex.mat[0].T @ v


@kernel
def point_in_frame(d1, side, x):
    """Returns a point in the frame of shape `side`; x is given in the frame of shape 1 - side."""
    mat, pos = d1.convex.mat[0], d1.convex.pos[0]
    return mat @ x + pos if side == 0 else mat.T @ (x - pos)


@stage
def support_point(m1, d1):
    """Computes the support point of the difference of the cores along `support.dir`, in the frame of the first shape.

    Reads:  shapes.*, convex.mat, convex.pos, support.dir (3,) of any length.
    Writes: support.first (3,), the first core's support point a; support.point (3,), the difference a - b [m];
            support.vertex (2,), the vertex indices of a and b.
    """
    u = d1.support.dir[0]
    point1, vertex1 = core_support(m1, d1, 0, u)
    # u in the second shape's frame; the second core's support point is that along -u
    u2 = d1.convex.mat[0].T @ u
    point2, vertex2 = core_support(m1, d1, 1, -u2)
    d1.support.first[0] = point1
    d1.support.point[0] = point1 - d1.convex.mat[0] @ point2 - d1.convex.pos[0]
    d1.support.vertex[0], d1.support.vertex[1] = vertex1, vertex2


@kernel
def support_along(m1, d1, u):
    """Returns the support point a - b of the difference along u.

    Writes: support.dir, u; support.first, a; support.point, a - b; support.vertex, the vertex indices of a and b.
    """
    d1.support.dir[0] = u
    support_point(m1, d1)
    return d1.support.point[0]
