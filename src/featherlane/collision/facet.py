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

Faces are told from triangles where their corners are in one plane, but for a small part of the height by which all
other vertices are below it: then a search ends somewhere on the face, and its plane is the facet's.
"""

from __future__ import annotations

from featherlane.collision.feature import unit_axis
from featherlane.collision.support import PRISM
from featherlane.lanes import fabs, fmin, kernel, sqrt
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

NO_FACET, FIRST, SECOND, CROSSING, FACE_FIRST, FACE_SECOND, FACES = range(7)
NO_FACE = -1
INSIDE = 1e-4  # of the size: nearer than this to its border the foot of the origin counts as outside
STRICT = 1e-6  # of the size: vertices this much below a facet's plane are not of it
WELL_INSIDE = 1e-2  # of the size: as INSIDE, on a face
FLAT = 1e-4  # error of a face, as a part of the height by which others are below it, at most
ALIKE = 1e-3  # by which a face's normal and that of a search may differ; MuJoCo makes one of faces that differ by less
PARALLEL = 1e-7  # by which the normals of parallel faces may differ
STANDS_OUT = 1e-3  # of the size: of parallel faces all other vertices are this much below
CLEAR_OF_ERROR = 1e4  # of a face's error: vertices of the other shape this much below are not of the facet


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
def face_towards(m1, d1, side, i, u):
    """The face at vertex i of a core, of more than three corners, that looks along u, or NO_FACE."""
    kind, face = d1.shape_type[side], NO_FACE
    if kind == MESH:
        mesh = d1.shape_data[side]
        at, best = m1.hull_vertadr[mesh] + i, 0.0 * u[0] + (1.0 - 0.5 * ALIKE * ALIKE)
        for c in range(m1.hull_mapadr[at], m1.hull_mapadr[at] + m1.hull_mapnum[at]):
            f = m1.hull_polyadr[mesh] + m1.hull_map[c]
            cosine = dot3(load3(m1.hull_planenormal, 3 * f), u)
            if cosine > best and m1.hull_polyvertnum[f] > 3 and is_flat(m1, f):
                best, face = cosine, f
    elif kind == BOX:
        for axis in range(3):
            if fabs(u[axis]) > 1.0 - 0.5 * ALIKE * ALIKE:
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
    return d1.facet_kind[0] == (FACE_FIRST if side == 0 else FACE_SECOND) or d1.facet_kind[0] == FACES


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
    nn, good = dot3(normal, normal), False
    if nn > 0.0:
        n = outwards(d1, normal, p)
        depth = dot3(n, p)
        # doubled areas over the sides g, f and e, and the distances from them
        x, y, z = dot3(normal, cross(q, g)) / nn, -dot3(normal, cross(p, f)) / nn, dot3(normal, cross(p, e)) / nn
        area = sqrt(nn)
        least = fmin(fmin(x / sqrt(dot3(g, g)), y / sqrt(dot3(f, f))), z / sqrt(dot3(e, e))) * area
        if least > INSIDE * size:
            good = True
            a = vertex_of(m1, d1, 0, i)
            if d1.facet_kind[0] == FIRST:
                b, c = vertex_of(m1, d1, 0, d1.facet_vertex[1]), vertex_of(m1, d1, 0, d1.facet_vertex[2])
                a = axpy3(y, sub3(b, a), axpy3(z, sub3(c, a), a))
            store_facet(d1, n, depth, a)
    return good


@kernel
def measure_crossing(m1, d1, size):
    """As `measure_facet`, of two edges."""
    i, j = d1.facet_vertex[0], d1.facet_vertex[3]
    p = difference(m1, d1, i, j)
    e, f = sub3(difference(m1, d1, d1.facet_vertex[1], j), p), sub3(p, difference(m1, d1, i, d1.facet_vertex[4]))
    normal = cross(e, f)
    nn, good = dot3(normal, normal), False
    if nn > 0.0:
        n = outwards(d1, normal, p)
        # the foot of the origin is p + s e - t f
        s, t = -dot3(normal, cross(p, f)) / nn, -dot3(normal, cross(p, e)) / nn
        area = sqrt(nn)
        least = area * fmin(fmin(s, 1.0 - s) / sqrt(dot3(f, f)), fmin(t, 1.0 - t) / sqrt(dot3(e, e)))
        if least > INSIDE * size:
            good = True
            a = vertex_of(m1, d1, 0, i)
            store_facet(d1, n, dot3(n, p), axpy3(s, sub3(vertex_of(m1, d1, 0, d1.facet_vertex[1]), a), a))
    return good


@kernel
def is_over_face(m1, d1, side, n, y, border):
    """Is the point's foot on the facet's face, and not nearer to its border?  All in the frame of the face's shape."""
    f, over = d1.facet_vertex[3 * side], True
    if d1.shape_type[side] == MESH:
        first, start, count = m1.hull_vertadr[d1.shape_data[side]], m1.hull_polyvertadr[f], m1.hull_polyvertnum[f]
        p = load3(m1.hull_vert, 3 * (first + m1.hull_polyvert[start + count - 1]))
        for k in range(count):
            q = load3(m1.hull_vert, 3 * (first + m1.hull_polyvert[start + k]))
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
    over = is_over_face(m1, d1, side, n, y, WELL_INSIDE * size)
    if over:
        depth = offset - dot3(n, y)
        if side == 0:
            store_facet(d1, n, depth, axpy3(depth, n, y))
        else:
            store_facet(d1, scale3(-1.0, mat_mul_vec(R, n)), depth, x)
    return over


@kernel
def corner_of_face(m1, d1, side, k):
    """Corner k of the facet's face, in the frame of its shape."""
    f = d1.facet_vertex[3 * side]
    if d1.shape_type[side] == MESH:
        i = m1.hull_polyvert[m1.hull_polyvertadr[f] + k]
    else:
        # the face's own bit, and two others
        axis = f // 2
        i = ((f & 1) << axis) | ((k & 1) << ((axis + 1) % 3)) | ((k >> 1) << ((axis + 2) % 3))
    return vertex_of(m1, d1, side, i)


@kernel
def corners_of_face(m1, d1, side):
    """How many corners the facet's face has."""
    n = 4
    if d1.shape_type[side] == MESH:
        n = m1.hull_polyvertnum[d1.facet_vertex[3 * side]]
    return n


@kernel
def measure_faces(m1, d1, size):
    """As `measure_facet`, of two parallel faces: their depth along the first one's normal, where a corner is over them.

    The foot of the origin is well inside the facet if a corner of one face is well inside the other.
    """
    n, offset = plane_of_face(m1, d1, 0)
    v, _ = plane_of_face(m1, d1, 1)
    R, p = load9(d1.convex_mat, 0), load3(d1.convex_pos, 0)
    turned = add3(n, mat_mul_vec(R, v))
    _, drop = error_and_drop(m1, d1, 0)
    _, other = error_and_drop(m1, d1, 1)
    good = dot3(turned, turned) <= PARALLEL * PARALLEL and fmin(drop, other) >= STANDS_OUT * size
    if good:
        good, border = False, WELL_INSIDE * size
        a, least = p, 0.0 * offset + 1e30
        for k in range(corners_of_face(m1, d1, 1)):
            y = add3(mat_mul_vec(R, corner_of_face(m1, d1, 1, k)), p)
            least = fmin(dot3(n, y), least)
            if not good and is_over_face(m1, d1, 0, n, y, border):
                good, a = True, axpy3(offset - dot3(n, y), n, y)
        if not good:
            for k in range(corners_of_face(m1, d1, 0)):
                x = corner_of_face(m1, d1, 0, k)
                if not good and is_over_face(m1, d1, 1, v, mat_t_mul_vec(R, sub3(x, p)), border):
                    good, a = True, x
        if good:
            store_facet(d1, n, offset - least, a)
    return good


@kernel
def store_facet(d1, n, depth, a):
    """What is known of two cores by their facet."""
    d1.convex_dist[0] = -depth
    store3(d1.convex_normal, 0, n)
    store3(d1.convex_witness, 0, a)


@kernel
def measure_facet(m1, d1):
    """Depth, normal and the first core's deepest point from the facet's vertices, into `convex_*`.

    Not if the foot of the origin is outside the facet, or near its border: then nothing is written, and false returned.
    """
    good = False
    if d1.facet_kind[0] == CROSSING:
        good = measure_crossing(m1, d1, size_of_pair(m1, d1))
    elif d1.facet_kind[0] == FACE_FIRST:
        good = measure_face(m1, d1, 0, size_of_pair(m1, d1))
    elif d1.facet_kind[0] == FACES:
        good = measure_faces(m1, d1, size_of_pair(m1, d1))
    elif d1.facet_kind[0] == FACE_SECOND:
        good = measure_face(m1, d1, 1, size_of_pair(m1, d1))
    elif d1.facet_kind[0] != NO_FACET:
        good = measure_triangle(m1, d1, size_of_pair(m1, d1))
    return good


# ---- whether it stands alone -----------------------------------------------------------------------------------------
@kernel
def is_below(m1, d1, side, i, k, u, slack):
    """Is vertex k lower than vertex i along u, by the slack at least, or of the facet?"""
    return (
        is_of_facet(m1, d1, side, k) or dot3(sub3(vertex_of(m1, d1, side, k), vertex_of(m1, d1, side, i)), u) < -slack
    )


@kernel
def neighbours_below(m1, d1, side, i, u, slack):
    """Are all neighbours of vertex i lower?"""
    kind, below = d1.shape_type[side], True
    if kind == MESH:
        at = m1.hull_vertadr[d1.shape_data[side]] + i
        for k in range(m1.hull_edgeadr[at], m1.hull_edgeadr[at] + m1.hull_edgenum[at]):
            if not is_below(m1, d1, side, i, m1.hull_edge[k], u, slack):
                below = False
    elif kind == BOX:
        for k in range(3):
            if not is_below(m1, d1, side, i, i ^ (1 << k), u, slack):
                below = False
    elif kind == CAPSULE:
        below = is_below(m1, d1, side, i, 1 - i, u, slack)
    elif kind == PRISM:
        below = False
    return below


@kernel
def error_of_facet(m1, d1):
    """By which the facet's corners leave its plane [m]."""
    total = 0.0 * d1.convex_pos[0]
    for side in range(2):
        if has_face(d1, side):
            error, _ = error_and_drop(m1, d1, side)
            total = total + error
    return total


@kernel
def stands_alone(m1, d1, size):
    """Has the difference no other vertex near the facet's plane?

    The facet's vertices are those of one support set of each core; by convexity it is enough to ask their neighbours.
    Those of a face have been asked when the model was loaded.
    """
    n, slack = load3(d1.convex_normal, 0), STRICT * size + CLEAR_OF_ERROR * error_of_facet(m1, d1)
    v = mat_t_mul_vec(load9(d1.convex_mat, 0), n)
    alone, u = True, (-v[0], -v[1], -v[2])
    if not has_face(d1, 0):
        for k in range(3):
            if alone and (k == 0 or d1.facet_vertex[k] != d1.facet_vertex[k - 1]):
                alone = neighbours_below(m1, d1, 0, d1.facet_vertex[k], n, slack)
    if not has_face(d1, 1):
        for k in range(3, 6):
            if alone and (k == 3 or d1.facet_vertex[k] != d1.facet_vertex[k - 1]):
                alone = neighbours_below(m1, d1, 1, d1.facet_vertex[k], u, slack)
    return alone


# ---- where a search ended --------------------------------------------------------------------------------------------
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
        face, other = face_towards(m1, d1, 0, i[0], u), face_towards(m1, d1, 1, j[0], scale3(-1.0, v))
        if face != NO_FACE and other != NO_FACE:
            set_facet(d1, FACES, (face, face, face), (other, other, other))
            good = measure_facet(m1, d1)
        if not good and face != NO_FACE and j[0] == j[1] and j[0] == j[2]:
            set_facet(d1, FACE_FIRST, (face, face, face), j)
            good = measure_facet(m1, d1)
        if not good and other != NO_FACE and i[0] == i[1] and i[0] == i[2]:
            set_facet(d1, FACE_SECOND, i, (other, other, other))
            good = measure_facet(m1, d1)
    if not good:
        name_facet(d1, i, j)
        good = measure_facet(m1, d1)
    if not good or dot3(load3(d1.convex_normal, 0), u) < 0.5:
        d1.facet_kind[0] = NO_FACET
