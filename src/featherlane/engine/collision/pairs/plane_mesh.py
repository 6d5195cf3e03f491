"""Computes contacts of a plane and the convex hull of a mesh, from the lowest vertex's face most parallel to the plane.

shapes.*[0] is the plane, shapes.*[1] the mesh, in one world; points are stored in manifold.*.

The fields hull_* hold the convex hulls of all meshes.  Each list has an array of starts, `...adr`, and one of lengths,
`...num`: the vertices of a mesh's hull are hull_vert[hull_vertadr[mesh]] and the following.  hull_edge lists the
neighbours of a vertex, hull_map its faces, hull_polyvert the corners of a face.  All three are numbered within their
hull.
farthest_vertex(m1, mesh, down) is the hull's farthest vertex along `down`.
m1 and d1 are the model and the data of one world.  The points of shape 1 are in the world at shapes.mat[1] x +
shapes.pos[1].  A contact is at most shapes.limit away; manifold.count points are stored in manifold.pos, dist and
normal.  hull_polynormal is the outward normal of a face; faces count from hull_polyadr on.
Source: MuJoCo 4.0.1, measured on its contacts.  It returns up to four corners of that face, in the face's order from
    the lowest vertex on, that are within the margin and not above the mesh's centre.  Of more than four it returns the
    lowest and three that span a large area with it: the next three, advanced while the area grows.
Note: this runs one world at a time, because the steps after the search for the lowest vertex branch.  Measured, for 8
    worlds that all are near: that search in lanes against the whole pair one by one, ns per world:
        vertices               8   16   32   64  128  250  500  1000  2000
        search in lanes        2    3    5   10   20   39   75   151   308
        separated pair        11   15   26   23   24   25   27    31    35
        touching pair         23   35   53   42   44   46   50    56    61
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.support import farthest_vertex

MOST = 4  # points of one pair
CLIMB = 48  # hull vertices above which the candidates of a cell of directions are faster than testing all
NO_FACE = -1
TIE = 1e-12  # m heights that differ by less may be equal up to rounding


@kernel
def climb(m1, start, count, u, vertex):
    """Returns a hull's highest vertex along u, by moving from a vertex to its highest neighbour.

    This is exact on a convex hull.  The maximum uses a select, not a branch, because which neighbour is higher cannot
    be predicted.

    Args:
        start, count: first vertex of the hull in hull_vert, and number of its vertices.
        vertex: where the search starts; like the result, counted from the hull's first vertex.
    """
    best = dot(m1.hull_vert[start + vertex], u)
    for _ in range(count):
        hull_vertex = start + vertex
        # -1 if no neighbour is higher.  This `where`, whose mask is always false, gives -1 the precision of `best`,
        # because the `where` in the loop selects it
        neighbour = where(best < best, best, -1.0)
        for edge in range(m1.hull_edgeadr[hull_vertex], m1.hull_edgeadr[hull_vertex] + m1.hull_edgenum[hull_vertex]):
            k = m1.hull_edge[edge]
            height = dot(m1.hull_vert[start + k], u)
            neighbour = where(height > best, k, neighbour)
            best = fmax(height, best)
        if neighbour < 0.0:
            break
        vertex = whole(neighbour)
    return vertex


@kernel
def depth_below_neighbours(m1, start, vertex, down):
    """Returns how much lower a lowest vertex is than its lowest neighbour [m], at most 1 m.

    start: first vertex of the hull in hull_vert; the vertex is counted from it.
    """
    depth = dot(m1.hull_vert[start + vertex], down)
    deepest = depth - 1.0
    first = m1.hull_edgeadr[start + vertex]
    for edge in range(first, first + m1.hull_edgenum[start + vertex]):
        deepest = fmax(dot(m1.hull_vert[start + m1.hull_edge[edge]], down), deepest)
    return depth - deepest


@kernel
def lowest_vertex(m1, mesh, down):
    """Returns the first of the hull's lowest vertices along `down`; for a large hull, the one that MuJoCo climbs to."""
    vertex = 0
    start, count = m1.hull_vertadr[mesh], m1.hull_vertnum[mesh]
    if count > CLIMB:
        vertex = farthest_vertex(m1, mesh, down)
        # of equally low vertices, MuJoCo's is the one that climbing finds from the first vertex; if the first vertex is
        # no corner of the hull, it has no edges, and climbing cannot start there
        if depth_below_neighbours(m1, start, vertex, down) < TIE and m1.hull_edgenum[start] > 0:
            vertex = climb(m1, start, count, down, vertex=0)
    else:
        # unfused, so that equally low vertices compare as in MuJoCo
        best = plain_dot3(m1.hull_vert[start], down)
        for i in range(1, count):
            depth = plain_dot3(m1.hull_vert[start + i], down)
            if depth > best:
                vertex, best = i, depth
    return vertex


@kernel
def face_most_along(m1, mesh, hull_vertex, down):
    """Returns the face at a vertex whose normal has the largest cosine with `down`; NO_FACE if the vertex has none.

    hull_vertex: index of the vertex in hull_vert.
    """
    first_face = m1.hull_polyadr[mesh]
    face = -1.0  # NO_FACE as a value
    best = -2.0  # below any cosine
    for k in range(m1.hull_mapadr[hull_vertex], m1.hull_mapadr[hull_vertex] + m1.hull_mapnum[hull_vertex]):
        candidate = first_face + m1.hull_map[k]
        cosine = dot(m1.hull_polynormal[candidate], down)
        face = where(cosine > best, candidate, face)
        best = fmax(cosine, best)
    return whole(face)


@kernel
def next_corner(k, n):
    """Returns the corner after corner k of a face with n corners."""
    k += 1
    return k if k < n else 0


@kernel
def face_corner(m1, start, face, corner0, k):
    """Returns the position of corner corner0 + k of a face, counted around it, in the mesh's frame.

    start: first vertex of the hull in hull_vert.
    """
    corners = m1.hull_polyvertnum[face]
    corner = corner0 + k
    corner = corner if corner < corners else corner - corners
    return m1.hull_vert[start + m1.hull_polyvert[m1.hull_polyvertadr[face] + corner]]


@kernel
def area2(p, q, r, s):
    """Returns 4 times the squared area of the quadrilateral p, q, r, s: |(r - p) x (s - q)|^2."""
    w = cross(r - p, s - q)
    return dot(w, w)


@kernel
def spread_corners(m1, start, face, corner0, n):
    """Returns (q, r, s): three of the face's n corners that span a large area with p, the face's corner `corner0`.

    They start at the next three corners.  s advances while the area grows; after each of its steps, r advances while
    the area grows, then q.
    start: first vertex of the hull in hull_vert.
    """
    p, q = face_corner(m1, start, face, corner0, 0), face_corner(m1, start, face, corner0, 1)
    r, s = face_corner(m1, start, face, corner0, 2), face_corner(m1, start, face, corner0, 3)
    at_q, at_r, at_s = 1, 2, 3  # numbers of these corners, counted from corner0
    most = area2(p, q, r, s)
    for _ in range(n):
        k = next_corner(at_s, n)
        trial = face_corner(m1, start, face, corner0, k)
        area = area2(p, q, r, trial)
        if not area > most:
            break
        most, at_s, s = area, k, trial
        for _ in range(n):
            k = next_corner(at_r, n)
            trial = face_corner(m1, start, face, corner0, k)
            area = area2(p, q, trial, s)
            if not area > most:
                break
            most, at_r, r = area, k, trial
        for _ in range(n):
            k = next_corner(at_q, n)
            trial = face_corner(m1, start, face, corner0, k)
            area = area2(p, trial, r, s)
            if not area > most:
                break
            most, at_q, q = area, k, trial
    return q, r, s


@kernel
def add_vertex(d1, v, n, down):
    """Adds a contact point for the vertex v if v is within the limit and not above the mesh's centre.

    v: position of the vertex in the mesh's frame; n: the plane's normal in world axes; down: -n in the mesh's frame.
    """
    centre = d1.shapes.pos[1]
    vertex = d1.shapes.mat[1] @ v + centre
    dist = dot(vertex - d1.shapes.pos[0], n)
    if dist <= d1.shapes.limit[0] and dot(v, down) >= 0.0:
        i = d1.manifold.count[0]
        d1.manifold.dist[i] = dist
        d1.manifold.pos[i] = fma(-0.5 * dist, n, vertex)
        d1.manifold.normal[i] = n
        d1.manifold.count[0] = i + 1


@stage
def plane_mesh(m1, d1):
    """Computes up to four contact points of a plane and a hull, none if the hull's lowest vertex is beyond the limit.

    Reads:  shapes.*, hull_*.   Writes: manifold.*.
    Cost: O(nvert) up to CLIMB vertices; above, a few steps from the farthest vertex of a nearby direction.
    """
    mesh = d1.shapes.data[1]
    start, n = m1.hull_vertadr[mesh], d1.shapes.mat[0].columns[2]
    down = d1.shapes.mat[1].T @ -n
    lowest = lowest_vertex(m1, mesh, down)

    d1.manifold.count[0] = 0
    add_vertex(d1, m1.hull_vert[start + lowest], n, down)
    if d1.manifold.count[0] == 1:
        face = face_most_along(m1, mesh, start + lowest, down)
        if face != NO_FACE:
            corners = m1.hull_polyvertnum[face]
            corner0 = 0  # the face's corner at the lowest vertex
            for k in range(corners):
                if m1.hull_polyvert[m1.hull_polyvertadr[face] + k] == lowest:
                    corner0 = k
            q, r = face_corner(m1, start, face, corner0, 1), face_corner(m1, start, face, corner0, 2)
            s = r
            if corners > MOST:
                q, r, s = spread_corners(m1, start, face, corner0, corners)
            elif corners == MOST:
                s = face_corner(m1, start, face, corner0, 3)
            add_vertex(d1, q, n, down)
            add_vertex(d1, r, n, down)
            # a triangle has no fourth corner
            if corners > 3:
                add_vertex(d1, s, n, down)
