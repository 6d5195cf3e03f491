"""Computes depth, normal and nearest points of two polytopes from the vertices of the facet nearest to the origin."""

from featherlane.prelude import *
from featherlane.collision.convex.facet import (
    CROSSING,
    EDGE_FACE,
    FACE_EDGE,
    FACE_FIRST,
    FACE_SECOND,
    FACES,
    FIRST,
    NO_FACET,
    WELL_INSIDE,
    error_and_drop,
    has_face,
    plane_of_face,
    vertex_difference,
    vertex_of,
)
from featherlane.collision.convex.support import core_limit, core_radius
from featherlane.model.hull import FLAT

INSIDE = 1e-4  # relative to the size: as WELL_INSIDE, for a triangle or a parallelogram
PARALLEL = 1e-6  # limit of the difference of parallel normals, and of the sine between edge and face: float32 poses
LEVEL = 2.4e-4  # maximum deviation of parallel parts, relative to the foot's border distance: below ALIKE / 4
FAR = 1e30  # m^2: above the squared distance from any border
FEW = 256  # maximum number of pairs of edges of two faces that are all tested


@kernel
def is_decided(d1, dist, error):
    """Returns whether all distances of the cores from dist to dist + error are on one side of the limit, and of touch.

    A face counts as a plane, up to its error: near these two distances, a triangle decides whether there is a contact.
    """
    limit, touch = core_limit(d1), core_radius(d1, 0) + core_radius(d1, 1)
    return (dist > limit or dist + error <= limit) and (dist > touch or dist + error <= touch)


@kernel
def outward_normal(d1, n, p):
    """Returns the unit vector along n or -n that points out of the difference; p is a point of the facet.

    It points away from the origin if the shapes overlap, and towards it if they are apart.
    """
    s = 1.0 / sqrt(dot(n, n))
    if dot(n, p) < 0.0:
        s = -s
    if d1.facet.apart[0] == 1:
        s = -s
    return s * n


@kernel
def size_of_pair(m1, d1):
    """Returns the approximate extent of the shapes, from the facet's first vertices [m]."""
    p, size = d1.convex.pos[0], 0.0 * d1.convex.pos[0][0]
    for side in range(2):
        if has_face(d1, side):
            _, offset = plane_of_face(m1, d1, side)
            size = size + fabs(offset)
        else:
            a = vertex_of(m1, d1, side, d1.facet.vertex[side, 0])
            size = size + sqrt(dot(a, a))
    return size + sqrt(dot(p, p))


@kernel
def measure_triangle(m1, d1, size):
    """Computes `measure_facet` for a triangle."""
    i, j = d1.facet.vertex[0, 0], d1.facet.vertex[1, 0]
    p = vertex_difference(m1, d1, i, j)
    if d1.facet.kind[0] == FIRST:
        q, r = vertex_difference(m1, d1, d1.facet.vertex[0, 1], j), vertex_difference(m1, d1, d1.facet.vertex[0, 2], j)
    else:
        q, r = vertex_difference(m1, d1, i, d1.facet.vertex[1, 1]), vertex_difference(m1, d1, i, d1.facet.vertex[1, 2])
    e, f, g = q - p, r - p, r - q
    normal = cross(e, f)
    nn, inside = dot(normal, normal), 0.0 * size
    if nn > 0.0:
        n = outward_normal(d1, normal, p)
        depth = dot(n, p)
        # doubled areas over the sides g, f and e, and the distances from them
        x, y, z = dot(normal, cross(q, g)) / nn, -dot(normal, cross(p, f)) / nn, dot(normal, cross(p, e)) / nn
        area = sqrt(nn)
        least = fmin(fmin(x / sqrt(dot(g, g)), y / sqrt(dot(f, f))), z / sqrt(dot(e, e))) * area
        if least > INSIDE * size:
            inside = least
            a = vertex_of(m1, d1, 0, i)
            if d1.facet.kind[0] == FIRST:
                b, c = vertex_of(m1, d1, 0, d1.facet.vertex[0, 1]), vertex_of(m1, d1, 0, d1.facet.vertex[0, 2])
                a = fma(y, b - a, fma(z, c - a, a))
            store_facet(d1, n, depth, a)
    return inside


@kernel
def measure_crossing(m1, d1, size):
    """Computes `measure_facet` for two edges."""
    i, j = d1.facet.vertex[0, 0], d1.facet.vertex[1, 0]
    p = vertex_difference(m1, d1, i, j)
    e, f = (
        vertex_difference(m1, d1, d1.facet.vertex[0, 1], j) - p,
        p - vertex_difference(m1, d1, i, d1.facet.vertex[1, 1]),
    )
    normal = cross(e, f)
    nn, inside = dot(normal, normal), 0.0 * size
    if nn > 0.0:
        n = outward_normal(d1, normal, p)
        # the foot (projection of the origin) is p + s e - t f
        s, t = -dot(normal, cross(p, f)) / nn, -dot(normal, cross(p, e)) / nn
        area = sqrt(nn)
        least = area * fmin(fmin(s, 1.0 - s) / sqrt(dot(f, f)), fmin(t, 1.0 - t) / sqrt(dot(e, e)))
        if least > INSIDE * size:
            inside = least
            a = vertex_of(m1, d1, 0, i)
            store_facet(d1, n, dot(n, p), fma(s, vertex_of(m1, d1, 0, d1.facet.vertex[0, 1]) - a, a))
    return inside


@kernel
def border_distance(m1, d1, side, n, y):
    """Returns how far inside the facet's face the point's projection is [m], 0 outside; in the shape's frame."""
    f, least = d1.facet.vertex[side, 0], 0.0 * y[0] + FAR
    if d1.shapes.type[side] == MESH:
        first, start, count = m1.hull_vertadr[d1.shapes.data[side]], m1.hull_outlineadr[f], m1.hull_outlinenum[f]
        p = m1.hull_vert[first + m1.hull_outline[start + count - 1]]
        for k in range(count):
            q = m1.hull_vert[first + m1.hull_outline[start + k]]
            e = q - p
            inner = fmax(dot(cross(n, e), y - p), 0.0)
            least = fmin(inner * inner / dot(e, e), least)
            if least == 0.0:
                break
            p = q
    else:
        for k in range(3):
            if k != f // 2:
                inner = fmax(flat(d1.shapes.size)[3 * side + k] - fabs(y[k]), 0.0)
                least = fmin(inner * inner, least)
    return sqrt(least)


@kernel
def measure_face(m1, d1, side, size):
    """Computes `measure_facet` for a face of one core and a vertex of the other."""
    n, offset = plane_of_face(m1, d1, side)
    R, p = d1.convex.mat[0], d1.convex.pos[0]
    x = vertex_of(m1, d1, 1 - side, d1.facet.vertex[1 - side, 0])
    if side == 0:
        y = R @ x + p
    else:
        y = R.T @ (x - p)
    inside = border_distance(m1, d1, side, n, y)
    error, _ = error_and_drop(m1, d1, side)
    depth = offset - dot(n, y)
    if not (inside > WELL_INSIDE * size and is_decided(d1, -depth, error)):
        inside = 0.0 * size
    elif side == 0:
        store_facet(d1, n, depth, fma(depth, n, y))
    else:
        store_facet(d1, -(R @ n), depth, x)
    return inside


@kernel
def part_over_face(m1, d1, side, n, y, z, border):
    """Returns (from, to): the part of the line y + t (z - y), 0 <= t <= 1, over the facet's face, away from its border.

    An empty part has to <= from.  All in the frame of the face's shape.
    """
    f, zero = d1.facet.vertex[side, 0], 0.0 * border
    lo, hi = zero, zero + 1.0
    if d1.shapes.type[side] == MESH:
        first, start, count = m1.hull_vertadr[d1.shapes.data[side]], m1.hull_outlineadr[f], m1.hull_outlinenum[f]
        p = m1.hull_vert[first + m1.hull_outline[start + count - 1]]
        for k in range(count):
            q = m1.hull_vert[first + m1.hull_outline[start + k]]
            e = q - p
            g, away = cross(n, e), border * sqrt(dot(e, e))
            lo, hi = cut_part(dot(g, y - p) - away, dot(g, z - p) - away, lo, hi)
            p = q
    else:
        for k in range(3):
            if k != f // 2:
                half = flat(d1.shapes.size)[3 * side + k] - border
                lo, hi = cut_part(half - y[k], half - z[k], lo, hi)
                lo, hi = cut_part(half + y[k], half + z[k], lo, hi)
    return lo, hi


@kernel
def cut_part(here, there, lo, hi):
    """Returns the part of lo to hi where a linear height, `here` at 0 and `there` at 1, is above 0."""
    if here <= 0.0 and there <= 0.0:
        hi = lo - 1.0
    elif here < 0.0:
        t = here / (here - there)
        if t > lo:
            lo = t
    elif there < 0.0:
        t = here / (here - there)
        if t < hi:
            hi = t
    return lo, hi


@kernel
def measure_edge(m1, d1, side, size):
    """Computes `measure_facet` for a face of one core and an edge of the other that is parallel to it, and over it."""
    n, offset = plane_of_face(m1, d1, side)
    R, p, other = d1.convex.mat[0], d1.convex.pos[0], 1 - side
    inside, border = 0.0 * size, WELL_INSIDE * size
    a = vertex_of(m1, d1, other, d1.facet.vertex[other, 0])
    b = vertex_of(m1, d1, other, d1.facet.vertex[other, 2])
    if side == 0:
        y, z = R @ a + p, R @ b + p
    else:
        y, z = R.T @ (a - p), R.T @ (b - p)
    e = z - y
    rise = dot(n, e)
    error, drop = error_and_drop(m1, d1, side)
    if rise * rise <= PARALLEL * PARALLEL * dot(e, e) and error + fabs(rise) <= fmin(FLAT * drop, LEVEL * border):
        lo, hi = part_over_face(m1, d1, side, n, y, z, border)
        depth = offset - fmin(dot(n, y), dot(n, z))
        if lo < hi and is_decided(d1, -depth, error + fabs(rise)):
            inside, t = border, 0.5 * (lo + hi)
            if side == 0:
                x = fma(t, e, y)
                store_facet(d1, n, depth, fma(offset - dot(n, x), n, x))
            else:
                store_facet(d1, -(R @ n), depth, fma(t, b - a, a))
    return inside


@kernel
def corner_of_face(m1, d1, side, k):
    """Returns corner k of the facet's face, in the frame of its shape."""
    f = d1.facet.vertex[side, 0]
    if d1.shapes.type[side] == MESH:
        i = m1.hull_outline[m1.hull_outlineadr[f] + k]
    else:
        # the bit of the face's axis, and the two other bits
        axis = f // 2
        i = ((f & 1) << axis) | (((k ^ (k >> 1)) & 1) << ((axis + 1) % 3)) | ((k >> 1) << ((axis + 2) % 3))
    return vertex_of(m1, d1, side, i)


@kernel
def corners_of_face(m1, d1, side):
    """Returns the number of corners of the facet's face."""
    n = 4
    if d1.shapes.type[side] == MESH:
        n = m1.hull_outlinenum[d1.facet.vertex[side, 0]]
    return n


@kernel
def measure_faces(m1, d1, size):
    """Computes `measure_facet` for two overlapping parallel faces: their depth along the first one's normal.

    The origin's projection is well inside the facet if a point of one face, a corner or an edge point, is well inside
    the other face.
    """
    n, offset = plane_of_face(m1, d1, 0)
    v, _ = plane_of_face(m1, d1, 1)
    R, p = d1.convex.mat[0], d1.convex.pos[0]
    turned = n + R @ v
    error, drop = error_and_drop(m1, d1, 0)
    other_error, other_drop = error_and_drop(m1, d1, 1)
    inside, border = 0.0 * size, WELL_INSIDE * size
    if dot(turned, turned) <= PARALLEL * PARALLEL:
        good, nother = False, corners_of_face(m1, d1, 1)
        a, least, most = p, 0.0 * offset + 1e30, 0.0 * offset - 1e30
        for k in range(nother):
            y = R @ corner_of_face(m1, d1, 1, k) + p
            least, most = fmin(dot(n, y), least), fmax(dot(n, y), most)
            if not good and border_distance(m1, d1, 0, n, y) > border:
                good, a = True, fma(offset - dot(n, y), n, y)
        error = error + other_error + (most - least)
        if error > fmin(FLAT * fmin(drop, other_drop), LEVEL * border) or not is_decided(d1, least - offset, error):
            nother = 0
        if not good:
            for k in range(corners_of_face(m1, d1, 0) if nother > 0 else 0):
                x = corner_of_face(m1, d1, 0, k)
                if not good and border_distance(m1, d1, 1, v, R.T @ (x - p)) > border:
                    good, a = True, x
        if not good and nother > 0 and nother * corners_of_face(m1, d1, 0) <= FEW:
            y = R @ corner_of_face(m1, d1, 1, nother - 1) + p
            for k in range(nother):
                z = R @ corner_of_face(m1, d1, 1, k) + p
                lo, hi = part_over_face(m1, d1, 0, n, y, z, border)
                if lo < hi and not good:
                    x = fma(0.5 * (lo + hi), z - y, y)
                    good, a = True, fma(offset - dot(n, x), n, x)
                y = z
        if good and nother > 0:
            inside = border
            store_facet(d1, n, offset - least, a)
    return inside


@kernel
def store_facet(d1, n, depth, a):
    """Stores depth, normal and points of two cores from their facet."""
    d1.convex.dist[0] = -depth
    d1.convex.normal[0] = n
    d1.convex.witness[0] = a


@kernel
def measure_facet(m1, d1):
    """Computes depth, normal and the first core's deepest point from the facet's vertices, into `convex_*`.

    Returns a lower bound of the distance of the origin's projection from the facet's border [m].  It is 0 if the
    projection is outside or near to the border; then nothing is written.
    """
    inside = 0.0 * d1.convex.pos[0][0]
    kind, size = d1.facet.kind[0], size_of_pair(m1, d1) if d1.facet.kind[0] != NO_FACET else inside
    if kind == CROSSING:
        inside = measure_crossing(m1, d1, size)
    elif kind == FACE_FIRST:
        inside = measure_face(m1, d1, 0, size)
    elif kind == FACES:
        inside = measure_faces(m1, d1, size)
    elif kind == FACE_SECOND:
        inside = measure_face(m1, d1, 1, size)
    elif kind == FACE_EDGE:
        inside = measure_edge(m1, d1, 0, size)
    elif kind == EDGE_FACE:
        inside = measure_edge(m1, d1, 1, size)
    elif kind != NO_FACET:
        inside = measure_triangle(m1, d1, size)
    return inside
