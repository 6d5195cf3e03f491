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
All vectors are in the frame of the first shape.  The search's result is convex.dist, convex.normal and
convex.witness[0], and the simplex: simplex.first[k] on the first core, simplex.point[k] = a - b, simplex.vertex[k].
convex.strategy is the strategy that gave the lowest h (FREE, ALONG_FIRST, ...), 0 if none was better than the search.
m1 and d1 are the model and the data of one world.  The core of a sphere is its centre, that of a capsule its segment;
any other shape is its own core.
convex.mat and convex.pos are the second shape's pose in the frame of the first.  support.first is the first core's
support point, support.vertex[side] the index of each core's.
shapes.*[side] has the type and the size of each shape, and in shapes.data the index of its mesh.
The hull of a mesh has the vertices hull_vert[hull_vertadr[mesh]] and following; hull_edge lists the neighbours of a
vertex, from hull_edgeadr on, numbered within their hull.
PRISM is a type of shape: a prism with the vertices shapes.prism.
The simplex has simplex.count points.  D is the diagonal matrix of an ellipsoid's sizes.

Imported kernels:

    support_along(m1, d1, u)  support point of the difference along u; writes support.* of both cores

Source: the curvature of an ellipsoid's support function is that of |D n|; the method is Featherlane's.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.support import PRISM, scaled_by_sizes, support_along

STEPS = 8
SETTLED = 1e-10  # a step below this ends the iteration
STEEPEST = 0.1  # a step above this leaves the neighbourhood of the search's result
NEAR_X_AXIS = 0.6  # |n_x| above which x is too close to n to define a tangent
ON_AXIS2 = 1e-12  # squared sine between a direction and a cylinder's axis below which a rim has no curvature
FLAT2 = 1e-8  # squared sine between two edges below which they span no plane
NEAR_AXIS = 0.05  # sine of the angle between normal and cylinder axis below which a cap may touch
ALIGNED = 1e-7  # sine below which a normal is parallel or orthogonal to an axis or an edge
CLOSE = 0.02  # maximum error of the search's nearest points, relative to the size
BETTER = 1e-14  # margin, relative to the size, by which a less constrained strategy must be lower


# ---- curvature -------------------------------------------------------------------------------------------------------
@kernel
def to_shape(d1, side, v):
    """Returns a vector in the frame of shape `side`; v is given in the frame of the first shape."""
    return v if side == 0 else d1.convex.mat[0].T @ v


@kernel
def core_curvature(d1, side, n, e1, e2):
    """Returns (e1 . ds/dn e1, e1 . ds/dn e2, e2 . ds/dn e2) of one core's support point s(n): radii of curvature [m].

    e1, e2: unit tangents at n.  A polytope's support point is constant, so its rates are 0.
    """
    kind, size = d1.shapes.type[side], d1.shapes.size[side]
    rate_11, rate_12, rate_22 = zeros(3)
    if kind in (ELLIPSOID, CYLINDER):
        # the normal and the tangents in the shape's frame
        u, e1, e2 = to_shape(d1, side, n), to_shape(d1, side, e1), to_shape(d1, side, e2)
        if kind == ELLIPSOID:
            # e1 . ds/dn e2 = (D e1) . (D e2) / |D u| for the parts of D e1 and D e2 that are orthogonal to D u
            u, norm = normalize3(scaled_by_sizes(size, u))
            e1, e2 = scaled_by_sizes(size, e1), scaled_by_sizes(size, e2)
            e1, e2 = fma(-dot(u, e1), u, e1), fma(-dot(u, e2), u, e2)
            rate_11, rate_12, rate_22 = dot(e1, e1) / norm, dot(e1, e2) / norm, dot(e2, e2) / norm
        else:
            # a rim of radius r: e1 . ds/dn e2 = r / sine^3 (u x e1)_z (u x e2)_z; the sine is that of u and the axis z
            sine_squared = u[0] * u[0] + u[1] * u[1]
            if sine_squared > ON_AXIS2:
                curvature = size[0] / (sine_squared * sqrt(sine_squared))
                # (u x e1)_z and (u x e2)_z
                along_1, along_2 = u[0] * e1[1] - u[1] * e1[0], u[0] * e2[1] - u[1] * e2[0]
                rate_11, rate_12 = curvature * along_1 * along_1, curvature * along_1 * along_2
                rate_22 = curvature * along_2 * along_2
    return rate_11, rate_12, rate_22


# ---- descent -------------------------------------------------------------------------------------------------------
@kernel
def descend(m1, d1, n, edge, is_bound):
    """Returns (n, settled): the minimum of h near the unit vector n by Newton's method, and whether it converged.

    On the tangents e1 and e2 at n, the gradient is (s . e1, s . e2) and the Hessian ds/dn - h, s being the support
    point.  The step solves Hessian step = -gradient; along an edge, only on the tangent e2 = edge x n.

    Args:
        edge: vector along an edge; not used if is_bound is 0.
        is_bound: 1 if n stays orthogonal to the edge, 0 if n is unconstrained.

    settled: 1 if a step was smaller than SETTLED, else 0.
    """
    settled = 0
    if is_bound == 1:
        # starts orthogonal to the edge, and then turns about it only
        n, _ = normalize3(fma(-dot(n, edge) / dot(edge, edge), edge, n))
    for _ in range(STEPS):
        if is_bound == 1:
            e2, _ = normalize3(cross(edge, n))
        else:
            axis = Vec3(0.0, 1.0, 0.0) if fabs(n[0]) > NEAR_X_AXIS else Vec3(1.0, 0.0, 0.0)
            e2, _ = normalize3(cross(n, axis))
        e1 = cross(e2, n)
        support = support_along(m1, d1, n)
        h = dot(support, n)
        rates1, rates2 = core_curvature(d1, 0, n, e1, e2), core_curvature(d1, 1, n, e1, e2)
        hess_11 = rates1[0] + rates2[0] - h
        hess_12 = rates1[1] + rates2[1]
        hess_22 = rates1[2] + rates2[2] - h
        grad_1, grad_2 = dot(support, e1), dot(support, e2)
        # along an edge, the Hessian is the 1 x 1 matrix hess_22
        det = hess_22
        step_1, step_2 = 0.0, 0.0
        if is_bound == 0:
            det = hess_11 * hess_22 - hess_12 * hess_12
        # the Hessian is not positive definite: there is no minimum nearby
        if not (hess_22 > 0.0 and det > 0.0):
            break
        # minus the inverse Hessian times the gradient
        if is_bound == 0:
            step_1, step_2 = (hess_12 * grad_2 - hess_22 * grad_1) / det, (hess_12 * grad_1 - hess_11 * grad_2) / det
        else:
            step_2 = -grad_2 / hess_22
        step = fabs(step_1) + fabs(step_2)
        if not step < STEEPEST:
            break
        n, _ = normalize3(fma(step_1, e1, fma(step_2, e2, n)))
        if step < SETTLED:
            settled = 1
            break
    return n, settled


# ---- the result of the search --------------------------------------------------------------------------------------
@kernel
def core_point(d1, side, k):
    """Returns the point of one core that belongs to simplex point k = a - b: a, or b = a - (a - b)."""
    return d1.simplex.first[k] if side == 0 else d1.simplex.first[k] - d1.simplex.point[k]


@kernel
def shape_axis(d1, side):
    """Returns the z axis of shape `side` in the frame of the first shape."""
    return Vec3(0.0, 0.0, 1.0) if side == 0 else d1.convex.mat[0].columns[2]


@kernel
def has_both_rims(d1, side):
    """Returns whether the simplex has points on both rims of the cylinder `side`: heights more than half apart."""
    axis = shape_axis(d1, side)
    first_height = dot(core_point(d1, side, 0), axis)
    for k in range(1, d1.simplex.count[0]):
        if fabs(dot(core_point(d1, side, k), axis) - first_height) > d1.shapes.size[side][1]:
            return True
    return False


@kernel
def simplex_edges(d1, side):
    """Returns (count, edge1, edge2): up to two edges between the simplex's vertices of one core, zero vectors beyond.

    On a cylinder with points on both rims, the edge is the line of the side between the rims.
    """
    none = Vec3(zeros(3))
    count = 0
    edge1, edge2 = none, none
    kind = d1.shapes.type[side]
    if kind == CYLINDER:
        if has_both_rims(d1, side):
            count = 1
            edge1 = 2.0 * d1.shapes.size[side][1] * shape_axis(d1, side)
    elif kind != ELLIPSOID:
        vertex1 = d1.simplex.vertex[0, side]
        vertex2 = -2  # no vertex has this index
        for k in range(1, d1.simplex.count[0]):
            vertex = d1.simplex.vertex[k, side]
            if vertex != vertex1 and vertex != vertex2 and count < 2:
                edge = core_point(d1, side, k) - core_point(d1, side, 0)
                if count == 0:
                    count = 1
                    edge1, vertex2 = edge, vertex
                else:
                    count = 2
                    edge2 = edge
    return count, edge1, edge2


@kernel
def normal_of_edges(edge1, edge2, n):
    """Returns (exists, normal): the unit vector orthogonal to two edges with normal . n >= 0.

    exists: False for parallel edges, whose normal is undefined.
    """
    product = cross(edge1, edge2)
    exists = dot(product, product) > FLAT2 * (dot(edge1, edge1) * dot(edge2, edge2))
    unit, _ = normalize3(product)
    if dot(unit, n) < 0.0:
        unit = -unit
    return exists, unit


@kernel
def support_height(m1, d1, n):
    """Returns h(n) = n . s(n)."""
    return dot(support_along(m1, d1, n), n)


@kernel
def try_strategy(m1, d1, n, settled, strategy, slack):
    """Stores n as the result if its h is low enough.

    The first strategy that is accepted may exceed the search's h by slack, because it is exact; a later one, which is
    less constrained, must be below the best h by slack.

    Args:
        settled: 1 if the strategy converged.
        strategy: number of the strategy, stored in convex.strategy.
        slack: tolerance of h [m], not negative.

    Reads and writes: convex.dist, which is -h; convex.normal, convex.strategy.
    """
    h = support_height(m1, d1, n)
    if d1.convex.strategy[0] == 0:  # no strategy is accepted yet: h may exceed the search's
        slack = -slack
    if settled == 1 and h < -d1.convex.dist[0] - slack:
        d1.convex.dist[0] = -h
        d1.convex.normal[0] = n
        d1.convex.strategy[0] = strategy


# ---- the nearest points ----------------------------------------------------------------------------------------------
# strategies: no constraint, along an edge of one core, a face of one core, orthogonal to an edge of each
FREE, ALONG_FIRST, ALONG_SECOND, FACE_FIRST, FACE_SECOND, CROSSED = range(1, 7)


@kernel
def is_point(m1, d1, side, n):
    """Returns whether a core touches with a single point, not with an edge, a line of its side, or a face.

    n: normal from the first to the second core.  Reads: support.vertex, of the support point along n.
    """
    kind = d1.shapes.type[side]
    direction = to_shape(d1, side, n if side == 0 else -n)
    x, y, z = direction
    if kind == BOX:
        return fabs(x) > ALIGNED and fabs(y) > ALIGNED and fabs(z) > ALIGNED
    if kind == CAPSULE:
        return fabs(z) > ALIGNED
    if kind == CYLINDER:
        return fabs(z) > ALIGNED and x * x + y * y > ALIGNED * ALIGNED
    if kind == MESH:
        first, vertex = m1.hull_vertadr[d1.shapes.data[side]], d1.support.vertex[side]
        hull_vertex = first + vertex
        # all edges from the support point must descend from the touching plane
        for k in range(m1.hull_edgeadr[hull_vertex], m1.hull_edgeadr[hull_vertex] + m1.hull_edgenum[hull_vertex]):
            edge = m1.hull_vert[first + m1.hull_edge[k]] - m1.hull_vert[hull_vertex]
            if dot(edge, direction) > -ALIGNED * sqrt(dot(edge, edge)):
                return False
    elif kind == PRISM:
        position = d1.shapes.prism[d1.support.vertex[side]]
        for k in range(6):
            edge = d1.shapes.prism[k] - position
            if k != d1.support.vertex[side] and dot(edge, direction) > -ALIGNED * sqrt(dot(edge, edge)):
                return False
    return True


@kernel
def store_nearest_point(m1, d1, edge1, edge2, size):
    """Stores in convex.witness[0] the first core's nearest point for the normal that was found, exact if it is unique.

    The point depends on how the cores touch:

    - The first core touches with a single point: this point, its support point.
    - Only the second core does: that core's support point, moved along the normal to the first core.
    - Two crossing edges touch (CROSSED): the crossing, if it is within CLOSE * size of the next case's point.
    - Otherwise: the search's point, projected on the plane that touches the first core.

    edge1, edge2: the edges of the strategy CROSSED, one of each core; size: extent of the shapes [m].
    """
    n = d1.convex.normal[0]
    h = -d1.convex.dist[0]
    point = d1.convex.witness[0]
    support = support_along(m1, d1, n)
    first = d1.support.first[0]
    # support = a - b: the second core's support point b is first - support, and b + h n is in the first core's plane
    second = fma(h, n, first - support)
    # the search's point, projected on the plane n . x = n . first
    point = fma(dot(first - point, n), n, point)
    if is_point(m1, d1, 0, n):
        point = first
    elif is_point(m1, d1, 1, n):
        point = second
    elif d1.convex.strategy[0] == CROSSED:
        # crossing = first + x edge1; x solves first + x edge1 - (second + y edge2) = h n, times edge2 x n
        product = cross(edge2, n)
        crossing = fma(-dot(support, product) / dot(edge1, product), edge1, first)
        error = crossing - point
        if dot(error, error) < (CLOSE * size) * (CLOSE * size):  # equal within the precision of the search
            point = crossing
    d1.convex.witness[0] = point


@kernel
def may_touch_cap(m1, d1, side, z):
    """Returns whether the cylinder `side` may touch with its cap, so that the normal is its axis z.

    It may not if the other core has a single nearest point along z, which is outside of the cap.
    z: unit vector along the axis, from the first core to the second.
    """
    support = support_along(m1, d1, z)
    radius, half = d1.shapes.size[side][0], d1.shapes.size[side][1]
    # other_point: the other core's support point, relative to the centre of the cap, which faces the other core.
    # A cap of the first core has its centre at half z; the other core's point is b = a - (a - b)
    other_point = fma(-half, z, d1.support.first[0] - support)
    if side == 1:
        # a cap of the second core has its centre at pos - half z; the other core's point is a
        other_point = fma(half, z, d1.support.first[0]) - d1.convex.pos[0]
    # squared distance from the axis
    distance_squared = dot(other_point, other_point) - dot(other_point, z) * dot(other_point, z)
    return distance_squared <= radius * radius or not is_point(m1, d1, 1 - side, z)


@stage
def refine_normal(m1, d1):
    """Computes distance, normal and nearest point of two cores, one of them curved, to rounding precision.

    Reads:  shapes.*, convex.mat, convex.pos; initial values: simplex.*, convex.dist, convex.normal, convex.witness, in
            the frame of the first shape.
    Writes: convex.*, with convex.strategy 0 if no strategy was better than the initial values.
    Scratch: support.*.
    """
    d1.convex.strategy[0] = 0
    start = d1.convex.normal[0]
    size = sqrt(dot(d1.simplex.first[0], d1.simplex.first[0])) + fabs(d1.convex.dist[0])
    d1.convex.dist[0] = -support_height(m1, d1, start)
    slack = BETTER * size
    count1, edge1, second_edge1 = simplex_edges(d1, side=0)
    count2, edge2, second_edge2 = simplex_edges(d1, side=1)

    # strategies that fix the normal: a face of one core, spanned by two of its edges; a cap; an edge of each core
    if count1 == 2:
        exists, normal = normal_of_edges(edge1, second_edge1, start)
        if exists:
            try_strategy(m1, d1, normal, settled=1, strategy=FACE_FIRST, slack=slack)
    if count2 == 2:
        exists, normal = normal_of_edges(edge2, second_edge2, start)
        if exists:
            try_strategy(m1, d1, normal, settled=1, strategy=FACE_SECOND, slack=slack)
    for side in range(2):
        if d1.shapes.type[side] == CYLINDER:
            z = shape_axis(d1, side)
            along = dot(z, start)
            # the sine of the angle between normal and axis is below NEAR_AXIS
            if along * along > 1.0 - NEAR_AXIS * NEAR_AXIS:
                if along < 0.0:
                    z = -z
                if may_touch_cap(m1, d1, side, z):
                    # FACE_FIRST + 1 is FACE_SECOND; the axis needs no iteration, so it counts as converged
                    try_strategy(m1, d1, z, settled=1, strategy=FACE_FIRST + side, slack=slack)
    if count1 > 0 and count2 > 0:
        exists, normal = normal_of_edges(edge1, edge2, start)
        if exists:
            try_strategy(m1, d1, normal, settled=1, strategy=CROSSED, slack=slack)

    # strategies by Newton's method: orthogonal to an edge of one core, then unconstrained
    if count1 > 0:
        normal, settled = descend(m1, d1, start, edge1, is_bound=1)
        try_strategy(m1, d1, normal, settled, ALONG_FIRST, slack)
    if count2 > 0:
        normal, settled = descend(m1, d1, start, edge2, is_bound=1)
        try_strategy(m1, d1, normal, settled, ALONG_SECOND, slack)
    normal, settled = descend(m1, d1, start, Vec3(zeros(3)), is_bound=0)
    try_strategy(m1, d1, normal, settled, FREE, slack)
    store_nearest_point(m1, d1, edge1, edge2, size)
