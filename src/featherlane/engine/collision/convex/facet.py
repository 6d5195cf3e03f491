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

facet.vertex[0] has the i, facet.vertex[1] the j.  An edge is stored as i0, i1, i1; a single vertex, or a face, is
stored three times.  facet.apart is 1 if the cores are separated.

A face differs from a triangle if its corners are coplanar up to a small part of the height by which all other vertices
are below it.  Then a search may end anywhere on the face, and its plane is the facet's.  If the origin's projection is
WELL_INSIDE (relative to the size) from the face's border, the final plane of the search is rotated against the face by
at most error / WELL_INSIDE.  A vertex lower by the drop, at most twice the size away, does not reach that plane if this
angle is below drop / 2.  No adjacent face is nearer to that plane if the angle is below drop / 4.
m1 and d1 are the model and the data of one world.  `side` is 0 for the first shape, 1 for the second.
The core of a sphere is its centre, that of a capsule its segment; any other shape is its own core.
shapes.*[side] has the type, the size and the pose of each shape, and in shapes.data the index of its mesh.
The hull of a mesh has the vertices hull_vert[hull_vertadr[mesh]] and following.  Of a vertex, hull_flat lists the flat
faces with more than three corners, from hull_flatadr on, numbered within their hull; its first face is hull_polyadr.
hull_planenormal, ...offset, ...error and ...drop describe the plane of a face, error and drop as above.
PRISM is a type of shape: a prism with the vertices shapes.prism.  FLAT is the largest error of a flat face, relative
to its drop.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.support import PRISM, unit_axis
from featherlane.engine.model.hull import FLAT

NO_FACET, FIRST, SECOND, CROSSING, FACE_FIRST, FACE_SECOND, FACES, FACE_EDGE, EDGE_FACE = range(9)
NO_FACE = -1
WELL_INSIDE = 4.0 * FLAT  # relative to the size: nearer to a face's border, the origin's projection counts as outside


# ---- vertices --------------------------------------------------------------------------------------------------------
@kernel
def plus_or_minus(x, vertex, bit):
    """Returns x if the vertex index has the bit, else -x."""
    return x if vertex & bit else -x


@kernel
def vertex_of(m1, d1, side, vertex):
    """Returns the position of a core's vertex, in the shape's frame; vertices are numbered as by `core_support`."""
    shape, size = d1.shapes.type[side], d1.shapes.size[side]
    x, y, z = zeros(3)
    if shape == MESH:
        x, y, z = m1.hull_vert[m1.hull_vertadr[d1.shapes.data[side]] + vertex]
    elif shape == BOX:
        # bit k of the index is 1 on the positive side of axis k
        x, y, z = tuple(plus_or_minus(size[k], vertex, 1 << k) for k in range(3))
    elif shape == CAPSULE:
        z = plus_or_minus(size[1], vertex, 1)
    elif shape == PRISM:
        x, y, z = d1.shapes.prism[vertex]
    return Vec3(x, y, z)


@kernel
def vertex_difference(m1, d1, vertex1, vertex2):
    """Returns a vertex of the first core less a vertex of the second core, in the frame of the first.

    It is rounded in the same order as by `support_point`.
    """
    return vertex_of(m1, d1, 0, vertex1) - d1.convex.mat[0] @ vertex_of(m1, d1, 1, vertex2) - d1.convex.pos[0]


# ---- the facet -----------------------------------------------------------------------------------------------------
@kernel
def sorted3(i, j, k):
    """Returns three numbers in ascending order."""
    low = min(i, j, k)
    high = max(i, j, k)
    return low, i + j + k - low - high, high


@kernel
def face_towards(m1, d1, side, vertex, direction, max_difference):
    """Returns the core's face at a vertex whose normal is nearest to a direction, or NO_FACE if none is near enough.

    Only faces with more than three corners are considered.

    Args:
        direction: unit vector in the shape's frame.
        max_difference: largest |normal - direction|; the cosine is then at least 1 - max_difference^2 / 2.
    """
    shape = d1.shapes.type[side]
    face = NO_FACE
    if shape == MESH:
        mesh = d1.shapes.data[side]
        hull_vertex = m1.hull_vertadr[mesh] + vertex
        largest_cosine = 1.0 - 0.5 * max_difference * max_difference
        for k in range(m1.hull_flatadr[hull_vertex], m1.hull_flatadr[hull_vertex] + m1.hull_flatnum[hull_vertex]):
            candidate = m1.hull_polyadr[mesh] + m1.hull_flat[k]
            cosine = dot(m1.hull_planenormal[candidate], direction)
            if cosine > largest_cosine:
                largest_cosine, face = cosine, candidate
    elif shape == BOX:
        # face 2 k is on the negative side of axis k, face 2 k + 1 on the positive side, where bit k of a vertex is 1
        for axis in range(3):
            if fabs(direction[axis]) > 1.0 - 0.5 * max_difference * max_difference:
                face = 2 * axis + min(vertex & (1 << axis), 1)
    return face


@kernel
def set_facet(d1, kind, vertices1, vertices2):
    """Sets facet.kind and facet.vertex.

    vertices1, vertices2: three indices for each core; a face, or a single vertex, is repeated three times.
    """
    d1.facet.kind[0] = kind
    d1.facet.vertex[0, 0], d1.facet.vertex[0, 1], d1.facet.vertex[0, 2] = vertices1
    d1.facet.vertex[1, 0], d1.facet.vertex[1, 1], d1.facet.vertex[1, 2] = vertices2


@kernel
def name_facet(d1, vertices1, vertices2):
    """Sets facet.kind and facet.vertex to the facet that three points a - b of the difference span, or to NO_FACET.

    vertices1, vertices2: the vertex indices of the three points a, and of the three points b.
    """
    i0, i1, i2 = sorted3(vertices1[0], vertices1[1], vertices1[2])
    j0, j1, j2 = sorted3(vertices2[0], vertices2[1], vertices2[2])
    kind = NO_FACET
    # points of curved shapes have no vertex
    if i0 >= 0 and j0 >= 0:
        # three different vertices of one core, one of the other
        if i0 < i1 and i1 < i2 and j0 == j2:
            kind = FIRST
        elif i0 == i2 and j0 < j1 and j1 < j2:
            kind = SECOND
        # two different vertices of each core; the facet stores an edge as i0, i1, i1
        elif i0 < i2 and (i0 == i1 or i1 == i2) and j0 < j2 and (j0 == j1 or j1 == j2):
            kind = CROSSING
            i1, j1 = i2, j2
    set_facet(d1, kind, (i0, i1, i2), (j0, j1, j2))


@kernel
def has_face(d1, side):
    """Returns whether the facet contains a face of this core."""
    kind = d1.facet.kind[0]
    return kind in (FACES, FACE_FIRST, FACE_EDGE) if side == 0 else kind in (FACES, FACE_SECOND, EDGE_FACE)


@kernel
def box_face_normal(face):
    """Returns the normal of a box's face: -axis k of face 2 k, +axis k of face 2 k + 1."""
    return unit_axis(face // 2, 1.0 if face % 2 else -1.0)


@kernel
def plane_of_face(m1, d1, side):
    """Returns (normal, offset) of the facet's face on one core: normal . x = offset, in the frame of its shape."""
    face, size = d1.facet.vertex[side, 0], d1.shapes.size[side]
    if d1.shapes.type[side] == MESH:
        return m1.hull_planenormal[face], m1.hull_planeoffset[face]
    # faces 2 k and 2 k + 1 of a box are at half size k from its centre
    return box_face_normal(face), size[face // 2]


@kernel
def error_and_drop(m1, d1, side):
    """Returns (error, drop) of the facet's face on one core [m].

    error: largest distance of the face's corners from its plane; drop: height by which all other vertices are below it.
    """
    face = d1.facet.vertex[side, 0]
    if d1.shapes.type[side] == MESH:
        return m1.hull_planeerror[face], m1.hull_planedrop[face]
    # the opposite face of a box is two half sizes below
    return 0.0, 2.0 * d1.shapes.size[side][face // 2]


@kernel
def is_of_facet(m1, d1, side, vertex):
    """Returns whether a vertex of this core belongs to the facet.

    If the facet contains a face of this core, vertices less than half the face's drop below its plane belong to it.
    """
    if has_face(d1, side):
        normal, offset = plane_of_face(m1, d1, side)
        _, drop = error_and_drop(m1, d1, side)
        return dot(normal, vertex_of(m1, d1, side, vertex)) > offset - 0.5 * drop
    return vertex in (d1.facet.vertex[side, 0], d1.facet.vertex[side, 1], d1.facet.vertex[side, 2])
