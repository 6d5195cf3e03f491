"""The facet of the difference of two polytopes that is nearest to the origin, told by the vertices that span it.

A facet is a triangle of one shape with a vertex of the other, or two edges that cross.  From the numbers of these
vertices its normal, its depth and the nearest points follow by themselves, in the same bits however it was found.

    kind      vertices            points of the difference
    FIRST     i0 < i1 < i2, j0    a triangle of the first shape, less a vertex of the second
    SECOND    i0, j0 < j1 < j2    a vertex of the first, less a triangle of the second
    CROSSING  i0 < i1, j0 < j1    two edges: a parallelogram
"""

from __future__ import annotations

from featherlane.collision.support import PRISM
from featherlane.lanes import fmin, kernel, sqrt
from featherlane.model.enums import BOX, CAPSULE, MESH
from featherlane.spatial.vector import (
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

NO_FACET, FIRST, SECOND, CROSSING = range(4)
INSIDE = 1e-4  # of the size: nearer than this to its border the foot of the origin counts as outside
STRICT = 1e-6  # of the size: vertices this much below a facet's plane are not of it


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
    d1.facet_kind[0] = kind
    d1.facet_vertex[0], d1.facet_vertex[1], d1.facet_vertex[2] = a, b, c
    d1.facet_vertex[3], d1.facet_vertex[4], d1.facet_vertex[5] = x, y, z


@kernel
def is_of_facet(d1, side, i):
    """Is vertex i of this core one of the facet's?"""
    k = 3 * side
    return i == d1.facet_vertex[k] or i == d1.facet_vertex[k + 1] or i == d1.facet_vertex[k + 2]


# ---- what follows from it --------------------------------------------------------------------------------------------
@kernel
def outwards(n, p):
    """The unit vector along n, or against it: away from the origin, if the facet's point is p."""
    s = 1.0 / sqrt(dot3(n, n))
    if dot3(n, p) < 0.0:
        s = -s
    return scale3(s, n)


@kernel
def size_of_pair(m1, d1):
    """How far the shapes reach, roughly, as the facet's first vertices tell [m]."""
    a, b = vertex_of(m1, d1, 0, d1.facet_vertex[0]), vertex_of(m1, d1, 1, d1.facet_vertex[3])
    p = load3(d1.convex_pos, 0)
    return sqrt(dot3(a, a)) + sqrt(dot3(b, b)) + sqrt(dot3(p, p))


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
        n = outwards(normal, p)
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
        n = outwards(normal, p)
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
    elif d1.facet_kind[0] != NO_FACET:
        good = measure_triangle(m1, d1, size_of_pair(m1, d1))
    return good


# ---- whether it stands alone -----------------------------------------------------------------------------------------
@kernel
def is_below(m1, d1, side, i, k, u, slack):
    """Is vertex k lower than vertex i along u, by the slack at least, or of the facet itself?"""
    return is_of_facet(d1, side, k) or dot3(sub3(vertex_of(m1, d1, side, k), vertex_of(m1, d1, side, i)), u) < -slack


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
def stands_alone(m1, d1, size):
    """Has the difference no other vertex near the facet's plane?

    The facet's vertices are those of one support set of each core; by convexity it is enough to ask their neighbours.
    """
    n = load3(d1.convex_normal, 0)
    v = mat_t_mul_vec(load9(d1.convex_mat, 0), n)
    alone, u = True, (-v[0], -v[1], -v[2])
    for k in range(3):
        if alone and (k == 0 or d1.facet_vertex[k] != d1.facet_vertex[k - 1]):
            alone = neighbours_below(m1, d1, 0, d1.facet_vertex[k], n, STRICT * size)
    for k in range(3, 6):
        if alone and (k == 3 or d1.facet_vertex[k] != d1.facet_vertex[k - 1]):
            alone = neighbours_below(m1, d1, 1, d1.facet_vertex[k], u, STRICT * size)
    return alone
