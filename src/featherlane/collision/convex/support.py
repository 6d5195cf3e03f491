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
Source: van den Bergen, Collision Detection in Interactive 3D Environments, sec. 4.3; MuJoCo mjc_*Support.
"""

from featherlane.prelude import *
from featherlane.model.hull import ASK_ALL, CELLS

PRISM = 8  # six vertices `shapes.prism`, in the frame of the shape that has this type
NO_VERTEX = -1
CLIMB = 48  # hull vertices above which climbing along edges is faster than testing all


# ---- shapes ---------------------------------------------------------------------------------------------------------
@kernel
def core_radius(d1, side):
    """Returns the radius around the shape's core."""
    radius = 0.0 * d1.shapes.size[side][0]
    if d1.shapes.type[side] in (SPHERE, CAPSULE):
        radius = d1.shapes.size[side][0]
    return radius


@kernel
def core_limit(d1):
    """Returns the distance of the cores up to which the shapes have a contact point [m]."""
    return (d1.shapes.limit[0] - d1.shapes.slack[0]) + (core_radius(d1, 0) + core_radius(d1, 1))


@kernel
def is_curved(d1):
    """Returns whether one of the cores is not a polytope."""
    i, j = d1.shapes.type[0], d1.shapes.type[1]
    return i in (ELLIPSOID, CYLINDER) or j in (ELLIPSOID, CYLINDER)


@kernel
def is_convex(m1, d1, side):
    """Returns whether a core is exactly convex, according to its edges."""
    convex = True
    if d1.shapes.type[side] == MESH:
        convex = m1.hull_convex[d1.shapes.data[side]] == 1
    return convex


@kernel
def signed(size, u):
    """Returns size with the sign of u, and 1 if that is plus."""
    bit, x = 1, size
    if u < 0.0:
        bit, x = 0, -size
    return x, bit


@kernel
def unit_axis(i, s):
    """Returns s times axis i."""
    zero = 0.0 * s
    v = Vec3(zero, zero, s)
    if i == 0:
        v = Vec3(s, zero, zero)
    elif i == 1:
        v = Vec3(zero, s, zero)
    return v


@kernel
def ellipsoid_support(size, u):
    """Returns D^2 u / |D u|."""
    v = Vec3(size[0] * u[0], size[1] * u[1], size[2] * u[2])
    norm = norm3(v)
    if norm > 1e-300:
        w = (1.0 / norm) * v
        v = Vec3(size[0] * w[0], size[1] * w[1], size[2] * w[2])
    return v


@kernel
def cylinder_support(size, u):
    """Returns a point of a rim; for u along the axis, the one on the x axis."""
    z, _ = signed(size[1], u[2])
    norm = sqrt(u[0] * u[0] + u[1] * u[1])
    x, y = size[0], 0.0 * size[0]
    if norm > 1e-300:
        s = size[0] / norm
        x, y = u[0] * s, u[1] * s
    return Vec3(x, y, z)


@kernel
def highest_vertex(m1, start, n, u):
    """Returns the first of the hull's highest vertices, by testing all."""
    best = dot(m1.hull_vert[start], u)
    vertex = where(best < best, best, 0.0)  # finite even for a NaN direction
    for i in range(1, n):
        height = dot(m1.hull_vert[start + i], u)
        vertex, best = where(height > best, i, vertex), fmax(height, best)
    return whole(vertex)


@kernel
def climb(m1, start, n, u, vertex):
    """Returns a highest vertex, by moving from a vertex to its highest neighbour, which is exact on a convex hull.

    The maximum uses a select, not a branch, because which neighbour is higher cannot be predicted.
    """
    best = dot(m1.hull_vert[start + vertex], u)
    for _ in range(n):
        at, higher = start + vertex, where(best < best, best, -1.0)
        for k in range(m1.hull_edgeadr[at], m1.hull_edgeadr[at] + m1.hull_edgenum[at]):
            i = m1.hull_edge[k]
            height = dot(m1.hull_vert[start + i], u)
            higher, best = where(height > best, i, higher), fmax(height, best)
        if higher < 0.0:
            break
        vertex = whole(higher)
    return vertex


@kernel
def cell_of(u):
    """Returns the index of the cell of directions that contains u; the order is that of `model.hull`."""
    a, b, c = fabs(u[0]), fabs(u[1]), fabs(u[2])
    face, x, y, z = 0, u[0], u[1], u[2]
    if b > a and b >= c:
        face, x, y, z = 2, u[1], u[2], u[0]
    elif c > a:
        face, x, y, z = 4, u[2], u[0], u[1]
    if x > 0.0:
        face += 1
    s = (0.5 * CELLS) / fabs(x)
    i = whole(clip(y * s + 0.5 * CELLS, 0.0, CELLS - 1.0))
    j = whole(clip(z * s + 0.5 * CELLS, 0.0, CELLS - 1.0))
    return (face * CELLS + i) * CELLS + j


@kernel
def highest_prism_vertex(d1, u):
    """Returns the first of the prism's highest vertices."""
    vertex, best = 0, dot(d1.shapes.prism[0], u)
    for i in range(1, 6):
        height = dot(d1.shapes.prism[i], u)
        if height > best:
            vertex, best = i, height
    return vertex


@kernel
def core_support(m1, d1, side, u):
    """Returns (point, vertex) of the farthest point of the shape's core along u, both in the shape's own frame.

    Climbing starts from the farthest vertex along the middle of the direction's cell.  In about one of three cases
    this is not the result yet.
    """
    shape, size = d1.shapes.type[side], d1.shapes.size[side]
    vertex, zero = NO_VERTEX, 0.0 * size[0]
    x, y, z = zero, zero, zero
    if shape == MESH:
        mesh = d1.shapes.data[side]
        start, n = m1.hull_vertadr[mesh], m1.hull_vertnum[mesh]
        if n > ASK_ALL:
            vertex = climb(m1, start, n, u, m1.hull_start[m1.hull_startadr[mesh] + cell_of(u)])
        else:
            vertex = highest_vertex(m1, start, n, u)
        x, y, z = m1.hull_vert[start + vertex]
    elif shape == BOX:
        x, i = signed(size[0], u[0])
        y, j = signed(size[1], u[1])
        z, k = signed(size[2], u[2])
        vertex = i + 2 * j + 4 * k
    elif shape == CYLINDER:
        x, y, z = cylinder_support(size, u)
    elif shape == ELLIPSOID:
        x, y, z = ellipsoid_support(size, u)
    elif shape == CAPSULE:
        z, vertex = signed(size[1], u[2])
    elif shape == PRISM:
        vertex = highest_prism_vertex(d1, u)
        x, y, z = d1.shapes.prism[vertex]
    else:
        vertex = 0
    return Vec3(x, y, z), vertex


# ---- the difference of two shapes ------------------------------------------------------------------------------------
@kernel
def look_from_first(d1):
    """Computes the pose of the second shape in the frame of the first."""
    R = d1.shapes.mat[0]
    d1.convex.pos[0] = R.T @ (d1.shapes.pos[1] - d1.shapes.pos[0])
    d1.convex.mat[0] = R.T @ d1.shapes.mat[1]


@stage
def support_point(m1, d1):
    """Computes the support point of the difference of the cores along `support.dir`, in the frame of the first shape.

    Reads:  shapes.*, convex.mat, convex.pos, support.dir (3,) of any length.
    Writes: support.first (3,), the point of the first core; support.point (3,), less that of the second [m];
            support.vertex (2,).
    """
    u = d1.support.dir[0]
    a, i = core_support(m1, d1, 0, u)
    v = d1.convex.mat[0].T @ u
    b, j = core_support(m1, d1, 1, -v)
    d1.support.first[0] = a
    d1.support.point[0] = a - d1.convex.mat[0] @ b - d1.convex.pos[0]
    d1.support.vertex[0], d1.support.vertex[1] = i, j


@kernel
def support_along(m1, d1, u):
    """Returns the support point along u, as a vector; its other results are in `support_*`."""
    d1.support.dir[0] = u
    support_point(m1, d1)
    return d1.support.point[0]
