"""Finds supporting features: the point, edge or face where a convex shape meets a plane, within a few degrees.

Features have coordinates along two tangents and the contact's normal, from the middle of the nearest points.
A face is a polygon, the cap of a cylinder a disc with points around its rim, an edge a segment: an edge of a box or a
hull, or the side line of a cylinder or a capsule.  Ellipsoids, spheres and prisms meet in a point.
Source: MuJoCo (engine_collision_gjk.h) has the same tolerances, and also treats a height field's prism as a point.
"""

from featherlane.prelude import *
from featherlane.collision.convex.facet import NO_FACE, NO_FACET, has_face
from featherlane.collision.convex.support import core_support, unit_axis

FACE = 0.996  # cosine between normal and face normal above which the face is in contact
EDGE = 0.0888  # cosine between normal and edge below which the edge is in contact
FEW = 8  # corners up to which one by one is as fast as eight at once
ON_EDGE = 1e-9  # m a point outside an edge by less is on it
CORNERS = 63  # maximum corners of a face; larger faces are subsampled evenly
POINT, SEGMENT, DISC = 1, 2, -1  # values of `feature.count`; else the number of corners of a polygon
RIM = 16  # points around a disc; its middle is the corner after them
RUN = 64  # capacity of a feature's array of each coordinate
RIM_COS, RIM_SIN = 0.9238795325112867, 0.3826834323650898


# ---- corners ---------------------------------------------------------------------------------------------------------
@kernel
def contact_frames(d1, side):
    """Returns (R, T, p) that map a point x of a shape from its frame to contact coordinates, T (R x + p)."""
    p = d1.shapes.pos[side] - d1.feature.origin[0]
    return d1.shapes.mat[side], d1.feature.axes[0], p


@kernel
def to_contact(frames, x):
    """Returns a point of a shape, given in its frame, in contact coordinates."""
    R, T, p = frames
    return T @ (R @ x + p)


@kernel
def load_corner(d1, side, k):
    """Returns corner k of a feature; each coordinate is stored in a separate array section."""
    return Vec3(d1.feature.point[side, i, k] for i in range(3))


@kernel
def store_corner(d1, side, k, x):
    """Stores corner k of a feature."""
    d1.feature.point[side, 0, k], d1.feature.point[side, 1, k], d1.feature.point[side, 2, k] = x


@kernel
def set_plane(d1, side, u):
    """Stores the normal of the feature's plane, given in the shape's frame."""
    d1.feature.normal[side] = d1.feature.axes[0] @ (d1.shapes.mat[side] @ u)


@kernel
def set_plane_of_corners(d1, side):
    """Computes the normal of a polygon from its corners, since a hull's stored normals have float32 precision."""
    a, n = load_corner(d1, side, 0), Vec3(zeros(3))
    e = load_corner(d1, side, 1) - a
    for k in range(2, d1.feature.count[side]):
        f = load_corner(d1, side, k) - a
        n, e = n + cross(e, f), f
    d1.feature.normal[side] = normalize3(n)[0]


@kernel
def store_segment(d1, side, a, b):
    """Sets the feature to an edge, whose ends are given in the shape's frame."""
    frames = contact_frames(d1, side)
    store_corner(d1, side, 0, to_contact(frames, a))
    store_corner(d1, side, 1, to_contact(frames, b))
    d1.feature.count[side] = SEGMENT


@kernel
def move_corners(d1, side, n):
    """Transforms corners of the feature from the shape's frame to contact coordinates, eight at once."""
    P, frames, run = eights(d1.feature.point), contact_frames(d1, side), RUN // 8
    for i in range(3 * run * side, 3 * run * side + (n + 7) // 8):
        P[i], P[i + run], P[i + 2 * run] = to_contact(frames, Vec3(P[i], P[i + run], P[i + 2 * run]))


@kernel
def compute_face_edges(d1, side, n):
    """Computes the edges of a face with n corners in contact coordinates; edges after the last one have length 0.

    The tolerance outside an edge is stored times the edge's length.
    """
    E, o, last, run = eights(d1.feature.edge), 3 * RUN * side, n - 1, RUN // 8
    E[(o + last) // 8], E[(o + RUN + last) // 8] = zeros(2)
    x, y, _ = load_corner(d1, side, last)
    for k in range(n):
        p, q, _ = load_corner(d1, side, k)
        ex, ey = p - x, q - y
        d1.feature.edge[o + last], d1.feature.edge[o + last + RUN] = ex, ey
        x, y, last = p, q, k
    for i in range(o // 8, o // 8 + (n + 7) // 8):
        E[i + 2 * run] = ON_EDGE * sqrt(E[i] * E[i] + E[i + run] * E[i + run])
    d1.feature.count[side] = n


# ---- shapes ---------------------------------------------------------------------------------------------------------
@kernel
def box_face(d1, side, corner, axis):
    """Sets the feature to the face of a box that is orthogonal to an axis and has this corner."""
    size = d1.shapes.size[side]
    one = 0.0 * size[0] + 1.0
    e, f = unit_axis((axis + 1) % 3, one), unit_axis((axis + 2) % 3, one)
    x, y = 2.0 * dot(e, size), 2.0 * dot(f, size)
    if dot(e, corner) > 0.0:
        x = -x
    if dot(f, corner) > 0.0:
        y = -y
    frames = contact_frames(d1, side)
    store_corner(d1, side, 0, to_contact(frames, corner))
    store_corner(d1, side, 1, to_contact(frames, fma(x, e, corner)))
    store_corner(d1, side, 2, to_contact(frames, fma(x, e, fma(y, f, corner))))
    store_corner(d1, side, 3, to_contact(frames, fma(y, f, corner)))
    compute_face_edges(d1, side, 4)
    # the orientation is that of the corners
    s = one
    if x * y < 0.0:
        s = -one
    set_plane(d1, side, unit_axis(axis, s))


@kernel
def box_feature(d1, side, u, corner, least):
    """Finds a face, an edge or nothing; `corner` is the box's highest corner."""
    a = fabs(u)
    one = 0.0 * a[0] + 1.0
    steep, flat = 0, 0
    if a[1] > a[0]:
        steep = 1
    if a[2] > a[0] and a[2] > a[1]:
        steep = 2
    if a[1] < a[0]:
        flat = 1
    if a[2] < a[0] and a[2] < a[1]:
        flat = 2
    if a[0] > least or a[1] > least or a[2] > least:
        box_face(d1, side, corner, steep)
    elif a[0] < EDGE or a[1] < EDGE or a[2] < EDGE:
        e = unit_axis(flat, one)
        store_segment(d1, side, corner, fma(-2.0 * dot(e, corner), e, corner))


@kernel
def is_face_at(m1, mesh, vertex, face):
    """Returns whether the hull's face has a corner at this vertex."""
    at, found = m1.hull_vertadr[mesh] + vertex, False
    for k in range(m1.hull_mapadr[at], m1.hull_mapadr[at] + m1.hull_mapnum[at]):
        if m1.hull_map[k] == face:
            found = True
    return found


@kernel
def face_at(m1, mesh, u, vertices, least):
    """Returns the face nearest to orthogonal to u at one to three (repeated) vertices of the hull, or NO_FACE."""
    i, j, k = vertices
    at, first = m1.hull_vertadr[mesh] + i, m1.hull_polyadr[mesh]
    best, face = 0.0 * u[0] + least, NO_FACE
    for c in range(m1.hull_mapadr[at], m1.hull_mapadr[at] + m1.hull_mapnum[at]):
        f = m1.hull_map[c]
        cosine = dot(m1.hull_polynormal[first + f], u)
        if cosine > best and (j == i or is_face_at(m1, mesh, j, f)) and (k == j or is_face_at(m1, mesh, k, f)):
            best, face = cosine, first + f
    return face


@kernel
def mesh_feature(m1, d1, side, u, least):
    """Finds the face or edge nearest to the contact plane at a hull's highest vertex, or nothing.

    If the facet is known (`facet`), its face is used, if it has one.  If it has an edge or a triangle, only the faces
    that meet there are considered: other faces at the same vertex lie next to the contact.
    """
    mesh, vertex, face = d1.shapes.data[side], 0, NO_FACE
    start = m1.hull_vertadr[mesh]
    i, j, k = d1.facet.vertex[side, 0], d1.facet.vertex[side, 1], d1.facet.vertex[side, 2]
    if d1.facet.kind[0] != NO_FACET and has_face(d1, side):
        face = i
    elif d1.facet.kind[0] != NO_FACET and i != k:
        vertex, face = i, face_at(m1, mesh, u, (i, j, k), least)
    else:
        # among equally high vertices the support point's is used: the facet's first may have no face near the plane
        _, vertex = core_support(m1, d1, side, u)
        face = face_at(m1, mesh, u, (vertex, vertex, vertex), least)
    at = start + vertex
    if face != NO_FACE:
        n, adr, stride = m1.hull_outlinenum[face], m1.hull_outlineadr[face], 1
        if n > CORNERS:
            stride = (n + CORNERS - 1) // CORNERS
            n = (n + stride - 1) // stride
        if n <= FEW:
            frames = contact_frames(d1, side)
            for k in range(n):
                x = m1.hull_vert[start + m1.hull_outline[adr + stride * k]]
                store_corner(d1, side, k, to_contact(frames, x))
        else:
            for k in range(n):
                store_corner(d1, side, k, m1.hull_vert[start + m1.hull_outline[adr + stride * k]])
            move_corners(d1, side, n)
        compute_face_edges(d1, side, n)
        set_plane_of_corners(d1, side)
    else:
        p = m1.hull_vert[at]
        best, other = 0.0 * u[0] + EDGE * EDGE, -1
        for k in range(m1.hull_edgeadr[at], m1.hull_edgeadr[at] + m1.hull_edgenum[at]):
            e = m1.hull_vert[start + m1.hull_edge[k]] - p
            sine = dot(e, u)
            sine = sine * sine / dot(e, e)
            if sine < best:
                best, other = sine, start + m1.hull_edge[k]
        if other >= 0:
            store_segment(d1, side, p, m1.hull_vert[other])


@kernel
def cylinder_feature(d1, side, u, least):
    """Finds a cap with points around its rim, a line of the side, or nothing; u is the normal in the shape's frame."""
    r, half = d1.shapes.size[side][0], d1.shapes.size[side][1]
    zero = 0.0 * r
    if fabs(u[2]) > least:
        sign = zero + 1.0
        if u[2] < 0.0:
            sign = -sign
        x, y = r, zero
        for k in range(RIM):
            store_corner(d1, side, k, (x, y, sign * half))
            x, y = RIM_COS * x - RIM_SIN * y, RIM_SIN * x + RIM_COS * y
        move_corners(d1, side, RIM)  # from the shape's frame to the contact's
        store_corner(d1, side, RIM, to_contact(contact_frames(d1, side), Vec3(zero, zero, sign * half)))
        set_plane(d1, side, Vec3(zero, zero, sign))
        d1.feature.count[side] = DISC
    elif fabs(u[2]) < EDGE:
        scale = r / sqrt(u[0] * u[0] + u[1] * u[1])
        x, y = scale * u[0], scale * u[1]
        store_segment(d1, side, Vec3(x, y, half), Vec3(x, y, -half))


@kernel
def capsule_feature(d1, side, u):
    """Finds the side's line, on the cylindrical part of the capsule, or nothing."""
    r, half = d1.shapes.size[side][0], d1.shapes.size[side][1]
    if fabs(u[2]) < EDGE:
        p = r * u
        store_segment(d1, side, Vec3(p.x, p.y, p.z + half), Vec3(p.x, p.y, p.z - half))


@kernel
def find_feature(m1, d1, side, least):
    """Finds how a shape meets the plane orthogonal to the contact's normal.

    Args:
        least: cosine between the normal and a face's normal above which the face is the feature.

    Reads:  shapes.*, feature.axes, feature.origin, facet.*.
    Writes: feature.count, feature.point, feature.normal of this side.
    """
    d1.feature.count[side] = 0
    n = d1.feature.axes[0].rows[2]
    if side == 1:
        n = -n
    u = d1.shapes.mat[side].T @ n
    kind = d1.shapes.type[side]
    if kind == BOX:
        corner, _ = core_support(m1, d1, side, u)
        box_feature(d1, side, u, corner, least)
    elif kind == MESH:
        mesh_feature(m1, d1, side, u, least)
    elif kind == CYLINDER:
        cylinder_feature(d1, side, u, least)
    elif kind == CAPSULE:
        capsule_feature(d1, side, u)
    if d1.feature.count[side] == 0:
        d1.feature.count[side] = POINT
