"""Represents facets of the difference of two polytopes by the vertices that span them.

A facet is a face of one shape with a vertex of the other, or two edges that cross.  Its vertex indices determine its
normal, its depth and the nearest points (facet_depth.py), bitwise identical for any search that found it.

    kind         vertices            points of the difference
    FIRST        i0 < i1 < i2, j0    a triangle of the first, less a vertex of the second shape
    SECOND       i0, j0 < j1 < j2    a vertex of the first, less a triangle of the second
    CROSSING     i0 < i1, j0 < j1    two edges: a parallelogram
    FACE_FIRST   face, j0            a face of the first, of any number of corners, less a vertex of the second
    FACE_SECOND  i0, face            a vertex of the first, less a face of the second
    FACES        face, face          two faces that are parallel
    FACE_EDGE    face, j0 < j1       a face of the first, an edge of the second that is parallel to it
    EDGE_FACE    i0 < i1, face       an edge of the first, a face of the second

A face differs from a triangle if its corners are coplanar up to a small part of the height by which all other vertices
are below it.  Then a search may end anywhere on the face, and its plane is the facet's.  If the origin's projection is
WELL_INSIDE (relative to the size) from the face's border, the final plane of the search is rotated against the face by
at most error / WELL_INSIDE.  A vertex lower by the drop, at most twice the size away, does not reach that plane if this
angle is below drop / 2.  No adjacent face is nearer to that plane if the angle is below drop / 4.
"""

from featherlane.prelude import *
from featherlane.collision.convex.support import PRISM, unit_axis
from featherlane.model.hull import FLAT

NO_FACET, FIRST, SECOND, CROSSING, FACE_FIRST, FACE_SECOND, FACES, FACE_EDGE, EDGE_FACE = range(9)
NO_FACE = -1
WELL_INSIDE = 4.0 * FLAT  # relative to the size: nearer to a face's border, the origin's projection counts as outside


# ---- vertices --------------------------------------------------------------------------------------------------------
@kernel
def plus_or_minus(x, i, bit):
    """Returns x if the number has the bit, else -x."""
    return x if i & bit else -x


@kernel
def vertex_of(m1, d1, side, i):
    """Returns vertex i of a core, in the shape's frame, numbered as by `core_support`."""
    kind, size = d1.shapes.type[side], d1.shapes.size[side]
    zero = 0.0 * size[0]
    x, y, z = zero, zero, zero
    if kind == MESH:
        x, y, z = m1.hull_vert[m1.hull_vertadr[d1.shapes.data[side]] + i]
    elif kind == BOX:
        x, y, z = plus_or_minus(size[0], i, 1), plus_or_minus(size[1], i, 2), plus_or_minus(size[2], i, 4)
    elif kind == CAPSULE:
        z = plus_or_minus(size[1], i, 1)
    elif kind == PRISM:
        x, y, z = d1.shapes.prism[i]
    return Vec3(x, y, z)


@kernel
def vertex_difference(m1, d1, i, j):
    """Returns vertex i of the first core less vertex j of the second, in the frame of the first, as `support` does."""
    return vertex_of(m1, d1, 0, i) - d1.convex.mat[0] @ vertex_of(m1, d1, 1, j) - d1.convex.pos[0]


# ---- the facet -----------------------------------------------------------------------------------------------------
@kernel
def sorted3(i, j, k):
    """Returns three numbers in ascending order."""
    low, high = min(i, j, k), max(i, j, k)
    return low, i + j + k - low - high, high


@kernel
def face_towards(m1, d1, side, i, u, alike):
    """Returns the face at vertex i of a core, of more than three corners, with a normal close to u, or NO_FACE."""
    kind, face = d1.shapes.type[side], NO_FACE
    if kind == MESH:
        mesh = d1.shapes.data[side]
        at, best = m1.hull_vertadr[mesh] + i, 0.0 * u[0] + (1.0 - 0.5 * alike * alike)
        for c in range(m1.hull_flatadr[at], m1.hull_flatadr[at] + m1.hull_flatnum[at]):
            f = m1.hull_polyadr[mesh] + m1.hull_flat[c]
            cosine = dot(m1.hull_planenormal[f], u)
            if cosine > best:
                best, face = cosine, f
    elif kind == BOX:
        for axis in range(3):
            if fabs(u[axis]) > 1.0 - 0.5 * alike * alike:
                face = 2 * axis + min(i & (1 << axis), 1)
    return face


@kernel
def set_facet(d1, kind, i, j):
    """Sets a facet by its kind and vertices."""
    d1.facet.kind[0] = kind
    d1.facet.vertex[0, 0], d1.facet.vertex[0, 1], d1.facet.vertex[0, 2] = i
    d1.facet.vertex[1, 0], d1.facet.vertex[1, 1], d1.facet.vertex[1, 2] = j


@kernel
def name_facet(d1, i, j):
    """Sets the facet that three points of the difference span; i and j: their vertices of the first and second core."""
    a, b, c = sorted3(i[0], i[1], i[2])
    x, y, z = sorted3(j[0], j[1], j[2])
    kind = NO_FACET
    if a >= 0 and x >= 0:
        if a < b and b < c and x == z:
            kind = FIRST
        elif a == c and x < y and y < z:
            kind = SECOND
        elif a < c and (a == b or b == c) and x < z and (x == y or y == z):
            kind, b, y = CROSSING, c, z
    set_facet(d1, kind, (a, b, c), (x, y, z))


@kernel
def has_face(d1, side):
    """Returns whether the facet contains a face of this core."""
    kind = d1.facet.kind[0]
    return (
        kind == FACES
        or kind == (FACE_FIRST if side == 0 else FACE_SECOND)
        or kind == (FACE_EDGE if side == 0 else EDGE_FACE)
    )


@kernel
def plane_of_face(m1, d1, side):
    """Returns (normal, offset) of the facet's face, in the frame of its shape."""
    f, size = d1.facet.vertex[side, 0], d1.shapes.size[side]
    if d1.shapes.type[side] == MESH:
        n, offset = m1.hull_planenormal[f], m1.hull_planeoffset[f]
    else:
        s = 0.0 * size[0] + 1.0
        if f % 2 == 0:
            s = -s
        n, offset = unit_axis(f // 2, s), size[f // 2]
    return n, offset


@kernel
def error_and_drop(m1, d1, side):
    """Returns (error, drop): the corners' deviation from the face's plane, and the height of all others below it."""
    f = d1.facet.vertex[side, 0]
    if d1.shapes.type[side] == MESH:
        error, drop = m1.hull_planeerror[f], m1.hull_planedrop[f]
    else:
        error, drop = 0.0 * d1.shapes.size[0][0], 2.0 * d1.shapes.size[side][f // 2]
    return error, drop


@kernel
def is_of_facet(m1, d1, side, i):
    """Returns whether vertex i of this core belongs to the facet."""
    if has_face(d1, side):
        n, offset = plane_of_face(m1, d1, side)
        _, drop = error_and_drop(m1, d1, side)
        found = dot(n, vertex_of(m1, d1, side, i)) > offset - 0.5 * drop
    else:
        a, b, c = d1.facet.vertex[side, 0], d1.facet.vertex[side, 1], d1.facet.vertex[side, 2]
        found = i in (a, b, c)
    return found
