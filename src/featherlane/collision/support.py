"""Support points: the point of a convex shape that is farthest in a direction, and of the difference of two shapes.

A pair is looked at from the frame of its first shape: `convex_mat` and `convex_pos` are the second's pose in it, so
that directions and points of the first need no rotation, and numbers are as small as the shapes.  The difference of the
shapes, C = {a - b}, holds the origin where they overlap; its support point is that of the first along u less that of
the second along -u.

A sphere is a point here and a capsule a segment, both with a radius (`core_radius`) that is added in the end: depth and
distance of the round shapes are those of their cores less the radii, along the same normal, since the support function
of a ball is the same in all directions.

A corner of a box, a vertex of a hull and an end of a capsule have a number (`support_vertex`); a point of an ellipsoid
or a cylinder has -1.
Source: van den Bergen, Collision Detection in Interactive 3D Environments, sec. 4.3; MuJoCo mjc_*Support.
"""

from __future__ import annotations

from featherlane.lanes import kernel, sqrt, stage
from featherlane.model.enums import BOX, CAPSULE, CYLINDER, ELLIPSOID, MESH, SPHERE
from featherlane.spatial.vector import dot3, load3, load9, mat_mul_vec, mat_t_mul_vec, store3, sub3

PRISM = 8  # six vertices `prism_vert`, in the frame of the shape that has this type
NO_VERTEX = -1
CLIMB = 48  # hull vertices above which climbing along edges is quicker than asking all


# ---- shapes ---------------------------------------------------------------------------------------------------------
@kernel
def core_radius(d1, side):
    """What is added around the shape's core."""
    radius = 0.0 * d1.shape_size[3 * side]
    if d1.shape_type[side] in (SPHERE, CAPSULE):
        radius = d1.shape_size[3 * side]
    return radius


@kernel
def signed(size, u):
    """size with the sign of u, and 1 where that is plus."""
    bit, x = 1, size
    if u < 0.0:
        bit, x = 0, -size
    return x, bit


@kernel
def ellipsoid_support(size, u):
    """D^2 u / |D u|."""
    x, y, z = size[0] * u[0], size[1] * u[1], size[2] * u[2]
    norm = sqrt(dot3((x, y, z), (x, y, z)))
    if norm > 1e-300:
        s = 1.0 / norm
        x, y, z = size[0] * (x * s), size[1] * (y * s), size[2] * (z * s)
    return x, y, z


@kernel
def cylinder_support(size, u):
    """A point of a rim; along the axis, that on the x axis."""
    z, _ = signed(size[1], u[2])
    norm = sqrt(u[0] * u[0] + u[1] * u[1])
    x, y = size[0], 0.0 * size[0]
    if norm > 1e-300:
        s = size[0] / norm
        x, y = u[0] * s, u[1] * s
    return x, y, z


@kernel
def highest_vertex(m1, start, n, u):
    """The first of the hull's highest vertices, by asking all."""
    vertex, best = 0, dot3(load3(m1.hull_vert, 3 * start), u)
    for i in range(1, n):
        height = dot3(load3(m1.hull_vert, 3 * (start + i)), u)
        if height > best:
            vertex, best = i, height
    return vertex


@kernel
def climb(m1, start, n, u, vertex):
    """A highest vertex, by going from vertex to highest neighbour: on a convex hull none is missed."""
    best = dot3(load3(m1.hull_vert, 3 * (start + vertex)), u)
    for _ in range(n):
        at = start + vertex
        last = vertex
        for k in range(m1.hull_edgeadr[at], m1.hull_edgeadr[at] + m1.hull_edgenum[at]):
            i = m1.hull_edge[k]
            height = dot3(load3(m1.hull_vert, 3 * (start + i)), u)
            if height > best:
                vertex, best = i, height
        if vertex == last:
            break
    return vertex


@kernel
def higher_start(m1, mesh, start, u, last):
    """Where to climb from: the last answer, or the vertex that is farthest in the octant of u, whichever is higher."""
    octant = 0
    for k in range(3):
        if u[k] > 0.0:
            octant += 1 << k
    other = m1.hull_octant[8 * mesh + octant]
    if dot3(load3(m1.hull_vert, 3 * (start + other)), u) > dot3(load3(m1.hull_vert, 3 * (start + last)), u):
        last = other
    return last


@kernel
def highest_prism_vertex(d1, u):
    """The first of the prism's highest vertices."""
    vertex, best = 0, dot3(load3(d1.prism_vert, 0), u)
    for i in range(1, 6):
        height = dot3(load3(d1.prism_vert, 3 * i), u)
        if height > best:
            vertex, best = i, height
    return vertex


@kernel
def core_support(m1, d1, side, u):
    """(point, vertex) of the shape's core that is farthest along u, both in the shape's own frame.

    Climbing starts from `support_vertex`, the last answer for this pair, or from an extreme vertex of the octant.
    """
    shape, size = d1.shape_type[side], load3(d1.shape_size, 3 * side)
    vertex, zero = NO_VERTEX, 0.0 * size[0]
    x, y, z = zero, zero, zero
    if shape == MESH:
        mesh = d1.shape_data[side]
        start, n = m1.hull_vertadr[mesh], m1.hull_vertnum[mesh]
        if n > CLIMB:
            vertex = climb(m1, start, n, u, higher_start(m1, mesh, start, u, d1.support_vertex[side]))
        else:
            vertex = highest_vertex(m1, start, n, u)
        x, y, z = load3(m1.hull_vert, 3 * (start + vertex))
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
        x, y, z = load3(d1.prism_vert, 3 * vertex)
    else:
        vertex = 0
    return (x, y, z), vertex


# ---- the difference of two shapes ------------------------------------------------------------------------------------
@kernel
def look_from_first(d1):
    """The pose of the second shape in the frame of the first; climbing starts anew."""
    R = load9(d1.shape_mat, 0)
    store3(d1.convex_pos, 0, mat_t_mul_vec(R, sub3(load3(d1.shape_pos, 3), load3(d1.shape_pos, 0))))
    for k in range(3):
        column = mat_t_mul_vec(R, (d1.shape_mat[9 + k], d1.shape_mat[12 + k], d1.shape_mat[15 + k]))
        d1.convex_mat[k], d1.convex_mat[3 + k], d1.convex_mat[6 + k] = column
    d1.support_vertex[0], d1.support_vertex[1] = 0, 0


@stage
def support(m1, d1):
    """Support point of the difference of the cores along `support_dir`, in the frame of the first shape.

    Reads:  shape_*, convex_mat, convex_pos, support_dir (3,) of any length.
    Writes: support_first (3,), the point of the first core; support_point (3,), less that of the second [m];
            support_vertex (2,).
    """
    u = load3(d1.support_dir, 0)
    a, i = core_support(m1, d1, 0, u)
    v = mat_t_mul_vec(load9(d1.convex_mat, 0), u)
    b, j = core_support(m1, d1, 1, (-v[0], -v[1], -v[2]))
    b = mat_mul_vec(load9(d1.convex_mat, 0), b)
    store3(d1.support_first, 0, a)
    store3(d1.support_point, 0, sub3(sub3(a, b), load3(d1.convex_pos, 0)))
    d1.support_vertex[0], d1.support_vertex[1] = i, j


@kernel
def support_along(m1, d1, u):
    """The support point along u, as a vector; what else there is to know stands in `support_*`."""
    store3(d1.support_dir, 0, u)
    support(m1, d1)
    return load3(d1.support_point, 0)
