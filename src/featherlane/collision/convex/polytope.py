"""Builds the polytope of the EPA: its vertices and faces, and the tetrahedron from which it grows.

The vertices are support points of the difference of two shapes.
Source: van den Bergen, Collision Detection in Interactive 3D Environments, sec. 4.3.8.
"""

from featherlane.prelude import *
from featherlane.collision.convex.support import support_along

FACES = 512
GROWN = 1e30  # key of a face that is excluded from the search
TINY = 1e-300  # m^4
FLAT = 1e-10  # height of the first tetrahedron, relative to the size, below which the difference is flat


# ---- faces ---------------------------------------------------------------------------------------------------------
@kernel
def keep_vertex(d1, k):
    """Stores the latest support point as vertex k."""
    d1.epa.point[k] = d1.support.point[0]
    d1.epa.first[k] = d1.support.first[0]
    d1.epa.vertex[k, 0], d1.epa.vertex[k, 1] = d1.support.vertex[0], d1.support.vertex[1]


@kernel
def make_face(d1, f, i, j, k):
    """Creates face f from three vertices, counterclockwise from outside; a face without area is never the nearest."""
    d1.epa.corner[f, 0], d1.epa.corner[f, 1], d1.epa.corner[f, 2] = i, j, k
    a, b, c = d1.epa.point[i], d1.epa.point[j], d1.epa.point[k]
    n = cross(b - a, c - a)
    nn = dot(n, n)
    key = GROWN
    if nn > 0.0:
        n = 1.0 / sqrt(nn) * n
        key = dot(n, c)
    d1.epa.normal[0, f], d1.epa.normal[1, f], d1.epa.normal[2, f] = n
    d1.epa.offset[f], d1.epa.key[f], d1.epa.mark[f] = key, key, 0


@kernel
def normal_of_face(d1, f):
    """Returns the unit normal of a face."""
    return Vec3(d1.epa.normal[0, f], d1.epa.normal[1, f], d1.epa.normal[2, f])


@kernel
def make_faces(d1, n):
    """Creates faces 0 .. n - 1, at most 64, from `epa.corner`, eight at once, as `make_face` does.

    All corners are stored before the first ones are loaded: a load of eight waits for recent stores of one.
    """
    N, P, K, O, run = eights(d1.epa.normal), eights(d1.epa.place), eights(d1.epa.key), eights(d1.epa.offset), FACES // 8
    for group in range((n + 7) // 8):
        for lane in range(8):
            f = min(8 * group + lane, n - 1)
            d1.epa.mark[8 * group + lane] = 0
            for c in unrolled(range(3)):
                x, y, z = d1.epa.point[d1.epa.corner[f, c]]
                at = 72 * group + 24 * c + lane
                d1.epa.place[at], d1.epa.place[at + 8], d1.epa.place[at + 16] = x, y, z
    for group in range((n + 7) // 8):
        k = 9 * group
        a, b, c = Vec3(P[k : k + 3]), Vec3(P[k + 3 : k + 6]), Vec3(P[k + 6 : k + 9])
        u = cross(b - a, c - a)
        nn = dot(u, u)
        u = where(nn > 0.0, 1.0 / sqrt(fmax(nn, TINY)), 1.0) * u
        key = where(nn > 0.0, dot(u, c), GROWN)
        N[group], N[group + run], N[group + 2 * run] = u
        O[group], K[group] = key, key
    for f in range(n, 8 * ((n + 7) // 8)):
        d1.epa.key[f] = GROWN


@kernel
def open_group(d1, f):
    """If face f is the first of a group of eight, clears the group."""
    if f % 8 == 0:
        keys = eights(d1.epa.key)
        keys[f // 8] = GROWN


@kernel
def set_neighbours(d1, f, i, j, k):
    """Sets the edges beyond the edges of face f: 4 face + edge."""
    d1.epa.neighbour[f, 0], d1.epa.neighbour[f, 1], d1.epa.neighbour[f, 2] = i, j, k


# ---- the first tetrahedron -------------------------------------------------------------------------------------------
@kernel
def axis_across(e):
    """Returns the coordinate axis farthest from the direction of e."""
    x, y, z = fabs(e[0]), fabs(e[1]), fabs(e[2])
    one, zero = 0.0 * x + 1.0, 0.0 * x
    axis = Vec3(zero, zero, one)
    if x <= y and x <= z:
        axis = Vec3(one, zero, zero)
    elif y <= z:
        axis = Vec3(zero, one, zero)
    return axis


@kernel
def second_vertex(m1, d1, size):
    """Finds vertex 1, apart from vertex 0; returns the number of vertices."""
    n, a = 1, d1.epa.point[0]
    for i in range(6):
        if n == 1:
            s = 1.0 - 2.0 * (i & 1)
            x, y, z = 0.0 * s, 0.0 * s, 0.0 * s
            if i < 2:
                x = s
            elif i < 4:
                y = s
            else:
                z = s
            e = support_along(m1, d1, Vec3(x, y, z)) - a
            if dot(e, e) > (FLAT * size) * (FLAT * size):
                keep_vertex(d1, 1)
                n = 2
    return n


@kernel
def third_vertex(m1, d1, size):
    """Finds vertex 2, off the line of the first two."""
    n, a = 2, d1.epa.point[0]
    e = d1.epa.point[1] - a
    u = cross(e, axis_across(e))
    w = cross(e, u)
    w = sqrt(dot(u, u) / dot(w, w)) * w
    for i in range(4):
        if n == 2:
            s = 1.0 - 2.0 * (i & 1)
            c = u if i < 2 else w
            x = support_along(m1, d1, s * c) - a
            x = cross(x, e)
            if dot(x, x) > (FLAT * size) * (FLAT * size) * dot(e, e):
                keep_vertex(d1, 2)
                n = 3
    return n


@kernel
def plane_of_three(d1):
    """Returns the unit normal of the first three vertices."""
    a = d1.epa.point[0]
    n = cross(d1.epa.point[1] - a, d1.epa.point[2] - a)
    return 1.0 / sqrt(dot(n, n)) * n


@kernel
def fourth_vertex(m1, d1, size):
    """Finds vertex 3, off the plane of the first three, on the side of the larger extent."""
    n, a, u = 3, d1.epa.point[0], plane_of_three(d1)
    up = dot(support_along(m1, d1, u) - a, u)
    keep_vertex(d1, 3)
    down = dot(a - support_along(m1, d1, -u), u)
    if down > up:
        keep_vertex(d1, 3)
        up = down
    if up > FLAT * size:
        n = 4
    return n


@kernel
def first_tetrahedron(m1, d1, size):
    """Completes the simplex to a tetrahedron; returns the number of vertices, below four if flat."""
    n = d1.simplex.count[0]
    for k in range(n):
        d1.epa.point[k] = d1.simplex.point[k]
        d1.epa.first[k] = d1.simplex.first[k]
        d1.epa.vertex[k, 0], d1.epa.vertex[k, 1] = d1.simplex.vertex[k, 0], d1.simplex.vertex[k, 1]

    # vertices that add no dimension are removed from a flat simplex
    a = d1.epa.point[0]
    if n > 1:
        e = d1.epa.point[1] - a
        if not dot(e, e) > (FLAT * size) * (FLAT * size):
            n = 1
        elif n > 2:
            x = cross(e, d1.epa.point[2] - a)
            xx = dot(x, x)
            if not xx > (FLAT * size) * (FLAT * size) * dot(e, e):
                n = 2
            elif n > 3:
                height = dot(x, d1.epa.point[3] - a)
                if not height * height > (1e-3 * size) * (1e-3 * size) * xx:
                    n = 3
    if n == 1:
        n = second_vertex(m1, d1, size)
    if n == 2:
        n = third_vertex(m1, d1, size)
    if n == 3:
        n = fourth_vertex(m1, d1, size)
    return n


@kernel
def close_tetrahedron(d1):
    """Creates the four faces, oriented outwards."""
    a = d1.epa.point[0]
    n = cross(d1.epa.point[1] - a, d1.epa.point[2] - a)
    i, j = 1, 2
    if dot(n, d1.epa.point[3] - a) > 0.0:
        i, j = 2, 1
    # vertex 3 lies behind the face 0 i j
    make_face(d1, 0, 0, i, j)
    make_face(d1, 1, 0, 3, i)
    make_face(d1, 2, i, 3, j)
    make_face(d1, 3, j, 3, 0)
    set_neighbours(d1, 0, 4 * 1 + 2, 4 * 2 + 2, 4 * 3 + 2)
    set_neighbours(d1, 1, 4 * 3 + 1, 4 * 2 + 0, 4 * 0 + 0)
    set_neighbours(d1, 2, 4 * 1 + 1, 4 * 3 + 0, 4 * 0 + 1)
    set_neighbours(d1, 3, 4 * 2 + 1, 4 * 1 + 0, 4 * 0 + 2)
