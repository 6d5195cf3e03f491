"""Caches a proof, kept between steps, that two polytopes are nearest, or overlap least, at the same facet as before.

The search for the depth ends with a polytope inside the difference of the shapes, and the facet nearest to the origin.
The cache stores the indices of the polytope's vertices, its faces, and the vertices of the facet.  In the next step
these vertices, at their new positions, again span a polytope inside the difference.  If

    the origin's projection is on the facet, and away from its border,                                  (measure_facet)
    no other vertex of the difference is near the facet's plane,                                        (stands_alone)
    every other face of the polytope is farther from the origin than the facet, by a margin,            (polytope_holds)

then only the facet's normal has as small a depth, and a search would end at this facet.  Its depth, normal
and points follow from its vertices alone, so they are bitwise identical with or without the search.  For separated
shapes the first two conditions are sufficient, because a distance has a single minimum.

    record:  key, shapes, nvertex, nface, kind and vertices of the facet, vertices, faces

A proof is checked completely and depends on nothing else, so a proof of an old step, or another pose, is equally
valid.  A closed surface of triangles with the origin on the inner side of all of them surrounds it in every direction
(its projection on the sphere has no folds), so the polytope need not stay convex.
Source: Featherlane's own method.
"""

from featherlane.prelude import *
from featherlane.collision.convex.epa import GROWN
from featherlane.collision.convex.facet import NO_FACET, is_of_facet, vertex_of
from featherlane.collision.convex.facet_depth import measure_facet, size_of_pair
from featherlane.collision.convex.result_cache import PROOF, known_proof, new_proof, shapes_code
from featherlane.collision.convex.separate_facet import error_of_facet, is_separate_facet

VERTICES = 32  # maximum number of vertices of a cached polytope
FIRST_OF_FACET, FIRST_VERTEX = 5, 11  # offsets in a record
FIRST_FACE = FIRST_VERTEX + VERTICES // 2
FACES = 3 * (PROOF - FIRST_FACE)  # maximum number of faces of a cached polytope: the rest of the record
CODE_BITS = 13  # bits of a vertex index: a word of a record packs four, i.e. two vertices of the polytope
CODES = 1 << CODE_BITS  # exclusive limit of a core's vertex indices
CORNER_BITS = 5  # bits of a corner index: a word packs nine, i.e. three faces
CORNERS = 1 << CORNER_BITS
MARGIN = 1e-9  # relative to the size: margin by which other faces must be farther
ERRORS = 8.0  # additional margin, in errors of a face
LEAST = 1e-6  # relative to the size: below this depth the search runs
DEAD = 0.5 * GROWN  # keys of removed faces are greater


# ---- writing ---------------------------------------------------------------------------------------------------------
@kernel
def live_faces(d1, nface):
    """Returns the number of created faces that have not been removed."""
    n = 0
    for f in range(nface):
        if d1.epa.key[f] < DEAD:
            n += 1
    return n


@kernel
def vertex_code(d1, k):
    """Returns a packed index of the two core vertices whose difference is vertex k of the polytope."""
    return (d1.epa.vertex[2 * k] << CODE_BITS) | d1.epa.vertex[2 * k + 1]


@kernel
def fits_record(d1, nvertex, nface):
    """Returns whether the polytope fits into a record."""
    fits = nvertex <= VERTICES and nface <= FACES
    if fits:
        for k in range(2 * nvertex):
            fits = fits and d1.epa.vertex[k] < CODES
    return fits


@kernel
def write_proof(d1, nvertex, nface):
    """Writes the packed polytope and facet."""
    record, one = scalars(d1, new_proof(d1)), real(d1, 1.0)
    record[0] = one * d1.recall.key[0]
    record[1], record[2], record[3] = one * shapes_code(d1), one * nvertex, one * nface
    record[4] = one * (2 * d1.facet.kind[0] + d1.facet.apart[0])
    for k in range(6):
        record[FIRST_OF_FACET + k] = one * d1.facet.vertex[k]
    for k in range((nvertex + 1) // 2):
        word = vertex_code(d1, 2 * k)
        if 2 * k + 1 < nvertex:
            word = (word << (2 * CODE_BITS)) | vertex_code(d1, 2 * k + 1)
        record[FIRST_VERTEX + k] = one * word
    n, word = 0, 0
    for f in range(d1.epa.count[1] if nface > 0 else 0):
        if d1.epa.key[f] < DEAD:
            a, b, c = d1.epa.corner[3 * f], d1.epa.corner[3 * f + 1], d1.epa.corner[3 * f + 2]
            word = (((((word << CORNER_BITS) | a) << CORNER_BITS) | b) << CORNER_BITS) | c
            n += 1
            if n % 3 == 0 or n == nface:
                record[FIRST_FACE + (n - 1) // 3] = one * word
                word = 0


@kernel
def keep_proof(m1, d1):
    """Caches the facet where a search ended, if it is valid as a proof; for an overlap also the polytope."""
    if d1.recall.pair[0] != 0 and d1.facet.kind[0] != NO_FACET:
        nvertex, nface = 0, 0
        if d1.facet.apart[0] == 0:
            nvertex, nface = d1.epa.count[0], live_faces(d1, d1.epa.count[1])
        if fits_record(d1, nvertex, nface) and is_separate_facet(m1, d1, size_of_pair(m1, d1), measure_facet(m1, d1)):
            write_proof(d1, nvertex, nface)


# ---- reading ---------------------------------------------------------------------------------------------------------
@kernel
def unpack_vertices(m1, d1, record, nvertex):
    """Computes the polytope's vertices at their current positions."""
    R, p = load9(d1.convex.mat, 0), load3(d1.convex.pos, 0)
    hulls, first, second = d1.shapes.type[0] == MESH and d1.shapes.type[1] == MESH, 0, 0
    if hulls:
        first, second = m1.hull_vertadr[d1.shapes.data[0]], m1.hull_vertadr[d1.shapes.data[1]]
    for word in range((nvertex + 1) // 2):
        codes = whole(record[FIRST_VERTEX + word])
        for k in range(min(2 * word + 1, nvertex - 1), 2 * word - 1, -1):
            i, j = (codes >> CODE_BITS) & (CODES - 1), codes & (CODES - 1)
            codes = codes >> (2 * CODE_BITS)
            d1.epa.vertex[2 * k], d1.epa.vertex[2 * k + 1] = i, j
            if hulls:
                a, b = load3(m1.hull_vert, 3 * (first + i)), load3(m1.hull_vert, 3 * (second + j))
            else:
                a, b = vertex_of(m1, d1, 0, i), vertex_of(m1, d1, 1, j)
            store3(d1.epa.point, 3 * k, sub3(sub3(a, mat_mul_vec(R, b)), p))


@kernel
def is_on_facet(m1, d1, k):
    """Returns whether vertex k of the polytope belongs to the facet."""
    return is_of_facet(m1, d1, 0, d1.epa.vertex[2 * k]) and is_of_facet(m1, d1, 1, d1.epa.vertex[2 * k + 1])


@kernel
def polytope_holds(m1, d1, record, nface, depth):
    """Returns whether the origin is inside all faces, and farther from those off the facet than from it by a margin."""
    holds = True
    for word in range((nface + 2) // 3):
        faces, n = whole(record[FIRST_FACE + word]), min(nface - 3 * word, 3)
        for _ in range(n):
            i = (faces >> (2 * CORNER_BITS)) & (CORNERS - 1)
            j, k = (faces >> CORNER_BITS) & (CORNERS - 1), faces & (CORNERS - 1)
            faces = faces >> (3 * CORNER_BITS)
            a, b, c = load3(d1.epa.point, 3 * i), load3(d1.epa.point, 3 * j), load3(d1.epa.point, 3 * k)
            n3 = cross(sub3(b, a), sub3(c, a))
            height = dot3(n3, a)
            if not (height > 0.0 and height * height > (depth * depth) * dot3(n3, n3)):
                holds = holds and is_on_facet(m1, d1, i) and is_on_facet(m1, d1, j) and is_on_facet(m1, d1, k)
        if not holds:
            break
    return holds


@kernel
def is_proved(m1, d1):
    """Returns whether the cached proof of the pair holds; if so, `convex_*` has the same values as after a search."""
    proved = False
    address = known_proof(d1)
    if address != 0:
        record = scalars(d1, address)
        if record[1] == real(d1, 1.0) * shapes_code(d1):
            d1.facet.kind[0], d1.facet.apart[0] = whole(record[4]) // 2, whole(record[4]) % 2
            for k in range(6):
                d1.facet.vertex[k] = whole(record[FIRST_OF_FACET + k])
            inside = measure_facet(m1, d1)
            if inside > 0.0:
                size, depth = size_of_pair(m1, d1), -d1.convex.dist[0]
                if d1.facet.apart[0] == 1:
                    proved = depth < -LEAST * size and is_separate_facet(m1, d1, size, inside)
                elif depth > LEAST * size:
                    farther = depth + (MARGIN * size + ERRORS * error_of_facet(m1, d1, size))
                    unpack_vertices(m1, d1, record, whole(record[2]))
                    proved = is_separate_facet(m1, d1, size, inside) and polytope_holds(
                        m1, d1, record, whole(record[3]), farther
                    )
    return proved
