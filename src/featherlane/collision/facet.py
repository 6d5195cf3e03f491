"""The facet of the difference of two polytopes that is nearest to the origin, told by the vertices that span it.

A facet is a face of one shape with a vertex of the other, or two edges that cross.  From the numbers of these its
normal, its depth and the nearest points follow by themselves, in the same bits however it was found.

    kind         vertices            points of the difference
    FIRST        i0 < i1 < i2, j0    a triangle of the first, less a vertex of the second shape
    SECOND       i0, j0 < j1 < j2    a vertex of the first, less a triangle of the second
    CROSSING     i0 < i1, j0 < j1    two edges: a parallelogram
    FACE_FIRST   face, j0            a face of the first, of any number of corners, less a vertex of the second
    FACE_SECOND  i0, face            a vertex of the first, less a face of the second
    FACES        face, face          two faces that are parallel
    FACE_EDGE    face, j0 < j1       a face of the first, an edge of the second that is parallel to it
    EDGE_FACE    i0 < i1, face       an edge of the first, a face of the second

Faces are told from triangles where their corners are in one plane, but for a small part of the height by which all
other vertices are below it: then a search ends somewhere on the face, and its plane is the facet's.
"""

from __future__ import annotations

from featherlane.collision.support import PRISM, unit_axis
from featherlane.lanes import fabs, fmax, fmin, kernel, sqrt
from featherlane.model.enums import BOX, CAPSULE, MESH
from featherlane.spatial.vector import (
    add3,
    axpy3,
    cross,
    dot3,
    load3,
    load9,
    mat_mul_vec,
    mat_t_mul_vec,
    scale3,
    store3,
    sub3,
)

NO_FACET, FIRST, SECOND, CROSSING, FACE_FIRST, FACE_SECOND, FACES, FACE_EDGE, EDGE_FACE = range(9)
NO_FACE = -1
INSIDE = 1e-4  # of the size: nearer than this to its border the foot of the origin counts as outside
SETTLED = 1e-10  # of the size: the most by which a search ends beside the depth, slivers and all
WELL_INSIDE = 1e-3  # of the size: as INSIDE, on a face
FLAT = 1e-4  # error of a face, as a part of the height by which others are below it, at most
ALIKE = 1e-3  # by which a face's normal and that of a search may differ; MuJoCo makes one of faces that differ by less
PARALLEL = 1e-6  # by which the normals of parallel faces may differ, and the sine of an edge with a face: float32 poses
LEVEL = 1e-4  # of how far the foot is inside, the most by which what is parallel may leave a plane
FEW = 256  # pairs of edges of two faces up to which all are asked


# ---- vertices --------------------------------------------------------------------------------------------------------
@kernel
def plus_or_minus(x, i, bit):
    """x where the number has the bit, else -x."""
    return x if i & bit else -x


@kernel
def vertex_of(m1, d1, side, i):
    """Vertex i of a core, in the shape's frame, as `core_support` numbers them."""
    kind, size = d1.shape_type[side], load3(d1.shape_size, 3 * side)
    zero = 0.0 * size[0]
    x, y, z = zero, zero, zero
    if kind == MESH:
        x, y, z = load3(m1.hull_vert, 3 * (m1.hull_vertadr[d1.shape_data[side]] + i))
    elif kind == BOX:
        x, y, z = plus_or_minus(size[0], i, 1), plus_or_minus(size[1], i, 2), plus_or_minus(size[2], i, 4)
    elif kind == CAPSULE:
        z = plus_or_minus(size[1], i, 1)
    elif kind == PRISM:
        x, y, z = load3(d1.prism_vert, 3 * i)
    return x, y, z


@kernel
def difference(m1, d1, i, j):
    """Vertex i of the first core less vertex j of the second, in the frame of the first: as `support` has it."""
    b = mat_mul_vec(load9(d1.convex_mat, 0), vertex_of(m1, d1, 1, j))
    return sub3(sub3(vertex_of(m1, d1, 0, i), b), load3(d1.convex_pos, 0))


# ---- which facet -----------------------------------------------------------------------------------------------------
@kernel
def sorted3(i, j, k):
    """Three numbers in ascending order."""
    low, high = min(i, j, k), max(i, j, k)
    return low, i + j + k - low - high, high


@kernel
def is_flat(m1, f):
    """Are a face's corners in one plane, but for little against what lies below?"""
    return m1.hull_planeerror[f] <= FLAT * m1.hull_planedrop[f]


@kernel
def face_towards(m1, d1, side, i, u, alike):
    """The face at vertex i of a core, of more than three corners, that looks along u, give or take, or NO_FACE."""
    kind, face = d1.shape_type[side], NO_FACE
    if kind == MESH:
        mesh = d1.shape_data[side]
        at, best = m1.hull_vertadr[mesh] + i, 0.0 * u[0] + (1.0 - 0.5 * alike * alike)
        for c in range(m1.hull_mapadr[at], m1.hull_mapadr[at] + m1.hull_mapnum[at]):
            f = m1.hull_polyadr[mesh] + m1.hull_map[c]
            cosine = dot3(load3(m1.hull_planenormal, 3 * f), u)
            if cosine > best and m1.hull_outlinenum[f] > 3 and is_flat(m1, f):
                best, face = cosine, f
    elif kind == BOX:
        for axis in range(3):
            if fabs(u[axis]) > 1.0 - 0.5 * alike * alike:
                face = 2 * axis + min(i & (1 << axis), 1)
    return face


@kernel
def set_facet(d1, kind, i, j):
    """A facet by its kind and vertices."""
    d1.facet_kind[0] = kind
    d1.facet_vertex[0], d1.facet_vertex[1], d1.facet_vertex[2] = i
    d1.facet_vertex[3], d1.facet_vertex[4], d1.facet_vertex[5] = j


@kernel
def name_facet(d1, i, j):
    """The facet that three points of the difference span; i and j: their vertices of the first and the second core."""
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
    """Is the facet a face of this core?"""
    kind = d1.facet_kind[0]
    return (
        kind == FACES
        or kind == (FACE_FIRST if side == 0 else FACE_SECOND)
        or kind == (FACE_EDGE if side == 0 else EDGE_FACE)
    )


@kernel
def plane_of_face(m1, d1, side):
    """(normal, offset) of the facet's face, in the frame of its shape."""
    f, size = d1.facet_vertex[3 * side], load3(d1.shape_size, 3 * side)
    if d1.shape_type[side] == MESH:
        n, offset = load3(m1.hull_planenormal, 3 * f), m1.hull_planeoffset[f]
    else:
        s = 0.0 * size[0] + 1.0
        if f % 2 == 0:
            s = -s
        n, offset = unit_axis(f // 2, s), d1.shape_size[3 * side + f // 2]
    return n, offset


@kernel
def error_and_drop(m1, d1, side):
    """(by how much the face's corners leave its plane, by how much all other vertices are below it)."""
    f = d1.facet_vertex[3 * side]
    if d1.shape_type[side] == MESH:
        error, drop = m1.hull_planeerror[f], m1.hull_planedrop[f]
    else:
        error, drop = 0.0 * d1.shape_size[0], 2.0 * d1.shape_size[3 * side + f // 2]
    return error, drop


@kernel
def is_of_facet(m1, d1, side, i):
    """Is vertex i of this core one of the facet's?"""
    if has_face(d1, side):
        n, offset = plane_of_face(m1, d1, side)
        _, drop = error_and_drop(m1, d1, side)
        found = dot3(n, vertex_of(m1, d1, side, i)) > offset - 0.5 * drop
    else:
        k = 3 * side
        found = i == d1.facet_vertex[k] or i == d1.facet_vertex[k + 1] or i == d1.facet_vertex[k + 2]
    return found


# ---- what follows from it --------------------------------------------------------------------------------------------
@kernel
def outwards(d1, n, p):
    """The unit vector along n or against it that leaves the difference, if the facet's point is p.

    That is away from the origin where the shapes overlap, and towards it where they are apart.
    """
    s = 1.0 / sqrt(dot3(n, n))
    if dot3(n, p) < 0.0:
        s = -s
    if d1.facet_apart[0] == 1:
        s = -s
    return scale3(s, n)


@kernel
def size_of_pair(m1, d1):
    """How far the shapes reach, roughly, as the facet's first vertices tell [m]."""
    p, size = load3(d1.convex_pos, 0), 0.0 * d1.convex_pos[0]
    for side in range(2):
        if has_face(d1, side):
            _, offset = plane_of_face(m1, d1, side)
            size = size + fabs(offset)
        else:
            a = vertex_of(m1, d1, side, d1.facet_vertex[3 * side])
            size = size + sqrt(dot3(a, a))
    return size + sqrt(dot3(p, p))


@kernel
def measure_triangle(m1, d1, size):
    """As `measure_facet`, of a triangle."""
    i, j = d1.facet_vertex[0], d1.facet_vertex[3]
    p = difference(m1, d1, i, j)
    if d1.facet_kind[0] == FIRST:
        q, r = difference(m1, d1, d1.facet_vertex[1], j), difference(m1, d1, d1.facet_vertex[2], j)
    else:
        q, r = difference(m1, d1, i, d1.facet_vertex[4]), difference(m1, d1, i, d1.facet_vertex[5])
    e, f, g = sub3(q, p), sub3(r, p), sub3(r, q)
    normal = cross(e, f)
    nn, inside = dot3(normal, normal), 0.0 * size
    if nn > 0.0:
        n = outwards(d1, normal, p)
        depth = dot3(n, p)
        # doubled areas over the sides g, f and e, and the distances from them
        x, y, z = dot3(normal, cross(q, g)) / nn, -dot3(normal, cross(p, f)) / nn, dot3(normal, cross(p, e)) / nn
        area = sqrt(nn)
        least = fmin(fmin(x / sqrt(dot3(g, g)), y / sqrt(dot3(f, f))), z / sqrt(dot3(e, e))) * area
        if least > INSIDE * size:
            inside = least
            a = vertex_of(m1, d1, 0, i)
            if d1.facet_kind[0] == FIRST:
                b, c = vertex_of(m1, d1, 0, d1.facet_vertex[1]), vertex_of(m1, d1, 0, d1.facet_vertex[2])
                a = axpy3(y, sub3(b, a), axpy3(z, sub3(c, a), a))
            store_facet(d1, n, depth, a)
    return inside


@kernel
def measure_crossing(m1, d1, size):
    """As `measure_facet`, of two edges."""
    i, j = d1.facet_vertex[0], d1.facet_vertex[3]
    p = difference(m1, d1, i, j)
    e, f = sub3(difference(m1, d1, d1.facet_vertex[1], j), p), sub3(p, difference(m1, d1, i, d1.facet_vertex[4]))
    normal = cross(e, f)
    nn, inside = dot3(normal, normal), 0.0 * size
    if nn > 0.0:
        n = outwards(d1, normal, p)
        # the foot of the origin is p + s e - t f
        s, t = -dot3(normal, cross(p, f)) / nn, -dot3(normal, cross(p, e)) / nn
        area = sqrt(nn)
        least = area * fmin(fmin(s, 1.0 - s) / sqrt(dot3(f, f)), fmin(t, 1.0 - t) / sqrt(dot3(e, e)))
        if least > INSIDE * size:
            inside = least
            a = vertex_of(m1, d1, 0, i)
            store_facet(d1, n, dot3(n, p), axpy3(s, sub3(vertex_of(m1, d1, 0, d1.facet_vertex[1]), a), a))
    return inside


@kernel
def is_over_face(m1, d1, side, n, y, border):
    """Is the point's foot on the facet's face, and not nearer to its border?  All in the frame of the face's shape."""
    f, over = d1.facet_vertex[3 * side], True
    if d1.shape_type[side] == MESH:
        first, start, count = m1.hull_vertadr[d1.shape_data[side]], m1.hull_outlineadr[f], m1.hull_outlinenum[f]
        p = load3(m1.hull_vert, 3 * (first + m1.hull_outline[start + count - 1]))
        for k in range(count):
            q = load3(m1.hull_vert, 3 * (first + m1.hull_outline[start + k]))
            e = sub3(q, p)
            inner = dot3(cross(n, e), sub3(y, p))
            if not (inner > 0.0 and inner * inner > (border * border) * dot3(e, e)):
                over = False
                break
            p = q
    else:
        for k in range(3):
            if k != f // 2 and not fabs(y[k]) < d1.shape_size[3 * side + k] - border:
                over = False
    return over


@kernel
def measure_face(m1, d1, side, size):
    """As `measure_facet`, of a face of one core and a vertex of the other."""
    n, offset = plane_of_face(m1, d1, side)
    R, p = load9(d1.convex_mat, 0), load3(d1.convex_pos, 0)
    x = vertex_of(m1, d1, 1 - side, d1.facet_vertex[3 - 3 * side])
    if side == 0:
        y = add3(mat_mul_vec(R, x), p)
    else:
        y = mat_t_mul_vec(R, sub3(x, p))
    inside = 0.0 * size
    if is_over_face(m1, d1, side, n, y, WELL_INSIDE * size):
        inside = WELL_INSIDE * size
        depth = offset - dot3(n, y)
        if side == 0:
            store_facet(d1, n, depth, axpy3(depth, n, y))
        else:
            store_facet(d1, scale3(-1.0, mat_mul_vec(R, n)), depth, x)
    return inside


@kernel
def part_over_face(m1, d1, side, n, y, z, border):
    """(from, to): the part of the line y + t (z - y), 0 <= t <= 1, that is over the facet's face, away from its border.

    The end of none is not above its beginning.  All in the frame of the face's shape.
    """
    f, zero = d1.facet_vertex[3 * side], 0.0 * border
    lo, hi = zero, zero + 1.0
    if d1.shape_type[side] == MESH:
        first, start, count = m1.hull_vertadr[d1.shape_data[side]], m1.hull_outlineadr[f], m1.hull_outlinenum[f]
        p = load3(m1.hull_vert, 3 * (first + m1.hull_outline[start + count - 1]))
        for k in range(count):
            q = load3(m1.hull_vert, 3 * (first + m1.hull_outline[start + k]))
            e = sub3(q, p)
            g, away = cross(n, e), border * sqrt(dot3(e, e))
            lo, hi = cut_part(dot3(g, sub3(y, p)) - away, dot3(g, sub3(z, p)) - away, lo, hi)
            p = q
    else:
        for k in range(3):
            if k != f // 2:
                half = d1.shape_size[3 * side + k] - border
                lo, hi = cut_part(half - y[k], half - z[k], lo, hi)
                lo, hi = cut_part(half + y[k], half + z[k], lo, hi)
    return lo, hi


@kernel
def cut_part(here, there, lo, hi):
    """What is left of the part from lo to hi where a height, `here` at 0 and `there` at 1, is above 0."""
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
    """As `measure_facet`, of a face of one core and an edge of the other that is parallel to it, and over it."""
    n, offset = plane_of_face(m1, d1, side)
    R, p, k = load9(d1.convex_mat, 0), load3(d1.convex_pos, 0), 3 - 3 * side
    inside, border = 0.0 * size, WELL_INSIDE * size
    a, b = vertex_of(m1, d1, 1 - side, d1.facet_vertex[k]), vertex_of(m1, d1, 1 - side, d1.facet_vertex[k + 2])
    if side == 0:
        y, z = add3(mat_mul_vec(R, a), p), add3(mat_mul_vec(R, b), p)
    else:
        y, z = mat_t_mul_vec(R, sub3(a, p)), mat_t_mul_vec(R, sub3(b, p))
    e = sub3(z, y)
    rise = dot3(n, e)
    error, drop = error_and_drop(m1, d1, side)
    if rise * rise <= PARALLEL * PARALLEL * dot3(e, e) and error + fabs(rise) <= fmin(FLAT * drop, LEVEL * border):
        lo, hi = part_over_face(m1, d1, side, n, y, z, border)
        if lo < hi:
            inside, t = border, 0.5 * (lo + hi)
            depth = offset - fmin(dot3(n, y), dot3(n, z))
            if side == 0:
                x = axpy3(t, e, y)
                store_facet(d1, n, depth, axpy3(offset - dot3(n, x), n, x))
            else:
                store_facet(d1, scale3(-1.0, mat_mul_vec(R, n)), depth, axpy3(t, sub3(b, a), a))
    return inside


@kernel
def corner_of_face(m1, d1, side, k):
    """Corner k of the facet's face, in the frame of its shape."""
    f = d1.facet_vertex[3 * side]
    if d1.shape_type[side] == MESH:
        i = m1.hull_outline[m1.hull_outlineadr[f] + k]
    else:
        # the face's own bit, and two others
        axis = f // 2
        i = ((f & 1) << axis) | (((k ^ (k >> 1)) & 1) << ((axis + 1) % 3)) | ((k >> 1) << ((axis + 2) % 3))
    return vertex_of(m1, d1, side, i)


@kernel
def corners_of_face(m1, d1, side):
    """How many corners the facet's face has."""
    n = 4
    if d1.shape_type[side] == MESH:
        n = m1.hull_outlinenum[d1.facet_vertex[3 * side]]
    return n


@kernel
def measure_faces(m1, d1, size):
    """As `measure_facet`, of two parallel faces that are over each other: their depth along the first one's normal.

    The foot of the origin is well inside the facet if a point of one face is well inside the other: a corner, or a
    point of an edge.
    """
    n, offset = plane_of_face(m1, d1, 0)
    v, _ = plane_of_face(m1, d1, 1)
    R, p = load9(d1.convex_mat, 0), load3(d1.convex_pos, 0)
    turned = add3(n, mat_mul_vec(R, v))
    error, drop = error_and_drop(m1, d1, 0)
    other_error, other_drop = error_and_drop(m1, d1, 1)
    inside, border = 0.0 * size, WELL_INSIDE * size
    if dot3(turned, turned) <= PARALLEL * PARALLEL:
        good, nother = False, corners_of_face(m1, d1, 1)
        a, least, most = p, 0.0 * offset + 1e30, 0.0 * offset - 1e30
        for k in range(nother):
            y = add3(mat_mul_vec(R, corner_of_face(m1, d1, 1, k)), p)
            least, most = fmin(dot3(n, y), least), fmax(dot3(n, y), most)
            if not good and is_over_face(m1, d1, 0, n, y, border):
                good, a = True, axpy3(offset - dot3(n, y), n, y)
        if error + other_error + (most - least) > fmin(FLAT * fmin(drop, other_drop), LEVEL * border):
            nother = 0
        if not good:
            for k in range(corners_of_face(m1, d1, 0) if nother > 0 else 0):
                x = corner_of_face(m1, d1, 0, k)
                if not good and is_over_face(m1, d1, 1, v, mat_t_mul_vec(R, sub3(x, p)), border):
                    good, a = True, x
        if not good and nother > 0 and nother * corners_of_face(m1, d1, 0) <= FEW:
            y = add3(mat_mul_vec(R, corner_of_face(m1, d1, 1, nother - 1)), p)
            for k in range(nother):
                z = add3(mat_mul_vec(R, corner_of_face(m1, d1, 1, k)), p)
                lo, hi = part_over_face(m1, d1, 0, n, y, z, border)
                if lo < hi and not good:
                    x = axpy3(0.5 * (lo + hi), sub3(z, y), y)
                    good, a = True, axpy3(offset - dot3(n, x), n, x)
                y = z
        if good and nother > 0:
            inside = border
            store_facet(d1, n, offset - least, a)
    return inside


@kernel
def store_facet(d1, n, depth, a):
    """What is known of two cores by their facet."""
    d1.convex_dist[0] = -depth
    store3(d1.convex_normal, 0, n)
    store3(d1.convex_witness, 0, a)


@kernel
def measure_facet(m1, d1):
    """Depth, normal and the first core's deepest point from the facet's vertices, into `convex_*`.

    Returns how far at least the foot of the origin is from the facet's border [m]; 0 if it is outside, or near to the
    border: then nothing is written.
    """
    inside = 0.0 * d1.convex_pos[0]
    kind, size = d1.facet_kind[0], size_of_pair(m1, d1) if d1.facet_kind[0] != NO_FACET else inside
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


# ---- whether it stands alone -----------------------------------------------------------------------------------------
@kernel
def neighbours(m1, d1, side, i):
    """How many neighbours vertex i of a core has."""
    kind, n = d1.shape_type[side], 0
    if kind == MESH:
        n = m1.hull_edgenum[m1.hull_vertadr[d1.shape_data[side]] + i]
    elif kind == BOX:
        n = 3
    elif kind == CAPSULE:
        n = 1
    return n


@kernel
def neighbour(m1, d1, side, i, k):
    """Neighbour k of vertex i of a core."""
    kind, other = d1.shape_type[side], 1 - i
    if kind == MESH:
        other = m1.hull_edge[m1.hull_edgeadr[m1.hull_vertadr[d1.shape_data[side]] + i] + k]
    elif kind == BOX:
        other = i ^ (1 << k)
    return other


@kernel
def falls_away(m1, d1, side, i, u, tilt, slack):
    """Do all edges from vertex i to vertices that are not the facet's fall along u, more steeply than by the tilt?

    And is there no face at the vertex for which a search might take what it ends with?  Not where all are steep.
    """
    away, steep, p = True, True, vertex_of(m1, d1, side, i)
    for c in range(neighbours(m1, d1, side, i)):
        k = neighbour(m1, d1, side, i, c)
        e = sub3(vertex_of(m1, d1, side, k), p)
        fall, ee = -dot3(e, u) - slack, dot3(e, e)
        if not (fall > 0.0 and fall * fall > (4.0 * ALIKE * ALIKE) * ee) and not is_of_facet(m1, d1, side, k):
            steep = False
            if not (fall > 0.0 and fall * fall > (tilt * tilt) * ee):
                away = False
    return away and (steep or face_towards(m1, d1, side, i, u, 2.0 * ALIKE) == NO_FACE)


@kernel
def edge_of_facet(m1, d1, side):
    """From one end of the facet's edge to the other, in the frame of its shape."""
    k = 3 * side
    return sub3(vertex_of(m1, d1, side, d1.facet_vertex[k + 2]), vertex_of(m1, d1, side, d1.facet_vertex[k]))


@kernel
def error_of_facet(m1, d1, size):
    """By which the facet's corners leave its plane, at most [m]."""
    kind, total = d1.facet_kind[0], 0.0 * size
    for side in range(2):
        if has_face(d1, side):
            error, _ = error_and_drop(m1, d1, side)
            total = total + error
    if kind == FACES:
        total = total + LEVEL * (WELL_INSIDE * size)
    elif kind == FACE_EDGE:
        v = mat_t_mul_vec(load9(d1.convex_mat, 0), load3(d1.convex_normal, 0))
        total = total + fabs(dot3(edge_of_facet(m1, d1, 1), v))
    elif kind == EDGE_FACE:
        total = total + fabs(dot3(edge_of_facet(m1, d1, 0), load3(d1.convex_normal, 0)))
    return total


@kernel
def stands_alone(m1, d1, size, inside):
    """Has the difference no other vertex near the facet's plane, and no other facet by which a search would name it?

    A search ends within SETTLED of the depth, and so on a plane that is turned against the facet's by that over how far
    the origin's foot is from the facet's border, at most: then it passes over a disc of this radius in the facet.  What
    falls more steeply away from the facet's vertices is not on that plane.  These vertices are one support set of each
    core; by convexity it is enough to ask for their edges.  Those of a face have been asked when the model was loaded.
    """
    n, slack = load3(d1.convex_normal, 0), SETTLED * size + 2.0 * error_of_facet(m1, d1, size)
    v = mat_t_mul_vec(load9(d1.convex_mat, 0), n)
    tilt, u = fmax(slack / inside, 2.0 * PARALLEL), (-v[0], -v[1], -v[2])
    alone = slack < 0.5 * ALIKE * inside
    if not has_face(d1, 0):
        for k in range(3):
            if alone and (k == 0 or d1.facet_vertex[k] != d1.facet_vertex[k - 1]):
                alone = falls_away(m1, d1, 0, d1.facet_vertex[k], n, tilt, slack)
    if not has_face(d1, 1):
        for k in range(3, 6):
            if alone and (k == 3 or d1.facet_vertex[k] != d1.facet_vertex[k - 1]):
                alone = falls_away(m1, d1, 1, d1.facet_vertex[k], u, tilt, slack)
    return alone


# ---- where a search ended --------------------------------------------------------------------------------------------
@kernel
def edge_across(m1, d1, side, i, u):
    """The vertex of a core to which the one edge from vertex i goes that is square to u; -1: none does, or several."""
    p, found, other = vertex_of(m1, d1, side, i), 0, -1
    for c in range(neighbours(m1, d1, side, i)):
        k = neighbour(m1, d1, side, i, c)
        e = sub3(vertex_of(m1, d1, side, k), p)
        rise = dot3(e, u)
        if rise * rise <= PARALLEL * PARALLEL * dot3(e, e):
            found, other = found + 1, k
    if found != 1:
        other = -1
    return other


@kernel
def settle_on_edge(m1, d1, side, face, i):
    """The facet of a face of one core and the edge at vertex i of the other that is parallel to it, if there is one."""
    set_facet(d1, FACE_EDGE if side == 0 else EDGE_FACE, (face, face, face), (face, face, face))
    n, _ = plane_of_face(m1, d1, side)
    if side == 0:
        u = mat_t_mul_vec(load9(d1.convex_mat, 0), n)
    else:
        u = mat_mul_vec(load9(d1.convex_mat, 0), n)
    k, good = edge_across(m1, d1, 1 - side, i, u), False
    if k >= 0 and edge_across(m1, d1, 1 - side, k, u) == i:
        for c in range(3):
            d1.facet_vertex[3 - 3 * side + c] = min(i, k) if c == 0 else max(i, k)
        good = measure_facet(m1, d1) > 0.0
    return good


@kernel
def settle_on_facet(m1, d1, i, j, u):
    """The facet of three points of the difference, and what follows from it in place of what a search has found.

    Args:
        i, j: the points' vertices of the first and of the second core; some may be named twice.
        u: the normal that was found; where the facet's is another, or the origin's foot is not on the facet,
            facet_kind is NO_FACET, and `convex_*` means nothing.
    """
    good = False
    v = mat_t_mul_vec(load9(d1.convex_mat, 0), u)
    if min(i[0], j[0]) >= 0:
        face, other = face_towards(m1, d1, 0, i[0], u, ALIKE), face_towards(m1, d1, 1, j[0], scale3(-1.0, v), ALIKE)
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
    if not good or dot3(load3(d1.convex_normal, 0), u) < 0.5:
        d1.facet_kind[0] = NO_FACET
