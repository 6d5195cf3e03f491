"""Computes the contact points of two shapes at impact, on either shape, as MuJoCo's polygon clipping does.

The polygon of one shape, a face or an edge, is cut by the planes through the edges of the other's face, along that
face's normal.  Of more than four corners, those of a quadrilateral of nearly largest area are kept.  A plane cuts
nothing.  Each corner has a point on its own shape and one on the other.  MuJoCo widens both shapes for this by half of
the limit, along the normals of faces, and narrows them afterwards along the contact's normal; so the points of inclined
faces are shifted.
Source: MuJoCo 4.0.1, chapter "Computation", sec. "Multi-contact"; measured on its contacts.
Deviation: where two edges cross, an edge is tested with the faces at the other edge for boxes only.
"""

from featherlane.prelude import *
from featherlane.collision.convex.feature import (
    DISC,
    EDGE,
    FACE,
    ON_EDGE,
    POINT,
    RIM,
    SEGMENT,
    find_feature,
    load_corner,
    set_box_face,
)
from featherlane.collision.convex.manifold import set_contact_axes
from featherlane.collision.convex.support import core_support

BUFFER = 384  # numbers of one polygon in `clip.place`: 128 corners
CORNERS = 100  # maximum corners of a cut polygon
POINTS = 4  # maximum contact points of a swept pair


# ---- polygons --------------------------------------------------------------------------------------------------------
@kernel
def number_of_corners(d1, side):
    """Returns the number of corners of a feature, of a disc those on its rim."""
    n = d1.feature.count[side]
    if n == DISC:
        n = RIM
    return n


@kernel
def corner(d1, b, i):
    """Returns corner i of polygon b, one of two."""
    return Vec3(d1.clip.place[BUFFER * b + 3 * i : BUFFER * b + 3 * i + 3])


@kernel
def put_corner(d1, b, i, x):
    """Stores corner i of polygon b."""
    d1.clip.place[BUFFER * b + 3 * i : BUFFER * b + 3 * i + 3] = x


@kernel
def into_contact(d1, v):
    """Returns a vector in contact coordinates, given in world axes."""
    return d1.feature.axes[0] @ v


@kernel
def capsule_axis(d1, side):
    """Returns the axis of a capsule, in world axes."""
    return d1.shapes.mat[side].columns[2]


@kernel
def load_polygon(d1, side):
    """Copies a feature to polygon 0; returns its number of corners.

    A capsule is a line along its axis, between its ends, through its nearest point moved by half of the limit.
    """
    n = number_of_corners(d1, side)
    if d1.shapes.type[side] == CAPSULE:
        n, half = 2, d1.shapes.size[side][1]
        a = into_contact(d1, capsule_axis(d1, side))
        c = into_contact(d1, d1.shapes.pos[side] - d1.feature.origin[0])
        x = Vec3(0.0 * half, 0.0 * half, (1.0 * side - 0.5) * (d1.convex.dist[0] - d1.shapes.limit[0]))
        along = dot(x - c, a)
        put_corner(d1, 0, 0, fma(half - along, a, x))
        put_corner(d1, 0, 1, fma(-half - along, a, x))
    else:
        for i in range(n):
            put_corner(d1, 0, i, load_corner(d1, side, i))
    return n


@kernel
def turning_normal(d1, side):
    """Returns the unit normal of a face, about which its corners are counterclockwise."""
    a, b, c = load_corner(d1, side, 0), load_corner(d1, side, 1), load_corner(d1, side, 2)
    n = normalize3(cross(b - a, c - b))[0]
    if d1.feature.count[side] != DISC:
        s = d1.feature.normal[side]
        if dot(s, n) < 0.0:
            s = -s
        n = s
    return n


@kernel
def outward(side, n):
    """Returns the normal with the sign that points away from the shape: up for the first, down for the second."""
    s = 1.0 - 2.0 * side
    if s * n[2] < 0.0:
        n = -n
    return n


@kernel
def cut(d1, b, n, a, inward):
    """Cuts polygon b of n corners by a plane through a, into the other polygon; returns its number of corners."""
    k, last = 0, corner(d1, b, 0)
    for i in range(n):
        p, q = last, corner(d1, b, 0)
        if i + 1 < n:
            q = corner(d1, b, i + 1)
        last = q
        u, v = dot(p - a, inward), dot(q - a, inward)
        if k < CORNERS:
            starts, ends = (1 if u > -MINVAL else 0), (1 if v > -MINVAL else 0)
            if starts != ends:
                t = u / (u - v)
                if t >= 0.0 and t <= 1.0:
                    put_corner(d1, 1 - b, k, fma(t, q - p, p))
                    k += 1
            if ends == 1:
                put_corner(d1, 1 - b, k, q)
                k += 1
    return k


@kernel
def cut_by_face(d1, side, n):
    """Cuts polygon 0 by all edges of the face of `side`; returns (which polygon, number of corners)."""
    up, m, b = turning_normal(d1, side), number_of_corners(d1, side), 0
    for i in range(m):
        a, c = load_corner(d1, side, i), load_corner(d1, side, 0)
        if i + 1 < m:
            c = load_corner(d1, side, i + 1)
        n = cut(d1, b, n, a, normalize3(cross(up, c - a))[0])
        b = 1 - b
    return b, n


@kernel
def keep_near(d1, b, n, p, up, limit):
    """Keeps the corners of polygon b within the limit above the plane through p; returns their number."""
    k = 0
    for i in range(n):
        x = corner(d1, b, i)
        if dot(x - p, up) <= limit:
            put_corner(d1, b, k, x)
            k += 1
    return k


@kernel
def ends_of_edge(d1, b, n):
    """Moves the two corners that are farthest apart to the front; returns their number."""
    most, first, second = -1.0 + 0.0, 0, 1
    for i in range(n):
        for k in range(i + 1, n):
            e = corner(d1, b, k) - corner(d1, b, i)
            if dot(e, e) > most:
                most, first, second = dot(e, e), i, k
    p, q = corner(d1, b, first), corner(d1, b, second)
    put_corner(d1, b, 0, p)
    put_corner(d1, b, 1, q)
    return 2


@kernel
def doubled_area(d1, w, i, j, k, m):
    """Returns the doubled area of a quadrilateral of corners of polygon w."""
    a, b, c, e = corner(d1, w, i), corner(d1, w, j), corner(d1, w, k), corner(d1, w, m)
    return norm3(cross(e - a, b - e) + cross(c - b, a - c))


@kernel
def quadrilateral(d1, w, n):
    """Moves four corners of polygon w to the front: those of a nearly largest area, by turning its corners in order."""
    b, c, e, r0, r1, r2, r3 = 1, 2, 3, 0, 1, 2, 3
    area = doubled_area(d1, w, 0, b, c, e)
    for a in range(n):
        grows = True
        while grows:
            more = doubled_area(d1, w, a, b, c, (e + 1) % n)
            grows = more > area
            if grows:
                area, e = more, (e + 1) % n
                more = doubled_area(d1, w, a, b, (c + 1) % n, e)
                while more > area:
                    area, c = more, (c + 1) % n
                    more = doubled_area(d1, w, a, b, (c + 1) % n, e)
                more = doubled_area(d1, w, a, (b + 1) % n, c, e)
                while more > area:
                    area, b = more, (b + 1) % n
                    more = doubled_area(d1, w, a, (b + 1) % n, c, e)
                r0, r1, r2, r3 = a, b, c, e
        if b == a:
            b = (b + 1) % n
            if c == b:
                c = (c + 1) % n
                if e == c:
                    e = (e + 1) % n
    p, q, r, s = corner(d1, w, r0), corner(d1, w, r1), corner(d1, w, r2), corner(d1, w, r3)
    put_corner(d1, w, 0, p)
    put_corner(d1, w, 1, q)
    put_corner(d1, w, 2, r)
    put_corner(d1, w, 3, s)
    return POINTS


# ---- points on both shapes -------------------------------------------------------------------------------------------
@kernel
def store_impact(d1, side, i, x):
    """Stores a point of a shape, given in contact coordinates."""
    d1.sweep.impact[side, i] = d1.feature.axes[0].T @ x + d1.feature.origin[0]


@kernel
def store_corners(d1, b, n, side, p, up, along):
    """Stores corners of polygon b, of the shape of `side`, with their points on the other shape's plane.

    Args:
        p, up: point and outward normal of that plane.
        along: normal of the polygon, or `up` for an edge, from the first to the second shape: its planes hold the
            polygon's points, and the shapes are widened along it.
    """
    half = 0.5 * d1.shapes.limit[0]
    shift = Vec3(half * along[0], half * along[1], half * (along[2] - 1.0))
    back = (2.0 * side - 1.0) * shift
    for i in range(n):
        x = corner(d1, b, i)
        height = dot(x - p, up)
        y = fma(-height, up, x)
        x = fma(height * dot(up, along), along, y)
        if d1.shapes.type[side] == CAPSULE:
            x = Vec3(x.x, x.y, x.z + (2.0 * side - 1.0) * half)
        else:
            x = x - back
        store_impact(d1, side, i, x)
        store_impact(d1, 1 - side, i, y + back)
    d1.manifold.count[0] = n


@kernel
def store_corners_within(d1, b, n, side, p, up, along):
    """Stores at most four corners within the limit, if there are any."""
    edge, limit = d1.feature.count[side] == SEGMENT, d1.shapes.limit[0]
    if d1.shapes.type[side] == CAPSULE:
        limit = 0.5 * limit  # its line is already moved by half of the limit
    n = keep_near(d1, b, n, p, up, limit)
    if edge and n > 2:
        n = ends_of_edge(d1, b, n)
    elif n > POINTS:
        n = quadrilateral(d1, b, n)
    if n > 0:
        store_corners(d1, b, n, side, p, up, along)


@kernel
def meet_plane(m1, d1):
    """Computes the points of a shape on a plane, the first shape: those of its most aligned face, or of its edge."""
    find_feature(m1, d1, 1, EDGE)
    if d1.feature.count[1] != POINT:
        n, up = load_polygon(d1, 1), Vec3(0.0, 0.0, 1.0)
        store_corners_within(d1, 0, n, 1, Vec3(0.0, 0.0, -0.5 * d1.convex.dist[0]), up, up)


@kernel
def edge_in_frame(d1, edge, side):
    """Returns the unit direction of the edge of one shape, in the frame of a shape."""
    e = normalize3(load_corner(d1, edge, 1) - load_corner(d1, edge, 0))[0]
    return d1.shapes.mat[side].T @ (d1.feature.axes[0].T @ e)


@kernel
def open_face(m1, d1, side):
    """Replaces an edge of a box by a face at it that the other shape's edge is nearly parallel to; returns 1 if so."""
    found = -1
    if d1.shapes.type[side] == BOX:
        e, across = edge_in_frame(d1, side, side), edge_in_frame(d1, 1 - side, side)
        for axis in unrolled(range(3)):
            if found < 0 and fabs(e[axis]) < 0.5 and fabs(across[axis]) < EDGE:
                found = axis
        if found >= 0:
            n = (1.0 - 2.0 * side) * d1.feature.axes[0].rows[2]
            highest, _ = core_support(m1, d1, side, d1.shapes.mat[side].T @ n)
            set_box_face(d1, side, highest, found)
    return 1 if found >= 0 else 0


@kernel
def cut_by_other(d1, face):
    """Computes the points of a polygon or an edge and the face of the shape of `face`."""
    n = load_polygon(d1, 1 - face)
    b, n = cut_by_face(d1, face, n)
    up = outward(face, turning_normal(d1, face))
    along = up if face == 0 else -up
    if d1.feature.count[1 - face] != SEGMENT:
        along = -outward(1, turning_normal(d1, 1))
    store_corners_within(d1, b, n, 1 - face, load_corner(d1, face, 0), up, along)


@kernel
def meet_shapes(m1, d1):
    """Computes the points of a face with a face or an edge."""
    find_feature(m1, d1, 0, FACE)
    if d1.feature.count[0] != POINT:
        find_feature(m1, d1, 1, FACE)
        if d1.feature.count[0] == SEGMENT and d1.feature.count[1] == SEGMENT and open_face(m1, d1, 1) == 0:
            open_face(m1, d1, 0)
        p, q = d1.feature.count[0], d1.feature.count[1]
        if q != POINT and (p != SEGMENT or q != SEGMENT):
            cut_by_other(d1, 1 if p == SEGMENT else 0)


@kernel
def meet_capsule_and_box(d1):
    """Computes the points of a capsule and the first face at the box's nearest point that is nearly parallel to it."""
    R, size, found = d1.shapes.mat[1], d1.shapes.size[1], -1
    x = R.T @ (d1.convex.witness[1] - d1.shapes.pos[1])
    a, n = R.T @ capsule_axis(d1, 0), R.T @ d1.convex.normal[0]
    for i in unrolled(range(3)):
        if found < 0 and fabs(x[i]) > size[i] - ON_EDGE and fabs(a[i]) < EDGE and x[i] * n[i] < 0.0:
            found = i
    if found >= 0:
        set_box_face(d1, 1, copysign(size, x), found)
        d1.feature.count[0] = SEGMENT
        cut_by_other(d1, 1)


@stage
def impact_points(m1, d1):
    """Computes up to four contact points at impact, on both shapes: corners of their features, or the nearest points.

    Reads:  shapes.* and convex.* at impact; shapes.limit, the distance up to which a corner counts.
    Writes: sweep.impact (2, 4, 3) [m], manifold.count.
    Scratch: feature.*, clip.*.
    """
    d1.sweep.impact[0, 0] = d1.convex.witness[0]
    d1.sweep.impact[1, 0] = d1.convex.witness[1]
    d1.manifold.count[0] = 1
    set_contact_axes(d1)
    if d1.shapes.type[0] == PLANE:
        meet_plane(m1, d1)
    elif m1.opt_disableflags & DISABLE_MULTICCD == 0:
        if d1.shapes.type[0] == CAPSULE and d1.shapes.type[1] == BOX:
            meet_capsule_and_box(d1)
        else:
            meet_shapes(m1, d1)
