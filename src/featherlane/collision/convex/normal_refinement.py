"""Computes the last digits of the normal of a curved shape by Newton's method on the support function.

Distance and depth are both minima of h(n) = n . s(n) over unit vectors n, where s(n) is the support point of the
difference of the shapes: minus the distance of separated shapes, the depth of overlapping ones.  A search by support
points converges linearly; Newton's method, started from its result, converges quadratically:

    gradient  s - h n,        Hessian  ds/dn - h      (on the tangents of the sphere at n)

h has kinks: edges and faces of polytopes, the side and the caps of a cylinder.  A minimum on a kink is computed within
it: on a face it is already exact, along an edge e (n . e = 0) the step is along e x n.  The final points of the search
determine the active kinks: two corners of a polytope, or a cylinder's points on both rims.
Several strategies are tried, and the one with the lowest h is used; h is always evaluated for the whole shapes, so a
strategy that diverges is never selected.
Source: the curvature of an ellipsoid's support function is that of |D n|; the method is Featherlane's.
"""

from featherlane.prelude import *
from featherlane.collision.convex.support import PRISM, support_along

STEPS = 8
SETTLED = 1e-10  # a step below this ends the iteration
STEEPEST = 0.1  # a step above this leaves the neighbourhood of the search's result
NEAR_AXIS = 0.05  # sine of the angle between normal and cylinder axis below which a cap may touch
STRAIGHT = 1e-7  # sine below which a normal is parallel or orthogonal to an axis or an edge
CLOSE = 0.02  # maximum error of the search's nearest points, relative to the size
BETTER = 1e-14  # margin, relative to the size, by which a less constrained strategy must be lower


# ---- curvature -------------------------------------------------------------------------------------------------------
@kernel
def to_shape(d1, side, v):
    """Transforms a vector from the first shape's frame to the frame of a shape."""
    if side == 1:
        v = d1.convex.mat[0].T @ v
    return v


@kernel
def _scaled(size, v):
    """Returns D v, D the diagonal matrix of the sizes."""
    return Vec3(size[0] * v[0], size[1] * v[1], size[2] * v[2])


@kernel
def core_curvature(d1, side, n, s, t):
    """Returns (s . ds/dn s, s . ds/dn t, t . ds/dn t) of one core's support point, for two tangents at n."""
    kind, size = d1.shapes.type[side], d1.shapes.size[side]
    zero = 0.0 * size[0]
    ss, st, tt = zero, zero, zero
    if kind in (ELLIPSOID, CYLINDER):
        u, s, t = to_shape(d1, side, n), to_shape(d1, side, s), to_shape(d1, side, t)
        if kind == ELLIPSOID:
            # (D^2 - p p^T) / |D u|, p = D^2 u / |D u|
            u, norm = normalize3(_scaled(size, u))
            s, t = _scaled(size, s), _scaled(size, t)
            s, t = fma(-dot(u, s), u, s), fma(-dot(u, t), u, t)
            ss, st, tt = dot(s, s) / norm, dot(s, t) / norm, dot(t, t) / norm
        else:
            # a rim: radius over the sine, orthogonal to the axis
            square = u[0] * u[0] + u[1] * u[1]
            if square > 1e-12:
                k = size[0] / (square * sqrt(square))
                a, b = u[0] * s[1] - u[1] * s[0], u[0] * t[1] - u[1] * t[0]
                ss, st, tt = k * a * a, k * a * b, k * b * b
    return ss, st, tt


# ---- descent -------------------------------------------------------------------------------------------------------
@kernel
def any_tangent(n):
    """Returns a unit vector orthogonal to n."""
    one, zero = 0.0 * n[0] + 1.0, 0.0 * n[0]
    e = Vec3(one, zero, zero)
    if fabs(n[0]) > 0.6:
        e = Vec3(zero, one, zero)
    return normalize3(cross(n, e))[0]


@kernel
def descend(m1, d1, n, e, bound):
    """Returns (n, settled) of Newton's method from n, along the edge e if `bound` is 1, unconstrained if it is 0."""
    settled = 0
    if bound == 1:
        n, _ = normalize3(fma(-dot(n, e) / dot(e, e), e, n))
    for _ in range(STEPS):
        if bound == 1:
            t, _ = normalize3(cross(e, n))
        else:
            t = any_tangent(n)
        s = cross(t, n)
        p = support_along(m1, d1, n)
        h = dot(p, n)
        a, b = core_curvature(d1, 0, n, s, t), core_curvature(d1, 1, n, s, t)
        ss, st, tt = a[0] + b[0] - h, a[1] + b[1], a[2] + b[2] - h
        gs, gt = dot(p, s), dot(p, t)
        det, x, y = tt, 0.0 * h, 0.0 * h
        if bound == 0:
            det = ss * tt - st * st
        if not (tt > 0.0 and det > 0.0):
            break
        if bound == 0:
            x, y = (st * gt - tt * gs) / det, (st * gs - ss * gt) / det
        else:
            y = -gt / tt
        step = fabs(x) + fabs(y)
        if not step < STEEPEST:
            break
        n, _ = normalize3(fma(x, s, fma(y, t, n)))
        if step < SETTLED:
            settled = 1
            break
    return n, settled


# ---- the result of the search --------------------------------------------------------------------------------------
@kernel
def core_point(d1, side, k):
    """Returns point k of the simplex on one of the cores, in the frame of the first shape."""
    a = d1.simplex.first[k]
    if side == 1:
        a = a - d1.simplex.point[k]
    return a


@kernel
def shape_axis(d1, side):
    """Returns the z axis of a shape in the frame of the first."""
    z = Vec3(0.0, 0.0, 1.0)
    if side == 1:
        z = d1.convex.mat[0].columns[2]
    return z


@kernel
def has_both_rims(d1, side):
    """Returns whether points of the simplex lie on both rims of the cylinder."""
    z = shape_axis(d1, side)
    both, first = False, dot(core_point(d1, side, 0), z)
    for k in range(1, d1.simplex.count[0]):
        if fabs(dot(core_point(d1, side, k), z) - first) > d1.shapes.size[side][1]:
            both = True
    return both


@kernel
def edges_of(d1, side):
    """Returns (number, e, f): up to two edges between the corners of one shape in the simplex."""
    none = Vec3(zeros(3))
    n, e, f = 0, none, none
    kind = d1.shapes.type[side]
    if kind == CYLINDER:
        if has_both_rims(d1, side):
            n, e = 1, 2.0 * d1.shapes.size[side][1] * shape_axis(d1, side)
    elif kind != ELLIPSOID:
        i, j = d1.simplex.vertex[0, side], -2
        for k in range(1, d1.simplex.count[0]):
            v = d1.simplex.vertex[k, side]
            if v != i and v != j and n < 2:
                x = core_point(d1, side, k) - core_point(d1, side, 0)
                if n == 0:
                    n, e, j = 1, x, v
                else:
                    n, f = 2, x
    return n, e, f


@kernel
def across(e, f, n):
    """Returns (exists, unit vector orthogonal to e and f on the side of n)."""
    x = cross(e, f)
    good = dot(x, x) > 1e-8 * (dot(e, e) * dot(f, f))
    u, _ = normalize3(x)
    if dot(u, n) < 0.0:
        u = -u
    return good, u


@kernel
def depth_along(m1, d1, n):
    """Returns h(n)."""
    return dot(support_along(m1, d1, n), n)


@kernel
def try_method(m1, d1, n, settled, method, slack):
    """Accepts n if h is lower than the best so far, or as low as the search's; convex.way records the strategy."""
    h = depth_along(m1, d1, n)
    if d1.convex.way[0] == 0:
        slack = -slack
    if settled == 1 and h < -d1.convex.dist[0] - slack:
        d1.convex.dist[0] = -h
        d1.convex.normal[0] = n
        d1.convex.way[0] = method


# ---- the nearest points ----------------------------------------------------------------------------------------------
FREE, ALONG_FIRST, ALONG_SECOND, FACE_FIRST, FACE_SECOND, CROSSED = range(1, 7)


@kernel
def is_point(m1, d1, side, n):
    """Returns whether the core touches with a single point, not an edge, side or face; its support must be current."""
    kind, point = d1.shapes.type[side], True
    if side == 1:
        n = -n
    u = to_shape(d1, side, n)
    if kind == BOX:
        point = fabs(u[0]) > STRAIGHT and fabs(u[1]) > STRAIGHT and fabs(u[2]) > STRAIGHT
    elif kind == CAPSULE:
        point = fabs(u[2]) > STRAIGHT
    elif kind == CYLINDER:
        point = fabs(u[2]) > STRAIGHT and u[0] * u[0] + u[1] * u[1] > STRAIGHT * STRAIGHT
    elif kind == MESH:
        start, vertex = m1.hull_vertadr[d1.shapes.data[side]], d1.support.vertex[side]
        at = start + vertex
        for k in range(m1.hull_edgeadr[at], m1.hull_edgeadr[at] + m1.hull_edgenum[at]):
            e = m1.hull_vert[start + m1.hull_edge[k]] - m1.hull_vert[at]
            if dot(e, u) > -STRAIGHT * sqrt(dot(e, e)):
                point = False
    elif kind == PRISM:
        p = d1.shapes.prism[d1.support.vertex[side]]
        for k in range(6):
            e = d1.shapes.prism[k] - p
            if k != d1.support.vertex[side] and dot(e, u) > -STRAIGHT * sqrt(dot(e, e)):
                point = False
    return point


@kernel
def is_close(a, b, size):
    """Returns whether two points are equal within the precision of the search."""
    e = a - b
    return dot(e, e) < (CLOSE * size) * (CLOSE * size)


@kernel
def place_witness(m1, d1, e, f, size):
    """Computes the first core's nearest point for the normal that was found, exact if it is unique.

    If a core touches with a point, that is its support point; else the other core's support point is used.  Crossing
    edges touch where they cross.  Otherwise the search's point is moved into the plane that touches the first core.
    """
    n, h, a = d1.convex.normal[0], -d1.convex.dist[0], d1.convex.witness[0]
    p = support_along(m1, d1, n)
    first = d1.support.first[0]
    second = fma(h, n, first - p)
    a = fma(dot(first - a, n), n, a)
    if is_point(m1, d1, 0, n):
        a = first
    elif is_point(m1, d1, 1, n):
        a = second
    elif d1.convex.way[0] == CROSSED:
        # first + x e - (second + y f) = h n
        g = cross(f, n)
        c = fma(-dot(p, g) / dot(e, g), e, first)
        if is_close(c, a, size):
            a = c
    d1.convex.witness[0] = a


@kernel
def cap_holds(m1, d1, side, z):
    """Returns whether the normal may be the axis z; not if the other core has one nearest point, outside of the cap."""
    p = support_along(m1, d1, z)
    r, half = d1.shapes.size[side][0], d1.shapes.size[side][1]
    q = fma(-half, z, d1.support.first[0] - p)
    if side == 1:
        q = fma(half, z, d1.support.first[0]) - d1.convex.pos[0]
    across2 = dot(q, q) - dot(q, z) * dot(q, z)
    return across2 <= r * r or not is_point(m1, d1, 1 - side, z)


@stage
def polish(m1, d1):
    """Computes distance, normal and nearest point of two cores, one of them curved, to rounding precision.

    Reads:  shapes.*, convex.mat, convex.pos; initial values: simplex.*, convex.dist, convex.normal, convex.witness, in
            the frame of the first shape.
    Writes: convex.*, with convex.way 0 if no strategy was better than the initial values.
    Scratch: support.*.
    """
    d1.convex.way[0] = 0
    start = d1.convex.normal[0]
    size = sqrt(dot(d1.simplex.first[0], d1.simplex.first[0])) + fabs(d1.convex.dist[0])
    d1.convex.dist[0] = -depth_along(m1, d1, start)
    slack = BETTER * size
    ne, e, f = edges_of(d1, 0)
    ng, g, q = edges_of(d1, 1)

    # faces, then two edges
    if ne == 2:
        good, u = across(e, f, start)
        if good:
            try_method(m1, d1, u, settled=1, method=FACE_FIRST, slack=slack)
    if ng == 2:
        good, u = across(g, q, start)
        if good:
            try_method(m1, d1, u, settled=1, method=FACE_SECOND, slack=slack)
    for side in range(2):
        if d1.shapes.type[side] == CYLINDER:
            z = shape_axis(d1, side)
            along = dot(z, start)
            if along * along > 1.0 - NEAR_AXIS * NEAR_AXIS:
                if along < 0.0:
                    z = -z
                if cap_holds(m1, d1, side, z):
                    try_method(m1, d1, z, settled=1, method=FACE_FIRST + side, slack=slack)
    if ne > 0 and ng > 0:
        good, u = across(e, g, start)
        if good:
            try_method(m1, d1, u, settled=1, method=CROSSED, slack=slack)

    # an edge, then none
    if ne > 0:
        u, settled = descend(m1, d1, start, e, bound=1)
        try_method(m1, d1, u, settled, ALONG_FIRST, slack)
    if ng > 0:
        u, settled = descend(m1, d1, start, g, bound=1)
        try_method(m1, d1, u, settled, ALONG_SECOND, slack)
    u, settled = descend(m1, d1, start, Vec3(zeros(3)), bound=0)
    try_method(m1, d1, u, settled, FREE, slack)
    place_witness(m1, d1, e, g, size)
