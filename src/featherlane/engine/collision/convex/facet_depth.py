"""Computes depth, normal and nearest points of two polytopes from the vertices of the facet nearest to the origin.

The facet of the difference of the cores is given by facet.kind and facet.vertex (facet.py).  Its *foot* is the
projection of the origin on its plane.  The result is valid if the foot is inside the facet: convex.dist, minus the
depth; convex.normal; convex.witness[0], the first core's deepest point; all in the frame of the first shape.
Kernels measure_* store this result, and return foot_margin: a lower bound of the foot's distance from the facet's
border [m].  It is 0 if the foot is outside or near to the border; then they store nothing.  plane_of_face is the
(normal, offset) of a face, error_and_drop the largest distance of its corners from the plane, and the height by which
all other vertices are below it.
convex.mat R and convex.pos p are the second shape's pose in this frame: a point x of the second shape is at R x + p.
m1 and d1 are the model and the data of one world.  The core of a sphere is its centre, that of a capsule its segment;
any other shape is its own core.  facet.apart is 1 if the cores are separated.
`side` is 0 for the first shape, 1 for the second.  `size` is the approximate extent of the shapes [m] (`size_of_pair`).
shapes.*[side] has the type, the size (three values) and the pose of each shape, and in shapes.data the index of its
mesh.
The hull of a mesh has the vertices hull_vert[hull_vertadr[mesh]] and following.  hull_outline lists the corners of a
face's outline, from hull_outlineadr on, counterclockwise and numbered within their hull.
FIRST, CROSSING, FACE_FIRST, ... are the kinds of facets in the table of facet.py.  FLAT is the largest error of a flat
face relative to its drop.
WELL_INSIDE is a distance from a face's border, relative to the size; NO_FACET is the kind without a facet.

Imported kernels:

    vertex_of(m1, d1, side, vertex)        position of a core's vertex, in the frame of its shape
    vertex_difference(m1, d1, i, j)        vertex i of the first core less vertex j of the second, in the first's frame
    has_face(d1, side)                     whether the facet contains a face of this core
    point_in_frame, vector_in_frame        a point, a vector of the other shape's frame in that of the shape of `side`
    core_limit(d1), core_radius(d1, side)  distance of the cores up to which there is a contact; radius around a core
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.facet import (
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
from featherlane.engine.collision.convex.support import core_limit, core_radius, point_in_frame, vector_in_frame
from featherlane.engine.model.hull import FLAT

INSIDE = 1e-4  # relative to the size: as WELL_INSIDE, for a triangle or a parallelogram
PARALLEL = 1e-6  # limit of the difference of parallel normals, and of the sine between edge and face: float32 poses
# maximum deviation of parallel parts, relative to the foot's border distance: below ALIKE / 4 of separate_facet.py
LEVEL = 2.4e-4
FAR = 1e30  # above any height [m] and any squared distance from a border [m^2]
MOST_EDGE_PAIRS = 256  # maximum number of pairs of edges of two faces that are all tested


@kernel
def is_decided(d1, dist, error):
    """Returns whether contact and overlap of the shapes are certain despite the error of a face that is not flat.

    The plane of a face is at its highest corner, so the distance of the cores (negative: penetration) is at least dist
    and at most dist + error.  Contact is certain, or its absence, if both ends are on one side of the contact's limit;
    overlap likewise with the sum of the radii.  If this returns 0, a triangle of the face decides.
    """
    limit = core_limit(d1)
    touch = core_radius(d1, side=0) + core_radius(d1, side=1)
    return (dist > limit or dist + error <= limit) and (dist > touch or dist + error <= touch)


@kernel
def outward_normal(d1, normal, point):
    """Returns the unit vector along normal or -normal that points from the first to the second shape.

    point: a point of the facet.  The result points from the origin to the facet's plane if the shapes overlap, and from
    the plane to the origin if they are apart (facet.apart).
    """
    scale = 1.0 / sqrt(dot(normal, normal))
    if dot(normal, point) < 0.0:
        scale = -scale
    if d1.facet.apart[0] == 1:
        scale = -scale
    return scale * normal


@kernel
def size_of_pair(m1, d1):
    """Returns the approximate extent of the shapes, including the distance of their centres, for tolerances [m].

    The extent of each shape is the distance of its facet's first vertex, or of its facet's face, from its centre.
    """
    offset_of_second = d1.convex.pos[0]
    size = 0.0
    for side in range(2):
        if has_face(d1, side):
            _, offset = plane_of_face(m1, d1, side)
            size = size + fabs(offset)
        else:
            vertex = vertex_of(m1, d1, side, d1.facet.vertex[side, 0])
            size = size + sqrt(dot(vertex, vertex))
    return size + sqrt(dot(offset_of_second, offset_of_second))


@kernel
def measure_triangle(m1, d1, size):
    """Measures the facet of a triangle of one core and a vertex of the other: a triangle p, q, r of the difference.

    With normal = pq x pr, depth = n . p for its unit vector n.  The foot is weight_p p + weight_q q + weight_r r.
    """
    vertex1, vertex2 = d1.facet.vertex[0, 0], d1.facet.vertex[1, 0]
    p = vertex_difference(m1, d1, vertex1, vertex2)
    # the single vertex of one core is stored three times
    q = vertex_difference(m1, d1, d1.facet.vertex[0, 1], d1.facet.vertex[1, 1])
    r = vertex_difference(m1, d1, d1.facet.vertex[0, 2], d1.facet.vertex[1, 2])
    pq, pr, qr = q - p, r - p, r - q
    normal = cross(pq, pr)
    normal_squared = dot(normal, normal)
    foot_margin = 0.0
    if normal_squared > 0.0:
        unit = outward_normal(d1, normal, p)
        depth = dot(unit, p)
        # weight of p: normal . (q x qr) / |normal|^2; those of q and r follow by the cyclic order p, q, r
        weight_p = dot(normal, cross(q, qr)) / normal_squared
        weight_q = -dot(normal, cross(p, pr)) / normal_squared
        weight_r = dot(normal, cross(p, pq)) / normal_squared
        doubled_area = sqrt(normal_squared)
        # the foot's distance from the edge qr is weight_p doubled_area / |qr|
        least = fmin(fmin(weight_p / sqrt(dot(qr, qr)), weight_q / sqrt(dot(pr, pr))), weight_r / sqrt(dot(pq, pq)))
        foot_distance = least * doubled_area
        if foot_distance > INSIDE * size:
            foot_margin = foot_distance
            # the first core's deepest point: its single vertex, or a point of its triangle p, q, r:
            # p + weight_q (q - p) + weight_r (r - p), because the weights add up to 1
            deepest = vertex_of(m1, d1, 0, vertex1)
            if d1.facet.kind[0] == FIRST:
                first_q = vertex_of(m1, d1, 0, d1.facet.vertex[0, 1])
                first_r = vertex_of(m1, d1, 0, d1.facet.vertex[0, 2])
                deepest = fma(weight_q, first_q - deepest, fma(weight_r, first_r - deepest, deepest))
            store_facet(d1, unit, depth, deepest)
    return foot_margin


@kernel
def measure_crossing(m1, d1, size):
    """Measures the facet of an edge of each core, whose difference is the parallelogram p + s edge1 - t edge2.

    With normal = edge1 x edge2, the foot has s = -normal . (p x edge2) / |normal|^2 and t = -normal . (p x edge1) /
    |normal|^2.  Its distance from the border is the smaller one of |normal| min(s, 1 - s) / |edge2| and
    |normal| min(t, 1 - t) / |edge1|.
    """
    vertex1, vertex2 = d1.facet.vertex[0, 0], d1.facet.vertex[1, 0]
    p = vertex_difference(m1, d1, vertex1, vertex2)
    edge1 = vertex_difference(m1, d1, d1.facet.vertex[0, 1], vertex2) - p
    edge2 = p - vertex_difference(m1, d1, vertex1, d1.facet.vertex[1, 1])
    normal = cross(edge1, edge2)
    normal_squared = dot(normal, normal)
    foot_margin = 0.0
    if normal_squared > 0.0:
        unit = outward_normal(d1, normal, p)
        s = -dot(normal, cross(p, edge2)) / normal_squared
        t = -dot(normal, cross(p, edge1)) / normal_squared
        area = sqrt(normal_squared)
        foot_distance = area * fmin(
            fmin(s, 1.0 - s) / sqrt(dot(edge2, edge2)), fmin(t, 1.0 - t) / sqrt(dot(edge1, edge1))
        )
        if foot_distance > INSIDE * size:
            foot_margin = foot_distance
            first_p = vertex_of(m1, d1, 0, vertex1)
            depth = dot(unit, p)
            edge_end = vertex_of(m1, d1, 0, d1.facet.vertex[0, 1])
            store_facet(d1, unit, depth, fma(s, edge_end - first_p, first_p))
    return foot_margin


@kernel
def border_distance(m1, d1, side, normal, point):
    """Returns the distance of a point's projection on the facet's face from the face's border [m], 0 outside.

    side: the core with the face; normal: of the face; point: in the frame of the face's shape.
    """
    face = d1.facet.vertex[side, 0]
    smallest_squared = FAR
    if d1.shapes.type[side] == MESH:
        first = m1.hull_vertadr[d1.shapes.data[side]]
        outline = m1.hull_outlineadr[face]
        count = m1.hull_outlinenum[face]
        corner = m1.hull_vert[first + m1.hull_outline[outline + count - 1]]
        for k in range(count):
            next_corner = m1.hull_vert[first + m1.hull_outline[outline + k]]
            edge = next_corner - corner
            # distance from the edge's line times |edge|; negative outside of the face
            scaled_distance = fmax(dot(cross(normal, edge), point - corner), 0.0)
            smallest_squared = fmin(scaled_distance * scaled_distance / dot(edge, edge), smallest_squared)
            if smallest_squared == 0.0:
                break
            corner = next_corner
    else:
        # a box's face is orthogonal to axis face // 2, and extends to the half sizes along the two other axes
        for k in range(3):
            if k != face // 2:
                distance = fmax(flat(d1.shapes.size)[3 * side + k] - fabs(point[k]), 0.0)
                smallest_squared = fmin(distance * distance, smallest_squared)
    return sqrt(smallest_squared)


@kernel
def measure_face(m1, d1, side, size):
    """Measures the facet of a face of one core, that of `side`, and a vertex of the other.

    depth = offset - normal . point, point: the vertex in the frame of the face's shape.  The facet is rejected if the
    face's error matters (not `is_decided`).
    """
    normal, offset = plane_of_face(m1, d1, side)
    vertex = vertex_of(m1, d1, 1 - side, d1.facet.vertex[1 - side, 0])
    point = point_in_frame(d1, side, vertex)
    foot_margin = border_distance(m1, d1, side, normal, point)
    error, _ = error_and_drop(m1, d1, side)
    depth = offset - dot(normal, point)
    if not (foot_margin > WELL_INSIDE * size and is_decided(d1, -depth, error)):
        foot_margin = 0.0
    elif side == 0:
        store_facet(d1, normal, depth, fma(depth, normal, point))
    else:
        # the outward normal of the second core's face points to the first shape, so the result has its opposite
        store_facet(d1, -vector_in_frame(d1, 0, normal), depth, vertex)
    return foot_margin


@kernel
def interval_over_face(m1, d1, side, normal, start, end, clearance):
    """Returns (lo, hi): the part lo <= t <= hi of a segment that is over the facet's face and away from its border.

    The segment is start + t (end - start), 0 <= t <= 1, in the frame of the face's shape.  An empty part has hi <= lo.

    Args:
        side: the core with the face.
        normal: of the face.
        clearance: least distance from the face's border [m].
    """
    face = d1.facet.vertex[side, 0]
    lo, hi = 0.0, 1.0
    if d1.shapes.type[side] == MESH:
        first = m1.hull_vertadr[d1.shapes.data[side]]
        outline = m1.hull_outlineadr[face]
        count = m1.hull_outlinenum[face]
        corner = m1.hull_vert[first + m1.hull_outline[outline + count - 1]]
        for k in range(count):
            next_corner = m1.hull_vert[first + m1.hull_outline[outline + k]]
            edge = next_corner - corner
            # distances of the segment's ends from the edge's line, and the clearance, all times |edge|
            inward = cross(normal, edge)
            margin = clearance * sqrt(dot(edge, edge))
            lo, hi = clip_interval(dot(inward, start - corner) - margin, dot(inward, end - corner) - margin, lo, hi)
            corner = next_corner
    else:
        # the four sides of a box's face, which is orthogonal to axis face // 2
        for k in range(3):
            if k != face // 2:
                half = flat(d1.shapes.size)[3 * side + k] - clearance
                lo, hi = clip_interval(half - start[k], half - end[k], lo, hi)
                lo, hi = clip_interval(half + start[k], half + end[k], lo, hi)
    return lo, hi


@kernel
def clip_interval(height0, height1, lo, hi):
    """Returns (lo, hi) of the part of lo <= t <= hi in which a height is above 0.

    The height is linear in t: `height0` at t = 0, `height1` at t = 1.
    """
    if height0 <= 0.0 and height1 <= 0.0:
        hi = lo - 1.0  # empty
    elif height0 < 0.0:
        t = height0 / (height0 - height1)
        if t > lo:
            lo = t
    elif height1 < 0.0:
        t = height0 / (height0 - height1)
        if t < hi:
            hi = t
    return lo, hi


@kernel
def measure_edge(m1, d1, side, size):
    """Measures the facet of a face of one core, that of `side`, and a parallel edge of the other over it.

    depth = offset - the lower end's height along the face's normal.  The deepest point of the first core is the middle
    of the edge's part over the face, if the edge is the first core's, else the projection of this middle on the face.
    The facet contains the face less that middle, which is at least `clearance` from the face's border: so is the foot.
    The facet is rejected in these cases:

    - The edge is not parallel to the face.
    - No part of the edge is over the face and farther than `clearance` from its border (`interval_over_face`).
    - The error of the face and the edge matters (not `is_decided`).
    """
    normal, offset = plane_of_face(m1, d1, side)
    other = 1 - side
    foot_margin = 0.0
    clearance = WELL_INSIDE * size
    # an edge is stored as i0, i1, i1
    edge_start = vertex_of(m1, d1, other, d1.facet.vertex[other, 0])
    edge_end = vertex_of(m1, d1, other, d1.facet.vertex[other, 2])
    start, end = point_in_frame(d1, side, edge_start), point_in_frame(d1, side, edge_end)
    edge = end - start
    # the edge counts as parallel if the sine of its angle with the face is at most PARALLEL, and the difference of its
    # ends' heights (rise) and the face's error are small relative to the drop and to the distance from the border
    rise = dot(normal, edge)
    error, drop = error_and_drop(m1, d1, side)
    has_small_angle = rise * rise <= PARALLEL * PARALLEL * dot(edge, edge)
    if has_small_angle and error + fabs(rise) <= fmin(FLAT * drop, LEVEL * clearance):
        lo, hi = interval_over_face(m1, d1, side, normal, start, end, clearance)
        depth = offset - fmin(dot(normal, start), dot(normal, end))
        if lo < hi and is_decided(d1, -depth, error + fabs(rise)):
            foot_margin = clearance
            t = 0.5 * (lo + hi)
            if side == 0:
                store_facet(d1, normal, depth, projected(normal, offset, fma(t, edge, start)))
            else:
                store_facet(d1, -vector_in_frame(d1, 0, normal), depth, fma(t, edge_end - edge_start, edge_start))
    return foot_margin


@kernel
def corner_of_face(m1, d1, side, k):
    """Returns corner k of the facet's face on one core, in the frame of its shape."""
    face = d1.facet.vertex[side, 0]
    if d1.shapes.type[side] == MESH:
        vertex = m1.hull_outline[m1.hull_outlineadr[face] + k]
    else:
        # bit i of a box's vertex is 1 on the positive side of axis i.  Along the face's axis this is the lowest bit of
        # `face`.  Along the two next axes, k = 0, 1, 2, 3 goes around the face: the first of them has the bits 0, 1, 1,
        # 0, the second one 0, 0, 1, 1
        axis = face // 2
        vertex = ((face & 1) << axis) | (((k ^ (k >> 1)) & 1) << ((axis + 1) % 3)) | ((k >> 1) << ((axis + 2) % 3))
    return vertex_of(m1, d1, side, vertex)


@kernel
def count_corners(m1, d1, side):
    """Returns the number of corners of the facet's face."""
    return m1.hull_outlinenum[d1.facet.vertex[side, 0]] if d1.shapes.type[side] == MESH else 4


@kernel
def projected(normal, offset, point):
    """Returns the projection of a point on the plane normal . x = offset."""
    return fma(offset - dot(normal, point), normal, point)


@kernel
def corner_over_face(m1, d1, side, clearance):
    """Returns (found, corner): a corner of the facet's face on core 1 - side, over the facet's face on core `side`.

    The corner is in the frame of shape 1 - side.   clearance: least distance from the border of the face of `side` [m].
    """
    normal, _ = plane_of_face(m1, d1, side)
    for k in range(count_corners(m1, d1, 1 - side)):
        corner = corner_of_face(m1, d1, 1 - side, k)
        if border_distance(m1, d1, side, normal, point_in_frame(d1, side, corner)) > clearance:
            return True, corner
    return False, Vec3(zeros(3))


@kernel
def edge_over_face(m1, d1, clearance):
    """Returns (found, point): the middle of the part of a second face's edge over the first face, projected on this.

    The point is in the frame of the first shape.   clearance: least distance from the border of the first face [m].
    """
    normal, offset = plane_of_face(m1, d1, side=0)
    corners2 = count_corners(m1, d1, 1)
    start = point_in_frame(d1, 0, corner_of_face(m1, d1, 1, corners2 - 1))
    for k in range(corners2):
        end = point_in_frame(d1, 0, corner_of_face(m1, d1, 1, k))
        lo, hi = interval_over_face(m1, d1, 0, normal, start, end, clearance)
        if lo < hi:
            return True, projected(normal, offset, fma(0.5 * (lo + hi), end - start, start))
        start = end
    return False, Vec3(zeros(3))


@kernel
def measure_faces(m1, d1, size):
    """Measures the facet of two overlapping parallel faces: their depth along the first one's normal.

    depth = offset - height of the second face's lowest corner along the first one's normal.
    The foot is well inside the facet if a point of one face, projected, is well inside the other face.  Such a point is
    searched among the second face's corners, then the first one's corners, then, for at most MOST_EDGE_PAIRS pairs of
    edges, on the second one's edges.  The deepest point of the first core is the projection of this point on the first
    face.  The facet is rejected in these cases:

    - The normals are not opposite, up to PARALLEL.
    - The total error is above the tolerance, or matters (not `is_decided`).
    - No such point is found.
    """
    normal, offset = plane_of_face(m1, d1, side=0)
    other_normal, _ = plane_of_face(m1, d1, side=1)
    sum_of_normals = normal + vector_in_frame(d1, 0, other_normal)
    foot_margin = 0.0
    clearance = WELL_INSIDE * size
    if dot(sum_of_normals, sum_of_normals) <= PARALLEL * PARALLEL:
        lowest, highest = FAR, -FAR
        for k in range(count_corners(m1, d1, 1)):
            height = dot(normal, point_in_frame(d1, 0, corner_of_face(m1, d1, 1, k)))
            lowest, highest = fmin(height, lowest), fmax(height, highest)
        # the total error: of both planes, and the height difference that their angle causes
        error, drop = error_and_drop(m1, d1, side=0)
        other_error, other_drop = error_and_drop(m1, d1, side=1)
        error = error + other_error + (highest - lowest)
        tolerance = fmin(FLAT * fmin(drop, other_drop), LEVEL * clearance)
        if error <= tolerance and is_decided(d1, lowest - offset, error):
            found, corner = corner_over_face(m1, d1, 0, clearance)
            deepest = projected(normal, offset, point_in_frame(d1, 0, corner))
            if not found:
                found, deepest = corner_over_face(m1, d1, 1, clearance)
            if not found and count_corners(m1, d1, 0) * count_corners(m1, d1, 1) <= MOST_EDGE_PAIRS:
                found, deepest = edge_over_face(m1, d1, clearance)
            if found:
                foot_margin = clearance
                store_facet(d1, normal, offset - lowest, deepest)
    return foot_margin


@kernel
def store_facet(d1, normal, depth, point):
    """Stores the result in convex.dist, convex.normal and convex.witness[0]; point: the first core's deepest."""
    d1.convex.dist[0] = -depth
    d1.convex.normal[0] = normal
    d1.convex.witness[0] = point


@kernel
def measure_facet(m1, d1):
    """Computes depth, normal and the first core's deepest point from the facet's vertices; returns foot_margin [m].

    foot_margin: a lower bound of the distance of the origin's projection from the facet's border.  It is 0 if the
    projection is outside or near to the border; then nothing is written.
    Writes: convex.dist, convex.normal, convex.witness[0].
    """
    kind = d1.facet.kind[0]
    if kind == NO_FACET:
        return 0.0
    size = size_of_pair(m1, d1)
    if kind == CROSSING:
        foot_margin = measure_crossing(m1, d1, size)
    elif kind == FACE_FIRST:
        foot_margin = measure_face(m1, d1, side=0, size=size)
    elif kind == FACES:
        foot_margin = measure_faces(m1, d1, size)
    elif kind == FACE_SECOND:
        foot_margin = measure_face(m1, d1, side=1, size=size)
    elif kind == FACE_EDGE:
        foot_margin = measure_edge(m1, d1, side=0, size=size)
    elif kind == EDGE_FACE:
        foot_margin = measure_edge(m1, d1, side=1, size=size)
    else:
        foot_margin = measure_triangle(m1, d1, size)
    return foot_margin
