"""Computes the distance of two convex shapes: the point of their difference that is nearest to the origin.

A simplex of support points moves towards the origin.  Each step adds the support point w along -v, v being the current
nearest point, and keeps the smallest face of the simplex that contains the new nearest point.  v . w / |v| is a lower
bound of the distance: the search ends when it exceeds the limit, or when it meets the upper bound |v|.

The nearest point of a triangle is computed along its normal, that of an edge orthogonal to it, not as a weighted
sum of corners.  So the direction stays exact for distances far below the shapes' size.  Every face of the simplex with
the origin possibly outside is tested, so a sliver with signs from rounding causes no error.
The simplex has simplex.count points: simplex.point[k] = a - b of the difference, simplex.first[k] = a on the first
core, simplex.vertex[k] the vertex indices of a and b, simplex.weight[k] the barycentric coordinates of the nearest
point.  NO_VERTEX is the index of a point on a curved shape.
m1 and d1 are the model and the data of one world.  The core of a sphere is its centre, that of a capsule its
segment; any other shape is its own core.

Imported kernels:

    support_along(m1, d1, u)  support point of the difference along u; writes support.* of both cores

Source: Gilbert, Johnson, Keerthi 1988; van den Bergen, Collision Detection in Interactive 3D Environments, sec. 4.3;
Montanari et al., "Improving the GJK algorithm", 2017 (the nearest point by cases, not determinants, is Featherlane's).
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.support import NO_VERTEX, support_along

APART, FAR, OVERLAP = 0, 1, 2  # ends of the search: a nearest point within the limit, beyond it, or the origin
ITERATIONS = 128
TOUCH = 1e-9  # shapes nearer than this, relative to their size, touch: the normal is that of the polytope's face
SLIVER = 1e-30  # squared area, relative to the longest edge's fourth power, below which a triangle is only its edges
LEAN = 1e-20  # squared sine between an edge and a face below which a tetrahedron is flat
ROUNDING = 1e-15  # relative error of a product of two points
HUGE = 1e300  # above any squared distance


# ---- nearest point of a simplex ------------------------------------------------------------------------------------
@kernel
def nearest_on_edge(a, b):
    """Returns (squared distance, v, (weight of a, weight of b)): the edge's point v nearest to the origin.

    v = a + t (b - a), t = -(a . (b - a)) / |b - a|^2, clipped to the edge.
    """
    edge = b - a
    # t is along / length_squared
    length_squared = dot(edge, edge)
    along = -dot(a, edge)
    if along <= 0.0:
        nearest, weight_a, weight_b = a, 1.0, 0.0
    elif along >= length_squared:
        nearest, weight_a, weight_b = b, 0.0, 1.0
    else:
        weight_b = along / length_squared
        nearest = fma(weight_b, edge, a)
        weight_a = 1.0 - weight_b
    return dot(nearest, nearest), nearest, (weight_a, weight_b)


@kernel
def nearest_on_triangle(a, b, c):
    """Returns (squared distance, v, (wa, wb, wc)): the triangle's point v = wa a + wb b + wc c nearest to the origin.

    Inside, v = (n . a) / |n|^2 n with the normal n = (b - a) x (c - a); the weights are the areas of the sub-triangles
    that the origin's projection forms with the opposite edges.
    """
    ab, ac, bc = b - a, c - a, c - b
    normal = cross(ab, ac)
    normal_squared = dot(normal, normal)
    size_squared = dot(ab, ab) + dot(ac, ac)

    # signed areas of the sub-triangles opposite to the corners, times 2 |n|
    area_a = dot(normal, cross(b, bc))
    area_b = -dot(normal, cross(c, ac))
    area_c = dot(normal, cross(a, ab))
    is_sliver = normal_squared <= SLIVER * (size_squared * size_squared)
    least_squared = HUGE
    nearest = a
    wa, wb, wc = zeros(3)
    if not is_sliver and area_a > 0.0 and area_b > 0.0 and area_c > 0.0:
        nearest = dot(normal, a) / normal_squared * normal
        scale = 1.0 / (area_a + area_b + area_c)
        least_squared = dot(nearest, nearest)
        wa, wb, wc = area_a * scale, area_b * scale, area_c * scale
    else:
        # tests all three edges, because the signs of a sliver's areas are rounding
        squared, point, weights = nearest_on_edge(b, c)
        if squared < least_squared:
            least_squared, nearest = squared, point
            wa, (wb, wc) = 0.0, weights
        squared, point, weights = nearest_on_edge(a, c)
        if squared < least_squared:
            least_squared, nearest = squared, point
            wb, (wa, wc) = 0.0, weights
        squared, point, weights = nearest_on_edge(a, b)
        if squared < least_squared:
            least_squared, nearest = squared, point
            wc, (wa, wb) = 0.0, weights
    return least_squared, nearest, (wa, wb, wc)


@kernel
def is_across_triangle(a, b, c, d):
    """Returns whether the plane of triangle abc separates the origin from d, or the tetrahedron abcd is too flat."""
    ab, ac, ad = b - a, c - a, d - a
    normal = cross(ab, ac)
    # heights above the triangle's plane, times |normal|
    height_of_d = dot(normal, ad)
    height_of_origin = -dot(normal, a)
    are_opposite = height_of_d * height_of_origin <= 0.0
    is_flat = height_of_d * height_of_d <= LEAN * dot(normal, normal) * dot(ad, ad)
    return are_opposite | is_flat


@kernel
def set_weights(d1, wa, wb, wc, wd):
    """Stores the weights of the simplex's four points in simplex.weight."""
    d1.simplex.weight[0], d1.simplex.weight[1], d1.simplex.weight[2], d1.simplex.weight[3] = wa, wb, wc, wd


@kernel
def nearest_on_tetrahedron(d1, a, b, c, d):
    """Returns (squared distance, v): the point of tetrahedron abcd nearest to the origin; writes simplex.weight.

    It is the nearest point of the faces that separate the origin from the tetrahedron.  Without such a face, the origin
    is inside, and v is the origin.
    """
    least_squared = HUGE
    nearest = a
    is_outside = 0
    # p, q, r: a face; s: the corner opposite to the face, and its index
    for p, q, r, s, opposite in ((a, b, c, d, 3), (a, b, d, c, 2), (a, c, d, b, 1), (b, c, d, a, 0)):
        if is_across_triangle(p, q, r, s):
            is_outside = 1
            squared, point, weights = nearest_on_triangle(p, q, r)
            if squared < least_squared:
                least_squared, nearest = squared, point
                d1.simplex.weight[opposite] = 0.0
                for k in unrolled(range(3)):
                    d1.simplex.weight[k if k < opposite else k + 1] = weights[k]
    if is_outside == 0:
        least_squared = 0.0
        nearest = Vec3(zeros(3))
        # any positive weights: `nearest_on_simplex` then keeps all four points
        set_weights(d1, 0.25, 0.25, 0.25, 0.25)
    return least_squared, nearest


@stage
def nearest_on_simplex(m1, d1):
    """Computes the simplex's point nearest to the origin, into `gjk.nearest`; keeps only the vertices that span it.

    Reads:  simplex.*.   Writes: gjk.nearest (3,) [m], simplex.*.
    """
    count = d1.simplex.count[0]
    a = d1.simplex.point[0]
    nearest = a
    if count == 1:
        set_weights(d1, 1.0, 0.0, 0.0, 0.0)
    elif count == 2:
        _, nearest, weights = nearest_on_edge(a, d1.simplex.point[1])
        set_weights(d1, weights[0], weights[1], 0.0, 0.0)
    elif count == 3:
        _, nearest, weights3 = nearest_on_triangle(a, d1.simplex.point[1], d1.simplex.point[2])
        set_weights(d1, weights3[0], weights3[1], weights3[2], 0.0)
    else:
        _, nearest = nearest_on_tetrahedron(d1, a, d1.simplex.point[1], d1.simplex.point[2], d1.simplex.point[3])
    d1.gjk.nearest[0] = nearest
    # points with weight 0 do not span the nearest point: they are removed
    kept = 0
    for k in range(count):
        if d1.simplex.weight[k] > 0.0:
            d1.simplex.point[kept] = d1.simplex.point[k]
            d1.simplex.first[kept] = d1.simplex.first[k]
            d1.simplex.vertex[kept, 0] = d1.simplex.vertex[k, 0]
            d1.simplex.vertex[kept, 1] = d1.simplex.vertex[k, 1]
            d1.simplex.weight[kept] = d1.simplex.weight[k]
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
def squared_reach(d1, k):
    """Returns the largest of |a - b|^2, |a|^2 and |b|^2, a - b being point k of the simplex [m^2]."""
    point, on_first = d1.simplex.point[k], d1.simplex.first[k]
    on_second = on_first - point
    return fmax(fmax(dot(point, point), dot(on_first, on_first)), dot(on_second, on_second))


@kernel
def is_known(d1):
    """Returns whether the latest support point is already in the simplex: by its vertices, or by its position."""
    vertex1, vertex2 = d1.support.vertex[0], d1.support.vertex[1]
    for k in range(d1.simplex.count[0]):
        # a point of a curved shape has no index, so only its position identifies it
        same_vertices = d1.simplex.vertex[k, 0] == vertex1 and d1.simplex.vertex[k, 1] == vertex2
        difference = d1.simplex.point[k] - d1.support.point[0]
        if (same_vertices and min(vertex1, vertex2) != NO_VERTEX) or dot(difference, difference) == 0.0:
            return True
    return False


@stage
def gjk(m1, d1):
    """Finds where the difference of the two cores is nearest to the origin.

    Reads:  shapes.*, convex.mat, convex.pos; gjk.reach, the search limit; gjk.gap, the allowed difference of |v|^2
            and v . w at the end, relative to |v|^2; support.dir, the initial direction.
    Writes: gjk.*; gjk.nearest (3,) [m], the nearest point v; gjk.state: FAR if the distance exceeds gjk.reach, OVERLAP
            if the origin is inside, or nearer than TOUCH sizes, else APART; simplex.*, the points that span v, with
            weights.
    Scratch: support.*.
    Frame:  the first shape's.      Cost: one support point and about 50 ns per step, up to ITERATIONS steps.
    """
    d1.simplex.count[0] = 0
    nearest = support_along(m1, d1, d1.support.dir[0])
    add_support(d1)
    d1.simplex.weight[0] = 1.0
    d1.gjk.nearest[0] = nearest
    # |v|^2, the squared upper bound of the distance
    distance_squared = dot(nearest, nearest)
    reach = d1.gjk.reach[0]
    # the squared size of the shapes, for tolerances; it includes the distance of their centres, as a point has no size
    size_squared = fmax(squared_reach(d1, 0), dot(d1.convex.pos[0], d1.convex.pos[0]))
    state = APART
    for _ in range(ITERATIONS):
        if distance_squared <= TOUCH * TOUCH * size_squared:
            state = OVERLAP
            break
        support = support_along(m1, d1, -nearest)
        support_squared = dot(support, support)
        v_dot_w = dot(nearest, support)
        size_squared = fmax(support_squared, size_squared)
        # the distance is at least v . w / |v|
        if v_dot_w > 0.0 and v_dot_w * v_dot_w > distance_squared * (reach * reach):
            state = FAR
            break
        # ends if |v|^2 and v . w agree up to the gap and rounding, or if the support point adds nothing
        difference = distance_squared - v_dot_w
        tolerance = d1.gjk.gap[0] * distance_squared + ROUNDING * sqrt(distance_squared * size_squared)
        if difference <= tolerance or is_known(d1):
            break
        add_support(d1)
        nearest_on_simplex(m1, d1)  # writes gjk.nearest, simplex.*
        nearest = d1.gjk.nearest[0]
        last_squared = distance_squared
        distance_squared = dot(nearest, nearest)
        # all four points are kept: the origin is inside the tetrahedron
        if d1.simplex.count[0] == 4:
            state = OVERLAP
            break
        # only rounding prevents progress
        if not distance_squared < last_squared:
            break
    d1.gjk.state[0] = state
