"""Supporting features: with which point, edge or face a convex shape meets a plane, give or take a few degrees.

Features are told in coordinates along two tangents and the contact's normal, from the middle of the nearest points.
A face is a polygon, the cap of a cylinder a disc with points around its rim, an edge a segment: an edge of a box or a
hull, the line of a cylinder's or a capsule's side.  Ellipsoids, spheres and prisms meet in a point.
Source: the tolerances are MuJoCo's (engine_collision_gjk.h); that a prism of a height field meets in a point is, too.
"""

from __future__ import annotations

from featherlane.collision.support import core_support
from featherlane.lanes import fabs, kernel, real, sqrt
from featherlane.model.enums import BOX, CAPSULE, CYLINDER, MESH
from featherlane.spatial.vector import (
    add3,
    axpy3,
    cross,
    dot3,
    load3,
    load9,
    mat_mul_vec,
    mat_t_mul_vec,
    normalize3,
    scale3,
    store3,
    sub3,
)

FACE = 0.996  # cosine between normal and face normal above which the face meets
EDGE = 0.0888  # cosine between normal and edge below which the edge meets
CORNERS = 63  # most corners of a face; of one that has more, some are left out evenly
POINT, SEGMENT, DISC = 1, 2, -1  # what `feature_count` holds; else the corners of a polygon
RIM = 16  # points around a disc
RIM_COS, RIM_SIN = 0.9238795325112867, 0.3826834323650898


@kernel
def to_contact(d1, side, x):
    """A point of a shape, given in its frame, in the coordinates of the contact."""
    R, T = load9(d1.shape_mat, 9 * side), load9(d1.contact_axes, 0)
    p = sub3(load3(d1.shape_pos, 3 * side), load3(d1.contact_axes, 9))
    y = mat_mul_vec(R, x)
    return mat_mul_vec(T, (y[0] + p[0], y[1] + p[1], y[2] + p[2]))


@kernel
def add_corner(d1, side, x):
    """One more corner of the feature."""
    k = d1.feature_count[side]
    store3(d1.feature_point, 192 * side + 3 * k, to_contact(d1, side, x))
    d1.feature_count[side] = k + 1


@kernel
def set_plane(d1, side, u):
    """The normal of the feature's plane, given in the shape's frame."""
    v = mat_mul_vec(load9(d1.shape_mat, 9 * side), u)
    store3(d1.feature_normal, 3 * side, mat_mul_vec(load9(d1.contact_axes, 0), v))


@kernel
def set_plane_of_corners(d1, side):
    """The normal of a polygon from its corners: a hull's own normals have the seven digits of float32."""
    o, zero = 192 * side, real(d1, 0.0)
    a, n = load3(d1.feature_point, o), (zero, zero, zero)
    for k in range(1, d1.feature_count[side] - 1):
        e = sub3(load3(d1.feature_point, o + 3 * k), a)
        n = add3(n, cross(e, sub3(load3(d1.feature_point, o + 3 * k + 3), a)))
    store3(d1.feature_normal, 3 * side, normalize3(n)[0])


@kernel
def unit_axis(i, s):
    """s times axis i."""
    zero = 0.0 * s
    v = (zero, zero, s)
    if i == 0:
        v = (s, zero, zero)
    elif i == 1:
        v = (zero, s, zero)
    return v


# ---- shapes ---------------------------------------------------------------------------------------------------------
@kernel
def box_feature(d1, side, u, corner):
    """A face, an edge or nothing; `corner` is where the box is highest."""
    size = load3(d1.shape_size, 3 * side)
    a = (fabs(u[0]), fabs(u[1]), fabs(u[2]))
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
    e = unit_axis((steep + 1) % 3, one)
    f = unit_axis((steep + 2) % 3, one)
    if a[0] > FACE or a[1] > FACE or a[2] > FACE:
        x, y = 2.0 * dot3(e, size), 2.0 * dot3(f, size)
        if dot3(e, corner) > 0.0:
            x = -x
        if dot3(f, corner) > 0.0:
            y = -y
        add_corner(d1, side, corner)
        add_corner(d1, side, axpy3(x, e, corner))
        add_corner(d1, side, axpy3(x, e, axpy3(y, f, corner)))
        add_corner(d1, side, axpy3(y, f, corner))
        s = one
        if dot3(unit_axis(steep, one), u) < 0.0:
            s = -one
        set_plane(d1, side, unit_axis(steep, s))
    elif a[0] < EDGE or a[1] < EDGE or a[2] < EDGE:
        e = unit_axis(flat, one)
        add_corner(d1, side, corner)
        add_corner(d1, side, axpy3(-2.0 * dot3(e, corner), e, corner))


@kernel
def mesh_feature(m1, d1, side, u, vertex):
    """The face or the edge at a hull's highest vertex that lies best, or nothing."""
    mesh = d1.shape_data[side]
    start, at = m1.hull_vertadr[mesh], m1.hull_vertadr[mesh] + vertex
    best, face = 0.0 * u[0] + FACE, -1
    for k in range(m1.hull_mapadr[at], m1.hull_mapadr[at] + m1.hull_mapnum[at]):
        f = m1.hull_polyadr[mesh] + m1.hull_map[k]
        cosine = dot3(load3(m1.hull_polynormal, 3 * f), u)
        if cosine > best:
            best, face = cosine, f
    if face >= 0:
        n, adr = m1.hull_polyvertnum[face], m1.hull_polyvertadr[face]
        stride = (n + CORNERS - 1) // CORNERS
        for k in range(0, n, stride):
            add_corner(d1, side, load3(m1.hull_vert, 3 * (start + m1.hull_polyvert[adr + k])))
        set_plane_of_corners(d1, side)
    else:
        p = load3(m1.hull_vert, 3 * at)
        best, other = 0.0 * u[0] + EDGE * EDGE, -1
        for k in range(m1.hull_edgeadr[at], m1.hull_edgeadr[at] + m1.hull_edgenum[at]):
            e = sub3(load3(m1.hull_vert, 3 * (start + m1.hull_edge[k])), p)
            sine = dot3(e, u)
            sine = sine * sine / dot3(e, e)
            if sine < best:
                best, other = sine, start + m1.hull_edge[k]
        if other >= 0:
            add_corner(d1, side, p)
            add_corner(d1, side, load3(m1.hull_vert, 3 * other))


@kernel
def cylinder_feature(d1, side, u):
    """A cap with points around its rim, a line of the side, or nothing."""
    r, half = d1.shape_size[3 * side], d1.shape_size[3 * side + 1]
    zero = 0.0 * r
    if fabs(u[2]) > FACE:
        s = zero + 1.0
        if u[2] < 0.0:
            s = -s
        add_corner(d1, side, (zero, zero, s * half))
        x, y = r, zero
        for _ in range(RIM):
            add_corner(d1, side, (x, y, s * half))
            x, y = RIM_COS * x - RIM_SIN * y, RIM_SIN * x + RIM_COS * y
        set_plane(d1, side, (zero, zero, s))
        d1.feature_count[side] = DISC
    elif fabs(u[2]) < EDGE:
        s = r / sqrt(u[0] * u[0] + u[1] * u[1])
        add_corner(d1, side, (s * u[0], s * u[1], half))
        add_corner(d1, side, (s * u[0], s * u[1], -half))


@kernel
def capsule_feature(d1, side, u):
    """The side's line, as far as the capsule is a cylinder, or nothing."""
    r, half = d1.shape_size[3 * side], d1.shape_size[3 * side + 1]
    if fabs(u[2]) < EDGE:
        p = scale3(r, u)
        add_corner(d1, side, (p[0], p[1], p[2] + half))
        add_corner(d1, side, (p[0], p[1], p[2] - half))


@kernel
def find_feature(m1, d1, side):
    """How a shape meets the plane square to the contact's normal.

    Reads:  shape_*, contact_axes.   Writes: feature_count, feature_point, feature_normal of this side.
    """
    d1.feature_count[side] = 0
    n = load3(d1.contact_axes, 6)
    if side == 1:
        n = scale3(-1.0, n)
    u = mat_t_mul_vec(load9(d1.shape_mat, 9 * side), n)
    kind = d1.shape_type[side]
    if kind == BOX:
        corner, _ = core_support(m1, d1, side, u)
        box_feature(d1, side, u, corner)
    elif kind == MESH:
        _, vertex = core_support(m1, d1, side, u)
        mesh_feature(m1, d1, side, u, vertex)
    elif kind == CYLINDER:
        cylinder_feature(d1, side, u)
    elif kind == CAPSULE:
        capsule_feature(d1, side, u)
    if d1.feature_count[side] == 0:
        d1.feature_count[side] = POINT
