"""Builds the polytope of the EPA: its vertices and faces, and the tetrahedron from which it grows.

The vertices are support points of the difference of two shapes: epa.point[v] = a - b, epa.first[v] = a on the first
core, epa.vertex[v] the vertex indices of a and b.  Face f has corners epa.corner[f], counterclockwise from outside, the
unit normal epa.normal[:, f], and the plane normal . x = epa.offset[f].  Edge e of face f goes from its corner e to the
next one; epa.neighbour[f, e] = 4 g + h is the same edge as edge h of face g.  `eights(field)` is a field as
rows of eight values.
m1 and d1 are the model and the data of one world.  `size` is the approximate extent of the shapes [m], for tolerances.
A face's priority in the search is epa.key, its offset, or GROWN if it is removed; epa.mark is 0 until a new vertex sees
it.  simplex.* are the points from which the polytope starts, stored as its vertices.

Imported kernels:

    support_along(m1, d1, u)  support point of the difference along u; writes support.* of both cores

Source: van den Bergen, Collision Detection in Interactive 3D Environments, sec. 4.3.8.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.support import support_along, unit_axis

FACES = 512  # capacity
GROWN = 1e30  # key of a face that is excluded from the search
TINY = 1e-300  # m^4: least squared normal that is divided by
FLAT = 1e-10  # height of the first tetrahedron, relative to the size, below which the difference is flat
THICK = 1e-3  # height of a simplex of four points, relative to the size, below which another fourth one is searched


# ---- faces ---------------------------------------------------------------------------------------------------------
@kernel
def keep_vertex(d1, v):
    """Stores the latest support point, support.*, as vertex v of the polytope."""
    d1.epa.point[v] = d1.support.point[0]
    d1.epa.first[v] = d1.support.first[0]
    d1.epa.vertex[v, 0], d1.epa.vertex[v, 1] = d1.support.vertex[0], d1.support.vertex[1]


@kernel
def make_face(d1, face, vertex1, vertex2, vertex3):
    """Stores a face with three vertices a, b, c, counterclockwise from outside.

    Its normal is (b - a) x (c - a), normalized; its offset is normal . c.  A face without area has the offset and the
    key GROWN, so it is never the nearest.
    Writes: epa.corner, epa.normal, epa.offset, epa.key, epa.mark.
    """
    d1.epa.corner[face, 0], d1.epa.corner[face, 1], d1.epa.corner[face, 2] = vertex1, vertex2, vertex3
    a, b, c = d1.epa.point[vertex1], d1.epa.point[vertex2], d1.epa.point[vertex3]
    normal = cross(b - a, c - a)
    normal_squared = dot(normal, normal)
    offset = GROWN
    if normal_squared > 0.0:
        normal = 1.0 / sqrt(normal_squared) * normal
        offset = dot(normal, c)
    d1.epa.normal[0, face], d1.epa.normal[1, face], d1.epa.normal[2, face] = normal
    d1.epa.offset[face], d1.epa.key[face] = offset, offset
    d1.epa.mark[face] = 0


@kernel
def normal_of_face(d1, f):
    """Returns the unit normal of a face."""
    return Vec3(d1.epa.normal[0, f], d1.epa.normal[1, f], d1.epa.normal[2, f])


@kernel
def make_faces(d1, nface):
    """Computes the planes of faces 0 .. nface - 1, at most 64, from their corners `epa.corner`, eight at once.

    A face without area has the offset and the key GROWN.   Writes: epa.normal, epa.offset, epa.key, epa.mark.

    The corners of all faces are copied to epa.corner_point before any is loaded from it, because a load of eight values
    waits for recent stores of single values.  epa.corner_point (8, 9, 8) has nine rows of eight values for each group
    of eight faces: x, y, z of corner a, then of b, then of c.
    """
    normals = eights(d1.epa.normal)
    corners = eights(d1.epa.corner_point)
    keys = eights(d1.epa.key)
    offsets = eights(d1.epa.offset)
    run = FACES // 8  # rows of eight values of each coordinate in epa.normal
    for group in range((nface + 7) // 8):
        for lane in range(8):
            face = min(8 * group + lane, nface - 1)  # the last face fills the last group
            d1.epa.mark[8 * group + lane] = 0
            for corner in unrolled(range(3)):
                x, y, z = d1.epa.point[d1.epa.corner[face, corner]]
                # x is in row 3 corner of the group's nine rows of eight values; y and z are in the next rows
                at_x = 72 * group + 24 * corner + lane
                d1.epa.corner_point[at_x], d1.epa.corner_point[at_x + 8], d1.epa.corner_point[at_x + 16] = x, y, z
    for group in range((nface + 7) // 8):
        row = 9 * group
        a = Vec3(corners[row : row + 3])
        b, c = Vec3(corners[row + 3 : row + 6]), Vec3(corners[row + 6 : row + 9])
        normal = cross(b - a, c - a)
        normal_squared = dot(normal, normal)
        normal = where(normal_squared > 0.0, 1.0 / sqrt(fmax(normal_squared, TINY)), 1.0) * normal
        offset = where(normal_squared > 0.0, dot(normal, c), GROWN)
        normals[group], normals[group + run], normals[group + 2 * run] = normal
        offsets[group], keys[group] = offset, offset
    # the remaining places of the last group hold no face
    for face in range(nface, 8 * ((nface + 7) // 8)):
        d1.epa.key[face] = GROWN


@kernel
def open_group(d1, face):
    """Sets the keys of the next eight faces to GROWN if `face` is the first of a group of eight.

    Searches for the least key read whole groups.
    """
    if face % 8 == 0:
        keys = eights(d1.epa.key)
        keys[face // 8] = GROWN


@kernel
def set_neighbours(d1, face, beyond0, beyond1, beyond2):
    """Stores, for edges 0, 1 and 2 of a face, the same edge of the adjacent face, as 4 face + edge."""
    d1.epa.neighbour[face, 0], d1.epa.neighbour[face, 1], d1.epa.neighbour[face, 2] = beyond0, beyond1, beyond2


# ---- the first tetrahedron -------------------------------------------------------------------------------------------
@kernel
def axis_across(e):
    """Returns the unit vector of the coordinate axis along which e has the smallest component."""
    x, y, z = fabs(e)
    return unit_axis(0 if x <= y and x <= z else 1 if y <= z else 2, 1.0)


@kernel
def second_vertex(m1, d1, size):
    """Finds vertex 1, away from vertex 0, by support points along +-x, +-y, +-z; returns the number of vertices.

    This is 1 if no such vertex exists, else 2.
    """
    count = 1
    vertex0 = d1.epa.point[0]
    for k in range(6):
        if count == 1:  # no vertex was found yet
            # +x, -x, +y, -y, +z, -z
            edge = support_along(m1, d1, unit_axis(k // 2, 1.0 - 2.0 * (k & 1))) - vertex0
            if dot(edge, edge) > (FLAT * size) * (FLAT * size):
                keep_vertex(d1, 1)
                count = 2
    return count


@kernel
def third_vertex(m1, d1, size):
    """Finds vertex 2, off the line of vertices 0 and 1, along directions orthogonal to it; returns the vertex count.

    This is 2 if no such vertex exists, else 3.
    """
    count = 2
    vertex0 = d1.epa.point[0]
    edge = d1.epa.point[1] - vertex0
    across = cross(edge, axis_across(edge))
    across2 = cross(edge, across)
    # `cross` has multiplied the length by |edge|: across2 gets the length of `across` again
    across2 = sqrt(dot(across, across) / dot(across2, across2)) * across2
    for k in range(4):
        if count == 2:  # no vertex was found yet
            sign = 1.0 - 2.0 * (k & 1)  # +across, -across, +across2, -across2
            direction = across if k < 2 else across2
            offset = support_along(m1, d1, sign * direction) - vertex0
            area = cross(offset, edge)  # its length is the distance from the line times |edge|
            if dot(area, area) > (FLAT * size) * (FLAT * size) * dot(edge, edge):
                keep_vertex(d1, 2)
                count = 3
    return count


@kernel
def plane_of_three(d1):
    """Returns the unit normal of the first three vertices."""
    vertex0 = d1.epa.point[0]
    normal = cross(d1.epa.point[1] - vertex0, d1.epa.point[2] - vertex0)
    return 1.0 / sqrt(dot(normal, normal)) * normal


@kernel
def fourth_vertex(m1, d1, size):
    """Finds vertex 3, the farthest from the plane of vertices 0 to 2; returns the number of vertices.

    This is 3 if the difference is flat, else 4.
    """
    count = 3
    vertex0 = d1.epa.point[0]
    normal = plane_of_three(d1)
    # the support point along the normal, replaced by that along -normal if this is farther from the plane
    height = dot(support_along(m1, d1, normal) - vertex0, normal)
    keep_vertex(d1, 3)
    depth = dot(vertex0 - support_along(m1, d1, -normal), normal)
    if depth > height:
        keep_vertex(d1, 3)
        height = depth
    if height > FLAT * size:
        count = 4
    return count


@kernel
def first_tetrahedron(m1, d1, size):
    """Completes the simplex to the tetrahedron of vertices 0 to 3; returns the number of vertices, below four if flat.

    Reads: simplex.*.  Writes: epa.point, epa.first, epa.vertex.
    """
    count = d1.simplex.count[0]
    for k in range(count):
        d1.epa.point[k] = d1.simplex.point[k]
        d1.epa.first[k] = d1.simplex.first[k]
        d1.epa.vertex[k, 0], d1.epa.vertex[k, 1] = d1.simplex.vertex[k, 0], d1.simplex.vertex[k, 1]

    # keeps the first vertices that span a line, a plane, and a volume; `not >` also rejects NaN
    vertex0 = d1.epa.point[0]
    if count > 1:
        edge = d1.epa.point[1] - vertex0
        if not dot(edge, edge) > (FLAT * size) * (FLAT * size):
            count = 1
        elif count > 2:
            normal = cross(edge, d1.epa.point[2] - vertex0)
            normal_squared = dot(normal, normal)
            if not normal_squared > (FLAT * size) * (FLAT * size) * dot(edge, edge):
                count = 2
            elif count > 3:
                # height of point 3 above the others' plane, times |normal|
                height = dot(normal, d1.epa.point[3] - vertex0)
                if not height * height > (THICK * size) * (THICK * size) * normal_squared:
                    count = 3
    if count == 1:
        count = second_vertex(m1, d1, size)
    if count == 2:
        count = third_vertex(m1, d1, size)
    if count == 3:
        count = fourth_vertex(m1, d1, size)
    return count


@kernel
def close_tetrahedron(d1):
    """Creates the four faces of the tetrahedron, oriented outwards, and their neighbours as 4 face + edge."""
    vertex0 = d1.epa.point[0]
    normal = cross(d1.epa.point[1] - vertex0, d1.epa.point[2] - vertex0)
    vertex1, vertex2 = (2, 1) if dot(normal, d1.epa.point[3] - vertex0) > 0.0 else (1, 2)
    # face 0 has the vertices 0, vertex1, vertex2, in the order that puts vertex 3 behind it; faces 1 to 3 have vertex 3
    # and one edge of face 0
    make_face(d1, 0, 0, vertex1, vertex2)
    make_face(d1, 1, 0, 3, vertex1)
    make_face(d1, 2, vertex1, 3, vertex2)
    make_face(d1, 3, vertex2, 3, 0)
    # for example, edge 0 of face 0 (0 to vertex1) is edge 2 of face 1 (vertex1 to 0)
    set_neighbours(d1, 0, 4 * 1 + 2, 4 * 2 + 2, 4 * 3 + 2)
    set_neighbours(d1, 1, 4 * 3 + 1, 4 * 2 + 0, 4 * 0 + 0)
    set_neighbours(d1, 2, 4 * 1 + 1, 4 * 3 + 0, 4 * 0 + 1)
    set_neighbours(d1, 3, 4 * 2 + 1, 4 * 1 + 0, 4 * 0 + 2)
