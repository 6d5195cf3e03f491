"""Tests whether a facet is isolated, and identifies the facet where a search ended.

A facet is isolated if no other vertex of the difference is near its plane.  Then every search ends at this facet, and
the results derived from it are bitwise identical with or without a search.
"""

from featherlane.prelude import *
from featherlane.collision.convex.facet import (
    CROSSING,
    EDGE_FACE,
    FACE_EDGE,
    FACE_FIRST,
    FACE_SECOND,
    FACES,
    NO_FACE,
    NO_FACET,
    WELL_INSIDE,
    error_and_drop,
    face_towards,
    has_face,
    is_of_facet,
    name_facet,
    plane_of_face,
    set_facet,
    vertex_of,
)
from featherlane.collision.convex.facet_depth import LEVEL, PARALLEL, measure_facet
from featherlane.collision.convex.support import is_convex, unit_axis

SETTLED = 1e-10  # relative to the size: maximum error of a search's depth, including slivers
ALIKE = 1e-3  # maximum difference of a face's normal and a search's; MuJoCo merges faces that differ by less


# ---- edges -----------------------------------------------------------------------------------------------------------
@kernel
def neighbours(m1, d1, side, i):
    """Returns the number of neighbours of vertex i of a core."""
    kind, n = d1.shapes.type[side], 0
    if kind == MESH:
        n = m1.hull_edgenum[m1.hull_vertadr[d1.shapes.data[side]] + i]
    elif kind == BOX:
        n = 3
    elif kind == CAPSULE:
        n = 1
    return n


@kernel
def neighbour(m1, d1, side, i, k):
    """Returns neighbour k of vertex i of a core."""
    kind, other = d1.shapes.type[side], 1 - i
    if kind == MESH:
        other = m1.hull_edge[m1.hull_edgeadr[m1.hull_vertadr[d1.shapes.data[side]] + i] + k]
    elif kind == BOX:
        other = i ^ (1 << k)
    return other


@kernel
def edge_falls(m1, d1, side, k, e, u, tilt, slack):
    """Returns whether the edge e to vertex k descends along u more steeply than the tilt; true on the facet."""
    fall = -dot(e, u) - slack
    return (fall > 0.0 and fall * fall > (tilt * tilt) * dot(e, e)) or is_of_facet(m1, d1, side, k)


@kernel
def falls_away(m1, d1, side, i, u, tilt, slack):
    """Returns whether all edges from vertex i to vertices outside the facet descend along u more steeply than the tilt.

    Also false if the vertex has a face that a search might confuse with its result (`is_distinct_face`).  The edges of
    such a face may be steep: corners closer than its flatness error.
    """
    away, p = True, vertex_of(m1, d1, side, i)
    if d1.shapes.type[side] == MESH:
        # the shape's type is evaluated once, not for each edge
        first = m1.hull_vertadr[d1.shapes.data[side]]
        for c in range(m1.hull_edgeadr[first + i], m1.hull_edgeadr[first + i] + m1.hull_edgenum[first + i]):
            k = m1.hull_edge[c]
            away = away and edge_falls(m1, d1, side, k, m1.hull_vert[first + k] - p, u, tilt, slack)
    else:
        for c in range(neighbours(m1, d1, side, i)):
            k = neighbour(m1, d1, side, i, c)
            away = away and edge_falls(m1, d1, side, k, vertex_of(m1, d1, side, k) - p, u, tilt, slack)
    face = face_towards(m1, d1, side, i, u, 2.0 * ALIKE) if away else NO_FACE
    return away and (face == NO_FACE or is_distinct_face(m1, d1, side, face))


@kernel
def has_edge_along(m1, d1, side, i, u):
    """Returns whether vertex i of a core has an edge that is nearly orthogonal to u, as `edge_across` may find."""
    p, found = vertex_of(m1, d1, side, i), False
    for c in range(neighbours(m1, d1, side, i)):
        e = vertex_of(m1, d1, side, neighbour(m1, d1, side, i, c)) - p
        rise = dot(e, u)
        found = found or not rise * rise > (2.0 * PARALLEL) * (2.0 * PARALLEL) * dot(e, e)
    return found


@kernel
def is_distinct_face(m1, d1, side, face):
    """Returns whether a search that ends at this facet cannot end with a box's nearly parallel face instead.

    `settle_on_facet` uses the face if a face or an edge of the other core is parallel to it, or if all three points
    that were found have one vertex of the other core and different ones of the box.  A hull may have several nearly
    parallel faces, so its faces always count as confusable.
    """
    other, kind, distinct = 1 - side, d1.facet.kind[0], d1.shapes.type[side] == BOX
    distinct = distinct and (kind == CROSSING or d1.facet.vertex[side, 0] == d1.facet.vertex[side, 2])
    if distinct:
        n = unit_axis(face // 2, 2.0 * (face % 2) - 1.0 + 0.0 * d1.shapes.size[0][0])
        if side == 0:
            u = d1.convex.mat[0].T @ n
        else:
            u = d1.convex.mat[0] @ n
        if has_face(d1, other):
            v, _ = plane_of_face(m1, d1, other)
            v = u + v
            distinct = d1.shapes.type[other] == MESH and dot(v, v) > (2.0 * PARALLEL) * (2.0 * PARALLEL)
            f = d1.facet.vertex[other, 0]
            for c in range(m1.hull_polyvertnum[f] if distinct else 0):
                i = m1.hull_polyvert[m1.hull_polyvertadr[f] + c]
                distinct = distinct and not has_edge_along(m1, d1, other, i, u)
        else:
            for c in range(3):
                i = d1.facet.vertex[other, c]
                distinct = distinct and not has_edge_along(m1, d1, other, i, u)
    return distinct


@kernel
def edge_of_facet(m1, d1, side):
    """Returns the vector along the facet's edge, in the frame of its shape."""
    i, j = d1.facet.vertex[side, 0], d1.facet.vertex[side, 2]
    return vertex_of(m1, d1, side, j) - vertex_of(m1, d1, side, i)


@kernel
def error_of_facet(m1, d1, size):
    """Returns the maximum distance of the facet's corners from its plane [m]."""
    kind, total = d1.facet.kind[0], 0.0 * size
    for side in range(2):
        if has_face(d1, side):
            error, _ = error_and_drop(m1, d1, side)
            total = total + error
    if kind == FACES:
        total = LEVEL * (WELL_INSIDE * size)
    elif kind == FACE_EDGE:
        v = d1.convex.mat[0].T @ d1.convex.normal[0]
        total = total + fabs(dot(edge_of_facet(m1, d1, 1), v))
    elif kind == EDGE_FACE:
        total = total + fabs(dot(edge_of_facet(m1, d1, 0), d1.convex.normal[0]))
    return total


@kernel
def is_separate_facet(m1, d1, size, inside):
    """Returns whether no other vertex of the difference is near the facet's plane, and no other facet fits a search.

    A search ends within SETTLED of the depth.  Its final plane is thus rotated against the facet's by at most SETTLED
    over the distance of the origin's projection from the facet's border, so it passes over a disc of this radius in the
    facet.  Vertices below the facet's by a steeper slope are not on that plane.  The facet's vertices are one support
    set of each core; by convexity, testing their edges is sufficient.  Edges of a face are tested at load time.
    But faces are only nearly flat, so for an adjacent vertex that descends by less than twice PARALLEL the test fails.
    It also fails on a hull that is only nearly convex, because support points may stop short of the highest vertex.
    """
    n, slack = d1.convex.normal[0], SETTLED * size + 2.0 * error_of_facet(m1, d1, size)
    v = d1.convex.mat[0].T @ n
    tilt, u = slack / inside, -v
    if has_face(d1, 0) or has_face(d1, 1) or not (is_convex(m1, d1, 0) and is_convex(m1, d1, 1)):
        tilt = fmax(tilt, 2.0 * PARALLEL)
    alone = slack < 0.5 * ALIKE * inside
    if not has_face(d1, 0):
        for k in range(3):
            if alone and (k == 0 or d1.facet.vertex[0, k] != d1.facet.vertex[0, k - 1]):
                alone = falls_away(m1, d1, 0, d1.facet.vertex[0, k], n, tilt, slack)
    if not has_face(d1, 1):
        for k in range(3):
            if alone and (k == 0 or d1.facet.vertex[1, k] != d1.facet.vertex[1, k - 1]):
                alone = falls_away(m1, d1, 1, d1.facet.vertex[1, k], u, tilt, slack)
    return alone


# ---- where a search ended --------------------------------------------------------------------------------------------
@kernel
def edge_across(m1, d1, side, i, u):
    """Returns the end of the only edge from vertex i of a core that is orthogonal to u; -1: none or several."""
    p, found, other = vertex_of(m1, d1, side, i), 0, -1
    for c in range(neighbours(m1, d1, side, i)):
        k = neighbour(m1, d1, side, i, c)
        e = vertex_of(m1, d1, side, k) - p
        rise = dot(e, u)
        if rise * rise <= PARALLEL * PARALLEL * dot(e, e):
            found, other = found + 1, k
    if found != 1:
        other = -1
    return other


@kernel
def settle_on_edge(m1, d1, side, face, i):
    """Sets the facet of one core's face and the other's edge at vertex i that is parallel to it, if there is one."""
    set_facet(d1, FACE_EDGE if side == 0 else EDGE_FACE, (face, face, face), (face, face, face))
    n, _ = plane_of_face(m1, d1, side)
    if side == 0:
        u = d1.convex.mat[0].T @ n
    else:
        u = d1.convex.mat[0] @ n
    k, good = edge_across(m1, d1, 1 - side, i, u), False
    if k >= 0 and edge_across(m1, d1, 1 - side, k, u) == i:
        for c in range(3):
            d1.facet.vertex[1 - side, c] = min(i, k) if c == 0 else max(i, k)
        good = measure_facet(m1, d1) > 0.0
    return good


@kernel
def settle_on_facet(m1, d1, i, j, u):
    """Sets the facet of three points of the difference, and replaces the search's result by values derived from it.

    Args:
        i, j: the points' vertices of the first and of the second core; may contain duplicates.
        u: the normal that was found; if the facet's differs, or the origin's projection is not on the facet,
            facet.kind is NO_FACET, and `convex_*` is undefined.
    """
    good = False
    v = d1.convex.mat[0].T @ u
    if min(i[0], j[0]) >= 0:
        face, other = face_towards(m1, d1, 0, i[0], u, ALIKE), face_towards(m1, d1, 1, j[0], -v, ALIKE)
        if face != NO_FACE and other != NO_FACE:
            set_facet(d1, FACES, (face, face, face), (other, other, other))
            good = measure_facet(m1, d1) > 0.0
        if not good and face != NO_FACE:
            good = settle_on_edge(m1, d1, 0, face, j[0])
        if not good and other != NO_FACE:
            good = settle_on_edge(m1, d1, 1, other, i[0])
        if not good and face != NO_FACE and j[0] == j[1] and j[0] == j[2]:
            set_facet(d1, FACE_FIRST, (face, face, face), j)
            good = measure_facet(m1, d1) > 0.0
        if not good and other != NO_FACE and i[0] == i[1] and i[0] == i[2]:
            set_facet(d1, FACE_SECOND, i, (other, other, other))
            good = measure_facet(m1, d1) > 0.0
    if not good:
        name_facet(d1, i, j)
        good = measure_facet(m1, d1) > 0.0
    if not good or dot(d1.convex.normal[0], u) < 0.5:
        d1.facet.kind[0] = NO_FACET
