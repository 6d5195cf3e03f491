"""A plane and the convex hull of a mesh: corners of the face at the lowest vertex that looks at the plane most.

Source: MuJoCo 4.0.1, measured on its contacts.  Of the face it gives up to four corners, in the face's order from the
    lowest vertex on, that are within the margin and not above the mesh's centre.  Of more than four it takes the lowest
    and three that span a large area with it: the next three, moved on while the area grows.
Note: one world at a time, because what follows the search for the lowest vertex branches.  The search alone would be
    quicker in lanes up to the largest hulls, if all worlds of a tile were near.  Measured for 8 worlds, ns per world:
        vertices                8    16   32   64  128  250  500  1000  2000
        asked in lanes          2     3    5   10   20   39   75   151   308
        asked one by one       12    18   33   63  122  237  472   939  1869
        climbing               18    35   43   68  110   92  194   215   353
    The whole pair takes 70 ns with 8 vertices and 450 ns with 2000, so that lanes would save 10 to 100 ns of a pair of
    which usually few worlds are near.
"""

from __future__ import annotations

from featherlane.collision.support import CLIMB, climb
from featherlane.lanes import kernel, stage
from featherlane.spatial.vector import (
    add3,
    axpy3,
    cross,
    dot3,
    load3,
    load9,
    mat_mul_vec,
    mat_t_mul_vec,
    plain_dot3,
    scale3,
    store3,
    sub3,
)

MOST = 4  # points
NO_FACE = -1


@kernel
def lowest_vertex(m1, start, n, down):
    """The first of the hull's vertices that are farthest down."""
    vertex = 0
    if n > CLIMB:
        vertex = climb(m1, start, n, down, 0)
    else:
        # unfused, so that of vertices equally low MuJoCo's is taken
        best = plain_dot3(load3(m1.hull_vert, 3 * start), down)
        for i in range(1, n):
            depth = plain_dot3(load3(m1.hull_vert, 3 * (start + i)), down)
            if depth > best:
                vertex, best = i, depth
    return vertex


@kernel
def facing(m1, mesh, at, down):
    """Of the faces at vertex `at`, the one whose normal is most along `down`."""
    face, first = NO_FACE, m1.hull_polyadr[mesh]
    for k in range(m1.hull_mapadr[at], m1.hull_mapadr[at] + m1.hull_mapnum[at]):
        i = first + m1.hull_map[k]
        if face == NO_FACE or dot3(load3(m1.hull_polynormal, 3 * i), down) > dot3(
            load3(m1.hull_polynormal, 3 * face), down
        ):
            face = i
    return face


@kernel
def corner(m1, start, face, lead, k):
    """Vertex of the face's corner k, counted from the corner `lead`."""
    n = m1.hull_polyvertnum[face]
    return load3(m1.hull_vert, 3 * (start + m1.hull_polyvert[m1.hull_polyvertadr[face] + (lead + k) % n]))


@kernel
def area2(m1, start, face, lead, b, c, d):
    """Squared area of the quadrilateral of corners 0, b, c and d, times 4: |(c - a) x (d - b)|^2."""
    p, q = corner(m1, start, face, lead, 0), corner(m1, start, face, lead, b)
    r, s = corner(m1, start, face, lead, c), corner(m1, start, face, lead, d)
    w = cross(sub3(r, p), sub3(s, q))
    return dot3(w, w)


@kernel
def spread_corners(m1, start, face, lead, n):
    """(b, c, d): three corners of the n that span a large area with corner 0.

    The last moves on while the area grows, and at each of its steps so do the middle one and the first.
    """
    b, c, d = 1, 2, 3
    most = area2(m1, start, face, lead, b, c, d)
    for _ in range(n):
        area = area2(m1, start, face, lead, b, c, (d + 1) % n)
        if not area > most:
            break
        most, d = area, (d + 1) % n
        for _ in range(n):
            area = area2(m1, start, face, lead, b, (c + 1) % n, d)
            if not area > most:
                break
            most, c = area, (c + 1) % n
        for _ in range(n):
            area = area2(m1, start, face, lead, (b + 1) % n, c, d)
            if not area > most:
                break
            most, b = area, (b + 1) % n
    return b, c, d


@kernel
def add_vertex(d1, v, n, down):
    """Add the point of a vertex if it is within the limit and not above the mesh's centre."""
    centre = load3(d1.shape_pos, 3)
    vertex = add3(mat_mul_vec(load9(d1.shape_mat, 9), v), centre)
    dist = dot3(sub3(vertex, load3(d1.shape_pos, 0)), n)
    if dist <= d1.shape_limit[0] and dot3(v, down) >= 0.0:
        i = d1.manifold_count[0]
        d1.manifold_dist[i] = dist
        store3(d1.manifold_pos, 3 * i, axpy3(-0.5 * dist, n, vertex))
        store3(d1.manifold_normal, 3 * i, n)
        d1.manifold_count[0] = i + 1


@stage
def plane_mesh(m1, d1):
    """Up to four points of a plane and a hull, none if its lowest vertex is out of reach.

    Reads:  shape_*, hull_*.   Writes: manifold_*.
    Cost: O(nvert) up to CLIMB vertices, about O(sqrt(nvert)) above.
    """
    mesh = d1.shape_data[1]
    start, n = m1.hull_vertadr[mesh], (d1.shape_mat[2], d1.shape_mat[5], d1.shape_mat[8])
    down = mat_t_mul_vec(load9(d1.shape_mat, 9), scale3(-1.0, n))
    lowest = lowest_vertex(m1, start, m1.hull_vertnum[mesh], down)
    face = facing(m1, mesh, start + lowest, down)

    d1.manifold_count[0] = 0
    add_vertex(d1, load3(m1.hull_vert, 3 * (start + lowest)), n, down)
    if d1.manifold_count[0] == 1 and face != NO_FACE:
        corners, lead = m1.hull_polyvertnum[face], 0
        for k in range(corners):
            if m1.hull_polyvert[m1.hull_polyvertadr[face] + k] == lowest:
                lead = k
        b, c, d = 1, 2, 3
        if corners > MOST:
            b, c, d = spread_corners(m1, start, face, lead, corners)
        add_vertex(d1, corner(m1, start, face, lead, b), n, down)
        add_vertex(d1, corner(m1, start, face, lead, c), n, down)
        if corners > 3:
            add_vertex(d1, corner(m1, start, face, lead, d), n, down)
