"""Finds supporting features: the point, edge or face where a convex shape meets a plane, within a few degrees.

Features have coordinates along two tangents and the contact's normal, from the middle of the nearest points.
A face is a polygon, the cap of a cylinder a disc with points around its rim, an edge a segment: an edge of a box or a
hull, the side line of a cylinder or a capsule, or the top edge of a prism.  Ellipsoids and spheres meet in a point.
Coordinates of corner k of shape `side` are feature.point[side, 0 .. 2, k]; feature.edge[side, 0 .. 1, k] is the edge
from this corner to the next one along the two tangents, feature.edge[side, 2, k] a tolerance.  In flat arrays, a
coordinate of a shape has RUN values.  `eights(field)` is a field as rows of eight values, RUN // 8 for a coordinate.
feature.count is POINT, SEGMENT, DISC or the polygon's number of corners.

The fields hull_* hold the convex hulls of all meshes.  Each list has an array of starts, `...adr`, and one of lengths,
`...num`: the vertices of a mesh's hull are hull_vert[hull_vertadr[mesh]] and the following.  hull_edge lists the
neighbours of a vertex, hull_map its faces, hull_outline the corners of a face's outline.  All three are numbered within
their hull.
facet.kind is the kind of the known facet, NO_FACET if there is none (facet.py); facet.vertex[side] has three vertices
of a shape that span it, equal ones for a single vertex, or three times its face if it has one (`has_face`).
m1 and d1 are the model and the data of one world; shapes.*[side] has the type, the size and the pose of each shape, and
in shapes.data the index of its mesh.

Imported kernels:

    core_support(m1, d1, side, u)  (point, vertex): farthest point of a core along u, in its frame; its index
    unit_axis(axis, length)        vector of this length along a coordinate axis

Source: MuJoCo (engine_collision_gjk.h) has the same tolerances.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.facet import NO_FACE, NO_FACET, has_face
from featherlane.engine.collision.convex.support import PRISM, core_support, unit_axis

FACE = 0.996  # cosine between normal and face normal above which the face is in contact
EDGE = 0.0888  # cosine between normal and edge below which the edge is in contact
ON_EDGE = 1e-9  # m a point outside an edge by less is on it
CORNERS = 63  # maximum corners of a face; larger faces are subsampled evenly
POINT, SEGMENT, DISC = 1, 2, -1  # values of `feature.count`; else the number of corners of a polygon
RIM = 16  # points around a disc; its middle is the corner after them
RUN = 64  # capacity of a feature's array of each coordinate
RIM_COS, RIM_SIN = 0.9238795325112867, 0.3826834323650898  # of 2 pi / RIM, the angle between points of the rim


# ---- corners ---------------------------------------------------------------------------------------------------------
@kernel
def contact_transform(d1, side):
    """Returns (R, T, p) that map a point x of a shape from its frame to contact coordinates, T (R x + p).

    R: orientation of the shape; T: rows are the tangents and the normal; p: its centre from the contact's origin.
    """
    p = d1.shapes.pos[side] - d1.feature.origin[0]
    return d1.shapes.mat[side], d1.feature.axes[0], p


@kernel
def to_contact(transform, x):
    """Returns the contact coordinates of a point x of the shape's frame; transform: that of `contact_transform`."""
    R, T, p = transform
    return T @ (R @ x + p)


@kernel
def load_corner(d1, side, k):
    """Returns corner k of a feature in contact coordinates."""
    return Vec3(d1.feature.point[side, axis, k] for axis in range(3))


@kernel
def store_corner(d1, side, k, x):
    """Stores corner k of a feature, given by three coordinates."""
    d1.feature.point[side, 0, k], d1.feature.point[side, 1, k], d1.feature.point[side, 2, k] = x


@kernel
def set_plane(d1, side, normal):
    """Stores the normal of the feature's plane, given in the shape's frame."""
    d1.feature.normal[side] = d1.feature.axes[0] @ (d1.shapes.mat[side] @ normal)


@kernel
def set_plane_of_corners(d1, side):
    """Computes the normal of a polygon from its corners, since a hull's stored normals have float32 precision.

    It is the sum of the cross products of successive vectors from corner 0 to the others, normalized.
    """
    corner0 = load_corner(d1, side, 0)
    normal = Vec3(zeros(3))
    previous = load_corner(d1, side, 1) - corner0
    for k in range(2, d1.feature.count[side]):
        current = load_corner(d1, side, k) - corner0
        normal = normal + cross(previous, current)
        previous = current
    d1.feature.normal[side] = normalize3(normal)[0]


@kernel
def store_segment(d1, side, start, end):
    """Sets the feature to an edge, whose ends are given in the shape's frame.  Writes: feature.point, feature.count."""
    transform = contact_transform(d1, side)
    store_corner(d1, side, 0, to_contact(transform, start))
    store_corner(d1, side, 1, to_contact(transform, end))
    d1.feature.count[side] = SEGMENT


@kernel
def transform_corners(d1, side, count):
    """Transforms corners 0 .. count - 1 of the feature from the shape's frame to contact coordinates, eight at once."""
    points = eights(d1.feature.point)
    transform = contact_transform(d1, side)
    run = RUN // 8
    # each shape has `run` rows of eight x, then of y, then of z
    for row in range(3 * run * side, 3 * run * side + (count + 7) // 8):
        points[row], points[row + run], points[row + 2 * run] = to_contact(
            transform, Vec3(points[row], points[row + run], points[row + 2 * run])
        )


@kernel
def compute_face_edges(d1, side, count):
    """Computes the edges of a face from its corners, and the tolerance ON_EDGE |edge| of each edge.

    The tolerance is compared with |edge x offset|, which is |edge| times a point's distance from the edge's line.  The
    last group of eight edges is filled with edges of length 0.
    Writes: feature.edge (x and y of the vector, tolerance), feature.count.
    """
    edges = eights(d1.feature.edge)
    run = RUN // 8  # rows of eight values of each coordinate
    first_edge = 3 * RUN * side  # the shape's first edge in the flat array
    previous = count - 1
    # clears x and y of the last group of eight edges, which may be incomplete
    edges[(first_edge + previous) // 8], edges[(first_edge + RUN + previous) // 8] = zeros(2)
    previous_x, previous_y, _ = load_corner(d1, side, previous)
    for k in range(count):
        corner_x, corner_y, _ = load_corner(d1, side, k)
        edge_x, edge_y = corner_x - previous_x, corner_y - previous_y
        # an edge has the index of the corner where it starts
        d1.feature.edge[first_edge + previous], d1.feature.edge[first_edge + previous + RUN] = edge_x, edge_y
        previous_x, previous_y, previous = corner_x, corner_y, k
    # rows of eight: x in `row`, y in `row + run`, the tolerance in `row + 2 run`
    for row in range(first_edge // 8, first_edge // 8 + (count + 7) // 8):
        edges[row + 2 * run] = ON_EDGE * sqrt(edges[row] * edges[row] + edges[row + run] * edges[row + run])
    d1.feature.count[side] = count


# ---- shapes ---------------------------------------------------------------------------------------------------------
@kernel
def set_box_face(d1, side, corner, axis):
    """Sets the feature to one face of a box.

    axis: the axis 0, 1 or 2 orthogonal to the face.  corner: a corner of the face, in the box's frame [m].
    """
    size = d1.shapes.size[side]
    tangent1, tangent2 = unit_axis((axis + 1) % 3, 1.0), unit_axis((axis + 2) % 3, 1.0)
    # signed lengths of the face's edges at the corner: they lead to the other side of the box
    width1, width2 = 2.0 * dot(tangent1, size), 2.0 * dot(tangent2, size)
    if dot(tangent1, corner) > 0.0:
        width1 = -width1
    if dot(tangent2, corner) > 0.0:
        width2 = -width2
    transform = contact_transform(d1, side)
    store_corner(d1, side, 0, to_contact(transform, corner))
    store_corner(d1, side, 1, to_contact(transform, fma(width1, tangent1, corner)))
    store_corner(d1, side, 2, to_contact(transform, fma(width1, tangent1, fma(width2, tangent2, corner))))
    store_corner(d1, side, 3, to_contact(transform, fma(width2, tangent2, corner)))
    compute_face_edges(d1, side, 4)
    # the plane's normal, about which the corners are counterclockwise: edge 1 x edge 2, along or against the axis
    set_plane(d1, side, unit_axis(axis, -1.0 if width1 * width2 < 0.0 else 1.0))


@kernel
def find_box_feature(d1, side, direction, corner, least_cosine):
    """Sets the feature to a face or an edge of a box; leaves feature.count 0 if the box meets the plane in a corner.

    Args:
        direction: contact normal, outwards, in the box's frame.
        corner: the box's highest corner along the direction, in its frame.
        least_cosine: cosine between the direction and a face's normal above which the face is the feature.
    """
    x, y, z = fabs(direction)  # cosines of the axes
    if x > least_cosine or y > least_cosine or z > least_cosine:
        # the face across the axis with the largest cosine
        set_box_face(d1, side, corner, 2 if z > x and z > y else 1 if y > x else 0)
    elif x < EDGE or y < EDGE or z < EDGE:
        # the edge along the axis with the smallest cosine
        edge_axis = unit_axis(2 if z < x and z < y else 1 if y < x else 0, 1.0)
        store_segment(d1, side, corner, fma(-2.0 * dot(edge_axis, corner), edge_axis, corner))


@kernel
def is_face_at(m1, mesh, vertex, face):
    """Returns whether the hull's face has a corner at this vertex."""
    hull_vertex = m1.hull_vertadr[mesh] + vertex
    for k in range(m1.hull_mapadr[hull_vertex], m1.hull_mapadr[hull_vertex] + m1.hull_mapnum[hull_vertex]):
        if m1.hull_map[k] == face:
            return True
    return False


@kernel
def face_at_vertices(m1, mesh, direction, vertices, least_cosine):
    """Returns the hull's face with given vertices whose normal is nearest to a direction, or NO_FACE.

    Args:
        direction: unit vector in the hull's frame.
        vertices: one to three vertices that the face has; three indices, the last one repeated for fewer vertices.
        least_cosine: cosine between the face's normal and the direction that must be exceeded.
    """
    vertex1, vertex2, vertex3 = vertices
    hull_vertex = m1.hull_vertadr[mesh] + vertex1
    first_face = m1.hull_polyadr[mesh]
    best_cosine = least_cosine
    face = NO_FACE
    for k in range(m1.hull_mapadr[hull_vertex], m1.hull_mapadr[hull_vertex] + m1.hull_mapnum[hull_vertex]):
        candidate = m1.hull_map[k]
        cosine = dot(m1.hull_polynormal[first_face + candidate], direction)
        if (
            cosine > best_cosine
            and (vertex2 == vertex1 or is_face_at(m1, mesh, vertex2, candidate))
            and (vertex3 == vertex2 or is_face_at(m1, mesh, vertex3, candidate))
        ):
            best_cosine = cosine
            face = first_face + candidate
    return face


@kernel
def find_mesh_feature(m1, d1, side, direction, least_cosine):
    """Sets the feature to a hull's face or edge in the contact plane; leaves feature.count 0 if it has none there.

    If the facet is known and has a face of this hull, this face is the feature.  If the facet has an edge or a
    triangle, only the faces that meet there are considered: other faces at the same vertex lie next to the contact.
    Without a face, the feature is the edge at the hull's highest vertex whose cosine with the direction is smallest.

    Args:
        direction: contact normal, outwards, in the hull's frame.
        least_cosine: cosine between the direction and a face's normal above which the face is the feature.

    Writes: feature.point, feature.edge, feature.normal and feature.count of this side.
    """
    mesh = d1.shapes.data[side]
    vertex, face = 0, NO_FACE
    first_vertex = m1.hull_vertadr[mesh]  # of this hull in hull_vert
    # finds the face; without one, the vertex whose edges are tested
    vertex1, vertex2, vertex3 = d1.facet.vertex[side, 0], d1.facet.vertex[side, 1], d1.facet.vertex[side, 2]
    if d1.facet.kind[0] != NO_FACET and has_face(d1, side):
        face = vertex1  # facet.vertex holds the face
    elif d1.facet.kind[0] != NO_FACET and vertex1 != vertex3:
        vertex = vertex1
        face = face_at_vertices(m1, mesh, direction, (vertex1, vertex2, vertex3), least_cosine)
    else:
        # without a facet, or if it has a single vertex of this hull, the support point's vertex is used: the facet's
        # may be another of equally high vertices, without a face near the plane
        _, vertex = core_support(m1, d1, side, direction)
        face = face_at_vertices(m1, mesh, direction, (vertex, vertex, vertex), least_cosine)
    hull_vertex = first_vertex + vertex
    if face != NO_FACE:
        # the face's corners; of more than CORNERS, every stride-th one
        count, outline = m1.hull_outlinenum[face], m1.hull_outlineadr[face]
        stride = 1
        if count > CORNERS:
            stride = (count + CORNERS - 1) // CORNERS
            count = (count + stride - 1) // stride
        for k in range(count):
            store_corner(d1, side, k, m1.hull_vert[first_vertex + m1.hull_outline[outline + stride * k]])
        transform_corners(d1, side, count)
        compute_face_edges(d1, side, count)
        set_plane_of_corners(d1, side)
    else:
        # the edge of the smallest cosine to the direction, if that is below EDGE
        position = m1.hull_vert[hull_vertex]
        least_squared_cosine = EDGE * EDGE
        edge_end = -1
        for k in range(m1.hull_edgeadr[hull_vertex], m1.hull_edgeadr[hull_vertex] + m1.hull_edgenum[hull_vertex]):
            edge = m1.hull_vert[first_vertex + m1.hull_edge[k]] - position
            rise = dot(edge, direction)
            squared_cosine = rise * rise / dot(edge, edge)
            if squared_cosine < least_squared_cosine:
                least_squared_cosine = squared_cosine
                edge_end = first_vertex + m1.hull_edge[k]
        if edge_end >= 0:
            store_segment(d1, side, position, m1.hull_vert[edge_end])


@kernel
def find_cylinder_feature(d1, side, normal, least_cosine):
    """Sets the feature to a cylinder's cap, with points around its rim, or to a line of its side.

    If the cylinder meets the plane in a point of a rim, feature.count stays 0.

    Args:
        normal: contact normal, outwards, in the shape's frame.
        least_cosine: cosine between the normal and the axis above which the cap is the feature.
    """
    radius, half = d1.shapes.size[side][0], d1.shapes.size[side][1]
    if fabs(normal[2]) > least_cosine:
        sign = -1.0 if normal[2] < 0.0 else 1.0
        x = radius
        y = 0.0
        for k in range(RIM):
            store_corner(d1, side, k, (x, y, sign * half))
            # rotates the point by 2 pi / RIM about the axis
            x, y = RIM_COS * x - RIM_SIN * y, RIM_SIN * x + RIM_COS * y
        transform_corners(d1, side, RIM)  # from the shape's frame to the contact's
        store_corner(d1, side, RIM, to_contact(contact_transform(d1, side), Vec3(0.0, 0.0, sign * half)))
        set_plane(d1, side, Vec3(0.0, 0.0, sign))
        d1.feature.count[side] = DISC
    elif fabs(normal[2]) < EDGE:
        # the line of the side that is highest along the normal
        scale = radius / sqrt(normal[0] * normal[0] + normal[1] * normal[1])
        x, y = scale * normal[0], scale * normal[1]
        store_segment(d1, side, Vec3(x, y, half), Vec3(x, y, -half))


@kernel
def find_capsule_feature(d1, side, normal):
    """Sets the feature to a line of the capsule's cylindrical side; leaves feature.count 0 if an end meets the plane.

    normal: contact normal, outwards, in the shape's frame.
    """
    radius, half = d1.shapes.size[side][0], d1.shapes.size[side][1]
    if fabs(normal[2]) < EDGE:
        middle = radius * normal
        store_segment(d1, side, Vec3(middle.x, middle.y, middle.z + half), Vec3(middle.x, middle.y, middle.z - half))


@kernel
def find_prism_feature(d1, side, direction):
    """Sets the feature to the top edge of a prism, from vertex 3 to 4, if it is orthogonal to the contact normal.

    Its angle with the contact plane may have a sine up to EDGE.
    direction: unit contact normal, outwards, in the shape's frame.
    """
    start, end = d1.shapes.prism[3], d1.shapes.prism[4]
    edge = end - start
    rise, length = dot(edge, direction), norm3(edge)
    # false for an edge of length 0, which is a point
    if fabs(rise) < EDGE * length:
        store_segment(d1, side, start, end)


@kernel
def find_feature(m1, d1, side, least_cosine):
    """Stores the feature of shape `side` that meets the plane orthogonal to the contact's normal.

    Args:
        least_cosine: cosine between the normal and a face's normal above which the face is the feature.

    Reads:  shapes.*, feature.axes, feature.origin, facet.*.
    Writes: feature.count, feature.point, feature.edge, feature.normal of this side.
    """
    d1.feature.count[side] = 0
    # the contact's normal points from the first to the second shape: out of the first
    normal = d1.feature.axes[0].rows[2]
    direction = d1.shapes.mat[side].T @ (normal if side == 0 else -normal)
    kind = d1.shapes.type[side]
    if kind == BOX:
        corner, _ = core_support(m1, d1, side, direction)
        find_box_feature(d1, side, direction, corner, least_cosine)
    elif kind == MESH:
        find_mesh_feature(m1, d1, side, direction, least_cosine)
    elif kind == CYLINDER:
        find_cylinder_feature(d1, side, direction, least_cosine)
    elif kind == CAPSULE:
        find_capsule_feature(d1, side, direction)
    elif kind == PRISM:
        find_prism_feature(d1, side, direction)
    if d1.feature.count[side] == 0:
        d1.feature.count[side] = POINT
