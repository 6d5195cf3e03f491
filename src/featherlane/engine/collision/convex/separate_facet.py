"""Tests whether a facet is isolated, and identifies the facet where a search ended.

A facet is isolated if no other vertex of the difference is near its plane.  Then every search ends at this facet, and
the results derived from it are bitwise identical with or without a search.

The facet is given by facet.kind and facet.vertex (facet.py): facet.vertex[side] has three vertices of a core; a face,
or a single vertex, is stored three times.  convex.mat is the second shape's orientation in the frame of the first.
m1 and d1 are the model and the data of one world.  The core of a sphere is its centre, that of a capsule its segment;
any other shape is its own core.
`side` is 0 for the first shape, 1 for the second.  `size` is the approximate extent of the shapes [m].
shapes.*[side] has the type, the size and the pose of each shape, and in shapes.data the index of its mesh.
The hull of a mesh has the vertices hull_vert[hull_vertadr[mesh]] and following.  hull_edge lists the neighbours of a
vertex, from hull_edgeadr on, hull_polyvert the corners of a face; both are numbered within their hull.
CROSSING, FACE_FIRST, ... are the kinds of facets in the table of facet.py.  Its WELL_INSIDE is a distance from a
border, relative to the size; LEVEL is the largest deviation of parallel parts, relative to that distance.
PARALLEL is the largest sine between parts that count as parallel; NO_FACE means that there is no face.  convex.normal
is the facet's normal in the frame of the first shape.

Imported kernels:

    vertex_of(m1, d1, side, vertex)  position of a core's vertex, in the frame of its shape
    face_towards                     face at a vertex with a normal near a direction, NO_FACE if there is none
    has_face, is_of_facet            whether the facet contains a face of a core, or this vertex of a core
    plane_of_face, error_and_drop    (normal, offset), (error, drop) of the facet's face on a core
    set_facet, name_facet            set facet.kind and facet.vertex; name_facet by the number of different vertices
    measure_facet(m1, d1)            writes convex.*; distance of the foot from the facet's border, 0 outside
    size_of_pair(m1, d1)             approximate extent of the shapes, for tolerances
    support_along(m1, d1, u)         support point of the difference along u; writes support.*
    is_convex(m1, d1, side)          whether a core is exactly convex; a hull may not be, by rounding
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.facet import (
    CROSSING,
    EDGE_FACE,
    FACE_EDGE,
    FACE_FIRST,
    FACE_SECOND,
    FACES,
    NO_FACE,
    NO_FACET,
    WELL_INSIDE,
    box_face_normal,
    error_and_drop,
    face_towards,
    has_face,
    is_of_facet,
    name_facet,
    plane_of_face,
    set_facet,
    vertex_of,
)
from featherlane.engine.collision.convex.facet_depth import LEVEL, PARALLEL, measure_facet, size_of_pair
from featherlane.engine.collision.convex.support import is_convex, support_along, vector_in_frame

SAME_SIDE = 0.5  # least cosine between the facet's normal and the search's
SETTLED = 1e-10  # relative to the size: maximum error of a search's depth, including slivers
ALIKE = 1e-3  # maximum difference of a face's normal and a search's; MuJoCo merges faces that differ by less


# ---- edges -----------------------------------------------------------------------------------------------------------
@kernel
def count_neighbours(m1, d1, side, vertex):
    """Returns the number of a core's edges at one of its vertices."""
    shape = d1.shapes.type[side]
    count = 0
    if shape == MESH:
        count = m1.hull_edgenum[m1.hull_vertadr[d1.shapes.data[side]] + vertex]
    elif shape == BOX:
        count = 3
    elif shape == CAPSULE:
        count = 1
    return count


@kernel
def neighbour(m1, d1, side, vertex, number):
    """Returns the other end of edge `number` (from 0 to `count_neighbours` - 1) at a vertex of a core."""
    shape = d1.shapes.type[side]
    other = 1 - vertex  # the ends of a capsule's segment are 0 and 1
    if shape == MESH:
        other = m1.hull_edge[m1.hull_edgeadr[m1.hull_vertadr[d1.shapes.data[side]] + vertex] + number]
    elif shape == BOX:
        other = vertex ^ (1 << number)  # the corner on the other side along axis `number`
    return other


@kernel
def is_steep_or_on_facet(m1, d1, side, neighbour_vertex, edge, normal, slope, slack):
    """Returns whether an edge descends along a normal more steeply than the slope, or its end is on the facet.

    Args:
        neighbour_vertex: end of the edge.
        edge: vector to this end.
        slope: sine of the angle of descent.
        slack: part of the descent that may be an error [m].
    """
    descent = -dot(edge, normal) - slack
    # descent > slope |edge|, squared
    return (descent > 0.0 and descent * descent > (slope * slope) * dot(edge, edge)) or is_of_facet(
        m1, d1, side, neighbour_vertex
    )


@kernel
def is_lower_around(m1, d1, side, vertex, normal, slope, slack):
    """Returns whether a core falls away from the facet at one of its vertices, and no search ends at a face there.

    - All edges from the vertex to vertices outside the facet must descend along the normal (in the shape's frame) more
      steeply than the slope, after subtracting the slack [m].
    - The vertex must have no nearly parallel face at which a search might end instead (not `is_distinct_face`).  The
      slope does not exclude such a face: an edge that is hardly longer than the face's flatness error may be steep.
    """
    lower = True
    position = vertex_of(m1, d1, side, vertex)
    if d1.shapes.type[side] == MESH:
        # the shape's type is evaluated once, not for each edge: 3 % of the step of hands and arms with hulls
        first = m1.hull_vertadr[d1.shapes.data[side]]
        for k in range(m1.hull_edgenum[first + vertex]):
            end = m1.hull_edge[m1.hull_edgeadr[first + vertex] + k]
            edge = m1.hull_vert[first + end] - position
            lower = lower and is_steep_or_on_facet(m1, d1, side, end, edge, normal, slope, slack)
    else:
        for k in range(count_neighbours(m1, d1, side, vertex)):
            end = neighbour(m1, d1, side, vertex, k)
            edge = vertex_of(m1, d1, side, end) - position
            lower = lower and is_steep_or_on_facet(m1, d1, side, end, edge, normal, slope, slack)
    # a search ends with a normal within ALIKE / 2 of the facet's (`is_separate_facet`), and uses a face whose normal is
    # within ALIKE of the search's: within 2 ALIKE of the facet's
    face = face_towards(m1, d1, side, vertex, normal, 2.0 * ALIKE) if lower else NO_FACE
    return lower and (face == NO_FACE or is_distinct_face(m1, d1, side, face))


@kernel
def has_edge_orthogonal_to(m1, d1, side, vertex, direction):
    """Returns whether a vertex of a core has an edge nearly orthogonal to a direction: sine up to 2 PARALLEL.

    A search uses such an edge up to half this sine (`edge_orthogonal_to`).
    """
    position = vertex_of(m1, d1, side, vertex)
    found = False
    for k in range(count_neighbours(m1, d1, side, vertex)):
        edge = vertex_of(m1, d1, side, neighbour(m1, d1, side, vertex, k)) - position
        rise = dot(edge, direction)
        found = found or not rise * rise > (2.0 * PARALLEL) * (2.0 * PARALLEL) * dot(edge, edge)
    return found


@kernel
def is_distinct_face(m1, d1, side, face):
    """Returns whether a search that ends at this facet cannot end with a box's nearly parallel face instead.

    `settle_on_facet` uses the box's face in two cases:

    (a) a face or an edge of the other core is parallel to it;
    (b) the three points of the search have different vertices of the box, but a single vertex of the other core.

    (b) is excluded if the facet is a crossing of edges, or has a single vertex of the box.  Then (a) is tested.
    A hull may have several nearly parallel faces, so its faces are never distinct.
    face: a face of core `side` at one of the facet's vertices; its normal is within 2 ALIKE of the facet's.
    """
    other = 1 - side
    # (b); a single vertex is stored three times
    distinct = d1.shapes.type[side] == BOX and (
        d1.facet.kind[0] == CROSSING or d1.facet.vertex[side, 0] == d1.facet.vertex[side, 2]
    )
    if distinct:
        # (a)
        normal_in_other = vector_in_frame(d1, other, box_face_normal(face))
        if has_face(d1, other):
            # the facet's face of the other core must be a hull's, and neither this face nor an edge at its corners may
            # be parallel to the box's face.  With two boxes, a search may end with two faces
            other_normal, _ = plane_of_face(m1, d1, other)
            sum_of_normals = normal_in_other + other_normal  # 0 for parallel faces that touch
            sine_squared = dot(sum_of_normals, sum_of_normals)
            distinct = d1.shapes.type[other] == MESH and sine_squared > (2.0 * PARALLEL) * (2.0 * PARALLEL)
            other_face = d1.facet.vertex[other, 0]
            for k in range(m1.hull_polyvertnum[other_face] if distinct else 0):
                vertex = m1.hull_polyvert[m1.hull_polyvertadr[other_face] + k]
                distinct = distinct and not has_edge_orthogonal_to(m1, d1, other, vertex, normal_in_other)
        else:
            # no edge at one of the facet's vertices of the other core may be parallel to the box's face
            for k in range(3):
                vertex = d1.facet.vertex[other, k]
                distinct = distinct and not has_edge_orthogonal_to(m1, d1, other, vertex, normal_in_other)
    return distinct


@kernel
def edge_of_facet(m1, d1, side):
    """Returns the vector along the facet's edge of a core, in the frame of its shape."""
    # an edge is stored as i0, i1, i1
    vertex1, vertex2 = d1.facet.vertex[side, 0], d1.facet.vertex[side, 2]
    return vertex_of(m1, d1, side, vertex2) - vertex_of(m1, d1, side, vertex1)


@kernel
def error_of_facet(m1, d1, size):
    """Returns an upper bound of the distance of the facet's corners from its plane [m]."""
    kind = d1.facet.kind[0]
    total = 0.0
    for side in range(2):
        if has_face(d1, side):
            error, _ = error_and_drop(m1, d1, side)
            total = total + error
    if kind == FACES:
        # instead of both errors: the total error up to which measure_faces accepts two faces
        total = LEVEL * (WELL_INSIDE * size)
    elif kind == FACE_EDGE:
        # the height difference of the edge's ends
        normal_in_second = d1.convex.mat[0].T @ d1.convex.normal[0]
        total = total + fabs(dot(edge_of_facet(m1, d1, side=1), normal_in_second))
    elif kind == EDGE_FACE:
        total = total + fabs(dot(edge_of_facet(m1, d1, side=0), d1.convex.normal[0]))
    return total


@kernel
def is_supporting_plane(m1, d1):
    """Returns whether no vertex of the difference is above the facet's plane: max over vertices (n . x) <= offset.

    The tolerance is twice the error of an inclination by PARALLEL and of the facet's corners.
    The test excludes facets of a face with the wrong edge of the other core.  Example: two boxes are inclined by 1e-3,
    so that a face of one is almost parallel to the final plane of the search, which ended at one edge of the other box.
    Along the normal of this face, another edge of that box may be deeper.
    """
    size, normal = size_of_pair(m1, d1), d1.convex.normal[0]
    highest = dot(support_along(m1, d1, normal), normal)
    plane_offset = -d1.convex.dist[0]  # from the origin along the normal
    return highest <= plane_offset + 2.0 * (PARALLEL * size + error_of_facet(m1, d1, size))


@kernel
def is_separate_facet(m1, d1, size, foot_margin):
    """Returns whether no other vertex of the difference is near the facet's plane: every search ends at this facet.

    A search ends within a slack of the depth: SETTLED * size and twice the facet's error.  The disc of radius
    foot_margin around the origin's projection is in the facet, so the search's final plane is rotated against the
    facet's by a slope of at most slack / foot_margin.
    Vertices that are below the facet by a steeper slope are not on that plane.  By convexity, testing the edges at the
    facet's vertices is sufficient.  Edges of a face are tested at load time.
    Faces are only nearly flat, and support points of a nearly convex hull may miss the highest vertex: in both cases,
    the slope must be at least twice PARALLEL.

    foot_margin: lower bound of the distance of the origin's projection from the facet's border [m] (`measure_facet`).
    """
    normal = d1.convex.normal[0]
    slack = SETTLED * size + 2.0 * error_of_facet(m1, d1, size)
    normal_in_second = d1.convex.mat[0].T @ normal
    slope = slack / foot_margin
    if has_face(d1, side=0) or has_face(d1, side=1) or not (is_convex(m1, d1, side=0) and is_convex(m1, d1, side=1)):
        slope = fmax(slope, 2.0 * PARALLEL)
    # this slope is below ALIKE / 2, so that the search finds the faces whose normals are like the facet's
    isolated = slack < 0.5 * ALIKE * foot_margin
    # each vertex of the facet is tested once: equal ones follow each other
    for side, outward in ((0, normal), (1, -normal_in_second)):
        for k in range(0 if has_face(d1, side) else 3):
            if isolated and (k == 0 or d1.facet.vertex[side, k] != d1.facet.vertex[side, k - 1]):
                isolated = is_lower_around(m1, d1, side, d1.facet.vertex[side, k], outward, slope, slack)
    return isolated


# ---- where a search ended --------------------------------------------------------------------------------------------
@kernel
def edge_orthogonal_to(m1, d1, side, vertex, direction):
    """Returns the end of a vertex's only edge that is orthogonal to a direction; -1 if it has none or several.

    Orthogonal: the sine of the angle between the edge and the plane orthogonal to the direction is at most PARALLEL.
    """
    position = vertex_of(m1, d1, side, vertex)
    count, end = 0, -1
    for k in range(count_neighbours(m1, d1, side, vertex)):
        neighbour_vertex = neighbour(m1, d1, side, vertex, k)
        edge = vertex_of(m1, d1, side, neighbour_vertex) - position
        rise = dot(edge, direction)
        if rise * rise <= PARALLEL * PARALLEL * dot(edge, edge):
            count = count + 1
            end = neighbour_vertex
    return end if count == 1 else -1


@kernel
def settle_on_edge(m1, d1, side, face, vertex):
    """Sets the facet of a face of one core and a parallel edge of the other core; returns whether it is valid.

    Args:
        side: the core with the face.
        vertex: the edge starts at this vertex of the other core.

    Writes: facet.kind, facet.vertex; convex.* if valid.
    """
    # sets the face for both cores, because `plane_of_face` reads facet.vertex[side]; the edge replaces it below
    set_facet(d1, FACE_EDGE if side == 0 else EDGE_FACE, (face, face, face), (face, face, face))
    normal, _ = plane_of_face(m1, d1, side)
    normal_in_other = vector_in_frame(d1, 1 - side, normal)
    end = edge_orthogonal_to(m1, d1, 1 - side, vertex, normal_in_other)
    is_found = False
    # from its other end, the edge must also be the only orthogonal one, so that a search from either end finds it
    if end >= 0 and edge_orthogonal_to(m1, d1, 1 - side, end, normal_in_other) == vertex:
        for k in range(3):
            # stored as i0, i1, i1 with i0 < i1
            d1.facet.vertex[1 - side, k] = min(vertex, end) if k == 0 else max(vertex, end)
        is_found = measure_facet(m1, d1) > 0.0
    return is_found


@kernel
def fits_facet(m1, d1, kind, vertices1, vertices2):
    """Sets the facet; returns whether the origin's projection is well inside of it.

    Writes: facet.kind, facet.vertex; if it is inside, convex.*.
    """
    set_facet(d1, kind, vertices1, vertices2)
    return measure_facet(m1, d1) > 0.0


@kernel
def settle_on_facet(m1, d1, vertices1, vertices2, normal):
    """Sets the facet that three points of the difference span, and replaces the search's result by the facet's.

    Facets with a face are tried in this order, until the origin's projection is on one: two faces, a face and an edge,
    a face and a vertex.  This one is the result if no vertex of the difference is above its plane
    (`is_supporting_plane`).  Otherwise the result is the triangle or parallelogram of the points.

    Args:
        vertices1, vertices2: vertex indices of the three points a, and of the three points b, of the difference a - b.
        normal: the search's, in the frame of the first shape.

    Writes: facet.kind, facet.vertex, convex.*, support.*.  If the origin's projection is not on the triangle or
    parallelogram either, or if the cosine between the normals of facet and search is below SAME_SIDE, facet.kind is
    NO_FACET, and convex.* is undefined.
    """
    is_found = False
    normal_in_second = d1.convex.mat[0].T @ normal
    # points of curved shapes have no vertex
    if min(vertices1[0], vertices2[0]) >= 0:
        face1 = face_towards(m1, d1, 0, vertices1[0], normal, ALIKE)
        face2 = face_towards(m1, d1, 1, vertices2[0], -normal_in_second, ALIKE)
        faces1, faces2 = (face1, face1, face1), (face2, face2, face2)
        if face1 != NO_FACE and face2 != NO_FACE:
            is_found = fits_facet(m1, d1, FACES, faces1, faces2)
        if not is_found and face1 != NO_FACE:
            is_found = settle_on_edge(m1, d1, 0, face1, vertices2[0])
        if not is_found and face2 != NO_FACE:
            is_found = settle_on_edge(m1, d1, 1, face2, vertices1[0])
        if not is_found and face1 != NO_FACE and vertices2[0] == vertices2[1] and vertices2[0] == vertices2[2]:
            is_found = fits_facet(m1, d1, FACE_FIRST, faces1, vertices2)
        if not is_found and face2 != NO_FACE and vertices1[0] == vertices1[1] and vertices1[0] == vertices1[2]:
            is_found = fits_facet(m1, d1, FACE_SECOND, vertices1, faces2)
        is_found = is_found and is_supporting_plane(m1, d1)
    if not is_found:
        name_facet(d1, vertices1, vertices2)
        is_found = measure_facet(m1, d1) > 0.0
    if not is_found or dot(d1.convex.normal[0], normal) < SAME_SIDE:
        d1.facet.kind[0] = NO_FACET
