"""Adds a vertex to the polytope of the EPA: the faces visible from it are replaced by a fan around it.

The horizon is the loop of edges between the visible faces and the others.  Each of its edges and the new vertex form a
face of the fan.

A vertex within SLIVER of the line of a horizon edge would create a face without a normal.  The face beyond such an edge
also counts as visible; the vertex lies in its plane, so this removes no volume.

Vertex v of the polytope has a position epa.point[v] = a - b, its point epa.first[v] = a of the first core, and the
indices epa.vertex[v] of a and b.  Face f has corners epa.corner[f], counterclockwise from outside, and a plane
normal . x = epa.offset[f].  Its epa.key is its priority in the search, GROWN if it is removed.
Edge e of face f goes from its corner e to the next one; epa.neighbour[f, e] = 4 g + h is the same edge as edge h of
face g.
d1 is the data of one world.  `size` is the approximate extent of the shapes [m], for tolerances.
epa.mark is 1 for a face that is visible; FACES is the capacity of faces and of edges of the horizon.

Imported kernels:

    make_face(d1, face, v1, v2, v3)  stores a face: epa.corner, epa.normal, epa.offset, epa.key, epa.mark
    open_group(d1, face)             sets the keys of eight faces to GROWN if `face` is the first of them
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.polytope import FACES, GROWN, make_face, normal_of_face, open_group

SEEN = 1e-14  # height above a face, relative to the size, from which the face is visible
SLIVER = 1e-11  # distance from an edge's line, relative to the size, within which a point is on it


@kernel
def is_on_line(d1, vertex1, vertex2, point, size):
    """Returns whether the point is within SLIVER * size of the line of two vertices."""
    start = d1.epa.point[vertex1]
    edge = d1.epa.point[vertex2] - start
    offset = point - start
    area = cross(edge, offset)  # its length is the distance from the line times |edge|
    return dot(area, area) <= (SLIVER * size) * (SLIVER * size) * dot(edge, edge)


@kernel
def mark_visible_faces(d1, face, point, size):
    """Marks and lists the faces visible from the point, starting at a visible face; returns their number.

    Visits the neighbours of listed faces.  If the point is on the line of the edge between a listed face and its
    neighbour, the neighbour counts as visible.
    Writes: epa.seen, the list; epa.mark, 1 for listed faces.
    """
    d1.epa.seen[0] = face
    d1.epa.mark[face] = 1
    nseen, next_seen = 1, 0
    while next_seen < nseen:
        seen = d1.epa.seen[next_seen]
        for edge in range(3):
            beyond = d1.epa.neighbour[seen, edge] >> 2  # the face of 4 face + edge
            if d1.epa.mark[beyond] == 0:
                # the point is above the plane of the face
                visible = dot(normal_of_face(d1, beyond), point) - d1.epa.offset[beyond] > SEEN * size
                if not visible:
                    visible = is_on_line(
                        d1, d1.epa.corner[seen, edge], d1.epa.corner[seen, (edge + 1) % 3], point, size
                    )
                if visible:
                    d1.epa.seen[nseen] = beyond
                    d1.epa.mark[beyond] = 1
                    nseen = nseen + 1
        next_seen = next_seen + 1
    return nseen


@kernel
def list_horizon(d1, nseen, nvertex):
    """Lists the edges between visible and invisible faces; returns their number, 0 if they are not one loop.

    Args:
        nseen: number of visible faces, listed in epa.seen.
        nvertex: number of vertices of the polytope.

    Writes: epa.edge[i]: start vertex, end vertex and the edge beyond (4 face + edge).
            epa.link[v, 0]: the horizon's edge that starts at vertex v, -1 if none.
    """
    for i in range(nvertex):
        d1.epa.link[i, 0] = -1
    nedge, is_loop = 0, True
    for i in range(nseen):
        face = d1.epa.seen[i]
        for edge in range(3):
            beyond = d1.epa.neighbour[face, edge]
            # beyond is 4 face + edge; an edge between two visible faces is not on the horizon; epa.edge has FACES rows
            if d1.epa.mark[beyond >> 2] == 0 and nedge < FACES:
                start, end = d1.epa.corner[face, edge], d1.epa.corner[face, (edge + 1) % 3]
                d1.epa.edge[nedge, 0], d1.epa.edge[nedge, 1], d1.epa.edge[nedge, 2] = start, end, beyond
                if d1.epa.link[start, 0] >= 0:
                    is_loop = False
                d1.epa.link[start, 0] = nedge
                nedge = nedge + 1

    # in a single loop, following the edges from the first vertex returns to this vertex after nedge edges
    if nedge < 3:
        is_loop = False
    if is_loop:
        first_vertex = d1.epa.edge[0, 0]
        vertex = first_vertex
        length = 0
        for _ in range(nedge):
            if d1.epa.link[vertex, 0] >= 0:
                vertex = d1.epa.edge[d1.epa.link[vertex, 0], 1]
                length = length + 1
                if vertex == first_vertex:
                    break
        is_loop = length == nedge and vertex == first_vertex
    return nedge if is_loop else 0


@kernel
def replace_by_fan(d1, visible_face, vertex, nface, nspare, size):
    """Replaces the faces visible from a new vertex by a fan of faces, each with the vertex and an edge of the horizon.

    Returns (nface, nspare) after the replacement, or (0, 0) on failure.  A failure leaves the polytope unchanged.

    Args:
        visible_face: a face from whose outer side the vertex is visible.
        nface: number of faces ever made, including removed ones.
        nspare: number of removed faces that can be reused, listed in epa.spare.

    Writes: epa.corner, epa.normal, epa.offset, epa.key, epa.neighbour, epa.spare, epa.link, epa.edge, epa.mark.
    """
    point = d1.epa.point[vertex]
    # writes epa.seen, then epa.edge and epa.link
    nseen = mark_visible_faces(d1, visible_face, point, size)
    nedge = list_horizon(d1, nseen, vertex)
    # fails without a loop, or if the fan needs more faces than are spare (with the nseen visible ones) and unused
    if nedge == 0 or nface + nedge - nseen - nspare > FACES:
        # unmarks the faces again
        for i in range(nseen):
            d1.epa.mark[d1.epa.seen[i]] = 0
        nface, nspare = 0, 0
    else:
        # removes the visible faces
        for i in range(nseen):
            face = d1.epa.seen[i]
            d1.epa.key[face] = GROWN
            d1.epa.spare[nspare] = face
            nspare = nspare + 1
        for i in range(nedge):
            start, end = d1.epa.edge[i, 0], d1.epa.edge[i, 1]
            # a spare face is reused; without one, a face is added
            face = nface
            if nspare > 0:
                nspare = nspare - 1
                face = d1.epa.spare[nspare]
            else:
                open_group(d1, nface)
                nface = nface + 1
            # from now on, link[v, 0] is the fan's face whose horizon edge starts at vertex v, link[v, 1] the one whose
            # horizon edge ends at v
            d1.epa.link[start, 0], d1.epa.link[end, 1] = face, face
            d1.epa.edge[i, 1] = face  # from now on: the face of the fan at this edge
            beyond = d1.epa.edge[i, 2]
            d1.epa.neighbour[beyond >> 2, beyond & 3] = 4 * face  # the horizon's edge is edge 0 of the new face
            make_face(d1, face, start, end, vertex)
            d1.epa.neighbour[face, 0] = beyond
        for i in range(nedge):
            # the corners are start, end, vertex: edge 1 (end to vertex) is edge 2 of the face whose horizon edge starts
            # at `end`; edge 2 (vertex to start) is edge 1 of the face whose horizon edge ends at `start`
            face = d1.epa.edge[i, 1]
            d1.epa.neighbour[face, 1] = 4 * d1.epa.link[d1.epa.corner[face, 1], 0] + 2
            d1.epa.neighbour[face, 2] = 4 * d1.epa.link[d1.epa.corner[face, 0], 1] + 1
    return nface, nspare
