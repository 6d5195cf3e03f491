"""Computes the distance of two convex shapes: the point of their difference that is nearest to the origin.

A simplex of support points moves towards the origin.  Each step adds the support point against the current nearest
point v and keeps the smallest face of the simplex that contains the new nearest point.  v . w / |v| is a lower bound
of the distance: the search ends when it exceeds the limit, or when it meets the upper bound |v|.

The nearest point of a triangle is computed along its normal, that of an edge orthogonal to it, not as a weighted
sum of corners.  So the direction stays exact for distances far below the shapes' size.  Every face of the simplex with
the origin possibly outside is tested, so a sliver with signs from rounding causes no error.
Source: Gilbert, Johnson, Keerthi 1988; van den Bergen, Collision Detection in Interactive 3D Environments, sec. 4.3;
Montanari et al., "Improving the GJK algorithm", 2017 (the nearest point by cases, not determinants, is Featherlane's).
"""

from featherlane.prelude import *
from featherlane.collision.convex.support import NO_VERTEX, support_along

APART, FAR, OVERLAP = 0, 1, 2
ITERATIONS = 128
TOUCH = 1e-9  # shapes nearer than this, relative to their size, touch: the normal is that of the polytope's face
SLIVER = 1e-30  # squared area, relative to the longest edge's fourth power, below which a triangle is only its edges
LEAN = 1e-20  # squared sine between an edge and a face below which a tetrahedron is flat
ROUNDING = 1e-15  # relative error of a product of two points
HUGE = 1e300


# ---- nearest point of a simplex ------------------------------------------------------------------------------------
@kernel
def nearest_on_edge(a, b):
    """Returns (squared distance, v, (weight of a, weight of b)) of the point nearest to the origin."""
    e = b - a
    ee, t = dot(e, e), -dot(a, e)
    zero = 0.0 * ee
    if t <= 0.0:
        v, part, rest = a, zero, zero + 1.0
    elif t >= ee:
        v, part, rest = b, zero + 1.0, zero
    else:
        part = t / ee
        v, rest = fma(part, e, a), 1.0 - part
    return dot(v, v), v, (rest, part)


@kernel
def nearest_on_triangle(a, b, c):
    """Returns (squared distance, v, (weight of a, of b, of c))."""
    ab, ac, bc = b - a, c - a, c - b
    n = cross(ab, ac)
    nn, longest = dot(n, n), dot(ab, ab) + dot(ac, ac)

    # signed areas of the sub-triangles opposite to the corners
    pa, pb, pc = dot(n, cross(b, bc)), -dot(n, cross(c, ac)), dot(n, cross(a, ab))
    flat = nn <= SLIVER * (longest * longest)
    best, v, wa, wb, wc = 0.0 * nn + HUGE, a, 0.0 * nn, 0.0 * nn, 0.0 * nn
    if not flat and pa > 0.0 and pb > 0.0 and pc > 0.0:
        v = dot(n, a) / nn * n
        s = 1.0 / (pa + pb + pc)
        best, wa, wb, wc = dot(v, v), pa * s, pb * s, pc * s
    else:
        # tests all three edges, because the signs of a sliver's areas are rounding
        d, x, part = nearest_on_edge(b, c)
        if d < best:
            best, v, wa, wb, wc = d, x, 0.0 * d, part[0], part[1]
        d, x, part = nearest_on_edge(a, c)
        if d < best:
            best, v, wa, wb, wc = d, x, part[0], 0.0 * d, part[1]
        d, x, part = nearest_on_edge(a, b)
        if d < best:
            best, v, wa, wb, wc = d, x, part[0], part[1], 0.0 * d
    return best, v, (wa, wb, wc)


@kernel
def is_across_triangle(a, b, c, d):
    """Returns whether the origin is on the other side of triangle abc than d, or the side is unknown in a flat one."""
    ab, ac, ad = b - a, c - a, d - a
    n = cross(ab, ac)
    inner, outer = dot(n, ad), -dot(n, a)
    return (inner * outer <= 0.0) | (inner * inner <= LEAN * dot(n, n) * dot(ad, ad))


@kernel
def set_weights(d1, wa, wb, wc, wd):
    """Stores the weights of the four points."""
    d1.simplex.weight[0], d1.simplex.weight[1], d1.simplex.weight[2], d1.simplex.weight[3] = wa, wb, wc, wd


@kernel
def nearest_on_tetrahedron(d1, a, b, c, d):
    """Returns (squared distance, v) and stores the weights.  An origin inside has distance 0."""
    zero = 0.0 * a[0]
    best, v, outside = zero + HUGE, a, 0
    if is_across_triangle(a, b, c, d):
        outside = 1
        best, v, w = nearest_on_triangle(a, b, c)
        set_weights(d1, w[0], w[1], w[2], zero)
    if is_across_triangle(a, b, d, c):
        outside = 1
        x, y, w = nearest_on_triangle(a, b, d)
        if x < best:
            best, v = x, y
            set_weights(d1, w[0], w[1], zero, w[2])
    if is_across_triangle(a, c, d, b):
        outside = 1
        x, y, w = nearest_on_triangle(a, c, d)
        if x < best:
            best, v = x, y
            set_weights(d1, w[0], zero, w[1], w[2])
    if is_across_triangle(b, c, d, a):
        outside = 1
        x, y, w = nearest_on_triangle(b, c, d)
        if x < best:
            best, v = x, y
            set_weights(d1, zero, w[0], w[1], w[2])
    if outside == 0:
        best, v = zero, Vec3(zero, zero, zero)
        set_weights(d1, zero + 0.25, zero + 0.25, zero + 0.25, zero + 0.25)
    return best, v


@stage
def nearest_on_simplex(m1, d1):
    """Computes the simplex's point nearest to the origin, into `gjk.nearest`; keeps only the vertices that span it.

    Reads:  simplex.*.   Writes: gjk.nearest (3,) [m], simplex.*.
    """
    n = d1.simplex.count[0]
    a, zero = d1.simplex.point[0], 0.0 * d1.simplex.point[0][0]
    v = a
    if n == 1:
        set_weights(d1, zero + 1.0, zero, zero, zero)
    elif n == 2:
        _, v, w = nearest_on_edge(a, d1.simplex.point[1])
        set_weights(d1, w[0], w[1], zero, zero)
    elif n == 3:
        _, v, w3 = nearest_on_triangle(a, d1.simplex.point[1], d1.simplex.point[2])
        set_weights(d1, w3[0], w3[1], w3[2], zero)
    else:
        _, v = nearest_on_tetrahedron(d1, a, d1.simplex.point[1], d1.simplex.point[2], d1.simplex.point[3])
    d1.gjk.nearest[0] = v
    kept = 0
    for i in range(n):
        if d1.simplex.weight[i] > 0.0:
            d1.simplex.point[kept] = d1.simplex.point[i]
            d1.simplex.first[kept] = d1.simplex.first[i]
            d1.simplex.vertex[kept, 0] = d1.simplex.vertex[i, 0]
            d1.simplex.vertex[kept, 1] = d1.simplex.vertex[i, 1]
            d1.simplex.weight[kept] = d1.simplex.weight[i]
            kept = kept + 1
    d1.simplex.count[0] = kept


# ---- the search ------------------------------------------------------------------------------------------------------
@kernel
def add_support(d1):
    """Appends the latest support point to the simplex."""
    k = d1.simplex.count[0]
    d1.simplex.point[k] = d1.support.point[0]
    d1.simplex.first[k] = d1.support.first[0]
    d1.simplex.vertex[k, 0], d1.simplex.vertex[k, 1] = d1.support.vertex[0], d1.support.vertex[1]
    d1.simplex.count[0] = k + 1


@kernel
def size_of_point(d1, k):
    """Returns the squared distance of a simplex point, or its points on the shapes, from the first shape's centre."""
    w, a = d1.simplex.point[k], d1.simplex.first[k]
    b = a - w
    size2, aa, bb = dot(w, w), dot(a, a), dot(b, b)
    if aa > size2:
        size2 = aa
    if bb > size2:
        size2 = bb
    return size2


@kernel
def is_known(d1):
    """Returns whether the latest support point is already in the simplex."""
    known = False
    for k in range(d1.simplex.count[0]):
        i, j = d1.simplex.vertex[k, 0], d1.simplex.vertex[k, 1]
        if i == d1.support.vertex[0] and j == d1.support.vertex[1] and i != NO_VERTEX and j != NO_VERTEX:
            known = True
        e = d1.simplex.point[k] - d1.support.point[0]
        if dot(e, e) == 0.0:
            known = True
    return known


@stage
def gjk(m1, d1):
    """Finds where the difference of the two cores is nearest to the origin.

    Reads:  shapes.*, convex.mat, convex.pos; gjk.reach, the search limit; gjk.gap, the allowed difference of |v|^2
            and v . w at the end, relative to |v|^2; support.dir, the initial direction.
    Writes: gjk.*; gjk.nearest (3,) [m]; simplex.*, the points that span it, with weights.
    Scratch: support.*.
    Frame:  the first shape's.      Cost: one support point and about 50 ns per step, up to ITERATIONS steps.
    """
    d1.simplex.count[0] = 0
    v = support_along(m1, d1, d1.support.dir[0])
    add_support(d1)
    d1.simplex.weight[0] = 1.0
    d1.gjk.nearest[0] = v
    vv, reach = dot(v, v), d1.gjk.reach[0]
    # the distance of the centres: the first core may be a point, on the surface of the second
    size2, state = fmax(size_of_point(d1, 0), dot(d1.convex.pos[0], d1.convex.pos[0])), APART
    for _ in range(ITERATIONS):
        if vv <= TOUCH * TOUCH * size2:
            state = OVERLAP
            break
        w = support_along(m1, d1, -v)
        ww, vw = dot(w, w), dot(v, w)
        if ww > size2:
            size2 = ww
        if vw > 0.0 and vw * vw > vv * (reach * reach):
            state = FAR
            break
        if vv - vw <= d1.gjk.gap[0] * vv + ROUNDING * sqrt(vv * size2) or is_known(d1):
            break
        add_support(d1)
        nearest_on_simplex(m1, d1)
        v = d1.gjk.nearest[0]
        last, vv = vv, dot(v, v)
        if d1.simplex.count[0] == 4:
            state = OVERLAP
            break
        if not vv < last:
            break
    d1.gjk.state[0] = state
