"""Computes the penetration depth: the surface point of the difference of two shapes that is nearest to the origin.

A polytope of support points grows inside the difference C.  The plane of its face nearest to the origin is a lower
bound of the depth; the support of C along that face's normal n is an upper bound.  While the bounds differ, the support
point becomes a vertex, and the faces visible from it are replaced by a fan around it.

A face's distance is signed, so the polytope need not contain the origin: faces with the origin outside grow first.
Shapes that just touch, or are apart by rounding, need no special case.  The result is the upper bound, which is the
depth along an evaluated direction.  Moving the shapes apart by it along n leaves them touching exactly, for any
reason that ended the search (closed gap, exhausted buffer, a fan that would not close).

Vertex v of the polytope has a position epa.point[v] = a - b, its point epa.first[v] = a of the first core, and the
indices epa.vertex[v] of a and b.  Face f has corners epa.corner[f], counterclockwise from outside, and a plane
normal . x = epa.offset[f].  The search takes the face of least epa.key, which is the offset, GROWN for a removed face.
epa.best has the corners of the face whose upper bound is the least so far; epa.closed is 1 if the bounds agree in the
end, up to epa.gap times the size epa.size.
Edge e of face f goes from its corner e to the next one; epa.neighbour[f, e] = 4 g + h is the same edge as edge h of
face g.  FACES is the capacity of faces.
m1 and d1 are the model and the data of one world.
The core of a sphere is its centre, that of a capsule its segment; any other shape is its own core.
A facet is a part of the difference's surface that vertices of both cores span (facet.py): facet.kind, NO_FACET if none
is known; facet.apart, 1 if the cores are separated.
convex.mat and convex.pos are the second shape's pose in the frame of the first.  The simplex of the distance search
(gjk.py) has simplex.count points: simplex.point, simplex.first and simplex.vertex, as the polytope's vertices.

Imported kernels:

    support_along(m1, d1, u)         support point of the difference along u; writes support.* of both cores
    first_tetrahedron(m1, d1, size)  number of vertices of the tetrahedron, below 4 if the difference is flat
    close_tetrahedron(d1)            makes its four faces
    open_group(d1, face)             sets the keys of eight faces to GROWN if `face` is the first of them
    keep_vertex(d1, v)               stores the support point as vertex v
    replace_by_fan                   (number of faces ever made, of spare ones) after adding a vertex; (0, 0) on failure
    settle_on_facet                  sets facet.* by three points, and convex.* from it; NO_FACET if there is none
    squared_reach(d1, k)             largest squared length of simplex point k = a - b, of a and of b
    axis_across(e)                   coordinate axis along which the vector e is shortest
    plane_of_three(d1)               unit normal of the first three vertices

Source: van den Bergen, Collision Detection in Interactive 3D Environments, sec. 4.3.8 (signed distances, slivers and
the upper bound are Featherlane's).
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.facet import NO_FACET
from featherlane.engine.collision.convex.fan import replace_by_fan
from featherlane.engine.collision.convex.gjk import squared_reach
from featherlane.engine.collision.convex.polytope import (
    FACES,
    GROWN,
    axis_across,
    close_tetrahedron,
    first_tetrahedron,
    keep_vertex,
    normal_of_face,
    open_group,
    plane_of_three,
)
from featherlane.engine.collision.convex.separate_facet import settle_on_facet
from featherlane.engine.collision.convex.support import support_along

VERTICES = 256  # maximum number of vertices of a polytope
OUTSIDE = -1e-9  # a weight below this: the origin's projection is outside of the face
NEAR, LEVEL = 1e-7, 0.999999  # faces whose planes agree this closely are merged: mesh vertices are float32
LOOSE = 2  # steps of a continued search whose upper bound may come from a face that is far from the nearest one
EXACT = 1e-13  # gap at which the search of two polytopes ends


# ---- keys of faces ---------------------------------------------------------------------------------------------------
@kernel
def face_of_least_key(d1, nface):
    """Returns the face of least key, the first of equal ones.

    epa.key is compared in rows of eight: lane l finds the least key of the faces 8 row + l.  Then the eight lanes are
    compared.  nface: number of faces ever made, including removed ones.   Scratch: epa.least.
    """
    keys, least_keys = eights(d1.epa.key), eights(d1.epa.least)
    lane_least = keys[0]
    lane_row = 0.0
    for row in range(1, (nface + 7) // 8):
        lower = keys[row] < lane_least
        lane_least = where(lower, keys[row], lane_least)
        lane_row = where(lower, 1.0 * row, lane_row)
    # row 0: the least key of each lane; row 1: the row where it is
    least_keys[0], least_keys[1] = lane_least, lane_row
    # `where` selects the face, therefore a real value; a branch would be slow, because the lower lane is unpredictable
    face = 8.0 * d1.epa.least[1, 0]
    key = d1.epa.least[0, 0]
    for lane in unrolled(range(1, 8)):
        lane_face = 8.0 * d1.epa.least[1, lane] + lane
        lane_key = d1.epa.least[0, lane]
        face = where((lane_key < key) | ((lane_key == key) & (lane_face < face)), lane_face, face)
        key = fmin(lane_key, key)
    return whole(face)


@kernel
def count_faces_below(d1, nface, key):
    """Returns the number of faces, of the first nface faces, whose epa.key is below `key`.   Scratch: epa.least.

    Eight keys are compared at once, and the eight lanes are added at the end.
    """
    keys, sums = eights(d1.epa.key), eights(d1.epa.least)
    lane_count = 0.0
    for row in range((nface + 7) // 8):
        lane_count = lane_count + where(keys[row] < key, 1.0, 0.0)
    sums[0] = lane_count
    count = d1.epa.least[0, 0]
    for lane in unrolled(range(1, 8)):
        count = count + d1.epa.least[0, lane]
    return whole(count)


# ---- the result ------------------------------------------------------------------------------------------------------
@kernel
def weights_of_projection(d1, vertex1, vertex2, vertex3, normal, depth):
    """Returns the barycentric coordinates of the origin's projection on the plane of three vertices.

    normal, depth: the plane normal . x = depth.  The weight of a vertex is the signed area of the triangle that the
    projection forms with the two other vertices, divided by the sum of the three areas.
    """
    foot = depth * normal
    a, b, c = d1.epa.point[vertex1] - foot, d1.epa.point[vertex2] - foot, d1.epa.point[vertex3] - foot
    weight1, weight2, weight3 = dot(normal, cross(b, c)), dot(normal, cross(c, a)), dot(normal, cross(a, b))
    total = weight1 + weight2 + weight3
    if total > 0.0:
        scale = 1.0 / total
        return weight1 * scale, weight2 * scale, weight3 * scale
    # a face without area: its first corner
    return 1.0, 0.0, 0.0


@kernel
def deepest_of_first(d1, nface, normal, depth, near):
    """Returns the first core's deepest point: sum of weight_k first_k over the corners of the nearest face.

    The nearest face is that of epa.best.  If the origin's projection is outside of it, the projection may be on another
    face in the same plane; the face with the largest least weight is used.

    Args:
        nface: number of faces ever made, including removed ones.
        normal, depth: the plane of the nearest face, normal . x = depth.
        near: a face whose offset exceeds the depth by more is not in this plane [m].
    """
    vertex1, vertex2, vertex3 = d1.epa.best[0], d1.epa.best[1], d1.epa.best[2]
    weights = weights_of_projection(d1, vertex1, vertex2, vertex3, normal, depth)
    least_weight = fmin(fmin(weights[0], weights[1]), weights[2])
    if least_weight < OUTSIDE:
        for face in range(nface):
            # a removed face has the key GROWN
            in_plane = d1.epa.offset[face] <= depth + near and d1.epa.key[face] < 0.5 * GROWN
            # no further face is tested once one contains the projection: then no weight is negative
            if in_plane and least_weight < 0.0 and dot(normal_of_face(d1, face), normal) > LEVEL:
                corner1, corner2, corner3 = d1.epa.corner[face, 0], d1.epa.corner[face, 1], d1.epa.corner[face, 2]
                face_weights = weights_of_projection(d1, corner1, corner2, corner3, normal, depth)
                face_least = fmin(fmin(face_weights[0], face_weights[1]), face_weights[2])
                if face_least > least_weight:
                    vertex1, vertex2, vertex3 = corner1, corner2, corner3
                    weights, least_weight = face_weights, face_least

    # a projection outside of all these faces has negative weights: only the positive ones are used, so that the point
    # is on an edge or a corner of the face
    total = 0.0
    point = Vec3(zeros(3))
    for weight, vertex in ((weights[0], vertex1), (weights[1], vertex2), (weights[2], vertex3)):
        if weight > 0.0:
            total = total + weight
            point = fma(weight, d1.epa.first[vertex], point)
    return 1.0 / total * point


@kernel
def flat_normal(d1, nvertex):
    """Returns a unit vector along which the flat difference has no width: orthogonal to its first nvertex vertices."""
    normal = Vec3(1.0, 0.0, 0.0)
    if nvertex == 2:
        edge = d1.epa.point[1] - d1.epa.point[0]
        normal = cross(edge, axis_across(edge))
        normal = 1.0 / sqrt(dot(normal, normal)) * normal
    elif nvertex == 3:
        normal = plane_of_three(d1)
    return normal


@kernel
def store_best_as_simplex(d1):
    """Stores the nearest face, whose corners are epa.best, in simplex.* as the final simplex of the search."""
    for k in range(3):
        v = d1.epa.best[k]
        d1.simplex.point[k] = d1.epa.point[v]
        d1.simplex.first[k] = d1.epa.first[v]
        d1.simplex.vertex[k, 0], d1.simplex.vertex[k, 1] = d1.epa.vertex[v, 0], d1.epa.vertex[v, 1]
    d1.simplex.count[0] = 3


@kernel
def size_of_simplex(d1):
    """Returns the approximate extent of the shapes, for tolerances [m].

    It is the largest of the distance of their centres, and of |a - b|, |a| and |b| for all points a - b of the simplex.
    """
    size_squared = dot(d1.convex.pos[0], d1.convex.pos[0])
    for k in range(d1.simplex.count[0]):
        size_squared = fmax(squared_reach(d1, k), size_squared)
    return sqrt(size_squared)


@kernel
def settle_on_best(m1, d1, normal):
    """Derives the result from the facet at the face that ended the search, if its corners span a facet.

    normal: normal of this face, whose corners are epa.best.  Writes: facet.*, with NO_FACET without a facet; convex.*.
    If the bounds do not agree (epa.closed is 0), nothing is written.
    """
    if d1.epa.closed[0] == 1:
        vertex1, vertex2, vertex3 = d1.epa.best[0], d1.epa.best[1], d1.epa.best[2]
        first = d1.epa.vertex[vertex1, 0], d1.epa.vertex[vertex2, 0], d1.epa.vertex[vertex3, 0]
        second = d1.epa.vertex[vertex1, 1], d1.epa.vertex[vertex2, 1], d1.epa.vertex[vertex3, 1]
        settle_on_facet(m1, d1, first, second, normal)


@stage
def grow_polytope(m1, d1, steps, max_below):
    """Grows a polytope, by support points, until its nearest face is on the surface of the difference of the cores.

    Each step tests the nearest face: its plane is a lower bound of the depth, its support point an upper bound.  A face
    whose two bounds agree, up to the gap, is on the surface.  The best face is the one of the least upper bound; for
    two polytopes (`EXACT`), a face on the surface also replaces a best face that is not on it.  The search ends in
    these cases:

    - The lower bound of the nearest face agrees with the upper bound of the best face.  For two polytopes, the best
      face must also be on the surface.  epa.closed is 1.
    - No face is left, or a bound is NaN.  epa.closed is 1 if there is a best face and, for two polytopes, it is on the
      surface; else 0.
    - `steps` support points were used, or too many faces are below the upper bound (max_below).  epa.closed is 0.

    The condition of two polytopes is necessary because both bounds may come from different faces.  If the origin is
    near both planes, their normals can differ by the square root of the gap, and one face may be inside the difference.
    A facet is determined by the corners of one face, which must therefore be on the surface.

    Args:
        steps: maximum number of support points.
        max_below: after LOOSE steps, the search gives up if more faces than this are below the upper bound of the
            depth.  With FACES it never does.

    Reads:  shapes.*, convex.mat, convex.pos; epa.gap, epa.size; the polytope: epa.count, epa.point, epa.corner,
            epa.normal, epa.offset, epa.key, epa.neighbour, epa.mark.
    Writes: convex.dist, minus the depth [m]; convex.normal (3,), in the frame of the first shape; epa.best;
            epa.closed, whether the bounds agree; the polytope, with epa.first and epa.vertex of new vertices.
    Scratch: epa.*, support.*.
    """
    size = d1.epa.size[0]
    gap = d1.epa.gap[0] * size  # difference of bounds that agree [m]
    needs_surface_face = d1.epa.gap[0] == EXACT  # two polytopes
    nvertex, nface = d1.epa.count[0], d1.epa.count[1]
    nspare = 0
    # the best face: its support point gave the least upper bound of the depth so far
    depth, normal = GROWN, normal_of_face(d1, 0)
    best_is_on_surface = False
    closed = 0
    for step in range(steps):
        # the nearest face: the distance of its plane is a lower bound of the depth
        face = face_of_least_key(d1, nface)
        lower = d1.epa.key[face]
        face_normal = normal_of_face(d1, face)
        # the search ends if the bounds agree; for two polytopes, the best face must also be on the surface.
        # It also ends if all faces are removed: the least key is GROWN then.   `not <`: NaN ends the search
        may_end = best_is_on_surface or not needs_surface_face
        bounds_agree = not lower < depth - gap
        if bounds_agree and (may_end or not lower < 0.5 * GROWN):
            closed = 1 if may_end and depth < GROWN else 0
            break
        # the support point along the face's normal is an upper bound of the depth
        upper = dot(face_normal, support_along(m1, d1, face_normal))
        on_surface = not upper - lower > gap
        # for two polytopes, a face on the surface also replaces a best face that is not on the surface
        if upper < depth or (needs_surface_face and on_surface and not best_is_on_surface):
            depth, normal, best_is_on_surface = upper, face_normal, on_surface
            for corner in range(3):
                d1.epa.best[corner] = d1.epa.corner[face, corner]
        if step >= LOOSE and max_below < FACES and count_faces_below(d1, nface, depth - gap) > max_below:
            break
        # the support point becomes a vertex, with a fan of new faces around it
        has_grown = 0
        if not on_surface and nvertex < VERTICES:
            keep_vertex(d1, nvertex)
            made, spare = replace_by_fan(d1, face, nvertex, nface, nspare, size)
            if made > 0:
                has_grown = 1
                nface, nspare = made, spare
                nvertex = nvertex + 1
        # a face that cannot grow gets its upper bound as key, so that faces below this bound are tested before it
        if has_grown == 0:
            d1.epa.key[face] = upper
    d1.epa.count[0], d1.epa.count[1], d1.epa.closed[0] = nvertex, nface, closed
    d1.convex.dist[0] = -depth
    d1.convex.normal[0] = normal


@stage
def epa(m1, d1):
    """Computes the depth of the origin in the difference of the two cores, which overlap or touch.

    Reads:  shapes.*, convex.mat, convex.pos, simplex.*; epa.gap, allowed difference of the bounds relative to the size.
    Writes: convex.dist, minus the depth [m]; convex.normal (3,); convex.witness[0], the deepest point of the first
            core [m]; all in the frame of the first shape; simplex.*, the corners of the nearest face; facet.*, the
            facet, with facet.vertex (2, 3).
    Scratch: epa.*, support.*.
    Cost:   one support point and about 60 ns per step, up to VERTICES steps.
    """
    size = size_of_simplex(d1)
    d1.facet.kind[0], d1.facet.apart[0] = NO_FACET, 0
    nvertex = first_tetrahedron(m1, d1, size)
    if nvertex < 4:
        # a flat difference: its normal is the direction of the depth
        normal = flat_normal(d1, nvertex)
        depth = dot(support_along(m1, d1, normal), normal)
        point = d1.support.first[0]  # written by support_along
    else:
        open_group(d1, face=0)  # writes epa.key
        close_tetrahedron(d1)
        d1.epa.count[0], d1.epa.count[1] = 4, 4
        d1.epa.size[0] = size
        grow_polytope(m1, d1, steps=2 * VERTICES, max_below=FACES)  # writes convex.dist, convex.normal, epa.best
        depth = -d1.convex.dist[0]
        normal = d1.convex.normal[0]
        point = deepest_of_first(d1, d1.epa.count[1], normal, depth, NEAR * size)
        store_best_as_simplex(d1)
        settle_on_best(m1, d1, normal)  # writes facet.kind and, for a facet, convex.*
    if d1.facet.kind[0] == NO_FACET:
        d1.convex.dist[0] = -depth
        d1.convex.normal[0] = normal
        d1.convex.witness[0] = point
