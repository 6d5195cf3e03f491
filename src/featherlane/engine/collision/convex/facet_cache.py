"""Caches a proof, kept between steps, that two polytopes are nearest, or overlap least, at the same facet as before.

The search for the depth ends with a polytope inside the difference of the shapes, and the facet nearest to the origin.
The cache stores the indices of the polytope's vertices, its faces, and the vertices of the facet.  In the next step
these vertices, at their new positions, again span a polytope inside the difference.  If

    the origin's projection is on the facet, and away from its border,                           (measure_facet)
    no other vertex of the difference is near the facet's plane,                             (is_separate_facet)
    every other face of the polytope is farther from the origin than the facet, by a margin,    (polytope_holds)

then only the facet's normal has as small a depth, and a search would end at this facet.  Its depth, normal
and points follow from its vertices alone, so they are bitwise identical with or without the search.  For separated
shapes the first two conditions are sufficient, because a distance has a single minimum.

If a condition fails for an overlap, the search continues from the polytope at its present position
(`grow_cached_polytope`), which usually takes two or three support points instead of twelve.  Its result counts only if
it meets the conditions, so it is also bitwise identical; otherwise the search starts again without cache.

    record:  key, shapes, nvertex, nface, kind and vertices of the facet, vertices, faces

The polytope of the search is stored in epa.* as in epa.py: vertex v is the difference of the core vertices
epa.vertex[v]; face f has corners epa.corner[f], the plane normal . x = epa.offset[f] and the priority epa.key[f].
epa.count has the numbers of vertices and of faces.

A proof is checked completely and depends on nothing else, so a proof of an old step, or another pose, is equally
valid.  A closed surface of triangles with the origin on the inner side of all of them surrounds it in every direction
(its projection on the sphere has no folds), so the polytope need not stay convex.
`record` is the array of a record's values; nvertex and nface are its numbers of vertices and faces.
m1 and d1 are the model and the data of one world.  The core of a sphere is its centre, that of a capsule its segment;
any other shape is its own core.  The facet is given by facet.kind and facet.vertex, three vertices of each core;
facet.apart is 1 if the cores are separated.  convex.dist is minus the depth, or the distance.
EXACT is the gap at which the search of two polytopes ends.  BY_PROOF and BY_GROWTH are methods that the cache counts.
convex.mat and convex.pos are the second shape's pose in the frame of the first.  epa.gap and epa.size are the allowed
difference of the search's bounds, and the size that it is relative to.  NO_FACET is the kind without a facet.

Imported kernels:

    known_proof, new_proof             address of the pair's proof, 0 if there is none; address for writing it
    shapes_code(d1)                    a number for the types and meshes of both shapes
    vertex_of(m1, d1, side, vertex)    position of a core's vertex, in the frame of its shape
    make_faces(d1, nface)              computes epa.normal, epa.offset and epa.key from epa.corner and epa.point
    set_neighbours(d1, f, e0, e1, e2)  stores the edges beyond the three edges of face f, as 4 face + edge
    measure_facet(m1, d1)              writes convex.*; distance of the foot from the facet's border, 0 outside
    error_of_facet(m1, d1, size)       largest distance of the facet's corners from its plane
    grow_polytope, settle_on_best      search from the polytope epa.*; set facet.* at its nearest face
    size_of_pair(m1, d1)               approximate extent of the shapes [m]

Source: Featherlane's own method.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.epa import EXACT, count_faces_below, grow_polytope, settle_on_best
from featherlane.engine.collision.convex.facet import NO_FACET, is_of_facet, vertex_of
from featherlane.engine.collision.convex.facet_depth import measure_facet, size_of_pair
from featherlane.engine.collision.convex.polytope import GROWN, make_faces, set_neighbours
from featherlane.engine.collision.convex.result_cache import (
    BY_GROWTH,
    BY_PROOF,
    count_method,
    known_proof,
    new_proof,
    shapes_code,
)
from featherlane.engine.collision.convex.separate_facet import error_of_facet, is_separate_facet

VERTICES = 32  # maximum number of vertices of a cached polytope
KEY, SHAPES, NVERTEX, NFACE, KIND, FIRST_OF_FACET = range(6)  # offsets in a record
FIRST_VERTEX = FIRST_OF_FACET + 6
FIRST_FACE = FIRST_VERTEX + VERTICES // 2
CODE_BITS = 13  # bits of a vertex index: a word of a record packs four, i.e. two vertices of the polytope
CODES = 1 << CODE_BITS  # exclusive limit of a core's vertex indices
CORNER_BITS = 5  # bits of a corner index: a word packs nine, i.e. three faces
CORNERS = 1 << CORNER_BITS
MARGIN = 1e-9  # relative to the size: margin by which other faces must be farther
ERRORS = 8.0  # additional margin, as a multiple of the facet's error
LEAST_DEPTH = 1e-6  # relative to the size: least depth for which a proof is used
MOST_STEPS = 12  # maximum number of support points of a continued search; searches that need more rarely end in a proof
MOST_BELOW = 6  # with more faces below the depth's upper bound, a search without the cached polytope is faster
REMOVED_KEY = 0.5 * GROWN  # keys of removed faces are greater


# ---- writing ---------------------------------------------------------------------------------------------------------
@kernel
def vertex_code(d1, vertex):
    """Returns the indices of a and b packed in one number, a - b being a vertex of the polytope."""
    return (d1.epa.vertex[vertex, 0] << CODE_BITS) | d1.epa.vertex[vertex, 1]


@kernel
def fits_record(d1):
    """Returns whether the polytope fits into a record, by its number of faces and the size of its vertex indices."""
    # a closed polytope with n faces has n / 2 + 2 vertices: at most VERTICES
    fits = count_faces_below(d1, d1.epa.count[1], REMOVED_KEY) <= 2 * VERTICES - 4
    # epa.vertex has two core vertices for each vertex of the polytope
    for k in range(2 * d1.epa.count[0]):
        fits = fits and d1.epa.vertex[k] < CODES
    return fits


@kernel
def write_faces(d1, record):
    """Writes the packed corners of the faces that were not removed; returns (nvertex, nface), the numbers written.

    Vertices are renumbered in the order in which faces use them: epa.link[v, 0] is the new number of vertex v, -1 if no
    face uses it; epa.link[i, 1] is the vertex with the new number i.  A word has the corners of three faces,
    CORNER_BITS each; the last word may have fewer.
    """
    nvertex, nface, word = 0, 0, 0
    for vertex in range(d1.epa.count[0]):
        d1.epa.link[vertex, 0] = -1
    for face in range(d1.epa.count[1]):
        if d1.epa.key[face] < REMOVED_KEY:
            for corner in unrolled(range(3)):
                vertex = d1.epa.corner[face, corner]
                if d1.epa.link[vertex, 0] < 0:
                    d1.epa.link[vertex, 0], d1.epa.link[nvertex, 1] = nvertex, vertex
                    nvertex += 1
                word = (word << CORNER_BITS) | d1.epa.link[vertex, 0]
            record[FIRST_FACE + nface // 3] = word
            nface += 1
            if nface % 3 == 0:
                word = 0
    return nvertex, nface


@kernel
def write_vertices(d1, record, nvertex):
    """Writes the packed vertices, numbered as by `write_faces`, two in a word."""
    for pair in range((nvertex + 1) // 2):
        word = vertex_code(d1, d1.epa.link[2 * pair, 1])
        if 2 * pair + 1 < nvertex:
            word = (word << (2 * CODE_BITS)) | vertex_code(d1, d1.epa.link[2 * pair + 1, 1])
        record[FIRST_VERTEX + pair] = word


@kernel
def write_proof(d1):
    """Caches the facet as a proof; for overlapping shapes only together with the polytope, if it fits."""
    if d1.facet.apart[0] == 1 or fits_record(d1):
        record = scalars(d1, new_proof(d1))
        nvertex, nface = 0, 0
        if d1.facet.apart[0] == 0:
            nvertex, nface = write_faces(d1, record)
            # more than VERTICES is possible: a face without area counts as removed, so the faces may not be closed
            if nvertex <= VERTICES:
                write_vertices(d1, record, nvertex)
        # with key 0, the record proves nothing
        record[KEY] = d1.recall.key[0] if nvertex <= VERTICES else 0
        record[SHAPES] = shapes_code(d1)
        record[NVERTEX], record[NFACE] = nvertex, nface
        # facet.apart is the lowest bit of the kind
        record[KIND] = 2 * d1.facet.kind[0] + d1.facet.apart[0]
        for k in range(6):
            record[FIRST_OF_FACET + k] = d1.facet.vertex[k]


@kernel
def keep_proof(m1, d1):
    """Caches the facet where a search ended, if it is isolated.  Reads: facet.*, convex.*, epa.*."""
    # recall.pair[0] is the address of the pair's cache entry, 0 without a cache
    kept = d1.recall.pair[0] != 0 and d1.facet.kind[0] != NO_FACET
    # measure_facet writes convex.* again, with the same result
    if kept and is_separate_facet(m1, d1, size_of_pair(m1, d1), measure_facet(m1, d1)):
        write_proof(d1)


# ---- the polytope at its current position ----------------------------------------------------------------------------
@kernel
def unpack_vertices(m1, d1, record, nvertex):
    """Computes the current positions of a cached polytope's vertices.   Writes: epa.vertex, epa.point."""
    mat, pos = d1.convex.mat[0], d1.convex.pos[0]
    are_hulls = d1.shapes.type[0] == MESH and d1.shapes.type[1] == MESH
    first1, first2 = 0, 0  # first vertices of the two hulls in hull_vert
    if are_hulls:
        first1, first2 = m1.hull_vertadr[d1.shapes.data[0]], m1.hull_vertadr[d1.shapes.data[1]]
    for pair in range((nvertex + 1) // 2):
        codes = whole(record[FIRST_VERTEX + pair])
        # backwards, because the last vertex is in the lowest bits: first the second core's index, then the first's
        for v in range(min(2 * pair + 1, nvertex - 1), 2 * pair - 1, -1):
            vertex1 = (codes >> CODE_BITS) & (CODES - 1)
            vertex2 = codes & (CODES - 1)
            codes = codes >> (2 * CODE_BITS)
            d1.epa.vertex[v, 0], d1.epa.vertex[v, 1] = vertex1, vertex2
            if are_hulls:
                point1, point2 = m1.hull_vert[first1 + vertex1], m1.hull_vert[first2 + vertex2]
            else:
                point1, point2 = vertex_of(m1, d1, 0, vertex1), vertex_of(m1, d1, 1, vertex2)
            d1.epa.point[v] = point1 - mat @ point2 - pos


@kernel
def unpack_faces(d1, record, nface):
    """Unpacks the corners of a cached polytope's faces, and computes the current planes of the faces.

    Reads: epa.point.  Writes: epa.corner, epa.normal, epa.offset, epa.key, epa.mark.
    """
    for word in range((nface + 2) // 3):
        corners = whole(record[FIRST_FACE + word])
        count = min(nface - 3 * word, 3)
        for i in range(count):
            face = 3 * word + i
            # backwards, because the last corner is in the lowest bits
            for corner in range(2, -1, -1):
                d1.epa.corner[face, corner] = corners & (CORNERS - 1)
                corners = corners >> CORNER_BITS
    make_faces(d1, nface)


@kernel
def polytope_holds(m1, d1, size):
    """Returns whether all polytope faces that are not part of the facet are farther from the origin, by a margin.

    A face is part of the facet if all its corners are.  size: extent of the shapes [m].
    """
    # the depth and the margin
    distance = -d1.convex.dist[0] + (MARGIN * size + ERRORS * error_of_facet(m1, d1, size))
    holds = True
    keys, offsets = eights(d1.epa.key), eights(d1.epa.offset)
    for group in range((d1.epa.count[1] + 7) // 8):
        # skips a group whose faces are all farther or removed.  Compares offsets, because the key of a face that cannot
        # grow is not its distance
        if any_(not_((offsets[group] > distance) | (keys[group] > REMOVED_KEY))):
            for face in range(8 * group, min(8 * group + 8, d1.epa.count[1])):
                if not (d1.epa.offset[face] > distance or d1.epa.key[face] > REMOVED_KEY):
                    for corner in range(3):
                        v = d1.epa.corner[face, corner]
                        for side in unrolled(range(2)):
                            holds = holds and is_of_facet(m1, d1, side, d1.epa.vertex[v, side])
        if not holds:
            break
    return holds


# ---- continuing the search -------------------------------------------------------------------------------------------
@kernel
def link_faces(d1, nface):
    """Sets the neighbours of the polytope's faces; returns whether these form a closed surface.

    edge_at[CORNERS i + j] is the edge from vertex i to vertex j, as 4 face + edge, -1 if no face has it.
    Writes: epa.neighbour.  Scratch: epa.side, which holds edge_at.
    """
    edge_at = d1.epa.side
    closed = nface > 0
    # the neighbour at an edge is the face that has the reverse edge.  Only the places of reverse edges are read below,
    # so only these are cleared before the edges of all faces are entered
    for face in range(nface):
        v0, v1, v2 = d1.epa.corner[face, 0], d1.epa.corner[face, 1], d1.epa.corner[face, 2]
        edge_at[CORNERS * v1 + v0], edge_at[CORNERS * v2 + v1], edge_at[CORNERS * v0 + v2] = -1, -1, -1
    for face in range(nface):
        v0, v1, v2 = d1.epa.corner[face, 0], d1.epa.corner[face, 1], d1.epa.corner[face, 2]
        edges = 4 * face, 4 * face + 1, 4 * face + 2
        edge_at[CORNERS * v0 + v1], edge_at[CORNERS * v1 + v2], edge_at[CORNERS * v2 + v0] = edges
    for face in range(nface):
        v0, v1, v2 = d1.epa.corner[face, 0], d1.epa.corner[face, 1], d1.epa.corner[face, 2]
        beyond0, beyond1, beyond2 = edge_at[CORNERS * v1 + v0], edge_at[CORNERS * v2 + v1], edge_at[CORNERS * v0 + v2]
        set_neighbours(d1, face, beyond0, beyond1, beyond2)
        closed = closed and min(beyond0, beyond1, beyond2) >= 0
    return closed


@kernel
def grow_cached_polytope(m1, d1):
    """Continues the search from the cached polytope; returns whether its result is that of a search without cache.

    It is if the facet that is found is a proof (`is_proof`), which is then cached.
    Writes: convex.*, facet.*, epa.*, and the cached proof.
    """
    is_valid = False
    if link_faces(d1, d1.epa.count[1]):
        d1.epa.gap[0], d1.epa.size[0], d1.facet.kind[0] = EXACT, size_of_pair(m1, d1), NO_FACET
        grow_polytope(m1, d1, steps=MOST_STEPS, max_below=MOST_BELOW)  # writes convex.*, epa.*
        settle_on_best(m1, d1, d1.convex.normal[0])  # writes facet.*
        if d1.facet.kind[0] != NO_FACET:
            is_valid = is_proof(m1, d1, measure_facet(m1, d1))
            if is_valid:
                write_proof(d1)
    return is_valid


@kernel
def is_proof(m1, d1, foot_margin):
    """Returns whether the facet is the only one with the least depth: isolated, and nearer than the polytope's faces.

    If the shapes are separated, it only needs to be isolated, because their distance has a single minimum.
    foot_margin: of `measure_facet`, 0 if the facet is not valid.   Reads: convex.dist, facet.*, epa.*.
    """
    size = size_of_pair(m1, d1)
    apart = d1.facet.apart[0] == 1
    depth = d1.convex.dist[0] if apart else -d1.convex.dist[0]
    isolated = foot_margin > 0.0 and depth > LEAST_DEPTH * size and is_separate_facet(m1, d1, size, foot_margin)
    return isolated and (apart or polytope_holds(m1, d1, size))


# ---- reading ---------------------------------------------------------------------------------------------------------
@kernel
def is_proved(m1, d1):
    """Returns whether the cached proof of the pair holds, or a search from its polytope ends in one.

    If so, convex.* has the same values as after a search without cache.  Writes: facet.*, epa.* and convex.*.
    """
    proved, method = False, BY_PROOF
    address = known_proof(d1)
    if address != 0:
        record = scalars(d1, address)
        if record[SHAPES] == shapes_code(d1):
            # facet.apart is the lowest bit of the kind
            d1.facet.kind[0], d1.facet.apart[0] = whole(record[KIND]) // 2, whole(record[KIND]) % 2
            for k in range(6):
                d1.facet.vertex[k] = whole(record[FIRST_OF_FACET + k])
            # writes convex.* for the facet's current position
            foot_margin = measure_facet(m1, d1)
            overlap = d1.facet.apart[0] == 0
            if overlap:
                d1.epa.count[0], d1.epa.count[1] = whole(record[NVERTEX]), whole(record[NFACE])
                unpack_vertices(m1, d1, record, d1.epa.count[0])
                unpack_faces(d1, record, d1.epa.count[1])
            proved = is_proof(m1, d1, foot_margin)
            if overlap and not proved:
                proved = grow_cached_polytope(m1, d1)
                method = BY_GROWTH
    if proved:
        count_method(d1, method)
    return proved
